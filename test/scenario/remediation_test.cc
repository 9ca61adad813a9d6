// SPDX-License-Identifier: Apache-2.0
//
// How a pool handles VMs that fail repeatedly or are dead.

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"

#include "harness.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kQuotaIsFull[] = "memory insufficient resources due to resource quota";

// The machine stops, its node goes down.
void StopForGood(Harness& h, const std::string& vm) {
  ASSERT_TRUE(h.cluster.StopVm(vm));
  h.clock.Advance(minutes(1));
}

TEST(Unhealthy, C17_a_dead_vm_is_replaced_after_its_time_and_the_pool_keeps_its_count) {
  Harness h;
  h.policy["replace_unhealthy_after"] = "5m";
  ASSERT_TRUE(h.Scale(3).ok());
  const std::string dead = h.VmNames()[0];
  StopForGood(h, dead);
  h.Tick(seconds(120));
  EXPECT_THAT(h.VmNames(), ::testing::Contains(dead)) << "its five minutes are not over";
  for (int i = 0; i < 30; ++i) {
    h.Tick(seconds(10));
    EXPECT_EQ(h.Status()->count, 3) << h.Transcript();
  }
  EXPECT_THAT(h.VmNames(), Not(::testing::Contains(dead))) << h.Transcript();
  h.CheckAtRest(3);
}

TEST(Unhealthy, C17_a_dead_vm_that_cannot_be_replaced_is_removed_a_minute_later) {
  Harness h;
  h.policy["replace_unhealthy_after"] = "5m";
  ASSERT_TRUE(h.Scale(3).ok());
  const std::string dead = h.VmNames()[0];
  h.cluster.SetQuotaExceeded(kQuotaIsFull);
  StopForGood(h, dead);
  h.Tick(minutes(5));
  EXPECT_THAT(h.VmNames(), ::testing::Contains(dead)) << h.Transcript();
  h.Tick(minutes(4));
  EXPECT_THAT(h.VmNames(), Not(::testing::Contains(dead))) << h.Transcript();
  EXPECT_EQ(h.Status()->count, 2);
  h.cluster.SetQuotaExceeded(std::nullopt);
  h.Converge(3);
  h.CheckAtRest(3);
}

TEST(Unhealthy, C17_no_vm_is_made_for_one_whose_node_is_ready_again_when_it_is_read) {
  Harness h;
  h.policy["replace_unhealthy_after"] = "5m";
  ASSERT_TRUE(h.Scale(3).ok());
  const std::vector<std::string> before = h.VmNames();
  const std::string node = h.NodeOf(before[0]);
  ASSERT_TRUE(h.cluster.KillNode(node));
  h.Tick(minutes(4));
  bool is_read = false;
  h.OnEachRequest([&](const RequestInfo& request) {
    const bool reads = request.verb == "get" && request.name == node;
    if (reads && !std::exchange(is_read, true)) h.cluster.ReviveNode(node);
  });
  h.Tick(minutes(10));
  EXPECT_TRUE(is_read);
  EXPECT_EQ(h.VmNames(), before) << h.Transcript();
}

// Nothing is at rest in such a pool.
TEST(Unhealthy, R2_a_dead_vm_is_replaced_beside_others_that_are_not_ready) {
  Harness h;
  h.policy["replace_unhealthy_after"] = "5m";
  h.policy["replacement_window"] = "0 2 * * * 1h";
  ASSERT_TRUE(h.Scale(6).ok());
  const std::string dead = h.VmNames()[0];
  StopForGood(h, dead);
  h.Tick(minutes(3));
  StopForGood(h, h.VmNames()[1]);
  h.Tick(minutes(3));
  EXPECT_EQ(h.Status()->count, 6) << h.Transcript();
  EXPECT_THAT(h.VmNames(), Not(::testing::Contains(dead))) << h.Transcript();
}

TEST(Unhealthy, R6_a_dead_vm_that_is_protected_once_its_successor_exists_stays_beside_it) {
  Harness h;
  h.policy["replace_unhealthy_after"] = "5m";
  ASSERT_TRUE(h.Scale(3).ok());
  const std::string dead = h.VmNames()[0];
  h.OnEachRequest([&](const RequestInfo& request) {
    // Before its mark, which follows at once.
    if (request.verb == "create" && request.resource == "virtualmachines") {
      h.cluster.EditAnnotation(dead, Key("protect"), "true");
    }
  });
  StopForGood(h, dead);
  h.Tick(minutes(20));
  EXPECT_THAT(h.VmNames(), ::testing::Contains(dead)) << h.Transcript();
  EXPECT_EQ(h.VmNames().size(), 4U) << h.Transcript();
  EXPECT_EQ(h.Status()->count, 4) << "the new one counts by itself";
}

// A mark that the Lease does not name would be rolled back by the next process.
TEST(Unhealthy, C10_a_dead_vm_is_named_on_the_lease_before_its_mark) {
  Harness h;
  h.policy["replace_unhealthy_after"] = "1m";
  ASSERT_TRUE(h.Scale(3).ok());
  const std::string dead = h.VmNames()[0];
  std::string action;
  h.OnEachRequest([&](const RequestInfo& request) {
    const bool marks = request.verb == "patch" && request.name == dead &&
                       request.body.find("unhealthy") != std::string::npos;
    if (marks) action = AnnotationOf(h.Leases().at(0), kActionKey);
  });
  StopForGood(h, dead);
  h.Tick(minutes(3));
  EXPECT_THAT(action, HasSubstr(dead)) << h.Transcript();
}

TEST(Unhealthy, never_more_than_max_unhealthy_are_removed_at_once) {
  Harness h;
  h.policy["replace_unhealthy_after"] = "1m";
  h.policy["max_unhealthy"] = "1";
  ASSERT_TRUE(h.Scale(5).ok());
  const std::vector<std::string> vms = h.VmNames();
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(h.cluster.StopVm(vms[i]));
  h.Tick(minutes(5));
  EXPECT_EQ(h.VmNames().size(), 5U) << h.Transcript();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(h.VmNames(), Not(::testing::Contains(vms[i]))) << h.Transcript();
  }
  int on_their_way = 0;
  for (const std::string& line : h.cluster.Journal()) {
    if (line.find(" Marked ") != std::string::npos) ++on_their_way;
    if (line.find(" VmGone ") != std::string::npos) --on_their_way;
    EXPECT_LE(on_their_way, 1) << line;
  }
  h.WaitUntilReady();
  h.CheckAtRest(5);
}

TEST(Stuck, S2_the_leftovers_of_a_stuck_vm_are_removed_once_it_is_deleted) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  const std::string vm = h.VmNames()[0];
  ASSERT_TRUE(h.cluster.HangDeletion(vm));
  ASSERT_TRUE(h.Accept(0).ok());
  h.Tick(minutes(15));
  EXPECT_THAT(h.log->Text(), HasSubstr("stuck"));
  const auto status = h.Status();
  EXPECT_TRUE(status->ready) << "a stuck VM does not block for ever";
  EXPECT_EQ(status->meta.at("harvester.stuck"), "1");
  h.Tick(seconds(10));
  h.cluster.ResetCounters();
  h.Tick(minutes(1));
  EXPECT_EQ(h.cluster.RequestCount(), 12) << "nobody polls for a VM that is stuck";
  ASSERT_TRUE(h.cluster.HangDeletion(vm, false));
  h.WaitUntilReady();
  h.CheckAtRest(0);
}

TEST(Quota, C4_a_full_one_does_not_hold_a_vm_that_is_being_deleted) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  h.cluster.SetQuotaExceeded(kQuotaIsFull);
  const absl::Status removed = h.Scale(1);
  EXPECT_TRUE(removed.ok()) << removed << h.Transcript();
  h.CheckAtRest(1);
}

TEST(Quota, C4_the_background_frees_a_vm_that_is_stuck_since_before_its_start) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  const std::string vm = h.VmNames()[0];
  h.cluster.SetQuotaExceeded(kQuotaIsFull);
  ASSERT_TRUE(h.cluster.DeleteVmByHand(vm));
  h.clock.Advance(minutes(30));
  h.WaitUntilReady();
  EXPECT_TRUE(h.cluster.Vm(vm).is_null()) << h.Transcript();
}

TEST(Quota, C4_a_vm_that_is_off_is_chosen_although_a_full_one_refuses_its_mark) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  const std::string off = h.VmNames()[1];
  ASSERT_TRUE(h.cluster.PowerOff(off));
  h.Tick(seconds(30));
  h.cluster.SetQuotaExceeded(kQuotaIsFull);
  const absl::Status removed = h.Scale(1);
  EXPECT_TRUE(removed.ok()) << removed << h.Transcript();
  EXPECT_TRUE(h.cluster.Vm(off).is_null()) << h.Transcript();
}

TEST(Circuit, C12_after_three_vms_that_never_joined_one_is_tried_alone) {
  Harness h;
  h.cluster.NeverJoin(6);
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_FALSE(h.Scale(2).ok());
    h.clock.Advance(hours(1));
  }
  const absl::Status probe = h.Scale(2);
  EXPECT_TRUE(probe.ok()) << probe;
  EXPECT_EQ(h.VmNames().size(), 1U) << h.Transcript();
  EXPECT_THAT(h.log->Text(), HasSubstr("creating only one"));
  EXPECT_TRUE(h.Scale(2).ok()) << "its success closes the circuit";
  h.CheckAtRest(2);
}

TEST(BackOff, C12_a_scale_in_that_removed_nothing_waits_and_growth_does_not) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  h.RunJob(1);
  const std::string node = h.NodeOf(h.VmNames()[0]);
  h.cluster.HangDrain(node);
  h.clock.After(seconds(12), [&] { h.cluster.CancelDrain(node, true); });
  EXPECT_FALSE(h.Scale(0).ok());
  const absl::Status refused = h.Scale(0);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(refused.ToString(), HasSubstr("removing VMs failed 1 time"));
  EXPECT_TRUE(h.Scale(2).ok());
  h.CheckAtRest(2);
}

void LoseNode(Harness& h, const std::string& vm) {
  const std::string node = h.NodeOf(vm);
  h.cluster.KillNode(node);
  h.cluster.PurgeNode(node);
}

TEST(MassLoss, C15_it_holds_a_scale_in_for_ten_minutes) {
  Harness h;
  h.Reach(3);
  const std::vector<std::string> vms = h.VmNames();
  LoseNode(h, vms[0]);
  LoseNode(h, vms[1]);
  ASSERT_TRUE(h.Status().ok());
  const absl::Status refused = h.Scale(2);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(refused.ToString(), HasSubstr("2 of 3 running VMs have lost their Nomad node"));
  EXPECT_EQ(h.VmNames(), vms);
  h.clock.Advance(minutes(10));
  ASSERT_TRUE(h.Status().ok());
  EXPECT_TRUE(h.Scale(2).ok()) << h.Transcript();
  EXPECT_EQ(h.VmNames().size(), 2U);
}

TEST(MassLoss, C15_meanwhile_the_background_removes_nothing) {
  Harness h;
  ASSERT_TRUE(h.Scale(5).ok());
  h.RunJob(5);
  h.HangDrains();
  ASSERT_TRUE(h.Accept(4).ok());
  std::vector<std::string> standing;
  for (const json& vm : h.Vms()) {
    if (!IsMarked(vm)) standing.push_back(NameOf(vm));
  }
  ASSERT_EQ(standing.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) LoseNode(h, standing[i]);
  h.HangDrains(false);
  h.Tick(minutes(3));
  EXPECT_EQ(h.VmNames().size(), 5U) << h.Transcript();
}

TEST(MassLoss, C15_a_removal_that_has_begun_waits_until_the_nodes_are_back) {
  Harness h;
  ASSERT_TRUE(h.Scale(3).ok());
  h.RunJob(3);
  h.HangDrains();
  ASSERT_TRUE(h.Accept(1).ok());
  std::vector<std::string> cut_off;
  for (const json& vm : h.Vms()) {
    if (IsMarked(vm)) cut_off.push_back(h.NodeOf(NameOf(vm)));
  }
  ASSERT_EQ(cut_off.size(), 2U);
  for (const std::string& node : cut_off) h.cluster.KillNode(node);
  h.Tick(minutes(15));
  EXPECT_EQ(h.VmNames().size(), 3U) << h.Transcript();
  for (const std::string& node : cut_off) h.cluster.ReviveNode(node);
  h.HangDrains(false);
  h.Converge(1);
  h.CheckAtRest(1);
}

// The pool's observation still had the right one: only the list that is read right before the
// DELETE tells.
TEST(Unjoined, C15_a_list_of_another_nomad_right_before_the_delete_removes_no_vm) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  h.cluster.NeverJoin(1);
  h.policy["join_timeout"] = "3m";
  ASSERT_TRUE(h.Accept(2).ok());
  bool observed_as_marked = false;
  bool replaced = false;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.verb == "list" && request.resource == "virtualmachines") {
      for (const json& vm : h.Vms()) observed_as_marked |= IsMarked(vm);
    }
    if (request.verb != "list" || request.resource != "nodes") return Fault::None();
    replaced |= observed_as_marked && request.query.count("index") == 0;
    if (replaced) return Fault::NomadList("[]", 1);
    return Fault::None();
  });
  h.Tick(minutes(10));
  h.cluster.SetFaultHook(nullptr);
  ASSERT_TRUE(replaced) << h.Transcript();
  EXPECT_EQ(h.VmNames().size(), 2U) << h.Transcript();
}

TEST(Lease, C10_a_name_whose_vm_was_removed_is_never_used_again_after_a_kill) {
  Harness h;
  h.cluster.FailStart(1, "ErrorUnschedulable", "no host has room");
  // Killed right after the DELETE of the failed VM took effect.
  h.ScaleAndDieAt(1, "delete", "virtualmachines");
  std::set<std::string> used;
  for (const std::string& line : h.cluster.Journal()) {
    const std::size_t at = line.find("web-");
    if (at != std::string::npos) used.insert(line.substr(at, 12));
  }
  h.Restart();
  h.Converge(1);
  EXPECT_THAT(used, Not(::testing::Contains(h.VmNames()[0]))) << h.Transcript();
  h.CheckAtRest(1);
}

}  // namespace
}  // namespace nomad_harvester::scenario
