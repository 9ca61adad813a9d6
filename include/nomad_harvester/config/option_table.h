// SPDX-License-Identifier: Apache-2.0
// The table of all configuration keys: type, default, environment variables. docs/configuration.md
// says what they mean.
#ifndef NOMAD_HARVESTER_CONFIG_OPTION_TABLE_H_
#define NOMAD_HARVESTER_CONFIG_OPTION_TABLE_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nomad_harvester::config {

enum class Section { kPlugin, kPolicy };
enum class OptionType {
  kString,
  kSecret,
  kBool,
  kDuration,
  kSignedDuration,
  kCount,
  kShare,
  kQuantity,
  kList,
  kMap,
  kEnum,
  kPath,
  kUrl
};

struct Option {
  Section section = Section::kPlugin;
  std::string_view key = {};
  OptionType type = OptionType::kString;
  // Applied by the readers of this module; empty: none, or not a constant.
  std::string_view default_text = {};
  // Names of environment variables, comma-separated; the first one that is set is used. Empty:
  // none.
  std::string_view environment = {};
  // True: the environment takes precedence over the key. False: it is used only if the key is
  // absent.
  bool environment_wins = true;
  // An absent key is an error.
  bool required = false;
  // An empty value counts as absent, because the agent injects some keys with or without a value.
  bool empty_is_absent = false;
  std::string_view enum_values = {};  // comma-separated, for kEnum
  // Another key of the section, without which this one is an error in the plugin's block, and has
  // no effect in a policy, which is a warning; empty: none.
  std::string_view needs = {};
};

// Returns every supported key: those of the plugin block, then those of a policy. Any other key is
// rejected as unknown.
std::span<const Option> OptionTable();
std::span<const Option> OptionsOf(Section section);
// Null if the section has no such key.
const Option* FindOption(Section section, std::string_view key);

// Returns the key that was probably meant: the nearest one (base::NearestName), or else the only
// one that begins with `key`, or that contains it or is contained in it.
std::optional<std::string> NearestKey(std::string_view key, const std::vector<std::string>& keys);

// Returns a hint for a key that `section` does not have: its actual section, or the nearest known
// key.
std::string UnknownKeyHint(Section section, std::string_view key);

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_CONFIG_OPTION_TABLE_H_
