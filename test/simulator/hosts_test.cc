// SPDX-License-Identifier: Apache-2.0
// Harvester's hosts, live migration, and the metadata of Nomad's clients.
#include "support/hosts.h"

#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;
using http::Method;

class HostsTest : public SimulatorTest {
 protected:
  HostsTest() { options_.hosts = {{.name = "h1", .zone = "z1"}, {.name = "h2"}}; }

  std::string HostOf(const std::string& vm) {
    const auto vmi = kube().Get(context_, kube::kVirtualMachineInstances, "nomad", vm);
    return vmi.ok() ? vmi->object["status"].value("nodeName", "") : "none";
  }
  // Its pod; null: it has none.
  json PodOf(const std::string& vm) {
    const auto pod = kube().Get(context_, kube::kPods, "nomad", "virt-launcher-" + vm);
    return pod.ok() ? pod->object : json();
  }
  // Of the scheduler about its pod; empty: none.
  std::string PodMessageOf(const std::string& vm) {
    const json pod = PodOf(vm);
    return pod.is_null() ? "" : pod["status"]["conditions"][0].value("message", "");
  }
  void PutHost(const std::string& name, json host) {
    host["apiVersion"] = "v1";
    host["kind"] = "Node";
    host["metadata"]["name"] = name;
    ASSERT_TRUE(cluster().PutObject(host));
  }
  // Makes a VM whose guest has these further members.
  void MakeVmWith(const std::string& name, const json& guest) {
    ASSERT_THAT(kube().Create(context_, kube::kSecrets, "nomad", SecretFor(name)), IsOk());
    json vm = VmNamed(name);
    vm["spec"]["template"]["spec"].merge_patch(guest);
    ASSERT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", vm), IsOk());
    Wait(seconds(6));
  }
  json MetaOf(const std::string& node) { return cluster().Node(node)["Meta"]; }
  absl::Status SetMeta(const std::string& id,
                       const std::map<std::string, std::optional<std::string>>& meta) {
    return nomad().SetNodeMeta(context_, id, meta);
  }
};

TEST_F(HostsTest, Hosts_have_labels_and_no_namespace) {
  const auto host = kube().Get(context_, kube::kHosts, "", "h1");
  ASSERT_THAT(host, IsOk());
  EXPECT_EQ(host->object["metadata"]["labels"]["topology.kubernetes.io/zone"], "z1");
  EXPECT_FALSE(host->object["metadata"].contains("namespace"));
}

TEST_F(HostsTest, Guests_are_put_on_the_emptiest_host_that_is_not_cordoned) {
  MakeVm("a");
  Wait(seconds(6));
  MakeVm("b");
  Wait(seconds(6));
  EXPECT_EQ(HostOf("a"), "h1");
  EXPECT_EQ(HostOf("b"), "h2");
  ASSERT_TRUE(cluster().PutObject(support::Host("h1", /*cordoned=*/true)));
  MakeVm("c");
  Wait(seconds(6));
  EXPECT_EQ(HostOf("c"), "h2");
}

// As KubeVirt shows it: the condition keeps the message of the first attempt.
TEST_F(HostsTest, A_vm_waits_until_a_host_is_no_longer_cordoned) {
  for (const char* host : {"h1", "h2"}) {
    ASSERT_TRUE(cluster().PutObject(support::Host(host, /*cordoned=*/true)));
  }
  MakeVm("a");
  Wait(minutes(10));
  EXPECT_EQ(StatusOf("a"), "ErrorUnschedulable");
  EXPECT_EQ(HostOf("a"), "");
  EXPECT_THAT(cluster().Vm("a")["status"].dump(), HasSubstr("unbound immediate"));
  EXPECT_EQ(PodMessageOf("a"), "0/2 nodes are available: 2 node(s) were unschedulable.");
  ASSERT_TRUE(cluster().PutObject(support::Host("h2", /*cordoned=*/false)));
  Wait(seconds(6));
  EXPECT_EQ(HostOf("a"), "h2");
  EXPECT_EQ(StatusOf("a"), "Running");
  EXPECT_EQ(PodMessageOf("a"), "");
}

TEST_F(HostsTest, A_vm_waits_until_a_host_has_enough_cpu_and_memory) {
  options_.hosts = {{.name = "h1", .cpu = "1"}, {.name = "h2", .memory = "9Gi"}};
  const json large = {{"limits", {{"cpu", "16"}, {"memory", "12Gi"}}}};
  MakeVm("a", large);
  Wait(seconds(6));
  EXPECT_EQ(HostOf("a"), "h2") << "Harvester requests a part of the limits";
  const json b = MakeVm("b", large);
  Wait(seconds(6));
  EXPECT_EQ(PodMessageOf("b"),
            "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.");
  ASSERT_THAT(DeleteVm(cluster().Vm("a")), IsOk());
  Wait(seconds(10));
  EXPECT_EQ(HostOf("b"), "h2");
}

// Harvester 1.8.0 and KubeVirt 1.7.0: the pod's limit is 1557364928 bytes, 60 MB of them for the
// log of the console, which requests 35 MB.
TEST_F(HostsTest, A_vm_requests_a_part_of_its_limits_and_its_pod_what_kubevirt_adds) {
  MakeVm("a", {{"limits", {{"cpu", "1"}, {"memory", "1Gi"}}}});
  EXPECT_EQ(cluster().Vm("a")["spec"]["template"]["spec"]["domain"]["resources"]["requests"],
            json({{"cpu", "100m"}, {"memory", "682Mi"}}));
  EXPECT_EQ(PodOf("a"), json()) << "it has no host yet";
  Wait(seconds(6));
  const json pod = PodOf("a");
  EXPECT_EQ(pod["spec"]["nodeName"], "h1");
  EXPECT_EQ(pod["status"]["phase"], "Running");
  EXPECT_EQ(pod["metadata"]["labels"]["kubevirt.io"], "virt-launcher");
  EXPECT_EQ(pod["spec"]["containers"][0]["resources"]["requests"],
            json({{"cpu", "100m"}, {"memory", std::to_string((682 << 20) + 423623104)}}));
  EXPECT_EQ(pod["spec"]["initContainers"][0]["resources"]["requests"],
            json({{"cpu", "5m"}, {"memory", "35M"}}));
}

TEST_F(HostsTest, Requests_follow_the_limits_and_a_vm_with_a_device_requests_all_its_memory) {
  json vm = VmNamed("a");
  json& domain = vm["spec"]["template"]["spec"]["domain"];
  domain["resources"] = {{"limits", {{"cpu", "2"}, {"memory", "3Gi"}}},
                         {"requests", {{"cpu", "2"}, {"memory", "1Gi"}}}};
  const auto requests_of = [](const json& object) {
    return object["spec"]["template"]["spec"]["domain"]["resources"]["requests"];
  };
  const auto made = kube().Create(context_, kube::kVirtualMachines, "nomad", vm, /*dry_run=*/true);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(requests_of(made->object), json({{"cpu", "200m"}, {"memory", "2Gi"}}));
  domain["devices"]["hostDevices"] = {{{"name", "a"}, {"deviceName", "x.io/a"}}};
  ASSERT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", vm), IsOk());
  EXPECT_EQ(requests_of(cluster().Vm("a"))["memory"], "3Gi");
  json patch;
  patch["spec"]["template"]["spec"]["domain"]["resources"]["limits"]["cpu"] = "4";
  ASSERT_THAT(kube().MergePatch(context_, kube::kVirtualMachines, "nomad", "a", patch), IsOk());
  EXPECT_EQ(requests_of(cluster().Vm("a"))["cpu"], "400m");
}

TEST_F(HostsTest, All_pods_are_in_the_list_of_all_namespaces) {
  MakeVm("a");
  Wait(seconds(6));
  ASSERT_TRUE(cluster().PutObject({{"apiVersion", "v1"},
                                   {"kind", "Pod"},
                                   {"metadata", {{"name", "x"}, {"namespace", "default"}}},
                                   {"spec", {{"nodeName", "h2"}}}}));
  const auto names = [this](const std::string& path) {
    const json list = json::parse(Ask(System::kHarvester, Method::kGet, path).body);
    std::vector<std::string> all;
    for (const json& pod : list["items"]) all.push_back(kube::NameOf(pod));
    return all;
  };
  EXPECT_THAT(names("/api/v1/pods"), ElementsAre("x", "virt-launcher-a"));
  EXPECT_THAT(names("/api/v1/namespaces/nomad/pods"), ElementsAre("virt-launcher-a"));
  const json page = json::parse(Ask(System::kHarvester, Method::kGet, "/api/v1/pods?limit=1").body);
  EXPECT_THAT(names("/api/v1/pods?limit=1&continue=" +
                    base::UrlEscape(page["metadata"]["continue"].get<std::string>())),
              ElementsAre("virt-launcher-a"));
  cluster().Forbid("list", "pods", /*cluster_wide=*/true);
  EXPECT_EQ(Ask(System::kHarvester, Method::kGet, "/api/v1/pods").status, 403);
  EXPECT_THAT(names("/api/v1/namespaces/nomad/pods"), ElementsAre("virt-launcher-a"));
}

TEST_F(HostsTest, Other_pods_take_room_until_they_end) {
  options_.hosts = {{.name = "h1", .cpu = "1"}};
  json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"name", "x"}, {"namespace", "default"}}},
              {"spec",
               {{"nodeName", "h1"},
                {"containers", json::array({{{"resources", {{"requests", {{"cpu", "1"}}}}}}})}}},
              {"status", {{"phase", "Running"}}}};
  ASSERT_TRUE(cluster().PutObject(pod));
  MakeVm("a");
  Wait(seconds(6));
  EXPECT_EQ(PodMessageOf("a"), "0/1 nodes are available: 1 Insufficient cpu.");
  pod["status"]["phase"] = "Succeeded";
  ASSERT_TRUE(cluster().PutObject(pod));
  Wait(seconds(6));
  EXPECT_EQ(HostOf("a"), "h1");
}

TEST_F(HostsTest, A_host_has_so_many_devices_and_pods) {
  options_.hosts = {{.name = "h1", .devices = {{"x.io/a", 1}}}, {.name = "h2"}};
  const json guest = {
      {"domain", {{"devices", {{"hostDevices", {{{"name", "a"}, {"deviceName", "x.io/a"}}}}}}}}};
  MakeVmWith("a", guest);
  MakeVmWith("b", guest);
  EXPECT_EQ(HostOf("a"), "h1");
  EXPECT_EQ(PodMessageOf("b"), "0/2 nodes are available: 2 Insufficient x.io/a.");
  PutHost("h1", {{"status", {{"allocatable", {{"pods", "1"}}}}}});
  PutHost("h2", {{"status", {{"allocatable", {{"pods", "0"}}}}}});
  MakeVmWith("c", json::object());
  EXPECT_EQ(PodMessageOf("c"), "0/2 nodes are available: 2 Too many pods.");
}

TEST_F(HostsTest, A_vm_goes_to_a_host_whose_labels_and_taints_it_accepts) {
  options_.hosts = {{.name = "h1", .zone = "z1"},
                    {.name = "h2", .labels = {{"disk", "nvme"}, {"cores", "16"}}}};
  const auto required = [](const json& expression) {
    const json term = {{"matchExpressions", json::array({expression})}};
    return json{{"affinity",
                 {{"nodeAffinity",
                   {{"requiredDuringSchedulingIgnoredDuringExecution",
                     {{"nodeSelectorTerms", json::array({term})}}}}}}}};
  };
  MakeVmWith("selected", {{"nodeSelector", {{"disk", "nvme"}}}});
  EXPECT_EQ(HostOf("selected"), "h2");
  MakeVmWith("in", required({{"key", "topology.kubernetes.io/zone"},
                             {"operator", "In"},
                             {"values", json::array({"z1", "z2"})}}));
  EXPECT_EQ(HostOf("in"), "h1");
  MakeVmWith("more", required({{"key", "cores"}, {"operator", "Gt"}, {"values", {"15"}}}));
  EXPECT_EQ(HostOf("more"), "h2");
  MakeVmWith("none", required({{"key", "cores"}, {"operator", "Gt"}, {"values", {"16"}}}));
  EXPECT_EQ(PodMessageOf("none"),
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.");
  for (const char* const host : {"h1", "h2"}) {
    PutHost(host, {{"spec",
                    {{"taints", {{{"key", "gpu"}, {"value", "yes"}, {"effect", "NoSchedule"}}}}}}});
  }
  MakeVmWith("away", json::object());
  EXPECT_EQ(PodMessageOf("away"),
            "0/2 nodes are available: 2 node(s) had untolerated taint {gpu: yes}.");
  MakeVmWith("tolerant", {{"tolerations", {{{"key", "gpu"}, {"operator", "Exists"}}}}});
  EXPECT_NE(HostOf("tolerant"), "");
}

TEST_F(HostsTest, Vms_that_must_not_share_a_host_do_not) {
  const json term = {{"labelSelector", {{"matchLabels", {{"pool", "p"}}}}},
                     {"topologyKey", "kubernetes.io/hostname"}};
  const json apart = {
      {"affinity",
       {{"podAntiAffinity",
         {{"requiredDuringSchedulingIgnoredDuringExecution", json::array({term})}}}}}};
  for (const char* const vm : {"a", "b", "c"}) MakeVmWith(vm, apart);
  EXPECT_EQ(HostOf("a"), "h1");
  EXPECT_EQ(HostOf("b"), "h2");
  EXPECT_EQ(PodMessageOf("c"),
            "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.");
  ASSERT_THAT(DeleteVm(cluster().Vm("a")), IsOk());
  Wait(seconds(10));
  EXPECT_EQ(HostOf("c"), "h1");
}

TEST_F(HostsTest, A_vm_that_waits_for_a_host_leaves_no_pod_behind) {
  ASSERT_TRUE(cluster().PutObject(support::Host("h1", /*cordoned=*/true)));
  ASSERT_TRUE(cluster().PutObject(support::Host("h2", /*cordoned=*/true)));
  const json vm = MakeVm("a");
  Wait(seconds(6));
  ASSERT_NE(PodMessageOf("a"), "");
  ASSERT_THAT(DeleteVm(vm), IsOk());
  Wait(seconds(6));
  EXPECT_EQ(StatusOf("a"), "none");
  EXPECT_EQ(PodMessageOf("a"), "");
}

TEST_F(HostsTest, A_migrating_instance_has_its_old_host_until_the_guest_has_moved) {
  const std::string node = JoinVm("a").id;
  ASSERT_TRUE(cluster().MigrateVm("a", "h2"));
  Wait(seconds(1));
  EXPECT_EQ(HostOf("a"), "h1");
  EXPECT_EQ(StatusOf("a"), "Migrating");
  Wait(seconds(2));
  EXPECT_EQ(HostOf("a"), "h2");
  EXPECT_EQ(StatusOf("a"), "Running");
  EXPECT_EQ(NodeOf("a").id, node) << "the guest notices nothing";
  EXPECT_FALSE(cluster().MigrateVm("b", "h2"));
}

std::string Migratable(const json& object) {
  for (const json& condition : object["status"]["conditions"]) {
    if (condition["type"] == "LiveMigratable") return condition["status"];
  }
  return "unknown";
}

TEST_F(HostsTest, An_instance_and_its_vm_say_whether_the_guest_can_migrate) {
  options_.hosts = {{.name = "h1", .devices = {{"x.io/a", 1}}}};
  MakeVmWith("a", json::object());
  MakeVmWith(
      "b",
      {{"domain", {{"devices", {{"hostDevices", {{{"name", "a"}, {"deviceName", "x.io/a"}}}}}}}}});
  for (const auto& [name, says] : {std::pair("a", "True"), std::pair("b", "False")}) {
    EXPECT_EQ(Migratable(cluster().Vm(name)), says);
    EXPECT_EQ(
        Migratable(kube().Get(context_, kube::kVirtualMachineInstances, "nomad", name)->object),
        says);
  }
}

TEST_F(HostsTest, Maintenance_moves_the_guests_that_can_migrate_and_waits_for_the_others) {
  options_.hosts = {{.name = "h1", .devices = {{"x.io/a", 1}}}, {.name = "h2"}};
  MakeVmWith("pinned",
             {{"domain", {{"devices", {{"gpus", {{{"name", "a"}, {"deviceName", "x.io/a"}}}}}}}}});
  MakeVmWith("b", json::object());
  MakeVmWith("moves", json::object());
  ASSERT_EQ(HostOf("moves"), "h1");
  const auto status = [this] {
    return kube()
        .Get(context_, kube::kHosts, "", "h1")
        ->object["metadata"]["annotations"]
        .value("harvesterhci.io/maintain-status", "");
  };
  ASSERT_THAT(kube().MergePatch(
                  context_, kube::kHosts, "", "h1",
                  {{"metadata", {{"annotations", {{"harvesterhci.io/drain-requested", "true"}}}}}}),
              IsOk());
  Wait(seconds(1));
  EXPECT_EQ(StatusOf("moves"), "Migrating");
  Wait(minutes(1));
  EXPECT_EQ(HostOf("moves"), "h2");
  EXPECT_EQ(HostOf("pinned"), "h1");
  EXPECT_EQ(status(), "running");
  MakeVm("new");
  Wait(seconds(6));
  EXPECT_EQ(HostOf("new"), "h2") << "h1 is cordoned";
  ASSERT_THAT(DeleteVm(cluster().Vm("pinned")), IsOk());
  Wait(seconds(10));
  EXPECT_EQ(status(), "completed");
}

TEST_F(HostsTest, Metadata_shows_some_seconds_later_and_survives_a_restart) {
  const std::string id = JoinVm("a").id;
  const auto before = NodeOf("a").modify_index;
  ASSERT_THAT(SetMeta(id, {{"host", "h1"}}), IsOk());
  Wait(seconds(5));
  EXPECT_FALSE(MetaOf("a").contains("host"));
  Wait(seconds(3));
  EXPECT_EQ(MetaOf("a")["host"], "h1");
  EXPECT_GT(NodeOf("a").modify_index, before);
  ASSERT_TRUE(cluster().KillNode("a"));
  Wait(minutes(1));
  ASSERT_TRUE(cluster().ReviveNode("a"));
  ASSERT_TRUE(cluster().ReRegister("a", [](NodeSpec& spec) { spec.meta["rack"] = "1"; }));
  EXPECT_EQ(MetaOf("a")["host"], "h1");
  EXPECT_EQ(MetaOf("a")["rack"], "1");
  ASSERT_FALSE(cluster().ReviveNodeUnderNewId("a").empty());
  EXPECT_FALSE(MetaOf("a").contains("host")) << "it was in the data directory";
  EXPECT_EQ(MetaOf("a")["rack"], "1");
}

TEST_F(HostsTest, Null_removes_a_key_and_hides_one_of_the_configuration) {
  const std::string id = JoinVm("a").id;
  ASSERT_THAT(SetMeta(id, {{"host", "h1"}}), IsOk());
  ASSERT_THAT(SetMeta(id, {{"host", std::nullopt}, {"harvester_vm_uuid", std::nullopt}}), IsOk());
  Wait(seconds(8));
  EXPECT_FALSE(MetaOf("a").contains("host"));
  EXPECT_FALSE(MetaOf("a").contains("harvester_vm_uuid"));
  const http::HttpResponse reply =
      Ask(System::kNomad, Method::kGet, "/v1/client/metadata?node_id=" + id);
  EXPECT_EQ(json::parse(reply.body), json({{"Meta", json::object()},
                                           {"Dynamic", {{"harvester_vm_uuid", nullptr}}},
                                           {"Static", {{"harvester_vm_uuid", kUuid}}}}));
}

// As test/e2e/testdata/nomad-1.11-introduction-answers.json has them.
TEST_F(HostsTest, Metadata_that_cannot_be_set_is_refused_as_by_nomad) {
  const std::string id = JoinVm("a").id;
  const std::string path = "/v1/client/metadata?node_id=";
  const auto post = [&](const std::string& target, const std::string& body) {
    const http::HttpResponse reply = Ask(System::kNomad, Method::kPost, target, body);
    return std::to_string(reply.status) + " " + reply.body;
  };
  EXPECT_EQ(post(path + id, R"({"Meta":{}})"), "400 missing required Meta object");
  EXPECT_EQ(post("/v1/client/metadata", R"({"Meta":{"a":"b"}})"),
            "400 No local Node and node_id not provided");
  EXPECT_EQ(post(path + "00000000-0000-0000-0000-000000000000", R"({"Meta":{"a":"b"}})"),
            "500 Unknown node 00000000-0000-0000-0000-000000000000");
  EXPECT_EQ(Ask(System::kNomad, Method::kPut, path + id, R"({"Meta":{"a":"b"}})").status, 405);
  ASSERT_TRUE(cluster().KillNode("a"));
  EXPECT_EQ(post(path + id, R"({"Meta":{"a":"b"}})"), "404 No path to node");
}

}  // namespace
}  // namespace nomad_harvester::simulator
