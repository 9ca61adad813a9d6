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
