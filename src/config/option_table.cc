// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/config/option_table.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/parse.h"

#include "options.h"

namespace nomad_harvester::config {
namespace {

// Longer names are not typing errors, and the time for the distance grows with the length.
constexpr std::size_t kLongestCompared = 64;

std::string NearestKey(Section section, std::string_view key) {
  key = key.substr(0, kLongestCompared);
  std::string nearest;
  std::size_t best = 0;
  for (const Option& option : OptionsOf(section)) {
    const std::size_t distance = base::EditDistance(key, option.key);
    if (nearest.empty() || distance < best) {
      best = distance;
      nearest = option.key;
    }
  }
  return nearest;
}

}  // namespace

std::span<const Option> OptionTable() {
  // Never destroyed: other threads may still read it when the process exits.
  static const std::vector<Option>& table = *[] {
    auto* all = new std::vector<Option>(PluginOptions().begin(), PluginOptions().end());
    all->insert(all->end(), PolicyOptions().begin(), PolicyOptions().end());
    return all;
  }();
  return table;
}

std::span<const Option> OptionsOf(Section section) {
  return section == Section::kPlugin ? PluginOptions() : PolicyOptions();
}

const Option* FindOption(Section section, std::string_view key) {
  const std::span<const Option> options = OptionsOf(section);
  const auto found = std::find_if(options.begin(), options.end(),
                                  [key](const Option& option) { return option.key == key; });
  return found == options.end() ? nullptr : &*found;
}

std::string UnknownKeyHint(Section section, std::string_view key) {
  const bool in_plugin = section == Section::kPlugin;
  if (FindOption(in_plugin ? Section::kPolicy : Section::kPlugin, key) != nullptr) {
    return in_plugin ? "it belongs in the policy's target block"
                     : "it belongs in the plugin's config of the agent";
  }
  std::vector<std::string> known;
  for (const Option& option : OptionsOf(section)) known.emplace_back(option.key);
  const std::optional<std::string> typo = base::NearestName(key.substr(0, kLongestCompared), known);
  if (typo) return "did you mean " + *typo + "?";
  return "the nearest known key is " + NearestKey(section, key);
}

}  // namespace nomad_harvester::config
