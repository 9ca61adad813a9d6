// SPDX-License-Identifier: Apache-2.0
// Decodes Nomad's JSON into plain structs. Members that are missing, null or of another type keep
// the struct's default: they depend on the server's version and on proxies.
#ifndef NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_
#define NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/nomad/types.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::nomad {

// Of GET /v1/nodes.
const base::JsonFields<Node>& NodeStubFields();
// Of GET /v1/allocations, whose stubs have a JobType, and of GET /v1/node/:id/allocations, which
// has a Job with its type and Resources.
struct AllocationRecord : Allocation {
  NodeResources deprecated;  // counts without resources of tasks
  bool has_task_resources = false;
  int tasks_alive = 0;
};
const base::JsonFields<AllocationRecord>& AllocationFields();

// What is left to do once all members were read. INTERNAL without an ID, the only member that is
// required: what cannot be identified is no basis for a decision.
absl::Status FinishNode(Node& node);
absl::Status FinishAllocation(AllocationRecord& record);
// Of a list without task states.
absl::Status FinishPlacement(AllocationRecord& record);

// Of GET /v1/node/:id; INTERNAL without an ID.
absl::StatusOr<Node> DecodeFullNode(const nlohmann::json& json);

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_
