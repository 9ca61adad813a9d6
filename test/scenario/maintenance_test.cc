// SPDX-License-Identifier: Apache-2.0
//
// nomad-harvester gc and nomad-harvester status, below their command line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/kube/object.h"

#include "operator.h"
#include "support/node_to_purge.h"

namespace nomad_harvester::scenario {
namespace {

using scaling::PoolKey;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A VM of which the process created everything, but which never becomes a node.
std::string LeaveHalfMadeVm(Harness& h) {
  h.cluster.NeverJoin(1);
  h.ScaleAndDieAt(1, "create", "virtualmachines");
  h.Restart();
  h.clock.Advance(minutes(20));
  return h.VmNames().at(0);
}

TEST(Gc, C10_a_partially_created_vm_is_deleted_with_its_volume_and_its_secret) {
  Harness h;
  const std::string vm = LeaveHalfMadeVm(h);
  Operator person(h);
  EXPECT_TRUE(person.Preview().outcome.ok());
  EXPECT_THAT(person.events, Contains("mark-broken " + vm));
  const auto done = person.Collect();
  EXPECT_TRUE(done.outcome.ok()) << done.outcome;
  EXPECT_THAT(person.events, Contains("mark-broken " + vm));
  EXPECT_THAT(person.events, Contains("delete " + vm));
  h.CheckAtRest(0);
}

TEST(Gc, C15_of_another_nomad_leaves_the_lease_and_the_secrets_of_the_pool_alone) {
  Harness h;
  EXPECT_TRUE(h.Scale(1).ok());
  h.ScaleAndDieAt(2, "create", "virtualmachines");
  h.Restart();
  h.clock.Advance(minutes(20));
  const auto secrets = h.Secrets();
  const auto annotations = h.Leases().at(0)["metadata"]["annotations"];
  ASSERT_TRUE(annotations.contains("nomad-harvester-autoscaler/action"));
  h.cluster.SetNomadKeys({"another"});
  Operator person(h);
  const auto done = person.Collect();
  EXPECT_TRUE(absl::IsUnavailable(done.outcome));
  EXPECT_THAT(done.outcome.ToString(), HasSubstr("another Nomad cluster"));
  EXPECT_THAT(person.events, IsEmpty());
  EXPECT_EQ(h.Secrets(), secrets);
  EXPECT_EQ(h.Leases().at(0)["metadata"]["annotations"], annotations);
}

// An older version records no cluster, and of such a pool another Nomad than its own knows no node.
TEST(Gc, C15_at_another_nomad_keeps_vms_of_a_pool_without_a_record) {
  Harness h;
  h.Reach(2);
  const std::string vm = h.LeaveOneDraining();
  h.Restart();
  const std::string record = "nomad-harvester-autoscaler/nomad-cluster";
  for (const std::string& each : h.VmNames()) {
    h.cluster.EditAnnotation(each, record, std::nullopt);
  }
  json lease = h.Leases().at(0);
  lease["metadata"]["annotations"].erase(record);
  lease["spec"]["holderIdentity"] = "";
  h.cluster.PutObject(lease);
  h.cluster.SetNomadKeys({"key-of-second"}, "second");
  for (int i = 0; i < 300; ++i) h.cluster.RunJob({.id = "busy", .count = 0, .nomad = "second"});
  h.cluster.AddForeignNode({.name = "elsewhere", .node_class = "other", .nomad = "second"});
  Operator stranger(h, "", "second");
  EXPECT_TRUE(stranger.Preview().outcome.ok());
  EXPECT_THAT(stranger.events, ElementsAre("report " + vm));
  const auto kept = stranger.CollectWithoutPolicy();
  EXPECT_TRUE(kept.outcome.ok()) << kept.outcome;
  ASSERT_EQ(kept.unfinished.size(), 1U);
  EXPECT_EQ(kept.unfinished[0].vm, vm);
  EXPECT_THAT(kept.unfinished[0].why, HasSubstr("run gc against the pool's Nomad"));
  EXPECT_THAT(h.VmNames(), Contains(vm));
  EXPECT_TRUE(Operator(h).CollectWithoutPolicy().outcome.ok());
  EXPECT_THAT(h.VmNames(), Not(Contains(vm))) << "at its own";
}

TEST(Gc, a_vm_that_the_policy_keeps_is_not_a_leftover) {
  Harness h;
  LeaveHalfMadeVm(h);
  h.policy["on_join_timeout"] = "keep";
  Operator person(h);
  const auto done = person.Collect();
  EXPECT_TRUE(done.outcome.ok()) << done.outcome;
  EXPECT_THAT(done.unfinished, IsEmpty());
  EXPECT_EQ(h.Vms().size(), 1U);
}

TEST(Gc, C13_marks_nothing_while_the_policy_says_dry_run) {
  Harness h;
  LeaveHalfMadeVm(h);
  h.policy["dry-run"] = "true";
  Operator person(h);
  EXPECT_TRUE(person.Collect().outcome.ok());
  EXPECT_EQ(h.Vms().size(), 1U);
}

TEST(Gc, C10_a_secret_whose_vm_was_never_created_is_deleted_without_a_policy) {
  Harness h;
  h.ScaleAndDieAt(1, "create", "virtualmachines", false);
  h.Restart();
  ASSERT_EQ(h.Secrets().size(), 1U);
  Operator person(h);
  EXPECT_TRUE(person.CollectWithoutPolicy().outcome.ok());
  EXPECT_THAT(person.events, ElementsAre(StartsWith("delete-secret web-")));
  h.CheckAtRest(0);
}

// One VM with work on it, whose removal the process began and was killed before it finished.
std::string LeaveRemoval(Harness& h) {
  EXPECT_TRUE(h.Scale(1).ok());
  h.RunJob(1);
  h.ScaleAndDieAt(0, "update", "drain");
  h.Restart();
  return h.VmNames().at(0);
}

TEST(Gc, C10_a_removal_that_was_begun_is_finished_and_its_node_purged) {
  Harness h;
  const std::string vm = LeaveRemoval(h);
  Operator person(h);
  // The Lease names it, so it is not rolled back; the preview must know this without acquiring the
  // Lease.
  EXPECT_TRUE(person.Preview().outcome.ok());
  EXPECT_THAT(person.events, ElementsAre(AnyOf("wait " + vm, "delete " + vm)));
  const auto done = person.CollectWithoutPolicy();
  EXPECT_TRUE(done.outcome.ok()) << done.outcome;
  EXPECT_THAT(person.events, Contains("delete " + vm));
  EXPECT_THAT(person.events, Contains(StartsWith("purge ")));
  EXPECT_THAT(h.Nodes(), IsEmpty());
  h.CheckAtRest(0);
}

TEST(Gc, C10_a_drain_without_its_mark_is_cancelled_and_the_node_enabled) {
  Harness h;
  const std::string vm = LeaveRemoval(h);
  ASSERT_TRUE(h.cluster.EditAnnotation(vm, kMarkKey, std::nullopt));
  Operator person(h);
  EXPECT_TRUE(person.Preview().outcome.ok());
  EXPECT_THAT(person.events, ElementsAre("cancel-drain " + vm));
  EXPECT_TRUE(person.CollectWithoutPolicy().outcome.ok());
  h.CheckAtRest(1);
}

TEST(Gc, nothing_is_done_while_nomad_cannot_be_read) {
  Harness h;
  LeaveRemoval(h);
  h.cluster.SetNomadReachable(false);
  Operator person(h);
  const auto done = person.Collect();
  EXPECT_EQ(done.outcome.code(), absl::StatusCode::kUnavailable) << done.outcome;
  EXPECT_EQ(person.Preview().outcome.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(h.Vms().size(), 1U);
}

TEST(Gc, finds_pools_by_vms_secrets_leases_volumes_and_drained_nodes) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  ASSERT_TRUE(h.cluster.PutObject(ObjectOf("Secret", "old-cloudinit", "by-secret")));
  ASSERT_TRUE(h.cluster.PutObject(ObjectOf("Lease", "some-lease", "by-lease")));
  ASSERT_TRUE(
      h.cluster.PutObject(ObjectOf("PersistentVolumeClaim", "old-disk-0-abc", "by-volume")));
  support::AddNodeToPurge(h.cluster, {.name = "gone", .node_class = "batch"}, "nomad/by-drain");
  Operator person(h);
  const auto pools = person.FindPools("nomad");
  ASSERT_TRUE(pools.ok()) << pools.status();
  EXPECT_THAT(*pools, ElementsAre(PoolKey{"nomad", "by-drain"}, PoolKey{"nomad", "by-lease"},
                                  PoolKey{"nomad", "by-secret"}, PoolKey{"nomad", "by-volume"},
                                  PoolKey{"nomad", "db"}, PoolKey{"nomad", "web"}));
  const auto elsewhere = person.FindPools("default");
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_THAT(*elsewhere, IsEmpty());
}

TEST(Gc, finds_pools_without_the_right_to_list_leases) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  h.cluster.Forbid("list", "leases");
  Operator person(h);
  const auto pools = person.FindPools("nomad");
  ASSERT_TRUE(pools.ok()) << pools.status();
  EXPECT_THAT(*pools, ElementsAre(PoolKey{"nomad", "db"}, PoolKey{"nomad", "web"}));
}

TEST(Inspection, agrees_with_status_and_changes_nothing) {
  Harness h;
  h.Reach(3);
  Operator person(h);
  const int effects = h.cluster.EffectCount();
  const auto seen = person.Inspect();
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(h.cluster.EffectCount(), effects);
  const auto status = h.Status();
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(seen->report.status.ready, status->ready);
  EXPECT_EQ(seen->report.status.count, status->count);
  EXPECT_EQ(seen->report.status.meta, status->meta);
  for (const scaling::VmView* view : seen->snapshot.vms()) {
    EXPECT_EQ(StateOf(*view, seen->snapshot), scaling::VmState::kReady);
  }
}

TEST(Inspection, shows_the_open_action_and_the_back_off_of_the_lease) {
  Harness h;
  h.cluster.NeverJoin(1);
  EXPECT_FALSE(h.Scale(1).ok());
  Operator person(h);
  const auto failed = person.Inspect();
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_EQ(failed->lease.record.back_off.size(), 1U);
  EXPECT_EQ(failed->lease.holder, "");

  Harness begun;
  LeaveRemoval(begun);
  Operator other(begun);
  const auto seen = other.Inspect();
  ASSERT_TRUE(seen.ok()) << seen.status();
  ASSERT_TRUE(seen->lease.record.action.has_value());
  EXPECT_THAT(seen->lease.record.action->names, ElementsAre(begun.VmNames()[0]));
}

TEST(Inspection, S2_a_holder_that_renews_the_lease_is_live_and_a_terminated_one_is_not) {
  Harness h;
  LeaveRemoval(h);
  Operator person(h);
  const auto at_once = person.Inspect();
  ASSERT_TRUE(at_once.ok()) << at_once.status();
  EXPECT_TRUE(at_once->lease.live);
  h.clock.Advance(seconds(30));
  const auto later = person.Inspect();
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_FALSE(later->lease.live);
}

}  // namespace
}  // namespace nomad_harvester::scenario
