// SPDX-License-Identifier: Apache-2.0
// The versions from which this executable was built.
#ifndef NOMAD_HARVESTER_CLI_VERSION_H_
#define NOMAD_HARVESTER_CLI_VERSION_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::cli {

// One line each: version, commit, and the linked libraries with their versions.
std::string VersionText();

// Likewise for programs: `version`, `commit`, `linked` ("static" or "shared"), and for each library
// `source`, `version` and `package`.
nlohmann::ordered_json VersionDocument();

// "0.1.0", or "0.1.0+git.d98399d" for a non-release build; and the commit or "unknown".
std::string Version();
std::string Commit();

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_VERSION_H_
