// SPDX-License-Identifier: Apache-2.0
// Making VMs: everything that is checked first, and then the three writes of each.
#ifndef NOMAD_HARVESTER_SCALING_CREATION_H_
#define NOMAD_HARVESTER_SCALING_CREATION_H_

#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/scaling/plan.h"

#include "absl/status/statusor.h"
#include "pool_dependencies.h"

namespace nomad_harvester::scaling {

// What all creations of one action share.
struct CreationPlan {
  harvester::VmSpec vm_spec;
  std::string user_data;
  harvester::TemplateVariables variables;
  std::vector<std::string> public_keys;
};

// Reads image, networks and key pairs, renders the user data once with sample values and lets the
// API server admit one VM without storing it. Only reads (rule C2). Errors name the policy's key.
absl::StatusOr<CreationPlan> PrepareCreation(const runtime::Context& context,
                                             const PoolDependencies& deps,
                                             const config::PoolPolicy& policy,
                                             std::uint64_t nomad_index,
                                             const std::string& policy_id);

// All that tells one VM from another follows from its name and action: a repetition after a lost
// reply, by this process or the next, asks for the very same objects.
harvester::VmIdentity IdentityFor(const std::string& name, const std::string& action_id);

// "<prefix>-<eight random characters>".
std::string NewVmName(const config::PoolPolicy& policy, runtime::Random& random);

// Removes the Secret that an earlier action made under this name, whose VM never came to be: what
// is in it may be out of date (rule C10).
absl::Status ClearLeftoverSecret(const runtime::Context& context, const PoolDependencies& deps,
                                 const std::string& vm);

// Secret, VM, owner of the Secret. Blocks for the requests. An error of the first two means that
// there may be no VM: if the outcome is unknown (UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED) it may
// yet appear. A Secret that stays without its owner, `owned` says why, is mended by a sweep.
absl::Status CreateVm(const runtime::Context& context, const PoolDependencies& deps,
                      const CreationPlan& plan, const PlannedCreation& creation,
                      absl::Status* owned);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CREATION_H_
