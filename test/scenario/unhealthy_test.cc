// SPDX-License-Identifier: Apache-2.0
//
// Unhealthy VMs keep their places, and none gets a new VM for nothing (docs/behaviour.md, C17, R1,
// R2).

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "harness.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

class DeadVms : public testing::Test {
 protected:
  explicit DeadVms(simulator::Options options = {}) : h_(std::move(options)) {}

  void MakePool(int count) {
    h_.policy["replace_unhealthy_after"] = "5m";
    ASSERT_TRUE(h_.Scale(count).ok());
    for (const std::string& vm : h_.VmNames()) old_.insert(vm);
  }
  // Five seconds pass; takes note of the least and the largest count.
  void Step() {
    const auto status = h_.Status();
    ASSERT_TRUE(status.ok()) << status.status();
    least_ = std::min(least_, status->count);
    most_ = std::max(most_, status->count);
    h_.process().RunBackground();
    h_.clock.Advance(seconds(5));
  }
  void Watch(base::Duration duration) {
    for (base::Duration passed{}; passed < duration; passed += seconds(5)) Step();
  }
  // Two of ten die at once, and the pool keeps its count.
  void ExpectBothReplaced() {
    MakePool(10);
    h_.cluster.StopVm(h_.VmNames()[0]);
    h_.cluster.StopVm(h_.VmNames()[1]);
    Watch(minutes(20));
    EXPECT_EQ(least_, 10) << h_.Transcript();
  }
  // Its work is within the time that its group gives it.
  void DisconnectOneThatHasWork() {
    simulator::JobSpec job;
    job.id = "api";
    job.count = 5;
    job.lost_after = hours(2);
    h_.cluster.RunJob(job);
    h_.clock.Advance(seconds(5));
    h_.cluster.SetNodeStatus(h_.NodeOf(h_.VmNames()[0]), "disconnected");
  }
  // The outage lasts two minutes, and begins shortly before the VM counts as unhealthy.
  void WatchWhileAllocationsCannotBeRead() {
    Watch(minutes(4));
    const base::MonoTime until = h_.clock.Now() + minutes(2);
    h_.Inject(Fault::Answer(500, ""), [&, until](const RequestInfo& request) {
      return request.system == System::kNomad &&
             request.target.find("allocations") != std::string::npos && h_.clock.Now() < until;
    });
    Watch(minutes(10));
  }
  std::size_t NewVms() const {
    std::size_t made = 0;
    for (const std::string& vm : h_.VmNames()) made += old_.contains(vm) ? 0 : 1;
    return made;
  }

  Harness h_;
  std::set<std::string> old_;
  std::int64_t least_ = 1000;
  std::int64_t most_ = 0;
};

class SlowBoot : public DeadVms {
 protected:
  SlowBoot() : DeadVms({.boot_time = minutes(3)}) {}
};

TEST_F(SlowBoot, R1_an_unhealthy_vm_is_marked_as_soon_as_its_new_vm_exists) {
  MakePool(5);
  const std::string dead = h_.VmNames()[0];
  std::optional<base::MonoTime> created;
  std::optional<base::MonoTime> marked;
  h_.OnEachRequest([&](const RequestInfo& request) {
    if (request.verb == "create" && request.resource == "virtualmachines") {
      created = h_.clock.Now();
    } else if (request.verb == "patch" && request.name == dead && !marked.has_value()) {
      marked = h_.clock.Now();
    }
  });
  h_.cluster.KillNode(h_.NodeOf(dead));
  Watch(minutes(10));
  ASSERT_TRUE(created.has_value() && marked.has_value()) << h_.Transcript();
  EXPECT_LE(*marked - *created, seconds(10));
}

TEST_F(SlowBoot, C17_two_vms_that_die_at_once_are_both_replaced) { ExpectBothReplaced(); }

TEST_F(DeadVms, C17_a_vm_that_waited_for_max_unhealthy_is_replaced) {
  h_.policy["max_unhealthy"] = "1";
  h_.policy["deletion_holds"] = "vpn";
  h_.policy["hold_timeout"] = "3m";
  ExpectBothReplaced();
}

TEST_F(DeadVms, R2_an_unhealthy_vm_does_not_wait_for_a_drain_of_another_one) {
  h_.policy["node_drain_deadline"] = "1h";
  MakePool(6);
  h_.RunJob(6);
  h_.HangDrains();
  ASSERT_TRUE(h_.Scale(5).ok());
  std::string dead;
  for (const json& vm : h_.Vms()) {
    if (!IsMarked(vm)) dead = NameOf(vm);
  }
  h_.clock.After(minutes(5), [&] { h_.cluster.StopVm(dead); });
  // The agent goes on asking while the background waits for the drain.
  for (int second = 10; second < 900; second += 10) {
    h_.clock.After(seconds(second), [&] { h_.Status().status().IgnoreError(); });
  }
  Watch(minutes(15));
  EXPECT_EQ(least_, 5) << h_.Transcript();
}

TEST_F(DeadVms, C17_a_vm_that_was_protected_for_a_while_is_replaced) {
  MakePool(5);
  const std::string dead = h_.VmNames()[0];
  h_.cluster.EditAnnotation(dead, Key("protect"), "true");
  h_.cluster.StopVm(dead);
  Watch(minutes(20));
  h_.cluster.EditAnnotation(dead, Key("protect"), std::nullopt);
  Watch(minutes(10));
  EXPECT_EQ(least_, 5) << h_.Transcript();
}

// Nobody can tell whether its work is within its time.
TEST_F(DeadVms, C17_no_vm_is_made_for_a_disconnected_one_while_allocations_cannot_be_read) {
  MakePool(5);
  DisconnectOneThatHasWork();
  WatchWhileAllocationsCannotBeRead();
  EXPECT_EQ(NewVms(), 0U) << h_.Transcript();
  EXPECT_EQ(most_, 5);
}

// The pool is not at rest, whatever keeps the unhealthy VM.
TEST_F(DeadVms, R2_no_healthy_vm_is_replaced_instead_of_an_unhealthy_one_that_may_not) {
  MakePool(5);
  DisconnectOneThatHasWork();
  h_.cluster.EditAnnotation(h_.VmNames()[1], Key("replace"), "its disk is full");
  WatchWhileAllocationsCannotBeRead();
  EXPECT_EQ(NewVms(), 0U) << h_.Transcript();
}

TEST_F(DeadVms, R5_a_vm_of_the_same_spec_that_becomes_ready_lets_replacement_go_on) {
  h_.policy["join_timeout"] = "5m";
  MakePool(5);
  h_.cluster.NeverJoin(1);
  h_.cluster.StopVm(h_.VmNames()[0]);
  Watch(minutes(20));
  h_.Converge(5);
  h_.clock.Advance(hours(12));
  Watch(minutes(2));
  least_ = 5;
  h_.cluster.StopVm(h_.VmNames()[0]);
  Watch(minutes(20));
  EXPECT_EQ(least_, 5) << h_.Transcript();
}

TEST_F(DeadVms, R6_a_dead_vm_does_not_stay_because_the_process_died_before_its_mark) {
  MakePool(5);
  const std::string dead = h_.VmNames()[0];
  const std::string node = h_.NodeOf(dead);
  bool died = false;
  h_.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (died || request.verb != "patch" || request.name != dead) return Fault::None();
    died = true;
    return Fault::Die();
  });
  h_.cluster.StopVm(dead);
  for (int i = 0; i < 90 && !died; ++i) Step();
  ASSERT_TRUE(died);
  h_.cluster.PurgeNode(node);
  h_.Restart();
  Watch(minutes(15));
  EXPECT_EQ(most_, 5) << h_.Transcript();
}

}  // namespace
}  // namespace nomad_harvester::scenario
