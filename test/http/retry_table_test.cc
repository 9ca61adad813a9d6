// SPDX-License-Identifier: Apache-2.0
// The table of http/retry.h, row by row.
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/retry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/scripted_transport.h"

namespace nomad_harvester::http {
namespace {

using std::chrono::seconds;
using support::Reply;
using testing::Eq;
using testing::Optional;

constexpr bool kDone = false;
constexpr bool kRetry = true;

struct RetryRow {
  std::string name;
  absl::StatusOr<HttpResponse> outcome;
  bool if_idempotent;
  bool if_once;
};

absl::Status Error(absl::StatusCode code) { return base::MakeStatus(code, "why"); }

std::vector<RetryRow> Rows() {
  return {
      {"no_answer", Error(absl::StatusCode::kUnavailable), kRetry, kDone},
      {"cancelled", Error(absl::StatusCode::kCancelled), kDone, kDone},
      {"deadline", Error(absl::StatusCode::kDeadlineExceeded), kDone, kDone},
      {"tls_or_permit", Error(absl::StatusCode::kFailedPrecondition), kDone, kDone},
      {"too_large", Error(absl::StatusCode::kResourceExhausted), kDone, kDone},
      {"malformed", Error(absl::StatusCode::kInvalidArgument), kDone, kDone},
      {"status_429", Reply(429), kRetry, kRetry},
      {"status_500", Reply(500), kRetry, kDone},
      {"status_502", Reply(502), kRetry, kDone},
      {"status_503", Reply(503), kRetry, kDone},
      {"status_504", Reply(504), kRetry, kDone},
      {"status_501", Reply(501), kDone, kDone},
      {"status_505", Reply(505), kDone, kDone},
      {"status_200", Reply(200), kDone, kDone},
      {"status_301", Reply(301), kDone, kDone},
      {"status_400", Reply(400), kDone, kDone},
      {"status_401", Reply(401), kDone, kDone},
      {"status_403", Reply(403), kDone, kDone},
      {"status_404", Reply(404), kDone, kDone},
      {"status_408", Reply(408), kDone, kDone},
      {"status_409", Reply(409), kDone, kDone},
      {"status_410", Reply(410), kDone, kDone},
      {"status_422", Reply(422), kDone, kDone},
  };
}

class RetryTable : public testing::TestWithParam<RetryRow> {};

TEST_P(RetryTable, decides_for_an_idempotent_request) {
  HttpRequest request;
  request.idempotency = Idempotency::kIdempotent;
  EXPECT_EQ(ShouldRetry(request, GetParam().outcome, nullptr), GetParam().if_idempotent);
}

TEST_P(RetryTable, decides_for_a_request_that_may_be_sent_once) {
  HttpRequest request;
  request.idempotency = Idempotency::kOnce;
  EXPECT_EQ(ShouldRetry(request, GetParam().outcome, nullptr), GetParam().if_once);
}

TEST_P(RetryTable, does_not_depend_on_the_method) {
  HttpRequest request;
  request.method = Method::kPost;
  EXPECT_EQ(ShouldRetry(request, GetParam().outcome, nullptr), GetParam().if_idempotent);
}

INSTANTIATE_TEST_SUITE_P(Rows, RetryTable, testing::ValuesIn(Rows()),
                         [](const auto& row) { return row.param.name; });

TEST(PermanentlyRefused, ends_the_retries_of_a_5xx_and_of_a_429) {
  const auto quota = [](const HttpResponse& r) { return r.body == "exceeded quota"; };
  EXPECT_EQ(ShouldRetry(HttpRequest(), Reply(500, {}, "exceeded quota"), quota), kDone);
  EXPECT_EQ(ShouldRetry(HttpRequest(), Reply(500, {}, "etcd is slow"), quota), kRetry);
  EXPECT_EQ(ShouldRetry(HttpRequest(), Reply(429, {}, "exceeded quota"), quota), kDone);
  EXPECT_EQ(ShouldRetry(HttpRequest(), Reply(429, {}, "too many requests"), quota), kRetry);
}

TEST(PermanentlyRefused, is_not_called_for_errors) {
  const auto everything = [](const HttpResponse&) { return true; };
  EXPECT_EQ(ShouldRetry(HttpRequest(), Error(absl::StatusCode::kUnavailable), everything), kRetry);
}

TEST(RetryAfterHeader, in_seconds) {
  EXPECT_THAT(RetryAfter(Reply(429, {{"Retry-After", "7"}})), Optional(Eq(seconds(7))));
  EXPECT_THAT(RetryAfter(Reply(429, {{"retry-after", " 0 "}})), Optional(Eq(seconds(0))));
}

TEST(RetryAfterHeader, is_a_minute_at_most) {
  EXPECT_THAT(RetryAfter(Reply(429, {{"Retry-After", "61"}})), Optional(Eq(seconds(60))));
  EXPECT_THAT(RetryAfter(Reply(429, {{"Retry-After", "99999999999999999999999"}})),
              Optional(Eq(seconds(60))));
}

TEST(RetryAfterHeader, that_cannot_be_read_is_nothing) {
  EXPECT_EQ(RetryAfter(Reply(429)), std::nullopt);
  for (const std::string text :
       {"", "soon", "-1", "1.5", "+1", "0x10", "Sat, 21 Nov 2026 02:03:16 GMT"}) {
    EXPECT_EQ(RetryAfter(Reply(429, {{"Retry-After", text}})), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace nomad_harvester::http
