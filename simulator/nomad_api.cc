// SPDX-License-Identifier: Apache-2.0
#include "nomad_api.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/time.h"

#include "kube_reply.h"

namespace nomad_harvester::simulator {
namespace {

constexpr char kRegion[] = "global";  // Nomad's default
constexpr char kKeys[] = "jwks.json";

// hashicorp/nomad:nomad/structs/structs.go, MaxBlockingRPCQueryTime; the same by default.
constexpr base::Duration kMaxWait = std::chrono::seconds(300);

NomadReply Text(int status, std::string text) { return {TextReply(status, std::move(text)), 0}; }

// It has no body (observed on Nomad 1.10.5).
NomadReply NoSuchPath() {
  http::HttpResponse unknown;
  unknown.status = 404;
  return {unknown, 0};
}

bool IsWriteOnly(const std::string& resource) {
  return resource == "drain" || resource == "eligibility" || resource == "purge" ||
         resource == "introduction";
}

// hashicorp/nomad:command/agent/http.go, "/v1/acl/identity/client-introduction-token".
bool IsIntroduction(const std::vector<std::string>& segments) {
  return segments.size() == 4 && segments[1] == "acl" && segments[2] == "identity" &&
         segments[3] == "client-introduction-token";
}

}  // namespace

NomadCall ParseNomadCall(const http::HttpRequest& request) {
  NomadCall call;
  call.target = ParseTarget(request.target);
  call.write = request.method != http::Method::kGet;
  const auto& segments = call.target.segments;
  if (segments.size() == 2 && segments[0] == ".well-known") {
    call.resource = segments[1];
    return call;
  }
  if (segments.size() < 2 || segments[0] != "v1") return call;
  call.resource = segments[1];
  if (segments.size() > 2) call.id = segments[2];
  if (segments[1] == "node" && segments.size() == 4) {
    call.resource = segments[3] == "allocations" ? "node-allocations" : segments[3];
    if (call.id == "pool") {
      call.resource = "node-pool";
      call.id = segments[3];
    }
  } else if (segments[1] == "job") {
    call.resource = call.write ? "jobs" : "job";
  } else if (IsIntroduction(segments)) {
    call.resource = "introduction";
  } else if (segments[1] == "client" && call.id == "metadata") {
    call.resource = "metadata";
    call.id = call.target.Query("node_id");
  }
  return call;
}

NomadWait ParseNomadWait(const http::HttpRequest& request) {
  NomadWait result;
  const Target target = ParseTarget(request.target);
  if (const auto found = target.query.find("index"); found != target.query.end()) {
    const auto index = base::ParseInt(found->second);
    if (!index.ok() || *index < 0) {
      result.refusal = TextReply(400, "Invalid index");
      return result;
    }
    result.index = static_cast<std::uint64_t>(*index);
  }
  result.wait = kMaxWait;
  if (const auto found = target.query.find("wait"); found != target.query.end()) {
    const auto wait = base::ParseGoDuration(found->second);
    if (!wait.ok()) {
      result.refusal = TextReply(400, "Invalid wait time");
      return result;
    }
    if (*wait > base::Duration::zero()) result.wait = std::min(*wait, kMaxWait);
  }
  return result;
}

// An unknown token and a missing one have the same answer (observed on Nomad 1.6.3 and 1.10.5).
bool NomadApi::Admits(const http::HttpRequest& request) const {
  const std::string& token = world_.options.nomad_token;
  const auto own = request.headers.Find("X-Nomad-Token");
  const auto bearer = request.headers.Find("Authorization");
  if (token.empty() || own == token || bearer == "Bearer " + token) return true;
  return world_.options.admits_anonymous && !own.has_value() && !bearer.has_value();
}

NomadReply NomadApi::Handle(const http::HttpRequest& request) {
  const NomadCall call = ParseNomadCall(request);
  const std::string region = call.target.Query("region");
  if (!region.empty() && region != kRegion) return Text(500, "No path to region");
  const bool needs_token = call.resource != "status" && call.resource != kKeys;
  if (needs_token && !Admits(request)) return Text(403, "Permission denied");
  NomadReply reply = Dispatch(call, request);
  if (reply.index != 0) {
    reply.response.headers.Set("X-Nomad-Index", std::to_string(reply.index));
    reply.response.headers.Set("X-Nomad-KnownLeader", "true");
    reply.response.headers.Set("X-Nomad-LastContact", "0");
  }
  return reply;
}

NomadReply NomadApi::Dispatch(const NomadCall& call, const http::HttpRequest& request) {
  const bool has_tokens = world_.options.introduction != Introduction::kNone;
  if (call.resource == "introduction" && !has_tokens) return NoSuchPath();
  const bool writes_node = IsWriteOnly(call.resource) || call.resource == "metadata";
  if (writes_node && node_write_denied) return Text(403, "Permission denied");
  if (call.resource == "metadata") return Metadata(call, request.method, request.body);
  if (call.write != IsWriteOnly(call.resource) && call.resource != "jobs") {
    const bool known = call.resource == "nodes" || call.resource == "node" ||
                       call.resource == "allocations" || IsWriteOnly(call.resource);
    if (known) return Text(405, "Invalid method");
  }
  if (call.resource == "nodes") return Nodes(call.target);
  if (call.resource == "node") return Node(call);
  if (call.resource == "node-allocations") return NodeAllocations(call);
  if (call.resource == "allocations") return Allocations(call.target);
  if (call.resource == "allocation") return Allocation(call);
  if (call.resource == "jobs" && !call.write) return Jobs(call.target);
  if (call.resource == "job") return Job(call);
  if (call.resource == "evaluations" && !call.write) return Evaluations(call.target);
  if (call.resource == "drain") return Drain(call, request.body);
  if (call.resource == "eligibility") return Eligibility(call, request.body);
  if (call.resource == "purge") return Purge(call);
  if (call.resource == "introduction") return Introduce(request);
  if (call.resource == "acl") return Acl(call);
  if (call.resource == "node-pool") return NodePool(call);
  if (call.resource == "agent" && call.id == "members") return Members();
  if (call.resource == "scaling" && call.id == "policies" && !call.write) return NoPolicies();
  if (call.resource == "jobs" && request.method == http::Method::kDelete) return StopJob(call);
  if (call.resource == "jobs" && call.write) return RegisterJob(request.body);
  if (call.resource == kKeys && !keys.empty()) return Keys();
  if (call.resource == "status" && call.id == "leader") {
    return {JsonReply(200, "127.0.0.1:4647"), 0};
  }
  return NoSuchPath();
}

}  // namespace nomad_harvester::simulator
