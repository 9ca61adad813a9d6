// SPDX-License-Identifier: Apache-2.0
// From the project's errors to what the host sees.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_GRPC_STATUS_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace nomad_harvester::plugin {

// The autoscaler takes ABORTED of a Scale as "not now, no harm done"
// (hashicorp/nomad-autoscaler:plugins/target/client.go, Scale). It passes only from the target
// service's own answer to a Scale; from anywhere else it would hide an error.
enum class Aborted { kPasses, kIsInternal };

grpc::StatusCode ToGrpcCode(absl::StatusCode code, Aborted aborted);

// The message is made fit for the host: error_text.h.
grpc::Status StatusToGrpc(const absl::Status& status, Aborted aborted = Aborted::kIsInternal);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_GRPC_STATUS_H_
