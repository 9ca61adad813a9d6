// SPDX-License-Identifier: Apache-2.0
// Writes JSON values as YAML, for people and for kubectl. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_YAML_H_
#define NOMAD_HARVESTER_CLI_YAML_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::cli {

// One document in block style, without "---", in ASCII. A text is quoted unless every YAML reader
// takes it for a text.
std::string ToYaml(const nlohmann::json& value);
std::string ToYaml(const nlohmann::ordered_json& value);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_YAML_H_
