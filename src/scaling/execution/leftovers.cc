// SPDX-License-Identifier: Apache-2.0
#include "execution/leftovers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "execution/creation.h"

namespace nomad_harvester::scaling {
namespace {

using harvester::Claim;
using harvester::CloudInitSecret;
using harvester::VmInBrief;

// A Secret without a VM that no action names counts as garbage once it is older than this.
constexpr base::Duration kOldSecret = std::chrono::minutes(10);
constexpr std::string_view kSecretSuffix = "-cloudinit";

class Sweep {
 public:
  Sweep(const runtime::Context& context, const PoolDependencies& deps, const SweepScope& scope)
      : context_(context), deps_(deps), scope_(scope) {}

  absl::StatusOr<SweepResult> Run() {
    NH_ASSIGN_OR_RETURN(auto claims, deps_.vms.ListClaims(context_));
    NH_ASSIGN_OR_RETURN(auto secrets, deps_.vms.ListSecrets(context_));
    NH_ASSIGN_OR_RETURN(const auto vms, deps_.vms.ListAllInBrief(context_));
    for (const VmInBrief& vm : vms) {
      for (const std::string& claim : vm.claim_names) used_claims_.insert(claim);
      vms_[vm.name] = &vm;
    }
    for (const Claim& claim : claims) HandleClaim(claim);
    const base::WallTime own_now = context_.clock().WallNow();
    const base::WallTime now = std::min(secrets.server_time.value_or(own_now), own_now);
    for (const CloudInitSecret& secret : secrets.value) HandleSecret(secret, now);
    if (!scope_.dry_run) deps_.backlog.retries.ConfirmAccepted(began_, /*of_sweep=*/true);
    return result_;
  }

 private:
  // The VM for which a claim was made, if the plugin created it.
  std::optional<std::string> VmOfClaim(const Claim& claim) const {
    if (const auto seen = scope_.seen_claims.find(claim.name); seen != scope_.seen_claims.end()) {
      return seen->second;
    }
    if (claim.pool != deps_.key.pool) return std::nullopt;
    const std::size_t disk = claim.name.rfind("-disk-");
    if (disk == std::string::npos || disk == 0) return std::nullopt;
    std::string name = claim.name.substr(0, disk);
    if (!harvester::IsClaimNameOf(claim.name, name)) return std::nullopt;
    return name;
  }

  // Uses GET by name, because the list may have been read before the VM was created.
  bool IsGone(const std::string& vm) {
    const auto found = gone_.find(vm);
    if (found != gone_.end()) return found->second;
    const auto read = deps_.vms.Get(context_, vm);
    const bool gone = kube::IsNotFound(read.status());
    return gone_[vm] = gone;
  }

  // Leftovers of an ordinary removal are expected: Harvester and the garbage collector are just
  // slower.
  log::Level LevelFor(const std::string& vm) const {
    return scope_.deleted.contains(vm) ? log::Level::kDebug : log::Level::kInfo;
  }

  void HandleClaim(const Claim& claim) {
    const std::optional<std::string> vm = VmOfClaim(claim);
    if (!vm.has_value() || used_claims_.contains(claim.name)) return;
    if (vms_.contains(*vm) || !IsGone(*vm)) return;
    const Retries::Key key(kDeleteClaim, claim.name);
    if (!claim.terminating) {
      Do(key, ReconcileEvent::Kind::kDeleteClaim, *vm, [&] {
        deps_.logger.Log(LevelFor(*vm), "Deleting a leftover volume",
                         {{"vm", *vm}, {"pvc", claim.name}});
        return deps_.vms.DeleteClaim(context_, claim);
      });
    }
    AddLeft(*vm, key, "volume " + claim.name + (claim.terminating ? " (being deleted)" : ""));
  }

  void HandleSecret(const CloudInitSecret& secret, base::WallTime now) {
    if (secret.pool != deps_.key.pool || !secret.name.ends_with(kSecretSuffix)) return;
    const std::string vm = secret.name.substr(0, secret.name.size() - kSecretSuffix.size());
    const auto found = vms_.find(vm);
    if (found != vms_.end()) {
      if (secret.owner_uid.empty() && found->second->action_id == secret.action_id &&
          !found->second->terminating) {
        const Retries::Key key(kSetSecretOwner, secret.name);
        Do(key, ReconcileEvent::Kind::kSetSecretOwner, vm, [&] {
          return deps_.vms.SetSecretOwner(context_, IdentityFor(vm, secret.action_id),
                                          found->second->uid);
        });
        const absl::Status trouble = deps_.backlog.retries.LastOf(key);
        if (!trouble.ok()) result_.unowned = trouble;
      }
      return;
    }
    const bool garbage = !secret.owner_uid.empty() || scope_.named_by_action.contains(vm) ||
                         scope_.deleted.contains(vm) || now - secret.created_at > kOldSecret;
    if (!garbage || !IsGone(vm)) return;
    const Retries::Key key(kDeleteSecret, secret.name);
    if (scope_.unanswered.contains(vm)) return AddLeft(vm, key, "Secret " + secret.name);
    Do(key, ReconcileEvent::Kind::kDeleteSecret, vm, [&] {
      deps_.logger.Log(LevelFor(vm), "Deleting a leftover Secret",
                       {{"vm", vm}, {"secret", secret.name}});
      return deps_.vms.DeleteSecret(context_, secret);
    });
    AddLeft(vm, key, "Secret " + secret.name);
  }

  // Calls `act`, except in a dry run or before its next attempt, and reports the event.
  template <typename Act>
  void Do(const Retries::Key& key, ReconcileEvent::Kind kind, const std::string& vm, Act act) {
    const base::MonoTime now = context_.clock().Now();
    const bool ineffective = !scope_.dry_run && deps_.backlog.retries.WasAccepted(key, began_);
    if (!scope_.dry_run && !ineffective && !deps_.backlog.retries.MayTry(key, now)) return;
    const Effect effect = scope_.dry_run ? Effect{}
                          : ineffective  ? WithoutEffect()
                                         : EffectOf(act());
    const bool should_log = deps_.backlog.retries.Record(key, effect, now);
    if (should_log || effect.status.ok()) {
      deps_.Notify({.kind = kind, .vm = vm, .object = key.object, .outcome = effect.status});
    }
    if (!should_log || effect.status.ok()) return;
    deps_.logger.Warn("Could not clean up after a VM; trying again later",
                      {{"vm", vm}, {"object", key.object}, {"error", effect.status}});
  }

  void AddLeft(const std::string& vm, const Retries::Key& key, const std::string& what) {
    AddLeftover(vm, what, deps_.backlog.retries, key, &result_.left);
  }

  const runtime::Context& context_;
  const PoolDependencies& deps_;
  const SweepScope& scope_;
  const base::MonoTime began_ = context_.clock().Now();
  // Valid while Run holds the VM list.
  std::map<std::string_view, const VmInBrief*> vms_;
  std::set<std::string_view> used_claims_;
  std::map<std::string, bool> gone_;
  SweepResult result_;
};

}  // namespace

absl::StatusOr<SweepResult> SweepLeftovers(const runtime::Context& context,
                                           const PoolDependencies& deps, const SweepScope& scope) {
  return Sweep(context, deps, scope).Run();
}

}  // namespace nomad_harvester::scaling
