// SPDX-License-Identifier: Apache-2.0
// Creating VMs: the preflight checks, and then three writes for each VM.
#ifndef NOMAD_HARVESTER_SCALING_CREATION_H_
#define NOMAD_HARVESTER_SCALING_CREATION_H_

#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/scaling/plan.h"

#include "absl/status/statusor.h"
#include "execution/pool_dependencies.h"

namespace nomad_harvester::scaling {

// What all creations of one action share.
struct CreationPlan {
  harvester::VmSpec vm_spec;
  std::string user_data;
  harvester::TemplateVariables variables;
  std::vector<std::string> public_keys;
};

// Reads image, networks and key pairs, renders the user data once with sample values, and sends one
// VM to the API server as a dry run. Only reads (rule C2). Errors name the policy's key.
absl::StatusOr<CreationPlan> PrepareCreation(const runtime::Context& context,
                                             const PoolDependencies& deps,
                                             const config::PoolPolicy& policy,
                                             std::uint64_t nomad_index,
                                             const std::string& policy_id);

// A VM's identity is derived from its name and action, so that a repetition after a lost reply, by
// this process or the next, requests the same objects.
harvester::VmIdentity IdentityFor(const std::string& name, const std::string& action_id);

// "<prefix>-<eight random characters>".
std::string NewVmName(const config::PoolPolicy& policy, runtime::Random& random);

// Deletes the Secret that an earlier action created under this name and whose VM was never created:
// its content may be outdated (rule C10).
absl::Status ClearLeftoverSecret(const runtime::Context& context, const PoolDependencies& deps,
                                 const std::string& vm);

// Creates the Secret and the VM, and sets the VM as the Secret's owner. Blocks for the requests.
// After an error of the first two there may be no VM: if the outcome is unknown (UNAVAILABLE,
// DEADLINE_EXCEEDED, CANCELLED) it may still appear. If the owner could not be set, `owned` has the
// error, and a sweep sets it later.
absl::Status CreateVm(const runtime::Context& context, const PoolDependencies& deps,
                      const CreationPlan& plan, const PlannedCreation& creation,
                      absl::Status* owned);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CREATION_H_
