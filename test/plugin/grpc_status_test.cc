// SPDX-License-Identifier: Apache-2.0
#include "grpc_status.h"

#include <string>

#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::plugin {
namespace {

struct Row {
  absl::StatusCode in;
  grpc::StatusCode out;
};

class StatusTable : public ::testing::TestWithParam<Row> {};

TEST_P(StatusTable, MapsTheCodeAndKeepsTheMessage) {
  const grpc::Status status = StatusToGrpc(base::MakeStatus(GetParam().in, "why"));
  EXPECT_EQ(status.error_code(), GetParam().out);
  EXPECT_EQ(status.error_message(), "why");
}

INSTANTIATE_TEST_SUITE_P(
    EveryCode, StatusTable,
    ::testing::Values(
        Row{absl::StatusCode::kCancelled, grpc::StatusCode::CANCELLED},
        Row{absl::StatusCode::kUnknown, grpc::StatusCode::INTERNAL},
        Row{absl::StatusCode::kInvalidArgument, grpc::StatusCode::INVALID_ARGUMENT},
        Row{absl::StatusCode::kDeadlineExceeded, grpc::StatusCode::DEADLINE_EXCEEDED},
        Row{absl::StatusCode::kNotFound, grpc::StatusCode::NOT_FOUND},
        Row{absl::StatusCode::kAlreadyExists, grpc::StatusCode::ALREADY_EXISTS},
        Row{absl::StatusCode::kPermissionDenied, grpc::StatusCode::PERMISSION_DENIED},
        Row{absl::StatusCode::kResourceExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED},
        Row{absl::StatusCode::kFailedPrecondition, grpc::StatusCode::FAILED_PRECONDITION},
        Row{absl::StatusCode::kAborted, grpc::StatusCode::INTERNAL},
        Row{absl::StatusCode::kOutOfRange, grpc::StatusCode::OUT_OF_RANGE},
        Row{absl::StatusCode::kUnimplemented, grpc::StatusCode::INTERNAL},
        Row{absl::StatusCode::kInternal, grpc::StatusCode::INTERNAL},
        Row{absl::StatusCode::kUnavailable, grpc::StatusCode::UNAVAILABLE},
        Row{absl::StatusCode::kDataLoss, grpc::StatusCode::DATA_LOSS},
        Row{absl::StatusCode::kUnauthenticated, grpc::StatusCode::UNAUTHENTICATED},
        Row{static_cast<absl::StatusCode>(77), grpc::StatusCode::INTERNAL}));

TEST(StatusToGrpc, OkStaysOk) {
  EXPECT_TRUE(StatusToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(StatusToGrpc(absl::OkStatus(), Aborted::kPasses).ok());
}

TEST(StatusToGrpc, AbortedPassesOnlyWhereTheAgentUnderstandsIt) {
  const absl::Status busy = base::MakeStatus(absl::StatusCode::kAborted, "busy");
  EXPECT_EQ(StatusToGrpc(busy, Aborted::kPasses).error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(StatusToGrpc(busy).error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(ToGrpcCode(absl::StatusCode::kInternal, Aborted::kPasses), grpc::StatusCode::INTERNAL);
}

TEST(StatusToGrpc, P4_messages_are_made_harmless) {
  const grpc::Status status =
      StatusToGrpc(base::Unavailable("GEOFENCE: EOF, connection refused \xff"));
  EXPECT_EQ(status.error_message(), "GEO-FENCE: end of file, connection was refused \xef\xbf\xbd");
  EXPECT_LE(EncodedSize(StatusToGrpc(base::Internal(std::string(100000, '%'))).error_message()),
            kMaxEncodedMessage);
}

TEST(StatusToGrpc, P3_messages_hold_no_secret_in_force) {
  const base::Secret token("sesame-street");
  // Also where the secret would be cut in two.
  const std::string filler(kMaxEncodedMessage - 10, 'x');
  for (const std::string& text : {std::string("unknown token: "), filler}) {
    const std::string message =
        StatusToGrpc(base::Unavailable(text + "sesame-street")).error_message();
    EXPECT_EQ(message.find("sesame"), std::string::npos) << message;
  }
}

TEST(StatusToGrpc, P3_messages_hold_no_C1_controls) {
  EXPECT_EQ(StatusToGrpc(base::Unavailable("a\u009b31m")).error_message(), "a\\x9b31m");
}

}  // namespace
}  // namespace nomad_harvester::plugin
