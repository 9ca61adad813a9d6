// SPDX-License-Identifier: Apache-2.0
#include "describe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "decision_cache.h"

namespace nomad_harvester::explore {
namespace {

std::string NameOf(int slot, const Labels& labels) {
  return VmName(labels[static_cast<std::size_t>(slot)]);
}

std::string NodeName(int slot, Bits node, const Labels& labels) {
  if (node == kNoNode) return "no node";
  return std::string("node ") + NameOf(slot, labels).back() + std::to_string(node);
}

// " (marked-idle)"
std::string RowOf(const Act& act) {
  return " (" + std::string(scaling::RowName(static_cast<scaling::Row>(act.row))) + ")";
}

// How a guest registers, by the detail of the event.
constexpr std::array<std::string_view, 4> kWaysToStart = {
    "", ", initializing", ", without a healthy driver", ", ineligible"};

// Texts for actions of an operator or a machine; $v is the VM, $n the node, $s how it registers.
struct Template {
  EventKind kind;
  std::string_view text;
};
constexpr auto kTemplates = std::to_array<Template>({
    {EventKind::kJoins, "the guest of $v registers as $n$s"},
    {EventKind::kJoinsMisnamed, "the guest of $v registers as $n, under a name that is not a VM's"},
    {EventKind::kVmGone, "$v is gone"},
    {EventKind::kNodeDown, "$n goes down"},
    {EventKind::kTwoMinutesDown, "$n has not been ready for long"},
    {EventKind::kBecomesReady, "$n becomes ready"},
    {EventKind::kFallsBack, "$n initializes again"},
    {EventKind::kDriverComes, "the driver on $n becomes healthy"},
    {EventKind::kDisconnects, "$n is disconnected"},
    {EventKind::kTimeEnds, "the time of the allocation on $n ends"},
    {EventKind::kNodeReturns, "$n is ready again"},
    {EventKind::kNodeAgain, "the guest of $v registers under a new ID, as $n$s"},
    {EventKind::kNodePurged,
     "$n is purged from Nomad by somebody else (a living client registers anew)"},
    {EventKind::kTaskStarts, "a task starts on $n"},
    {EventKind::kTasksStop, "the tasks on $n are told to stop"},
    {EventKind::kTasksStopped, "the tasks on $n have stopped"},
    {EventKind::kDrainCompletes, "the drain of $n completes"},
    {EventKind::kDrainCutShort, "the drain of $n completes at its deadline, its tasks still stop"},
    {EventKind::kPlacedLate,
     "the drain of $n completes, and a task runs there that was placed as it began"},
    {EventKind::kDeadline, "the deadline of the mark on $v passes"},
    {EventKind::kDeadlineAndGrace, "deadline and grace of the mark on $v pass"},
    {EventKind::kOverdue, "the join deadline of $v passes"},
    {EventKind::kStartFails, "the start of $v fails"},
    {EventKind::kPolicyMoves, "the policy names another node class"},
    {EventKind::kOperatorDrains, "an operator drains $n"},
    {EventKind::kOperatorUnmarks, "an operator removes the mark of $v"},
    {EventKind::kOperatorSpoils, "an operator edits the mark of $v, so that it cannot be read"},
    {EventKind::kOperatorDeletes, "an operator deletes $v"},
    {EventKind::kOperatorStops, "an operator stops $v"},
    {EventKind::kOperatorStarts, "an operator starts $v again"},
    {EventKind::kCutOff, "all nodes go down at once, while their guests run"},
    {EventKind::kGuestHeld, "the guest of $v is paused"},
    {EventKind::kGuestGoesOn, "the guest of $v goes on"},
    {EventKind::kOperatorWishes,
     "an operator asks for the replacement of $v, or does not any more"},
    {EventKind::kWaitEnds, "$v has waited for a minute for the one that takes its place"},
    {EventKind::kOperatorToggles, "an operator changes the eligibility of $n"},
});

std::string Fill(std::string_view text, const Event& event, const Labels& labels) {
  std::string filled;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      filled += text[i];
      continue;
    }
    const char what = text[++i];
    filled += what == 'v'   ? NameOf(event.slot, labels)
              : what == 's' ? std::string(kWaysToStart.at(event.detail))
                            : NodeName(event.slot, event.node, labels);
  }
  return filled;
}

std::string DescribeProcess(const Event& event, const Labels& labels) {
  const std::string vm = NameOf(event.slot, labels);
  const std::string request = Describe(event.act, event.slot, labels);
  switch (event.kind) {
    case EventKind::kScale:
      return "is asked for " + std::to_string(event.detail - 1) + " VMs and takes the Lease";
    case EventKind::kResume:
      return "is woken by Status and takes the Lease";
    case EventKind::kTakeover:
      return "takes the Lease over from a process that is frozen" +
             (event.detail > 0 ? ", being asked for " + std::to_string(event.detail - 1) + " VMs"
                               : std::string(", woken by Status"));
    case EventKind::kAddressMoves:
      return "has an address that leads to the other Nomad now, or back";
    case EventKind::kReadNodes:
      return event.detail == 0 ? "reads the nodes"
                               : "reads the nodes, and takes them for those of the Nomad before";
    case EventKind::kNomadSilent:
      return "gets no answer from Nomad";
    case EventKind::kReadVms:
      return "reads the VMs and decides";
    case EventKind::kPlan:
      return "reads the VMs, plans and stores its action";
    case EventKind::kActReads: {
      static constexpr std::array<std::string_view, 5> kWhat = {
          "reads the node", "reads the allocations", "reads the VM", "reads the instance",
          "reads Nomad's keys"};
      return std::string(kWhat.at(event.detail)) + " again, for: " + request;
    }
    case EventKind::kActApplied:
      return request;
    case EventKind::kActLost:
      return "loses a request: " + request;
    case EventKind::kActGivenUp:
      return "gives up on a request that is still under way: " + request;
    case EventKind::kActRefused:
      return "has been refused for a minute: " + request;
    case EventKind::kTimeout:
      return "ends its Scale early (its minute is over, or its client left)";
    case EventKind::kCrash:
      return "is killed" +
             (event.detail > 0 ? "; its request for " + vm + " is still under way" : std::string());
    default:
      return "";
  }
}

// In the order of Power.
constexpr std::array<std::string_view, 7> kPowers = {
    "initializing",         "ready",        "down",
    "down for 2 min",       "disconnected", "disconnected for long",
    "initializing for long"};

std::string DrainOf(const Node& node) {
  static constexpr std::array<std::string_view, 4> kStates = {"", "draining", "drain complete",
                                                              "drain cancelled"};
  if (node.drain == DrainState::kNone) return "";
  std::string text = ", " + std::string(kStates.at(static_cast<std::size_t>(node.drain)));
  if (node.ours == 0) return text + " (an operator's)";
  return text + " (action " + std::to_string(node.action) + (node.was != 0 ? ", was" : "") + ")";
}

}  // namespace

std::string Describe(const Act& act, int slot, const Labels& labels) {
  const std::string vm = NameOf(slot, labels);
  const std::string node = NodeName(slot, act.node, labels);
  switch (act.kind) {
    case ActKind::kNone:
      return "nothing";
    case ActKind::kCancelDrain:
      return "the drain of " + node + " is cancelled" +
             (act.flag != 0 ? " and the node enabled" : "") + RowOf(act);
    case ActKind::kEnable:
      return node + " is enabled" + RowOf(act);
    case ActKind::kStartDrain:
      return "the drain of " + node + " is started" + RowOf(act);
    case ActKind::kDelete:
      return vm + " is deleted" + RowOf(act);
    case ActKind::kPurge:
      return node + " is purged (gone-purge)";
    case ActKind::kRemoveMark:
      return "the mark of " + vm + " is removed" + RowOf(act);
    case ActKind::kMark:
      return vm + " is marked by action " + std::to_string(act.action);
    case ActKind::kMarkBroken:
      return vm + " is marked for being broken" + RowOf(act);
    case ActKind::kMarkUnhealthy:
      return vm + " is marked for being unhealthy" + RowOf(act);
    case ActKind::kMarkReplaced:
      return vm + " is marked for a replacement" + RowOf(act);
    case ActKind::kKeepReplaced:
      return "that " + vm + " stays is recorded" + RowOf(act);
    case ActKind::kEndReplacement:
      return vm + " counts by itself, and replaces no VM";
    case ActKind::kStart:
      return vm + " is started" + RowOf(act);
    case ActKind::kRecordRolledBack:
      return "rolled-back is written on " + vm + RowOf(act);
    case ActKind::kRecordJoin:
      return "the join of " + vm + " is recorded" +
             (act.flag != 0 ? ", and that it is ready" : "") + RowOf(act);
    case ActKind::kRecordReady:
      return "that " + vm + " is ready is recorded" + RowOf(act);
    case ActKind::kRecordCluster:
      return "the cluster's keys are recorded on " + vm + RowOf(act);
    case ActKind::kCreate:
      return vm + " is created" + (act.flag != 0 ? " in the place of another VM" : "");
  }
  return "";
}

std::string Describe(const Event& event, const Labels& labels) {
  switch (event.kind) {
    case EventKind::kLateApplied:
      return "a late request arrives: " + Describe(event.act, event.slot, labels);
    case EventKind::kLateLost:
      return "a late request never arrives: " + Describe(event.act, event.slot, labels);
    case EventKind::kOperatorCancels:
      return "an operator cancels the drain of " + NodeName(event.slot, event.node, labels) +
             (event.detail != 0 ? " and enables it" : "");
    case EventKind::kOperatorRestores:
      return "an operator restores " + NameOf(event.slot, labels) +
             (event.detail != 0 ? " with the mark that was undone" : " with its annotations");
    case EventKind::kOperatorClones:
      return "an operator clones " + NameOf(event.detail, labels) + " as " +
             NameOf(event.slot, labels);
    default:
      break;
  }
  const auto* const found =
      std::find_if(kTemplates.begin(), kTemplates.end(),
                   [&](const Template& each) { return each.kind == event.kind; });
  if (found != kTemplates.end()) return Fill(found->text, event, labels);
  return "process " + std::to_string(event.process + 1) + ": " + DescribeProcess(event, labels);
}

std::string DescribeWorld(const State& state, const Labels& labels) {
  std::string text;
  for (std::size_t i = 0; i < state.slots.size(); ++i) {
    const Slot& slot = state.slots[i];
    const int index = static_cast<int>(i);
    if (slot.vm.Exists()) {
      text += "    " + NameOf(index, labels);
      if (slot.vm.unmanaged != 0) text += ", a copy";
      if (slot.vm.phase == Phase::kTerminating) text += ", terminating";
      if (slot.vm.joined == 0) text += ", not joined";
      if (slot.vm.joined != 0 && slot.vm.was_ready == 0) text += ", never ready";
      if (slot.vm.overdue != 0) text += ", overdue";
      if (slot.vm.failing != 0) text += ", start fails";
      if (slot.vm.running == 0) text += ", stopped";
      if (slot.vm.held != 0) text += ", paused";
      if (slot.vm.wished != 0) text += ", to be replaced";
      if (slot.vm.undone != 0) text += ", its removal undone";
      if (slot.vm.replaces != 0) text += ", replaces the old one";
      if (slot.vm.waits != 0) text += " and waits for its end";
      if (slot.vm.uid != 0) text += ", restored";
      if (slot.vm.other != 0) text += ", of the other Nomad";
      if (slot.vm.mark == MarkKind::kUnreadable) text += ", unreadable mark";
      if (slot.vm.mark == MarkKind::kOurs) {
        if (slot.vm.mark_uid != slot.vm.uid) text += ", before it was restored";
        text += ", marked by action " + std::to_string(slot.vm.mark_action);
        if (slot.vm.mark_reason == Reason::kBroken) text += " for being broken";
        if (slot.vm.mark_reason == Reason::kUnhealthy) text += " for being unhealthy";
        if (slot.vm.mark_reason == Reason::kReplace) text += " for a replacement";
        text += slot.vm.late != 0 ? ", late" : slot.vm.due != 0 ? ", past its deadline" : "";
      }
      if (slot.naming.named != 0) text += ", named by the Lease";
      text += slot.naming.cancel != 0 ? ", its removal to be cancelled\n" : "\n";
    }
    for (std::size_t n = 0; n < slot.nodes.size(); ++n) {
      const Node& node = slot.nodes[n];
      if (node.present == 0) continue;
      text += "    " + NodeName(index, static_cast<Bits>(n), labels) + " " +
              std::string(kPowers.at(static_cast<std::size_t>(node.power))) +
              (node.eligible != 0 ? ", eligible" : ", ineligible") +
              (node.eligible == 0 && node.cordon == Cordon::kOurs ? " because of us" : "") +
              DrainOf(node) +
              (node.work == Work::kRunning    ? ", tasks run"
               : node.work == Work::kStopping ? ", tasks stop"
                                              : "") +
              (node.sick != 0 ? ", without a healthy driver" : "") +
              (node.misnamed != 0 ? ", under another name" : "") + "\n";
    }
  }
  return text;
}

}  // namespace nomad_harvester::explore
