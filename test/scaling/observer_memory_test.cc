// SPDX-License-Identifier: Apache-2.0
//
// What only repeated observations can provide: for how long a start has failed, a node has been
// down, Nomad has been unreadable.

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/nomad/error.h"
#include "nomad_harvester/scaling/observer.h"

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr char kUnbound[] =
    "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims";

// Observes one world repeatedly; times are given relative to the first observation.
class ObserverMemoryTest : public testing::Test {
 protected:
  Observation Observe(base::Duration time, World world) {
    Observation observation = std::move(world.Linked());
    observation.now = kNow + time;
    memory_.Apply(base::MonoTime(hours(5)) + time, &observation);
    return observation;
  }
  // Whether the VM "a" counts as failing to start.
  bool Fails(base::Duration time, const std::string& status, const std::string& message = "",
             std::optional<base::WallTime> since = std::nullopt) {
    return Observe(time, Starting(status, message, since)).vms[0].start_failure.has_value();
  }
  static World Starting(const std::string& status, const std::string& message = "",
                        std::optional<base::WallTime> since = std::nullopt) {
    World world;
    world.With(Vm("a").Age(minutes(1)));
    harvester::VirtualMachine& vm = world.Raw().vms[0].vm.Change();
    vm.printable_status = status;
    vm.ready = vm.instance_exists = false;
    if (!message.empty()) {
      vm.conditions.push_back({.type = "PodScheduled",
                               .status = "False",
                               .reason = "Unschedulable",
                               .message = message,
                               .last_transition = since});
    }
    return world;
  }

  ObserverMemory memory_;
};

TEST_F(ObserverMemoryTest, C15_a_join_deadline_has_passed_only_by_two_clocks) {
  World world;
  world.With(Vm("a").Age(minutes(1)));  // it has 15 minutes
  // One API server's clock is 20 minutes ahead.
  const auto is_past = [&](base::Duration time, base::WallTime own) {
    World later = world;
    later.Raw().own_now = own;
    Observation observation = Observe(time, std::move(later));
    observation.now += minutes(20);
    return IsPastJoinDeadline(observation.vms[0], observation);
  };
  EXPECT_TRUE(is_past(seconds(0), kNow + minutes(14)));
  EXPECT_FALSE(is_past(seconds(0), kNow + minutes(14) - seconds(1)));
  EXPECT_FALSE(is_past(minutes(15) - seconds(1), kNow)) << "this machine's clock stands still";
  EXPECT_TRUE(is_past(minutes(15), kNow)) << "and this process has known the VM for its time";
}

// What the clock of the API server that answers, and this machine's, are off.
struct WrongClock {
  const char* what;
  base::Duration server;
  base::Duration own;
};

TEST_F(ObserverMemoryTest, C9_a_reply_with_a_wrong_date_does_not_move_the_clock) {
  for (const WrongClock& wrong : std::vector<WrongClock>{{"right", {}, {}},
                                                         {"server ahead", hours(1), {}},
                                                         {"server behind", -hours(1), {}},
                                                         {"own ahead", {}, hours(1)},
                                                         {"own behind", {}, -hours(1)}}) {
    ObserverMemory memory;
    const auto observe = [&](base::Duration time, base::Duration server, base::Duration own) {
      World world;
      world.With(Vm("a"));
      Observation observation = std::move(world.Linked());
      observation.now = kNow + time + server;
      observation.own_now = kNow + time + own;
      memory.Apply(base::MonoTime(hours(5)) + time, &observation);
      return observation.now - kNow;
    };
    EXPECT_EQ(observe({}, {}, wrong.own), seconds(0)) << wrong.what;
    EXPECT_EQ(observe(seconds(10), wrong.server, wrong.own), seconds(10)) << wrong.what;
    EXPECT_EQ(observe(seconds(20), {}, wrong.own), seconds(20)) << wrong.what;
  }
}

TEST_F(ObserverMemoryTest, C9_a_clock_that_is_wrong_all_the_time_is_used_as_it_is) {
  const auto observe = [&](base::Duration time) {
    World world;
    world.Raw().own_now = kNow + time - hours(1);
    return Observe(time, std::move(world)).now - kNow;
  };
  EXPECT_EQ(observe(seconds(0)), seconds(0));
  EXPECT_EQ(observe(hours(9)), hours(9));
}

TEST_F(ObserverMemoryTest,
       C15_a_new_vm_is_not_past_its_deadline_because_its_creation_has_a_wrong_time) {
  Observe(seconds(0), World());
  const auto is_past = [&](base::Duration time) {
    World world;
    world.With(Vm("a").Age(hours(1)));  // made by an API server whose clock is an hour behind
    world.Raw().own_now = kNow + time;
    const Observation observation = Observe(time, std::move(world));
    return IsPastJoinDeadline(observation.vms[0], observation);
  };
  EXPECT_FALSE(is_past(seconds(2)));
  EXPECT_FALSE(is_past(minutes(14)));
  EXPECT_TRUE(is_past(minutes(15) + seconds(2)));
}

TEST_F(ObserverMemoryTest, C18_the_time_of_a_hold_begins_with_its_first_observation) {
  const auto held = [&](base::Duration time, bool is_held) {
    World world;
    world.With(Vm("a"));
    const Observation observation = Observe(time, std::move(world));
    std::set<std::string> uids;
    if (is_held) uids.insert("uid-a");
    memory_.RecordAwaiting(base::MonoTime(hours(5)) + time, {}, uids);
    return observation.vms[0].held_for;
  };
  EXPECT_EQ(held(seconds(0), true), seconds(0));
  EXPECT_EQ(held(seconds(9), true), seconds(9));
  EXPECT_EQ(held(seconds(12), false), seconds(12));
  EXPECT_EQ(held(seconds(15), true), seconds(0));
}

TEST_F(ObserverMemoryTest,
       C3_the_objects_time_does_not_count_if_the_failure_began_under_observation) {
  EXPECT_FALSE(Fails(seconds(0), "Starting"));
  const std::string cpu = "0/3 nodes are available: Insufficient cpu";
  EXPECT_FALSE(Fails(seconds(1), "ErrorUnschedulable", cpu, kNow - hours(1)));
  EXPECT_TRUE(Fails(seconds(61), "ErrorUnschedulable", cpu, kNow - hours(1)));
}

TEST_F(ObserverMemoryTest, C3_a_failing_status_counts_after_sixty_seconds) {
  EXPECT_FALSE(Fails(seconds(0), "ErrorPvcNotFound"));
  EXPECT_FALSE(Fails(seconds(60) - milliseconds(1), "ErrorPvcNotFound"));
  EXPECT_TRUE(Fails(seconds(60), "ErrorPvcNotFound"));
}

TEST_F(ObserverMemoryTest, C3_the_failure_has_kubevirts_message) {
  Observe(seconds(0), Starting("ErrorUnschedulable", "0/3 nodes: Insufficient cpu"));
  const Observation observation =
      Observe(seconds(60), Starting("ErrorUnschedulable", "0/3 nodes: Insufficient cpu"));
  ASSERT_TRUE(observation.vms[0].start_failure.has_value());
  EXPECT_THAT(observation.vms[0].start_failure->reason, HasSubstr("Insufficient cpu"));
}

TEST_F(ObserverMemoryTest, C3_after_a_recovery_the_time_starts_again) {
  EXPECT_FALSE(Fails(seconds(0), "ErrorPvcNotFound"));
  EXPECT_FALSE(Fails(seconds(50), "Starting"));
  EXPECT_FALSE(Fails(seconds(51), "ErrorPvcNotFound"));
  EXPECT_FALSE(Fails(seconds(110), "ErrorPvcNotFound"));
  EXPECT_TRUE(Fails(seconds(111), "ErrorPvcNotFound"));
}

TEST_F(ObserverMemoryTest, C3_a_process_that_has_just_started_uses_the_objects_time) {
  const std::string cpu = "0/3 nodes are available: Insufficient cpu";
  EXPECT_FALSE(Fails(seconds(0), "ErrorUnschedulable", cpu, kNow - seconds(59)));
  EXPECT_TRUE(Fails(seconds(1), "ErrorUnschedulable", cpu, kNow - seconds(59)));
  ObserverMemory fresh;
  World world = Starting("ErrorUnschedulable", cpu, kNow - seconds(60));
  fresh.Apply(base::MonoTime(hours(9)), &world.Linked());
  EXPECT_TRUE(world.Raw().vms[0].start_failure.has_value());
}

TEST_F(ObserverMemoryTest, C3_a_future_time_on_the_object_does_not_prolong_the_wait) {
  const std::string cpu = "0/3 nodes are available: Insufficient cpu";
  EXPECT_FALSE(Fails(seconds(0), "ErrorUnschedulable", cpu, kNow + minutes(9)));
  EXPECT_FALSE(Fails(seconds(59), "ErrorUnschedulable", cpu, kNow + minutes(9)));
  EXPECT_TRUE(Fails(seconds(60), "ErrorUnschedulable", cpu, kNow + minutes(9)));
}

TEST_F(ObserverMemoryTest, C3_a_halt_by_quota_counts_immediately) {
  World world = Starting("Stopped");
  world.Raw().vms[0].vm.Change().quota_halt = "cpu insufficient resources";
  const Observation observation = Observe(seconds(0), std::move(world));
  ASSERT_TRUE(observation.vms[0].start_failure.has_value());
  EXPECT_THAT(observation.vms[0].start_failure->reason, HasSubstr("insufficient resources"));
}

TEST_F(ObserverMemoryTest, C3_unbound_claims_never_count_however_long_they_last) {
  for (int minute = 0; minute < 30; ++minute) {
    EXPECT_FALSE(Fails(minutes(minute), "ErrorUnschedulable", kUnbound, kNow - hours(1)));
  }
}

TEST_F(ObserverMemoryTest, C3_time_spent_on_unbound_claims_does_not_count_towards_another_failure) {
  const std::string cpu = "0/3 nodes are available: Insufficient cpu";
  // The condition is False all the time: its transition time is that of the first message.
  EXPECT_FALSE(Fails(seconds(0), "ErrorUnschedulable", cpu, kNow));
  EXPECT_FALSE(Fails(seconds(10), "ErrorUnschedulable", kUnbound, kNow));
  EXPECT_FALSE(Fails(minutes(5), "ErrorUnschedulable", kUnbound, kNow));
  EXPECT_FALSE(Fails(minutes(5) + seconds(2), "ErrorUnschedulable", cpu, kNow));
  EXPECT_FALSE(Fails(minutes(5) + seconds(59), "ErrorUnschedulable", cpu, kNow));
  EXPECT_TRUE(Fails(minutes(6), "ErrorUnschedulable", cpu, kNow));
}

TEST_F(ObserverMemoryTest, C15_a_vm_that_has_joined_never_counts_as_failing_to_start) {
  for (const base::Duration time : {seconds(0), seconds(300)}) {
    World world;
    world.With(Vm("a").Joined());
    world.Raw().vms[0].vm.Change().printable_status = "CrashLoopBackOff";
    EXPECT_FALSE(Observe(time, std::move(world)).vms[0].start_failure.has_value());
  }
}

TEST_F(ObserverMemoryTest, the_time_of_another_vm_of_the_same_name_starts_again) {
  EXPECT_FALSE(Fails(seconds(0), "ErrorPvcNotFound"));
  World successor = Starting("ErrorPvcNotFound");
  successor.Raw().vms[0].vm.Change().uid = "uid-second";
  EXPECT_FALSE(Observe(seconds(60), std::move(successor)).vms[0].start_failure.has_value());
}

TEST_F(ObserverMemoryTest, the_time_of_a_vm_that_was_absent_in_between_starts_again) {
  EXPECT_FALSE(Fails(seconds(0), "ErrorPvcNotFound"));
  Observe(seconds(30), World());
  EXPECT_FALSE(Fails(seconds(60), "ErrorPvcNotFound"));
}

World Down(bool down = true) {
  World world;
  world.With(Vm("a").Joined());
  return down ? world.With(Node("a").Down()) : world.With(Node("a"));
}

TEST_F(ObserverMemoryTest, C5_a_node_is_down_since_it_was_first_observed_down) {
  EXPECT_EQ(Observe(seconds(0), Down()).vms[0].node_down_for, base::Duration::zero());
  EXPECT_EQ(Observe(seconds(90), Down()).vms[0].node_down_for, seconds(90));
}

TEST_F(ObserverMemoryTest, C6_a_client_that_registered_anew_is_linked_after_two_minutes) {
  const auto look_at = [&](base::Duration time, bool runs) {
    World world;
    world.With(Vm("a").Joined("old"))
        .With(Node("a", "old").Down())
        .With(Node("a", "new").Index(900));
    world.Raw().vms[0].vm.Change().instance_exists = runs;
    return Observe(time, std::move(world)).vms[0].link;
  };
  EXPECT_EQ(look_at(seconds(0), true).state, nodepool::LinkState::kAmbiguous);
  EXPECT_EQ(look_at(seconds(119), true).state, nodepool::LinkState::kAmbiguous);
  EXPECT_EQ(look_at(seconds(121), false).state, nodepool::LinkState::kAmbiguous)
      << "no client runs without a guest";
  const nodepool::Link link = look_at(seconds(122), true);
  EXPECT_EQ(link.state, nodepool::LinkState::kLinked);
  EXPECT_EQ(link.node, 1U);
}

TEST_F(ObserverMemoryTest, C5_after_a_recovery_the_down_time_starts_again) {
  Observe(seconds(0), Down());
  EXPECT_EQ(Observe(seconds(60), Down(false)).vms[0].node_down_for, base::Duration::zero());
  EXPECT_EQ(Observe(seconds(120), Down()).vms[0].node_down_for, base::Duration::zero());
  EXPECT_EQ(Observe(seconds(130), Down()).vms[0].node_down_for, seconds(10));
}

// The agent may observe only every few minutes.
TEST_F(ObserverMemoryTest, C5_after_an_unobserved_recovery_the_down_time_starts_again) {
  const auto down_at = [](std::uint64_t modify_index) {
    World world = Down();
    world.Nodes()[0].modify_index = modify_index;
    return world;
  };
  Observe(minutes(0), down_at(100));
  EXPECT_EQ(Observe(minutes(5), down_at(100)).vms[0].node_down_for, minutes(5));
  EXPECT_EQ(Observe(minutes(10), down_at(108)).vms[0].node_down_for, base::Duration::zero());
  EXPECT_EQ(Observe(minutes(12), down_at(108)).vms[0].node_down_for, minutes(2));
}

TEST_F(ObserverMemoryTest,
       C5_an_observation_without_nomad_neither_resets_nor_reports_the_down_time) {
  Observe(seconds(0), Down());
  World unreadable;
  unreadable.With(Vm("a").Joined()).NomadUnreadable();
  EXPECT_EQ(Observe(seconds(60), std::move(unreadable)).vms[0].node_down_for,
            base::Duration::zero());
  EXPECT_EQ(Observe(seconds(90), Down()).vms[0].node_down_for, seconds(90));
}

TEST_F(ObserverMemoryTest, C5_for_a_new_node_id_the_down_time_starts_again) {
  Observe(seconds(0), Down());
  World again;
  again.With(Vm("a").Joined()).With(Node("a", "node-second").Down());
  EXPECT_EQ(Observe(seconds(90), std::move(again)).vms[0].node_down_for, base::Duration::zero());
}

World Readable(bool readable, std::initializer_list<const char*> names = {"a"}) {
  World world;
  for (const char* name : names) world.With(Vm(name));
  if (!readable) world.NomadUnreadable();
  return world;
}

base::Duration Unreadable(const Observation& observation, const std::string& name) {
  const auto found = std::find_if(observation.vms.begin(), observation.vms.end(),
                                  [&](const VmView& view) { return view.vm->name == name; });
  return found == observation.vms.end() ? base::Duration(-1) : found->nomad_unreadable_for;
}

TEST_F(ObserverMemoryTest, C15_unreadable_time_adds_up_over_several_outages) {
  EXPECT_EQ(Unreadable(Observe(seconds(0), Readable(true)), "a"), seconds(0));
  EXPECT_EQ(Unreadable(Observe(seconds(10), Readable(false)), "a"), seconds(0));
  EXPECT_EQ(Unreadable(Observe(seconds(20), Readable(false)), "a"), seconds(10));
  EXPECT_EQ(Unreadable(Observe(seconds(30), Readable(true)), "a"), seconds(20));
  EXPECT_EQ(Unreadable(Observe(seconds(90), Readable(true)), "a"), seconds(20));
  Observe(seconds(100), Readable(false));
  EXPECT_EQ(Unreadable(Observe(seconds(105), Readable(true)), "a"), seconds(25));
}

TEST_F(ObserverMemoryTest, C15_a_vm_is_credited_only_with_outages_since_it_was_first_observed) {
  Observe(seconds(0), Readable(false));
  Observe(seconds(60), Readable(false, {"a", "b"}));
  const Observation both = Observe(seconds(80), Readable(true, {"a", "b"}));
  EXPECT_EQ(Unreadable(both, "a"), seconds(80));
  EXPECT_EQ(Unreadable(both, "b"), seconds(20));
  const Observation three = Observe(seconds(90), Readable(true, {"a", "b", "c"}));
  EXPECT_EQ(Unreadable(three, "c"), seconds(0));
}

TEST_F(ObserverMemoryTest, C15_an_outage_moves_the_join_deadline) {
  const auto broken_at = [this](base::Duration time, bool readable) {
    World world;
    world.With(Vm("a").Age(minutes(1)));  // 14 of its 15 minutes remain
    if (!readable) world.NomadUnreadable();
    PoolSnapshot snapshot = world.Pool();
    snapshot.seen = std::make_shared<const Snapshot>(Observe(time, std::move(world)));
    return IsBroken(*snapshot.vms()[0], snapshot);
  };
  EXPECT_FALSE(broken_at(minutes(0), false));
  EXPECT_FALSE(broken_at(minutes(60), true));
  EXPECT_FALSE(broken_at(minutes(74) - milliseconds(1), true));
  EXPECT_TRUE(broken_at(minutes(74), true));
}

World Sick(bool node_down, bool runs, bool readable = true) {
  World world;
  Vm vm("a");
  vm.Joined();
  if (!runs) vm.Stopped();
  Node node("a");
  if (node_down) node.Down();
  world.With(vm).With(node);
  if (!readable) world.NomadUnreadable();
  return world;
}

TEST_F(ObserverMemoryTest, the_time_of_an_unhealthy_vm_starts_again_when_its_node_recovers) {
  const auto unhealthy_for = [this](base::Duration time, World world) {
    return Observe(time, std::move(world)).vms[0].unhealthy_for;
  };
  EXPECT_EQ(unhealthy_for(minutes(0), Sick(true, false)), minutes(0));
  EXPECT_EQ(unhealthy_for(minutes(7), Sick(true, false)), minutes(7));
  EXPECT_EQ(unhealthy_for(minutes(8), Sick(false, false)), minutes(0));
  EXPECT_EQ(unhealthy_for(minutes(9), Sick(true, false)), minutes(0));
  EXPECT_EQ(unhealthy_for(minutes(12), Sick(true, false)), minutes(3));
  EXPECT_EQ(unhealthy_for(minutes(13), Sick(true, true)), minutes(4)) << "C17: it runs";
}

TEST_F(ObserverMemoryTest, after_an_unobserved_recovery_the_time_of_an_unhealthy_vm_starts_again) {
  const auto sick_at = [](std::uint64_t modify_index) {
    World world = Sick(true, false);
    world.Nodes()[0].modify_index = modify_index;
    return world;
  };
  Observe(minutes(0), sick_at(100));
  EXPECT_EQ(Observe(minutes(5), sick_at(108)).vms[0].unhealthy_for, base::Duration::zero());
}

TEST_F(ObserverMemoryTest,
       C17_a_node_that_is_gone_has_not_changed_however_seldom_it_is_looked_for) {
  const World gone = World().With(Vm("a").Joined());
  for (int i = 0; i <= 4; ++i) {
    EXPECT_EQ(Observe(minutes(3 * i), gone).vms[0].unhealthy_for, minutes(3 * i));
  }
}

TEST_F(ObserverMemoryTest,
       C17_a_node_that_flaps_is_unhealthy_all_the_time_that_nobody_saw_it_ready) {
  for (int i = 0; i <= 10; ++i) {
    World world = Sick(true, false);
    if (i % 2 != 0) world.Nodes()[0].status = nomad::NodeStatus::kInitializing;
    world.Nodes()[0].modify_index = 100 + static_cast<std::uint64_t>(i);
    EXPECT_EQ(Observe(minutes(i), std::move(world)).vms[0].unhealthy_for, minutes(i));
  }
  World later = Sick(true, false);
  later.Nodes()[0].modify_index = 200;
  EXPECT_EQ(Observe(minutes(13), std::move(later)).vms[0].unhealthy_for, minutes(0)) << "a gap";
}

TEST_F(ObserverMemoryTest,
       C17_a_node_that_has_not_changed_since_the_last_look_is_unhealthy_all_the_time) {
  const auto unhealthy_for = [&](base::Duration time, std::uint64_t index) {
    World world = Sick(true, false);
    world.Nodes()[0].modify_index = index;
    return Observe(time, std::move(world)).vms[0].unhealthy_for;
  };
  unhealthy_for(minutes(0), 100);
  unhealthy_for(minutes(1), 101);
  EXPECT_EQ(unhealthy_for(minutes(11), 101), minutes(11)) << "nobody looked for ten minutes";
}

TEST_F(ObserverMemoryTest, C15_time_without_nomad_makes_no_vm_unhealthy) {
  Observe(minutes(0), Sick(true, false));
  Observe(minutes(2), Sick(true, false));
  Observe(minutes(30), Sick(true, false, false));
  EXPECT_EQ(Observe(minutes(31), Sick(true, false)).vms[0].unhealthy_for, minutes(3));
}

TEST_F(ObserverMemoryTest, C9_C18_time_without_nomad_neither_counts_nor_begins_a_time_anew) {
  const auto seen = [&](base::Duration time, const Node& node, bool readable) {
    World world = World().With(Vm("a").Joined().Marked()).With(node);
    if (!readable) world.NomadUnreadable();
    return Observe(time, std::move(world)).vms[0];
  };
  seen(seconds(0), Node("a").Draining("a"), true);
  memory_.RecordAwaiting(base::MonoTime(hours(5)), {"uid-a"}, {"uid-a"});
  seen(seconds(8), Node("a").Draining("a"), false);
  const VmView drains = seen(seconds(10), Node("a").Draining("a"), true);
  EXPECT_EQ(drains.drain_known_for, seconds(2));
  EXPECT_EQ(drains.awaited_for, seconds(2));
  EXPECT_EQ(drains.held_for, seconds(2));
  seen(seconds(11), Node("a").Drained("a"), true);
  seen(seconds(18), Node("a").Drained("a"), false);
  EXPECT_EQ(seen(seconds(19), Node("a").Drained("a"), true).node_drained_for, seconds(1));
}

TEST(IsGone, C15_only_a_404_of_a_nomad_that_is_as_new_as_the_vm_proves_that_a_node_is_gone) {
  const auto answer = [](int status, const std::string& index) {
    http::Headers headers;
    if (!index.empty()) headers.Set("X-Nomad-Index", index);
    return nomad::ToStatus({.status = status, .headers = headers, .body = "node not found"}, "get");
  };
  const harvester::VirtualMachine vm = Vm("a").View().vm;  // made at index 100
  EXPECT_TRUE(IsGone(answer(404, "101"), vm));
  EXPECT_TRUE(IsGone(answer(404, "100"), vm));
  EXPECT_FALSE(IsGone(answer(404, "99"), vm)) << "another Nomad, or one that was restored";
  EXPECT_FALSE(IsGone(answer(404, ""), vm)) << "a proxy";
  EXPECT_FALSE(IsGone(answer(503, "101"), vm));
  EXPECT_FALSE(IsGone(absl::OkStatus(), vm));
}

TEST_F(ObserverMemoryTest, C9_a_drain_is_known_since_it_was_first_seen_and_another_one_anew) {
  const Vm vm = Vm("a").Joined().Marked();
  const auto known = [&](base::Duration time, const Vm& observed, const Node& node) {
    return Observe(time, World().With(observed).With(node)).vms[0].drain_known_for;
  };
  EXPECT_EQ(known(seconds(0), vm, Node("a")), seconds(0)) << "marked, and not drained yet";
  EXPECT_EQ(known(minutes(5), vm, Node("a").Draining("a")), seconds(0));
  EXPECT_EQ(known(minutes(7), vm, Node("a").Draining("a")), minutes(2));
  EXPECT_EQ(known(minutes(8), vm, Node("a").Drained("a")), minutes(3)) << "complete";
  const Vm other = Vm("a").Joined().Marked("other");
  EXPECT_EQ(known(minutes(9), other, Node("a").Draining("a", "other")), seconds(0));
  EXPECT_EQ(known(minutes(10), Vm("a").Joined(), Node("a").Draining("a", "other")), seconds(0))
      << "the mark was removed";
  EXPECT_EQ(known(minutes(11), other, Node("a").Draining("a", "other")), seconds(0));
}

}  // namespace
}  // namespace nomad_harvester::scaling
