// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nomad/client.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/http/reply_text.h"
#include "nomad_harvester/nomad/error.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "caller.h"
#include "decode.h"

namespace nomad_harvester::nomad {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kNeedsNodeRead = "node { policy = \"read\" }";
constexpr std::string_view kNeedsNodeWrite = "node { policy = \"write\" }";
constexpr std::string_view kNeedsListJobs = "namespace \"*\" { capabilities = [\"list-jobs\"] }";
constexpr std::string_view kNeedsReadJob = "namespace \"*\" { capabilities = [\"read-job\"] }";

// Nomad gives half an hour at most, unless its max_identity_ttl says otherwise.
constexpr std::chrono::seconds kMaxLifetime = std::chrono::hours(24);

// One request returns the whole list: Nomad makes pages only of a request with per_page, of which
// the caller wants the first one alone. Any other page must not pass for a whole list (rule S1). An
// empty list must have an index, if only 0 as in a Nomad that never had a node: without one, a
// proxy or another server may have replied.
template <typename T, typename Record>
absl::StatusOr<Indexed<std::vector<T>>> List(const Caller& caller, const Call& call,
                                             const base::JsonFields<Record>& fields,
                                             absl::Status (*finish)(Record&),
                                             const ReadOptions& blocking = {},
                                             bool first_page_only = false) {
  base::JsonRecords<Record, T> records(fields, finish);
  base::JsonListReader reader("", fields.paths(), records);
  NH_ASSIGN_OR_RETURN(const http::HttpResponse reply, caller.Get(call, blocking, &reader));
  const std::optional<std::uint64_t> index = ReplyIndex(reply);
  Indexed<std::vector<T>> result;
  result.value = records.TakeAll();
  result.index = index.value_or(0);
  const bool is_page = !reply.headers.Find("X-Nomad-NextToken").value_or("").empty();
  if (is_page && !first_page_only) {
    return base::Internal(call.purpose +
                          ": the reply is only a page of the list; check that nomad_address is "
                          "the address of Nomad, and that no proxy changes its replies");
  }
  if (!index.has_value() && result.value.empty()) {
    return base::Internal(call.purpose +
                          ": the reply is an empty list without the header X-Nomad-Index, which "
                          "proves nothing; check that nomad_address is the address of Nomad, "
                          "and that a proxy in front of it passes its headers on");
  }
  return result;
}

struct JsonReply {
  http::HttpResponse http;
  Json json;
};

absl::StatusOr<JsonReply> GetJson(const Caller& caller, const Call& call) {
  JsonReply reply;
  NH_ASSIGN_OR_RETURN(reply.http, caller.Get(call));
  absl::StatusOr<Json> json = base::ParseJson(reply.http.body, "the reply");
  if (!json.ok()) {
    return http::Undecodable(call.purpose, reply.http, json.status(), "nomad_address");
  }
  reply.json = *std::move(json);
  return reply;
}

// POST /v1/node/:id<suffix>. `verb` is for errors and logs. A null `body` is sent as an empty one.
// Nomad replies with an object; any other 2xx comes from a proxy, and proves nothing.
absl::Status PostNode(const Caller& caller, std::string_view verb, const std::string& id,
                      std::string_view suffix, const Json& body,
                      http::Idempotency idempotency = http::Idempotency::kIdempotent) {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/node/", id, suffix));
  const Call call{std::move(path), std::string(verb) + " Nomad node " + id, kNeedsNodeWrite};
  NH_ASSIGN_OR_RETURN(const http::HttpResponse reply,
                      caller.Post(call, body.is_null() ? "" : base::DumpJson(body), idempotency));
  const absl::StatusOr<Json> json = base::ParseJson(reply.body, "the reply");
  if (json.ok() && json->is_object()) return absl::OkStatus();
  const absl::Status why =
      json.ok() ? base::Internal("the reply is not a JSON object") : json.status();
  return http::Undecodable(call.purpose, reply, why, "nomad_address");
}

// Base64url and dots (RFC 7515, 7.1): nothing that could change the user data that it becomes part
// of.
bool IsJwtText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

// Returns the lifetime of a JSON Web Token (RFC 7519: exp and iat, in seconds). Does not check the
// signature, which Nomad does.
absl::StatusOr<base::Duration> LifetimeOf(const std::string& jwt) {
  const std::size_t begin = jwt.find('.');
  const std::size_t end = begin == std::string::npos ? begin : jwt.find('.', begin + 1);
  if (end == std::string::npos) return base::Internal("it is no JSON Web Token");
  std::string payload = jwt.substr(begin + 1, end - begin - 1);
  std::replace(payload.begin(), payload.end(), '-', '+');
  std::replace(payload.begin(), payload.end(), '_', '/');
  const auto text = base::Base64Decode(payload);
  // The parser's message would quote the token.
  const auto claims = text.ok() ? base::ParseJson(*text, "its claims") : text.status();
  if (!claims.ok()) return base::Internal("its claims cannot be read");
  const Json* expires = base::FindMember(*claims, "exp");
  const Json* issued = base::FindMember(*claims, "iat");
  if (expires == nullptr || issued == nullptr || !expires->is_number_integer() ||
      !issued->is_number_integer() || *expires <= *issued || *issued < 0) {
    return base::Internal("its claims do not say for how long it is valid");
  }
  const std::int64_t seconds = expires->get<std::int64_t>() - issued->get<std::int64_t>();
  if (seconds < 1) return base::Internal("its claims name an end beyond all times");
  return std::chrono::seconds(std::min<std::int64_t>(seconds, kMaxLifetime.count()));
}

}  // namespace

NomadClient::NomadClient(std::shared_ptr<http::HttpTransport> transport, Options options)
    : transport_(std::move(transport)), options_(std::move(options)) {}

absl::StatusOr<Indexed<std::vector<Node>>> NomadClient::ListNodes(
    const runtime::Context& context, const ReadOptions& options) const {
  return List<Node>(Caller(*transport_, context, options_),
                    {"/v1/nodes", "list Nomad nodes", kNeedsNodeRead, {{"resources", "true"}}},
                    NodeStubFields(), &FinishNode, options);
}

absl::StatusOr<Indexed<std::vector<Node>>> NomadClient::FirstNode(
    const runtime::Context& context) const {
  return List<Node>(Caller(*transport_, context, options_),
                    {"/v1/nodes", "list one Nomad node", kNeedsNodeRead, {{"per_page", "1"}}},
                    NodeStubFields(), &FinishNode, {}, /*first_page_only=*/true);
}

absl::StatusOr<Indexed<Node>> NomadClient::GetNode(const runtime::Context& context,
                                                   const std::string& id) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/node/", id));
  const Call call{std::move(path), "read Nomad node " + id, kNeedsNodeRead};
  NH_ASSIGN_OR_RETURN(const JsonReply reply, GetJson({*transport_, context, options_}, call));
  auto node = DecodeFullNode(reply.json);
  if (!node.ok()) return base::Annotate(node.status(), call.purpose);
  if (node->id != id) return base::Internal(call.purpose + ": the reply is for another node");
  return Indexed<Node>{*std::move(node), ReplyIndex(reply.http).value_or(0)};
}

absl::StatusOr<Servers> NomadClient::ListServers(const runtime::Context& context) const {
  const Call call{"/v1/agent/members", "list Nomad's servers", kNeedsNodeRead};
  NH_ASSIGN_OR_RETURN(const JsonReply reply, GetJson({*transport_, context, options_}, call));
  Servers servers;
  servers.server_time = http::ServerDate(reply.http);
  // The servers of federated regions are members, too.
  servers.region =
      options_.region.empty() ? base::GetString(reply.json, "ServerRegion") : options_.region;
  const Json* members = base::FindMember(reply.json, "Members");
  if (members == nullptr || !members->is_array()) return servers;
  for (const Json& member : *members) {
    const Json* tags = base::FindMember(member, "Tags");
    if (tags == nullptr || base::GetString(*tags, "region") != servers.region) continue;
    servers.list.push_back(
        {.name = base::GetString(member, "Name"), .version = base::GetString(*tags, "build")});
  }
  return servers;
}

absl::StatusOr<std::string> NomadClient::ReadClusterKeys(const runtime::Context& context) const {
  const Call call{"/.well-known/jwks.json", "read the ids of Nomad's keys (/.well-known/jwks.json)",
                  ""};
  const auto reply = Caller(*transport_, context, options_).Get(call);
  if (!reply.ok()) {
    // Nomad lets everybody read the keys, so either it does not know the path, or a proxy refuses
    // it.
    const auto error = GetNomadError(reply.status());
    const int status = error.has_value() ? error->http_status : 0;
    const bool is_refused = status >= 300 && status < 500 && status != 408 && status != 429;
    if (is_refused) return std::string();
    return reply.status();
  }
  const auto json = base::ParseJson(reply->body, "the reply");
  if (!json.ok()) return std::string();  // a page of a proxy
  const Json* keys = base::FindMember(*json, "keys");
  std::set<std::string> ids;
  if (keys != nullptr && keys->is_array()) {
    for (const Json& key : *keys) ids.insert(base::GetString(key, "kid"));
  }
  ids.erase("");
  if (ids.empty()) {
    return base::Unavailable(call.purpose + ": the reply has none; check nomad_address");
  }
  return absl::StrJoin(ids, ",");
}

absl::Status NomadClient::CheckNodePool(const runtime::Context& context,
                                        const std::string& name) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/node/pool/", name));
  const std::string needs = "node_pool \"" + name + "\" { policy = \"read\" }";
  const Call call{std::move(path), "read Nomad node pool " + name, needs};
  return Caller(*transport_, context, options_).Get(call).status();
}

absl::StatusOr<Indexed<std::vector<Allocation>>> NomadClient::NodeAllocations(
    const runtime::Context& context, const std::string& id) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/node/", id, "/allocations"));
  return List<Allocation>(
      Caller(*transport_, context, options_),
      {std::move(path), "list the allocations of Nomad node " + id, kNeedsNodeRead},
      AllocationFields(), &FinishNodeAllocation);
}

absl::StatusOr<Indexed<std::vector<Allocation>>> NomadClient::ListAllocations(
    const runtime::Context& context, AllocationPart part, const ReadOptions& options) const {
  const bool states = part == AllocationPart::kTaskStates;
  return List<Allocation>(
      Caller(*transport_, context, {.region = options_.region, .ns = "*"}),
      {"/v1/allocations",
       "list Nomad allocations",
       kNeedsReadJob,
       {{"resources", states ? "false" : "true"}, {"task_states", states ? "true" : "false"}}},
      AllocationFields(), states ? &FinishAllocation : &FinishPlacement, options);
}

absl::StatusOr<Indexed<std::vector<Placement>>> NomadClient::ListPlacements(
    const runtime::Context& context) const {
  NH_ASSIGN_OR_RETURN(
      auto placements,
      List<Placement>(Caller(*transport_, context, {.region = options_.region, .ns = "*"}),
                      {"/v1/allocations",
                       "list what Nomad allocations hold",
                       kNeedsReadJob,
                       {{"resources", "true"},
                        {"task_states", "false"},
                        {"filter",
                         "ClientStatus != \"complete\" and ClientStatus != \"failed\" and "
                         "ClientStatus != \"lost\""}}},
                      PlacementFields(), &FinishPlacementRecord));
  std::erase_if(placements.value, [](const Placement& placement) {
    return placement.client_status == ClientStatus::kComplete ||
           placement.client_status == ClientStatus::kFailed ||
           placement.client_status == ClientStatus::kLost;
  });
  return placements;
}

absl::StatusOr<Indexed<std::vector<BlockedEvaluation>>> NomadClient::ListEvaluations(
    const runtime::Context& context, const std::string& status) const {
  NH_ASSIGN_OR_RETURN(
      auto evaluations,
      List<BlockedEvaluation>(Caller(*transport_, context, {.region = options_.region, .ns = "*"}),
                              {"/v1/evaluations",
                               "list Nomad's " + status + " evaluations",
                               kNeedsReadJob,
                               {{"status", status}}},
                              EvaluationFields(), &FinishEvaluation));
  std::erase_if(evaluations.value, [&](const BlockedEvaluation& evaluation) {
    return evaluation.status != status ||
           (evaluation.type != "service" && evaluation.type != "batch");
  });
  return evaluations;
}

absl::StatusOr<Indexed<std::vector<JobStub>>> NomadClient::ListJobs(
    const runtime::Context& context) const {
  NH_ASSIGN_OR_RETURN(
      auto jobs,
      List<JobStub>(
          Caller(*transport_, context, {.region = options_.region, .ns = "*"}),
          {"/v1/jobs", "list Nomad jobs", kNeedsListJobs, {{"filter", "Status != \"dead\""}}},
          JobStubFields(), &FinishJobStub));
  std::erase_if(jobs.value, [](const JobStub& job) { return job.status == "dead"; });
  return jobs;
}

absl::StatusOr<Job> NomadClient::GetJob(const runtime::Context& context, const std::string& ns,
                                        const std::string& id) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/job/", id));
  const Call call{std::move(path), "read Nomad job " + id, kNeedsReadJob};
  const Caller caller(*transport_, context, {.region = options_.region, .ns = ns});
  NH_ASSIGN_OR_RETURN(const JsonReply reply, GetJson(caller, call));
  auto job = DecodeJob(reply.json);
  if (!job.ok()) return base::Annotate(job.status(), call.purpose);
  if (job->id != id) return base::Internal(call.purpose + ": the reply is for another job");
  return job;
}

absl::StatusOr<std::string> NomadClient::NodeOfAllocation(const runtime::Context& context,
                                                          const std::string& allocation_id) const {
  NH_ASSIGN_OR_RETURN(std::string path, PathOf("/v1/allocation/", allocation_id));
  const Call call{std::move(path), "read Nomad allocation " + allocation_id, kNeedsReadJob};
  NH_ASSIGN_OR_RETURN(const JsonReply reply, GetJson({*transport_, context, options_}, call));
  const std::string node_id = base::GetString(reply.json, "NodeID");
  if (node_id.empty()) return base::Internal(call.purpose + ": the reply has no NodeID");
  return node_id;
}

absl::Status NomadClient::Drain(const runtime::Context& context, const std::string& id,
                                const DrainSpec& spec) const {
  const Json body = {
      {"NodeID", id},
      {"DrainSpec",
       {{"Deadline", spec.deadline.count()}, {"IgnoreSystemJobs", spec.ignore_system_jobs}}},
      {"MarkEligible", false},
      {"Meta", spec.meta}};
  return PostNode(Caller(*transport_, context, options_), "drain", id, "/drain", body,
                  http::Idempotency::kOnce);
}

// The null spec together with MarkEligible cancels a running drain, or ends one that has completed,
// in one request (hashicorp/nomad:nomad/state/state_store.go, updateNodeDrainImpl). Meta is left
// out, so that LastDrain keeps the Meta of the drain.
absl::Status NomadClient::CancelDrain(const runtime::Context& context, const std::string& id,
                                      bool mark_eligible) const {
  return PostNode(Caller(*transport_, context, options_), "cancel the drain of", id, "/drain",
                  {{"NodeID", id}, {"DrainSpec", nullptr}, {"MarkEligible", mark_eligible}});
}

absl::Status NomadClient::SetEligible(const runtime::Context& context, const std::string& id,
                                      bool eligible) const {
  return PostNode(Caller(*transport_, context, options_), eligible ? "enable" : "disable", id,
                  "/eligibility",
                  {{"NodeID", id}, {"Eligibility", eligible ? "eligible" : "ineligible"}});
}

absl::Status NomadClient::SetNodeMeta(
    const runtime::Context& context, const std::string& id,
    const std::map<std::string, std::optional<std::string>>& meta) const {
  if (id.empty()) return base::InvalidArgument("the Nomad ID is empty");
  Json values = Json::object();
  for (const auto& [key, value] : meta) values[key] = value ? Json(*value) : Json(nullptr);
  return Caller(*transport_, context, options_)
      .Post({"/v1/client/metadata",
             "set metadata of Nomad node " + id,
             kNeedsNodeWrite,
             {{"node_id", id}}},
            base::DumpJson({{"NodeID", id}, {"Meta", values}}), http::Idempotency::kOnce,
            /*late_is_harmless=*/true)
      .status();
}

absl::Status NomadClient::Purge(const runtime::Context& context, const std::string& id) const {
  return PostNode(Caller(*transport_, context, options_), "purge", id, "/purge", nullptr);
}

absl::StatusOr<IntroductionToken> NomadClient::Introduce(const runtime::Context& context,
                                                         const Introduction& introduction) const {
  const Call call{"/v1/acl/identity/client-introduction-token",
                  "make an introduction token for Nomad client " + introduction.node_name,
                  kNeedsNodeWrite};
  const Json body = {{"TTL", base::FormatGoDuration(introduction.ttl)},
                     {"NodeName", introduction.node_name},
                     {"NodePool", introduction.node_pool}};
  const auto reply = Caller(*transport_, context, options_)
                         .Post(call, base::DumpJson(body), http::Idempotency::kIdempotent);
  if (!reply.ok()) {
    // Nomad answers an unknown path with a 404 without a body; a proxy's 404 has a text.
    const auto error = GetNomadError(reply.status());
    const bool unknown = error.has_value() && error->http_status == 404 && error->text.empty();
    if (!unknown) return reply.status();
    return base::MakeStatus(
        absl::StatusCode::kUnimplemented,
        call.purpose + ": this Nomad has no introduction tokens (HTTP 404); 1.11 and newer have");
  }
  const auto object = base::ParseJson(reply->body, "the reply");
  std::string jwt = object.ok() ? base::GetString(*object, "JWT") : "";
  if (jwt.empty()) return base::Internal(call.purpose + ": the reply has no JWT");
  if (!IsJwtText(jwt)) {
    return base::Internal(call.purpose +
                          ": its JWT has characters that none has; check that nomad_address is "
                          "the address of Nomad, and that no proxy changes its replies");
  }
  IntroductionToken token{.jwt = base::Secret(std::move(jwt))};
  const auto lifetime = LifetimeOf(token.jwt.Reveal());
  if (!lifetime.ok()) return base::Annotate(lifetime.status(), call.purpose);
  token.lifetime = *lifetime;
  return token;
}

}  // namespace nomad_harvester::nomad
