// SPDX-License-Identifier: Apache-2.0
// NodesRecord as JSON: it stands in an annotation of its own and inside a mark.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_NODES_RECORD_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_NODES_RECORD_H_

#include "nomad_harvester/harvester/metadata.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

nlohmann::json NodesToJson(const NodesRecord& nodes);
absl::StatusOr<NodesRecord> NodesFromJson(const nlohmann::json& object);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_NODES_RECORD_H_
