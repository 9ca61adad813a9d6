// SPDX-License-Identifier: Apache-2.0
// Matchers for absl::Status and absl::StatusOr; Debian's abseil has none.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_STATUS_MATCHERS_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_STATUS_MATCHERS_H_

#include <string>

#include "nomad_harvester/base/status.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace nomad_harvester::support {

// EXPECT_THAT(status_or_statusor, IsOk());
MATCHER(IsOk, negation ? "is an error" : "is OK") {
  const absl::Status& status = base::GetStatus(arg);
  if (!status.ok()) *result_listener << "whose status is " << status;
  return status.ok();
}

// EXPECT_THAT(statusor, IsOkAndHolds(value_or_matcher));
MATCHER_P(IsOkAndHolds, value_matcher, "is OK and holds what is wanted") {
  if (!arg.ok()) {
    *result_listener << "whose status is " << arg.status();
    return false;
  }
  *result_listener << "whose value is " << testing::PrintToString(*arg) << " ";
  return testing::ExplainMatchResult(value_matcher, *arg, result_listener);
}

// EXPECT_THAT(status_or_statusor, StatusIs(absl::StatusCode::kNotFound, HasSubstr("vm-1")));
MATCHER_P2(StatusIs, code, message_matcher,
           "has the code " + absl::StatusCodeToString(code) + " and the wanted message") {
  const absl::Status& status = base::GetStatus(arg);
  *result_listener << "whose status is " << status << " ";
  return status.code() == code &&
         testing::ExplainMatchResult(message_matcher, base::Message(status), result_listener);
}
inline auto StatusIs(absl::StatusCode code) { return StatusIs(code, testing::_); }

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_STATUS_MATCHERS_H_
