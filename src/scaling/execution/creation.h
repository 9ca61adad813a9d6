// SPDX-License-Identifier: Apache-2.0
// Creates VMs: the plan that all VMs of an action share, its checks, and three writes for each VM.
// The last write, the owner of the VM's Secret, may wait until all VMs boot.
#ifndef NOMAD_HARVESTER_SCALING_CREATION_H_
#define NOMAD_HARVESTER_SCALING_CREATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/scaling/drift.h"
#include "nomad_harvester/scaling/plan.h"

#include "absl/status/statusor.h"
#include "execution/creation_sources.h"
#include "execution/pool_dependencies.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {

// The default lifetime of Nomad's introduction tokens (hashicorp/nomad:nomad/structs/node.go,
// ClientIntroductionConfig). Cloning a large image may take most of it; a VM that waits longer gets
// a new token (StepKind::kRenewToken).
inline constexpr base::Duration kIntroTokenFor = std::chrono::minutes(30);

// A template of the policy as it is written, and the key that gave it.
struct TemplateSource {
  std::string key;
  std::string text;
};

// What all creations of one action share.
struct CreationPlan {
  harvester::VmSpec vm_spec;
  TemplateSource user_data;
  TemplateSource network_data;  // used if vm_spec.has_network_data
  harvester::TemplateVariables variables;
  std::vector<std::string> public_keys;
  // True if each VM gets an introduction token. Without one, the variable's text is empty.
  bool halted = false;  // the VMs are created Halted (rule R8)
  bool intro_tokens = false;
  // What is not taken over from the template; for one warning per action.
  std::vector<std::string> template_notes;
  // "storage class X", "priority class Y": classes that the token may not read, so that nobody
  // knows whether they exist.
  std::vector<std::string> unread_classes;
};

// Renders the templates once with sample values. Sends no request. An error names all of the
// policy's keys whose sources are missing.
absl::StatusOr<CreationPlan> PlanCreation(const PoolDependencies& deps,
                                          const config::PoolPolicy& policy,
                                          const CreationSources& sources, std::uint64_t nomad_index,
                                          const std::string& policy_id);
// What a new VM would be made of. Blocks for the requests of ReadSources.
absl::StatusOr<CurrentTemplate> ReadCurrentTemplate(const runtime::Context& context,
                                                    const PoolDependencies& deps,
                                                    const config::PoolPolicy& policy);
// The same into `current`, to know drifted VMs by it. If it cannot be read, which is logged as
// WARN, `current` stays as it is.
void UpdateCurrentTemplate(const runtime::Context& context, const PoolDependencies& deps,
                           const config::PoolPolicy& policy, CurrentTemplate* current);
// Sets plan->intro_tokens if the policy wants introduction tokens and Nomad gives them. Finds out
// by making a token that is valid for one second, which needs a context with the write permit. An
// error names the key and refuses the action: the policy requires tokens that this Nomad does not
// have, or the request failed.
absl::Status CheckIntroTokens(const runtime::Context& context, const PoolDependencies& deps,
                              const config::PoolPolicy& policy, CreationPlan* plan);
// A token for one VM. `now`: the API server's time.
absl::StatusOr<harvester::IntroToken> MakeIntroToken(const runtime::Context& context,
                                                     const PoolDependencies& deps,
                                                     const std::string& vm,
                                                     const std::optional<std::string>& node_pool,
                                                     base::WallTime now);

// The time at which half of a token's time is over, but no earlier than in half a minute.
base::WallTime TokenIsLookedAfterAt(base::WallTime made, base::WallTime expires);

// Sends one VM to the API server as a dry run, to learn whether it would be refused (rule C2).
absl::Status DryRunCreation(const runtime::Context& context, const PoolDependencies& deps,
                            const config::PoolPolicy& policy, const CreationPlan& plan);

// A VM's identity is derived from its name and action, so that a repetition after a lost reply, by
// this process or the next, requests the same objects.
harvester::VmIdentity IdentityFor(const std::string& name, const std::string& action_id);

// "<prefix>-<eight random characters>".
std::string NewVmName(const config::PoolPolicy& policy, runtime::Random& random);

// Deletes the Secret that an earlier action created under this name and whose VM was never created:
// its content may be outdated (rule C10).
absl::Status ClearLeftoverSecret(const runtime::Context& context, const PoolDependencies& deps,
                                 const std::string& vm);

// The two objects of one VM, as they are sent. Without a token, the Secret has a placeholder where
// the templates use one. Errors name the policy's keys.
struct VmObjects {
  nlohmann::json secret;
  nlohmann::json vm;
};
absl::StatusOr<VmObjects> ComposeVm(const CreationPlan& plan, const harvester::VmIdentity& identity,
                                    harvester::IntroToken token = {});

struct CreatedVm {
  harvester::VmIdentity identity;
  std::string uid;
  harvester::CloudInitSecret secret;
};
// Makes an introduction token, if the plan has them, and creates the Secret and then the VM. Blocks
// for the requests. `now`: the API server's time. After an error there may be no VM: if the outcome
// is unknown (UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED) it may still appear.
absl::StatusOr<CreatedVm> CreateVm(const runtime::Context& context, const PoolDependencies& deps,
                                   const CreationPlan& plan, const PlannedCreation& creation,
                                   base::WallTime now);
// The same for action `action_id`, in the pool of `snapshot`: first removes what an earlier action
// left under the name, and tells of the new VM by an Event and the metrics.
absl::StatusOr<CreatedVm> MakeVm(const runtime::Context& context, const PoolDependencies& deps,
                                 const CreationPlan& plan, const PlannedCreation& creation,
                                 const std::string& action_id, const PoolSnapshot& snapshot);
// Starts a VM that was created Halted (rule R8), from now on with a join deadline.
absl::Status StartVm(const runtime::Context& context, const PoolDependencies& deps,
                     const harvester::VirtualMachine& vm, base::Duration join_timeout,
                     base::WallTime now);
// Lets a VM count by itself that was to take the place of another one (rule R4). One that was
// created Halted is started, unless it is about to be removed.
absl::Status EndReplacement(const runtime::Context& context, const PoolDependencies& deps,
                            const harvester::VirtualMachine& vm, bool is_removed,
                            base::Duration join_timeout, base::WallTime now);
// Sets the VM as the Secret's owner. After an error, which is logged, a sweep sets it later.
absl::Status OwnSecret(const runtime::Context& context, const PoolDependencies& deps,
                       const CreatedVm& created);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CREATION_H_
