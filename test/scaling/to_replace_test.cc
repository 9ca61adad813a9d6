// SPDX-License-Identifier: Apache-2.0
//
// Which VMs are to be replaced, in which order, and what holds them (R1, R2).

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/replacement.h"

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

const CurrentTemplate kNew = {.hash = "v2:new", .parts = R"({"image":"2"})"};

Vm OfImage(const std::string& name, const std::string& image) {
  return Vm(name).Joined().MadeOf(image == "2" ? "v2:new" : "v2:old",
                                  R"({"image":")" + image + "\"}");
}

// Of each reason one, in the wrong order; kNow is a Sunday, at noon.
World PoolWithEachReason() {
  World world;
  world.Policy().replace_drifted = config::ReplaceDrifted::kRolling;
  world.Policy().expire_after = hours(48);
  world.With(OfImage("expired", "2").Age(hours(50))).With(Node("expired"));
  world.With(OfImage("drifted", "1").Age(hours(2))).With(Node("drifted"));
  world.With(OfImage("current", "2").Age(hours(3))).With(Node("current"));
  world.With(OfImage("requested", "2").Age(hours(1))).With(Node("requested"));
  world.Raw().vms.back().vm.Change().replace_request = "its disk is full";
  return world;
}

void SetWindow(World& world, const std::string& window) {
  world.Policy().replacement_window = config::CronWindow::Parse(window).value();
}

// "VM: reason", with " (held)" behind it.
std::vector<std::string> Told(const std::vector<Replaceable>& vms) {
  std::vector<std::string> told;
  for (const Replaceable& each : vms) {
    told.push_back(each.vm->vm->name + ": " + Describe(each.reason) +
                   (each.hold == Replaceable::Hold::kNone ? "" : " (held)"));
  }
  return told;
}

TEST(ToReplace, R1_what_somebody_asked_for_comes_first_and_what_expired_last) {
  World world = PoolWithEachReason();
  const PoolSnapshot snapshot = world.Snapshot();
  const ReplacementQueue queue = QueueOfReplacements(snapshot, {}, kNew);
  EXPECT_THAT(Told(queue.vms), ElementsAre("requested: requested: its disk is full",
                                           "drifted: drifted: image", "expired: expired"));
  EXPECT_EQ(queue.blocked_reason, std::nullopt);
}

TEST(ToReplace,
     R2_a_window_that_is_closed_holds_what_drifted_or_expired_and_not_what_is_asked_for) {
  World world = PoolWithEachReason();
  SetWindow(world, "0 2 * * 1-5 4h");
  const PoolSnapshot snapshot = world.Snapshot();
  const ReplacementQueue queue = QueueOfReplacements(snapshot, {}, kNew);
  EXPECT_THAT(Told(queue.vms),
              ElementsAre("requested: requested: its disk is full",
                          "drifted: drifted: image (held)", "expired: expired (held)"));
  EXPECT_EQ(queue.blocked_reason, std::nullopt) << "the first one does not wait";
}

// Beside a VM whose roll-back is later than its own creation, a new VM is not needed (R6).
TEST(ToReplace, R6_a_vm_whose_roll_back_a_wrong_clock_wrote_ahead_is_not_replaced_until_then) {
  World world = PoolWithEachReason();
  world.Raw().vms.back().vm.Change().removal_undone = {kNow + minutes(20), "it was cancelled"};
  const PoolSnapshot snapshot = world.Snapshot();
  EXPECT_THAT(Told(QueueOfReplacements(snapshot, {}, kNew).vms),
              ElementsAre("drifted: drifted: image", "expired: expired"));
}

TEST(ToReplace, R2_while_the_window_is_closed_it_says_when_it_opens) {
  World world = PoolWithEachReason();
  world.Raw().vms.back().vm.Change().replace_request = "";
  SetWindow(world, "0 2 * * 1-5 4h");
  EXPECT_EQ(QueueOfReplacements(world.Snapshot(), {}, kNew).blocked_reason,
            "outside of replacement_window, which opens at 2026-03-02T02:00:00Z");
  // Whatever ends sooner: the reason stays the same until the window opens.
  world.With(Vm("boots").Age(minutes(1)));
  EXPECT_THAT(QueueOfReplacements(world.Snapshot(), {}, kNew).blocked_reason,
              Optional(HasSubstr("outside of")));
  // That it has stopped may last for longer.
  const PoolRecord stopped{.replacement = harvester::StoppedReplacement{
                               .vm = "web-b", .template_hash = "v2:new", .why = "no route"}};
  EXPECT_THAT(QueueOfReplacements(world.Snapshot(), stopped, kNew).blocked_reason,
              Optional(HasSubstr("it has stopped")));
}

TEST(ToReplace, R2_a_window_that_is_open_holds_nothing) {
  World world = PoolWithEachReason();
  SetWindow(world, "0 12 * * sun 1h");
  const PoolSnapshot snapshot = world.Snapshot();
  const ReplacementQueue queue = QueueOfReplacements(snapshot, {}, kNew);
  for (const Replaceable& each : queue.vms)
    EXPECT_EQ(each.hold, Replaceable::Hold::kNone) << Describe(each.reason);
  EXPECT_EQ(queue.blocked_reason, std::nullopt);
}

TEST(ToReplace, R1_an_unhealthy_vm_comes_first_and_waits_for_nothing_that_others_wait_for) {
  World world = PoolWithEachReason();
  SetWindow(world, "0 2 * * 1-5 4h");
  world.Policy().replace_unhealthy_after = minutes(10);
  world.With(Vm("sick").Joined().Stopped()).With(Vm("boots").Age(minutes(1)));
  world.Raw().vms[4].unhealthy_for = minutes(10);
  const PoolSnapshot snapshot = world.Snapshot();
  const ReplacementQueue queue = QueueOfReplacements(snapshot, {}, kNew);
  EXPECT_THAT(Told(queue.vms),
              ElementsAre("sick: unhealthy", "requested: requested: its disk is full",
                          "drifted: drifted: image (held)", "expired: expired (held)"));
  EXPECT_EQ(queue.blocked_reason, std::nullopt);
}

TEST(ToReplace, R7_a_vm_that_has_left_a_host_leaves_no_other_one_for_ten_minutes) {
  World world;
  world.Policy().on_host_maintenance = config::HostMaintenance::kEvacuate;
  world.With(OfImage("moved", "2").Replaces("gone", {ReplaceKind::kHost, "h1"}));
  world.With(Node("moved"));
  world.Raw().vms[0].host_to_leave = "h2";
  const auto queue_at = [&](base::Duration age) {
    world.Raw().vms[0].vm.Change().created_at = kNow - age;
    const PoolSnapshot snapshot = world.Snapshot();
    return Told(QueueOfReplacements(snapshot, {}, kNew).vms);
  };
  EXPECT_THAT(queue_at(kYoungestToReplace - std::chrono::seconds(1)), IsEmpty());
  EXPECT_THAT(queue_at(kYoungestToReplace), ElementsAre("moved: host h2 is cordoned"));
}

TEST(ToReplace, R2_no_unhealthy_vm_is_replaced_while_a_growth_would_be_refused) {
  World world = PoolWithEachReason();
  world.Policy().replace_unhealthy_after = minutes(10);
  world.Policy().on_join_timeout = config::OnJoinTimeout::kKeep;
  world.With(Vm("sick").Joined().Stopped()).With(Vm("late"));
  world.Raw().vms[4].unhealthy_for = minutes(10);
  const PoolSnapshot snapshot = world.Snapshot();
  const ReplacementQueue queue = QueueOfReplacements(snapshot, {}, kNew);
  ASSERT_THAT(queue.vms, testing::Not(IsEmpty()));
  EXPECT_TRUE(queue.vms[0].is_unhealthy());
  EXPECT_THAT(queue.blocked_reason,
              Optional(HasSubstr("the pool does not grow while VM late is broken and stays")));
}

struct Flipped {
  PoolSnapshot snapshot;
  ReplacementQueue queue;
};

// The place of the VM `drifted` has changed that often, and this one was made then.
Flipped AfterFlips(std::int64_t flips, base::Duration age, const std::string& was = "v2:new") {
  World world;
  world.Policy().replace_drifted = config::ReplaceDrifted::kRolling;
  world.With(OfImage("drifted", "1").Age(age).Replaces("gone", {ReplaceKind::kDrifted}))
      .With(Node("drifted"));
  harvester::Replaces& replaces = *world.Raw().vms[0].vm.Change().replaces;
  replaces.was = was;
  replaces.flips = flips;
  Flipped flipped{.snapshot = world.Snapshot(), .queue = {}};
  flipped.queue = QueueOfReplacements(flipped.snapshot, {}, kNew);
  return flipped;
}

TEST(ToReplace, R1_a_place_that_changed_back_and_forth_four_times_within_days_keeps_its_vm) {
  const Flipped held = AfterFlips(3, hours(23));
  EXPECT_THAT(Told(held.queue.vms), ElementsAre("drifted: drifted: image (held)"));
  EXPECT_THAT(held.queue.blocked_reason,
              Optional(HasSubstr("two policies of this pool describe different VMs")));
  EXPECT_EQ(AfterFlips(2, hours(23)).queue.blocked_reason, std::nullopt);
  EXPECT_EQ(AfterFlips(3, hours(25)).queue.blocked_reason, std::nullopt)
      << "the last one was long ago";
  EXPECT_EQ(AfterFlips(3, hours(23), "v2:older").queue.blocked_reason, std::nullopt)
      << "it does not go back";
}

TEST(ToReplace, R1_a_place_that_keeps_its_vm_holds_up_no_vm_that_has_expired) {
  World world = PoolWithEachReason();
  world.Raw().vms.back().vm.Change().replace_request = "";
  world.Raw().vms[1].vm.Change().replaces = harvester::Replaces{.vm = "gone",
                                                                .uid = "uid-gone",
                                                                .reason = {ReplaceKind::kDrifted},
                                                                .was = "v2:new",
                                                                .flips = 3};
  const PoolSnapshot snapshot = world.Snapshot();
  const ReplacementQueue queue = QueueOfReplacements(snapshot, {}, kNew);
  EXPECT_THAT(Told(queue.vms), ElementsAre("expired: expired", "drifted: drifted: image (held)"));
  EXPECT_EQ(queue.blocked_reason, std::nullopt);
}

TEST(ToReplace, R1_a_new_vm_says_how_often_its_place_has_changed_back) {
  const Flipped pool = AfterFlips(2, hours(1));
  const Replaceable& old = pool.queue.vms[0];
  const harvester::Replaces next = ReplacesOf(old, kNew, kNow);
  EXPECT_EQ(next.was, "v2:old");
  EXPECT_EQ(next.flips, 3);
  EXPECT_EQ(ReplacesOf(old, {.hash = "v2:other", .parts = ""}, kNow).flips, 0);
}

TEST(ToReplace, R5_it_has_stopped_for_the_template_that_failed_alone) {
  PoolRecord record;
  EXPECT_FALSE(HasStopped(record, kNew));
  record.replacement = harvester::StoppedReplacement{.vm = "a", .template_hash = "v2:new"};
  EXPECT_TRUE(HasStopped(record, kNew));
  EXPECT_FALSE(HasStopped(record, {.hash = "v2:newer", .parts = ""}));
}

TEST(ToReplace, R5_without_room_it_says_why_since_when_and_when_the_next_try_is) {
  World world = PoolWithEachReason();
  PoolRecord record;
  record.replacement = harvester::StoppedReplacement{.at = kNow - hours(1),
                                                     .vm = "web-b",
                                                     .template_hash = "v2:new",
                                                     .why = "0/3 nodes are available",
                                                     .lacks_room = true};
  EXPECT_FALSE(HasStopped(record, kNew));
  EXPECT_EQ(QueueOfReplacements(world.Snapshot(), record, kNew).blocked_reason, std::nullopt)
      << "the back-off is over";
  record.back_off["room"] = {.failures = 2, .retry_at = kNow + minutes(1)};
  EXPECT_EQ(QueueOfReplacements(world.Snapshot(), record, kNew).blocked_reason,
            "there has been no room for a new VM since 2026-03-01T11:00:00Z (VM web-b: 0/3 nodes "
            "are available); finding room for new VMs failed 2 times in a row; next try at "
            "2026-03-01T12:01:00Z");
  record.replacement->vm.clear();  // none was made
  EXPECT_THAT(QueueOfReplacements(world.Snapshot(), record, kNew).blocked_reason,
              Optional(HasSubstr("since 2026-03-01T11:00:00Z (0/3 nodes are available); ")));
  record.back_off.clear();
  world.With(Vm("boots").Age(minutes(1)));
  EXPECT_THAT(QueueOfReplacements(world.Snapshot(), record, kNew).blocked_reason,
              Optional(testing::AllOf(HasSubstr("no room"), HasSubstr("VM boots is not ready"))));
}

TEST(ToReplace, R8_if_the_old_vm_goes_first_no_further_one_goes_for_want_of_room) {
  World world = PoolWithEachReason();
  world.Policy().max_surge = 0;
  world.Policy().max_unavailable = 1;
  PoolRecord record;
  record.replacement = harvester::StoppedReplacement{
      .at = kNow, .vm = "web-b", .template_hash = "v2:new", .why = "no room", .lacks_room = true};
  EXPECT_THAT(QueueOfReplacements(world.Snapshot(), record, kNew).blocked_reason,
              Optional(HasSubstr("it goes on once a new VM is ready")));
  record.replacement->vm.clear();  // the forecast refused, before max_unavailable was set
  EXPECT_EQ(QueueOfReplacements(world.Snapshot(), record, kNew).blocked_reason, std::nullopt);
}

TEST(ToReplace, R1_nothing_waits_in_a_pool_that_is_as_the_policy_says) {
  World world;
  world.Policy().replace_drifted = config::ReplaceDrifted::kRolling;
  SetWindow(world, "0 2 * * 1-5 4h");
  world.With(OfImage("current", "2")).With(Node("current"));
  const PoolSnapshot snapshot = world.Snapshot();
  const ReplacementQueue queue = QueueOfReplacements(snapshot, {}, kNew);
  EXPECT_THAT(queue.vms, IsEmpty());
  EXPECT_EQ(queue.blocked_reason, std::nullopt);
}

}  // namespace
}  // namespace nomad_harvester::scaling
