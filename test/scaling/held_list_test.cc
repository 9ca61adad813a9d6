// SPDX-License-Identifier: Apache-2.0
#include "observation/held_list.h"

#include <memory>

#include <gtest/gtest.h>

#include "support/status_matchers.h"

namespace nomad_harvester::scaling {
namespace {

using Held = HeldList<int>;

// What the held list is after a proof of this outcome; `*asked`: whether there was something to
// prove.
Held::Ptr Prove(Held* held, const absl::StatusOr<bool>& outcome, bool* asked) {
  *asked = false;
  const auto list = held->Current([&](const int& /*list*/) {
    *asked = true;
    return outcome;
  });
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() ? *list : nullptr;
}

TEST(HeldList, HasNothingToProveAtFirst) {
  Held held;
  bool asked = false;
  EXPECT_EQ(Prove(&held, true, &asked), nullptr);
  EXPECT_FALSE(asked);
}

TEST(HeldList, S3_a_list_that_does_not_change_is_proved_each_time) {
  Held held;
  held.Hold(std::make_shared<const int>(1));
  for (int i = 0; i < 100; ++i) {
    bool asked = false;
    ASSERT_NE(Prove(&held, true, &asked), nullptr);
    ASSERT_TRUE(asked);
  }
}

TEST(HeldList, AProofOfAnOlderListSaysNothing) {
  Held held;
  held.Hold(std::make_shared<const int>(1));
  const auto older = held.Current([&](const int& /*list*/) -> absl::StatusOr<bool> {
    held.Hold(std::make_shared<const int>(2));
    return false;
  });
  ASSERT_TRUE(older.ok());
  EXPECT_EQ(*older, nullptr);
  bool asked = false;
  const Held::Ptr newer = Prove(&held, true, &asked);
  ASSERT_NE(newer, nullptr);
  EXPECT_EQ(*newer, 2);
}

TEST(HeldList, S3_a_proof_that_is_not_answered_or_not_permitted_is_the_error_and_costs_no_list) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kCancelled, absl::StatusCode::kUnauthenticated,
        absl::StatusCode::kPermissionDenied}) {
    Held held;
    held.Hold(std::make_shared<const int>(1));
    EXPECT_THAT(held.Current([&](const int& /*list*/) -> absl::StatusOr<bool> {
      return absl::Status(code, "no proof");
    }),
                support::StatusIs(code));
    bool asked = false;
    EXPECT_NE(Prove(&held, true, &asked), nullptr) << "it is still held: " << code;
  }
}

TEST(HeldList, S3_a_proof_that_is_refused_for_its_form_leads_to_the_list) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
        absl::StatusCode::kInternal, absl::StatusCode::kFailedPrecondition}) {
    Held held;
    held.Hold(std::make_shared<const int>(1));
    bool asked = false;
    EXPECT_EQ(Prove(&held, absl::Status(code, "not in this form"), &asked), nullptr) << code;
    EXPECT_TRUE(asked);
  }
}

}  // namespace
}  // namespace nomad_harvester::scaling
