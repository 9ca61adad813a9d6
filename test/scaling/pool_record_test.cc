// SPDX-License-Identifier: Apache-2.0
//
// The record on the pool's Lease before and after a run.

#include "rules/pool_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/replacement.h"

#include "rules/back_off.h"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
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
  return RecordBefore(record, snapshot, {{&snapshot.observation().vms[vm], {.kind = kind}}},
                      "new-id");
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
  world.With(Vm("a").Joined())
      .With(Node("a"))
      .With(Vm("b").Joined().Replaces("a", {ReplaceKind::kDrifted}));
  const PoolSnapshot snapshot = world.Snapshot();
  const auto before = [&](std::size_t vm) {
    return RecordBefore({}, snapshot,
                        {{&snapshot.observation().vms[vm], {.kind = StepKind::kMarkUnhealthy}}},
                        "id");
  };
  ASSERT_TRUE(before(1).replacement.has_value());
  EXPECT_EQ(before(1).replacement->vm, "b");
  EXPECT_FALSE(before(0).replacement.has_value());
}

// The record after a new VM of the template was found broken: it lacked room, or never joined.
PoolRecord AfterBroken(const PoolRecord& record, bool lacks_room, base::WallTime now = kNow) {
  World world;
  world.Raw().now = now;
  world.With(Vm("a").Joined()).With(Node("a"));
  world.With(Vm("b").MadeOf("v2:new", "{}").Replaces("a", {ReplaceKind::kDrifted}));
  if (lacks_room) world.Raw().vms.back().vm.Change().printable_status = "ErrorUnschedulable";
  return Before(record, world.Snapshot(), 1, StepKind::kMarkBroken);
}

TEST(RecordBefore, R5_a_new_vm_that_lacks_room_stops_nothing_and_is_recorded_since_the_first) {
  const PoolRecord first = AfterBroken({}, /*lacks_room=*/true);
  ASSERT_TRUE(first.replacement.has_value());
  EXPECT_FALSE(HasStopped(first, {.hash = "v2:new", .parts = ""}));
  const base::WallTime later = kNow + std::chrono::minutes(3);
  EXPECT_EQ(AfterBroken(first, /*lacks_room=*/true, later).replacement->at, kNow);
  const PoolRecord stopped = AfterBroken(first, /*lacks_room=*/false, later);
  EXPECT_TRUE(HasStopped(stopped, {.hash = "v2:new", .parts = ""}));
  EXPECT_EQ(stopped.replacement->at, later);
  EXPECT_EQ(AfterBroken(stopped, /*lacks_room=*/true), stopped)
      << "another one without room does not end a stop";
}

TEST(RecordBefore, R5_a_new_vm_of_another_spec_that_lacks_room_ends_what_was_recorded_of_the_last) {
  const base::WallTime later = kNow + std::chrono::minutes(3);
  for (const bool lacks_room : {false, true}) {
    PoolRecord last = AfterBroken({}, lacks_room);
    last.replacement->template_hash = "v2:last";
    const auto next = AfterBroken(last, /*lacks_room=*/true, later).replacement;
    EXPECT_EQ(next->template_hash, "v2:new");
    EXPECT_EQ(next->at, later);
    EXPECT_TRUE(next->lacks_room);
  }
}

TEST(RecordBefore, R5_a_new_vm_in_the_place_of_an_unhealthy_one_stops_nothing) {
  World world;
  world.With(Vm("a").Joined()).With(Vm("b").Replaces("a", {ReplaceKind::kUnhealthy}));
  EXPECT_FALSE(Before({}, world.Snapshot(), 1, StepKind::kMarkBroken).replacement.has_value());
}

TEST(RecordAfter, R5_a_vm_that_becomes_ready_shows_that_there_is_room_and_ends_no_stop) {
  const PoolRecord waits = AfterBroken({}, /*lacks_room=*/true);
  EXPECT_FALSE(RecordAfter(waits, {.delivered = true}, kNow).replacement.has_value());
  EXPECT_TRUE(RecordAfter(waits, {}, kNow).replacement.has_value());
  const PoolRecord stopped = AfterBroken({}, /*lacks_room=*/false);
  EXPECT_TRUE(RecordAfter(stopped, {.delivered = true}, kNow).replacement.has_value());
}

TEST(RecordAfter, R5_a_replacement_that_found_no_room_waits_and_is_recorded_since_the_first) {
  const harvester::StoppedReplacement no_room{.template_hash = "v2:new",
                                              .why = "0 of 1 VMs fit now: host h1 is cordoned",
                                              .lacks_room = true};
  const PoolRecord first = RecordAfter({}, {.no_room = no_room}, kNow);
  ASSERT_TRUE(first.replacement.has_value());
  EXPECT_FALSE(HasStopped(first, {.hash = "v2:new", .parts = ""}));
  EXPECT_EQ(first.replacement->vm, "");
  EXPECT_EQ(first.replacement->why, no_room.why);
  EXPECT_TRUE(first.back_off.contains("room"));
  const base::WallTime later = kNow + std::chrono::minutes(3);
  const PoolRecord second = RecordAfter(first, {.no_room = no_room}, later);
  EXPECT_EQ(second.replacement->at, kNow);
  EXPECT_GT(second.back_off.at("room").retry_at, later);
  EXPECT_FALSE(RecordAfter(second, {.delivered = true}, later).replacement.has_value());
}

TEST(RecordAfter, C12_a_growth_that_found_no_room_backs_off_and_holds_up_no_roll_out) {
  const PoolRecord record = RecordAfter({}, {.no_room = harvester::StoppedReplacement()}, kNow);
  EXPECT_EQ(record.back_off.at("room").failures, 1);
  EXPECT_FALSE(record.replacement.has_value());
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

// The record after a run that ended with this observation.
PoolRecord Closed(const PoolRecord& record, const PoolSnapshot& last, const Unrecorded& news = {},
                  const std::set<std::string>& leftovers = {}) {
  return RecordAfter(record, news, last, leftovers);
}

TEST(RecordAfter, an_action_with_nothing_unfinished_leaves_the_lease) {
  World world;
  const PoolSnapshot last = world.With(Vm("a").Joined()).Snapshot();
  EXPECT_EQ(Closed(RecordOf({"a", "gone"}, {{"a", "act"}}), last).action, std::nullopt);
}

TEST(RecordAfter, L6_a_name_leaves_back_only_by_the_word_of_its_own_nomad) {
  const auto back_after = [](const std::string& keys, bool readable = true) {
    World world;
    if (!readable) world.NomadUnreadable();
    world.Raw().nomad_cluster = keys;
    world.With(Vm("a").Joined().Marked().OfCluster("k1"));
    PoolRecord record = RecordOf({"a"}, {});
    record.action->cancel = {"a"};
    return Closed(record, world.Snapshot()).action->cancel;
  };
  EXPECT_THAT(back_after("k1"), IsEmpty()) << "its node is gone, and its removal goes on";
  EXPECT_THAT(back_after("k2"), ElementsAre("a"));
  EXPECT_THAT(back_after("k1", false), ElementsAre("a")) << "it is not known whether it is gone";
}

TEST(RecordAfter, C10_names_whose_vm_was_never_created_stay_for_the_next_scale) {
  World world;
  const PoolSnapshot last = world.With(Vm("a").Joined()).Snapshot();
  const PoolRecord after = Closed(RecordOf({"a", "b"}, {{"a", "x"}, {"b", "y"}}), last);
  ASSERT_TRUE(after.action.has_value());
  EXPECT_THAT(after.action->create, ElementsAre(Pair("b", "y")));
  EXPECT_THAT(after.action->names, ElementsAre("b"));
}

TEST(RecordAfter, C10_a_name_whose_vm_was_observed_leaves_even_if_the_vm_was_deleted) {
  World world;
  const PoolRecord record = RecordOf({"a"}, {{"a", "x"}});
  EXPECT_EQ(Closed(record, world.Snapshot(), {.made = {"a"}}).action, std::nullopt);
  EXPECT_THAT(RecordAfter(record, {.made = {"a"}}, kNow).action->create, IsEmpty())
      << "also while the action goes on";
}

TEST(RecordAfter, C11_marked_vms_stay_named_and_others_do_not_become_so) {
  World world;
  world.With(Vm("late").Joined().Marked()).With(Vm("m").Joined().Marked());
  EXPECT_THAT(Closed(RecordOf({"m", "n"}, {}), world.Snapshot()).action->names, ElementsAre("m"));
}

TEST(RecordAfter, C10_vms_that_are_gone_stay_named_while_something_is_left_of_them) {
  World world;
  const PoolRecord after = Closed(RecordOf({"clean", "left"}, {}), world.Snapshot(), {}, {"left"});
  ASSERT_TRUE(after.action.has_value());
  EXPECT_THAT(after.action->names, ElementsAre("left"));
}

TEST(RecordAfter, C12_a_partial_success_starts_the_failures_again) {
  PoolRecord record;
  for (int i = 0; i < 5; ++i) RecordFailure(&record.back_off, cause::kJoin, kNow);
  const PoolRecord after =
      RecordAfter(record, {.delivered = true, .failures = {{"join", "act"}}}, kNow);
  EXPECT_EQ(after.back_off.at("join").failures, 1);
  EXPECT_THAT(RecordAfter(record, {.delivered = true}, kNow).back_off, IsEmpty());
}

TEST(RecordAfter, C12_a_removal_makes_what_else_fails_no_failure_of_removals) {
  PoolRecord record;
  RecordFailure(&record.back_off, cause::kRefused, kNow);
  const Unrecorded news{.removed = true,
                        .failures = {{"create", "act"}, {"refused", "act"}, {"remove", "act"}}};
  const PoolRecord after = RecordAfter(record, news, kNow);
  EXPECT_EQ(after.back_off.size(), 1U);
  EXPECT_TRUE(after.back_off.contains("create"));
}

TEST(RecordAfter, T1_the_last_error_goes_once_its_action_has_ended_at_its_count) {
  World world;
  const PoolSnapshot last = world.With(Vm("a").Joined()).Snapshot();
  PoolRecord record = RecordOf({"gone"}, {});
  record.last_error = {.action = "act", .at = kNow, .text = "it took too long"};
  const auto stays = [&] { return Closed(record, last).last_error.has_value(); };
  EXPECT_TRUE(stays()) << "one VM of three";
  record.action->to = 1;
  EXPECT_FALSE(stays());
  record.last_error->action = "another";
  EXPECT_TRUE(stays());
  record.last_error->action = "act";
  record.action->names = {"left"};
  EXPECT_TRUE(Closed(record, last, {}, {"left"}).last_error.has_value())
      << "the action is unfinished";
}

TEST(RecordAfter, T1_a_lack_of_room_is_over_ten_minutes_after_the_last_growth_that_lacked_it) {
  const PoolSnapshot last = World().Snapshot();
  PoolRecord record;
  record.last_error = {.at = kNow - minutes(10), .text = "0 of 2 VMs fit now"};
  const auto stays = [&] { return Closed(record, last).last_error.has_value(); };
  EXPECT_FALSE(stays());
  record.last_error->at += seconds(1);
  EXPECT_TRUE(stays());
  record.last_error = {.action = "act", .at = kNow - minutes(10), .text = "no image"};
  EXPECT_TRUE(stays()) << "it lacks something else";
  record.last_error = {.vm = "a", .at = kNow - minutes(10), .text = "no room"};
  EXPECT_TRUE(stays()) << "a replacement is wanted until it is done";
}

TEST(RecordAfter, T1_the_last_error_goes_once_a_vm_has_taken_the_place_of_another_one) {
  PoolRecord record;
  record.last_error = {.action = "act", .at = kNow, .text = "no room"};
  const auto stays = [&](const Unrecorded& news) {
    return RecordAfter(record, news, kNow).last_error.has_value();
  };
  EXPECT_TRUE(stays({}));
  EXPECT_TRUE(stays({.delivered = true}));
  EXPECT_FALSE(stays({.replaced = true}));
  EXPECT_TRUE(stays({.replaced = true, .failures = {{"join", "act"}}}));
}

TEST(RecordAfter, T1_a_later_failure_of_an_action_follows_the_first_cause) {
  const auto with = [](PoolRecord record, const std::string& action, const std::string& text,
                       base::WallTime at) {
    Unrecorded news;
    news.AddError(action, text);
    return RecordAfter(std::move(record), news, at);
  };
  const base::WallTime later = kNow + std::chrono::minutes(1);
  const PoolRecord first = with({}, "act", "a: no room", kNow);
  const PoolRecord second = with(first, "act", "b: it never joined", later);
  EXPECT_EQ(second.last_error->text, "a: no room\nb: it never joined");
  EXPECT_EQ(second.last_error->at, later);
  EXPECT_EQ(with(first, "act", "a: no room", later), first) << "it says so already";
  EXPECT_EQ(with(first, "act", "no room", later).last_error->text, "a: no room\nno room")
      << "that is another line";
  EXPECT_EQ(with(first, "next", "c: gone", later).last_error->text, "c: gone");
  const PoolRecord of_none = with(first, "", "a: no room", later);
  EXPECT_EQ(with(of_none, "", "b: no room", later).last_error->text, "b: no room");
}

TEST(RecordAfter, T1_an_accepted_scale_ends_the_errors_before_it) {
  PoolRecord record;
  record.last_error = {.action = "act", .at = kNow, .text = "no room"};
  Unrecorded news;
  news.AddError("act", "a: it never joined");
  news.AddOutcome("next", absl::OkStatus());
  EXPECT_EQ(RecordAfter(record, news, kNow).last_error, std::nullopt);
  news.AddOutcome("last", base::Internal("no image"));
  EXPECT_EQ(RecordAfter(record, news, kNow).last_error->text, "no image");
}

TEST(RecordAfter, T1_a_long_first_cause_leaves_room_for_what_follows) {
  const std::string cause(5000, 'x');
  Unrecorded first;
  first.AddError("act", cause);
  const PoolRecord record = RecordAfter({}, first, kNow);
  EXPECT_EQ(record.last_error->text.size(), 2048U);
  Unrecorded later;
  later.AddError("act", "b: it never joined");
  EXPECT_EQ(RecordAfter(record, later, kNow).last_error->text,
            std::string(1021, 'x') + "...\nb: it never joined");
}

TEST(Unrecorded, I7_errors_that_cannot_be_stored_take_no_more_memory) {
  Unrecorded news;
  for (int i = 0; i < 1000; ++i) {
    news.AddError("act", std::to_string(i) + ": gone");
    news.AddError("act", "it is the same error");
  }
  const std::string text = RecordAfter({}, news, kNow).last_error->text;
  EXPECT_LE(text.size(), 2048U);
  EXPECT_THAT(text, ::testing::StartsWith("0: gone\nit is the same error\n1: gone\n2: gone\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("\n999: gone"));
}

TEST(Unrecorded, P3_an_error_is_cleaned_while_its_secret_is_known) {
  Unrecorded news;
  {
    const base::Secret secret("a-line-of-user-data");
    news.AddOutcome("act", base::Internal("denied: a-line-of-user-data"));
    news.AddError("act", "web-a: a-line-of-user-data");
  }
  EXPECT_EQ(RecordAfter({}, news, kNow).last_error->text, "denied: REDACTED\nweb-a: REDACTED");
}

TEST(RecordAfter, S4_last_event_never_goes_back) {
  PoolRecord record;
  record.last_event = kNow + std::chrono::minutes(1);
  EXPECT_EQ(RecordAfter(record, {.last_event = kNow}, kNow).last_event, record.last_event);
  record.last_event.reset();
  EXPECT_EQ(RecordAfter(record, {.last_event = kNow}, kNow).last_event, kNow);
  EXPECT_EQ(RecordAfter(record, {}, kNow).last_event, std::nullopt)
      << "a run that did nothing is not an event";
}

}  // namespace
}  // namespace nomad_harvester::scaling
