// SPDX-License-Identifier: Apache-2.0
#include "execution/vm_events.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/base/json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "support/fake_clock.h"
#include "support/manual_executor.h"
#include "support/recording_sink.h"
#include "support/scripted_transport.h"

namespace nomad_harvester::scaling {
namespace {

using http::HttpRequest;
using nlohmann::json;
using runtime::Context;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class VmEventsTest : public testing::Test {
 protected:
  VmEventsTest() {
    transport_->Otherwise(
        [this](const Context&, const HttpRequest&) { return support::Reply(status_, {}, body_); });
  }

  static harvester::VmEvent Event(const std::string& vm, const std::string& note = "n") {
    return {.vm = vm, .uid = "uid-of-" + vm, .reason = "Joined", .action = "Join", .note = note};
  }
  void Post(const std::string& vm, const std::string& note = "n") {
    events_->Post(web_, Event(vm, note));
  }
  void Refuse(int status, const std::string& reason) {
    status_ = status;
    body_ = R"({"kind":"Status","status":"Failure","message":"no","reason":")" + reason + "\"}";
  }
  void Accept() {
    status_ = 201;
    body_ = "{}";
  }
  std::size_t Sent() const { return transport_->requests().size(); }
  json Body(std::size_t i) const {
    return *base::ParseJson(transport_->requests().at(i).body, "the request");
  }
  std::vector<std::string> VmsOfSent() const {
    std::vector<std::string> vms;
    for (std::size_t i = 0; i < Sent(); ++i) vms.push_back(Body(i)["regarding"]["name"]);
    return vms;
  }

  support::FakeClock clock_;
  support::ManualExecutor executor_;
  std::shared_ptr<support::RecordingSink> log_ = std::make_shared<support::RecordingSink>();
  std::shared_ptr<support::ScriptedTransport> transport_ =
      std::make_shared<support::ScriptedTransport>();
  int status_ = 201;
  std::string body_ = "{}";
  const PoolKey web_{.ns = "nomad", .pool = "web"};
  const PoolKey batch_{.ns = "nomad", .pool = "batch"};
  const runtime::CancelSource root_{Context::Background(clock_)};
  std::shared_ptr<VmEvents> events_ = std::make_shared<VmEvents>(
      root_.context(), VmEvents::Options{.kube = std::make_shared<kube::KubeClient>(transport_),
                                         .executor = &executor_,
                                         .instance = "me",
                                         .logger = log::Logger(log_, log::Level::kDebug)});
};

TEST_F(VmEventsTest, T1_an_event_is_sent_by_a_task_and_not_by_whoever_posts_it) {
  Post("a");
  EXPECT_EQ(Sent(), 0U);
  EXPECT_EQ(executor_.RunAll(), 1U);
  ASSERT_EQ(Sent(), 1U);
  EXPECT_EQ(transport_->requests()[0].method, http::Method::kPost);
  EXPECT_THAT(transport_->targets()[0],
              HasSubstr("/apis/events.k8s.io/v1/namespaces/nomad/events"));
  EXPECT_EQ(Body(0)["reason"], "Joined");
  EXPECT_FALSE(Body(0).contains("series"));
}

TEST_F(VmEventsTest, L7_there_is_no_task_while_nothing_is_pending) {
  Post("a");
  executor_.RunAll();
  EXPECT_EQ(executor_.pending(), 0U);
  Post("b");
  EXPECT_EQ(executor_.pending(), 1U);
  Post("c");
  EXPECT_EQ(executor_.pending(), 1U) << "one task sends all that is pending";
}

TEST_F(VmEventsTest, an_equal_event_within_ten_minutes_is_counted_on_the_first) {
  Post("a");
  executor_.RunAll();
  clock_.Advance(minutes(9));
  Post("a");
  executor_.RunAll();
  clock_.Advance(minutes(9));
  Post("a");
  executor_.RunAll();
  ASSERT_EQ(Sent(), 3U);
  EXPECT_EQ(transport_->requests()[1].method, http::Method::kPatch);
  const std::string name = Body(0)["metadata"]["name"];
  EXPECT_THAT(transport_->targets()[2], HasSubstr("/events/" + name));
  EXPECT_EQ(Body(1), *base::ParseJson(R"({"series": {"count": 2,
                                          "lastObservedTime": "2026-01-01T00:09:00.000000Z"}})",
                                      "the expectation"));
  EXPECT_EQ(Body(2)["series"]["count"], 3);
}

TEST_F(VmEventsTest, an_equal_event_after_ten_minutes_is_a_new_one) {
  Post("a");
  executor_.RunAll();
  clock_.Advance(minutes(11));
  Post("a");
  executor_.RunAll();
  ASSERT_EQ(Sent(), 2U);
  EXPECT_EQ(transport_->requests()[1].method, http::Method::kPost);
  EXPECT_NE(Body(0)["metadata"]["name"], Body(1)["metadata"]["name"]);
}

TEST_F(VmEventsTest, events_that_differ_are_objects_of_their_own) {
  Post("a", "one");
  Post("a", "two");
  Post("b", "one");
  executor_.RunAll();
  EXPECT_THAT(VmsOfSent(), ElementsAre("a", "a", "b"));
}

TEST_F(VmEventsTest, equal_events_that_are_pending_are_sent_once_with_their_count) {
  for (int i = 0; i < 3; ++i) Post("a");
  executor_.RunAll();
  ASSERT_EQ(Sent(), 1U);
  EXPECT_EQ(Body(0)["series"]["count"], 3);
}

TEST_F(VmEventsTest, an_event_that_somebody_deleted_begins_anew) {
  Post("a");
  executor_.RunAll();
  Refuse(404, "NotFound");
  Post("a");
  executor_.RunAll();
  Accept();
  Post("a");
  executor_.RunAll();
  ASSERT_EQ(Sent(), 3U);
  EXPECT_EQ(transport_->requests()[2].method, http::Method::kPost);
}

TEST_F(VmEventsTest, beyond_a_burst_the_rate_is_limited) {
  const base::MonoTime began = clock_.Now();
  for (int i = 0; i < 70; ++i) Post("vm-" + std::to_string(i));
  executor_.RunAll();
  EXPECT_EQ(Sent(), 70U);
  EXPECT_GE(clock_.Now() - began, seconds(9)) << "50 more than the burst, at 5 per second";
  EXPECT_LE(clock_.Now() - began, seconds(11));
}

TEST_F(VmEventsTest, one_pools_burst_does_not_hold_up_another_pool) {
  for (int i = 0; i < 30; ++i) Post("vm-" + std::to_string(i));
  events_->Post(batch_, Event("other"));
  executor_.RunAll();
  const std::vector<std::string> vms = VmsOfSent();
  EXPECT_LE(std::find(vms.begin(), vms.end(), "other") - vms.begin(), 1);
}

TEST_F(VmEventsTest, what_waits_is_bounded_and_the_oldest_are_dropped) {
  const std::size_t most = VmEvents::kMaxPending;
  for (std::size_t i = 0; i < most + 5; ++i) Post("vm-" + std::to_string(i));
  executor_.RunAll();
  EXPECT_EQ(Sent(), most);
  EXPECT_EQ(VmsOfSent().front(), "vm-5");
  EXPECT_THAT(log_->Text(), HasSubstr("oldest Events dropped"));
}

TEST_F(VmEventsTest, T1_an_event_that_was_dropped_is_sent_when_it_happens_again) {
  for (std::size_t i = 0; i < VmEvents::kMaxPending + 1; ++i) Post("vm-" + std::to_string(i));
  executor_.RunAll();
  ASSERT_NE(VmsOfSent().front(), "vm-0");
  Post("vm-0");
  executor_.RunAll();
  EXPECT_EQ(VmsOfSent().back(), "vm-0");
}

TEST_F(VmEventsTest, a_failure_is_not_repeated_and_hits_its_event_alone) {
  Refuse(500, "InternalError");
  Post("a");
  executor_.RunAll();
  EXPECT_EQ(Sent(), 1U);
  EXPECT_THAT(log_->Text(), HasSubstr("A Kubernetes Event is lost"));
  Accept();
  Post("a");
  executor_.RunAll();
  ASSERT_EQ(Sent(), 2U);
  EXPECT_EQ(transport_->requests()[1].method, http::Method::kPost);
}

TEST_F(VmEventsTest, a_token_without_the_right_gets_one_warning_and_no_further_request) {
  Refuse(403, "Forbidden");
  for (int i = 0; i < 5; ++i) Post("vm-" + std::to_string(i));
  executor_.RunAll();
  Post("later");
  EXPECT_EQ(executor_.RunAll(), 0U);
  EXPECT_EQ(Sent(), 1U);
  EXPECT_THAT(log_->Text(), HasSubstr("create and patch of events.events.k8s.io"));
  EXPECT_THAT(log_->Text(), HasSubstr("events = \"false\""));
}

TEST_F(VmEventsTest, what_is_refused_of_one_event_ends_no_others) {
  for (const char* const why : {"exceeded quota: count/events.events.k8s.io",
                                "admission webhook \"w\" denied the request: no"}) {
    body_ = json{{"kind", "Status"}, {"reason", "Forbidden"}, {"message", why}}.dump();
    status_ = 403;
    Post(why);
    executor_.RunAll();
    EXPECT_THAT(log_->Text(), testing::Not(HasSubstr("events = \"false\""))) << why;
  }
  EXPECT_EQ(Sent(), 2U);
}

TEST_F(VmEventsTest, what_one_namespace_refuses_another_may_accept) {
  Refuse(403, "Forbidden");
  Post("a");
  executor_.RunAll();
  Accept();
  events_->Post({.ns = "other", .pool = "web"}, Event("b"));
  executor_.RunAll();
  EXPECT_EQ(Sent(), 2U);
}

TEST_F(VmEventsTest, C16_what_is_pending_of_a_call_that_was_cancelled_is_dropped) {
  events_->Post(web_, Event("a"), "cancelled");
  events_->Post(batch_, Event("b"), "other");
  events_->Post(web_, Event("c"), "earlier");
  events_->Drop(web_, "cancelled");
  executor_.RunAll();
  EXPECT_THAT(VmsOfSent(), testing::UnorderedElementsAre("b", "c"));
}

TEST_F(VmEventsTest, L9_at_the_end_what_is_pending_is_dropped) {
  for (int i = 0; i < 30; ++i) Post("vm-" + std::to_string(i));
  clock_.After(seconds(1), [this] { root_.Cancel(runtime::CancelReason::kShutdown); });
  const base::MonoTime began = clock_.Now();
  executor_.RunAll();
  EXPECT_LE(clock_.Now() - began, seconds(1));
  EXPECT_LT(Sent(), 30U);
  const std::size_t sent = Sent();
  Post("later");
  EXPECT_EQ(executor_.RunAll(), 0U);
  EXPECT_EQ(Sent(), sent);
}

TEST_F(VmEventsTest, T1_whoever_ends_can_wait_until_its_events_are_sent) {
  EXPECT_TRUE(events_->WaitUntilSent(root_.context())) << "there is none";
  Post("a");
  const runtime::CancelSource waiter(root_.context());
  waiter.Cancel(runtime::CancelReason::kShutdown);
  EXPECT_FALSE(events_->WaitUntilSent(waiter.context()));
  executor_.RunAll();
  EXPECT_TRUE(events_->WaitUntilSent(root_.context()));
  EXPECT_EQ(Sent(), 1U);
  Post("b");
  root_.Cancel(runtime::CancelReason::kShutdown);
  executor_.RunAll();
  EXPECT_TRUE(events_->WaitUntilSent(Context::Background(clock_))) << "it is lost";
}

TEST_F(VmEventsTest, a_full_executor_delays_events_until_the_next_one) {
  executor_.set_refusal(absl::ResourceExhaustedError("full"));
  Post("a");
  executor_.set_refusal(absl::OkStatus());
  Post("b");
  executor_.RunAll();
  EXPECT_THAT(VmsOfSent(), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace nomad_harvester::scaling
