// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/status.h"

#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "nomad_harvester/base/secret.h"

#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::base {
namespace {

using support::IsOk;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::Not;
using testing::Pointee;

TEST(Annotate, Puts_the_context_before_the_message_and_keeps_code_and_payloads) {
  absl::Status status = NotFound("no such VM");
  status.SetPayload("reason", absl::Cord("NotFound"));
  const absl::Status annotated = Annotate(status, "pool web");
  EXPECT_THAT(annotated, StatusIs(absl::StatusCode::kNotFound, "pool web: no such VM"));
  ASSERT_TRUE(annotated.GetPayload("reason").has_value());
  EXPECT_EQ(*annotated.GetPayload("reason"), "NotFound");
  EXPECT_EQ(Message(status), "no such VM");
}

TEST(Annotate, Leaves_ok_alone) { EXPECT_THAT(Annotate(absl::OkStatus(), "x"), IsOk()); }

TEST(MakeStatus, Has_one_function_per_common_code) {
  EXPECT_THAT(InvalidArgument("a"), StatusIs(absl::StatusCode::kInvalidArgument, "a"));
  EXPECT_THAT(FailedPrecondition("a"), StatusIs(absl::StatusCode::kFailedPrecondition, "a"));
  EXPECT_THAT(NotFound("a"), StatusIs(absl::StatusCode::kNotFound, "a"));
  EXPECT_THAT(Unavailable("a"), StatusIs(absl::StatusCode::kUnavailable, "a"));
  EXPECT_THAT(Internal("a"), StatusIs(absl::StatusCode::kInternal, "a"));
}

TEST(Strings, Convert_between_absl_and_std_with_their_length) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(ToStd(ToAbsl(text)), text);
  EXPECT_EQ(Message(absl::OkStatus()), "");
}

absl::StatusOr<std::unique_ptr<int>> Half(int value) {
  if (value % 2 != 0) return InvalidArgument("odd");
  return std::make_unique<int>(value / 2);
}

absl::StatusOr<int> Quarter(int value) {
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<int> half, Half(value));
  int quarter = 0;
  NH_ASSIGN_OR_RETURN(std::unique_ptr<int> result, Half(*half));
  quarter = *result;
  return quarter;
}

absl::Status CheckBoth(int a, int b, int* calls) {
  ++*calls;
  NH_RETURN_IF_ERROR(Half(a));
  ++*calls;
  if (a > 0) NH_RETURN_IF_ERROR(Half(b).status());
  ++*calls;
  return absl::OkStatus();
}

TEST(Macros, Assign_moves_the_value_or_returns_the_error) {
  EXPECT_THAT(Half(4), IsOkAndHolds(Pointee(2)));
  EXPECT_THAT(Quarter(8), IsOkAndHolds(2));
  EXPECT_THAT(Quarter(7), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
}

TEST(Macros, Return_if_error_stops_at_the_first_error) {
  int calls = 0;
  EXPECT_THAT(CheckBoth(1, 2, &calls), Not(IsOk()));
  EXPECT_EQ(calls, 1);
  calls = 0;
  EXPECT_THAT(CheckBoth(2, 1, &calls), Not(IsOk()));
  EXPECT_EQ(calls, 2);
  calls = 0;
  EXPECT_THAT(CheckBoth(2, 2, &calls), IsOk());
  EXPECT_EQ(calls, 3);
}

TEST(Secret, P3_prints_as_redacted_everywhere) {
  const Secret secret("hunter2");
  std::ostringstream stream;
  stream << secret;
  EXPECT_EQ(stream.str(), "REDACTED");
  EXPECT_EQ(testing::PrintToString(secret), "REDACTED");
  EXPECT_EQ(secret.Reveal(), "hunter2");
}

TEST(Secret, Compares_by_content) {
  EXPECT_EQ(Secret("a"), Secret("a"));
  EXPECT_NE(Secret("a"), Secret("b"));
  EXPECT_TRUE(Secret().empty());
  EXPECT_FALSE(Secret("a").empty());
}

}  // namespace
}  // namespace nomad_harvester::base
