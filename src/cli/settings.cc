// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/config/option_table.h"

#include "text.h"

namespace nomad_harvester::cli {
namespace {

using config::StringMap;

constexpr char kPool[] = "node_group_name";
constexpr char kNamespace[] = "namespace";
// What a policy needs to create VMs, with placeholder values that are never used.
constexpr std::array<std::pair<const char*, const char*>, 4> kForNewVms = {
    {{"image", "default/none"},
     {"cpu_request", "1"},
     {"memory_request", "1Gi"},
     {"networks", "management"}}};

struct Blocks {
  StringMap plugin;
  StringMap policy;
};

class Problems {
 public:
  void Add(std::string_view text) {
    if (!lines_.empty()) lines_ += '\n';
    lines_ += text;
  }
  void Add(const absl::Status& status) {
    if (!status.ok()) Add(base::Message(status));
  }
  absl::Status ToStatus() const {
    return lines_.empty() ? absl::OkStatus() : base::InvalidArgument(lines_);
  }

 private:
  std::string lines_;
};

std::string Hint(const std::string& key) {
  std::vector<std::string> known;
  for (const config::Option& option : config::OptionTable()) known.emplace_back(option.key);
  const std::optional<std::string> nearest = base::NearestName(key, known);
  return nearest.has_value() ? "did you mean " + *nearest + "?"
                             : "docs/configuration.md has every key";
}

Blocks Split(const std::vector<std::string>& pairs, Problems* problems) {
  Blocks blocks;
  int number = 0;
  for (const std::string& pair : pairs) {
    ++number;
    const std::size_t equals = pair.find('=');
    const std::string key = pair.substr(0, equals);
    if (equals == std::string::npos || key.empty()) {
      // The text is not quoted: it may be a secret given without its key.
      problems->Add("--set: expected KEY=VALUE, but number " + std::to_string(number) + " has no " +
                    (key.empty() ? "key" : "\"=\""));
      continue;
    }
    const auto table = config::OptionTable();
    const auto option = std::find_if(table.begin(), table.end(),
                                     [&](const config::Option& o) { return o.key == key; });
    if (option == table.end()) {
      problems->Add(Printable(key) + ": unknown key; " + Hint(key));
      continue;
    }
    StringMap& block = option->section == config::Section::kPlugin ? blocks.plugin : blocks.policy;
    if (!block.emplace(key, pair.substr(equals + 1)).second) {
      problems->Add(key + ": given twice; remove one of them");
    }
  }
  return blocks;
}

std::string ValueOf(const StringMap& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? std::string() : found->second;
}

// Whether more is given than the pool and its namespace.
bool HoldsPolicy(const StringMap& policy) {
  return std::any_of(policy.begin(), policy.end(), [](const auto& entry) {
    return entry.first != kPool && entry.first != kNamespace;
  });
}

// A pool without its policy: the same rules for its two keys.
absl::Status CheckNames(const StringMap& policy) {
  StringMap whole = policy;
  whole.try_emplace(kPool, "any");
  whole.try_emplace("node_class", "any");
  for (const auto& [key, value] : kForNewVms) whole.try_emplace(key, value);
  return config::ParsePoolPolicy(whole).status();
}

}  // namespace

absl::StatusOr<Settings> ReadSettings(const std::vector<std::string>& pairs, PolicyUse use,
                                      const config::Environment& environment,
                                      const config::StringMap& template_environment) {
  Problems problems;
  Blocks blocks = Split(pairs, &problems);
  Settings settings;
  auto plugin = config::ParsePluginConfig(blocks.plugin, environment, template_environment);
  problems.Add(plugin.status());
  if (use == PolicyUse::kRequired || HoldsPolicy(blocks.policy)) {
    for (const auto& [key, value] : kForNewVms) blocks.policy.try_emplace(key, value);
    auto policy = config::ParsePoolPolicy(blocks.policy);
    problems.Add(policy.status());
    if (policy.ok()) settings.policy = *std::move(policy);
  } else {
    problems.Add(CheckNames(blocks.policy));
  }
  NH_RETURN_IF_ERROR(problems.ToStatus());
  settings.plugin = *std::move(plugin);
  settings.pool = ValueOf(blocks.policy, kPool);
  settings.ns =
      blocks.policy.contains(kNamespace) ? blocks.policy.at(kNamespace) : config::PoolPolicy().ns;
  return settings;
}

}  // namespace nomad_harvester::cli
