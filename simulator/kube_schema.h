// SPDX-License-Identifier: Apache-2.0
// Checks that the simulated Kubernetes API makes before it stores an object.
#ifndef NOMAD_HARVESTER_SIMULATOR_KUBE_SCHEMA_H_
#define NOMAD_HARVESTER_SIMULATOR_KUBE_SCHEMA_H_

#include <optional>
#include <string>
#include <vector>

#include "kube_reply.h"
#include "kube_types.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::simulator {

// Removes the fields that the schema does not define, and returns their dotted paths.
std::vector<std::string> PruneUnknown(const ResourceDef& def, nlohmann::json& object);

// The server's error message for a value whose type it cannot decode; nullopt: none.
std::optional<std::string> FindUndecodable(const ResourceDef& def, const nlohmann::json& object);

// Fields that fail validation.
std::vector<FieldProblem> FindProblems(const ResourceDef& def, const nlohmann::json& object);

// Fields that an update may not change, but does.
std::vector<FieldProblem> FindChanges(const ResourceDef& def, const nlohmann::json& before,
                                      const nlohmann::json& after);

// Defaulting and conversion, for example a Secret's stringData to data.
void SetDefaults(const ResourceDef& def, nlohmann::json& object);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_KUBE_SCHEMA_H_
