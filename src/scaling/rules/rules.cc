// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "nomad_harvester/nodepool/readiness.h"

#include "absl/strings/str_join.h"
#include "rules/progress.h"

namespace nomad_harvester::scaling {
namespace {

using nomad::Node;
using nomad::NodeStatus;

// Decide() sets the row.
Step MakeStep(StepKind kind, std::string reason, const Node* node = nullptr) {
  Step step{.kind = kind, .reason = std::move(reason)};
  if (node != nullptr) step.node_id = node->id;
  return step;
}

std::string Named(const Node& node) { return "node " + node.name + " (" + node.id + ")"; }

const VmView& ViewOf(const Facts& facts) { return facts.seen->view(); }
bool IsReady(const Node* node) { return node != nullptr && node->status == NodeStatus::kReady; }

std::string CauseOfStartFailure(const VmView& view) {
  return "its start fails: " + view.start_failure->reason +
         (view.volume_warning.empty() ? "" : "; " + view.volume_warning);
}

std::string CauseOfBroken(const Facts& facts) {
  const VmView& view = ViewOf(facts);
  if (facts.start_fails) return CauseOfStartFailure(view);
  if (view.start_refused_for >= kRefusedForGood) {
    return "its start has been refused for a minute: see the last WARN about it";
  }
  if (facts.joined) {
    return "it was not ready by its deadline: " +
           DescribeLateReadiness(view, facts.node, facts.seen->snapshot());
  }
  return "it has not joined Nomad by its deadline: " + DescribeProgress(view) +
         AdviceToJoin(view, facts.seen->snapshot());
}

std::string CauseOfUnhealthy(const Facts& facts) {
  const VmView& view = ViewOf(facts);
  const PoolSnapshot& snapshot = facts.seen->snapshot();
  const auto limit =
      UnhealthyLimit(view.vm, *snapshot.policy, IsPendingReplacement(view, snapshot));
  const std::string disk_fault = harvester::DiskFault(view.vm);
  return (facts.node == nullptr ? std::string("its node is gone")
                                : Named(*facts.node) + " is " + nodepool::StatusText(*facts.node)) +
         ", and was not ready for " + base::FormatGoDuration(*limit) +
         (disk_fault.empty() ? "" : "; its guest is paused: " + disk_fault);
}

Step ReportCandidate(const Facts& facts) {
  if (facts.unhealthy) {
    return MakeStep(StepKind::kReport,
                    CauseOfUnhealthy(facts) + ", but " + Named(*facts.candidate) +
                        " has no VM's name and could be it",
                    facts.candidate);
  }
  return MakeStep(StepKind::kReport,
                  CauseOfBroken(facts) + ", but " + Named(*facts.candidate) +
                      " has no VM's name and could be it; give that node the VM's name in the "
                      "attribute that node_attribute names, or meta.harvester_vm_uuid = \"none\" "
                      "if it is not a VM of this pool",
                  facts.candidate);
}

Step CancelDrain(const Facts& facts) {
  Step step =
      MakeStep(StepKind::kCancelDrain,
               "the VM carries no mark, but " + Named(*facts.draining) + " is drained for it",
               facts.draining);
  step.mark_eligible = !facts.draining_was_ineligible;
  return step;
}

Step RecordRolledBack(const Facts& facts) {
  Step step = MakeStep(StepKind::kRecordRolledBack,
                       "the drain of " + Named(*facts.undone) + " is undone", facts.undone);
  step.value = nodepool::RollbackMarker(*facts.undone);
  return step;
}

// Says why a VM that the policy would remove is not marked; the default is that it is protected, or
// kept by the policy.
std::string WhyKept(const Facts& facts) {
  if (facts.maintained) return "; it is kept while another client drains its node";
  if (facts.canceled_lately) return "; it is kept for an hour, because its drain was cancelled";
  if (facts.may_come_back) {
    return "; it is kept while an allocation on its node is within the time that its group gives "
           "it";
  }
  if (facts.unproven) {
    return "; it is kept: its node is disconnected, and the Nomad token is not proved to read the "
           "allocations of every namespace, so that work may be there";
  }
  return "; it is kept";
}

Step KeepUnhealthy(const Facts& facts) {
  const bool by_limit = !facts.is_protected && !facts.dry_run && !facts.kept;
  return MakeStep(
      StepKind::kReport,
      CauseOfUnhealthy(facts) +
          (by_limit ? "; it is kept while as many VMs as max_unhealthy allows are replaced"
                    : WhyKept(facts)),
      facts.node);
}

Step WaitForReplacement(const Facts& facts) {
  return MakeStep(StepKind::kWait,
                  CauseOfUnhealthy(facts) + "; the VM that takes its place is created first",
                  facts.node);
}

Step MarkUnhealthy(const Facts& facts) {
  return MakeStep(StepKind::kMarkUnhealthy, CauseOfUnhealthy(facts), facts.node);
}

Step MarkBroken(const Facts& facts) {
  return MakeStep(StepKind::kMarkBroken, CauseOfBroken(facts), facts.node);
}

Step WaitForNode(const Facts& facts) {
  const Node& node = *facts.node;
  const std::string& held_by = ViewOf(facts).drain_held_by;
  Step step = MakeStep(StepKind::kWait,
                       node.draining    ? Named(node) + " drains"
                       : facts.complete ? "tasks on " + Named(node) + " are still stopping"
                                        : Named(node) + " is not ready",
                       &node);
  if (!held_by.empty()) step.reason += "; still running: " + held_by;
  return step;
}

std::string UntilWhen(const harvester::DrainDeadline& deadline, base::WallTime now) {
  using Kind = harvester::DrainDeadline::Kind;
  if (deadline.kind == Kind::kNone) return ", for as long as it takes";
  if (deadline.kind == Kind::kNow || deadline.at <= now) return " at once";
  return ", until " + base::FormatRfc3339(deadline.at) + " at the latest";
}

Step StartDrain(const Facts& facts) {
  Step step = MakeStep(StepKind::kStartDrain,
                       Named(*facts.node) + " is to be drained" +
                           UntilWhen(ViewOf(facts).vm->mark->drain_deadline, facts.seen->now()),
                       facts.node);
  step.was_ineligible = facts.ineligible_by_others;
  return step;
}

Step RollBackRefused(const Facts& facts) {
  return MakeStep(StepKind::kRollBack, "its removal has been refused for a minute", facts.node);
}

Step RollBackLate(const Facts& facts) {
  if (facts.node == nullptr) {
    return MakeStep(StepKind::kRollBack,
                    "its node cannot be found, and the deadline of its removal has passed");
  }
  if (!facts.late || !facts.ours) {
    return MakeStep(StepKind::kRollBack,
                    "the drain of " + Named(*facts.node) + " did not begin before its deadline" +
                        (IsReady(facts.node) ? "" : ": it is " + nodepool::StatusText(*facts.node)),
                    facts.node);
  }
  return MakeStep(StepKind::kRollBack,
                  "the drain of " + Named(*facts.node) + " is past its deadline and grace",
                  facts.node);
}

constexpr const char* kPastDeadline = " is past its deadline and grace";

// For a VM that has joined: waits while something holds it (rule C18).
Step DeleteUnlessHeld(const Facts& facts, std::string reason) {
  Step step = MakeStep(StepKind::kDelete, std::move(reason), facts.node);
  step.is_held = facts.held_until.has_value();
  if (!step.is_held) return step;
  const std::string holds = "held by " + absl::StrJoin(ViewOf(facts).vm->holds, ", ");
  if (facts.seen->now() < *facts.held_until) {
    step.kind = StepKind::kWait;
    step.reason += ", and it is " + holds + ", until " + base::FormatRfc3339(*facts.held_until) +
                   " at the latest";
  } else {
    step.reason += "; it is still " + holds + ", but hold_timeout has passed";
  }
  return step;
}

constexpr std::array<Rule, 57> kTable = {{
    {Row::kNomadUnreadable, "nomad-unreadable", "any", "Nomad cannot be read", "wait",
     [](const Facts& f) { return !f.nomad_readable; },
     [](const Facts& f) {
       return MakeStep(StepKind::kWait, "Nomad cannot be read: " + *f.nomad_problem);
     }},
    {Row::kGonePurge, "gone-purge", "gone (GET by name: 404, or another uid)",
     "its last drain names this pool and VM and is complete; purge wanted, down", "purge the node",
     [](const Facts& f) { return f.vm_gone && f.purge_wanted; },
     [](const Facts& f) {
       return MakeStep(StepKind::kPurge, "the VM of " + Named(*f.node) + " is gone", f.node);
     }},
    {Row::kGoneNothing, "gone-nothing", "gone", "any other", "nothing",
     [](const Facts& f) { return f.vm_gone; },
     [](const Facts&) { return MakeStep(StepKind::kNothing, "the VM is gone"); }},
    {Row::kOtherNomad, "other-nomad", "made for another Nomad region, or of another Nomad cluster",
     "any", "wait", [](const Facts& f) { return f.other_nomad; },
     [](const Facts& f) {
       const VmView& view = ViewOf(f);
       return MakeStep(StepKind::kWait,
                       IsOtherCluster(view.vm, f.seen->snapshot().look())
                           ? "it belongs to another Nomad cluster"
                           : "it was made for Nomad region " + view.vm->nodes->region);
     }},
    {Row::kTerminatingHeld, "terminating-held",
     "a member that has been terminating for 60 s, and is not Halted", "any",
     "set its run strategy to Halted", [](const Facts& f) { return f.may_be_held_by_quota; },
     [](const Facts&) {
       return MakeStep(StepKind::kHalt,
                       "it has been in deletion for a minute: unless it is Halted, a full quota of "
                       "Harvester denies the end of it");
     }},
    {Row::kTerminating, "terminating", "terminating", "any", "wait",
     [](const Facts& f) { return f.terminating; },
     [](const Facts&) { return MakeStep(StepKind::kWait, "it is being deleted"); }},
    {Row::kNotMember, "not-member", "not a member, whatever mark it carries", "any", "nothing",
     [](const Facts& f) { return !f.member; },
     [](const Facts&) {
       return MakeStep(StepKind::kNothing, "it is a copy, or its labels were edited");
     }},

    {Row::kUnmarkedDraining, "unmarked-draining", "no mark",
     "any node, linked or not, drained for this VM: draining",
     "cancel the drain, and enable the node unless it was ineligible before",
     [](const Facts& f) { return !f.marked && f.draining != nullptr; }, CancelDrain},
    {Row::kUnmarkedDrained, "unmarked-drained", "no mark",
     "such a node: complete, ineligible because of us, not recorded in rolled-back",
     "enable the node", [](const Facts& f) { return !f.marked && f.drained != nullptr; },
     [](const Facts& f) {
       return MakeStep(StepKind::kEnable,
                       "the VM carries no mark, but " + Named(*f.drained) + " was drained for it",
                       f.drained);
     }},
    {Row::kUnmarkedRecord, "unmarked-record", "no mark",
     "its own node: such a drain complete and undone, not recorded", "write rolled-back",
     [](const Facts& f) { return !f.marked && f.undone != nullptr; }, RecordRolledBack},
    {Row::kUnmarkedAmbiguous, "unmarked-ambiguous", "no mark", "several nodes could be its node",
     "report", [](const Facts& f) { return !f.marked && f.ambiguous; },
     [](const Facts& f) {
       return MakeStep(StepKind::kReport,
                       "which node it has is not certain: " + ViewOf(f).link.explanation);
     }},
    {Row::kUnmarkedRan, "unmarked-ran",
     "no mark, never ready; its instance has run, which is what wait_for asks",
     "none, or it has joined", "set join-timeout to none",
     [](const Facts& f) {
       return !f.marked && !f.was_ready && (f.joined || f.no_node) && f.has_deadline && f.ran;
     },
     [](const Facts&) {
       return MakeStep(StepKind::kForgetJoinTimeout,
                       "its instance has run, which is what the policy waits for");
     }},
    {Row::kUnmarkedCandidate, "unmarked-candidate", "no mark; broken, or unhealthy without a node",
     "none, but a ready pool node that links to no VM and is younger", "report that node",
     [](const Facts& f) {
       return !f.marked && (f.broken || f.unhealthy) && f.candidate != nullptr;
     },
     ReportCandidate},
    {Row::kUnmarkedStays, "unmarked-stays",
     "no mark; the VM that replaces it was ready, or is Halted until this one is gone; and C7 "
     "protects this one, or marking it was refused for a minute",
     "any", "record that it stays",
     [](const Facts& f) {
       const bool goes = f.unhealthy && !f.is_protected && !f.kept;
       return !f.marked && !f.stays_because.empty() && !goes;
     },
     [](const Facts& f) {
       return MakeStep(StepKind::kKeepReplaced,
                       "it stays beside VM " + f.successor->vm->name + ", which was to replace it: " +
                           f.stays_because,
                       f.node);
     }},
    {Row::kUnmarkedUnhealthyKept, "unmarked-unhealthy-kept",
     "no mark, unhealthy; protected, dry run, or max_unhealthy reached",
     "not ready, or none; or somebody else drains it",
     "report",
     [](const Facts& f) {
       return !f.marked && f.unhealthy && (f.is_protected || f.dry_run || !f.may_replace);
     },
     KeepUnhealthy},
    {Row::kUnmarkedUnhealthyWaits, "unmarked-unhealthy-waits",
     "no mark, unhealthy; for less than a minute nothing is missing but the VM that replaces it",
     "not ready, or none", "wait until one is created",
     [](const Facts& f) { return !f.marked && f.unhealthy && f.awaits_replacement; },
     WaitForReplacement},
    {Row::kUnmarkedCutOff, "unmarked-cut-off",
     "no mark, unhealthy; or broken, not protected, and the policy removes such VMs",
     "disconnected, and no allocation on it is within its time",
     "mark it; an unhealthy one after it is named on the Lease",
     [](const Facts& f) {
       return !f.marked && f.cut_off &&
              (f.unhealthy || (f.broken && f.may_remove_broken && !f.is_protected));
     },
     [](const Facts& f) { return f.unhealthy ? MarkUnhealthy(f) : MarkBroken(f); }},
    {Row::kUnmarkedUnhealthy, "unmarked-unhealthy", "no mark, unhealthy", "not ready, or none",
     "name it on the Lease, then mark it", [](const Facts& f) { return !f.marked && f.unhealthy; },
     MarkUnhealthy},
    {Row::kUnmarkedBroken, "unmarked-broken",
     "no mark, broken; not protected, and the policy removes such VMs",
     "none, or it has joined, is not ready, and nobody else drains it", "mark it",
     [](const Facts& f) { return !f.marked && f.broken && f.may_remove_broken && !f.is_protected; },
     MarkBroken},
    {Row::kUnmarkedBrokenKept, "unmarked-broken-kept", "no mark, broken",
     "none, or it has joined and is not ready", "report",
     [](const Facts& f) { return !f.marked && f.broken; },
     [](const Facts& f) {
       return MakeStep(StepKind::kReport,
                       CauseOfBroken(f) + WhyKept(f),
                       f.node);
     }},
    {Row::kUnmarkedJoins, "unmarked-joins", "no mark, never joined", "links",
     "record the join, and whether the node is ready",
     [](const Facts& f) { return !f.marked && !f.joined && f.node != nullptr; },
     [](const Facts& f) {
       Step step = MakeStep(StepKind::kRecordJoin, "its node has registered", f.node);
       step.node_is_ready = f.is_ready;
       if (f.is_ready) step.reason += " and is ready";
       return step;
     }},
    {Row::kUnmarkedReady, "unmarked-ready", "no mark, joined, never ready", "ready",
     "record that it is ready",
     [](const Facts& f) { return !f.marked && f.joined && !f.was_ready && f.is_ready; },
     [](const Facts& f) {
       return MakeStep(StepKind::kRecordReady, "its node is ready", f.node);
     }},
    {Row::kUnmarkedContradicted, "unmarked-contradicted", "no mark, never joined",
     "has its name, but is another VM by an identity hint", "report",
     [](const Facts& f) { return !f.marked && !f.joined && f.contradicted; },
     [](const Facts& f) { return MakeStep(StepKind::kReport, ViewOf(f).link.explanation); }},
    {Row::kUnmarkedCluster, "unmarked-cluster",
     "no mark; its record of the Nomad cluster lacks a key that the cluster has, or it joined as "
     "another node",
     "links, or none and the record has a key of the cluster; in the second case ready",
     "record the cluster's keys and the node",
     [](const Facts& f) { return !f.marked && (f.record_cluster || f.record_node); },
     [](const Facts& f) {
       Step step = MakeStep(StepKind::kRecordCluster,
                            "its record of the Nomad cluster is not current", f.node);
       if (!f.record_node) return step;
       step.value = f.node->id;
       step.reason = "its client has registered anew, as " + Named(*f.node) + "; before it was " +
                     ViewOf(f).vm->joined_node_id;
       return step;
     }},
    {Row::kUnmarkedTokenEnds, "unmarked-token-ends",
     "no mark, never joined; it has not booted, and half of its introduction token's time is over",
     "none", "put a new token into its Secret",
     [](const Facts& f) { return !f.marked && f.token_ends; },
     [](const Facts&) {
       return MakeStep(StepKind::kRenewToken,
                       "it has not booted, and its introduction token ends soon");
     }},
    {Row::kUnmarkedWaiting, "unmarked-waiting", "no mark, never ready, before its deadline",
     "none, or not ready", "wait",
     [](const Facts& f) { return !f.marked && !f.was_ready && f.has_deadline; },
     [](const Facts& f) {
       const VmView& view = ViewOf(f);
       return MakeStep(StepKind::kWait,
                       f.joined ? "it is not ready yet: " +
                                      DescribeReadiness(view, f.node, f.seen->snapshot())
                                : "it has not joined yet: " + DescribeProgress(view),
                       f.node);
     }},
    {Row::kUnmarkedNotNeeded, "unmarked-not-needed",
     "no mark; Halted until the VM is gone that it replaces, which stays; not protected", "none",
     "name it on the Lease, then mark it",
     [](const Facts& f) {
       return !f.marked && f.waits_to_start && f.not_needed && !f.is_protected;
     },
     [](const Facts& f) {
       return MakeStep(StepKind::kMarkReplaced,
                       "VM " + ViewOf(f).vm->replaces->vm + " stays, whose place it was to take");
     }},
    {Row::kUnmarkedStart, "unmarked-start",
     "no mark; Halted until the VM is gone that it replaces, which is gone, or started by hand",
     "none", "start it, and begin its join-timeout",
     [](const Facts& f) {
       return !f.marked && ((f.waits_to_start && f.may_start) || f.started_by_hand);
     },
     [](const Facts& f) {
       return MakeStep(StepKind::kStart,
                       f.started_by_hand
                           ? "it was started by hand"
                           : "VM " + ViewOf(f).vm->replaces->vm + " is gone, whose place it takes");
     }},
    {Row::kUnmarkedHalted, "unmarked-halted",
     "no mark; Halted until the VM is gone that it replaces, which is there", "none",
     "wait; report it if that one stays",
     [](const Facts& f) { return !f.marked && f.waits_to_start; },
     [](const Facts& f) {
       const std::string& old = ViewOf(f).vm->replaces->vm;
       return f.not_needed ? MakeStep(StepKind::kReport, "VM " + old +
                                                             " stays, whose place it was to take, "
                                                             "and it is protected: delete one of "
                                                             "them")
                           : MakeStep(StepKind::kWait, "it starts once VM " + old + " is gone");
     }},
    {Row::kUnmarkedReplaced, "unmarked-replaced",
     "no mark; a VM that replaces it waits for its end, or has a node that is ready and eligible; "
     "and nothing keeps it",
     "links", "name it on the Lease, then mark it",
     [](const Facts& f) { return !f.marked && f.gives_way; },
     [](const Facts& f) {
       return MakeStep(StepKind::kMarkReplaced,
                       "VM " + f.successor->vm->name + " takes its place (" +
                           f.successor->vm->replaces->reason + ")",
                       f.node);
     }},
    {Row::kUnmarkedPublish, "unmarked-publish",
     "no mark, joined; published-host says other than where its instance runs", "ready",
     "write the node's metadata, then published-host",
     [](const Facts& f) { return !f.marked && f.joined && f.publish; },
     [](const Facts& f) {
       const VmView& view = ViewOf(f);
       Step step = MakeStep(StepKind::kPublishHost, "it runs on host " + view.host, f.node);
       step.value = view.host + " " + view.host_zone.value_or("");
       return step;
     }},
    {Row::kUnmarkedUnpublish, "unmarked-unpublish",
     "no mark, joined; has published-host, which the policy no longer asks for", "ready",
     "unset the node's metadata, then published-host",
     [](const Facts& f) { return !f.marked && f.joined && f.unpublish; },
     [](const Facts& f) {
       return MakeStep(StepKind::kUnpublishHost, "the policy no longer has publish_host", f.node);
     }},
    {Row::kUnmarkedOther, "unmarked-other", "no mark", "any other", "nothing",
     [](const Facts& f) { return !f.marked; },
     [](const Facts& f) {
       return MakeStep(StepKind::kNothing, f.joined ? "it has joined" : "it has no join deadline");
     }},

    {Row::kMarkUnreadable, "mark-unreadable", "its mark cannot be read", "any", "roll back",
     [](const Facts& f) { return !f.mark_readable; },
     [](const Facts&) {
       return MakeStep(StepKind::kRollBack, "its mark (annotation scale-in) cannot be read");
     }},
    {Row::kMarkOfAnother, "mark-of-another",
     "its mark names another uid: the VM was restored, or made from a copy", "any", "roll back",
     [](const Facts& f) { return f.of_another; },
     [](const Facts& f) {
       return MakeStep(StepKind::kRollBack, "its mark is that of the VM before it (uid " +
                                                ViewOf(f).vm->mark->vm_uid +
                                                "): it was restored or replaced");
     }},
    {Row::kMarkedForeignDrain, "marked-foreign-drain", "marked", "draining, not ours",
     "roll back: an operator's maintenance", [](const Facts& f) { return f.foreign_drain; },
     [](const Facts& f) {
       return MakeStep(StepKind::kRollBack,
                       Named(*f.node) + " is drained by another client: maintenance", f.node);
     }},
    {Row::kMarkedAmbiguous, "marked-ambiguous", "marked",
     "several nodes could be its node, or its node is another VM by an identity hint",
     "roll back, report", [](const Facts& f) { return f.ambiguous || f.contradicted; },
     [](const Facts& f) { return MakeStep(StepKind::kRollBack, ViewOf(f).link.explanation); }},
    {Row::kMarkedNotNamed, "marked-not-named",
     "marked, not for being broken, and not in names of the Lease's action", "any", "roll back",
     [](const Facts& f) { return !f.named; },
     [](const Facts&) {
       return MakeStep(StepKind::kRollBack,
                       "the Lease's action does not name it: its mark was written too late");
     }},
    {Row::kMarkedCanceled, "marked-canceled", "marked", "its drain, ours, was cancelled",
     "roll back", [](const Facts& f) { return f.canceled; },
     [](const Facts& f) {
       return MakeStep(StepKind::kRollBack,
                       "the drain of " + Named(*f.node) + " was cancelled by an operator", f.node);
     }},
    {Row::kMarkedTakenBack, "marked-taken-back", "marked, in back of the Lease's action", "ready",
     "roll back", [](const Facts& f) { return f.taken_back; },
     [](const Facts& f) {
       return MakeStep(StepKind::kRollBack, "a scale-out needs it: its removal is cancelled",
                       f.node);
     }},
    {Row::kMarkedProtected, "marked-protected", "marked; protected by its annotation",
     "or protected by its meta", "roll back, report", [](const Facts& f) { return f.is_protected; },
     [](const Facts& f) {
       return MakeStep(StepKind::kRollBack, "it was protected after its removal had begun", f.node);
     }},
    {Row::kMarkedRefused, "marked-refused",
     "marked for scale-in; its drain or its deletion refused for 60 s, its un-marking not refused",
     "not down", "roll back", [](const Facts& f) { return f.removal_refused; }, RollBackRefused},
    {Row::kMarkedEnabled, "marked-enabled", "marked",
     "its drain, ours, is complete, and it is eligible", "roll back: an operator enabled it",
     [](const Facts& f) { return f.complete && f.node->eligible; },
     [](const Facts& f) {
       return MakeStep(StepKind::kRollBack, Named(*f.node) + " was enabled again by an operator",
                       f.node);
     }},
    {Row::kMarkedCandidate, "marked-candidate", "marked",
     "none or gone, but a ready pool node that links to no VM and is younger", "roll back, report",
     [](const Facts& f) { return f.candidate != nullptr; },
     [](const Facts& f) {
       return MakeStep(StepKind::kRollBack,
                       "no node has its name, but " + Named(*f.candidate) + " could be it",
                       f.candidate);
     }},
    {Row::kMarkedNeverJoined, "marked-never-joined", "marked, never joined",
     "none (the whole list read again)", "delete",
     [](const Facts& f) { return f.node == nullptr && !f.joined; },
     [](const Facts&) { return MakeStep(StepKind::kDelete, "it never joined Nomad"); }},
    {Row::kMarkedNeverReady, "marked-never-ready", "marked for being broken, never ready",
     "initializing, without an allocation and without a drain of ours", "delete",
     [](const Facts& f) { return f.for_broken && f.never_used && !f.ours; },
     [](const Facts& f) {
       return DeleteUnlessHeld(f, Named(*f.node) + " was never ready");
     }},
    {Row::kMarkedGone, "marked-gone", "marked", "gone (GET by ID: 404)", "delete",
     [](const Facts& f) { return f.node == nullptr && f.node_gone; },
     [](const Facts& f) { return DeleteUnlessHeld(f, "its node is gone from Nomad"); }},
    {Row::kMarkedDown, "marked-down", "marked",
     "down, and the instance does not run or it has been down for 2 minutes", "delete",
     [](const Facts& f) { return f.down_for_good; },
     [](const Facts& f) {
       return DeleteUnlessHeld(f, Named(*f.node) + " is down");
     }},
    {Row::kMarkedCutOff, "marked-cut-off", "marked for being broken or unhealthy",
     "disconnected likewise, and no allocation on it is within its time", "delete",
     [](const Facts& f) { return (f.for_unhealthy || f.for_broken) && f.cut_off_for_good; },
     [](const Facts& f) {
       return DeleteUnlessHeld(f, Named(*f.node) + " is disconnected");
     }},
    {Row::kMarkedIdle, "marked-idle", "marked",
     "its drain, ours, is complete, it is ineligible and idle", "delete",
     [](const Facts& f) { return f.idle; },
     [](const Facts& f) {
       return DeleteUnlessHeld(f, Named(*f.node) + " is drained");
     }},
    {Row::kMarkedRecovered, "marked-recovered", "marked for being broken or unhealthy",
     "ready, not draining, no drain of ours", "roll back",
     [](const Facts& f) {
       return (f.for_unhealthy || f.for_broken) && f.recovered && !f.ours && !f.node->draining;
     },
     [](const Facts& f) {
       return MakeStep(StepKind::kRollBack, Named(*f.node) + " is ready by now", f.node);
     }},
    {Row::kMarkedLateForced, "marked-late-forced", "marked with force; past deadline and grace",
     "its drain, ours, runs or is complete", "delete",
     [](const Facts& f) { return f.late && f.force && f.ours && (f.node->draining || f.complete); },
     [](const Facts& f) {
       return DeleteUnlessHeld(f, "the drain of " + Named(*f.node) + kPastDeadline);
     }},
    {Row::kMarkedLate, "marked-late",
     "marked; past deadline and grace, or 10 s past a timed deadline and no drain of ours posted",
     "any other; in the second case ready or initializing", "roll back",
     [](const Facts& f) { return f.late || f.never_begun; }, RollBackLate},
    {Row::kMarkedDrainAgain, "marked-drain-again", "marked",
     "its drain, ours, has been complete for 10 s, and an allocation is to run there",
     "start the drain once more",
     [](const Facts& f) { return f.placed_late; },
     [](const Facts& f) {
       Step step = StartDrain(f);
       step.reason = Named(*f.node) + " got work while its drain began, and is drained once more";
       return step;
     }},
    {Row::kMarkedWaiting, "marked-waiting", "marked",
     "draining; or complete but not idle; or disconnected, or down but not for good",
     "wait, without a second drain",
     [](const Facts& f) {
       return f.node != nullptr && (f.node->draining || f.complete || !CanDrain(*f.node));
     },
     WaitForNode},
    {Row::kMarkedNoNode, "marked-no-node", "marked", "the mark's node has another name now", "wait",
     [](const Facts& f) { return f.node == nullptr; },
     [](const Facts& f) {
       return MakeStep(StepKind::kWait, "its node " + ViewOf(f).vm->mark->node_id +
                                            " exists, but no longer has its name");
     }},
    {Row::kMarkedStartDrain, "marked-start-drain", "marked", "any other",
     "start the drain with the time that is left", [](const Facts& f) { return f.node != nullptr; },
     StartDrain},
}};

}  // namespace

const std::span<const Rule> kRules = kTable;

std::string_view RowName(Row row) { return kTable.at(static_cast<std::size_t>(row)).name; }

Step Decide(const Facts& facts, std::span<const Rule> rules) {
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.when(facts); });
  if (rule == rules.end()) return {};
  Step step = rule->then(facts);
  step.row = rule->row;
  return step;
}

Step NextStep(const VmView& view, const PoolSnapshot& snapshot) {
  const Overlay seen(snapshot, view);
  return Decide(FactsOf(seen, nullptr));
}

Step NextStepOfGoneVm(const Node& node, const PoolSnapshot& snapshot) {
  const auto mark = nodepool::ParseDrainMark(node);
  return Decide(FactsOfGoneVm({&node, mark.value_or(nodepool::DrainMark())}, snapshot));
}

namespace {

// True if nothing shows that this Nomad is the pool's: the Lease has no record, and no VM of the
// pool has a node here.
bool IsOfNoKnownCluster(const PoolSnapshot& snapshot) {
  return snapshot.lease_cluster.empty() &&
         std::none_of(snapshot.vms().begin(), snapshot.vms().end(), [&](const VmView* view) {
           return IsPoolMember(*view, snapshot) && LinkedNode(*view, snapshot) != nullptr;
         });
}

// True if the step removes a VM because this Nomad does not know its node.
bool RestsOnAbsence(const Step& step) {
  switch (step.row) {
    case Row::kMarkedGone:
    case Row::kMarkedNeverJoined:
      return true;
    case Row::kUnmarkedBroken:
    case Row::kUnmarkedUnhealthy:
      return step.node_id.empty();
    default:
      return false;
  }
}

void LeaveAlone(Step* step) {
  step->kind = StepKind::kReport;
  step->reason +=
      "; it is kept, because neither it nor the pool's Lease has a record of its Nomad cluster, "
      "and "
      "no VM of the pool has a node in this one: run gc against the pool's Nomad, or delete the VM "
      "by hand";
}

}  // namespace

Decisions::Decisions(PoolSnapshot snapshot, std::span<const Rule> rules)
    : snapshot_(std::move(snapshot)), pool_(snapshot_) {
  entries_.reserve(snapshot_.vms().size());
  for (const VmView* view : snapshot_.vms()) {
    const Overlay seen(snapshot_, *view);
    entries_.push_back({view, Decide(FactsOf(seen, &pool_), rules)});
  }
  if (snapshot_.collected && IsOfNoKnownCluster(snapshot_)) {
    for (auto& [view, step] : entries_) {
      if (view->vm->nomad_cluster.empty() && RestsOnAbsence(step)) LeaveAlone(&step);
    }
  }
  if (!NomadProblem(snapshot_).empty()) return;
  const std::string pool = snapshot_.key.ToString();
  for (const OrphanedNode& gone : snapshot_.orphaned_nodes()) {
    if (gone.mark.pool != pool) continue;  // another pool's to purge
    const Step step = Decide(FactsOfGoneVm(gone, snapshot_), rules);
    if (step.kind == StepKind::kPurge) to_purge_.push_back(gone);
  }
}

const Decisions::Entry* Decisions::Find(std::string_view vm) const {
  const VmView* view = snapshot_.seen->FindVm(vm);
  // The entries are in the order of the Look's VMs.
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), view,
      [](const Entry& entry, const VmView* wanted) { return entry.view < wanted; });
  return view == nullptr || found == entries_.end() || found->view != view ? nullptr : &*found;
}

}  // namespace nomad_harvester::scaling
