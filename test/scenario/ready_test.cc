// SPDX-License-Identifier: Apache-2.0
//
// Clients that register and are not ready: late, never, not any more (rule C17).

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/harvester/metadata.h"

#include "harness.h"
#include "support/client_behaviours.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::string ReadyAt(const Harness& h, const std::string& vm) {
  return AnnotationOf(h.cluster.Vm(vm), Key("ready-at"));
}

// From now on each drain that is started is counted.
void CountDrains(Harness& h, int* drains) {
  h.OnEachRequest([drains](const RequestInfo& request) {
    if (request.resource == "drain" && request.body.find("\"Deadline\"") != std::string::npos) {
      ++*drains;
    }
  });
}

TEST(Ready, C17_a_pool_is_not_ready_until_the_nodes_of_its_vms_are) {
  for (const auto& client :
       {support::InitializingFor(minutes(4)), support::DockerAfter(minutes(4))}) {
    Harness h;
    h.RequireDocker();
    h.cluster.SetNextClients(2, client);
    const base::MonoTime began = h.clock.Now();
    ASSERT_TRUE(h.Accept(2).ok());
    h.WaitUntilReady();
    EXPECT_GE(h.clock.Now() - began, minutes(4));
    for (const std::string& vm : h.VmNames()) EXPECT_THAT(ReadyAt(h, vm), HasSubstr("2026-"));
    h.CheckAtRest(2);
  }
}

// The agent's older releases ask for no Status during a cooldown.
TEST(Ready, S5_a_new_vm_is_recorded_as_ready_or_removed_without_a_status) {
  for (const bool joins : {true, false}) {
    Harness h;
    h.policy["join_timeout"] = "3m";
    if (!joins) h.cluster.NeverJoin(1);
    ASSERT_TRUE(h.Accept(1).ok());
    const std::string vm = h.VmNames().at(0);
    h.TickWithoutStatus(minutes(10));
    EXPECT_EQ(h.VmNames().size(), joins ? 1U : 0U) << h.Transcript();
    EXPECT_EQ(ReadyAt(h, vm).empty(), !joins);
    h.cluster.ResetCounters();
    h.clock.Advance(minutes(10));
    h.process().RunBackground();
    EXPECT_EQ(h.cluster.RequestCount(), 0) << "L7";
  }
}

TEST(Ready, C17_a_client_that_stays_initializing_is_removed_at_its_join_timeout) {
  Harness h;
  h.policy["join_timeout"] = "5m";
  int drains = 0;
  CountDrains(h, &drains);
  h.cluster.SetNextClients(1, support::NeverReady());
  const base::MonoTime began = h.clock.Now();
  const absl::Status scaled = h.Scale(2);
  EXPECT_THAT(std::string(scaled.message()), HasSubstr("it was not ready by its deadline"));
  EXPECT_THAT(std::string(scaled.message()), HasSubstr("but it is initializing"));
  EXPECT_LE(h.clock.Now() - began, minutes(7));
  EXPECT_EQ(drains, 0) << "nothing could run there";
  EXPECT_THAT(h.VmNames(), SizeIs(1));
  h.WaitUntilReady();
  h.Converge(2, kBackOffBudget);
}

TEST(Ready, C17_a_vm_whose_driver_never_comes_is_drained_and_removed) {
  Harness h;
  h.RequireDocker();
  h.policy["join_timeout"] = "5m";
  int drains = 0;
  CountDrains(h, &drains);
  h.cluster.SetNextClients(1, support::NeverDocker());
  const absl::Status scaled = h.Scale(1);
  EXPECT_THAT(std::string(scaled.message()),
              HasSubstr("its driver docker is not healthy: no daemon"));
  EXPECT_EQ(drains, 1) << "its other drivers may have work";
  EXPECT_THAT(h.VmNames(), IsEmpty());
}

TEST(Ready, C17_a_client_that_starts_ineligible_is_ready_once_it_is_enabled) {
  Harness h;
  h.cluster.SetNextClients(1, support::StartsIneligible());
  ASSERT_TRUE(h.Accept(1).ok());
  h.Tick(minutes(1));
  const std::string vm = h.VmNames().at(0);
  EXPECT_EQ(ReadyAt(h, vm), "not-yet");
  EXPECT_FALSE(h.Status()->ready);
  EXPECT_EQ(h.Status()->meta.at("harvester.pending"), "1");
  ASSERT_TRUE(h.cluster.SetEligible(vm, true));
  h.WaitUntilReady();
  EXPECT_THAT(ReadyAt(h, vm), HasSubstr("2026-"));
}

TEST(Ready, S2_a_client_that_falls_back_holds_its_pool_for_five_minutes_at_most) {
  Harness h;
  h.Reach(3);
  const std::string fallen = h.VmNames()[1];
  ASSERT_TRUE(h.cluster.SetNodeStatus(fallen, "initializing"));
  h.Tick(minutes(4));
  EXPECT_FALSE(h.Status()->ready);
  h.Tick(minutes(2));
  const auto status = h.Status();
  EXPECT_TRUE(status->ready);
  EXPECT_EQ(status->count, 3);
  EXPECT_EQ(status->meta.at("harvester.unready"), "1");
  ASSERT_TRUE(h.Scale(2).ok());
  EXPECT_THAT(h.VmNames(), Not(Contains(fallen))) << "C8: it goes before those that are ready";
  h.CheckAtRest(2);
}

TEST(Ready, C17_a_running_vm_whose_node_is_down_is_replaced_if_the_policy_says_so) {
  for (const bool replaces : {false, true}) {
    Harness h;
    if (replaces) h.policy["replace_unhealthy_after"] = "5m";
    ASSERT_TRUE(h.Scale(3).ok());
    const std::string cut_off = h.VmNames()[0];
    h.cluster.KillNode(cut_off);
    h.Tick(minutes(20));  // longer than join_timeout
    EXPECT_EQ(testing::Value(h.VmNames(), Contains(cut_off)), !replaces) << h.Transcript();
  }
}

// As the version before wrote it: joined, and nothing about ready.
TEST(Ready, C17_an_upgrade_removes_nothing) {
  Harness h;
  h.policy["join_timeout"] = "5m";
  h.RequireDocker();
  ASSERT_TRUE(h.Scale(2).ok());
  const std::vector<std::string> before = h.VmNames();
  for (const std::string& vm : before) {
    ASSERT_TRUE(h.cluster.EditAnnotation(vm, Key("ready-at"), std::nullopt));
  }
  ASSERT_TRUE(h.cluster.SetNodeStatus(before[0], "initializing"));
  h.Restart();
  h.Tick(minutes(30));
  EXPECT_EQ(h.VmNames(), before);
  EXPECT_TRUE(h.Status()->ready);
  EXPECT_EQ(h.Status()->meta.at("harvester.unready"), "1");
}

// How often the pool's creations have failed, by its Lease.
std::int64_t FailedJoins(const Harness& h) {
  const auto back_off = harvester::ParseBackOff(AnnotationOf(h.Leases().at(0), Key("back-off")));
  return back_off.ok() && back_off->contains("join") ? back_off->at("join").failures : 0;
}

TEST(Ready, C12_a_broken_vm_that_is_marked_again_after_an_hour_is_counted_once) {
  Harness h;
  h.RequireDocker();
  h.policy["join_timeout"] = "2m";
  h.cluster.SetNextClients(1, support::NeverDocker());
  ASSERT_TRUE(h.Accept(1).ok());
  h.Tick(minutes(1));
  simulator::JobSpec job;
  job.id = "without-docker";
  job.driver = "exec";
  h.cluster.RunJob(job);
  h.HangDrains();
  const std::string vm = h.VmNames().at(0);
  h.clock.After(minutes(3), [&] {
    EXPECT_TRUE(IsMarked(h.cluster.Vm(vm)));
    EXPECT_TRUE(h.cluster.CancelDrain(vm, true));
    h.HangDrains(false);
  });
  h.Tick(minutes(50));
  EXPECT_EQ(FailedJoins(h), 1);
  ASSERT_THAT(h.VmNames(), ElementsAre(vm)) << "C9: it is kept for an hour";
  h.Tick(minutes(15));
  EXPECT_THAT(h.VmNames(), IsEmpty()) << h.Transcript();
  EXPECT_EQ(FailedJoins(h), 1);
}

// Nothing is left of its node by which the mark could have been written.
TEST(Ready, C17_a_vm_that_was_never_ready_and_has_lost_its_node_is_removed) {
  Harness h;
  h.policy["join_timeout"] = "5m";
  h.cluster.SetNextClients(1, support::NeverReady());
  ASSERT_TRUE(h.Accept(1).ok());
  h.Tick(minutes(1));
  const std::string vm = h.VmNames().at(0);
  ASSERT_TRUE(h.cluster.StopVm(vm));
  h.Tick(minutes(1));
  ASSERT_TRUE(h.cluster.PurgeNode(h.NodeOf(vm)));
  h.Tick(minutes(10));
  EXPECT_THAT(h.VmNames(), IsEmpty()) << h.Transcript();
}

TEST(Ready, C9_work_that_is_placed_while_a_drain_begins_is_drained_too) {
  Harness h;
  h.Reach(2);
  simulator::JobSpec late;
  late.id = "late";
  // Its drain is complete by then, and the plugin has not read what runs there.
  h.cluster.PlaceLate(late, seconds(1));
  base::MonoTime readable{};
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.resource == "drain") readable = h.clock.Now() + seconds(3);
    const bool early = request.resource == "allocations" && h.clock.Now() < readable;
    return early ? Fault::Answer(503) : Fault::None();
  });
  ASSERT_TRUE(h.Scale(1).ok());
  for (const json& allocation : h.cluster.Allocations()) {
    if (allocation["JobID"] != "late" || allocation["NodeID"] == h.NodeOf(h.VmNames().at(0))) {
      continue;
    }
    EXPECT_EQ(allocation["ClientStatus"], "complete") << "it was stopped, and not lost";
  }
  h.CheckAtRest(1);
}

}  // namespace
}  // namespace nomad_harvester::scenario
