// SPDX-License-Identifier: Apache-2.0
// Nomad's objects as its HTTP API writes them.
#ifndef NOMAD_HARVESTER_SIMULATOR_NOMAD_JSON_H_
#define NOMAD_HARVESTER_SIMULATOR_NOMAD_JSON_H_

#include "nlohmann/json.hpp"
#include "nomad_state.h"

namespace nomad_harvester::simulator {

// GET /v1/node/:id, and an element of GET /v1/nodes (hashicorp/nomad:nomad/structs/structs.go,
// Node and Node.Stub).
nlohmann::json NodeJson(const NomadNode& node);
nlohmann::json NodeStub(const NomadNode& node, bool resources, bool os);

// An element of GET /v1/node/:id/allocations, and of GET /v1/allocations
// (hashicorp/nomad:nomad/structs/alloc.go, Allocation and Allocation.Stub).
nlohmann::json AllocationJson(const NomadAllocation& allocation);
nlohmann::json AllocationStub(const NomadAllocation& allocation, bool resources, bool task_states);

// GET /v1/job/:id, and elements of GET /v1/jobs and GET /v1/evaluations
// (hashicorp/nomad:nomad/structs/structs.go, Job, JobListStub, Evaluation).
nlohmann::json JobJson(const NomadJob& job);
nlohmann::json JobStub(const NomadJob& job);
nlohmann::json EvaluationJson(const NomadJob& job, const NomadEvaluation& evaluation);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_NOMAD_JSON_H_
