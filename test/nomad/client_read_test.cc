// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nomad/error.h"

#include "nomad/client_fixture.h"

namespace nomad_harvester::nomad {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kTwoNodes = R"([{"ID":"a","Status":"ready"},{"ID":"b","Status":"down"}])";

class NomadReads : public ClientFixture {};

TEST_F(NomadReads, nodes_are_listed_with_resources_in_one_request) {
  transport_->Reply(200, kTwoNodes, {{"X-Nomad-Index", "42"}});
  const auto nodes = client_.ListNodes(context_);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_EQ(nodes->value.size(), 2U);
  EXPECT_EQ(nodes->value[1].id, "b");
  EXPECT_EQ(nodes->index, 42U);
  EXPECT_EQ(OnlyRequest().target, "/v1/nodes?resources=true");
  EXPECT_EQ(OnlyRequest().method, http::Method::kGet);
  EXPECT_EQ(OnlyRequest().effect, http::Effect::kRead);
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kIdempotent);
  EXPECT_EQ(OnlyRequest().server_wait, base::Duration::zero());
  EXPECT_EQ(OnlyRequest().purpose, "list Nomad nodes");
}

TEST_F(NomadReads, C7_a_list_of_nodes_tells_their_dynamic_host_volumes) {
  transport_->Reply(200, R"([{"ID":"a","HostVolumes":{"db":{"Name":"db","ID":"6b1f"},
                                                     "ID":{"Name":"ID","Path":"/x","ID":""}}}])");
  const auto nodes = client_.ListNodes(context_);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_THAT(nodes->value.at(0).dynamic_host_volumes, ElementsAre("db"));
}

// The nodes of the other pages would look purged.
TEST_F(NomadReads, S1_a_page_does_not_pass_for_the_list) {
  transport_->Reply(200, kTwoNodes, {{"X-Nomad-Index", "42"}, {"X-Nomad-NextToken", "b/c"}});
  const absl::Status page = client_.ListNodes(context_).status();
  EXPECT_EQ(page.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(base::Message(page),
            "list Nomad nodes: the reply is only a page of the list; check that nomad_address is "
            "the address of Nomad, and that no proxy changes its replies");
  EXPECT_EQ(OnlyRequest().target, "/v1/nodes?resources=true");
}

TEST_F(NomadReads, a_blocking_list_has_room_for_the_jitter) {
  transport_->Reply(200, "[]", {{"X-Nomad-Index", "43"}});
  const auto nodes = client_.ListNodes(context_, {42, std::chrono::seconds(32)});
  ASSERT_TRUE(nodes.ok());
  EXPECT_EQ(nodes->index, 43U);
  EXPECT_EQ(OnlyRequest().target, "/v1/nodes?resources=true&index=42&wait=32000ms");
  EXPECT_EQ(OnlyRequest().server_wait, std::chrono::seconds(34));
}

TEST_F(NomadReads, an_index_without_a_wait_or_a_wait_without_an_index_never_blocks) {
  for (const ReadOptions& options :
       {ReadOptions{42, {}}, ReadOptions{0, std::chrono::seconds(30)}}) {
    transport_->Reply(200, "[]", {{"X-Nomad-Index", "1"}});
    ASSERT_TRUE(client_.ListNodes(context_, options).ok());
    EXPECT_EQ(transport_->requests().back().target, "/v1/nodes?resources=true");
    EXPECT_EQ(transport_->requests().back().server_wait, base::Duration::zero());
  }
}

TEST_F(NomadReads, a_wait_below_a_millisecond_is_not_the_servers_five_minutes) {
  transport_->Reply(200, "[]", {{"X-Nomad-Index", "1"}});
  ASSERT_TRUE(client_.ListNodes(context_, {1, std::chrono::microseconds(10)}).ok());
  EXPECT_EQ(OnlyRequest().target, "/v1/nodes?resources=true&index=1&wait=1ms");
}

TEST_F(NomadReads, region_and_namespace_travel_as_escaped_parameters) {
  const NomadClient client(transport_, {"eu west", "team&a"});
  EXPECT_EQ(client.region(), "eu west");
  transport_->Reply(200, "[]", {{"X-Nomad-Index", "1"}});
  ASSERT_TRUE(client.ListNodes(context_).ok());
  EXPECT_EQ(OnlyRequest().target, "/v1/nodes?region=eu%20west&namespace=team%26a&resources=true");
}

TEST_F(NomadReads, allocations_are_listed_of_all_namespaces_whatever_the_configured_one) {
  const NomadClient client(transport_, {"global", "team-a"});
  transport_->Reply(200, R"([{"ID":"a1","NodeID":"n","JobType":"batch","ClientStatus":"running"}])",
                    {{"X-Nomad-Index", "9"}});
  const auto allocations = client.ListAllocations(context_, AllocationPart::kResources);
  ASSERT_TRUE(allocations.ok()) << allocations.status();
  ASSERT_EQ(allocations->value.size(), 1U);
  EXPECT_FALSE(allocations->value[0].all_tasks_dead) << "not known";
  EXPECT_EQ(allocations->value[0].job_type, "batch");
  EXPECT_EQ(OnlyRequest().target,
            "/v1/allocations?region=global&namespace=*&resources=true&task_states=false");
}

TEST_F(NomadReads, a_blocking_list_of_allocations_is_unpaged) {
  transport_->Reply(200, "[]", {{"X-Nomad-Index", "1"}});
  ASSERT_TRUE(
      client_.ListAllocations(context_, AllocationPart::kTaskStates, {7, std::chrono::seconds(16)})
          .ok());
  EXPECT_EQ(OnlyRequest().target,
            "/v1/allocations?namespace=*&resources=false&task_states=true&index=7"
            "&wait=16000ms");
  EXPECT_EQ(OnlyRequest().server_wait, std::chrono::seconds(17));
}

TEST_F(NomadReads, a_nodes_allocations_have_no_pages) {
  transport_->Reply(200, R"([{"ID":"a1","Job":{"Type":"system","TaskGroups":[{"Name":"g"}]}}])");
  const auto allocations = client_.NodeAllocations(context_, "n1");
  ASSERT_TRUE(allocations.ok());
  EXPECT_EQ(allocations->value.at(0).job_type, "system");
  EXPECT_EQ(OnlyRequest().target, "/v1/node/n1/allocations");
}

TEST_F(NomadReads, a_task_named_like_a_part_we_skip_still_counts) {
  transport_->Reply(200,
                    R"([{"ID":"a1","TaskStates":{"Metrics":{"State":"running","Events":[]}}}])");
  const auto allocations = client_.NodeAllocations(context_, "n1");
  ASSERT_TRUE(allocations.ok());
  EXPECT_FALSE(allocations->value.at(0).all_tasks_dead);
}

TEST_F(NomadReads, C9_an_allocation_that_has_not_begun_is_work_of_its_node) {
  transport_->Reply(200, R"([{"ID":"a1","JobID":"api","ClientStatus":"pending"},)"
                         R"({"ID":"a2","JobID":"old","ClientStatus":"complete"}])");
  const auto allocations = client_.NodeAllocations(context_, "n1");
  ASSERT_TRUE(allocations.ok());
  EXPECT_EQ(allocations->value.at(0).work, "job api");
  EXPECT_EQ(allocations->value.at(1).work, "");
}

TEST_F(NomadReads, a_node_is_read_in_full) {
  transport_->Reply(200, R"({"ID":"n1","Attributes":{"unique.hostname":"vm-1"}})",
                    {{"X-Nomad-Index", "5"}});
  const auto node = client_.GetNode(context_, "n1");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_TRUE(node->value.full);
  EXPECT_EQ(node->value.attributes.at("unique.hostname"), "vm-1");
  EXPECT_EQ(node->index, 5U);
}

TEST_F(NomadReads, a_missing_node_is_not_found) {
  transport_->Reply(404, "node not found");
  const auto node = client_.GetNode(context_, "n1");
  EXPECT_EQ(node.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(base::Message(node.status()), "read Nomad node n1: node not found (HTTP 404)");
}

TEST_F(NomadReads, C15_a_missing_node_comes_with_the_index_of_the_server_that_does_not_know_it) {
  transport_->Reply(404, "node not found", {{"X-Nomad-Index", "4711"}});
  const auto error = GetNomadError(client_.GetNode(context_, "n1").status());
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->index, 4711U);
}

TEST_F(NomadReads, a_reply_about_another_node_is_refused) {
  transport_->Reply(200, R"({"ID":"n2"})");
  EXPECT_EQ(client_.GetNode(context_, "n1").status().code(), absl::StatusCode::kInternal);
}

TEST_F(NomadReads, an_index_that_cannot_be_read_is_zero) {
  for (const char* text : {"", "x", "-1", "12x", "99999999999999999999999"}) {
    transport_->Reply(200, kTwoNodes, {{"X-Nomad-Index", text}});
    EXPECT_EQ(client_.ListNodes(context_)->index, 0U) << text;
  }
}

// As none of the node's allocations it would delete a VM under its tasks, as none of the nodes
// replace VMs that work.
TEST_F(NomadReads, S1_an_empty_list_without_an_index_proves_nothing) {
  for (const char* body : {"[]", "null"}) {
    for (const char* index : {"", "x", "-1"}) {
      for (int i = 0; i < 3; ++i) transport_->Reply(200, body, {{"X-Nomad-Index", index}});
      const absl::Status node = client_.NodeAllocations(context_, "n1").status();
      EXPECT_EQ(node.code(), absl::StatusCode::kInternal);
      EXPECT_EQ(base::Message(node),
                "list the allocations of Nomad node n1: the reply is an empty list without the "
                "header X-Nomad-Index, which proves nothing; check that nomad_address is the "
                "address of Nomad, and that a proxy in front of it passes its headers on");
      EXPECT_EQ(client_.ListAllocations(context_, AllocationPart::kTaskStates).status().code(),
                absl::StatusCode::kInternal);
      EXPECT_EQ(client_.ListNodes(context_).status().code(), absl::StatusCode::kInternal);
    }
  }
}

TEST_F(NomadReads, S1_an_empty_list_with_its_index_is_one_also_of_a_nomad_that_never_had_any) {
  for (const char* body : {"[]", "null"}) {
    for (const std::uint64_t index : {0U, 42U}) {
      transport_->Reply(200, body, {{"X-Nomad-Index", std::to_string(index)}});
      const auto nodes = client_.ListNodes(context_);
      ASSERT_TRUE(nodes.ok()) << nodes.status();
      EXPECT_THAT(nodes->value, IsEmpty());
      EXPECT_EQ(nodes->index, index);
    }
  }
}

TEST_F(NomadReads, an_answer_that_is_not_an_answer_is_never_an_empty_list) {
  for (const char* body : {"", "<html>", "{}", "[{}]", "[null]", R"([{"ID":"a"},{"ID":""}])"}) {
    transport_->Reply(200, body);
    const auto nodes = client_.ListNodes(context_);
    EXPECT_EQ(nodes.status().code(), absl::StatusCode::kInternal) << body;
    EXPECT_THAT(base::Message(nodes.status()), HasSubstr("list Nomad nodes: ")) << body;
  }
}

TEST_F(NomadReads, P2_a_list_that_is_cut_anywhere_is_never_taken_for_a_shorter_one) {
  const std::string body =
      R"([{"ID":"a","Name":"x","Drivers":{"d":{"e":[1,2]}},"NodeResources":{"Cpu":{"CpuShares":1},)"
      R"("Networks":[{"Device":"eth0"}]},"LastDrain":{"Meta":{"k":"v"}}},{"ID":"b\u00e9"}])";
  for (std::size_t length = 0; length < body.size(); ++length) {
    transport_->Reply(200, body.substr(0, length));
    EXPECT_FALSE(client_.ListNodes(context_).ok()) << length;
  }
  transport_->Reply(200, body);
  EXPECT_TRUE(client_.ListNodes(context_).ok());
}

TEST_F(NomadReads, P2_no_byte_that_changes_in_a_body_does_harm) {
  const std::string body =
      R"([{"ID":"a","JobType":"batch",)"
      R"("AllocatedResources":{"Tasks":{"t":{"Cpu":{"CpuShares":7}}}},)"
      R"("TaskStates":{"t":{"State":"dead","Events":[{"Type":"x"}]}},"CreateIndex":12}])";
  for (std::size_t at = 0; at < body.size(); ++at) {
    for (const char byte : {'"', '{', ']', '9', '-', 'e', '\\', '\0', '\xff'}) {
      std::string changed = body;
      changed[at] = byte;
      transport_->Reply(200, changed);
      (void)client_.ListAllocations(context_, AllocationPart::kTaskStates);
    }
  }
}

TEST_F(NomadReads, an_answer_that_is_not_a_node_is_an_error) {
  for (const char* body : {"", "[]", "null", "{}", R"({"ID":null})"}) {
    transport_->Reply(200, body);
    EXPECT_EQ(client_.GetNode(context_, "n").status().code(), absl::StatusCode::kInternal) << body;
  }
}

TEST_F(NomadReads, the_own_node_is_found_by_the_allocation) {
  transport_->Reply(200, R"({"ID":"a1","NodeID":"n7"})");
  const auto node = client_.NodeOfAllocation(context_, "a1");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(*node, "n7");
  EXPECT_EQ(OnlyRequest().target, "/v1/allocation/a1");
}

TEST_F(NomadReads, an_allocation_that_is_not_there_yet_is_not_found) {
  transport_->Reply(404, "alloc not found");
  EXPECT_EQ(client_.NodeOfAllocation(context_, "a1").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(NomadReads, C7_an_allocation_that_the_token_may_not_read_is_denied_and_not_missing) {
  transport_->Reply(500, "Unknown allocation \"a1\"");
  const absl::Status hidden = client_.NodeOfAllocation(context_, "a1").status();
  EXPECT_EQ(hidden.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(base::Message(hidden), HasSubstr("the Nomad token needs namespace \"*\""));
}

TEST_F(NomadReads, an_allocation_without_a_node_is_an_error) {
  for (const char* body : {"{}", "[]", R"({"NodeID":""})", "no"}) {
    transport_->Reply(200, body);
    EXPECT_EQ(client_.NodeOfAllocation(context_, "a").status().code(), absl::StatusCode::kInternal);
  }
}

TEST_F(NomadReads, ids_that_would_name_another_path_are_never_sent) {
  for (const char* id : {"", ".", ".."}) {
    EXPECT_EQ(client_.GetNode(context_, id).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(client_.NodeAllocations(context_, id).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(client_.NodeOfAllocation(context_, id).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

TEST_F(NomadReads, ids_are_escaped) {
  transport_->Reply(404, "");
  (void)client_.GetNode(context_, "../jobs?x#y z");
  EXPECT_EQ(OnlyRequest().target, "/v1/node/..%2Fjobs%3Fx%23y%20z");
}

TEST_F(NomadReads, a_denial_names_the_rule_that_is_missing) {
  transport_->Reply(403, "Permission denied");
  const absl::Status denied = client_.ListNodes(context_).status();
  EXPECT_THAT(base::Message(denied),
              HasSubstr(R"(the Nomad token needs node { policy = "read" })"));
  EXPECT_TRUE(IsRefused(denied)) << "the payload is kept";
  transport_->Reply(403, "Permission denied");
  const auto allocations = client_.ListAllocations(context_, AllocationPart::kTaskStates);
  EXPECT_EQ(allocations.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(base::Message(allocations.status()),
              HasSubstr(R"(namespace "*" { capabilities = ["read-job"] })"));
  transport_->Reply(403, "ACL token not found");
  EXPECT_THAT(base::Message(client_.ListNodes(context_).status()), Not(HasSubstr("token needs")));
  transport_->Reply(500, "Permission is a word");
  EXPECT_THAT(base::Message(client_.ListNodes(context_).status()), Not(HasSubstr("token needs")));
}

TEST_F(NomadReads, an_error_of_the_transport_is_passed_on) {
  transport_->Fail(base::Unavailable("no connection"));
  const auto nodes = client_.ListNodes(context_);
  EXPECT_EQ(nodes.status(), base::Unavailable("no connection"));
}

TEST_F(NomadReads, a_cancelled_context_sends_nothing) {
  const runtime::CancelSource source(context_);
  source.Cancel(runtime::CancelReason::kClient);
  EXPECT_EQ(client_.ListNodes(source.context()).status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

TEST_F(NomadReads, servers_of_other_federated_regions_are_left_out) {
  transport_->Reply(200, R"({"ServerRegion":"eu","Members":[
      {"Name":"a.eu","Tags":{"region":"eu","build":"2.0.5"}},
      {"Name":"b.us","Tags":{"region":"us","build":"1.9.0"}}]})");
  const auto servers = client_.ListServers(context_);
  ASSERT_TRUE(servers.ok()) << servers.status();
  ASSERT_EQ(servers->list.size(), 1U);
  EXPECT_EQ(servers->list[0].name, "a.eu");
  EXPECT_EQ(servers->list[0].version, "2.0.5");
}

TEST_F(NomadReads, C15_a_nomad_that_wants_to_be_asked_later_has_not_said_that_it_has_no_keys) {
  for (const int status : {408, 429}) {
    transport_->Reply(status, "Too many requests");
    EXPECT_FALSE(client_.ReadClusterKeys(context_).ok()) << status;
  }
  transport_->Reply(404, "404 page not found");
  const auto keys = client_.ReadClusterKeys(context_);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(*keys, "");
}

}  // namespace
}  // namespace nomad_harvester::nomad
