// SPDX-License-Identifier: Apache-2.0
#include "rules/event_text.h"

#include <set>
#include <string>

#include "nomad_harvester/scaling/step_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::scaling {
namespace {

using harvester::VmEvent;
using testing::HasSubstr;

PoolSnapshot EmptySnapshot() {
  return {.key = {.ns = "nomad", .pool = "web"},
          .seen = std::make_shared<const Snapshot>(Observation{})};
}

VmView View() {
  VmView view;
  view.vm.Change().name = "web-1";
  view.vm.Change().uid = "u-1";
  view.vm.Change().action_id = "a-made";
  return view;
}

VmView Marked() {
  VmView view = View();
  view.vm.Change().has_mark = true;
  view.vm.Change().mark = harvester::Mark{.action = "a-removes"};
  return view;
}

VmEvent Story(StepKind kind, Row row, const VmView& view = View(), const std::string& node = "") {
  return EventsOf({.kind = kind, .row = row, .node_id = node, .reason = "because"}, view,
                  EmptySnapshot())
      .at(0);
}

TEST(EventText, T1_every_act_but_a_note_of_the_plugins_own_has_one) {
  const std::set<StepKind> own_notes = {StepKind::kRecordRolledBack, StepKind::kRecordCluster,
                                        StepKind::kRenewToken, StepKind::kPublishHost,
                                        StepKind::kUnpublishHost};
  for (int i = 0; i <= static_cast<int>(StepKind::kPurge); ++i) {
    const auto kind = static_cast<StepKind>(i);
    const bool expected = kind == StepKind::kReport || (IsAct(kind) && !own_notes.contains(kind));
    EXPECT_EQ(!EventsOf({.kind = kind}, View(), EmptySnapshot()).empty(), expected)
        << StepName(kind);
  }
}

TEST(EventText, T1_says_what_was_done_why_on_which_node_and_by_which_action) {
  const VmEvent event = Story(StepKind::kStartDrain, Row::kMarkedStartDrain, Marked(), "n-1");
  EXPECT_EQ(event.vm, "web-1");
  EXPECT_EQ(event.uid, "u-1");
  EXPECT_EQ(event.reason, "DrainStarted");
  EXPECT_EQ(event.action, "Drain");
  EXPECT_EQ(event.note, "because; Nomad node n-1; action a-removes");
  EXPECT_FALSE(event.warning);
}

TEST(EventText, a_join_belongs_to_the_action_that_made_the_vm) {
  EXPECT_EQ(Story(StepKind::kRecordJoin, Row::kUnmarkedJoins).reason, "Registered");
  Step ready{.kind = StepKind::kRecordJoin, .row = Row::kUnmarkedJoins};
  ready.node_is_ready = true;
  EXPECT_EQ(EventsOf(ready, View(), EmptySnapshot()).at(0).reason, "Ready");
  EXPECT_EQ(Story(StepKind::kRecordReady, Row::kUnmarkedReady).reason, "Ready");
  EXPECT_THAT(Story(StepKind::kRecordJoin, Row::kUnmarkedJoins).note, HasSubstr("action a-made"));
}

TEST(EventText, a_removal_that_is_cancelled_is_no_failure) {
  EXPECT_EQ(Story(StepKind::kRollBack, Row::kMarkedRemovalCancelled, Marked()).reason,
            "RemovalCancelled");
  EXPECT_FALSE(Story(StepKind::kRollBack, Row::kMarkedRemovalCancelled, Marked()).warning);
  EXPECT_EQ(Story(StepKind::kRollBack, Row::kMarkedLate, Marked()).reason, "RolledBack");
  EXPECT_TRUE(Story(StepKind::kRollBack, Row::kMarkedLate, Marked()).warning);
}

TEST(EventText, C18_a_deletion_in_spite_of_a_hold_is_a_warning) {
  Step step{.kind = StepKind::kDelete, .row = Row::kMarkedIdle, .reason = "because"};
  EXPECT_FALSE(EventsOf(step, Marked(), EmptySnapshot()).at(1).warning);
  step.is_held = true;
  EXPECT_TRUE(EventsOf(step, Marked(), EmptySnapshot()).at(1).warning);
}

TEST(EventText, a_broken_vm_has_missed_its_deadline_or_does_not_start) {
  VmView fails = View();
  fails.start_failure = harvester::StartFailure{.reason = "no host"};
  for (const auto& [kind, row] : {std::pair(StepKind::kMarkBroken, Row::kUnmarkedBroken),
                                  std::pair(StepKind::kReport, Row::kUnmarkedBrokenKept)}) {
    EXPECT_EQ(Story(kind, row).reason, "JoinTimeout");
    EXPECT_EQ(Story(kind, row, fails).reason, "StartFailed");
    EXPECT_TRUE(Story(kind, row).warning);
  }
}

TEST(EventText, what_only_an_operator_can_solve_is_a_warning) {
  EXPECT_EQ(Story(StepKind::kReport, Row::kUnmarkedAmbiguous).reason, "NeedsOperator");
  EXPECT_TRUE(Story(StepKind::kReport, Row::kUnmarkedAmbiguous).warning);
  EXPECT_EQ(Story(StepKind::kReport, Row::kUnmarkedUnhealthyKept).reason, "Unhealthy");
}

TEST(EventText, T1_creation_and_choice_say_from_to_and_the_agents_reason) {
  PoolSnapshot pool;
  pool.key = {.ns = "nomad", .pool = "web"};
  pool.action = harvester::LeaseAction{.id = "a-1", .from = 2, .to = 5};
  EXPECT_EQ(EventOfAction(Direction::kOut, "web-1", "u-1", pool, "a-1", "load is high").note,
            "created: pool nomad/web from 2 to 5; load is high; action a-1");
  EXPECT_EQ(EventOfAction(Direction::kIn, "web-1", "u-1", pool, "a-1", "").note,
            "chosen for removal: pool nomad/web from 2 to 5; action a-1");
  EXPECT_EQ(EventOfAction(Direction::kOut, "web-1", "u-1", pool, "a-0", "").note,
            "created: pool nomad/web; action a-0")
      << "a name that an earlier action left over";
}

TEST(EventText, L3_a_refusal_says_what_was_refused_and_by_what_error) {
  const VmEvent event = EventOfRefusal(View().vm, "delete", "delete the VM",
                                       absl::PermissionDeniedError("not allowed"));
  EXPECT_EQ(event.reason, "RemovalRefused");
  EXPECT_TRUE(event.warning);
  EXPECT_THAT(event.note, HasSubstr("refused to delete the VM"));
  EXPECT_THAT(event.note, HasSubstr("not allowed"));
}

}  // namespace
}  // namespace nomad_harvester::scaling
