// SPDX-License-Identifier: Apache-2.0
// The two halves of the option table, and looking things up in it.
#ifndef NOMAD_HARVESTER_SRC_CONFIG_OPTIONS_H_
#define NOMAD_HARVESTER_SRC_CONFIG_OPTIONS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nomad_harvester/config/option_table.h"

namespace nomad_harvester::config {

std::span<const Option> PluginOptions();
std::span<const Option> PolicyOptions();
std::span<const Option> OptionsOf(Section section);

// Null if the section has no such key.
const Option* FindOption(Section section, std::string_view key);

// What to tell an operator about a key that `section` does not have: where it belongs, or the known
// key that is nearest to it.
std::string UnknownKeyHint(Section section, std::string_view key);

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_SRC_CONFIG_OPTIONS_H_
