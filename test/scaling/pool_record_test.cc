// SPDX-License-Identifier: Apache-2.0
//
// The record on the pool's Lease before and after a run.

#include "rules/pool_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/back_off.h"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

PoolRecord RecordOf(std::set<std::string> names, std::map<std::string, std::string> create) {
  PoolRecord record;
  record.action = harvester::LeaseAction{
      .id = "act", .from = 0, .to = 3, .names = std::move(names), .create = std::move(create)};
  return record;
}

PoolRecord Before(const PoolRecord& record, const PoolSnapshot& snapshot, std::size_t vm,
                  StepKind kind) {
  return RecordBefore(record, snapshot, {{&snapshot.look().vms[vm], kind}}, "new-id");
}

TEST(RecordBefore, C10_a_name_leaves_create_once_its_vm_is_observed) {
  World world;
  const PoolSnapshot snapshot = world.With(Vm("a")).Snapshot();
  const PoolRecord record = RecordOf({"a", "b"}, {{"a", "act"}, {"b", "act"}});
  const PoolRecord before = RecordBefore(record, snapshot, {}, "new-id");
  EXPECT_THAT(before.action->create, ElementsAre(Pair("b", "act")));
  EXPECT_THAT(before.action->names, ElementsAre("a", "b"));
  EXPECT_EQ(Before(before, snapshot, 0, StepKind::kRecordJoin), before)
      << "what removes nothing costs no request";
}

TEST(RecordBefore, an_unhealthy_vm_is_named_before_it_is_marked) {
  World world;
  const PoolSnapshot snapshot = world.With(Vm("a").Joined()).Snapshot();
  const PoolRecord named = Before(RecordOf({"z"}, {}), snapshot, 0, StepKind::kMarkUnhealthy);
  EXPECT_THAT(named.action->names, ElementsAre("a", "z"));
  EXPECT_EQ(named.action->id, "act");
}

TEST(RecordBefore, R5_a_new_vm_that_was_ready_and_is_lost_stops_the_roll_out) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a")).With(Vm("b").Joined().Replaces("a", "drifted"));
  const PoolSnapshot snapshot = world.Snapshot();
  const auto before = [&](std::size_t vm) {
    return RecordBefore({}, snapshot, {{&snapshot.look().vms[vm], StepKind::kMarkUnhealthy}}, "id");
  };
  ASSERT_TRUE(before(1).replacement.has_value());
  EXPECT_EQ(before(1).replacement->vm, "b");
  EXPECT_FALSE(before(0).replacement.has_value());
}

TEST(RecordBefore, C11_without_an_action_a_new_one_names_no_vm_that_is_marked_already) {
  World world;
  world.With(Vm("a").Joined()).With(Vm("b").Joined()).With(Vm("m").Joined().Marked());
  const PoolSnapshot snapshot = world.Snapshot();
  const PoolRecord record = Before({}, snapshot, 0, StepKind::kMarkUnhealthy);
  ASSERT_TRUE(record.action.has_value());
  EXPECT_EQ(record.action->id, "new-id");
  EXPECT_THAT(record.action->names, ElementsAre("a"));
  EXPECT_EQ(record.action->from, 2);
  EXPECT_EQ(record.action->to, 2);
}

TEST(RecordAfter, an_action_with_nothing_unfinished_leaves_the_lease) {
  World world;
  const PoolSnapshot last = world.With(Vm("a").Joined()).Snapshot();
  EXPECT_EQ(RecordAfter(RecordOf({"a", "gone"}, {{"a", "act"}}), {.last = last}).action,
            std::nullopt);
}

TEST(RecordAfter, L6_a_name_leaves_back_only_by_the_word_of_its_own_nomad) {
  const auto back_after = [](const std::string& keys) {
    World world;
    world.Raw().nomad_cluster = keys;
    world.With(Vm("a").Joined().Marked().OfCluster("k1"));
    PoolRecord record = RecordOf({"a"}, {});
    record.action->back = {"a"};
    return RecordAfter(record, {.last = world.Snapshot()}).action->back;
  };
  EXPECT_THAT(back_after("k1"), IsEmpty()) << "its node is gone, and its removal goes on";
  EXPECT_THAT(back_after("k2"), ElementsAre("a"));
}

TEST(RecordAfter, C10_names_whose_vm_was_never_created_stay_for_the_next_scale) {
  World world;
  const PoolSnapshot last = world.With(Vm("a").Joined()).Snapshot();
  const PoolRecord after =
      RecordAfter(RecordOf({"a", "b"}, {{"a", "x"}, {"b", "y"}}), {.last = last});
  ASSERT_TRUE(after.action.has_value());
  EXPECT_THAT(after.action->create, ElementsAre(Pair("b", "y")));
  EXPECT_THAT(after.action->names, ElementsAre("b"));
}

TEST(RecordAfter, C10_a_name_whose_vm_was_observed_leaves_even_if_the_vm_was_deleted) {
  World world;
  const PoolSnapshot last = world.Snapshot();
  EXPECT_EQ(RecordAfter(RecordOf({"a"}, {{"a", "x"}}), {.last = last, .seen = {"a"}}).action,
            std::nullopt);
}

TEST(RecordAfter, C11_marked_vms_stay_named_and_others_do_not_become_so) {
  World world;
  world.With(Vm("late").Joined().Marked()).With(Vm("m").Joined().Marked());
  const PoolSnapshot last = world.Snapshot();
  EXPECT_THAT(RecordAfter(RecordOf({"m", "n"}, {}), {.last = last}).action->names,
              ElementsAre("m"));
}

TEST(RecordAfter, C10_vms_that_are_gone_stay_named_while_something_is_left_of_them) {
  World world;
  const PoolSnapshot snapshot = world.Snapshot();
  const PoolRecord record = RecordOf({"clean", "left"}, {});
  const PoolRecord after = RecordAfter(record, {.last = snapshot, .leftovers = {"left"}});
  ASSERT_TRUE(after.action.has_value());
  EXPECT_THAT(after.action->names, ElementsAre("left"));
}

TEST(RecordAfter, C12_a_partial_success_starts_the_failures_again) {
  World world;
  const PoolSnapshot last = world.Snapshot();
  PoolRecord record;
  for (int i = 0; i < 5; ++i) RecordFailure(&record.back_off, cause::kJoin, kNow);
  const PoolRecord after =
      RecordAfter(record, {.last = last, .created = true, .failures = {"join"}});
  EXPECT_EQ(after.back_off.at("join").failures, 1);
  EXPECT_THAT(RecordAfter(record, {.last = last, .created = true}).back_off, IsEmpty());
}

TEST(RecordAfter, T1_the_last_error_goes_once_its_action_has_ended_at_its_count) {
  World world;
  const PoolSnapshot last = world.With(Vm("a").Joined()).Snapshot();
  PoolRecord record = RecordOf({"gone"}, {});
  record.last_error = {.action = "act", .at = kNow, .text = "it took too long"};
  const auto stays = [&] { return RecordAfter(record, {.last = last}).last_error.has_value(); };
  EXPECT_TRUE(stays()) << "one VM of three";
  record.action->to = 1;
  EXPECT_FALSE(stays());
  record.last_error->action = "another";
  EXPECT_TRUE(stays());
  record.last_error->action = "act";
  record.action->names = {"left"};
  EXPECT_TRUE(RecordAfter(record, {.last = last, .leftovers = {"left"}}).last_error.has_value())
      << "the action is unfinished";
}

TEST(RecordAfter, T1_the_last_error_goes_once_a_later_new_vm_is_ready) {
  World world;
  const PoolSnapshot last = world.With(Vm("a").Joined()).Snapshot();
  PoolRecord record;
  record.last_error = {.action = "act", .at = kNow, .text = "no room"};
  EXPECT_TRUE(RecordAfter(record, {.last = last}).last_error.has_value());
  EXPECT_FALSE(RecordAfter(record, {.last = last, .created = true}).last_error.has_value());
  EXPECT_TRUE(RecordAfter(record, {.last = last, .created = true, .failures = {"join"}})
                  .last_error.has_value());
}

TEST(RecordAfter, S4_a_clock_that_is_ahead_leads_last_event_into_no_future) {
  World world;
  world.Raw().own_now = kNow - std::chrono::hours(24);
  const PoolSnapshot ahead = world.Snapshot();
  EXPECT_EQ(RecordAfter({}, {.last = ahead, .created = true}).last_event,
            kNow - std::chrono::hours(24));
}

TEST(RecordAfter, S4_last_event_never_goes_back) {
  World world;
  const PoolSnapshot last = world.Snapshot();
  PoolRecord record;
  record.last_event = kNow + std::chrono::minutes(1);
  EXPECT_EQ(RecordAfter(record, {.last = last, .last_event = kNow}).last_event, record.last_event);
  record.last_event.reset();
  EXPECT_EQ(RecordAfter(record, {.last = last, .last_event = kNow}).last_event, kNow);
  EXPECT_EQ(RecordAfter(record, {.last = last}).last_event, std::nullopt)
      << "a run that did nothing is not an event";
}

}  // namespace
}  // namespace nomad_harvester::scaling
