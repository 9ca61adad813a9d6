// SPDX-License-Identifier: Apache-2.0
// Nomad's GETs: nodes, allocations, the token's ACL.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

#include "kube_reply.h"
#include "nomad_api.h"
#include "nomad_json.h"

namespace nomad_harvester::simulator {
namespace {

using Json = nlohmann::json;

NomadReply IndexedText(std::uint64_t index, std::string body) {
  return {JsonTextReply(200, std::move(body)), std::max<std::uint64_t>(1, index)};
}

NomadReply Indexed(std::uint64_t index, const Json& body) {
  return IndexedText(index, base::DumpJson(body));
}

// A part of hashicorp/go-bexpr: `Name == "x" and Status != "down"` on a node's own fields.
std::optional<bool> MatchesFilter(const Json& node, std::string_view filter) {
  while (!filter.empty()) {
    const std::size_t end = filter.find(" and ");
    const std::string_view part = base::TrimAsciiSpace(filter.substr(0, end));
    filter = end == std::string_view::npos ? "" : filter.substr(end + 5);
    const bool equal = part.find("!=") == std::string_view::npos;
    const std::size_t op = part.find(equal ? "==" : "!=");
    if (op == std::string_view::npos) return std::nullopt;
    const std::string key(base::TrimAsciiSpace(part.substr(0, op)));
    std::string_view value = base::TrimAsciiSpace(part.substr(op + 2));
    if (value.size() < 2 || value.front() != '"' || value.back() != '"') return std::nullopt;
    value = value.substr(1, value.size() - 2);
    const auto is = base::FindString(node, key);
    if (!is) return std::nullopt;
    if ((*is == value) != equal) return false;
  }
  return true;
}

// per_page and next_token over elements whose keys ascend. The token is the key of the next page's
// first element (hashicorp/nomad:nomad/state/paginator).
template <typename T, typename Key, typename Render>
NomadReply Page(const Target& target, std::uint64_t index, const std::vector<const T*>& all,
                Key key, Render render) {
  const std::int64_t per_page = base::ParseInt(target.Query("per_page")).value_or(0);
  const std::string from = target.Query("next_token");
  std::string items = "[";
  std::int64_t count = 0;
  std::string next;
  for (const T* element : all) {
    if (!from.empty() && key(*element) < from) continue;
    if (per_page > 0 && count == per_page) {
      next = key(*element);
      break;
    }
    if (count++ > 0) items += ',';
    items += render(*element);
  }
  NomadReply reply = IndexedText(index, items + "]");
  if (!next.empty()) reply.response.headers.Set("X-Nomad-NextToken", next);
  return reply;
}

// Whether the request is about this namespace.
bool IsIn(const Target& target, const std::string& ns) {
  const std::string wanted = target.Query("namespace");
  return wanted == "*" || ns == (wanted.empty() ? "default" : wanted);
}

bool Flag(const Target& target, const std::string& key) {
  return base::ParseGoBool(target.Query(key)).value_or(false);
}

}  // namespace

NomadReply NomadApi::Nodes(const Target& target) const {
  const std::string filter = target.Query("filter");
  const std::string prefix = target.Query("prefix");
  std::vector<const NomadNode*> nodes;
  for (const auto& [id, node] : state_.nodes()) {
    if (id.compare(0, prefix.size(), prefix) != 0) continue;
    if (!filter.empty()) {
      const auto matches = MatchesFilter(NodeJson(node), filter);
      if (!matches) {
        return {TextReply(400, "failed to read result page: error finding value in datum"), 0};
      }
      if (!*matches) continue;
    }
    nodes.push_back(&node);
  }
  return Page(
      target, state_.nodes_index(), nodes, [](const NomadNode& node) { return node.id; },
      [resources = Flag(target, "resources"), os = Flag(target, "os")](const NomadNode& node) {
        std::string& text = node.stubs[(resources ? 1 : 0) + (os ? 2 : 0)];
        if (text.empty()) text = base::DumpJson(NodeStub(node, resources, os));
        return text;
      });
}

NomadReply NomadApi::Node(const NomadCall& call) const {
  const NomadNode* node = state_.FindNode(call.id);
  if (node == nullptr) {
    return {TextReply(404, "node not found"), std::max<std::uint64_t>(1, state_.nodes_index())};
  }
  return Indexed(node->modify_index, NodeJson(*node));
}

// For an unknown node: an empty list (observed on Nomad 1.10.5). Allocations that the token may not
// read are silently omitted, but the index counts them (hashicorp/nomad:nomad/node_endpoint.go,
// GetAllocs).
NomadReply NomadApi::NodeAllocations(const NomadCall& call) const {
  Json items = Json::array();
  std::uint64_t index = 0;
  for (const auto& [id, allocation] : state_.allocations()) {
    if (allocation.node_id != call.id) continue;
    if (!read_job_denied) items.push_back(AllocationJson(allocation));
    index = std::max(index, allocation.modify_index);
  }
  return Indexed(index == 0 ? state_.allocations_index() : index, items);
}

NomadReply NomadApi::Allocations(const Target& target) const {
  if (read_job_denied) return {TextReply(403, "Permission denied"), 0};
  std::vector<const NomadAllocation*> allocations;
  for (const auto& [id, allocation] : state_.allocations()) {
    if (IsIn(target, allocation.job.ns)) allocations.push_back(&allocation);
  }
  const auto hides = [&target](const char* key) { return target.Query(key) == "false"; };
  return Page(
      target, state_.allocations_index(), allocations,
      [](const NomadAllocation& allocation) { return allocation.id; },
      [&target, &hides](const NomadAllocation& allocation) {
        // hashicorp/nomad:command/agent/alloc_endpoint.go: task states unless task_states=false.
        return base::DumpJson(
            AllocationStub(allocation, Flag(target, "resources"), !hides("task_states")));
      });
}

NomadReply NomadApi::Jobs(const Target& target) const {
  if (read_job_denied) return {TextReply(403, "Permission denied"), 0};
  std::vector<const NomadJob*> jobs;
  for (const auto& [id, job] : state_.jobs()) {
    // hashicorp/nomad:nomad/job_endpoint.go, List: without the right the list is empty.
    if (!list_jobs_denied && IsIn(target, job.spec.ns)) jobs.push_back(&job);
  }
  return Page(
      target, state_.jobs_index(), jobs, [](const NomadJob& job) { return job.spec.id; },
      [](const NomadJob& job) { return base::DumpJson(JobStub(job)); });
}

NomadReply NomadApi::Job(const NomadCall& call) const {
  const auto found = state_.jobs().find(call.id);
  if (found == state_.jobs().end() || !IsIn(call.target, found->second.spec.ns)) {
    return {TextReply(404, "job not found"), std::max<std::uint64_t>(1, state_.jobs_index())};
  }
  if (read_job_denied) return {TextReply(403, "Permission denied"), 0};
  return Indexed(found->second.modify_index, JobJson(found->second));
}

// Only blocked ones are kept.
NomadReply NomadApi::Evaluations(const Target& target) const {
  if (read_job_denied) return {TextReply(403, "Permission denied"), 0};
  std::vector<const NomadJob*> blocked;
  for (const auto& [id, job] : state_.jobs()) {
    if (job.blocked && IsIn(target, job.spec.ns)) blocked.push_back(&job);
  }
  std::sort(blocked.begin(), blocked.end(),
            [](const NomadJob* a, const NomadJob* b) { return a->blocked->id < b->blocked->id; });
  return Page(
      target, state_.evaluations_index(), blocked,
      [](const NomadJob& job) { return job.blocked->id; },
      [](const NomadJob& job) { return base::DumpJson(EvaluationJson(job, *job.blocked)); });
}

// Only a missing allocation is 404. One that the token may not read is an error without a code, and
// therefore 500 (observed on Nomad 1.10.5; hashicorp/nomad:nomad/alloc_endpoint.go, GetAlloc, and
// command/agent/http.go, errCodeFromHandler).
NomadReply NomadApi::Allocation(const NomadCall& call) const {
  const auto found = state_.allocations().find(call.id);
  if (found == state_.allocations().end()) {
    return {TextReply(404, "alloc not found"),
            std::max<std::uint64_t>(1, state_.allocations_index())};
  }
  if (read_job_denied) return {TextReply(500, "Unknown allocation \"" + call.id + "\""), 0};
  return Indexed(found->second.modify_index, AllocationJson(found->second));
}

// hashicorp/nomad:nomad/acl_endpoint.go: with ACLs disabled every request about them is a 400.
NomadReply NomadApi::Acl(const NomadCall& call) const {
  if (!acl && !read_job_denied && !node_write_denied)
    return {TextReply(400, "ACL support disabled"), 0};
  const auto& segments = call.target.segments;
  if (call.id == "token") {
    return Indexed(7, {{"AccessorID", "5f3c9a52-7a35-4b0f-9b13-0a8c9d2e4f10"},
                       {"Name", "nomad-autoscaler"},
                       {"Type", "client"},
                       {"Policies", Json::array({"nomad-autoscaler"})},
                       {"Roles", nullptr},
                       {"Global", false}});
  }
  if (call.id == "policy" && segments.size() == 4 && segments[3] == "nomad-autoscaler") {
    Json namespaces = Json::array();
    if (!read_job_denied) {
      Json capabilities = Json::array({"read-job"});
      if (!list_jobs_denied) capabilities.push_back("list-jobs");
      namespaces.push_back({{"Name", "*"}, {"Policy", ""}, {"Capabilities", capabilities}});
    }
    return Indexed(7, {{"Name", "nomad-autoscaler"},
                       {"Description", ""},
                       {"Rules", ""},
                       {"RulesJSON",
                        {{"Namespaces", read_job_denied ? Json(nullptr) : namespaces},
                         {"Node", {{"Policy", node_write_denied ? "read" : "write"}}}}}});
  }
  if (call.id == "policies") {
    return Indexed(7, Json::array({{{"Name", "nomad-autoscaler"}, {"Description", ""}}}));
  }
  return {TextReply(404, "ACL policy not found"), 0};
}

// hashicorp/nomad:command/agent/keyring_endpoint.go, JWKSRequest. The keys themselves are left out.
NomadReply NomadApi::Keys() const {
  Json list = Json::array();
  for (const std::string& id : keys) {
    list.push_back({{"use", "sig"}, {"kty", "RSA"}, {"kid", id}, {"alg", "RS256"}});
  }
  return Indexed(1, {{"keys", list}});
}

// hashicorp/nomad:command/agent/node_pool_endpoint.go. A client that registers creates its pool
// (nomad/node_endpoint.go, Register; nomad/state/state_store.go, upsertNodeTxn), which stays, but
// here only with its nodes.
NomadReply NomadApi::NodePool(const NomadCall& call) const {
  const bool built_in = call.id == "default" || call.id == "all";
  const auto& nodes = state_.nodes();
  const bool known = built_in || std::any_of(nodes.begin(), nodes.end(), [&](const auto& entry) {
                       return entry.second.spec.node_pool == call.id;
                     });
  if (!known) return {TextReply(404, "node pool not found"), 0};
  return Indexed(1, {{"Name", call.id},
                     {"Description", ""},
                     {"Meta", nullptr},
                     {"NodeIdentityTTL", 0},
                     {"SchedulerConfiguration", nullptr},
                     {"CreateIndex", 1},
                     {"ModifyIndex", 1}});
}

// hashicorp/nomad:command/agent/agent_endpoint.go, AgentMembersRequest: a Serf member per server,
// with these tags among others (nomad/server.go, setupSerf).
NomadReply NomadApi::Members() const {
  const bool has_tokens = world_.options.introduction != Introduction::kNone;
  const std::string version = !world_.options.nomad_version.empty() ? world_.options.nomad_version
                              : has_tokens                          ? "1.11.0"
                                                                    : "1.10.5";
  const Json server = {
      {"Name", "server-1.global"},
      {"Addr", "127.0.0.1"},
      {"Port", 4648},
      {"Status", "alive"},
      {"Tags",
       {{"role", "nomad"}, {"region", "global"}, {"dc", "dc1"}, {"build", version}, {"vsn", "1"}}}};
  return {JsonReply(200, {{"ServerName", "server-1"},
                          {"ServerRegion", "global"},
                          {"ServerDC", "dc1"},
                          {"Members", Json::array({server})}}),
          0};
}

// The agent's question for the policies of jobs, which have none here. The index is that of a list
// that was never written (hashicorp/nomad:nomad/rpc.go, blockingRPC, raises 0 to 1).
NomadReply NomadApi::NoPolicies() const { return {JsonReply(200, Json::array()), 1}; }

}  // namespace nomad_harvester::simulator
