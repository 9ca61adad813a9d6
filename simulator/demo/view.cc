// SPDX-License-Identifier: Apache-2.0
#include "view.h"

#include <map>
#include <utility>

#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::demo {
namespace {

using Json = nlohmann::json;

constexpr char kMark[] = "nomad-harvester-autoscaler/scale-in";

Row RowOfVm(const Json& vm) {
  Row row;
  row.name = base::TextAt(vm, {"metadata", "name"});
  row.phase = base::TextAt(vm, {"status", "printableStatus"});
  if (!base::TextAt(vm, {"metadata", "deletionTimestamp"}).empty()) row.phase = "Terminating";
  if (row.phase.empty()) row.phase = "Created";
  row.marked = base::FindPath(vm, {"metadata", "annotations", kMark}) != nullptr;
  return row;
}

void AddNode(const Json& node, const std::string& work, Row* row) {
  row->node = base::GetString(node, "Status");
  row->eligibility = base::GetString(node, "SchedulingEligibility");
  if (base::GetBool(node, "Drain")) {
    row->drain = "draining";
  } else if (const Json* last = base::FindMember(node, "LastDrain");
             last != nullptr && last->is_object()) {
    row->drain = base::GetString(*last, "Status");
  }
  row->work = work;
}

// Node ID → "api api shop(stopping)".
std::map<std::string, std::string> WorkByNode(const simulator::Cluster& cluster) {
  std::map<std::string, std::multimap<std::string, std::string>> sorted;
  for (const Json& allocation : cluster.Allocations()) {
    const std::string client = base::GetString(allocation, "ClientStatus");
    if (client != "running" && client != "pending") continue;
    const bool stopping = base::GetString(allocation, "DesiredStatus") != "run";
    sorted[base::GetString(allocation, "NodeID")].emplace(
        base::GetString(allocation, "JobID"),
        stopping ? "(stopping)" : (client == "pending" ? "(starting)" : ""));
  }
  std::map<std::string, std::string> work;
  for (const auto& [node, jobs] : sorted) {
    for (const auto& [job, state] : jobs) {
      if (!work[node].empty()) work[node] += " ";
      work[node] += job + state;
    }
  }
  return work;
}

}  // namespace

std::vector<Row> RowsOf(const simulator::Cluster& cluster) {
  const std::map<std::string, std::string> work = WorkByNode(cluster);
  const auto work_of = [&work](const std::string& id) {
    const auto found = work.find(id);
    return found == work.end() ? std::string() : found->second;
  };
  std::map<std::string, Json> nodes;
  for (Json& node : cluster.Nodes()) nodes.emplace(base::GetString(node, "ID"), std::move(node));
  std::multimap<std::string, Row> rows;
  for (const Json& vm : cluster.Vms()) {
    Row row = RowOfVm(vm);
    const auto node = nodes.find(cluster.NodeIdOfVm(base::TextAt(vm, {"metadata", "uid"})));
    if (node != nodes.end()) {
      AddNode(node->second, work_of(node->first), &row);
      nodes.erase(node);
    }
    rows.emplace(row.name, std::move(row));
  }
  for (const auto& [id, node] : nodes) {
    Row row;
    row.name = base::GetString(node, "Name");
    AddNode(node, work_of(id), &row);
    rows.emplace(row.name, std::move(row));
  }
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (auto& [name, row] : rows) sorted.push_back(std::move(row));
  return sorted;
}

std::vector<std::string> Leftovers(const simulator::Cluster& cluster) {
  std::vector<std::string> left;
  const auto note = [&left](const char* kind, const std::vector<Json>& objects) {
    for (const Json& object : objects) {
      left.push_back(std::string(kind) + " " + base::TextAt(object, {"metadata", "name"}) +
                     " is left over");
    }
  };
  note("VM", cluster.Vms());
  note("Secret", cluster.Secrets());
  note("volume", cluster.Claims());
  for (const Json& node : cluster.Nodes()) {
    left.push_back("Nomad node " + base::GetString(node, "Name") + " is left over");
  }
  return left;
}

}  // namespace nomad_harvester::demo
