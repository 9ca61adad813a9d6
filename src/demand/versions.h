// SPDX-License-Identifier: Apache-2.0
// Versions and constraints on them, with the semantics of hashicorp/go-version:version.go and
// constraint.go, and of hashicorp/nomad:helper/constraints/semver.
#ifndef NOMAD_HARVESTER_SRC_DEMAND_VERSIONS_H_
#define NOMAD_HARVESTER_SRC_DEMAND_VERSIONS_H_

#include <string_view>

namespace nomad_harvester::demand {

enum class VersionRules {
  kVersion,  // a prerelease meets only constraints with a prerelease of the same version; "~>"
  kSemver,   // the order of Semver 2.0; no "~>"
};

// True if the version meets each constraint of the list, such as ">= 1.2, < 2.0". False for texts
// that are none.
bool MeetsVersions(std::string_view version, std::string_view constraints, VersionRules rules);

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_SRC_DEMAND_VERSIONS_H_
