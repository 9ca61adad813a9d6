// SPDX-License-Identifier: Apache-2.0
#include "grpc_status.h"

#include "nomad_harvester/base/status.h"

#include "error_text.h"

namespace nomad_harvester::plugin {

grpc::StatusCode ToGrpcCode(absl::StatusCode code, Aborted aborted) {
  switch (code) {
    case absl::StatusCode::kOk:
      return grpc::StatusCode::OK;
    case absl::StatusCode::kCancelled:
      return grpc::StatusCode::CANCELLED;
    case absl::StatusCode::kInvalidArgument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case absl::StatusCode::kDeadlineExceeded:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case absl::StatusCode::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case absl::StatusCode::kAlreadyExists:
      return grpc::StatusCode::ALREADY_EXISTS;
    case absl::StatusCode::kPermissionDenied:
      return grpc::StatusCode::PERMISSION_DENIED;
    case absl::StatusCode::kUnauthenticated:
      return grpc::StatusCode::UNAUTHENTICATED;
    case absl::StatusCode::kResourceExhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case absl::StatusCode::kFailedPrecondition:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case absl::StatusCode::kAborted:
      return aborted == Aborted::kPasses ? grpc::StatusCode::ABORTED : grpc::StatusCode::INTERNAL;
    case absl::StatusCode::kOutOfRange:
      return grpc::StatusCode::OUT_OF_RANGE;
    case absl::StatusCode::kUnavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case absl::StatusCode::kDataLoss:
      return grpc::StatusCode::DATA_LOSS;
    case absl::StatusCode::kUnimplemented:
      // UNIMPLEMENTED would mean "no such method" in gRPC.
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    default:
      return grpc::StatusCode::INTERNAL;
  }
}

grpc::Status StatusToGrpc(const absl::Status& status, Aborted aborted) {
  if (status.ok()) return grpc::Status::OK;
  return {ToGrpcCode(status.code(), aborted), MakeErrorText(base::ToStd(status.message())).text};
}

}  // namespace nomad_harvester::plugin
