// SPDX-License-Identifier: Apache-2.0
// Nomad's JSON to plain structs. Members that are missing, null or of another type keep the
// struct's default: servers of any version and proxies in between may leave things out.
#ifndef NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_
#define NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_

#include "nomad_harvester/nomad/types.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::nomad {

// The one thing that must be there is the ID: INTERNAL without it, since a list with a node that
// cannot be told apart is not a basis for a decision.
absl::StatusOr<Node> DecodeNodeStub(const nlohmann::json& json);
absl::StatusOr<Node> DecodeFullNode(const nlohmann::json& json);

// Both forms: GET /v1/node/:id/allocations tells a job with its type and Resources, the stub of
// GET /v1/allocations a JobType.
absl::StatusOr<Allocation> DecodeAllocation(const nlohmann::json& json);

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_
