// SPDX-License-Identifier: Apache-2.0
// Nodes, drains and blocking queries of the simulated Nomad.
#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;
using nomad::DrainStatus;
using nomad::NodeStatus;

class NomadNodeTest : public SimulatorTest {
 protected:
  // The node's full JSON, with fields that the client does not read.
  json NodeJson(const std::string& id) {
    http::HttpRequest request;
    request.target = "/v1/node/" + id;
    const auto reply = cluster().NomadTransport()->Send(context_, request);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? json::parse(reply->body) : json();
  }
  std::optional<base::WallTime> ForceDeadline(const std::string& id) {
    const auto time =
        base::ParseRfc3339(NodeJson(id)["DrainStrategy"]["ForceDeadline"].get<std::string>());
    return time.ok() ? std::optional(*time) : std::nullopt;
  }
  absl::Status Drain(const std::string& id, base::Duration deadline,
                     std::map<std::string, std::string> meta = {{"action", "a1"}}) {
    return nomad().Drain(context_, id, {deadline, false, std::move(meta)});
  }
};

// The agent asks for them again as soon as it has an answer, unless the question waits.
TEST_F(NomadNodeTest, There_are_no_scaling_policies_and_none_come) {
  const auto ask = [this](const std::string& query) {
    return Ask(System::kNomad, http::Method::kGet, "/v1/scaling/policies" + query, "", "");
  };
  const http::HttpResponse first = ask("");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "[]");
  EXPECT_EQ(first.headers.Find("X-Nomad-Index"), "1");
  const base::MonoTime asked = clock_.Now();
  EXPECT_EQ(ask("?index=1&wait=20s").body, "[]");
  EXPECT_GE(clock_.Now() - asked, seconds(20));
}

TEST_F(NomadNodeTest, An_update_keeps_the_start_and_counts_the_deadline_from_now) {
  const std::string id = AddNode("n");
  cluster().HangDrain("n");
  ASSERT_THAT(Drain(id, minutes(15)), IsOk());
  const auto first = Read(id);
  const base::WallTime first_deadline = *ForceDeadline(id);
  Wait(minutes(5));
  ASSERT_THAT(Drain(id, minutes(15), {}), IsOk());
  const auto second = Read(id);
  EXPECT_EQ(*ForceDeadline(id) - first_deadline, minutes(5));
  EXPECT_EQ(second.last_drain->started_at, first.last_drain->started_at);
  EXPECT_EQ(second.last_drain->meta.at("action"), "a1");  // no Meta: the old one
  EXPECT_EQ(*second.last_drain->updated_at, clock_.WallNow());
  ASSERT_THAT(Drain(id, minutes(15), {{"by", "operator"}}), IsOk());
  EXPECT_EQ(Read(id).last_drain->meta, (std::map<std::string, std::string>{{"by", "operator"}}));
}

TEST_F(NomadNodeTest, A_drain_that_hangs_ends_at_its_deadline) {
  const std::string id = AddNode("n");
  cluster().HangDrain("n");
  ASSERT_THAT(Drain(id, minutes(15)), IsOk());
  Wait(minutes(14));
  EXPECT_TRUE(Read(id).draining);
  Wait(minutes(1));
  EXPECT_EQ(Read(id).last_drain->status, DrainStatus::kComplete);
}

TEST_F(NomadNodeTest, A_drain_without_a_deadline_does_not_end_by_itself) {
  const std::string id = AddNode("n");
  cluster().HangDrain("n");
  ASSERT_THAT(Drain(id, base::Duration::zero()), IsOk());
  EXPECT_EQ(ForceDeadline(id), std::nullopt);
  Wait(std::chrono::hours(48));
  EXPECT_TRUE(Read(id).draining);
  cluster().HangDrain("n", false);
  EXPECT_FALSE(Read(id).draining);
}

TEST_F(NomadNodeTest, A_cancelled_drain_keeps_its_meta_and_has_status_canceled) {
  const std::string id = AddNode("n");
  cluster().HangDrain("n");
  ASSERT_THAT(Drain(id, minutes(15)), IsOk());
  ASSERT_THAT(nomad().CancelDrain(context_, id, false), IsOk());
  const auto cancelled = Read(id);
  EXPECT_EQ(cancelled.last_drain->status, DrainStatus::kCanceled);
  EXPECT_EQ(cancelled.last_drain->meta.at("action"), "a1");
  EXPECT_FALSE(cancelled.eligible);
  Wait(minutes(20));  // the old deadline no longer applies
  EXPECT_EQ(Read(id).last_drain->status, DrainStatus::kCanceled);
}

TEST_F(NomadNodeTest, A_new_drain_begins_a_new_record) {
  const std::string id = AddNode("n");
  ASSERT_THAT(Drain(id, minutes(15)), IsOk());
  Wait(minutes(1));
  ASSERT_THAT(Drain(id, minutes(15), {}), IsOk());
  EXPECT_EQ(Read(id).last_drain->started_at, "2026-01-01T00:01:00Z");
  EXPECT_THAT(Read(id).last_drain->meta, IsEmpty());
}

TEST_F(NomadNodeTest, A_draining_node_cannot_be_enabled) {
  const std::string id = AddNode("n");
  cluster().HangDrain("n");
  ASSERT_THAT(Drain(id, minutes(15)), IsOk());
  EXPECT_THAT(nomad().SetEligible(context_, id, true), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(nomad().SetEligible(context_, id, false), IsOk());
}

TEST_F(NomadNodeTest, An_eligibility_that_is_already_so_changes_no_index) {
  const std::string id = AddNode("n");
  const auto before = nomad().GetNode(context_, id)->index;
  ASSERT_THAT(nomad().SetEligible(context_, id, true), IsOk());
  EXPECT_EQ(nomad().GetNode(context_, id)->index, before);
  ASSERT_THAT(nomad().SetEligible(context_, id, false), IsOk());
  EXPECT_GT(nomad().GetNode(context_, id)->index, before);
}

TEST_F(NomadNodeTest, A_killed_node_is_down_after_its_heartbeats_are_missed) {
  const std::string id = AddNode("n");
  cluster().KillNode("n");
  Wait(seconds(9));
  EXPECT_EQ(Read(id).status, NodeStatus::kReady);
  Wait(seconds(1));
  EXPECT_EQ(Read(id).status, NodeStatus::kDown);
  EXPECT_EQ(NodeJson(id)["StatusUpdatedAt"],
            std::chrono::floor<seconds>(clock_.WallNow()).time_since_epoch().count());
  cluster().ReviveNode("n");
  EXPECT_EQ(Read(id).status, NodeStatus::kReady);
  EXPECT_TRUE(Read(id).eligible);
}

TEST_F(NomadNodeTest, A_node_that_has_been_down_for_a_day_is_forgotten) {
  const std::string id = AddNode("n");
  cluster().KillNode("n");
  Wait(seconds(10));
  Wait(std::chrono::hours(24) - seconds(1));
  EXPECT_EQ(Read(id).status, NodeStatus::kDown);
  Wait(seconds(1));
  EXPECT_THAT(nomad().ListNodes(context_)->value, IsEmpty());
}

TEST_F(NomadNodeTest, A_short_outage_of_a_node_has_no_effect) {
  const std::string id = AddNode("n");
  cluster().KillNode("n");
  Wait(seconds(8));
  cluster().ReviveNode("n");
  Wait(seconds(20));
  EXPECT_EQ(Read(id).status, NodeStatus::kReady);
}

TEST_F(NomadNodeTest, A_node_that_comes_back_drained_stays_ineligible) {
  const std::string id = AddNode("n");
  ASSERT_THAT(Drain(id, minutes(1)), IsOk());
  Wait(seconds(1));
  cluster().KillNode("n");
  Wait(seconds(11));
  cluster().ReviveNode("n");
  EXPECT_FALSE(Read(id).eligible);
  EXPECT_EQ(Read(id).last_drain->status, DrainStatus::kComplete);
}

TEST_F(NomadNodeTest, A_node_can_come_back_under_another_id) {
  const nomad::Node old = JoinVm("vm-1");
  const std::string fresh = cluster().ReviveNodeUnderNewId("vm-1");
  EXPECT_NE(fresh, old.id);
  EXPECT_EQ(Read(fresh).name, "vm-1");
  EXPECT_EQ(Read(fresh).address, old.address);
  Wait(seconds(11));
  EXPECT_EQ(Read(old.id).status, NodeStatus::kDown);
  EXPECT_EQ(Read(fresh).status, NodeStatus::kReady);
  EXPECT_EQ(cluster().NodeIdOfVm(UidOf(cluster().Vm("vm-1"))), fresh);
}

TEST_F(NomadNodeTest, A_purged_live_client_registers_again_and_a_dead_one_does_not) {
  const std::string alive = AddNode("alive");
  const std::string gone = AddNode("gone");
  const auto created = Read(alive).create_index;
  ASSERT_THAT(Drain(alive, minutes(1)), IsOk());
  cluster().KillNode("gone");
  ASSERT_THAT(nomad().Purge(context_, alive), IsOk());
  ASSERT_THAT(nomad().Purge(context_, gone), IsOk());
  EXPECT_THAT(nomad().GetNode(context_, alive), StatusIs(StatusCode::kNotFound));
  Wait(seconds(6));
  EXPECT_GT(Read(alive).create_index, created);
  EXPECT_TRUE(Read(alive).eligible);
  EXPECT_EQ(Read(alive).last_drain, std::nullopt);
  EXPECT_THAT(nomad().GetNode(context_, gone), StatusIs(StatusCode::kNotFound));
}

TEST_F(NomadNodeTest, A_blocking_query_returns_when_something_changes) {
  const std::string id = AddNode("n");
  const auto list = nomad().ListNodes(context_);
  const auto start = clock_.Now();
  cluster().KillNode("n");
  nomad::ReadOptions options;
  options.index = list->index;
  options.wait = minutes(1);
  const auto changed = nomad().ListNodes(context_, options);
  ASSERT_THAT(changed, IsOk());
  EXPECT_EQ(changed->value[0].status, NodeStatus::kDown);
  EXPECT_GT(changed->index, list->index);
  EXPECT_EQ(clock_.Now() - start, seconds(10));
}

TEST_F(NomadNodeTest, A_blocking_query_returns_when_another_client_changes_something) {
  AddNode("n");
  clock_.After(seconds(7), [&] { cluster().SetEligible("n", false); });
  const auto start = clock_.Now();
  nomad::ReadOptions options;
  options.index = nomad().ListNodes(context_)->index;
  options.wait = minutes(1);
  EXPECT_FALSE(nomad().ListNodes(context_, options)->value.at(0).eligible);
  EXPECT_LE(clock_.Now() - start, seconds(8));
}

TEST_F(NomadNodeTest, A_blocking_query_ends_with_its_wait_or_its_context) {
  AddNode("n");
  nomad::ReadOptions options;
  options.index = nomad().ListNodes(context_)->index;
  options.wait = seconds(30);
  const auto start = clock_.Now();
  const auto same = nomad().ListNodes(context_, options);
  ASSERT_THAT(same, IsOk());
  EXPECT_EQ(same->index, options.index);
  EXPECT_EQ(clock_.Now() - start, seconds(30));
  EXPECT_THAT(nomad().ListNodes(context_.WithTimeout(seconds(3)), options),
              StatusIs(StatusCode::kDeadlineExceeded));
  const runtime::CancelSource source(context_);
  clock_.After(seconds(2), [&] { source.Cancel(runtime::CancelReason::kShutdown); });
  EXPECT_THAT(nomad().ListNodes(source.context(), options), StatusIs(StatusCode::kCancelled));
}

TEST_F(NomadNodeTest, Lists_come_in_pages_that_lose_nothing) {
  for (int i = 0; i < 5; ++i) AddNode("n" + std::to_string(i));
  http::HttpRequest request;
  std::string token;
  std::size_t seen = 0;
  int pages = 0;
  do {
    request.target = "/v1/nodes?per_page=2&next_token=" + token;
    const auto reply = cluster().NomadTransport()->Send(context_, request);
    seen += json::parse(reply->body).size();
    token = reply->headers.Find("X-Nomad-NextToken").value_or("");
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(seen, 5U);
  EXPECT_EQ(pages, 3);
}

TEST_F(NomadNodeTest, The_acl_endpoints_show_whether_the_token_has_read_job) {
  EXPECT_EQ(*nomad().VerifyReadJob(context_), nomad::ReadJob::kEverywhere);
  cluster().DenyReadJob(true);
  EXPECT_EQ(*nomad().VerifyReadJob(context_), nomad::ReadJob::kDenied);
  EXPECT_THAT(nomad().ListAllocations(context_, nomad::AllocationPart::kTaskStates),
              StatusIs(StatusCode::kPermissionDenied));
  cluster().DenyReadJob(false);
  EXPECT_EQ(*nomad().VerifyReadJob(context_), nomad::ReadJob::kEverywhere);
}

TEST_F(NomadNodeTest, A_token_is_required_if_one_is_set) {
  options_.nomad_token = "right";
  EXPECT_THAT(nomad().ListNodes(context_),
              StatusIs(StatusCode::kPermissionDenied, HasSubstr("Permission denied")));
}

}  // namespace
}  // namespace nomad_harvester::simulator
