// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/http/decorators.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/fake_clock.h"
#include "support/scripted_transport.h"

namespace nomad_harvester::http {
namespace {

using runtime::Context;
using support::Reply;
using support::ScriptedTransport;
using ::testing::ElementsAre;

// Keeps what it is told as "api verb code duration".
class ToldSink final : public metrics::Sink {
 public:
  void Set(metrics::Metric /*metric*/, metrics::Values /*values*/, double /*value*/) override {}
  void Add(metrics::Metric /*metric*/, metrics::Values /*values*/, double /*amount*/) override {}
  void Expect(metrics::Metric /*metric*/, metrics::Values /*values*/) override {}
  void Observe(metrics::Metric metric, metrics::Values values, base::Duration duration) override {
    EXPECT_EQ(metric, metrics::Metric::kApiRequest);
    std::string line;
    for (const std::string_view value : values) line += std::string(value) + " ";
    told.push_back(line + base::FormatGoDuration(duration));
  }
  std::vector<std::string> told;
};

class MetricsTransportTest : public testing::Test {
 protected:
  void Send(const ScriptedTransport::Outcome& outcome, const HttpRequest& request) {
    const auto inner =
        std::make_shared<ScriptedTransport>([this, outcome](const Context&, const HttpRequest&) {
          clock_.Advance(std::chrono::milliseconds(250));
          return outcome;
        });
    (void)WithLogAndMetrics(inner, "nomad", log::Logger(), sink_)
        ->Send(Context::Background(clock_), request);
  }

  support::FakeClock clock_;
  const std::shared_ptr<ToldSink> sink_ = std::make_shared<ToldSink>();
};

TEST_F(MetricsTransportTest, T2_an_attempt_is_told_by_method_and_status) {
  HttpRequest request;
  Send(Reply(200), request);
  request.method = Method::kDelete;
  Send(Reply(409), request);
  EXPECT_THAT(sink_->told, ElementsAre("nomad get 200 250ms", "nomad delete 409 250ms"));
}

TEST_F(MetricsTransportTest, T2_an_attempt_without_a_reply_has_no_status) {
  Send(base::Unavailable("the connection broke"), {});
  EXPECT_THAT(sink_->told, ElementsAre("nomad get none 250ms"));
}

TEST_F(MetricsTransportTest, T2_a_blocking_query_is_no_latency) {
  HttpRequest request;
  request.server_wait = std::chrono::seconds(5);
  Send(Reply(200), request);
  EXPECT_THAT(sink_->told, ElementsAre("nomad watch 200 250ms"));
}

TEST_F(MetricsTransportTest, T2_without_a_sink_a_request_is_sent_all_the_same) {
  const auto inner = std::make_shared<ScriptedTransport>(
      [](const Context&, const HttpRequest&) { return Reply(200); });
  const auto transport = WithLogAndMetrics(inner, "nomad", log::Logger(), nullptr);
  EXPECT_TRUE(transport->Send(Context::Background(clock_), {}).ok());
}

}  // namespace
}  // namespace nomad_harvester::http
