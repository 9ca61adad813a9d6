// SPDX-License-Identifier: Apache-2.0
// What the simulated Kubernetes API checks of an object before it stores it.
#ifndef NOMAD_HARVESTER_SIMULATOR_KUBE_SCHEMA_H_
#define NOMAD_HARVESTER_SIMULATOR_KUBE_SCHEMA_H_

#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/http/message.h"

#include "kube_reply.h"
#include "kube_types.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::simulator {

// Fields that the schema does not know, as dotted paths; they are removed, as pruning does.
std::vector<std::string> PruneUnknown(const ResourceDef& def, nlohmann::json& object);

// A value of a type that the server cannot decode: the words of the error.
std::optional<std::string> FindUndecodable(const ResourceDef& def, const nlohmann::json& object);

// What validation refuses.
std::vector<FieldProblem> FindProblems(const ResourceDef& def, const nlohmann::json& object);

// A Secret's stringData becomes data, and the like.
void SetDefaults(const ResourceDef& def, nlohmann::json& object);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_KUBE_SCHEMA_H_
