// SPDX-License-Identifier: Apache-2.0
// The maps of the agent: SetConfig's and a policy's. A line of the input is "key=value".
#include <map>
#include <optional>
#include <string>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/config/pool_policy.h"

#include "absl/strings/str_split.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace config = nomad_harvester::config;
  namespace fuzz = nomad_harvester::fuzz;
  config::StringMap values;
  for (const auto line : absl::StrSplit(std::string(fuzz::Text(data, size)), '\n')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(line, absl::MaxSplits('=', 1));
    values[pair.first] = pair.second;
  }
  const auto none = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  const auto plugin = config::ParsePluginConfig(values, none);
  const auto policy = config::ParsePoolPolicy(values);
  for (const char* key : {"auth_token", "nomad_token"}) {
    const auto secret = values.find(key);
    if (secret == values.end()) continue;
    // A value that is also that of another key may be quoted for it.
    int uses = 0;
    for (const auto& [name, value] : values) {
      uses += (name + value).find(secret->second) != std::string::npos ? 1 : 0;
    }
    if (uses > 1) continue;
    if (!plugin.ok()) fuzz::RequireHidden(secret->second, std::string(plugin.status().message()));
    if (plugin.ok()) {
      for (const std::string& warning : plugin->warnings)
        fuzz::RequireHidden(secret->second, warning);
    }
    if (!policy.ok()) fuzz::RequireHidden(secret->second, std::string(policy.status().message()));
  }
  fuzz::Require(config::ParsePoolPolicy(values).status() == policy.status(),
                "the same policy has the same problems");
  return 0;
}
