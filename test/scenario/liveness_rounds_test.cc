// SPDX-License-Identifier: Apache-2.0
//
// What troubles leave behind: rounds of the background, pauses that begin and end in the middle,
// names and drains whose answers were lost.

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"

#include "costs.h"
#include "operator.h"
#include "support/node_to_purge.h"
#include "trouble.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// --- Pauses that begin or end while the background is at work.

TEST(Pause, L10_one_that_begins_while_the_background_waits_for_a_drain_stops_the_removal) {
  Harness h;
  h.LeaveOneDraining();
  h.clock.After(seconds(30), [&h] { ASSERT_TRUE(Operator(h).Pause(kAlways).ok()); });
  h.clock.After(seconds(90), [&h] { h.HangDrains(false); });
  h.Tick(minutes(5));
  EXPECT_EQ(h.Vms().size(), 2U) << "it was removed from a paused pool\n" << h.Transcript();
}

TEST(Pause, L10_status_notices_the_end_while_the_background_waits_for_a_drain) {
  Harness h;
  h.LeaveOneDraining();
  ASSERT_TRUE(Operator(h).Pause(kAlways).ok());
  EXPECT_FALSE(h.Scale(2).ok()) << "so it is known";
  bool ready = false;
  h.clock.After(seconds(30), [&h] { ASSERT_TRUE(Operator(h).Pause(std::nullopt).ok()); });
  h.clock.After(minutes(9), [&] { ready = h.Status()->ready; });
  h.clock.After(minutes(10), [&h] { h.HangDrains(false); });
  h.Tick(minutes(12));
  EXPECT_TRUE(ready) << h.log->Text();
}

TEST(Pause, L10_a_new_configuration_does_not_forget_it) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  h.Tick(minutes(1));
  ASSERT_TRUE(Operator(h).Pause(kAlways).ok());
  EXPECT_FALSE(h.Scale(2).ok());
  ASSERT_FALSE(h.Status()->ready);
  h.process().Configure();
  h.Tick(minutes(2));
  EXPECT_FALSE(h.Status()->ready) << h.log->Text();
}

// --- Policies and configurations that change while the background is at work.

TEST(Policy, S5_C13_a_dry_run_that_begins_while_a_drain_lasts_counts_for_what_runs) {
  for (const bool changes : {false, true}) {
    Harness h;
    h.policy["replace_unhealthy_after"] = "5m";
    ASSERT_TRUE(h.Scale(3).ok());
    h.RunJob(3);
    h.HangDrains();
    ASSERT_TRUE(h.Accept(2).ok());
    std::string dead;
    h.clock.After(seconds(30), [&] {
      if (changes) h.policy["dry-run"] = "true";
      EXPECT_TRUE(h.Status().ok());
      for (const json& vm : h.Vms()) {
        if (!IsMarked(vm)) dead = NameOf(vm);
      }
      ASSERT_TRUE(h.cluster.StopVm(dead));
    });
    h.Tick(minutes(14));
    const std::vector<std::string> vms = h.VmNames();
    EXPECT_EQ(std::count(vms.begin(), vms.end(), dead), changes ? 1 : 0) << h.Transcript();
  }
}

// --- Refusals, and answers that are lost.

TEST(Drain, L3_one_that_was_accepted_is_not_rolled_back_for_an_earlier_refusal) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  h.RunJob(2);
  h.HangDrains();
  int posts = 0;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (!IsOfKind(ActOf(request, h.cluster), kDrain)) return Fault::None();
    return ++posts <= 2 ? Forbidden().fault(request) : Fault::DropReply();
  });
  h.clock.After(minutes(3), [&h] { h.HangDrains(false); });
  EXPECT_EQ(h.Scale(1).code(), absl::StatusCode::kPermissionDenied);
  h.Settle();
  EXPECT_EQ(h.VmNames().size(), 1U) << h.Transcript();
}

int RequestsOfScaleIn(bool lose_answers) {
  Harness h;
  EXPECT_TRUE(h.Scale(2).ok());
  h.RunJob(2);
  h.HangDrains();
  int posts = 0;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (!lose_answers || !IsOfKind(ActOf(request, h.cluster), kDrain)) return Fault::None();
    return ++posts <= 1 ? Unavailable().fault(request) : Fault::DropReply();
  });
  h.clock.After(minutes(10), [&h] { h.HangDrains(false); });
  const Scaled in = ScaleMeasured(h, 1);
  EXPECT_TRUE(in.outcome.ok()) << in.outcome;
  return in.requests;
}

TEST(Drain, L2_a_lost_answer_does_not_quicken_the_loop) {
  const int usual = RequestsOfScaleIn(false);
  const int lost = RequestsOfScaleIn(true);
  EXPECT_LE(lost, usual + 50) << "usual: " << usual;
}

// --- Rounds.

TEST(Rounds, S5_a_look_for_volumes_that_was_refused_is_made_up_for) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  h.Tick(minutes(1));
  ASSERT_TRUE(h.cluster.PutObject(FormerClaim()));
  h.cluster.Forbid("list", "persistentvolumeclaims");
  h.Restart();
  h.Tick(minutes(6));
  // Something else to do, before the next attempt is due.
  const std::string vm = h.VmNames().at(0);
  ASSERT_TRUE(h.cluster.EditAnnotation(vm, Key("joined-at"), std::nullopt));
  h.Tick(minutes(1));
  h.cluster.AllowAll();
  h.Tick(minutes(30));
  h.CheckAtRest(1);
}

TEST(Rounds, L7_a_refused_purge_of_a_vm_that_no_lease_names_is_tried_ever_less_often) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  const std::string node = support::AddNodeToPurge(h.cluster, {.name = "web-k2m4p"}, "nomad/web");
  h.Tick(minutes(2));  // the drain of a node without work is complete
  Trouble refused(h, kPurge, Forbidden());
  h.cluster.KillNode(node);
  h.Tick(minutes(75));
  ASSERT_GT(refused.answers(), 0) << h.Transcript();
  const int before = refused.answers();
  const int requests = h.cluster.RequestCount();
  h.Tick(minutes(40));
  EXPECT_LE(refused.answers() - before, 6);
  EXPECT_LE(h.cluster.RequestCount() - requests, 2 * 6 * 40 + 6 * 14);
  EXPECT_GT(std::stoi(h.Status()->meta.at("harvester.leftovers")), 0) << "L4";
}

TEST(Rounds, L7_a_vm_that_was_released_by_its_label_costs_nothing) {
  Harness h;
  const std::string marked = h.LeaveOneDraining();
  const std::string node = h.NodeOf(marked);
  ASSERT_TRUE(h.cluster.CancelDrain(node, true));
  h.HangDrains(false);
  h.Tick(minutes(2));
  json vm = h.cluster.Vm(marked);
  ASSERT_FALSE(IsMarked(vm));
  vm["metadata"]["labels"].erase("app.kubernetes.io/managed-by");
  ASSERT_TRUE(h.cluster.PutObject(vm));
  h.cluster.KillNode(node);
  h.Tick(minutes(2));
  EXPECT_LE(RequestsAtRest(h, minutes(20)), RestBudget(minutes(20), 1)) << h.log->Text();
}

// The agent's older releases ask for no Status during a cooldown.
TEST(Rounds, L7_what_is_refused_for_ever_costs_no_more_without_a_status) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  h.Tick(minutes(1));
  Trouble refused(h, kPurge, Forbidden());
  ASSERT_TRUE(h.Accept(1).ok());
  const auto wait = [&h](base::Duration duration) {
    const int requests = h.cluster.RequestCount();
    h.TickWithoutStatus(duration);
    return h.cluster.RequestCount() - requests;
  };
  const int before = refused.answers();
  const int requests = wait(minutes(30));
  EXPECT_GE(refused.answers() - before, 6) << "it is tried on\n" << h.Transcript();
  EXPECT_LE(refused.answers() - before, 18);
  EXPECT_LE(requests, 18 * (12 + 2));
  EXPECT_EQ(wait(minutes(60)), 0) << "no policy has spoken of the pool for half an hour";
}

TEST(Rounds, L7_a_status_and_the_pools_own_wake_ups_share_their_rounds) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  h.Tick(minutes(1));
  Trouble refused(h, kPurge, Forbidden());
  ASSERT_TRUE(h.Scale(1).ok());
  const int before = refused.answers();
  EXPECT_LE(RequestsAtRest(h, minutes(60)), RestBudget(minutes(60), 1)) << h.log->Text();
  EXPECT_LE(refused.answers() - before, 25);
}

TEST(Rounds, S5_a_drain_that_an_outage_interrupted_is_finished_without_a_status) {
  Harness h;
  const std::string marked = h.LeaveOneDraining();
  bool nomad_is_away = true;
  h.Inject(Fault::Drop(), [&](const RequestInfo& request) {
    return nomad_is_away && request.system == System::kNomad;
  });
  h.process().RunBackground();
  h.clock.Advance(minutes(2));
  h.process().RunBackground();
  ASSERT_EQ(h.Vms().size(), 2U);
  nomad_is_away = false;
  h.HangDrains(false);
  h.TickWithoutStatus(minutes(5));
  EXPECT_EQ(h.Vms().size(), 1U) << h.Transcript();
}

// A pool without VMs whose class a foreign node has, beside one with a VM that has lost its node.
TEST(Rounds, L7_another_pools_foreign_node_costs_nothing) {
  Harness h;
  scaling::StringMap batch = h.policy;
  batch["node_group_name"] = batch["node_class"] = "batch";
  h.cluster.AddForeignNode({.name = "metal-3", .node_class = "batch"});
  ASSERT_TRUE(h.Scale(1).ok());
  const std::string vm = h.VmNames().at(0);
  const std::string node = h.NodeOf(vm);
  h.cluster.StopVm(vm);
  h.clock.Advance(minutes(1));
  h.cluster.PurgeNode(node);
  const auto tick = [&] {
    ASSERT_TRUE(h.Status().ok());
    ASSERT_TRUE(h.process().Status(batch).ok());
    h.process().RunBackground();
    h.clock.Advance(seconds(10));
  };
  for (int i = 0; i < 30; ++i) tick();
  h.cluster.ResetCounters();
  for (int i = 0; i < 60; ++i) tick();
  EXPECT_LE(RequestsButKeys(h.cluster), 2 * 2 * 60)
      << testing::PrintToString(h.cluster.RequestCounts());
}

// One VM boots with the host name of another, which has never joined.
TEST(Rounds, L7_a_node_whose_address_is_another_vms_costs_nothing) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  h.Tick(minutes(1));
  const std::string other = h.VmNames().at(0);
  h.policy["join_timeout"] = "12h";
  h.cluster.NeverJoin(1);
  EXPECT_TRUE(h.Accept(2).ok());
  std::string waiting;
  for (const std::string& vm : h.VmNames()) {
    if (vm != other) waiting = vm;
  }
  ASSERT_TRUE(h.cluster.ReRegister(h.NodeOf(other), [&](simulator::NodeSpec& spec) {
    spec.name = spec.attributes["unique.hostname"] = waiting;
  }));
  h.Tick(minutes(3));
  const std::size_t lines = h.log->Count("A VM needs an operator");
  EXPECT_LE(RequestsAtRest(h, minutes(20)), RestBudget(minutes(20), 1)) << h.log->Text();
  EXPECT_LE(h.log->Count("A VM needs an operator") - lines, 25U);
}

// A purge that has been refused for an hour, and then a failure of another VM that passes.
TEST(Rounds, L1_an_old_trouble_does_not_hold_up_what_is_new) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  base::MonoTime failing_until{};
  int joins = 0;
  const Act join{.verb = "patch", .resource = "virtualmachines", .aspect = "joined-at"};
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (!request.has_effect) return Fault::None();
    const Act act = ActOf(request, h.cluster);
    if (IsOfKind(act, kPurge)) return Forbidden().fault(request);
    if (!IsOfKind(act, join)) return Fault::None();
    ++joins;
    return h.clock.Now() < failing_until ? Unavailable().fault(request) : Fault::None();
  });
  ASSERT_TRUE(h.Scale(1).ok());
  h.Tick(minutes(75));
  failing_until = h.clock.Now() + seconds(60);
  const std::string vm = h.VmNames().at(0);
  ASSERT_TRUE(h.cluster.EditAnnotation(vm, Key("joined-at"), std::nullopt));
  h.Tick(minutes(4));
  EXPECT_GT(joins, 0);
  EXPECT_NE(AnnotationOf(h.cluster.Vm(vm), Key("joined-at")), "");
}

// The next Scale removes another VM, whose drain takes long, and names the first one no more.
TEST(LateMark, C11_one_that_arrives_while_another_vm_is_removed_is_rolled_back) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  const std::string first = h.VmNames().at(0);
  const std::string other = h.VmNames().at(1);
  h.invariants.ExpectLateRequests();
  bool is_sent = false;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (is_sent) return Fault::Die();
    is_sent = request.verb == "patch" && request.name == first;
    return is_sent ? Fault::Delay(minutes(2)) : Fault::None();
  });
  EXPECT_FALSE(h.Scale(0).ok());
  ASSERT_TRUE(is_sent);
  h.cluster.SetFaultHook(nullptr);
  h.Restart();
  json object = h.cluster.Vm(other);
  object["metadata"]["annotations"][Key("delete-first")] = "true";
  ASSERT_TRUE(h.cluster.PutObject(object));
  h.HangDrains();
  h.clock.After(minutes(4), [&] { h.HangDrains(false); });
  EXPECT_TRUE(h.Scale(1).ok()) << h.Transcript();
  EXPECT_THAT(h.VmNames(), testing::ElementsAre(first)) << h.Transcript();
}

// --- Names.

TEST(Names, C10_one_whose_vm_has_existed_is_not_used_again) {
  Harness h;
  h.policy["join_timeout"] = "12h";
  h.cluster.NeverJoin(2);
  EXPECT_TRUE(h.Accept(2).ok());
  const std::string deleted = h.VmNames().at(0);
  h.cluster.DeleteVmByHand(deleted);
  h.Tick(minutes(1));
  ASSERT_THAT(h.VmNames(), Not(Contains(deleted)));
  EXPECT_TRUE(h.Accept(2).ok());
  EXPECT_EQ(h.VmNames().size(), 2U);
  EXPECT_THAT(h.VmNames(), Not(Contains(deleted))) << h.log->Text();
}

}  // namespace
}  // namespace nomad_harvester::scenario
