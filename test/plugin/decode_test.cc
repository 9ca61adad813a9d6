// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"

#include "autoscaler_services.h"

namespace nomad_harvester::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

target_proto::ScaleRequest Request(std::int64_t count) {
  target_proto::ScaleRequest request;
  request.mutable_action()->set_count(count);
  request.mutable_action()->set_direction(shared_proto::SCALING_DIRECTION_UP);
  return request;
}

TEST(DecodeAction, TakesCountReasonAndMetaAsTheyAre) {
  target_proto::ScaleRequest request = Request(7);
  request.mutable_action()->set_reason("because");
  request.mutable_action()->mutable_meta()->set_value(R"({"a": [1, "x"]})");
  const absl::StatusOr<scaling::ScaleAction> action = DecodeAction(request);
  ASSERT_TRUE(action.ok()) << action.status();
  EXPECT_EQ(action->count, 7);
  EXPECT_EQ(action->reason, "because");
  EXPECT_EQ(action->meta_json, R"({"a": [1, "x"]})");
}

TEST(DecodeAction, TakesAnyCount) {
  for (const std::int64_t count :
       {std::int64_t{-1}, std::int64_t{0}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(DecodeAction(Request(count))->count, count);
  }
}

TEST(DecodeAction, AnAbsentActionIsTheZeroAction) {
  const absl::StatusOr<scaling::ScaleAction> action = DecodeAction({});
  ASSERT_TRUE(action.ok());
  EXPECT_EQ(action->count, 0);
  EXPECT_EQ(action->reason, "");
  EXPECT_EQ(action->meta_json, "");
}

// A number that is no int64 cannot be converted to one: the result would be arbitrary.
TEST(DecodeAction, RefusesADryRunsCountThatIsNoNumberOfVms) {
  for (const std::string count :
       {"1e300", "-1e300", "9223372036854775808", "1e19", "2.5", "18446744073709551615"}) {
    target_proto::ScaleRequest request = Request(-1);
    request.mutable_action()->mutable_meta()->set_value(
        R"({"nomad_autoscaler.dry_run": true, "nomad_autoscaler.dry_run.count": )" + count + "}");
    const absl::Status status = DecodeAction(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << count;
    EXPECT_THAT(base::Message(status),
                HasSubstr("nomad_autoscaler.dry_run.count must be a whole number"))
        << count;
  }
  for (const std::string count : {"0", "7", "7.0", "-1", "9223372036854775807", "1e15", "\"7\""}) {
    target_proto::ScaleRequest request = Request(-1);
    request.mutable_action()->mutable_meta()->set_value(R"({"nomad_autoscaler.dry_run.count": )" +
                                                        count + "}");
    EXPECT_TRUE(DecodeAction(request).ok()) << count;
  }
}

TEST(DecodeAction, RefusesADirectionThatNobodyKnows) {
  for (const int direction : {0, 4, -1, 127}) {
    target_proto::ScaleRequest request = Request(1);
    request.mutable_action()->set_direction(static_cast<shared_proto::ScalingDirection>(direction));
    const absl::Status status = DecodeAction(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << direction;
    EXPECT_THAT(base::Message(status), HasSubstr(std::to_string(direction)));
  }
}

TEST(DecodeAction, C1_every_direction_is_as_good_as_another) {
  for (const int direction : {1, 2, 3}) {
    target_proto::ScaleRequest request = Request(5);
    request.mutable_action()->set_direction(static_cast<shared_proto::ScalingDirection>(direction));
    EXPECT_EQ(DecodeAction(request)->count, 5);
  }
}

absl::StatusOr<scaling::ScaleAction> WithMeta(const std::string& value) {
  target_proto::ScaleRequest request = Request(1);
  request.mutable_action()->mutable_meta()->set_value(value);
  return DecodeAction(request);
}

TEST(DecodeAction, RefusesMetaThatIsNoJsonObject) {
  for (const std::string& value :
       {std::string(), std::string("{"), std::string("{} x"), std::string("[]"), std::string("1"),
        std::string("\"x\""), std::string("\xff"), std::string(300, '['), std::string("{\"a\":}"),
        std::string("\0", 1)}) {
    EXPECT_EQ(WithMeta(value).status().code(), absl::StatusCode::kInvalidArgument) << value;
  }
}

TEST(DecodeAction, NullMetaIsNone) {
  ASSERT_TRUE(WithMeta("null").ok());
  EXPECT_EQ(WithMeta(" null ")->meta_json, "");
}

TEST(DecodeAction, MetaNeedsNoTypeAndIgnoresOne) {
  target_proto::ScaleRequest request = Request(1);
  request.mutable_action()->mutable_meta()->set_type_url("type.googleapis.com/whatever");
  request.mutable_action()->mutable_meta()->set_value("{}");
  EXPECT_EQ(DecodeAction(request)->meta_json, "{}");
}

TEST(DecodeAction, P2_random_bytes_never_crash) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    target_proto::ScaleRequest request;
    if (request.ParseFromString(bytes)) (void)DecodeAction(request);
    (void)WithMeta(bytes);
  }
}

TEST(ToStringMap, CopiesEveryEntry) {
  target_proto::StatusRequest request;
  (*request.mutable_config())["b"] = "2";
  (*request.mutable_config())["a"] = "";
  EXPECT_THAT(ToStringMap(request.config()), ElementsAre(Pair("a", ""), Pair("b", "2")));
}

TEST(EncodeStatus, WritesEveryField) {
  target_proto::StatusResponse response;
  EncodeStatus({true, 12, {{"k", "v"}}}, &response);
  EXPECT_TRUE(response.ready());
  EXPECT_EQ(response.count(), 12);
  EXPECT_EQ(response.meta().at("k"), "v");
}

TEST(EncodeStatus, MakesStringsThatTheHostAccepts) {
  target_proto::StatusResponse response;
  EncodeStatus({false, 0, {{"k\xff", "v\xfe"}}}, &response);
  EXPECT_EQ(response.meta().at("k\xef\xbf\xbd"), "v\xef\xbf\xbd");
}

TEST(EncodeStatus, P3_no_value_holds_a_secret_in_force) {
  const base::Secret token("hunter2-hunter2");
  target_proto::StatusResponse response;
  EncodeStatus({true, 1, {{"k", "it told hunter2-hunter2"}}}, &response);
  EXPECT_EQ(response.meta().at("k"), "it told REDACTED");
}

}  // namespace
}  // namespace nomad_harvester::plugin
