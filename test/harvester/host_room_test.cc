// SPDX-License-Identifier: Apache-2.0
// What the hosts have, and what the pods on them ask for.
#include "nomad_harvester/harvester/host_room.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/store_fixture.h"
#include "nlohmann/json.hpp"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr std::int64_t kMebi = std::int64_t{1} << 20;

json Container(const json& requests) { return {{"resources", {{"requests", requests}}}}; }

json PodOn(const std::string& host, const json& containers,
           const json& init_containers = json::array()) {
  json pod = {{"spec", {{"containers", containers}, {"initContainers", init_containers}}},
              {"status", {{"phase", "Running"}}}};
  if (!host.empty()) pod["spec"]["nodeName"] = host;
  return pod;
}

class HostRooms : public StoreTest {
 protected:
  HostRooms() {
    Remove(kube::kHosts, "", "harvester-1");
    script_.Forget();
  }
  void PutHost(const std::string& name, json host = json::object()) {
    host["metadata"]["name"] = name;
    Put(kube::kHosts, "", std::move(host));
  }
  void PutPod(const std::string& ns, const std::string& name, json pod) {
    pod["metadata"]["name"] = name;
    Put(kube::kPods, ns, std::move(pod));
  }
  absl::StatusOr<std::vector<HostRoom>> Read() {
    return ReadHostRooms(context_, kube::KubeClient(cluster_.HarvesterTransport()));
  }
  // Of the only host.
  Amounts Used() {
    const auto rooms = Read();
    EXPECT_THAT(rooms, IsOk());
    return rooms.ok() && rooms->size() == 1 ? rooms->front().used : Amounts{};
  }
};

TEST_F(HostRooms, C2_reads_what_the_scheduler_asks_of_a_host) {
  PutHost("h2");
  PutHost("h1", json::parse(R"({
    "metadata": {"labels": {"topology.kubernetes.io/zone": "z1", "rack": "a"}},
    "spec": {"unschedulable": true, "taints": [
      {"key": "gpu", "value": "yes", "effect": "NoSchedule"}, {"key": "x", "effect": "NoExecute"}]},
    "status": {"allocatable": {"cpu": "7910m", "memory": "32Gi", "pods": "110"},
               "conditions": [{"type": "MemoryPressure", "status": "True"},
                              {"type": "Ready", "status": "Unknown"}]}})"));
  const auto rooms = Read();
  ASSERT_THAT(rooms, IsOk());
  ASSERT_THAT(*rooms, SizeIs(2));
  const Host& host = rooms->front().host;
  EXPECT_EQ(host.name, "h1");
  EXPECT_EQ(host.zone, "z1");
  EXPECT_EQ(host.labels.at("rack"), "a");
  EXPECT_TRUE(host.cordoned);
  EXPECT_FALSE(host.ready);
  ASSERT_THAT(host.taints, SizeIs(2));
  EXPECT_EQ(host.taints[0].key, "gpu");
  EXPECT_EQ(host.taints[0].value, "yes");
  EXPECT_EQ(host.taints[0].effect, "NoSchedule");
  EXPECT_EQ(host.taints[1].effect, "NoExecute");
  EXPECT_EQ(host.allocatable.at("cpu"), "7910m");
  EXPECT_TRUE(rooms->back().host.ready) << "nothing is said against it";
}

TEST_F(HostRooms, C2_sends_two_lists_for_all_namespaces) {
  ASSERT_THAT(Read(), IsOk());
  ASSERT_THAT(script_.requests(), SizeIs(2));
  EXPECT_EQ(script_.requests()[0].target, "/api/v1/nodes");
  EXPECT_EQ(script_.requests()[1].target, "/api/v1/pods");
}

TEST_F(HostRooms, C2_adds_up_the_containers_of_all_pods_on_a_host) {
  PutHost("h1");
  PutPod("a", "one",
         PodOn("h1", {Container({{"cpu", "500m"}, {"memory", "1Gi"}}),
                      Container({{"cpu", "1"}, {"x.io/a", "2"}, {"ephemeral-storage", "5Gi"}}),
                      json::object()}));
  PutPod("b", "two", PodOn("h1", json::array({Container({{"memory", "100Mi"}, {"x.io/a", "1"}})})));
  EXPECT_EQ(Used(), (Amounts{{kCpu, 1500}, {kMemory, 1124 * kMebi}, {kPods, 2}, {"x.io/a", 3}}));
}

TEST_F(HostRooms, C2_an_init_container_counts_if_it_asks_for_more_and_a_sidecar_always) {
  PutHost("h1");
  json sidecar = Container({{"cpu", "50m"}, {"memory", "35M"}});
  sidecar["restartPolicy"] = "Always";
  const json small = Container({{"cpu", "100m"}, {"memory", "10Mi"}, {"x.io/a", "1"}});
  const json large = Container({{"cpu", "2"}, {"memory", "10Mi"}});
  json pod = PodOn("h1", json::array({Container({{"cpu", "300m"}, {"memory", "1Gi"}})}),
                   {small, sidecar, large, sidecar});
  pod["spec"]["overhead"] = {{"cpu", "250m"}, {"memory", "120Mi"}};
  PutPod("a", "one", pod);
  EXPECT_EQ(Used(), (Amounts{{kCpu, 2050 + 250},
                             {kMemory, (1024 + 120) * kMebi + 70'000'000},
                             {kPods, 1},
                             {"x.io/a", 1}}))
      << "the second sidecar starts after the large one";
}

TEST_F(HostRooms, C2_pods_that_have_no_host_or_have_ended_do_not_count) {
  PutHost("h1");
  const json containers = json::array({Container({{"cpu", "1"}})});
  PutPod("a", "waits", PodOn("", containers));
  PutPod("a", "elsewhere", PodOn("h2", containers));
  for (const char* const phase : {"Succeeded", "Failed"}) {
    json pod = PodOn("h1", containers);
    pod["status"]["phase"] = phase;
    PutPod("a", std::string("ended-") + (phase[0] == 'S' ? "well" : "badly"), pod);
  }
  EXPECT_EQ(Used(), Amounts{});
  PutPod("a", "runs", PodOn("h1", containers));
  EXPECT_EQ(Used(), (Amounts{{kCpu, 1000}, {kPods, 1}}));
}

TEST_F(HostRooms, C2_names_the_vms_of_each_pool_in_its_namespace) {
  PutHost("h1");
  const auto put = [&](const std::string& ns, const std::string& name, const std::string& pool) {
    json pod = PodOn("h1", json::array());
    pod["metadata"]["labels"] = {{kPoolLabel, pool}, {"kubevirt.io", "virt-launcher"}};
    pod["metadata"]["annotations"] = {{"kubevirt.io/domain", name}};
    PutPod(ns, "virt-launcher-" + name, pod);
  };
  put(kNs, "a", "batch");
  put(kNs, "b", "batch");
  put(kNs, "c", "other");
  put("elsewhere", "d", "batch");
  const auto rooms = Read();
  ASSERT_THAT(rooms, IsOk());
  EXPECT_THAT(rooms->front().vms,
              UnorderedElementsAre(Pair(Pair(kNs, "batch"), ElementsAre("a", "b")),
                                   Pair(Pair(kNs, "other"), ElementsAre("c")),
                                   Pair(Pair("elsewhere", "batch"), ElementsAre("d"))));
  EXPECT_EQ(rooms->front().used.at(kPods), 4);
}

TEST_F(HostRooms, C2_both_rights_are_optional_and_a_missing_one_is_told) {
  PutHost("h1");
  cluster_.Forbid("list", "pods", /*cluster_wide=*/true);
  EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kPermissionDenied,
                               testing::HasSubstr("at the cluster scope")));
  EXPECT_TRUE(kube::IsForbidden(Read().status()));
  EXPECT_THAT(store_.ListPodMessages(context_), IsOk()) << "those of the namespace may be listed";
  cluster_.AllowAll();
  EXPECT_THAT(Read(), IsOk());
  cluster_.Forbid("list", "nodes");
  EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(HostRooms, P2_survives_members_of_other_types) {
  PutHost("h1", json::parse(R"({"spec": {"taints": [3, {"key": 7}]},
                               "status": {"allocatable": {"cpu": 8}, "conditions": "x"}})"));
  PutPod("a", "odd",
         PodOn("h1",
               {Container({{"cpu", 1}, {"memory", "much"}, {"x.io/a", "9E"}}),
                Container({{"x.io/a", "9E"}, {"memory", "-1"}}), json(3)},
               {json("x"), Container("y")}));
  PutPod("a", "none", {{"spec", "x"}, {"status", json::array()}});
  EXPECT_THAT(Used(), UnorderedElementsAre(Pair(kMemory, 0), Pair(kPods, 1),
                                           Pair("x.io/a", testing::Gt(0))))
      << "no overflow";
}

}  // namespace
}  // namespace nomad_harvester::harvester
