// SPDX-License-Identifier: Apache-2.0
//
// Renders the objects of one VM, at an operator's request.

#include <memory>
#include <string>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/maintenance.h"
#include "nomad_harvester/scaling/rendering.h"

#include "commands/command_run.h"
#include "execution/creation.h"
#include "execution/read_only.h"
#include "execution/vm_objects.h"

namespace nomad_harvester::scaling {
namespace {

// Secrets would not be recognised within a longer base64 text, so the values are decoded first.
nlohmann::json WithoutSecretsIn(nlohmann::json secret) {
  for (nlohmann::json& value : secret["data"]) {
    const auto text = base::Base64Decode(value.get<std::string>());
    if (text.ok()) value = base::Base64Encode(base::WithoutSecrets(*text));
  }
  return secret;
}

// Also hides values shorter than six bytes, which WithoutSecrets ignores.
void HideEnvironment(CreationPlan* plan) {
  for (auto& [name, value] : plan->variables) {
    if (name.starts_with("env.")) value = "REDACTED";
  }
}

}  // namespace

absl::StatusOr<Rendering> Maintenance::Render(const runtime::Context& caller,
                                              const config::PoolPolicy& policy) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  CommandRun run(options_, clients_, {.ns = policy.ns, .pool = policy.pool});
  const PoolDependencies deps = run.Deps(options_);
  const CreationSources sources = ReadSources(context, deps, policy);
  NH_RETURN_IF_ERROR(context.Check());
  NH_ASSIGN_OR_RETURN(CreationPlan plan, PlanCreation(deps, policy, sources, 0, ""));
  plan.lines.clear();  // they are what is shown
  HideEnvironment(&plan);
  const std::string name = NewVmName(policy, *options_.random);
  harvester::VmIdentity identity = IdentityFor(name, NewActionId(*options_.random));
  if (!policy.zones.empty() && policy.evenly_split_zones) identity.zone = policy.zones.front();
  NH_ASSIGN_OR_RETURN(VmObjects objects, ComposeVm(plan, identity));
  objects.lines.clear();
  return Rendering{.vm = std::move(objects.vm),
                   .secret = WithoutSecretsIn(std::move(objects.secret)),
                   .lease = NewLease(run.key, options_.holder, options_.clock->WallNow()),
                   .intro_token = policy.intro_token != config::IntroToken::kOff};
}

}  // namespace nomad_harvester::scaling
