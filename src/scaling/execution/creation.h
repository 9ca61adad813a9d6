// SPDX-License-Identifier: Apache-2.0
// Creates VMs: the plan shared by all VMs of an action, its checks, and three writes per VM. The
// last write, setting the owner of the VM's Secret, may wait until all VMs boot.
#ifndef NOMAD_HARVESTER_SCALING_CREATION_H_
#define NOMAD_HARVESTER_SCALING_CREATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/harvester/host_room.h"
#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/scaling/drift.h"
#include "nomad_harvester/scaling/plan.h"

#include "absl/status/statusor.h"
#include "execution/creation_sources.h"
#include "execution/pool_dependencies.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

// The default lifetime of Nomad's introduction tokens (hashicorp/nomad:nomad/structs/node.go,
// ClientIntroductionConfig). Cloning a large image may take most of it; a VM that waits longer gets
// a new token (StepKind::kRenewToken).
inline constexpr base::Duration kIntroTokenFor = std::chrono::minutes(30);

// A template of the policy as written, and the key that defined it.
struct TemplateSource {
  std::string key;
  std::string text;
};

// Data shared by all creations of one action.
struct CreationPlan {
  harvester::VmSpec vm_spec;
  TemplateSource user_data;
  TemplateSource network_data;  // used if vm_spec.has_network_data
  harvester::TemplateVariables variables;
  std::vector<base::Secret> lines;  // as in CloudInit, of the sample
  std::vector<std::string> public_keys;
  bool halted = false;  // the VMs are created Halted (rule R8)
  // True if each VM gets an introduction token. Without one, the variable's text is empty.
  bool intro_tokens = false;
  // Parts of the template that are not adopted; for one warning per action.
  std::vector<std::string> template_notes;
  // Classes that the token lacks the right to read, so that their existence is unknown: "storage
  // class X", "priority class Y".
  std::vector<std::string> unread_classes;
};

// Renders the templates once with sample values. Sends no request. An error names all policy keys
// with missing sources.
absl::StatusOr<CreationPlan> PlanCreation(const PoolDependencies& deps,
                                          const config::PoolPolicy& policy,
                                          const CreationSources& sources, std::uint64_t nomad_index,
                                          const std::string& policy_id);
// Returns the template of a new VM. Blocks for the requests of ReadSources.
absl::StatusOr<CurrentTemplate> ReadCurrentTemplate(const runtime::Context& context,
                                                    const PoolDependencies& deps,
                                                    const config::PoolPolicy& policy);
// The same into the backlog, to know drifted VMs by it. If it cannot be read, which is logged as
// WARN, the known one stays.
void UpdateCurrentTemplate(const runtime::Context& context, const PoolDependencies& deps,
                           const config::PoolPolicy& policy);
// Sets plan->intro_tokens if the policy wants introduction tokens and Nomad gives them. Finds out
// by making a token that is valid for one second, which needs a context with the write permit. An
// error names the key and refuses the action: the policy requires tokens that this Nomad does not
// have, or the request failed.
absl::Status CheckIntroTokens(const runtime::Context& context, const PoolDependencies& deps,
                              const config::PoolPolicy& policy, CreationPlan* plan);
// Makes a token for one VM. `now`: the API server's time.
absl::StatusOr<harvester::IntroToken> MakeIntroToken(const runtime::Context& context,
                                                     const PoolDependencies& deps,
                                                     const std::string& vm,
                                                     const std::optional<std::string>& node_pool,
                                                     base::WallTime now);

// Returns half of a token's lifetime, but at least half a minute.
base::Duration TokenCheckAfter(base::Duration lifetime);

// Sends one VM to the API server as a dry run, to learn whether it would be refused (rule C2).
// Returns what it would ask of its host; nullopt: the reply does not say it.
absl::StatusOr<std::optional<harvester::VmNeed>> DryRunCreation(const runtime::Context& context,
                                                                const PoolDependencies& deps,
                                                                const config::PoolPolicy& policy,
                                                                const CreationPlan& plan);

// Derives a VM's identity from its name and action, so that a repetition after a lost reply, by
// this process or the next, requests the same objects.
harvester::VmIdentity IdentityFor(const std::string& name, const std::string& action_id);

// Adds the variables that differ from VM to VM.
harvester::TemplateVariables WithIdentity(harvester::TemplateVariables variables,
                                          const harvester::VmIdentity& identity);

// "<prefix>-<eight random characters>".
std::string NewVmName(const config::PoolPolicy& policy, runtime::Random& random);

// Deletes the Secret that an earlier action created under this name without creating the VM,
// because its content may be outdated (rule C10).
absl::Status ClearLeftoverSecret(const runtime::Context& context, const PoolDependencies& deps,
                                 const std::string& vm);

// The two objects of one VM, as sent. Without a token, the Secret has a placeholder where the
// templates use one. Errors name the policy's keys.
struct VmObjects;  // execution/vm_objects.h
absl::StatusOr<VmObjects> ComposeVm(const CreationPlan& plan, const harvester::VmIdentity& identity,
                                    harvester::IntroToken token = {});

struct CreatedVm {
  harvester::VmIdentity identity;
  std::string uid;
  harvester::CloudInitSecret secret;
  // The VM, if it existed already and was made by a replacement that was interrupted.
  std::optional<harvester::VirtualMachine> replacement{};
};
// Makes an introduction token, if the plan has them, then creates the Secret and the VM. Blocks for
// the requests. `now`: the API server's time. After an error there may be no VM; if the outcome is
// unknown (UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED) it may still appear.
absl::StatusOr<CreatedVm> CreateVm(const runtime::Context& context, const PoolDependencies& deps,
                                   const CreationPlan& plan, const PlannedCreation& creation,
                                   base::WallTime now);
// Starts a VM that was created Halted (rule R8), from now on with a join deadline.
absl::Status StartVm(const runtime::Context& context, const PoolDependencies& deps,
                     const harvester::VirtualMachine& vm, base::Duration join_timeout,
                     base::WallTime now);
// Makes a replacement VM count on its own (rule R4). If it was created Halted it is started, unless
// it is about to be removed.
absl::Status EndReplacement(const runtime::Context& context, const PoolDependencies& deps,
                            const harvester::VirtualMachine& vm, bool is_removed,
                            base::Duration join_timeout, base::WallTime now);
// Sets the VM as the Secret's owner. An error is logged, and a sweep sets the owner later.
absl::Status OwnSecret(const runtime::Context& context, const PoolDependencies& deps,
                       const CreatedVm& created);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CREATION_H_
