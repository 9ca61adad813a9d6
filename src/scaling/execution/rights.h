// SPDX-License-Identifier: Apache-2.0
// The rights in the VMs' namespace that a Scale requires before it begins (rule C2). Private to
// module scaling.
#ifndef NOMAD_HARVESTER_SCALING_RIGHTS_H_
#define NOMAD_HARVESTER_SCALING_RIGHTS_H_

#include <span>
#include <string>
#include <vector>

#include "nomad_harvester/kube/access.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

struct Right {
  const char* verb;
  const char* group;  // "" is the core group
  const char* resource;
};

// Include the rights needed for cleaning up. Exclude optional rights and those to read the instance
// of a node that is down, because their refusal affects only the features that need them.
std::span<const Right> CreationRights();
std::span<const Right> RemovalRights();

// Those that keep a pool's history (rule T3). Optional.
std::span<const Right> HistoryRights();

// "patch virtualmachines.kubevirt.io".
std::string RightText(const Right& right);

// Returns those of `rights` that the token lacks in `ns`, by its rules. If the rules are
// incomplete, asks for each missing right alone, which blocks. Returns the errors of
// kube::ReviewAccess.
absl::StatusOr<std::vector<Right>> MissingRights(const runtime::Context& context,
                                                 const kube::KubeClient& client,
                                                 const kube::AccessRules& rules,
                                                 const std::string& ns,
                                                 std::span<const Right> rights);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RIGHTS_H_
