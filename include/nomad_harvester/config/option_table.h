// The single source of every key: type, default, environment, documentation.
#ifndef NOMAD_HARVESTER_CONFIG_OPTION_TABLE_H_
#define NOMAD_HARVESTER_CONFIG_OPTION_TABLE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nomad_harvester::config {

enum class Section { kPlugin, kPolicy };
enum class OptionType {
  kString, kSecret, kBool, kDuration, kSignedDuration, kCount, kQuantity, kList, kMap, kEnum, kPath, kUrl
};

struct Option {
  Section section;
  std::string_view key;
  OptionType type;
  // Shown in the reference; empty: none. Applied by the readers of this module.
  std::string_view default_text;
  std::string_view environment;  // empty: none
  // Where both are given: true, the environment wins; false, it only fills an absent key.
  bool environment_wins = true;
  std::string_view documentation;  // Markdown, one paragraph
  std::string_view enum_values;    // comma-separated, for kEnum
};

// Every key that is implemented. A key that is not in here is unknown, and so refused.
std::span<const Option> OptionTable();

// The reference as Markdown: docs/configuration.md is exactly this text (a test compares).
std::string RenderReference();

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_CONFIG_OPTION_TABLE_H_
