// SPDX-License-Identifier: Apache-2.0
// The rights in the namespace of the VMs without which a Scale refuses to begin (rule C2), and the
// one to act without a Lease (rule C11). Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_RIGHTS_H_
#define NOMAD_HARVESTER_SCALING_RIGHTS_H_

#include <span>
#include <string>
#include <vector>

#include "nomad_harvester/kube/access.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

struct Right {
  const char* verb;
  const char* group;  // "" is the core group
  const char* resource;
};

// Those of cleaning up included. What is optional, or needed of the instances of a node that is
// down, is not here: its refusal costs what it concerns.
std::span<const Right> CreationRights();
std::span<const Right> RemovalRights();

// "patch virtualmachines.kubevirt.io".
std::string RightText(const Right& right);

// Which of `rights` the token does not have in `ns`, by its rules; where those are incomplete, asks
// for each right alone, which blocks. Errors: kube::IsAllowed's.
absl::StatusOr<std::vector<Right>> MissingRights(const runtime::Context& context,
                                                 const kube::KubeClient& client,
                                                 const kube::AccessRules& rules,
                                                 const std::string& ns,
                                                 std::span<const Right> rights);

// Asks the API server's rights review whether the token has no right to what was `refused` with a
// 403: a request for the pool's Lease. OK: it has none. Else the error says why that is not so, or
// not known.
absl::Status ReviewDeniesLease(const runtime::Context& context, const kube::KubeClient& client,
                               const PoolKey& key, const absl::Status& refused);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RIGHTS_H_
