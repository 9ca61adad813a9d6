// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/decorators.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/fake_clock.h"
#include "support/recording_sink.h"
#include "support/scripted_transport.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using runtime::Context;
using support::IsOk;
using support::Reply;
using support::ScriptedTransport;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class Logging : public testing::Test {
 protected:
  absl::StatusOr<HttpResponse> Send(ScriptedTransport::Outcome outcome, const HttpRequest& request,
                                    log::Level level = log::Level::kDebug) {
    const auto inner =
        std::make_shared<ScriptedTransport>([this, outcome](const Context&, const HttpRequest&) {
          clock_.Advance(std::chrono::milliseconds(250));
          return outcome;
        });
    return WithLogAndMetrics(inner, "nomad", log::Logger(sink_, level), nullptr)
        ->Send(Context::Background(clock_), request);
  }
  static HttpRequest SecretRequest() {
    HttpRequest request;
    request.method = Method::kPost;
    request.effect = Effect::kWrite;
    request.target = "/v1/nodes?region=eu&token=hush1";
    request.headers.Add("X-Nomad-Token", "hush2");
    request.body = "hush3";
    request.purpose = "drain web-1";
    return request;
  }

  support::FakeClock clock_;
  std::shared_ptr<support::RecordingSink> sink_ = std::make_shared<support::RecordingSink>();
};

TEST_F(Logging, T2_one_debug_line_has_the_whole_exchange) {
  EXPECT_THAT(Send(Reply(200), SecretRequest()), IsOk());
  ASSERT_THAT(sink_->records(), SizeIs(1));
  EXPECT_EQ(sink_->records()[0].level, log::Level::kDebug);
  EXPECT_THAT(sink_->Text(), AllOf(HasSubstr("system=nomad"), HasSubstr("method=POST"),
                                   HasSubstr("/v1/nodes?region=eu"), HasSubstr("drain web-1"),
                                   HasSubstr("status=200"), HasSubstr("duration=250ms")));
}

TEST_F(Logging, an_error_is_logged_instead_of_the_status) {
  EXPECT_THAT(Send(base::Unavailable("no route"), SecretRequest()),
              StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(sink_->Text(), AllOf(HasSubstr("no route"), Not(HasSubstr("status="))));
}

TEST_F(Logging, P3_query_values_headers_and_bodies_are_not_logged) {
  EXPECT_THAT(Send(Reply(200, {{"Set-Cookie", "hush4"}}, "hush5"), SecretRequest()), IsOk());
  EXPECT_THAT(sink_->Text(), AllOf(HasSubstr("token=REDACTED"), Not(HasSubstr("hush"))));
}

TEST_F(Logging, a_read_that_goes_well_is_routine_and_one_that_fails_is_not) {
  HttpRequest read = SecretRequest();
  read.effect = Effect::kRead;
  EXPECT_THAT(Send(Reply(200), read, log::Level::kDebug), IsOk());
  EXPECT_THAT(sink_->records(), SizeIs(0));
  EXPECT_THAT(Send(Reply(200), read, log::Level::kTrace), IsOk());
  ASSERT_THAT(sink_->records(), SizeIs(1));
  EXPECT_EQ(sink_->records()[0].level, log::Level::kTrace);
  EXPECT_THAT(Send(Reply(403), read, log::Level::kDebug), IsOk());
  ASSERT_THAT(sink_->records(), SizeIs(2));
  EXPECT_EQ(sink_->records()[1].level, log::Level::kDebug);
  EXPECT_THAT(Send(base::Unavailable("no route"), read), StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(sink_->records(), SizeIs(3));
}

TEST_F(Logging, nothing_is_logged_above_debug) {
  EXPECT_THAT(Send(Reply(200), SecretRequest(), log::Level::kInfo), IsOk());
  EXPECT_THAT(sink_->records(), SizeIs(0));
}

}  // namespace
}  // namespace nomad_harvester::http
