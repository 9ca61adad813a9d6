// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nomad/client.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/json_reader.h"
#include "nomad_harvester/base/status.h"

#include "caller.h"
#include "decode.h"

namespace nomad_harvester::nomad {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPageSize = "500";

constexpr std::string_view kNeedsNodeRead = "node { policy = \"read\" }";
constexpr std::string_view kNeedsNodeWrite = "node { policy = \"write\" }";
constexpr std::string_view kNeedsReadJob = "namespace \"*\" { capabilities = [\"read-job\"] }";

// Large members that our structs do not use.
const base::DropTree& UnreadOfNodes() {
  static const auto* const kTree = new base::DropTree{"Drivers",
                                                      "HostVolumes.*.Name",
                                                      "HostVolumes.*.Path",
                                                      "HostVolumes.*.ReadOnly",
                                                      "HostNetworks",
                                                      "CSINodePlugins",
                                                      "CSIControllerPlugins",
                                                      "NodeResources.Networks",
                                                      "NodeResources.NodeNetworks",
                                                      "NodeResources.Devices",
                                                      "NodeResources.Processors"};
  return *kTree;
}
const base::DropTree& UnreadOfAllocations() {
  static const auto* const kTree = new base::DropTree{
      "Metrics", "RescheduleTracker", "SignedIdentities", "Job.TaskGroups", "TaskStates.*.Events"};
  return *kTree;
}

template <typename T>
using Decoder = absl::StatusOr<T> (*)(const Json&);

// The parts of a list request that differ between endpoints.
template <typename T>
struct ListCall {
  Target target;  // without page or blocking parameters
  CallerText text;
  const base::DropTree& unread;
  Decoder<T> decode;
  bool paged = false;  // whether the endpoint supports pages
};

template <typename T>
absl::Status AppendPage(const ListCall<T>& call, const CallerReply& reply, std::vector<T>& list) {
  absl::Status refused;  // the decoder's error
  const auto append = [&](const Json& json) -> absl::Status {
    auto item = call.decode(json);
    if (!item.ok()) return refused = base::Annotate(item.status(), call.text.purpose);
    list.push_back(*std::move(item));
    return absl::OkStatus();
  };
  const absl::Status status = base::ParseJsonList(reply.body, "the reply", call.unread, append);
  if (status.ok() || !refused.ok()) return refused;
  return base::Internal(call.text.purpose + ": " + base::Message(status));
}

// A blocking query reads the whole list in one request: with pages the server would wait for each
// of them. The index of a list read in pages is the lowest of its pages, so that a query that
// blocks on it sees every change since the list began. Pages are ordered by a fixed key: an object
// that exists throughout the listing is never missed at a page boundary.
template <typename T>
absl::StatusOr<Indexed<std::vector<T>>> List(const Caller& caller, const ListCall<T>& call,
                                             const ReadOptions& options) {
  Indexed<std::vector<T>> result;
  const bool paged = call.paged && !IsBlocking(options);
  std::string next;
  bool first = true;
  do {
    Target target = call.target;
    target.Add(options);
    if (paged) target.Add("per_page", kPageSize);
    if (!next.empty()) target.Add("next_token", next);
    const base::Duration wait = IsBlocking(options) ? options.wait : base::Duration::zero();
    NH_ASSIGN_OR_RETURN(CallerReply reply, caller.Get(target, call.text, wait));
    NH_RETURN_IF_ERROR(AppendPage(call, reply, result.value));
    result.index = first ? reply.index : std::min(result.index, reply.index);
    if (!first && reply.next_token == next) {
      return base::Internal(call.text.purpose + ": the server gave the same page twice");
    }
    next = paged ? reply.next_token : "";
    first = false;
  } while (!next.empty());
  return result;
}

std::string NodeText(std::string_view verb, const std::string& id) {
  return std::string(verb) + " Nomad node " + id;
}

}  // namespace

NomadClient::NomadClient(std::shared_ptr<http::HttpTransport> transport, Options options)
    : transport_(std::move(transport)), options_(std::move(options)) {}

absl::StatusOr<Indexed<std::vector<Node>>> NomadClient::ListNodes(
    const runtime::Context& context, const ReadOptions& options) const {
  Target target("/v1/nodes", options_);
  target.Add("resources", "true");
  const ListCall<Node> call{std::move(target),
                            {"list Nomad nodes", kNeedsNodeRead},
                            UnreadOfNodes(),
                            &DecodeNodeStub,
                            true};
  return List(Caller(*transport_, context), call, options);
}

absl::StatusOr<Indexed<Node>> NomadClient::GetNode(const runtime::Context& context,
                                                   const std::string& id,
                                                   const ReadOptions& options) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/node/", id));
  const CallerText text{NodeText("read", id), kNeedsNodeRead};
  Target target(std::move(path), options_);
  target.Add(options);
  const Caller caller(*transport_, context);
  const base::Duration wait = IsBlocking(options) ? options.wait : base::Duration::zero();
  NH_ASSIGN_OR_RETURN(const CallerReply reply, caller.Get(target, text, wait));
  auto json = base::ParseJson(reply.body, "the reply");
  if (!json.ok()) return base::Internal(text.purpose + ": " + base::Message(json.status()));
  auto node = DecodeFullNode(*json);
  if (!node.ok()) return base::Annotate(node.status(), text.purpose);
  if (node->id != id) return base::Internal(text.purpose + ": the reply is for another node");
  return Indexed<Node>{*std::move(node), reply.index};
}

absl::StatusOr<Indexed<std::vector<Allocation>>> NomadClient::NodeAllocations(
    const runtime::Context& context, const std::string& id, const ReadOptions& options) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/node/", id, "/allocations"));
  const ListCall<Allocation> call{Target(std::move(path), options_),
                                  {NodeText("list the allocations of", id), kNeedsNodeRead},
                                  UnreadOfAllocations(),
                                  &DecodeAllocation,
                                  false};
  return List(Caller(*transport_, context), call, options);
}

absl::StatusOr<Indexed<std::vector<Allocation>>> NomadClient::ListAllocations(
    const runtime::Context& context, const ReadOptions& options) const {
  Target target("/v1/allocations", options_, "*");
  target.Add("resources", "true").Add("task_states", "true");
  const ListCall<Allocation> call{std::move(target),
                                  {"list Nomad allocations", kNeedsReadJob},
                                  UnreadOfAllocations(),
                                  &DecodeAllocation,
                                  true};
  return List(Caller(*transport_, context), call, options);
}

absl::StatusOr<std::string> NomadClient::NodeOfAllocation(const runtime::Context& context,
                                                          const std::string& allocation_id) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/allocation/", allocation_id));
  const CallerText text{"read Nomad allocation " + allocation_id, kNeedsReadJob};
  const Target target(std::move(path), options_);
  const Caller caller(*transport_, context);
  NH_ASSIGN_OR_RETURN(const CallerReply reply, caller.Get(target, text));
  auto json = base::ParseJson(reply.body, "the reply");
  if (!json.ok()) return base::Internal(text.purpose + ": " + base::Message(json.status()));
  const std::string node_id = base::GetString(*json, "NodeID");
  if (node_id.empty()) return base::Internal(text.purpose + ": the reply has no NodeID");
  return node_id;
}

absl::Status NomadClient::Drain(const runtime::Context& context, const std::string& id,
                                const DrainSpec& spec) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/node/", id, "/drain"));
  const Json body = {
      {"NodeID", id},
      {"DrainSpec",
       {{"Deadline", spec.deadline.count()}, {"IgnoreSystemJobs", spec.ignore_system_jobs}}},
      {"MarkEligible", false},
      {"Meta", spec.meta}};
  return Caller(*transport_, context)
      .Post(Target(std::move(path), options_), {NodeText("drain", id), kNeedsNodeWrite},
            base::DumpJson(body), http::Idempotency::kOnce);
}

// The null spec together with MarkEligible cancels a running drain, or ends one that has completed,
// in one request (hashicorp/nomad:nomad/state/state_store.go, updateNodeDrainImpl). Meta is left
// out: LastDrain keeps that of the drain.
absl::Status NomadClient::CancelDrain(const runtime::Context& context, const std::string& id,
                                      bool mark_eligible) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/node/", id, "/drain"));
  const Json body = {{"NodeID", id}, {"DrainSpec", nullptr}, {"MarkEligible", mark_eligible}};
  return Caller(*transport_, context)
      .Post(Target(std::move(path), options_),
            {NodeText("cancel the drain of", id), kNeedsNodeWrite}, base::DumpJson(body),
            http::Idempotency::kIdempotent);
}

absl::Status NomadClient::SetEligible(const runtime::Context& context, const std::string& id,
                                      bool eligible) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/node/", id, "/eligibility"));
  const Json body = {{"NodeID", id}, {"Eligibility", eligible ? "eligible" : "ineligible"}};
  return Caller(*transport_, context)
      .Post(Target(std::move(path), options_),
            {NodeText(eligible ? "enable" : "disable", id), kNeedsNodeWrite}, base::DumpJson(body),
            http::Idempotency::kIdempotent);
}

absl::Status NomadClient::Purge(const runtime::Context& context, const std::string& id) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/node/", id, "/purge"));
  return Caller(*transport_, context)
      .Post(Target(std::move(path), options_), {NodeText("purge", id), kNeedsNodeWrite}, "",
            http::Idempotency::kIdempotent);
}

}  // namespace nomad_harvester::nomad
