// SPDX-License-Identifier: Apache-2.0
#include "execution/executor.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/plan.h"

#include "absl/strings/str_join.h"
#include "execution/creation.h"
#include "rules/event_text.h"

namespace nomad_harvester::scaling {
namespace {

using harvester::DrainDeadline;
using harvester::Mark;
using harvester::MarkReason;

// How much time to leave for the boot if a token's total lifetime is unknown.
constexpr base::Duration kTokenForABoot = std::chrono::minutes(15);

const Effect kNotWanted{.verdict = Verdict::kNotWanted};

DrainDeadline DeadlineOf(base::Duration deadline, base::WallTime now) {
  if (deadline == base::Duration::zero()) return {.kind = DrainDeadline::Kind::kNone};
  if (deadline < base::Duration::zero()) return {.kind = DrainDeadline::Kind::kNow};
  return {.kind = DrainDeadline::Kind::kAt, .at = now + deadline};
}

// Builds the mark according to the policy; the drain's deadline starts at `now`.
Mark MakeMark(const PoolSnapshot& snapshot, const VmView& view, base::WallTime now,
              std::string action, MarkReason reason, std::string node_id) {
  const config::PoolPolicy& policy = *snapshot.policy;
  Mark mark{.action = std::move(action), .reason = reason, .vm_uid = view.vm->uid};
  mark.node_id = std::move(node_id);
  mark.marked_at = now;
  mark.drain_deadline = DeadlineOf(policy.drain_deadline, now);
  mark.grace = policy.drain_grace;
  mark.force = policy.force_after_deadline;
  mark.ignore_system = policy.drain_ignore_system_jobs;
  mark.purge = policy.node_purge;
  mark.nodes = view.vm->nodes.value_or(NodesRecordOf(policy, snapshot.observation().region));
  return mark;
}

// OK if Nomad is still the cluster that was observed.
absl::Status CheckCluster(const runtime::Context& context, const PoolDependencies& deps,
                          const Observation& observation) {
  NH_ASSIGN_OR_RETURN(const std::string keys, deps.nodes.ReadCluster(context));
  if (IsSameCluster(keys, observation.nomad_cluster.value_or(""))) return absl::OkStatus();
  return base::Unavailable(
      "another Nomad cluster answers at this address than a moment ago: check nomad_address");
}

// Acts on one VM: the reads of its steps, and the writes.
class Act {
 public:
  Act(const runtime::Context& context, const PoolDependencies& deps, const PoolSnapshot& snapshot,
      const VmView& view)
      : context_(context), deps_(deps), seen_(snapshot, view) {}

  Effect Run(const PoolFacts* pool, const Step& step) {
    const absl::StatusOr<bool> exists = ReadAgain(step);
    if (!exists.ok()) return EffectOf(exists.status());
    if (!*exists) return kNotWanted;
    const Step wanted = StillWanted(pool, step);
    Effect effect = Write(wanted);
    if (effect.verdict != Verdict::kDone) return effect;
    deps_.PostEvents(EventsOf(wanted, seen_.view(), seen_.snapshot()));
    return effect;
  }

  Effect MarkForScaleIn(const std::string& action_id, const std::string& node_id) {
    const bool linked = seen_.node() != nullptr;
    if (linked) {
      if (const absl::Status read = ReadNode(node_id); !read.ok()) {
        Effect unread = EffectOf(read);
        unread.sent = false;
        return unread;
      }
      if (absl::Status fits = CheckVictimsNode(node_id); !fits.ok()) {
        return {.verdict = Verdict::kUnsuitable, .status = std::move(fits)};
      }
    } else if (absl::Status same = ReadOne(Read::kCluster, node_id); !same.ok()) {
      // Another Nomad may have claimed that the VM has no node.
      return EffectOf(std::move(same));
    }
    const PoolSnapshot& snapshot = seen_.snapshot();
    auto marked = WriteMark(
        MakeMark(snapshot, seen_.view(), snapshot.now(), action_id, MarkReason::kScaleIn, node_id));
    if (!marked.ok()) return EffectOf(marked.status());
    deps_.PostEvent(EventOfAction(Direction::kIn, marked->name, marked->uid, snapshot, action_id,
                                  deps_.agents_reason));
    if (linked) BeginDrain(*std::move(marked));
    return {.verdict = Verdict::kDone};
  }

 private:
  // Returns false if the VM no longer exists.
  absl::StatusOr<bool> ReadAgain(const Step& step) {
    for (const Read read : ReadsOf(step)) {
      const absl::Status outcome = ReadOne(read, step.node_id);
      if (read == Read::kVm && kube::IsNotFound(outcome)) return false;
      NH_RETURN_IF_ERROR(outcome);
    }
    return true;
  }

  absl::Status ReadOne(Read read, const std::string& node_id) {
    switch (read) {
      case Read::kNodes:
        return ReadNodes();
      case Read::kNode:
        return ReadNode(node_id);
      case Read::kCluster:
        // Without a record there is nothing to compare.
        if (seen_.view().vm->nomad_cluster.empty()) return absl::OkStatus();
        return CheckCluster(context_, deps_, seen_.snapshot().observation());
      case Read::kMarksNode:
        return ReadMarksNode();
      case Read::kAllocations:
        return ReadAllocations(node_id);
      case Read::kVm:
        return ReadVm();
      case Read::kInstance:
        return ReadInstance();
      case Read::kVmGone:
        break;  // Purge handles VMs that are gone
    }
    return absl::OkStatus();
  }

  // The list may prove that a node does not exist, so it must not be older than the VM (rule C15).
  absl::Status ReadNodes() {
    NH_ASSIGN_OR_RETURN(const auto nodes, deps_.nodes.ListNodes(context_));
    NH_RETURN_IF_ERROR(CheckListIndex(seen_.view(), seen_.snapshot().observation(), nodes.index));
    seen_.SetNodes(nodes.value);
    return absl::OkStatus();
  }

  absl::Status ReadNode(const std::string& id) {
    auto node = deps_.nodes.GetNode(context_, deps_.nomad(), id);
    if (absl::IsNotFound(node.status())) {
      seen_.SetNode(id, std::nullopt);
      return absl::OkStatus();
    }
    NH_RETURN_IF_ERROR(node);
    seen_.SetNode(id, std::move(node->value));
    return absl::OkStatus();
  }

  absl::Status ReadMarksNode() {
    const std::optional<Mark>& mark = seen_.view().vm->mark;
    seen_.SetMarksNodeGone(false);
    if (!mark.has_value() || mark->node_id.empty()) return absl::OkStatus();
    const auto node = deps_.nomad().GetNode(context_, mark->node_id);
    if (!node.ok() && !absl::IsNotFound(node.status())) return node.status();
    seen_.SetMarksNodeGone(IsGone(node.status(), seen_.view().vm));
    return absl::OkStatus();
  }

  absl::Status ReadAllocations(const std::string& node_id) {
    NH_ASSIGN_OR_RETURN(auto allocations, deps_.nomad().NodeAllocations(context_, node_id));
    seen_.SetAllocations(node_id, std::move(allocations.value));
    return absl::OkStatus();
  }

  absl::Status ReadInstance() {
    const auto instance = deps_.vms.GetInstance(context_, seen_.view().vm->name);
    if (!instance.ok() && !kube::IsNotFound(instance.status())) return instance.status();
    seen_.SetInstance(instance.ok() && harvester::IsRunning(*instance));
    return absl::OkStatus();
  }

  absl::Status ReadVm() {
    auto vm = deps_.vms.Get(context_, seen_.view().vm->name);
    NH_RETURN_IF_ERROR(vm);
    if (vm->value.uid != seen_.view().vm->uid) {
      return base::FailedPrecondition("VM " + seen_.view().vm->name +
                                      " was replaced by another one");
    }
    seen_.SetVm(std::move(vm->value));
    return absl::OkStatus();
  }

  // Decides again on the fresh facts; kNothing if the step differs from the one decided before.
  Step StillWanted(const PoolFacts* pool, const Step& step) const {
    const Recheck recheck = SpecOf(step.kind).recheck;
    if (recheck == Recheck::kNone) return step;
    Step now = Decide(FactsOf(seen_, pool));
    const bool same = recheck == Recheck::kSameRow ? now.row == step.row : now.kind == step.kind;
    return same && now.node_id == step.node_id ? now : Step{};
  }

  Effect Write(const Step& step) {
    const harvester::VirtualMachine& vm = seen_.view().vm;
    switch (step.kind) {
      case StepKind::kCancelDrain:
        return EffectOf(deps_.nomad().CancelDrain(context_, step.node_id, step.mark_eligible));
      case StepKind::kEnable:
        return EffectOf(deps_.nomad().SetEligible(context_, step.node_id, true));
      case StepKind::kRecordRolledBack:
        return Annotate({{harvester::kRolledBackAnnotation, step.value}});
      case StepKind::kRecordCluster:
        if (step.value.empty()) return Annotate(WithCluster({}));
        return Annotate(WithCluster({{harvester::kNodeIdAnnotation, step.value}}));
      case StepKind::kMarkBroken:
        return MarkWith(MarkReason::kBroken, step);
      case StepKind::kMarkUnhealthy:
        return MarkWith(MarkReason::kUnhealthy, step);
      case StepKind::kMarkReplaced:
        return MarkWith(MarkReason::kReplace, step);
      case StepKind::kKeepReplaced:
        return Annotate({{harvester::kRemovalUndoneAnnotation, Undone(step.reason)}});
      case StepKind::kRecordJoin:
        return RecordJoin(step);
      case StepKind::kRecordReady:
        return Annotate({{harvester::kReadyAtAnnotation, base::FormatRfc3339(seen_.now())}});
      case StepKind::kStart:
        return EffectOf(
            StartVm(context_, deps_, vm, seen_.snapshot().policy->join_timeout, seen_.now()));
      case StepKind::kRenewToken:
        return RenewToken();
      case StepKind::kRollBack:
        return RollBack(step);
      case StepKind::kStartDrain:
        return StartDrain(step);
      case StepKind::kDelete:
        return Delete(step);
      case StepKind::kHalt:
        return EffectOf(
            deps_.vms.Annotate(context_, vm.name, vm.resource_version, {}, harvester::kHalted)
                .status());
      case StepKind::kNothing:
      case StepKind::kWait:
      case StepKind::kReport:
      case StepKind::kPurge:
      case StepKind::kPublishHost:    // Publish
      case StepKind::kUnpublishHost:  // likewise
        break;
    }
    return kNotWanted;
  }

  Effect RecordJoin(const Step& step) {
    const std::string now = base::FormatRfc3339(seen_.now());
    return Annotate(WithCluster(
        {{harvester::kNodeIdAnnotation, step.node_id},
         {harvester::kJoinedAtAnnotation, now},
         {harvester::kReadyAtAnnotation, step.node_is_ready ? now : harvester::kNotReadyYet}}));
  }

  // Also deletes the volumes that the VM's spec currently names (rule C4). Harvester's annotation
  // names the same ones, unless volumes were restored or detached. Harvester would wait forever for
  // a volume of another VM.
  Effect Delete(const Step& step) {
    const harvester::VirtualMachine& vm = seen_.view().vm;
    const std::set<std::string>& shared = seen_.snapshot().seen->shared_claims();
    std::vector<std::string> claims = harvester::ClaimsThatGoWith(vm);
    std::erase_if(claims, [&](const std::string& claim) { return shared.contains(claim); });
    std::string version = vm.resource_version;
    if (std::set(claims.begin(), claims.end()) !=
        std::set(vm.removed_claims.begin(), vm.removed_claims.end())) {
      const auto named =
          deps_.vms.Annotate(context_, vm.name, version,
                             {{harvester::kRemovedClaimsAnnotation, absl::StrJoin(claims, ",")}});
      if (!named.ok()) return EffectOf(named.status());
      version = named->resource_version;
    }
    Effect deleted = EffectOf(deps_.vms.DeleteVm(context_, vm.name, vm.uid, version));
    if (deleted.verdict != Verdict::kDone) return deleted;
    WarnOfVolumesThatStay(vm, claims);
    if (step.row == Row::kMarkedLateForced) {
      const std::string& lost = seen_.view().drain_held_by;
      deps_.logger.Warn("Deleted a VM although its drain had not ended",
                        {{"vm", vm.name},
                         {"node_id", step.node_id},
                         {"why", step.reason},
                         {"lost", lost.empty() ? "nothing that is known" : lost}});
    }
    return deleted;
  }

  void WarnOfVolumesThatStay(const harvester::VirtualMachine& vm,
                             const std::vector<std::string>& going) const {
    std::set<std::string> staying(vm.claim_names.begin(), vm.claim_names.end());
    for (const std::string& claim : going) staying.erase(claim);
    for (const std::string& claim : seen_.snapshot().seen->shared_claims()) staying.erase(claim);
    if (staying.empty()) return;
    deps_.logger.Warn("Deleted a VM; volumes attached later were kept",
                      {{"vm", vm.name}, {"volumes", absl::StrJoin(staying, ", ")}});
  }

  // The loop knows when a token made by this process expires. For other tokens, the Secret tells.
  Effect RenewToken() {
    const harvester::VirtualMachine& vm = seen_.view().vm;
    const auto secret = deps_.vms.GetSecret(context_, harvester::SecretName(vm.name));
    if (!secret.ok() && !kube::IsNotFound(secret.status())) return EffectOf(secret.status());
    const base::MonoTime now = deps_.clock.Now();
    if (!secret.ok() || !secret->token_expires.has_value()) {
      deps_.memory.RecordTokenOf(vm.uid, base::MonoTime::max());
      return kNotWanted;
    }
    const bool known = seen_.view().token_check_in.has_value();
    // No token lives longer than it was made for, whatever clock wrote when it ends.
    const base::Duration left = *secret->token_expires - seen_.now();
    if (!known && left > kTokenForABoot && left <= kIntroTokenFor) {
      deps_.memory.RecordTokenOf(vm.uid, now + (left - kTokenForABoot));
      return kNotWanted;
    }
    const auto token =
        MakeIntroToken(context_, deps_, vm.name,
                       vm.nodes.has_value() ? vm.nodes->node_pool : std::nullopt, seen_.now());
    if (!token.ok()) return EffectOf(token.status());
    absl::Status replaced = deps_.vms.ReplaceIntroToken(context_, *secret, *token);
    if (replaced.ok()) {
      deps_.memory.RecordTokenOf(vm.uid, now + TokenCheckAfter(token->expires - seen_.now()));
    }
    return EffectOf(std::move(replaced));
  }

  Effect RollBack(const Step& step) {
    return Annotate({{harvester::kScaleInAnnotation, std::nullopt},
                     {harvester::kRemovalUndoneAnnotation, Undone(step.reason)}});
  }

  // Builds the annotation removal-undone. It must apply to this VM's replacement, so its time is
  // never before the replacement's creation, even if the API server's clock was set back meanwhile.
  std::string Undone(const std::string& why) const {
    base::WallTime at = seen_.now();
    for (const VmView* view : seen_.snapshot().vms()) {
      const auto& replaces = view->vm->replaces;
      const bool is_of_this = replaces.has_value() && replaces->uid == seen_.view().vm->uid;
      if (is_of_this) at = std::max(at, view->vm->created_at);
    }
    return harvester::ToAnnotation(harvester::CancelledRemoval{at, why});
  }

  // Adds the cluster's keys if they must be recorded.
  harvester::AnnotationChanges WithCluster(harvester::AnnotationChanges changes) const {
    const Observation& observation = seen_.snapshot().observation();
    if (ShouldRecordCluster(seen_.view().vm, seen_.node() != nullptr, observation)) {
      changes[harvester::kNomadClusterAnnotation] = *observation.nomad_cluster;
    }
    return changes;
  }

  Effect Annotate(const harvester::AnnotationChanges& changes) {
    const harvester::VirtualMachine& vm = seen_.view().vm;
    return EffectOf(deps_.vms.Annotate(context_, vm.name, vm.resource_version, changes).status());
  }

  // Returns the VM with the mark.
  absl::StatusOr<harvester::VirtualMachine> WriteMark(const Mark& mark) {
    const harvester::VirtualMachine& vm = seen_.view().vm;
    const harvester::AnnotationChanges changes =
        WithCluster({{harvester::kScaleInAnnotation, harvester::ToAnnotation(mark)}});
    auto marked = deps_.vms.Annotate(context_, vm.name, vm.resource_version, changes);
    // The quota also denies status updates, so the status may name an instance that is gone.
    const bool is_off = vm.printable_status == "Stopped" && vm.run_strategy != harvester::kHalted;
    if (!kube::IsRefused(marked.status()) || !is_off) return marked;
    return deps_.vms.Annotate(context_, vm.name, vm.resource_version, changes, harvester::kHalted);
  }

  // Without a node, the mark names the VM's former node, whose absence is proved by its ID.
  Effect MarkWith(MarkReason reason, const Step& step) {
    std::string node_id = step.node_id.empty() ? seen_.view().vm->joined_node_id : step.node_id;
    return EffectOf(WriteMark(MakeMark(seen_.snapshot(), seen_.view(), seen_.now(),
                                       NewActionId(deps_.random), reason, std::move(node_id)))
                        .status());
  }

  Effect StartDrain(const Step& step) {
    const Mark& mark = *seen_.view().vm->mark;
    // Uses the clock that leaves more time, so that one wrong clock shortens no drain.
    const base::WallTime now = std::min(seen_.now(), seen_.snapshot().observation().own_now);
    const nodepool::PostedDeadline posted =
        nodepool::DeadlineToPost(mark.drain_deadline.kind == DrainDeadline::Kind::kNone,
                                 mark.drain_deadline.kind == DrainDeadline::Kind::kNow,
                                 mark.drain_deadline.at, std::max(now, mark.marked_at));
    // Work that was placed late is stopped even after the deadline. The removal of a broken or
    // unhealthy VM continues, however late its drain is accepted (rule L3).
    const bool however_late =
        step.row == Row::kMarkedDrainAgain || !harvester::IsElective(mark.reason);
    // It is still wanted: how long it was refused counts until the mark is rolled back (rule C12).
    if (!posted.post && !however_late) {
      return {Verdict::kCancelled, absl::CancelledError("the deadline of the drain has passed")};
    }
    const std::string pool = deps_.key.ToString();
    const nodepool::DrainMark meta{.action = mark.action,
                                   .vm = seen_.view().vm->name,
                                   .vm_uid = mark.vm_uid,
                                   .pool = pool,
                                   .harvester = seen_.snapshot().observation().harvester,
                                   .purge = mark.purge,
                                   .was_ineligible = step.was_ineligible};
    return EffectOf(deps_.nomad().Drain(context_, step.node_id,
                                        {.deadline = posted.deadline,
                                         .ignore_system_jobs = mark.ignore_system,
                                         .meta = nodepool::ToMeta(meta)}));
  }

  // OK if the victim's node still permits marking its VM.
  absl::Status CheckVictimsNode(const std::string& node_id) const {
    const nomad::Node* node = seen_.node();
    if (node == nullptr || node->id != node_id) {
      const std::string why = seen_.view().link.explanation;
      return base::FailedPrecondition("node " + node_id + " is not this VM's" +
                                      (why.empty() ? "" : ": " + why));
    }
    const auto objection = ObjectionToRemoval(seen_.view(), node, seen_.snapshot());
    return objection.has_value() ? base::FailedPrecondition(*objection) : absl::OkStatus();
  }

  // The reply to the mark has the VM's current state, and the node is read after it, so this is a
  // new observation. The mark is set whether or not the drain starts, and the loop continues from
  // there.
  void BeginDrain(harvester::VirtualMachine marked) {
    seen_.SetVm(std::move(marked));
    const Step step = Decide(FactsOf(seen_, nullptr));
    if (step.kind != StepKind::kStartDrain) return;
    const Effect drained = Run(nullptr, step);
    if (drained.status.ok()) return;
    deps_.logger.Info(
        "Could not start the drain; retrying",
        {{"vm", seen_.view().vm->name}, {"node_id", step.node_id}, {"error", drained.status}});
  }

  const runtime::Context& context_;
  const PoolDependencies& deps_;
  Overlay seen_;
};

}  // namespace

Effect Execute(const runtime::Context& context, const PoolDependencies& deps,
               const Decisions& decisions, const VmView& view, const Step& step) {
  return Act(context, deps, decisions.snapshot(), view).Run(&decisions.pool(), step);
}

Effect Purge(const runtime::Context& context, const PoolDependencies& deps,
             const Decisions& decisions, const OrphanedNode& gone) {
  deps.logger.Info(
      "Purging the node of a deleted VM",
      {{"vm", gone.mark.vm}, {"node_id", gone.node->id}, {"action_id", gone.mark.action}});
  const auto vm = deps.vms.Get(context, std::string(gone.mark.vm));
  if (vm.ok() && vm->value.uid == gone.mark.vm_uid) return kNotWanted;
  if (!vm.ok() && !kube::IsNotFound(vm.status())) return EffectOf(vm.status());
  auto fresh = deps.nomad().GetNode(context, gone.node->id);
  if (absl::IsNotFound(fresh.status())) return kNotWanted;
  if (!fresh.ok()) return EffectOf(fresh.status());
  const Step step = NextStepOfGoneVm(fresh->value, decisions.snapshot());
  if (step.kind != StepKind::kPurge) return kNotWanted;
  const absl::Status same = CheckCluster(context, deps, decisions.snapshot().observation());
  if (!same.ok()) return EffectOf(same);
  const absl::Status purged = deps.nomad().Purge(context, gone.node->id);
  return absl::IsNotFound(purged) ? Effect{.verdict = Verdict::kDone} : EffectOf(purged);
}

Effect MarkVictim(const runtime::Context& context, const PoolDependencies& deps,
                  const PoolSnapshot& snapshot, const VmView& view, const std::string& action_id,
                  const std::string& node_id) {
  return Act(context, deps, snapshot, view).MarkForScaleIn(action_id, node_id);
}

}  // namespace nomad_harvester::scaling
