// SPDX-License-Identifier: Apache-2.0
// The maps of the agent. The first line of the input says whose: "plugin", SetConfig's, or anything
// else, a policy's. The other lines are "key=value".
#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/config/pool_policy.h"

#include "absl/strings/str_split.h"
#include "fuzz/fuzz.h"

namespace {

namespace config = nomad_harvester::config;
namespace fuzz = nomad_harvester::fuzz;

// What an operator may see of a map: the error, or the warnings.
std::vector<std::string> TextsOf(bool is_plugin, const config::StringMap& values) {
  if (is_plugin) {
    const auto plugin = config::ParsePluginConfig(values, {});
    return plugin.ok() ? plugin->warnings
                       : std::vector<std::string>{std::string(plugin.status().message())};
  }
  const auto policy = config::ParsePoolPolicy(values);
  return policy.ok() ? policy->warnings
                     : std::vector<std::string>{std::string(policy.status().message())};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> lines = absl::StrSplit(std::string(fuzz::Text(data, size)), '\n');
  const bool is_plugin = lines.front() == "plugin";
  lines.erase(lines.begin());
  config::StringMap values;
  for (const std::string& line : lines) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(line, absl::MaxSplits('=', 1));
    values[pair.first] = pair.second;
  }
  const std::vector<std::string> texts = TextsOf(is_plugin, values);
  for (const char* key : {"auth_token", "nomad_token"}) {
    const auto secret = values.find(key);
    if (secret == values.end()) continue;
    // A value that is also that of another key may be quoted for it.
    int uses = 0;
    for (const auto& [name, value] : values) {
      uses += (name + value).find(secret->second) != std::string::npos ? 1 : 0;
    }
    if (uses > 1) continue;
    for (const std::string& text : texts) fuzz::RequireHidden(secret->second, text);
  }
  return 0;
}
