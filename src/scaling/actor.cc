// SPDX-License-Identifier: Apache-2.0
#include "actor.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/drain.h"

namespace nomad_harvester::scaling {
namespace {

using harvester::DrainDeadline;
using harvester::Mark;
using harvester::MarkReason;

// The snapshot with one node and one VM read again, and the VM's index in it.
struct Refreshed {
  PoolSnapshot snapshot;
  std::size_t vm = 0;
  const VmView& view() const { return snapshot.vms[vm]; }
};

Refreshed CopyOf(const PoolSnapshot& snapshot, const VmView& view) {
  Refreshed copy{.snapshot = snapshot};
  const auto found = std::find_if(snapshot.vms.begin(), snapshot.vms.end(),
                                  [&](const VmView& v) { return v.vm.uid == view.vm.uid; });
  copy.vm = static_cast<std::size_t>(found - snapshot.vms.begin());
  return copy;
}

void ReplaceNode(Refreshed* refreshed, nomad::Node node) {
  const auto known =
      std::find_if(refreshed->snapshot.nodes.begin(), refreshed->snapshot.nodes.end(),
                   [&](const nomad::Node& n) { return n.id == node.id; });
  if (known != refreshed->snapshot.nodes.end()) *known = std::move(node);
  Observer::Link(&refreshed->snapshot);
}

void DropNode(Refreshed* refreshed, const std::string& id) {
  std::erase_if(refreshed->snapshot.nodes, [&](const nomad::Node& n) { return n.id == id; });
  Observer::Link(&refreshed->snapshot);
}

// Reads the step's node again, in full. NOT_FOUND removes it from the snapshot.
absl::Status RefreshNode(const runtime::Context& context, const PoolDependencies& deps,
                         const std::string& id, Refreshed* refreshed) {
  auto node = deps.nomad().GetNode(context, id);
  if (absl::IsNotFound(node.status())) {
    DropNode(refreshed, id);
    return absl::OkStatus();
  }
  NH_RETURN_IF_ERROR(node);
  deps.nodes.Remember(node->value);
  ReplaceNode(refreshed, std::move(node->value));
  return absl::OkStatus();
}

// Reads the whole list again: a guest may have registered under a new ID since the pool was
// observed.
absl::Status RefreshNodes(const runtime::Context& context, const PoolDependencies& deps,
                          Refreshed* refreshed) {
  NH_ASSIGN_OR_RETURN(auto nodes, deps.nomad().ListNodes(context));
  refreshed->snapshot.nodes = std::move(nodes.value);
  for (nomad::Node& node : refreshed->snapshot.nodes) deps.nodes.Complete(&node);
  Observer::Link(&refreshed->snapshot);
  return absl::OkStatus();
}

// For a VM without a node: reads all nodes, and the mark's node by ID.
absl::Status RefreshAbsence(const runtime::Context& context, const PoolDependencies& deps,
                            Refreshed* refreshed) {
  NH_RETURN_IF_ERROR(RefreshNodes(context, deps, refreshed));
  VmView& view = refreshed->snapshot.vms[refreshed->vm];
  view.node_gone = false;
  if (view.vm.mark.has_value() && !view.vm.mark->node_id.empty()) {
    const auto node = deps.nomad().GetNode(context, view.vm.mark->node_id);
    if (!node.ok() && !absl::IsNotFound(node.status())) return node.status();
    view.node_gone = absl::IsNotFound(node.status());
  }
  return absl::OkStatus();
}

absl::Status RefreshAllocations(const runtime::Context& context, const PoolDependencies& deps,
                                const std::string& node_id, Refreshed* refreshed) {
  NH_ASSIGN_OR_RETURN(auto allocations, deps.nomad().NodeAllocations(context, node_id));
  refreshed->snapshot.allocations[node_id] = std::move(allocations.value);
  return absl::OkStatus();
}

absl::Status RefreshInstance(const runtime::Context& context, const PoolDependencies& deps,
                             Refreshed* refreshed) {
  VmView& view = refreshed->snapshot.vms[refreshed->vm];
  const auto instance = deps.vms.GetInstance(context, view.vm.name);
  if (kube::IsNotFound(instance.status())) {
    view.instance_runs = false;
    return absl::OkStatus();
  }
  NH_RETURN_IF_ERROR(instance);
  view.instance_runs = harvester::IsRunning(*instance);
  return absl::OkStatus();
}

absl::Status RefreshVm(const runtime::Context& context, const PoolDependencies& deps,
                       Refreshed* refreshed) {
  VmView& view = refreshed->snapshot.vms[refreshed->vm];
  auto vm = deps.vms.Get(context, view.vm.name);
  NH_RETURN_IF_ERROR(vm);
  if (vm->value.uid != view.vm.uid) {
    return base::FailedPrecondition("VM " + view.vm.name + " was replaced by another one");
  }
  view.vm = std::move(vm->value);
  view.member = harvester::IsMember(view.vm);
  if (vm->server_time.has_value()) refreshed->snapshot.now = *vm->server_time;
  return absl::OkStatus();
}

DrainDeadline DeadlineOf(base::Duration deadline, base::WallTime now) {
  if (deadline == base::Duration::zero()) return {.kind = DrainDeadline::Kind::kNone};
  if (deadline < base::Duration::zero()) return {.kind = DrainDeadline::Kind::kNow};
  return {.kind = DrainDeadline::Kind::kAt, .at = now + deadline};
}

Mark MakeMark(const PoolSnapshot& snapshot, const VmView& view, std::string action,
              MarkReason reason, std::string node_id) {
  const config::PoolPolicy& policy = *snapshot.policy;
  Mark mark{.action = std::move(action), .reason = reason, .vm_uid = view.vm.uid};
  mark.node_id = std::move(node_id);
  mark.marked_at = snapshot.now;
  mark.drain_deadline = DeadlineOf(policy.drain_deadline, snapshot.now);
  mark.grace = policy.drain_grace;
  mark.force = policy.force_after_deadline;
  mark.ignore_system = policy.drain_ignore_system_jobs;
  mark.purge = policy.node_purge;
  mark.nodes =
      view.vm.nodes.value_or(harvester::NodesRecord{.region = snapshot.region,
                                                    .node_class = policy.node_class,
                                                    .datacenter = policy.datacenter,
                                                    .node_pool = policy.node_pool,
                                                    .node_attribute = policy.node_attribute,
                                                    .index = 0});
  return mark;
}

// Returns the VM with the mark.
absl::StatusOr<harvester::VirtualMachine> WriteMark(const runtime::Context& context,
                                                    const PoolDependencies& deps,
                                                    const VmView& view, const Mark& mark) {
  return deps.vms.Annotate(context, view.vm.name, view.vm.resource_version,
                           {{harvester::kScaleInAnnotation, harvester::ToAnnotation(mark)}});
}

absl::Status UndoDrain(const runtime::Context& context, const PoolDependencies& deps,
                       const Step& step, Refreshed refreshed) {
  NH_RETURN_IF_ERROR(RefreshNode(context, deps, step.node_id, &refreshed));
  const Step now = NextStep(refreshed.view(), refreshed.snapshot);
  if (now.row != step.row || now.node_id != step.node_id) return absl::OkStatus();
  return step.kind == StepKind::kCancelDrain
             ? deps.nomad().CancelDrain(context, step.node_id, now.mark_eligible)
             : deps.nomad().SetEligible(context, step.node_id, true);
}

absl::Status StartDrain(const runtime::Context& context, const PoolDependencies& deps,
                        const Step& step, Refreshed refreshed) {
  NH_RETURN_IF_ERROR(RefreshNode(context, deps, step.node_id, &refreshed));
  const Step now = NextStep(refreshed.view(), refreshed.snapshot);
  if (now.kind != StepKind::kStartDrain || now.node_id != step.node_id) return absl::OkStatus();
  const Mark& mark = *refreshed.view().vm.mark;
  const nodepool::PostedDeadline posted =
      nodepool::DeadlineToPost(mark.drain_deadline.kind == DrainDeadline::Kind::kNone,
                               mark.drain_deadline.kind == DrainDeadline::Kind::kNow,
                               mark.drain_deadline.at, refreshed.snapshot.now);
  if (!posted.post) return absl::OkStatus();
  const nodepool::DrainMark meta{.action = mark.action,
                                 .vm = refreshed.view().vm.name,
                                 .vm_uid = mark.vm_uid,
                                 .pool = deps.key.ToString(),
                                 .purge = mark.purge,
                                 .was_ineligible = now.was_ineligible};
  return deps.nomad().Drain(context, step.node_id,
                            {.deadline = posted.deadline,
                             .ignore_system_jobs = mark.ignore_system,
                             .meta = nodepool::ToMeta(meta)});
}

// Rule C5: reads the nodes, the VM's own node in full, its allocations, then the VM, all without
// `stale`. The deletion carries uid and resourceVersion of that last read.
absl::Status DeleteVm(const runtime::Context& context, const PoolDependencies& deps,
                      const Step& step, Refreshed refreshed) {
  if (step.node_id.empty()) {
    NH_RETURN_IF_ERROR(RefreshAbsence(context, deps, &refreshed));
  } else {
    NH_RETURN_IF_ERROR(RefreshNodes(context, deps, &refreshed));
    NH_RETURN_IF_ERROR(RefreshNode(context, deps, step.node_id, &refreshed));
    if (step.row == Row::kMarkedIdle) {
      NH_RETURN_IF_ERROR(RefreshAllocations(context, deps, step.node_id, &refreshed));
    }
  }
  const absl::Status read = RefreshVm(context, deps, &refreshed);
  if (kube::IsNotFound(read)) return absl::OkStatus();
  NH_RETURN_IF_ERROR(read);
  // Read last: a start changes the VM, so a start after this read makes the deletion fail with a
  // conflict.
  if (step.row == Row::kMarkedDown) {
    NH_RETURN_IF_ERROR(RefreshInstance(context, deps, &refreshed));
  }
  const Step now = NextStep(refreshed.view(), refreshed.snapshot);
  if (now.row != step.row || now.node_id != step.node_id) return absl::OkStatus();
  const harvester::VirtualMachine& vm = refreshed.view().vm;
  return deps.vms.DeleteVm(context, vm.name, vm.uid, vm.resource_version);
}

absl::Status MarkBroken(const runtime::Context& context, const PoolDependencies& deps,
                        const VmView& view, const PoolSnapshot& snapshot) {
  return base::GetStatus(
      WriteMark(context, deps, view,
                MakeMark(snapshot, view, NewActionId(deps.random), MarkReason::kBroken, "")));
}

// Reads node, VM and instance once more: any of them may have recovered.
absl::Status MarkUnhealthy(const runtime::Context& context, const PoolDependencies& deps,
                           const Step& step, Refreshed refreshed) {
  if (step.node_id.empty()) {
    NH_RETURN_IF_ERROR(RefreshAbsence(context, deps, &refreshed));
  } else {
    NH_RETURN_IF_ERROR(RefreshNode(context, deps, step.node_id, &refreshed));
  }
  NH_RETURN_IF_ERROR(RefreshVm(context, deps, &refreshed));
  NH_RETURN_IF_ERROR(RefreshInstance(context, deps, &refreshed));
  const VmView& view = refreshed.view();
  const Step now = NextStep(view, refreshed.snapshot);
  if (now.row != step.row || now.node_id != step.node_id) return absl::OkStatus();
  const std::string node_id = step.node_id.empty() ? view.vm.joined_node_id : step.node_id;
  return base::GetStatus(WriteMark(context, deps, view,
                                   MakeMark(refreshed.snapshot, view, NewActionId(deps.random),
                                            MarkReason::kUnhealthy, node_id)));
}

// Checks that a victim's node still has the state in which its VM may be marked.
absl::Status CheckVictimsNode(const Refreshed& refreshed, const std::string& node_id) {
  const nomad::Node* node = LinkedNode(refreshed.view(), refreshed.snapshot);
  if (node == nullptr || node->id != node_id) {
    const std::string why = refreshed.view().link.explanation;
    return base::FailedPrecondition("node " + node_id + " is not this VM's" +
                                    (why.empty() ? "" : ": " + why));
  }
  if (node->draining) {
    return base::FailedPrecondition("node " + node_id + " is drained by another client");
  }
  if (nodepool::IsProtected(*node)) {
    return base::FailedPrecondition("node " + node_id + " is protected by its meta");
  }
  return absl::OkStatus();
}

absl::Status RecordJoin(const runtime::Context& context, const PoolDependencies& deps,
                        const Step& step, const VmView& view, const PoolSnapshot& snapshot) {
  return base::GetStatus(
      deps.vms.Annotate(context, view.vm.name, view.vm.resource_version,
                        {{harvester::kNodeIdAnnotation, step.node_id},
                         {harvester::kJoinedAtAnnotation, base::FormatRfc3339(snapshot.now)}}));
}

}  // namespace

absl::Status RemoveMark(const runtime::Context& context, const PoolDependencies& deps,
                        const VmView& view) {
  return base::GetStatus(deps.vms.Annotate(context, view.vm.name, view.vm.resource_version,
                                           {{harvester::kScaleInAnnotation, std::nullopt}}));
}

absl::Status CarryOut(const runtime::Context& context, const PoolDependencies& deps,
                      const Step& step, const VmView& view, const PoolSnapshot& snapshot) {
  switch (step.kind) {
    case StepKind::kCancelDrain:
    case StepKind::kEnable:
      return UndoDrain(context, deps, step, CopyOf(snapshot, view));
    case StepKind::kRecordRolledBack:
      return base::GetStatus(deps.vms.Annotate(context, view.vm.name, view.vm.resource_version,
                                               {{harvester::kRolledBackAnnotation, step.value}}));
    case StepKind::kForgetJoinTimeout:
      return base::GetStatus(
          deps.vms.Annotate(context, view.vm.name, view.vm.resource_version,
                            {{harvester::kJoinTimeoutAnnotation, std::string("none")}}));
    case StepKind::kMarkBroken:
      return MarkBroken(context, deps, view, snapshot);
    case StepKind::kMarkUnhealthy:
      return MarkUnhealthy(context, deps, step, CopyOf(snapshot, view));
    case StepKind::kRecordJoin:
      return RecordJoin(context, deps, step, view, snapshot);
    case StepKind::kRollBack:
      return RemoveMark(context, deps, view);
    case StepKind::kStartDrain:
      return StartDrain(context, deps, step, CopyOf(snapshot, view));
    case StepKind::kDelete:
      return DeleteVm(context, deps, step, CopyOf(snapshot, view));
    case StepKind::kNothing:
    case StepKind::kWait:
    case StepKind::kReport:
    case StepKind::kPurge:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status PurgeNode(const runtime::Context& context, const PoolDependencies& deps,
                       const nomad::Node& node, const PoolSnapshot& snapshot) {
  const auto mark = nodepool::ParseDrainMark(node);
  if (!mark.has_value()) return absl::OkStatus();
  const auto vm = deps.vms.Get(context, mark->vm);
  if (vm.ok() && vm->value.uid == mark->vm_uid) return absl::OkStatus();
  if (!vm.ok() && !kube::IsNotFound(vm.status())) return vm.status();
  auto fresh = deps.nomad().GetNode(context, node.id);
  if (absl::IsNotFound(fresh.status())) return absl::OkStatus();
  NH_RETURN_IF_ERROR(fresh);
  if (NextStepOfGoneVm(fresh->value, snapshot).kind != StepKind::kPurge) return absl::OkStatus();
  const absl::Status purged = deps.nomad().Purge(context, node.id);
  return absl::IsNotFound(purged) ? absl::OkStatus() : purged;
}

absl::Status MarkAndDrain(const runtime::Context& context, const PoolDependencies& deps,
                          const std::string& action_id, const std::string& node_id,
                          const VmView& view, const PoolSnapshot& snapshot) {
  Refreshed refreshed = CopyOf(snapshot, view);
  const bool linked = LinkedNode(view, snapshot) != nullptr;
  if (linked) {
    NH_RETURN_IF_ERROR(RefreshNode(context, deps, node_id, &refreshed));
    NH_RETURN_IF_ERROR(CheckVictimsNode(refreshed, node_id));
  }
  NH_ASSIGN_OR_RETURN(
      harvester::VirtualMachine marked,
      WriteMark(context, deps, view,
                MakeMark(snapshot, view, action_id, MarkReason::kScaleIn, node_id)));
  if (!linked) return absl::OkStatus();
  // The reply has the VM's current state, and StartDrain reads the node after it, so this is a new
  // observation. With or without a drain the mark is set, and the loop's next observation continues
  // from there.
  refreshed.snapshot.vms[refreshed.vm].vm = std::move(marked);
  const Step step = NextStep(refreshed.view(), refreshed.snapshot);
  if (step.kind != StepKind::kStartDrain) return absl::OkStatus();
  const absl::Status drained = StartDrain(context, deps, step, std::move(refreshed));
  if (!drained.ok()) {
    deps.logger.Info("Could not start the drain; retrying",
                     {{"vm", view.vm.name}, {"node_id", node_id}, {"error", drained}});
  }
  return absl::OkStatus();
}

}  // namespace nomad_harvester::scaling
