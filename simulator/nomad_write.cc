// SPDX-License-Identifier: Apache-2.0
// Nomad's PUTs and POSTs.
#include "nomad_harvester/base/json.h"

#include "kube_reply.h"
#include "nomad_api.h"

namespace nomad_harvester::simulator {
namespace {

using Json = nlohmann::json;

NomadReply Error(int status, std::string text) { return {TextReply(status, std::move(text)), 0}; }

// Writes to an unknown node are 500, not 404 (observed on Nomad 1.10.5).
NomadReply UnknownNode() { return Error(500, "node not found"); }

NomadReply Written(std::uint64_t index, std::uint64_t node_index) {
  return {JsonReply(200, {{"EvalIDs", nullptr},
                          {"EvalCreateIndex", 0},
                          {"NodeModifyIndex", node_index},
                          {"Index", index},
                          {"LastContact", 0},
                          {"KnownLeader", false}}),
          index};
}

StringMap ReadMeta(const Json& body) {
  StringMap meta;
  const Json* object = base::FindMember(body, "Meta");
  if (object == nullptr || !object->is_object()) return meta;
  for (const auto& [key, value] : object->items()) {
    if (value.is_string()) meta.emplace(key, value.get<std::string>());
  }
  return meta;
}

// `run_for` of the mock driver's tasks, a Go duration.
base::Duration RunFor(const Json& task) {
  const Json* text = base::FindPath(task, {"Config", "run_for"});
  if (text == nullptr || !text->is_string()) return {};
  return base::ParseGoDuration(text->get<std::string>()).value_or(base::Duration::zero());
}

void ReadTask(const Json& task, JobSpec& job) {
  const Json* hook = base::FindPath(task, {"Lifecycle", "Hook"});
  if (hook != nullptr && hook->is_string()) {
    if (*hook == "poststop") job.poststop = RunFor(task);
    return;
  }
  job.run_for = RunFor(task);
  job.driver = base::GetString(task, "Driver", job.driver);
  const Json* resources = base::FindMember(task, "Resources");
  if (resources == nullptr) return;
  job.cpu = base::GetInt(*resources, "CPU", job.cpu);
  job.memory_mb = base::GetInt(*resources, "MemoryMB", job.memory_mb);
}

// One group, one main task, one poststop task, constraints on the node's name and class, one
// datacenter: the simulated scheduler uses nothing else.
JobSpec ReadJob(const Json& body) {
  JobSpec job;
  job.id = base::GetString(body, "ID");
  job.type = base::GetString(body, "Type", job.type);
  job.ns = base::GetString(body, "Namespace", job.ns);
  if (const Json* constraints = base::FindMember(body, "Constraints");
      constraints != nullptr && constraints->is_array()) {
    for (const Json& constraint : *constraints) {
      const std::string left = base::GetString(constraint, "LTarget");
      const std::string right = base::GetString(constraint, "RTarget");
      if (left == "${node.unique.name}") job.node_name = right;
      if (left == "${node.class}") job.node_class = right;
    }
  }
  if (const Json* datacenters = base::FindMember(body, "Datacenters");
      datacenters != nullptr && datacenters->size() == 1 && datacenters->front() != "*") {
    job.datacenter = datacenters->front().get<std::string>();
  }
  const std::string pool = base::GetString(body, "NodePool");
  if (pool != "all") job.node_pool = pool.empty() ? "default" : pool;
  const Json* groups = base::FindMember(body, "TaskGroups");
  if (groups == nullptr || !groups->is_array() || groups->empty()) return job;
  job.group = base::GetString(groups->front(), "Name", job.group);
  job.count = static_cast<int>(base::GetInt(groups->front(), "Count", job.count));
  if (const Json* lost_after = base::FindPath(groups->front(), {"Disconnect", "LostAfter"});
      lost_after != nullptr && lost_after->is_number_integer()) {
    job.lost_after = base::Duration(lost_after->get<std::int64_t>());
  }
  const Json* tasks = base::FindMember(groups->front(), "Tasks");
  if (tasks == nullptr || !tasks->is_array()) return job;
  for (const Json& task : *tasks) ReadTask(task, job);
  return job;
}

}  // namespace

NomadReply NomadApi::Drain(const NomadCall& call, const std::string& text) {
  if (text.empty()) return Error(400, "Request body is empty");
  const auto body = base::ParseJson(text, "the body");
  if (!body.ok() || !body->is_object()) return Error(400, "Request body is not a JSON object");
  const Json* spec = base::FindMember(*body, "DrainSpec");
  const StringMap meta = ReadMeta(*body);
  const bool cancel = spec == nullptr || !spec->is_object();
  const bool known = cancel
                         ? state_.CancelDrain(call.id, base::GetBool(*body, "MarkEligible"), meta)
                         : state_.Drain(call.id, base::Duration(base::GetInt(*spec, "Deadline")),
                                        base::GetBool(*spec, "IgnoreSystemJobs"), meta);
  if (!known) return UnknownNode();
  const std::uint64_t index = state_.FindNode(call.id)->modify_index;
  return Written(index, index);
}

NomadReply NomadApi::Eligibility(const NomadCall& call, const std::string& text) {
  if (text.empty()) return Error(400, "Request body is empty");
  const auto body = base::ParseJson(text, "the body");
  if (!body.ok() || !body->is_object()) return Error(400, "Request body is not a JSON object");
  const std::string wanted = base::GetString(*body, "Eligibility");
  // The body's NodeID overrides the path's (hashicorp/nomad:command/agent/node_endpoint.go).
  const std::string named = base::GetString(*body, "NodeID");
  const std::string id = named.empty() ? call.id : named;
  if (wanted != "eligible" && wanted != "ineligible") {
    return Error(500, "invalid scheduling eligibility \"" + wanted + "\"");
  }
  switch (state_.SetEligibility(id, wanted == "eligible")) {
    case NomadState::Eligibility::kUnknownNode:
      return UnknownNode();
    case NomadState::Eligibility::kDraining:
      return Error(500,
                   "can not set node's scheduling eligibility to eligible while it is draining");
    case NomadState::Eligibility::kUnchanged:
      return Written(0, 0);
    case NomadState::Eligibility::kChanged:
      break;
  }
  return Written(state_.FindNode(id)->modify_index, 0);
}

NomadReply NomadApi::Purge(const NomadCall& call) {
  if (!state_.Purge(call.id)) return UnknownNode();
  return Written(state_.nodes_index(), state_.nodes_index());
}

NomadReply NomadApi::RegisterJob(const std::string& text) {
  const auto body = base::ParseJson(text, "the body");
  const Json* job = body.ok() ? base::FindMember(*body, "Job") : nullptr;
  if (job == nullptr || base::GetString(*job, "ID").empty()) {
    return Error(400, "Job must be specified");
  }
  state_.RunJob(ReadJob(*job));
  return {JsonReply(200, {{"EvalID", world_.NextUuid()},
                          {"EvalCreateIndex", state_.index()},
                          {"JobModifyIndex", state_.index()},
                          {"Warnings", ""},
                          {"Index", state_.index()}}),
          state_.index()};
}

NomadReply NomadApi::StopJob(const NomadCall& call) {
  if (!state_.StopJob(call.id)) return Error(404, "job not found");
  return {JsonReply(200, {{"EvalID", world_.NextUuid()},
                          {"EvalCreateIndex", state_.index()},
                          {"JobModifyIndex", state_.index()},
                          {"Index", state_.index()}}),
          state_.index()};
}

}  // namespace nomad_harvester::simulator
