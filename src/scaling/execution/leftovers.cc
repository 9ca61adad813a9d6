// SPDX-License-Identifier: Apache-2.0
#include "execution/leftovers.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "execution/creation.h"

namespace nomad_harvester::scaling {
namespace {

using harvester::Claim;
using harvester::CloudInitSecret;
using harvester::VmInBrief;

// A Secret without a VM that no action names counts as garbage once it is older than this.
constexpr base::Duration kOldSecret = std::chrono::minutes(10);
constexpr char kListLeftovers[] = "list-leftovers";
// How long the background waits for a VM's leftovers before it retries in rounds.
constexpr base::Duration kLeftoversTimeout = std::chrono::minutes(4);
constexpr std::string_view kSecretSuffix = "-cloudinit";

class Sweep {
 public:
  Sweep(const runtime::Context& context, const PoolDependencies& deps, bool dry_run)
      : context_(context), deps_(deps), dry_run_(dry_run), action_(deps.lease.record().action) {}

  absl::StatusOr<SweepResult> Run() {
    std::erase_if(deps_.backlog.unanswered,
                  [&](const auto& entry) { return began_ - entry.second >= kLeaseDuration; });
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
    if (!dry_run_) deps_.backlog.retries.ConfirmAccepted(began_, /*of_sweep=*/true);
    return result_;
  }

 private:
  // The VM for which a claim was made, if the plugin created it.
  std::optional<std::string> VmOfClaim(const Claim& claim) const {
    const auto& seen_claims = deps_.backlog.seen_claims;
    if (const auto seen = seen_claims.find(claim.name); seen != seen_claims.end()) {
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

  // True if this process deleted the VM, or if the Lease names it and it is gone.
  bool IsDeleted(const std::string& vm) const { return deps_.backlog.gone_since.contains(vm); }

  // A Secret with such a name but no VM is garbage at once: the sweep runs beside no Scale.
  bool IsNamedByAction(const std::string& vm) const {
    return action_.has_value() && (action_->names.contains(vm) || action_->create.contains(vm));
  }

  // Leftovers of an ordinary removal are expected: Harvester and the garbage collector are just
  // slower.
  log::Level LevelFor(const std::string& vm) const {
    return IsDeleted(vm) ? log::Level::kDebug : log::Level::kInfo;
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
    const bool garbage = !secret.owner_uid.empty() || IsNamedByAction(vm) || IsDeleted(vm) ||
                         now - secret.created_at > kOldSecret;
    if (!garbage || !IsGone(vm)) return;
    const Retries::Key key(kDeleteSecret, secret.name);
    // A late request may still need it.
    if (deps_.backlog.unanswered.contains(vm)) return AddLeft(vm, key, "Secret " + secret.name);
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
    const bool ineffective = !dry_run_ && deps_.backlog.retries.WasAccepted(key, began_);
    if (!dry_run_ && !ineffective && !deps_.backlog.retries.MayTry(key, now)) return;
    const Effect effect = dry_run_ ? Effect{} : ineffective ? WithoutEffect() : EffectOf(act());
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
  const bool dry_run_;
  const std::optional<harvester::LeaseAction> action_;
  const base::MonoTime began_ = context_.clock().Now();
  // Valid while Run holds the VM list.
  std::map<std::string_view, const VmInBrief*> vms_;
  std::set<std::string_view> used_claims_;
  std::map<std::string, bool> gone_;
  SweepResult result_;
};

}  // namespace

absl::StatusOr<SweepResult> SweepLeftovers(const runtime::Context& context,
                                           const PoolDependencies& deps, bool dry_run) {
  return Sweep(context, deps, dry_run).Run();
}

void LogReplaced(const PoolDependencies& deps, const std::string& old, const std::string& by) {
  deps.logger.Info("Replaced VM " + old + " by " + by);
}

void DeletedVms::Observe(const Decisions& decisions, base::MonoTime now) {
  std::erase_if(deps_.backlog.deletions, [&](const auto& deletion) {
    const VmView* view = decisions.snapshot().seen->FindVm(deletion.first);
    const bool stands = view != nullptr && !harvester::IsTerminating(view->vm);
    if (stands) return !view->vm->has_mark;
    deps_.backlog.unrecorded.removed |= deletion.second.was_ready;
    deps_.backlog.removed_last = deletion.second.action;
    return true;
  });
  for (const auto& [view, step] : decisions.all()) {
    if (!view->member) continue;
    if (!view->vm->has_mark) {
      const std::string& name = view->vm->name;
      std::erase_if(deps_.backlog.seen_claims,
                    [&](const auto& seen) { return seen.second == name; });
      continue;
    }
    const std::optional<harvester::Mark>& mark = view->vm->mark;
    deps_.backlog.marked[view->vm->name] = mark.has_value() ? mark->action : "";
    for (std::string& claim : harvester::ClaimsThatGoWith(view->vm)) {
      deps_.backlog.seen_claims.insert_or_assign(std::move(claim), view->vm->name);
    }
  }
  const auto gone = [&](const std::string& vm) {
    deps_.backlog.gone_since.try_emplace(vm, now);
    deps_.backlog.leftovers.try_emplace(vm, Leftover{.what = "volumes and Secret"});
  };
  std::erase_if(deps_.backlog.marked, [&](const auto& marked) {
    const std::string& vm = marked.first;
    const Decisions::Entry* entry = decisions.Find(vm);
    if (entry == nullptr) {
      gone(vm);
      deps_.logger.Info("Removed a VM", {{"vm", vm}, {"action_id", marked.second}});
      for (const VmView* by : decisions.snapshot().vms()) {
        const bool replaces = by->vm->replaces.has_value() && by->vm->replaces->vm == vm;
        if (replaces && harvester::WasReady(by->vm)) LogReplaced(deps_, vm, by->vm->name);
      }
    }
    return entry == nullptr || !entry->view->vm->has_mark;
  });
  for (const OrphanedNode& node : decisions.to_purge()) gone(std::string(node.mark.vm));
  const std::optional<harvester::LeaseAction>& action = decisions.snapshot().action;
  if (!action.has_value()) return;
  for (const std::string& vm : action->names) {
    if (!action->create.contains(vm) && decisions.snapshot().seen->FindVm(vm) == nullptr) gone(vm);
  }
}

// Adds the nodes of gone VMs that wait to be purged.
void DeletedVms::AddNodesToPurge(const PoolSnapshot& snapshot) {
  for (const OrphanedNode& gone : snapshot.orphaned_nodes()) {
    const std::string vm(gone.mark.vm);
    if (!AwaitsPurge(gone, snapshot) || !deps_.backlog.gone_since.contains(vm)) continue;
    AddLeftover(vm, "Nomad node " + gone.node->id, deps_.backlog.retries,
                {StepName(StepKind::kPurge), gone.node->id}, &deps_.backlog.leftovers);
  }
}

Effect DeletedVms::Sweep(const runtime::Context& context, const PoolSnapshot& snapshot) {
  PoolBacklog& backlog = deps_.backlog;
  const Retries::Key key(kListLeftovers, deps_.key.pool);
  const base::MonoTime now = deps_.clock.Now();
  if (!backlog.retries.MayTry(key, now)) {
    return {Verdict::kRefused, backlog.retries.LastOf(key)};
  }
  auto swept = SweepLeftovers(context, deps_, /*dry_run=*/false);
  Effect effect = EffectOf(swept.ok() ? absl::OkStatus() : swept.status());
  if (effect.verdict == Verdict::kCancelled) return effect;
  const bool should_log = backlog.retries.Record(key, effect, now);
  if (!swept.ok()) {
    if (should_log) {
      deps_.logger.Warn("Could not look for leftovers; trying again later",
                        {{"error", swept.status()}});
    }
    for (const auto& [vm, since] : backlog.gone_since) {
      backlog.leftovers[vm] = {.what = "volumes and Secret, which cannot be listed",
                               .in_trouble = true};
    }
    return effect;
  }
  sweep_requested_ = !swept->unowned.ok();
  backlog.leftovers = std::move(swept->left);
  AddNodesToPurge(snapshot);
  for (const auto& [vm, leftover] : backlog.leftovers) backlog.gone_since.try_emplace(vm, now);
  std::erase_if(backlog.gone_since,
                [&](const auto& entry) { return !backlog.leftovers.contains(entry.first); });
  std::erase_if(backlog.seen_claims, [&](const auto& entry) {
    return !backlog.leftovers.contains(entry.second) && !backlog.marked.contains(entry.second);
  });
  if (!swept->unowned.ok()) return {Verdict::kRefused, swept->unowned};
  return effect;
}

bool DeletedVms::IsCleanUpInProgress(base::MonoTime now) const {
  const PoolBacklog& backlog = deps_.backlog;
  return std::any_of(backlog.leftovers.begin(), backlog.leftovers.end(), [&](const auto& entry) {
    const auto since = backlog.gone_since.find(entry.first);
    return !entry.second.in_trouble && since != backlog.gone_since.end() &&
           now - since->second < kLeftoversTimeout;
  });
}

}  // namespace nomad_harvester::scaling
