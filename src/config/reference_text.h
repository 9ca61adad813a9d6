// SPDX-License-Identifier: Apache-2.0
// The parts of the reference that are not generated from the option table.
#ifndef NOMAD_HARVESTER_SRC_CONFIG_REFERENCE_TEXT_H_
#define NOMAD_HARVESTER_SRC_CONFIG_REFERENCE_TEXT_H_

#include <string_view>

namespace nomad_harvester::config {

// Markdown; each begins with its heading or first paragraph and ends with a line end.
std::string_view IntroductionText();
std::string_view PluginRulesText();
std::string_view PolicyRulesText();
std::string_view TemplatesText();
std::string_view ObjectsText();

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_SRC_CONFIG_REFERENCE_TEXT_H_
