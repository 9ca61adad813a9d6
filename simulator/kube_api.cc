// SPDX-License-Identifier: Apache-2.0
#include "kube_api.h"

#include <algorithm>

#include "nomad_harvester/base/json.h"

#include "kube_reply.h"

namespace nomad_harvester::simulator {
namespace {

std::string Verb(http::Method method, bool item) {
  switch (method) {
    case http::Method::kGet:
      return item ? "get" : "list";
    case http::Method::kPost:
      return "create";
    case http::Method::kPut:
      return "update";
    case http::Method::kPatch:
      return "patch";
    case http::Method::kDelete:
      return "delete";
  }
  return "get";
}

// "/api/v1/…" and "/apis/<group>/<version>/…", then "namespaces/<ns>/" for namespaced resources.
void ParsePath(KubeCall& call) {
  const auto& segments = call.target.segments;
  std::size_t at = 0;
  std::string group;
  if (segments.size() >= 3 && segments[0] == "api") {
    at = 2;
  } else if (segments.size() >= 4 && segments[0] == "apis") {
    group = segments[1];
    at = 3;
  } else {
    return;
  }
  const std::string& version = segments[at - 1];
  std::size_t left = segments.size() - at;
  if (segments[at] == "namespaces" && left >= 3) {
    call.ns = segments[at + 1];
    at += 2;
    left -= 2;
  }
  const ResourceDef* def = FindResource(group, version, segments[at]);
  if (def == nullptr || left > 2) return;
  if (!call.ns.empty() && !def->namespaced) return;
  if (left == 2) call.name = segments[at + 1];
  // A namespaced object has no path without its namespace.
  if (def->namespaced && call.ns.empty() && !call.name.empty()) return;
  call.def = def;
}

}  // namespace

KubeCall ParseKubeCall(const http::HttpRequest& request) {
  KubeCall call;
  call.target = ParseTarget(request.target);
  call.dry_run = call.target.Query("dryRun") == "All";
  const auto& segments = call.target.segments;
  if (segments.size() == 4 && segments[1] == "authorization.k8s.io" &&
      request.method == http::Method::kPost) {
    call.review = segments[3];
    call.verb = "ask";
    return call;
  }
  ParsePath(call);
  call.verb = Verb(request.method, !call.name.empty());
  return call;
}

bool KubeApi::IsForbidden(const std::string& verb, const std::string& resource,
                          const std::string& ns) const {
  return forbidden.contains({verb, resource}) || forbidden.contains({verb, ""}) ||
         (ns.empty() && forbidden_cluster_wide.contains({verb, resource}));
}

http::HttpResponse KubeApi::Handle(const http::HttpRequest& request) {
  const auto credential = request.headers.Find("Authorization");
  const bool is_open = world_.options.kube_token.empty() ||
                       (world_.options.admits_anonymous && !credential.has_value());
  if (!is_open && credential != "Bearer " + world_.options.kube_token) {
    return StatusReply(401, "Unauthorized", "Unauthorized");
  }
  const KubeCall call = ParseKubeCall(request);
  if (call.target.path == "/version") {
    return JsonReply(200, {{"major", "1"}, {"minor", "32"}, {"gitVersion", "v1.32.3"}});
  }
  if (!call.review.empty()) return Review(call, request);
  if (call.def == nullptr) {
    const bool reads = request.method == http::Method::kGet;
    if (auto found = reads ? Discover(call.target) : std::nullopt) return *std::move(found);
    return TextReply(404, "404 page not found\n");
  }
  if (IsForbidden(call.verb, std::string(call.def->plural), call.ns)) {
    return Forbidden(*call.def, call.ns, call.name, call.verb);
  }
  return Dispatch(call, request);
}

http::HttpResponse KubeApi::Dispatch(const KubeCall& call, const http::HttpRequest& request) {
  const bool item = !call.name.empty();
  const bool cluster_wide = call.def->namespaced && call.ns.empty();
  if (request.method == http::Method::kGet) {
    if (item) return Get(call);
    return List(call, request.headers.Find("Accept").value_or("").find(
                          "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1") != std::string::npos);
  }
  const bool fits = request.method == http::Method::kPost ? !item : item;
  if (!fits || cluster_wide) {
    return StatusReply(405, "MethodNotAllowed",
                       "the server does not allow this method on the requested resource");
  }
  // As of "kubectl create namespace", but not of "kubectl apply".
  if (request.headers.Find("Content-Type") == "application/vnd.kubernetes.protobuf") {
    return StatusReply(415, "UnsupportedMediaType",
                       "the simulated API server reads only JSON: use kubectl apply");
  }
  switch (request.method) {
    case http::Method::kPost:
      return Create(call, request);
    case http::Method::kPut:
      return Put(call, request);
    case http::Method::kPatch:
      return Patch(call, request);
    default:
      return Delete(call, request);
  }
}

std::set<std::string> ClaimsOf(const Json& object) {
  std::set<std::string> names;
  const Json* volumes = base::FindPath(object, {"spec", "template", "spec", "volumes"});
  if (volumes == nullptr || !volumes->is_array()) return names;
  for (const Json& volume : *volumes) {
    const Json* claim = base::FindMember(volume, "persistentVolumeClaim");
    if (claim != nullptr) names.insert(base::GetString(*claim, "claimName"));
  }
  return names;
}

}  // namespace nomad_harvester::simulator
