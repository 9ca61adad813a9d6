// SPDX-License-Identifier: Apache-2.0
#include "rules/event_text.h"

#include <algorithm>
#include <array>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/step_spec.h"

namespace nomad_harvester::scaling {
namespace {

using harvester::VmEvent;

struct EventRow {
  StepKind kind;
  const char* reason;
  const char* action;
  bool warning;
};
constexpr std::array<EventRow, 14> kEventRows = {{
    {StepKind::kCancelDrain, "DrainCancelled", "CancelDrain", false},
    {StepKind::kEnable, "NodeEnabled", "Enable", false},
    {StepKind::kReport, "NeedsOperator", "Report", true},
    {StepKind::kMarkBroken, "JoinTimeout", "Mark", true},
    {StepKind::kMarkUnhealthy, "Unhealthy", "Mark", true},
    {StepKind::kMarkReplaced, "Replaced", "Mark", false},
    {StepKind::kKeepReplaced, "NeedsOperator", "Report", true},
    {StepKind::kStart, "Started", "Start", false},
    {StepKind::kRecordJoin, "Registered", "Join", false},
    {StepKind::kRecordReady, "Ready", "Join", false},
    {StepKind::kRollBack, "RolledBack", "RollBack", true},
    {StepKind::kStartDrain, "DrainStarted", "Drain", false},
    {StepKind::kDelete, "Deleted", "Delete", false},
    {StepKind::kHalt, "Halted", "Halt", false},
}};

// The Event's reason, which does not depend on the kind of step alone.
std::string_view ReasonOf(const EventRow& row, const Step& step, const VmView& view) {
  if (step.node_is_ready) return "Ready";
  switch (step.row) {
    case Row::kMarkedRemovalCancelled:
      return "RemovalCancelled";
    case Row::kUnmarkedUnhealthyKept:
      return "Unhealthy";
    case Row::kUnmarkedBroken:
    case Row::kUnmarkedBrokenKept:
      return view.start_failure.has_value() ? "StartFailed" : "JoinTimeout";
    default:
      return row.reason;
  }
}

std::string WithAction(std::string note, const std::string& action) {
  return action.empty() ? note : std::move(note) + "; action " + action;
}

std::string TextOf(const Step& step, const VmView& view, const PoolSnapshot& snapshot) {
  std::string note = step.reason;
  if (!step.node_id.empty() && note.find(step.node_id) == std::string::npos) {
    note += "; Nomad node " + step.node_id;
  }
  return WithAction(std::move(note), ActionOf(step, view, snapshot));
}

std::string OfPool(const PoolSnapshot& snapshot, const std::string& action_id,
                   const std::string& reason) {
  const std::optional<harvester::LeaseAction>& action = snapshot.action;
  std::string note = "pool " + snapshot.key.ToString();
  if (action.has_value() && action->id == action_id) {
    note += " from " + std::to_string(action->from) + " to " + std::to_string(action->to);
  }
  if (!reason.empty()) note += "; " + reason;
  return WithAction(std::move(note), action_id);
}

}  // namespace

std::string ActionOf(const Step& step, const VmView& view, const PoolSnapshot& snapshot) {
  if (view.vm->mark.has_value()) return view.vm->mark->action;
  const nomad::Node* node = IsRepair(step.kind) ? LinkedNode(view, snapshot) : nullptr;
  const auto drain = node == nullptr ? std::nullopt : nodepool::ParseDrainMark(*node);
  const bool ours = drain.has_value() && drain->vm_uid == view.vm->uid;
  return ours ? std::string(drain->action) : view.vm->action_id;
}

std::vector<VmEvent> EventsOf(const Step& step, const VmView& view, const PoolSnapshot& snapshot) {
  const auto* const row = std::find_if(kEventRows.begin(), kEventRows.end(),
                                       [&](const EventRow& r) { return r.kind == step.kind; });
  if (row == kEventRows.end()) return {};
  VmEvent event{.vm = view.vm->name,
                .uid = view.vm->uid,
                .reason = "Drained",
                .action = "Drain",
                .note = TextOf(step, view, snapshot)};
  std::vector<VmEvent> events;
  if (step.row == Row::kMarkedIdle) events.push_back(event);
  event.reason = ReasonOf(*row, step, view);
  event.action = row->action;
  event.warning = step.is_held || (row->warning && step.row != Row::kMarkedRemovalCancelled);
  events.push_back(std::move(event));
  return events;
}

VmEvent EventOfAction(Direction direction, const std::string& vm, const std::string& uid,
                      const PoolSnapshot& snapshot, const std::string& action_id,
                      const std::string& reason) {
  const bool creates = direction == Direction::kOut;
  return {.vm = vm,
          .uid = uid,
          .reason = creates ? "ScaleOut" : "ScaleIn",
          .action = creates ? "Create" : "Mark",
          .note = (creates ? "created: " : "chosen for removal: ") +
                  OfPool(snapshot, action_id, reason)};
}

VmEvent EventOfRefusal(const harvester::VirtualMachine& vm, std::string_view step,
                       std::string_view what, const absl::Status& refusal) {
  return {
      .vm = vm.name,
      .uid = vm.uid,
      .reason = "RemovalRefused",
      .action = std::string(step),
      .note = "refused to " + std::string(what) + "; trying again later: " + base::Message(refusal),
      .warning = true};
}

}  // namespace nomad_harvester::scaling
