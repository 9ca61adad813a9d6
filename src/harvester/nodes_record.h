// SPDX-License-Identifier: Apache-2.0
// NodesRecord as JSON: the value of its own annotation and a part of the mark.
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
