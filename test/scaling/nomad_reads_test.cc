// SPDX-License-Identifier: Apache-2.0
// One list of Nomad for all pools that want it at the same time (rule L8).
#include "observation/nomad_reads.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/wait.h"

#include "support/forwarding_clock.h"
#include "support/scripted_transport.h"
#include "support/status_matchers.h"

namespace nomad_harvester::scaling {
namespace {

using runtime::CancelReason;
using runtime::CancelSource;
using runtime::Context;
using OneList = nomad::Indexed<std::vector<nomad::Node>>;
using List = nomad::SharedList<OneList>;

// A Nomad whose replies the test gives, one by one.
class Server {
 public:
  absl::StatusOr<OneList> Read(const Context& context, const nomad::ReadOptions& options) {
    base::MutexLock lock(mutex_);
    asked_.push_back(options.index);
    const std::size_t self = asked_.size();
    changed_.NotifyAll();
    const bool replied = runtime::WaitFor(
        context, changed_, mutex_, [&]() NH_REQUIRES(mutex_) { return replies_.size() >= self; });
    if (!replied) replies_.push_back(context.Check());
    return replies_[self - 1];
  }
  // The reply to the oldest request without one.
  void Reply(absl::StatusOr<std::uint64_t> index) {
    base::MutexLock lock(mutex_);
    replies_.push_back(index.ok() ? absl::StatusOr<OneList>(OneList{.index = *index})
                                  : index.status());
    changed_.NotifyAll();
  }
  void AwaitRequests(std::size_t count) {
    base::MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() NH_REQUIRES(mutex_) { return asked_.size() >= count; });
  }
  std::vector<std::uint64_t> asked() {
    base::MutexLock lock(mutex_);
    return asked_;
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::uint64_t> asked_ NH_GUARDED_BY(mutex_);
  std::vector<absl::StatusOr<OneList>> replies_ NH_GUARDED_BY(mutex_);
};

// Tells how often somebody who waits has looked at it.
class WatchedClock final : public support::ForwardingClock {
 public:
  using ForwardingClock::ForwardingClock;
  base::MonoTime Now() const override {
    ++looks_;
    return ForwardingClock::Now() + ahead_.load();
  }
  void AwaitLooks(int count) const {
    while (looks_ < count) std::this_thread::yield();
  }
  void Advance(base::Duration by) { ahead_ = ahead_.load() + by; }

 private:
  mutable std::atomic<int> looks_ = 0;
  std::atomic<base::Duration> ahead_{};
};

class SharedListTest : public ::testing::Test {
 protected:
  using Outcome = std::future<List::Result>;

  Outcome Get(const Context& context, bool or_running = false) {
    return std::async(std::launch::async, [=, this] { return list_.Get(context, or_running); });
  }
  Outcome Await(const Context& context, std::uint64_t index,
                base::Duration wait = std::chrono::hours(1)) {
    return std::async(std::launch::async,
                      [=, this] { return list_.Await(context, {.index = index, .wait = wait}); });
  }
  // A caller that waits for another one's request sends none itself: that it has joined shows only
  // in what follows, so these tests hold whichever comes first.
  static std::uint64_t IndexOf(Outcome& outcome) {
    const auto list = outcome.get();
    return list.ok() ? (*list)->index : 0;
  }

  std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  const Context context_ = Context::Background(*clock_);
  Server server_;
  List list_{[this](const Context& context, const nomad::ReadOptions& options) {
    return server_.Read(context, options);
  }};
};

TEST_F(SharedListTest, CallersThatComeWhileARequestIsUnderWayShareTheNextOne_RuleL8) {
  Outcome first = Get(context_);
  server_.AwaitRequests(1);
  std::vector<Outcome> later;
  for (int i = 0; i < 5; ++i) later.push_back(Get(context_));
  std::this_thread::yield();
  server_.Reply(7);
  EXPECT_EQ(IndexOf(first), 7U);
  server_.AwaitRequests(2);
  server_.Reply(8);
  // Those that had not called by then send one more.
  for (int i = 0; i < 5; ++i) server_.Reply(9);
  for (Outcome& outcome : later) EXPECT_GE(IndexOf(outcome), 8U);
}

TEST_F(SharedListTest, AListForStatusMayBeUnderWayAlready_RuleS3) {
  Outcome first = Get(context_);
  server_.AwaitRequests(1);
  CancelSource other(context_);
  Outcome joined = Get(other.context(), true);
  server_.Reply(7);
  server_.Reply(8);
  EXPECT_EQ(IndexOf(first), 7U);
  EXPECT_GE(IndexOf(joined), 7U);
}

TEST_F(SharedListTest, IfTheCallerOfTheRequestGivesUpAnotherSendsIt) {
  CancelSource leaving(context_);
  Outcome first = Get(leaving.context());
  server_.AwaitRequests(1);
  Outcome second = Get(context_, true);
  leaving.Cancel(CancelReason::kClient);
  EXPECT_TRUE(absl::IsCancelled(first.get().status()));
  server_.AwaitRequests(2);
  server_.Reply(9);
  EXPECT_EQ(IndexOf(second), 9U);
}

TEST_F(SharedListTest, AFailureIsOfAllWhoWaitForIt) {
  Outcome first = Await(context_, 5);
  server_.AwaitRequests(1);
  Outcome second = Await(context_, 5);
  server_.Reply(base::Unavailable("no leader"));
  server_.Reply(base::Unavailable("no leader"));
  EXPECT_TRUE(absl::IsUnavailable(first.get().status()));
  EXPECT_TRUE(absl::IsUnavailable(second.get().status()));
}

TEST_F(SharedListTest, OneBlockingQueryServesAllThatWaitForAChange_RuleL8) {
  std::vector<Outcome> waiting;
  for (int i = 0; i < 8; ++i) waiting.push_back(Await(context_, 5));
  server_.AwaitRequests(1);
  EXPECT_THAT(server_.asked(), ::testing::ElementsAre(5));
  server_.Reply(6);
  // A caller that comes after the change asks with its old index and is answered at once.
  for (int i = 0; i < 7; ++i) server_.Reply(6);
  for (Outcome& outcome : waiting) EXPECT_EQ(IndexOf(outcome), 6U);
}

TEST_F(SharedListTest, ACallerWithAnOlderListDoesNotWaitForTheNextChange) {
  Outcome waiting = Await(context_, 9);
  server_.AwaitRequests(1);
  Outcome behind = Await(context_, 5);
  server_.AwaitRequests(2);
  EXPECT_THAT(server_.asked(), ::testing::ElementsAre(9, 0));
  server_.Reply(10);
  server_.Reply(9);
  EXPECT_EQ(IndexOf(waiting), 10U);
  EXPECT_EQ(IndexOf(behind), 9U);
}

TEST_F(SharedListTest, AShortWaitEndsWithAListOfItsOwn) {
  Outcome waiting = Await(context_, 5);
  server_.AwaitRequests(1);
  Outcome brief = Await(context_, 5, std::chrono::milliseconds(1));
  server_.AwaitRequests(2);
  EXPECT_THAT(server_.asked(), ::testing::ElementsAre(5, 0));
  server_.Reply(6);
  server_.Reply(6);
  EXPECT_EQ(IndexOf(brief), 6U);
  EXPECT_EQ(IndexOf(waiting), 6U);
}

// What a blocking query waits for may have changed before the caller's own list was read.
TEST_F(SharedListTest, AListThatIsOlderThanTheCallersLastOneIsNotGiven) {
  Outcome waiting = Await(context_, 5);
  server_.AwaitRequests(1);
  WatchedClock clock(*clock_);
  Outcome later = Await(Context::Background(clock), 9, std::chrono::hours(2));
  clock.AwaitLooks(2);  // it holds the list's mutex until it waits
  clock.Advance(std::chrono::minutes(90));
  server_.Reply(7);
  EXPECT_EQ(IndexOf(waiting), 7U);
  server_.Reply(10);
  EXPECT_EQ(IndexOf(later), 10U);
}

TEST_F(SharedListTest, ACancelledCallerLeavesTheOthersWaiting) {
  Outcome waiting = Await(context_, 5);
  server_.AwaitRequests(1);
  CancelSource leaving(context_);
  Outcome left = Await(leaving.context(), 5);
  leaving.Cancel(CancelReason::kClient);
  EXPECT_TRUE(absl::IsCancelled(left.get().status()));
  server_.Reply(6);
  EXPECT_EQ(IndexOf(waiting), 6U);
}

TEST(SharedList, AnExceptionEndsTheRequestForItsCallerAlone_RuleP2) {
  bool thrown = false;
  List list([&](const Context&, const nomad::ReadOptions&) -> absl::StatusOr<OneList> {
    if (!std::exchange(thrown, true)) throw std::runtime_error("out of memory");
    return OneList{.index = 3};
  });
  const auto clock = runtime::MakeSystemClock();
  const Context context = Context::Background(*clock);
  EXPECT_THROW(static_cast<void>(list.Get(context)), std::runtime_error);
  const auto second = list.Get(context);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ((*second)->index, 3U);
}

TEST(NomadReads, I7_a_node_that_is_no_longer_listed_is_forgotten) {
  constexpr char kNode[] = R"({"ID": "n1", "Name": "a", "Status": "ready", "ModifyIndex": 7})";
  const std::string list = std::string("[") + kNode + "]";
  const auto server = std::make_shared<support::ScriptedTransport>();
  for (const std::string& body : {std::string(kNode), list, std::string("[]"), list}) {
    server->Reply(200, body, {{"X-Nomad-Index", "1"}});
  }
  const auto client =
      std::make_shared<const nomad::NomadClient>(server, nomad::NomadClient::Options{});
  const std::unique_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  const Context context = Context::Background(*clock);
  NomadReads reads(client);
  ASSERT_THAT(reads.GetNode(context, *client, "n1"), support::IsOk());
  const auto known = reads.ListNodes(context);
  ASSERT_THAT(known, support::IsOk());
  EXPECT_TRUE(known->value->at(0).full);
  ASSERT_THAT(reads.ListNodes(context), support::IsOk());
  const auto forgotten = reads.ListNodes(context);
  ASSERT_THAT(forgotten, support::IsOk());
  EXPECT_FALSE(forgotten->value->at(0).full);
}

// A Nomad with a script of replies, read for Status.
class NodesForStatusTest : public ::testing::Test {
 protected:
  static std::string NodeJson(const std::string& id, int modify_index, int create_index = 3) {
    return R"({"ID": ")" + id + R"(", "Name": "a", "Status": "ready", "CreateIndex": )" +
           std::to_string(create_index) + R"(, "ModifyIndex": )" + std::to_string(modify_index) +
           "}";
  }
  void Reply(int index, const std::string& nodes, http::Headers more = {}) {
    more.Set("X-Nomad-Index", std::to_string(index));
    server_->Reply(200, "[" + nodes + "]", std::move(more));
  }
  // The target of each request of one Status.
  std::vector<std::string> Read() {
    const std::size_t before = server_->targets().size();
    list_ = reads_.ListNodesForStatus(context_);
    const std::vector<std::string> all = server_->targets();
    return {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()};
  }
  const std::vector<std::string> whole_{"/v1/nodes?resources=true"};
  const std::vector<std::string> proof_{"/v1/nodes?per_page=1"};
  const std::vector<std::string> both_{proof_[0], whole_[0]};

  const std::shared_ptr<support::ScriptedTransport> server_ =
      std::make_shared<support::ScriptedTransport>();
  const std::shared_ptr<const nomad::NomadClient> client_ =
      std::make_shared<const nomad::NomadClient>(server_, nomad::NomadClient::Options{});
  const std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  const Context context_ = Context::Background(*clock_);
  NomadReads reads_{client_};
  absl::StatusOr<nomad::Indexed<NodeList>> list_ = base::Unavailable("not read");
};

TEST_F(NodesForStatusTest, S3_a_list_is_proved_by_one_node_and_the_index) {
  Reply(9, NodeJson("n1", 7) + "," + NodeJson("n2", 9));
  EXPECT_EQ(Read(), whole_);
  const auto first = list_;
  for (int i = 0; i < 3; ++i) {
    Reply(9, NodeJson("n1", 7), {{"X-Nomad-NextToken", "n2"}});
    EXPECT_EQ(Read(), proof_);
    ASSERT_THAT(list_, support::IsOk());
    EXPECT_EQ(list_->value, first->value) << "the same list, not a copy";
  }
}

TEST_F(NodesForStatusTest, S3_an_index_that_moved_in_either_direction_is_no_proof) {
  for (const int index : {10, 8}) {
    NomadReads fresh(client_);
    Reply(9, NodeJson("n1", 7));
    ASSERT_THAT(fresh.ListNodesForStatus(context_), support::IsOk());
    Reply(index, NodeJson("n1", 7));
    Reply(index, NodeJson("n1", 7));
    const auto list = fresh.ListNodesForStatus(context_);
    ASSERT_THAT(list, support::IsOk());
    EXPECT_EQ(list->index, static_cast<std::uint64_t>(index));
  }
}

TEST_F(NodesForStatusTest, C15_another_nomad_with_the_same_index_is_no_proof) {
  Reply(9, NodeJson("n1", 7));
  Read();
  Reply(9, NodeJson("other", 7));
  Reply(9, NodeJson("other", 7));
  EXPECT_EQ(Read(), both_);
  EXPECT_EQ(list_->value->at(0).id, "other");
}

// A restored Nomad knows the same nodes, and may be at the same index again.
TEST_F(NodesForStatusTest, C15_the_same_node_at_other_indexes_is_no_proof) {
  for (const std::string& node : {NodeJson("n1", 8), NodeJson("n1", 7, 4)}) {
    NomadReads fresh(client_);
    Reply(9, NodeJson("n1", 7));
    ASSERT_THAT(fresh.ListNodesForStatus(context_), support::IsOk());
    Reply(9, node);
    Reply(9, node);
    ASSERT_THAT(fresh.ListNodesForStatus(context_), support::IsOk());
    EXPECT_EQ(server_->targets().back(), whole_[0]) << node;
  }
}

TEST_F(NodesForStatusTest, S3_a_proof_that_names_no_node_leads_to_the_whole_list) {
  Reply(9, NodeJson("n1", 7));
  Read();
  Reply(9, "");
  Reply(9, "");
  EXPECT_EQ(Read(), both_);
  ASSERT_THAT(list_, support::IsOk());
  EXPECT_TRUE(list_->value->empty()) << "the list itself says so";
}

TEST_F(NodesForStatusTest, L8_one_proof_serves_every_status_that_comes_while_it_is_under_way) {
  Reply(9, NodeJson("n1", 7));
  Read();
  WatchedClock clock(*clock_);
  std::jthread second;
  server_->Otherwise([&](const Context&, const http::HttpRequest&) {
    if (!second.joinable()) {
      second = std::jthread([&] {
        const auto deadline = clock_->Now() + std::chrono::hours(1);
        EXPECT_THAT(reads_.ListNodesForStatus(Context::Background(clock).WithDeadline(deadline)),
                    support::IsOk());
      });
      // It looks at the time once it waits for this request.
      clock.AwaitLooks(1);
    }
    return support::Reply(200, {{"X-Nomad-Index", "9"}}, "[" + NodeJson("n1", 7) + "]");
  });
  EXPECT_EQ(Read(), proof_);
  second.join();
  EXPECT_EQ(server_->targets().size(), 2U) << "the list and one proof";
}

TEST_F(NodesForStatusTest, S3_without_an_index_nothing_is_proved) {
  for (int i = 0; i < 2; ++i) server_->Reply(200, "[" + NodeJson("n1", 7) + "]");
  EXPECT_EQ(Read(), whole_);
  server_->Reply(200, "[" + NodeJson("n1", 7) + "]");
  EXPECT_EQ(Read(), both_);
}

TEST_F(NodesForStatusTest, L7_a_node_that_is_read_in_full_again_disproves_no_list) {
  server_->Reply(200, NodeJson("n1", 7));
  ASSERT_THAT(reads_.GetNode(context_, *client_, "n1"), support::IsOk());
  Reply(9, NodeJson("n1", 7));
  EXPECT_EQ(Read(), whole_);
  server_->Reply(200, NodeJson("n1", 7));
  ASSERT_THAT(reads_.GetNode(context_, *client_, "n1"), support::IsOk());
  Reply(9, NodeJson("n1", 7));
  EXPECT_EQ(Read(), proof_);
}

TEST_F(NodesForStatusTest, S3_that_there_is_no_node_is_read_each_time) {
  Reply(9, "");
  Reply(9, "");
  EXPECT_EQ(Read(), whole_);
  EXPECT_EQ(Read(), whole_);
}

TEST_F(NodesForStatusTest, S3_a_proof_that_fails_is_the_error) {
  Reply(9, NodeJson("n1", 7));
  Read();
  server_->Reply(500, "No cluster leader");
  EXPECT_EQ(Read(), proof_);
  EXPECT_FALSE(list_.ok());
  Reply(9, NodeJson("n1", 7));
  EXPECT_EQ(Read(), proof_) << "the list is still held";
}

TEST_F(NodesForStatusTest, C6_a_node_that_was_read_in_full_since_is_known_to_the_next_list) {
  Reply(9, NodeJson("n1", 7));
  Read();
  EXPECT_FALSE(list_->value->at(0).full);
  server_->Reply(200, NodeJson("n1", 7));
  ASSERT_THAT(reads_.GetNode(context_, *client_, "n1"), support::IsOk());
  Reply(9, NodeJson("n1", 7));
  Reply(9, NodeJson("n1", 7));
  EXPECT_EQ(Read(), both_);
  EXPECT_TRUE(list_->value->at(0).full);
}

TEST_F(NodesForStatusTest, S3_the_loop_reads_the_whole_list_and_status_goes_on_with_it) {
  Reply(9, NodeJson("n1", 7));
  Read();
  Reply(9, NodeJson("n1", 7));
  const auto of_the_loop = reads_.ListNodes(context_);
  ASSERT_THAT(of_the_loop, support::IsOk());
  EXPECT_EQ(server_->targets().back(), whole_[0]) << "what is held decides no act";
  Reply(9, NodeJson("n1", 7));
  EXPECT_EQ(Read(), proof_);
  EXPECT_EQ(list_->value, of_the_loop->value);
}

}  // namespace
}  // namespace nomad_harvester::scaling
