// SPDX-License-Identifier: Apache-2.0
// Decodes Nomad's JSON into plain structs. Members that are missing, null or of another type keep
// the struct's default, because they depend on the server's version and on proxies.
#ifndef NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_
#define NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/nomad/types.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::nomad {

// A node of GET /v1/nodes.
const base::JsonFields<Node>& NodeStubFields();
// An allocation of GET /v1/allocations, which has a JobType, or of GET /v1/node/:id/allocations,
// which has a Job with its type, and Resources.
struct AllocationRecord : Allocation {
  NodeResources deprecated;  // counts if the tasks have no resources
  bool has_task_resources = false;
  std::string job{};
  std::vector<std::string> tasks_alive{};
};
const base::JsonFields<AllocationRecord>& AllocationFields();

// Complete a record once all its members have been read. INTERNAL without an ID, the only required
// member: nothing can be decided about an object that cannot be identified.
absl::Status FinishNode(Node& node);
absl::Status FinishAllocation(AllocationRecord& record);
// For the list of one node, which also sets `work`.
absl::Status FinishNodeAllocation(AllocationRecord& record);
// For a list without task states.
absl::Status FinishPlacement(AllocationRecord& record);

// The node of GET /v1/node/:id; INTERNAL without an ID.
absl::StatusOr<Node> DecodeFullNode(const nlohmann::json& json);

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_SRC_NOMAD_DECODE_H_
