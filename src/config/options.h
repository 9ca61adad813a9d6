// SPDX-License-Identifier: Apache-2.0
// The two sections of the option table, and lookups in it.
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

// A hint for a key that `section` does not have: the section it belongs to, or the nearest known
// key.
std::string UnknownKeyHint(Section section, std::string_view key);

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_SRC_CONFIG_OPTIONS_H_
