// SPDX-License-Identifier: Apache-2.0
// The room for a pool on Harvester, and the work that is left to another one.
#include "nomad_harvester/demand/overflow.h"

#include <chrono>
#include <string>
#include <vector>

#include "demand/builders.h"
#include "demand/two_pools.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::demand {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kRoom[] = "room namespace=nomad pool=web";

std::string Overflow(int max, const std::string& more = "") {
  return "overflow node_class=cloud namespace=nomad pool=web max=" + std::to_string(max) +
         " idle_for=0s node=(cpu=4000,memory=4096,disk=20000)" + more;
}

TEST(RestOf, D7_is_what_the_nodes_and_so_many_new_ones_cannot_hold) {
  World world;
  world.nodes = {With(MakeNode("n1"), MakeWork("old", 2000, 4096))};
  world.pending = {Waiting(MakeWork("a", 2000, 4096), 6)};
  const auto count = [&](std::int64_t most) {
    std::int64_t left = 0;
    for (const Pending& each : RestOf(BatchQuery(), world, most).pending) left += each.count;
    return left;
  };
  EXPECT_EQ(count(0), 5) << "one finds a place on the node";
  EXPECT_EQ(count(1), 3);
  EXPECT_EQ(count(2), 1);
  EXPECT_EQ(count(3), 0);
}

TEST(RestOf, D7_keeps_what_no_node_can_hold_and_takes_the_most_important_work) {
  World world;
  world.nodes = {With(MakeNode("n1"), MakeWork("old", 4000, 8192))};
  Group urgent = MakeWork("urgent", 4000, 1024);
  urgent.priority = 90;
  world.pending = {Waiting(MakeWork("huge", 5000, 1024), 1),
                   Waiting(MakeWork("normal", 4000, 1024), 1), Waiting(urgent, 1)};
  const std::vector<Pending> rest = RestOf(BatchQuery(), world, 1).pending;
  ASSERT_THAT(rest, SizeIs(2));
  for (const Pending& each : rest) EXPECT_NE(each.group->job, "urgent");
}

TEST(RestOf, D7_the_first_node_of_a_pool_shows_what_it_can_hold) {
  World world;
  world.pending = {Waiting(MakeWork("a", 2000, 4096), 6)};
  EXPECT_THAT(RestOf(BatchQuery(), world, 1).pending, IsEmpty());
  EXPECT_THAT(RestOf(BatchQuery(), world, 0).pending, SizeIs(1)) << "it can have none";
}

TEST(NodesToCome, D7_are_those_of_vms_that_boot_and_of_vms_for_which_there_is_room) {
  PoolRoom room{.vms = 3, .coming = {{.name = "web-2"}, {.name = "web-3", .node_id = "n3"}}};
  room.room.vms = 5;
  EXPECT_EQ(NodesToCome(room, 10, World()), 7);
  EXPECT_EQ(NodesToCome(room, 4, World()), 3) << "max";
  EXPECT_EQ(NodesToCome(room, 2, World()), 2) << "there is one VM too many";
  World world;
  world.nodes = {MakeNode("n3"), MakeNode("n2")};
  Edit(world.nodes[1]).name = "WEB-2.example.org";
  EXPECT_EQ(NodesToCome(room, 10, world), 5) << "both nodes are there";
}

class RoomQuery : public TwoPools {};

TEST_F(RoomQuery, D6_is_the_number_of_vms_for_which_the_hosts_have_room) {
  PutVm("web-1");
  EXPECT_EQ(Count(kRoom), 2);
  PutPod("database", "2Gi");
  EXPECT_EQ(Count(kRoom), 1);
  EXPECT_EQ(Count(kRoom), 1);
  EXPECT_EQ(log_->Count("Room for more VMs"), 2U) << log_->Text();
  EXPECT_EQ(log_->Count("host h1 has "), 2U) << log_->Text();
  EXPECT_THAT(metrics_->Text(), HasSubstr("nomad_harvester_room{pool=\"nomad/web\"} 1"));
}

TEST_F(RoomQuery, D6_needs_a_vm_that_shows_what_one_asks_also_once_it_is_gone) {
  EXPECT_THAT(Ask(kRoom), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   AllOf(HasSubstr("pool nomad/web has no VM yet"),
                                         HasSubstr("set min = 1 in its policy"))));
  PutVm("web-1");
  EXPECT_EQ(Count(kRoom), 2);
  RemoveVm("web-1");
  EXPECT_EQ(Count(kRoom), 3);
}

TEST_F(RoomQuery, D6_counts_the_hosts_of_each_zone_in_which_the_pool_has_a_vm) {
  for (const char* const zone : {"a", "b"}) {
    nlohmann::json host = support::HostIn(zone);
    host["status"]["allocatable"]["memory"] = "12Gi";
    ASSERT_TRUE(cluster_.PutObject(host));
  }
  for (const char* const zone : {"a", "b"}) {
    const std::string vm = std::string("web-") + zone;
    PutVm(vm);
    ASSERT_TRUE(cluster_.EditAnnotation(vm, harvester::kZoneAnnotation, zone));
    nlohmann::json object = cluster_.Vm(vm);
    const nlohmann::json in_zone = {{"key", "topology.kubernetes.io/zone"},
                                    {"operator", "In"},
                                    {"values", nlohmann::json::array({zone})}};
    const nlohmann::json term = {{"matchExpressions", nlohmann::json::array({in_zone})}};
    object["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
          ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
              nlohmann::json::array({term});
    ASSERT_TRUE(cluster_.PutObject(object));
    Wait(minutes(1));
  }
  const std::int64_t of_both = Count(kRoom);
  ASSERT_TRUE(cluster_.EditAnnotation("web-a", harvester::kZoneAnnotation, "b"));
  EXPECT_EQ(of_both, 2 * Count(kRoom));
}

TEST_F(RoomQuery, D6_without_a_connection_or_a_right_it_names_what_to_add) {
  PutVm("web-1");
  cluster_.Forbid("list", "pods");
  EXPECT_THAT(Ask(kRoom), StatusIs(absl::StatusCode::kPermissionDenied,
                                   HasSubstr("grant list on nodes and pods, as the optional "
                                             "ClusterRole of examples/rbac.yaml does")));
  Start();
  for (const std::string& query : {std::string(kRoom), Overflow(2)}) {
    EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("needs Harvester: add harvester_url and "
                                               "auth_token_file, or harvester_kubeconfig, to the "
                                               "config of the apm block")))
        << query;
  }
  EXPECT_EQ(Count("nodes-needed node_class=web"), 1) << "it needs none";
}

class RoomOfALargerHost : public TwoPools {
 protected:
  RoomOfALargerHost() : TwoPools("18Gi") {}
};

TEST_F(RoomOfALargerHost, D6_is_that_for_vms_like_the_newest_one) {
  PutVm("web-1");
  Wait(minutes(1));
  PutVm("web-2", /*joined=*/true, "6Gi");
  PutPod("web-2", "6700Mi");
  EXPECT_EQ(Count(kRoom), 1) << "two would be as small as web-1";
}

class Spill : public TwoPools {};

TEST_F(Spill, D7_what_the_first_pool_can_have_orders_nothing_in_the_second) {
  PutVm("web-1");
  Wait(minutes(2));
  cluster_.RunJob(Job("burst", 20));
  EXPECT_EQ(Count(Overflow(10)), 2) << "one node is there, and there is room for two more";
  EXPECT_EQ(Count(Overflow(2)), 3) << "max";
  EXPECT_EQ(Count(Overflow(1)), 4);
  EXPECT_EQ(Count(Overflow(0)), 4);
  EXPECT_EQ(log_->Count("home=nomad/web home_nodes_to_come=2"), 1U) << log_->Text();
  EXPECT_THAT(metrics_->Text(),
              HasSubstr("nomad_harvester_nodes_needed{pool=\"node_class=cloud\"} 4"));
}

TEST_F(Spill, D7_with_a_max_of_0_all_work_is_the_second_pools_although_harvester_is_not_read) {
  cluster_.RunJob(Job("burst", 20));
  EXPECT_THAT(Ask(Overflow(1)), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("pool nomad/web has no VM yet")));
  cluster_.SetHarvesterReachable(false);
  EXPECT_EQ(Count(Overflow(0)), 5);
}

TEST_F(Spill, D7_vms_that_boot_count_until_their_nodes_are_there) {
  PutVm("web-1");
  Wait(minutes(2));
  cluster_.RunJob(Job("burst", 20));
  PutVm("web-2", /*joined=*/false);
  PutVm("web-3", /*joined=*/false);
  EXPECT_EQ(Count(Overflow(10)), 2) << "the hosts are full";
  Join("web-2");
  EXPECT_EQ(Count(Overflow(10)), 2);
  Wait(minutes(10));
  EXPECT_EQ(Count(Overflow(10)), 3) << "web-3 is late, and will be removed";
}

TEST_F(Spill, D7_a_vm_that_is_being_removed_takes_no_place_below_max) {
  PutVm("web-1");
  PutVm("web-2");
  ASSERT_TRUE(cluster_.KillNode("web-2"));
  ASSERT_TRUE(cluster_.PurgeNode("web-2"));
  harvester::Mark mark;
  mark.action = "act";
  ASSERT_TRUE(cluster_.EditAnnotation("web-2", harvester::kScaleInAnnotation,
                                      harvester::ToAnnotation(mark)));
  Wait(minutes(2));
  cluster_.RunJob(Job("burst", 20));
  EXPECT_EQ(Count(Overflow(2)), 3) << "one node is there, and one more comes";
}

TEST_F(Spill, D7_a_vm_that_replaces_another_one_takes_no_place_below_max) {
  PutVm("web-1");
  Wait(minutes(2));
  cluster_.RunJob(Job("burst", 20));
  EXPECT_EQ(Count(Overflow(2)), 3) << "one node is there, and one more may come";
  PutVm("web-2", /*joined=*/false);
  harvester::Replaces replaces;
  replaces.vm = "web-1";
  replaces.uid = "uid-1";
  replaces.reason = {harvester::ReplaceReason::Kind::kRequested, "why"};
  ASSERT_TRUE(cluster_.EditAnnotation("web-2", harvester::kReplacesAnnotation,
                                      harvester::ToAnnotation(replaces)));
  EXPECT_EQ(Count(Overflow(2)), 3) << "web-1 goes for it";
}

TEST_F(Spill, D7_an_empty_first_pool_takes_what_its_last_nodes_held) {
  PutVm("web-1");
  Wait(minutes(2));
  cluster_.RunJob(Job("burst", 20));
  EXPECT_EQ(Count(Overflow(10)), 2);
  RemoveVm("web-1");
  ASSERT_TRUE(cluster_.KillNode("web-1"));
  ASSERT_TRUE(cluster_.PurgeNode("web-1"));
  Wait(minutes(2));
  EXPECT_EQ(Count(Overflow(10)), 2) << "there is room for three VMs, and work for five";
}

TEST_F(Spill, D7_work_on_the_second_pools_nodes_counts_there_and_asks_nothing_of_harvester) {
  AddNode("cloud-1", "cloud");
  Wait(seconds(2));
  cluster_.RunJob(Job("old", 1));
  PutVm("web-1");
  cluster_.ResetCounters();
  EXPECT_EQ(Count(Overflow(10)), 1) << "there is room in the first pool, but it runs";
  EXPECT_EQ(cluster_.RequestCount(simulator::System::kHarvester, "list", "virtualmachines"), 0);
  cluster_.SetHarvesterReachable(false);
  EXPECT_EQ(Count(Overflow(10)), 1);
}

TEST_F(Spill, D7_work_of_a_drained_node_goes_to_the_first_pool) {
  PutVm("web-1");
  Wait(minutes(2));
  cluster_.RunJob(Job("full", 4));
  Wait(seconds(2));
  AddNode("cloud-1", "cloud");
  Wait(seconds(2));
  cluster_.RunJob(Job("old", 4));
  EXPECT_EQ(Count(Overflow(10)), 1);
  ASSERT_TRUE(cluster_.OperatorDrain("cloud-1"));
  EXPECT_EQ(Count(Overflow(10)), 0);
  EXPECT_EQ(Count(Overflow(1)), 2) << "a new one, beside the drained one, which the target counts";
}

TEST_F(Spill, D7_work_that_the_first_pool_never_holds_does_not_wait_for_it) {
  PutVm("web-1");
  Wait(minutes(2));
  simulator::JobSpec job = Job("cloudy", 8);
  job.node_class = "cloud";
  cluster_.RunJob(job);
  EXPECT_EQ(Count(Overflow(10)), 2);
}

TEST_F(Spill, D7_nodes_that_may_be_the_first_pools_are_refused) {
  PutVm("web-1");
  cluster_.RunJob(Job("burst", 20));
  EXPECT_THAT(Ask("overflow datacenter=dc1 namespace=nomad pool=web max=3"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the query is about nodes with datacenter=dc1, and pool nomad/web "
                                 "has those with node_class=web, which may be the same")));
}

TEST_F(Spill, D4_a_harvester_that_cannot_be_read_is_no_number_while_work_waits) {
  PutVm("web-1");
  cluster_.RunJob(Job("burst", 20));
  cluster_.SetHarvesterReachable(false);
  EXPECT_THAT(Ask(Overflow(10)), Not(IsOk()));
  cluster_.SetHarvesterReachable(true);
  EXPECT_EQ(Count(Overflow(10)), 2);
}

}  // namespace
}  // namespace nomad_harvester::demand
