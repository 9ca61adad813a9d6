// SPDX-License-Identifier: Apache-2.0
// Decodes Nomad's JSON into plain structs. Members that are missing, null or of another type keep
// the struct's default: they depend on the server's version and on proxies.
#ifndef NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_
#define NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_

#include "nomad_harvester/nomad/types.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::nomad {

// Only the ID is required: INTERNAL without it, since a node that cannot be identified is no basis
// for a decision.
absl::StatusOr<Node> DecodeNodeStub(const nlohmann::json& json);
absl::StatusOr<Node> DecodeFullNode(const nlohmann::json& json);

// Decodes both forms: GET /v1/node/:id/allocations has a Job with its type and Resources, the stub
// of GET /v1/allocations has a JobType.
absl::StatusOr<Allocation> DecodeAllocation(const nlohmann::json& json);

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_
