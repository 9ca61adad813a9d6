// SPDX-License-Identifier: Apache-2.0
// Converts the project's errors to gRPC statuses for the host.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_GRPC_STATUS_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace nomad_harvester::plugin {

// The autoscaler takes ABORTED of a Scale as "not now, nothing was changed"
// (hashicorp/nomad-autoscaler:plugins/target/client.go, Scale). It is passed on only from the
// target service's reply to a Scale; from other sources it would hide an error.
enum class Aborted { kPasses, kIsInternal };

grpc::StatusCode ToGrpcCode(absl::StatusCode code, Aborted aborted);

// The message is adapted for the host: error_text.h.
grpc::Status StatusToGrpc(const absl::Status& status, Aborted aborted = Aborted::kIsInternal);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_GRPC_STATUS_H_
