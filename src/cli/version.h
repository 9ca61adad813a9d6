// SPDX-License-Identifier: Apache-2.0
// The versions that this executable was built from.
#ifndef NOMAD_HARVESTER_CLI_VERSION_H_
#define NOMAD_HARVESTER_CLI_VERSION_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::cli {

// One line each: version, commit, and the libraries with the versions that are linked.
std::string VersionText();

// The same for programs: `version`, `commit`, `linked` ("static" or "shared"), and of each library
// `source`, `version` and `package`.
nlohmann::ordered_json VersionDocument();

// "0.1.0", or "0.1.0+git.d98399d" of a build that is not the release, and the commit or "unknown".
std::string Version();
std::string Commit();

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_VERSION_H_
