// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/drain.h"

#include <cstddef>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nodepool/builders.h"

namespace nomad_harvester::nodepool {
namespace {

using nomad::ClientStatus;
using testing::ElementsAre;
using testing::Pair;

DrainMark Mark() {
  return {.action = "act-1",
          .vm = "web-x7k2m",
          .vm_uid = "uid-1",
          .pool = "default/web",
          .purge = true,
          .was_ineligible = true};
}

nomad::Node Drained(const DrainMark& mark) {
  return NodeBuilder("n").Drained(ToMeta(mark), "2026-11-21T02:03:04.123456789Z");
}

TEST(DrainMeta, carries_drained_by_as_the_sdk_does_and_everything_to_find_the_vm_again) {
  EXPECT_THAT(
      ToMeta(Mark()),
      ElementsAre(Pair("action", "act-1"), Pair("drained_by", "nomad-autoscaler"),
                  Pair("pool", "default/web"), Pair("purge", "true"), Pair("vm", "web-x7k2m"),
                  Pair("vm_uid", "uid-1"), Pair("was", "ineligible")));
  EXPECT_THAT(ToMeta({.action = "a"}), testing::AllOf(testing::Contains(Pair("purge", "false")),
                                                      testing::Contains(Pair("was", "eligible"))));
}

TEST(DrainMeta, is_read_back_as_it_was_written) {
  for (const bool purge : {true, false}) {
    for (const bool was_ineligible : {true, false}) {
      DrainMark mark = Mark();
      mark.purge = purge;
      mark.was_ineligible = was_ineligible;
      const nomad::Node node = Drained(mark);
      const auto read = ParseDrainMark(node);
      ASSERT_TRUE(read.has_value());
      EXPECT_EQ(read->action, "act-1");
      EXPECT_EQ(read->vm, "web-x7k2m");
      EXPECT_EQ(read->vm_uid, "uid-1");
      EXPECT_EQ(read->pool, "default/web");
      EXPECT_EQ(read->purge, purge);
      EXPECT_EQ(read->was_ineligible, was_ineligible);
    }
  }
}

TEST(DrainMeta, of_others_is_not_ours) {
  EXPECT_FALSE(ParseDrainMark(NodeBuilder("n")).has_value());
  EXPECT_FALSE(ParseDrainMark(NodeBuilder("n").Drained({})).has_value());
  EXPECT_FALSE(
      ParseDrainMark(NodeBuilder("n").Drained({{"drained_by", "nomad-autoscaler"}})).has_value())
      << "a drain of another target plugin";
  for (const char* missing : {"drained_by", "action", "vm_uid"}) {
    auto meta = ToMeta(Mark());
    meta.erase(missing);
    EXPECT_FALSE(ParseDrainMark(NodeBuilder("n").Drained(meta)).has_value()) << missing;
    meta[missing] = "";
    EXPECT_FALSE(ParseDrainMark(NodeBuilder("n").Drained(meta)).has_value()) << missing;
  }
  auto meta = ToMeta(Mark());
  meta["drained_by"] = "alice";
  EXPECT_FALSE(ParseDrainMark(NodeBuilder("n").Drained(meta)).has_value());
}

TEST(DrainMeta, does_without_the_members_that_only_reports_need) {
  auto meta = ToMeta(Mark());
  for (const char* key : {"vm", "pool", "purge", "was"}) meta.erase(key);
  const nomad::Node node = NodeBuilder("n").Drained(meta);
  const auto read = ParseDrainMark(node);
  ASSERT_TRUE(read.has_value());
  EXPECT_FALSE(read->purge);
  EXPECT_FALSE(read->was_ineligible);
}

TEST(DrainMeta, tells_the_action_and_the_vm_apart) {
  const nomad::Node node = Drained(Mark());
  EXPECT_TRUE(IsDrainOf(node, "act-1", "uid-1"));
  EXPECT_FALSE(IsDrainOf(node, "act-2", "uid-1"));
  EXPECT_FALSE(IsDrainOf(node, "act-1", "uid-2"));
  EXPECT_TRUE(IsDrainOfVm(node, "uid-1"));
  EXPECT_FALSE(IsDrainOfVm(node, "uid-2"));
}

TEST(DrainMeta, without_ids_matches_no_drain) {
  EXPECT_FALSE(IsDrainOf(NodeBuilder("n"), "", ""));
  EXPECT_FALSE(IsDrainOfVm(NodeBuilder("n").Drained({}), ""));
}

TEST(RollbackMarker, names_the_action_and_the_start_byte_by_byte) {
  EXPECT_EQ(RollbackMarker(Drained(Mark())), "act-1@2026-11-21T02:03:04.123456789Z");
}

TEST(RollbackMarker, is_empty_without_a_drain_of_ours) {
  EXPECT_EQ(RollbackMarker(NodeBuilder("n")), "");
  EXPECT_EQ(RollbackMarker(NodeBuilder("n").Drained({{"drained_by", "alice"}}, "2026")), "");
}

TEST(IsIdle, a_node_without_allocations_is) { EXPECT_TRUE(IsIdle({}, false)); }

TEST(IsIdle, pending_and_running_allocations_are_not) {
  EXPECT_FALSE(IsIdle({Alloc(ClientStatus::kRunning)}, false));
  EXPECT_FALSE(IsIdle({Alloc(ClientStatus::kPending)}, false));
  for (const ClientStatus status : {ClientStatus::kComplete, ClientStatus::kFailed,
                                    ClientStatus::kLost, ClientStatus::kUnknown}) {
    EXPECT_TRUE(IsIdle({Alloc(status)}, false)) << static_cast<int>(status);
  }
}

TEST(IsIdle, C9_a_poststop_task_that_still_runs_is_not) {
  nomad::Allocation allocation = Alloc(ClientStatus::kComplete);
  allocation.all_tasks_dead = false;
  EXPECT_FALSE(IsIdle({allocation}, false));
}

TEST(IsIdle, C9_a_lost_allocation_is_ignored_if_it_is_stale) {
  nomad::Allocation lost = Alloc(ClientStatus::kLost);
  lost.all_tasks_dead = false;
  EXPECT_FALSE(IsIdle({lost}, false));
  EXPECT_TRUE(IsIdle({lost}, false, true));
  EXPECT_FALSE(IsIdle({lost, Alloc(ClientStatus::kRunning)}, false, true));
}

TEST(IsIdle, one_that_runs_among_many_is_enough) {
  EXPECT_FALSE(IsIdle({Alloc(ClientStatus::kComplete), Alloc(ClientStatus::kRunning),
                       Alloc(ClientStatus::kComplete)},
                      false));
}

TEST(IsIdle, system_jobs_count_unless_they_are_ignored) {
  nomad::Allocation poststop = Alloc(ClientStatus::kComplete, "system");
  poststop.all_tasks_dead = false;
  for (const nomad::Allocation& system : {Alloc(ClientStatus::kRunning, "system"), poststop}) {
    EXPECT_FALSE(IsIdle({system}, false));
    EXPECT_TRUE(IsIdle({system}, true));
  }
  EXPECT_FALSE(IsIdle({Alloc(ClientStatus::kRunning, "sysbatch")}, true));
  EXPECT_FALSE(IsIdle({Alloc(ClientStatus::kRunning, "")}, true))
      << "an allocation that does not tell its type may be work";
}

TEST(WorkOn, C9_names_no_system_job_that_the_drain_leaves_running) {
  nomad::Allocation service = Alloc(ClientStatus::kRunning);
  service.work = "job api";
  nomad::Allocation system = Alloc(ClientStatus::kRunning, "system");
  system.work = "job logs";
  EXPECT_EQ(WorkOn({service, system}, true), "job api");
  EXPECT_EQ(WorkOn({service, system}, false), "job api, job logs");
}

}  // namespace
}  // namespace nomad_harvester::nodepool
