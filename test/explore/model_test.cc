// SPDX-License-Identifier: Apache-2.0
// Tests of the model: its requests have the effects that they have in the real systems.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process.h"
#include "rest.h"
#include "visited.h"
#include "worker.h"
#include "world.h"

namespace nomad_harvester::explore {
namespace {

Configuration Two() { return {.name = "two"}; }

Act ActOn(ActKind kind, bool flag = false) {
  Act act{};
  act.kind = kind;
  act.phase = ActPhase::kSent;
  act.flag = flag ? 1 : 0;
  act.action = 1;
  return act;
}

Node& NodeOf(State& state) { return state.slots[0].nodes[0]; }

TEST(Nomad, a_drain_makes_the_node_ineligible_and_numbers_are_not_reused) {
  State state = InitialState(Two());
  Apply(Two(), 0, ActOn(ActKind::kStartDrain), &state);
  EXPECT_TRUE(NodeOf(state).Draining());
  EXPECT_EQ(NodeOf(state).eligible, 0U);
  EXPECT_EQ(NodeOf(state).cordon, Cordon::kOurs);
  const Bits number = NodeOf(state).number;
  Apply(Two(), 0, ActOn(ActKind::kStartDrain), &state);
  EXPECT_EQ(NodeOf(state).number, number) << "a running drain keeps its StartedAt";
  NodeOf(state).drain = DrainState::kComplete;
  Apply(Two(), 0, ActOn(ActKind::kStartDrain), &state);
  EXPECT_NE(NodeOf(state).number, number);
}

TEST(Nomad, a_node_that_is_purged_and_registers_again_does_not_reuse_the_number_of_a_drain) {
  const Configuration configuration = {.name = "purged", .vms = 1, .standing = 1};
  State state = InitialState(configuration);
  state.budgets.node_purged = state.budgets.node_return = 1;
  Apply(configuration, 0, ActOn(ActKind::kStartDrain), &state);
  const Bits number = NodeOf(state).number;
  NodeOf(state).power = Power::kDown;
  for (const EventKind kind : {EventKind::kNodePurged, EventKind::kJoins}) {
    std::vector<Successor> successors;
    ExpandWorld(configuration, state, &successors);
    const auto found = std::find_if(successors.begin(), successors.end(),
                                    [kind](const Successor& s) { return s.event.kind == kind; });
    ASSERT_NE(found, successors.end());
    state = found->state;
  }
  ASSERT_EQ(NodeOf(state).drain, DrainState::kNone);
  Apply(configuration, 0, ActOn(ActKind::kStartDrain), &state);
  EXPECT_NE(NodeOf(state).number, number);
}

TEST(Nomad, cancelling_with_mark_eligible_undoes_a_drain_that_has_ended_as_well) {
  State state = InitialState(Two());
  Apply(Two(), 0, ActOn(ActKind::kStartDrain), &state);
  NodeOf(state).drain = DrainState::kComplete;
  Apply(Two(), 0, ActOn(ActKind::kCancelDrain, true), &state);
  EXPECT_EQ(NodeOf(state).eligible, 1U);
  EXPECT_EQ(NodeOf(state).drain, DrainState::kComplete) << "only a running one is cancelled";
}

TEST(Nomad, refuses_to_enable_a_node_that_drains) {
  State state = InitialState(Two());
  Apply(Two(), 0, ActOn(ActKind::kStartDrain), &state);
  Apply(Two(), 0, ActOn(ActKind::kEnable), &state);
  EXPECT_EQ(NodeOf(state).eligible, 0U);
}

TEST(Nomad, an_operators_drain_must_not_be_touched_unless_it_began_after_our_last_read) {
  State state = InitialState(Two());
  NodeOf(state).drain = DrainState::kDraining;
  Act act = ActOn(ActKind::kStartDrain);
  State copy = state;
  EXPECT_EQ(Apply(Two(), 0, act, &copy), Violation::kForeignDrainTouched);
  act.excused = 1;
  EXPECT_EQ(Apply(Two(), 0, act, &state), Violation::kNone);
}

TEST(Kubernetes, a_write_makes_every_earlier_read_stale_and_a_stale_write_changes_nothing) {
  State state = InitialState(Two());
  state.slots[0].observations[0].act = ActOn(ActKind::kDelete);
  Apply(Two(), 0, ActOn(ActKind::kMark), &state);
  ASSERT_EQ(state.slots[0].vm.mark, MarkKind::kOurs);
  const Act stale = state.slots[0].observations[0].act;
  EXPECT_EQ(stale.stale, 1U);
  EXPECT_EQ(Apply(Two(), 0, stale, &state), Violation::kNone);
  EXPECT_TRUE(state.slots[0].vm.Stands());
}

TEST(Kubernetes, a_name_is_created_once) {
  State state = InitialState(Two());
  state.ceiling = 3;
  Apply(Two(), 2, ActOn(ActKind::kCreate), &state);
  EXPECT_TRUE(state.slots[2].vm.Stands());
  state.slots[2].vm.joined = 1;
  Apply(Two(), 2, ActOn(ActKind::kCreate), &state);
  EXPECT_EQ(state.slots[2].vm.joined, 1U) << "the second POST is a 409";
}

TEST(Invariant, I1_an_unmarked_vm_and_one_with_work_must_not_be_deleted) {
  State state = InitialState(Two());
  state.removals_left = 1;
  State unmarked = state;
  EXPECT_EQ(Apply(Two(), 0, ActOn(ActKind::kDelete), &unmarked), Violation::kDeletedUnmarked);
  state.slots[0].vm.mark = MarkKind::kOurs;
  State busy = state;
  EXPECT_EQ(Apply(Two(), 0, ActOn(ActKind::kDelete), &busy), Violation::kDeletedWithWork);
  NodeOf(state) = {};
  EXPECT_EQ(Apply(Two(), 0, ActOn(ActKind::kDelete), &state), Violation::kNone);
}

TEST(Invariant, I2_and_I3_count) {
  State state = InitialState(Two());
  state.slots[0].vm.mark = MarkKind::kOurs;
  NodeOf(state) = {};
  EXPECT_EQ(Apply(Two(), 0, ActOn(ActKind::kDelete), &state), Violation::kTooManyRemoved);
  State full = InitialState(Two());
  EXPECT_EQ(Apply(Two(), 2, ActOn(ActKind::kCreate), &full), Violation::kTooManyCreated);
}

TEST(Invariant, I4_the_node_of_a_vm_without_a_mark_is_enabled_again) {
  const Configuration configuration = Two();
  State state = InitialState(configuration);
  Apply(configuration, 0, ActOn(ActKind::kStartDrain), &state);
  NodeOf(state).drain = DrainState::kComplete;
  NodeOf(state).work = Work::kIdle;
  DecisionCache cache(configuration, {});
  EXPECT_EQ(Rest(configuration, cache).Check(state, nullptr), Violation::kNone);
  DecisionCache without(configuration, {.off = scaling::Row::kUnmarkedDrained});
  EXPECT_EQ(Rest(configuration, without).Check(state, nullptr), Violation::kLeftIneligible);
}

TEST(Invariant, I5_a_pool_in_the_middle_of_a_removal_converges_without_the_vm) {
  const Configuration configuration = Two();
  DecisionCache cache(configuration, {});
  State state = InitialState(configuration);
  state.slots[0].vm.mark = MarkKind::kOurs;
  state.slots[0].naming.named = 1;
  state.removals_left = 1;
  std::vector<std::string> lines;
  TraceOutput output{.labels = kOwnNames, .lines = lines};
  EXPECT_EQ(Rest(configuration, cache).Check(state, &output), Violation::kNone);
  EXPECT_FALSE(lines.empty());
  EXPECT_EQ(lines.front(), "  the drain of node a0 is started (marked-start-drain)");
}

// A VM whose removal has begun: it is marked, and the Lease names it.
State Marked(const Configuration& configuration) {
  State state = InitialState(configuration);
  state.slots[0].vm.mark = MarkKind::kOurs;
  state.slots[0].naming.named = 1;
  state.removals_left = 1;
  return state;
}

std::vector<std::string> LinesOf(const Configuration& configuration, const State& state) {
  DecisionCache cache(configuration, {});
  std::vector<std::string> lines;
  TraceOutput output{.labels = kOwnNames, .lines = lines};
  EXPECT_EQ(Rest(configuration, cache).Check(state, &output), Violation::kNone);
  return lines;
}

TEST(Time, passes_a_deadline_before_the_grace) {
  const Configuration configuration = {.name = "hanging", .hanging = true};
  State state = Marked(configuration);
  ASSERT_TRUE(LetTimePass(configuration, &state));
  EXPECT_EQ(state.slots[0].vm.due, 1U);
  EXPECT_EQ(state.slots[0].vm.late, 0U);
  ASSERT_TRUE(LetTimePass(configuration, &state));
  EXPECT_EQ(state.slots[0].vm.late, 1U);
  EXPECT_FALSE(LetTimePass(configuration, &state));
}

TEST(Rule, C9_a_removal_whose_drain_did_not_begin_by_the_deadline_is_rolled_back) {
  State state = Marked(Two());
  state.slots[0].vm.due = 1;
  EXPECT_EQ(LinesOf(Two(), state).front(), "  the mark of web-a is removed (marked-late)");
  DecisionCache without(Two(), {.off = scaling::Row::kMarkedLate});
  EXPECT_EQ(Rest(Two(), without).Check(state, nullptr), Violation::kDrainTooLate);
}

TEST(Rule, L6_a_removal_that_the_lease_cancels_is_rolled_cancel_after_a_kill) {
  State state = Marked(Two());
  state.slots[0].naming.cancel = 1;
  EXPECT_EQ(LinesOf(Two(), state).front(),
            "  the mark of web-a is removed (marked-removal-cancelled)");
  DecisionCache without(Two(), {.off = scaling::Row::kMarkedRemovalCancelled});
  EXPECT_EQ(Rest(Two(), without).Check(state, nullptr), Violation::kNotCancelled);
}

TEST(Rule, L6_a_name_stays_in_cancel_while_its_vm_is_marked_and_its_node_is_ready) {
  const Configuration two = Two();
  DecisionCache cache(two, {});
  const auto cancel_after = [&](State state) {
    state.slots[0].naming.cancel = 1;
    const Worker worker(two, cache, &state, 0);
    worker.Acquire(Mode::kResume);
    worker.ReadNodes(true);
    worker.ReadVms();
    worker.CloseRecord();
    return state.slots[0].naming.cancel;
  };
  State state = Marked(two);
  EXPECT_EQ(cancel_after(state), 1U);
  NodeOf(state).power = Power::kDown;
  EXPECT_EQ(cancel_after(state), 0U) << "its removal goes on";
  EXPECT_EQ(cancel_after(InitialState(two)), 0U) << "it is back";
}

TEST(Rule, L3_what_was_refused_is_remembered_until_the_process_is_killed_or_the_mark_is_gone) {
  const Configuration two = Two();
  DecisionCache cache(two, {});
  State state = Marked(two);
  const Worker worker(two, cache, &state, 0);
  const auto looks = [&] {
    worker.Acquire(Mode::kResume);
    worker.ReadNodes(true);
    worker.ReadVms();
    return worker.AdviceOn(0).row;
  };
  EXPECT_EQ(looks(), scaling::Row::kMarkedStartDrain);
  worker.RecordReply(0, ActOn(ActKind::kStartDrain), true);
  worker.Release();
  EXPECT_EQ(looks(), scaling::Row::kMarkedRefused);
  State unmarked = state;
  const Worker rolled_back(two, cache, &unmarked, 0);
  rolled_back.RecordReply(0, ActOn(ActKind::kRemoveMark), false);
  EXPECT_EQ(rolled_back.AdviceOn(0).row, scaling::Row::kMarkedStartDrain);
  worker.Forget();
  EXPECT_EQ(looks(), scaling::Row::kMarkedStartDrain);
}

// Two Nomads, of which the second process asks the other one.
Configuration Strangers() {
  return {.name = "strangers", .processes = 2, .two_nomads = true, .stranger = true};
}

TEST(Nomad, one_does_not_know_the_nodes_of_the_other_and_a_request_to_it_changes_none) {
  State state = InitialState(Strangers());
  const Node& others = state.slots[1].nodes[0];
  EXPECT_EQ(Visible(NodeOf(state), false).present, 1U);
  EXPECT_EQ(Visible(NodeOf(state), true).present, 0U);
  EXPECT_EQ(Visible(others, false).present, 0U);
  EXPECT_EQ(Visible(others, true).present, 1U);
  Act act = ActOn(ActKind::kStartDrain);
  act.other = 1;
  Apply(Strangers(), 0, act, &state);
  EXPECT_FALSE(NodeOf(state).Draining());
}

TEST(Nomad, C15_its_keys_change_once_nothing_else_does_and_the_record_follows) {
  State state = InitialState(Strangers());
  ASSERT_TRUE(LetTimePass(Strangers(), &state));
  EXPECT_EQ(KeysOf(Strangers(), state, false), Keys::kSecond);
  EXPECT_THAT(LinesOf(Strangers(), state),
              testing::Contains("  the cluster's keys are recorded on web-a (unmarked-cluster)"));
}

TEST(Rule, C15_keys_that_were_read_before_the_address_moved_prove_nothing) {
  const Configuration address = {.name = "address", .two_nomads = true};
  DecisionCache cache(address, {});
  const auto deletes = [&](bool reads_keys) {
    State state = Marked(address);
    const Worker worker(address, cache, &state, 0);
    worker.Acquire(Mode::kResume);
    worker.ReadNodes(true);
    state.asks_other = 1;
    worker.ReadNodes(true, reads_keys);
    worker.ReadVms();
    const bool launched = worker.Launch(false);
    if (launched) worker.Read(0);
    return std::pair(launched, state.slots[0].observations[0].act.Busy());
  };
  EXPECT_EQ(deletes(true), std::pair(false, false)) << "the VM is another Nomad's";
  EXPECT_EQ(deletes(false), std::pair(true, false)) << "its first read compares the keys";
}

TEST(Invariant, I1_that_the_node_of_a_guest_which_is_held_is_down_says_nothing) {
  State state = Marked(Two());
  NodeOf(state).power = Power::kDownForLong;
  State held = state;
  held.slots[0].vm.held = 1;
  EXPECT_EQ(Apply(Two(), 0, ActOn(ActKind::kDelete), &state), Violation::kNone);
  EXPECT_EQ(Apply(Two(), 0, ActOn(ActKind::kDelete), &held), Violation::kDeletedWithWork);
}

TEST(Invariant, I1_the_mark_of_the_vm_before_it_permits_no_deletion) {
  State state = Marked(Two());
  NodeOf(state) = {};
  state.slots[0].vm.uid = 1;
  EXPECT_EQ(Apply(Two(), 0, ActOn(ActKind::kDelete), &state), Violation::kDeletedByOldMark);
}

TEST(Invariant, C15_no_vm_is_deleted_undrained_while_the_nodes_of_the_others_are_lost) {
  const Configuration three = {.name = "three", .vms = 3, .standing = 3};
  State state = Marked(three);
  for (Slot& slot : state.slots) slot.nodes[0].power = Power::kDownForLong;
  State one_lost = state;
  one_lost.slots[1].nodes[0].power = Power::kReady;
  EXPECT_EQ(Apply(three, 0, ActOn(ActKind::kDelete), &state), Violation::kDeletedByMassLoss);
  EXPECT_EQ(Apply(three, 0, ActOn(ActKind::kDelete), &one_lost), Violation::kNone);
}

TEST(Invariant, C15_a_node_that_was_lost_after_its_drain_began_is_part_of_a_mass_loss) {
  const Configuration two = Two();
  State state = Marked(two);
  for (Slot& slot : state.slots) slot.nodes[0].power = Power::kDownForLong;
  State marked_when_lost = state;
  marked_when_lost.slots[1].vm.mark = state.slots[0].vm.mark;
  State begun = marked_when_lost;
  for (Slot& slot : begun.slots) slot.nodes[0].ours = 1;
  EXPECT_EQ(Apply(two, 0, ActOn(ActKind::kDelete), &marked_when_lost), Violation::kNone);
  EXPECT_EQ(Apply(two, 0, ActOn(ActKind::kDelete), &begun), Violation::kDeletedByMassLoss);
}

// A VM whose guest has registered, and whose node was never ready.
Configuration Unready() { return {.name = "unready", .vms = 1, .standing = 1, .joining = 1}; }
State Registered(Power power) {
  State state = InitialState(Unready());
  state.slots[0].vm.joined = 1;
  NodeOf(state).present = NodeOf(state).eligible = 1;
  NodeOf(state).power = power;
  NodeOf(state).NoteReady();
  return state;
}
State Broken(Power power) {
  State state = Registered(power);
  state.slots[0].vm.overdue = 1;
  state.slots[0].vm.mark = MarkKind::kOurs;
  state.slots[0].vm.mark_reason = Reason::kBroken;
  return state;
}

TEST(Nomad, C17_a_node_is_ready_if_it_is_eligible_or_was_drained_and_has_its_driver) {
  const State state = Registered(Power::kReady);
  Node node = state.slots[0].nodes[0];
  EXPECT_TRUE(node.IsReady());
  node.eligible = 0;
  EXPECT_FALSE(node.IsReady());
  node.drain = DrainState::kCanceled;
  EXPECT_TRUE(node.IsReady()) << "by an operator";
  node.ours = 1;
  EXPECT_TRUE(node.IsReady()) << "it was eligible before";
  node.was = 1;
  EXPECT_FALSE(node.IsReady()) << "it never was";
  node.was = 0;
  node.sick = 1;
  EXPECT_FALSE(node.IsReady());
  EXPECT_FALSE(Registered(Power::kInitializing).slots[0].nodes[0].IsReady());
}

TEST(Invariant, I1_a_vm_that_was_never_ready_is_deleted_undrained_only_without_an_allocation) {
  State state = Broken(Power::kInitializing);
  State busy = state;
  NodeOf(busy).work = Work::kRunning;
  State victim = state;
  victim.removals_left = 1;
  victim.slots[0].vm.mark_reason = Reason::kScaleIn;
  EXPECT_EQ(Apply(Unready(), 0, ActOn(ActKind::kDelete), &state), Violation::kNone);
  EXPECT_EQ(Apply(Unready(), 0, ActOn(ActKind::kDelete), &busy), Violation::kDeletedNeverDrained);
  EXPECT_EQ(Apply(Unready(), 0, ActOn(ActKind::kDelete), &victim), Violation::kDeletedNeverDrained)
      << "a victim is drained";
}

TEST(Invariant, I1_a_node_that_is_disconnected_is_lost_once_no_allocation_is_within_its_time) {
  State state = Marked(Two());
  state.slots[0].vm.mark_reason = Reason::kUnhealthy;
  NodeOf(state).power = Power::kDisconnectedForLong;
  State ended = state;
  NodeOf(ended).work = Work::kIdle;
  State short_ago = ended;
  NodeOf(short_ago).power = Power::kDisconnected;
  EXPECT_EQ(Apply(Two(), 0, ActOn(ActKind::kDelete), &state), Violation::kDeletedWithWork);
  EXPECT_EQ(Apply(Two(), 0, ActOn(ActKind::kDelete), &ended), Violation::kNone);
  EXPECT_EQ(Apply(Two(), 0, ActOn(ActKind::kDelete), &short_ago), Violation::kDeletedWithWork);
}

TEST(Invariant, C17_a_vm_that_is_ready_or_whose_node_comes_back_is_not_marked) {
  State ready = Registered(Power::kReady);
  EXPECT_EQ(Apply(Unready(), 0, ActOn(ActKind::kMarkBroken), &ready), Violation::kTakenForBroken);
  State state = InitialState(Two());
  State away = state;
  NodeOf(away).power = Power::kDisconnectedForLong;
  State ended = away;
  NodeOf(ended).work = Work::kIdle;
  const Act act = ActOn(ActKind::kMarkUnhealthy);
  EXPECT_EQ(Apply(Two(), 0, act, &state), Violation::kTakenForUnhealthy);
  EXPECT_EQ(Apply(Two(), 0, act, &away), Violation::kTakenForUnhealthy);
  EXPECT_EQ(Apply(Two(), 0, act, &ended), Violation::kNone);
}

TEST(Invariant, C17_only_a_vm_whose_node_was_ready_is_recorded_as_ready) {
  State joins = Registered(Power::kInitializing);
  State later = joins;
  State at_once = Registered(Power::kReady);
  EXPECT_EQ(Apply(Unready(), 0, ActOn(ActKind::kRecordJoin), &joins), Violation::kNone);
  EXPECT_EQ(joins.slots[0].vm.was_ready, 0U);
  EXPECT_EQ(Apply(Unready(), 0, ActOn(ActKind::kRecordReady), &later), Violation::kReadyTooEarly);
  EXPECT_EQ(Apply(Unready(), 0, ActOn(ActKind::kRecordJoin, true), &at_once), Violation::kNone);
  EXPECT_EQ(at_once.slots[0].vm.was_ready, 1U);
}

TEST(Rule, C17_what_is_never_ready_is_removed_by_its_deadline) {
  using testing::Contains;
  const std::string marked = "  web-a is marked for being broken (unmarked-broken)";
  const std::string drained = "  the drain of node a0 is started (marked-start-drain)";
  const auto lines = LinesOf(Unready(), Registered(Power::kInitializing));
  EXPECT_THAT(lines, Contains(marked));
  EXPECT_THAT(lines, Contains("  web-a is deleted (marked-never-ready)"));
  State sick = Registered(Power::kReady);
  NodeOf(sick).sick = 1;
  EXPECT_THAT(LinesOf(Unready(), sick), Contains(drained));
  State ineligible = Registered(Power::kReady);
  NodeOf(ineligible).eligible = 0;
  EXPECT_THAT(LinesOf(Unready(), ineligible), Contains(drained));
  State gone = Registered(Power::kReady);
  NodeOf(gone) = {};
  gone.slots[0].vm.running = 0;
  EXPECT_THAT(LinesOf(Unready(), gone), Contains("  web-a is deleted (marked-gone)"));
  DecisionCache without(Unready(), {.off = scaling::Row::kUnmarkedBroken});
  EXPECT_EQ(Rest(Unready(), without).Check(sick, nullptr), Violation::kBrokenLeft);
}

TEST(Rule, C17_that_a_vm_is_ready_is_recorded_once_its_node_is) {
  const State state = Registered(Power::kReady);
  EXPECT_THAT(LinesOf(Unready(), state),
              testing::ElementsAre("  that web-a is ready is recorded (unmarked-ready)"));
  DecisionCache without(Unready(), {.off = scaling::Row::kUnmarkedReady});
  EXPECT_EQ(Rest(Unready(), without).Check(state, nullptr), Violation::kReadyLeft);
}

// An old VM, and a new one that takes its place.
Configuration Replacing(bool old_first = false) {
  return {.name = "replacing", .vms = 3, .standing = 1, .replaces = true, .old_first = old_first};
}
State Replaced(bool old_first = false) {
  State state = InitialState(Replacing(old_first));
  EXPECT_EQ(Apply(Replacing(old_first), 1, ActOn(ActKind::kCreate, true), &state),
            Violation::kNone);
  return state;
}
// The new VM's node is ready.
State Swapping() {
  State state = Replaced();
  Slot& slot = state.slots[1];
  slot.vm.joined = slot.vm.was_ready = 1;
  slot.nodes = state.slots[0].nodes;
  return state;
}

TEST(Invariant, R1_a_place_gets_one_new_vm) {
  State state = Replaced();
  EXPECT_EQ(Apply(Replacing(), 1, ActOn(ActKind::kCreate, true), &state), Violation::kNone)
      << "the same name: 409";
  EXPECT_EQ(Apply(Replacing(), 2, ActOn(ActKind::kCreate, true), &state),
            Violation::kReplacedTwice);
}

TEST(Invariant, R3_a_vm_gives_way_once_the_new_one_takes_work) {
  Act act = ActOn(ActKind::kMarkReplaced);
  act.row = static_cast<Bits>(scaling::Row::kUnmarkedReplaced);
  const auto check = [&](const State& state, bool old_first) {
    const Configuration configuration = Replacing(old_first);
    return CheckSuccessor(configuration, WorldView(configuration, state, false), 0, act);
  };
  State ineligible = Swapping();
  ineligible.slots[1].nodes[0].eligible = 0;
  EXPECT_EQ(check(InitialState(Replacing()), false), Violation::kGivesWayTooEarly);
  EXPECT_EQ(check(Replaced(), false), Violation::kGivesWayTooEarly);
  EXPECT_EQ(check(ineligible, false), Violation::kGivesWayTooEarly);
  EXPECT_EQ(check(Swapping(), false), Violation::kNone);
  EXPECT_EQ(check(Replaced(true), true), Violation::kNone) << "the old one goes first";
}

TEST(Invariant, R8_a_vm_that_waits_starts_once_the_old_one_is_gone) {
  State state = Replaced(true);
  EXPECT_EQ(state.slots[1].vm.running, 0U);
  State gone = state;
  gone.slots[0].vm = {};
  EXPECT_EQ(Apply(Replacing(true), 1, ActOn(ActKind::kStart), &state), Violation::kStartsTooEarly);
  EXPECT_EQ(Apply(Replacing(true), 1, ActOn(ActKind::kStart), &gone), Violation::kNone);
  EXPECT_EQ(gone.slots[1].vm.running, 1U);
}

TEST(Rule, R3_the_old_vm_is_removed_and_the_new_one_stays) {
  const auto lines = LinesOf(Replacing(), Swapping());
  EXPECT_EQ(lines.front(), "  web-a is marked for a replacement (unmarked-replaced)");
  EXPECT_EQ(lines.back(), "  time passes");
  DecisionCache without(Replacing(), {.off = scaling::Row::kUnmarkedReplaced});
  EXPECT_EQ(Rest(Replacing(), without).Check(Swapping(), nullptr), Violation::kPlaceLeft);
}

TEST(Rule, R1_a_vm_counts_once_it_is_alone_in_its_place) {
  DecisionCache cache(Replacing(), {});
  const auto count = [&](const State& state) {
    return static_cast<int>(cache.Decide(WorldView(Replacing(), state, false)).count);
  };
  State state = Swapping();
  EXPECT_EQ(count(state), 1);
  State counted = state;
  Apply(Replacing(), 1, ActOn(ActKind::kEndReplacement), &counted);
  EXPECT_EQ(count(counted), 2) << "a Scale goes first (R4)";
  State kept = state;
  Apply(Replacing(), 0, ActOn(ActKind::kKeepReplaced), &kept);
  EXPECT_EQ(count(kept), 2) << "the old one stays (R6)";
  Apply(Replacing(), 0, ActOn(ActKind::kMarkReplaced), &state);
  EXPECT_EQ(count(state), 1);
}

TEST(Canonical, slots_are_interchangeable) {
  State state = InitialState(Two());
  state.slots[0].vm.late = 1;
  State other = InitialState(Two());
  other.slots[1].vm.late = 1;
  Labels labels = kOwnNames;
  Canonicalize(2, &state);
  Canonicalize(2, &other, &labels);
  EXPECT_EQ(HashOf(state), HashOf(other));
  EXPECT_NE(HashOf(state), HashOf(InitialState(Two())));
}

TEST(Visited, returns_the_path_to_a_state) {
  Visited visited;
  EXPECT_TRUE(visited.Insert({1, 1}, Visited::kRoot));
  EXPECT_TRUE(visited.Insert({2, 2}, 0));
  for (std::uint32_t i = 2; i < 3000; ++i) EXPECT_TRUE(visited.Insert({i + 1, i + 1}, 1));
  EXPECT_FALSE(visited.Insert({2, 2}, 5));
  const std::vector<StateHash> path = visited.PathTo(2500);
  ASSERT_EQ(path.size(), 3U);
  EXPECT_EQ(path[1].low, 2U);
  EXPECT_EQ(path[2].low, 2501U);
}

}  // namespace
}  // namespace nomad_harvester::explore
