// SPDX-License-Identifier: Apache-2.0
#include "request_info.h"

#include "nomad_harvester/base/json.h"

#include "kube_api.h"
#include "nomad_api.h"
#include "target.h"

namespace nomad_harvester::simulator {
namespace {

void DescribeKube(const http::HttpRequest& request, RequestInfo& info) {
  const KubeCall call = ParseKubeCall(request);
  info.verb = call.dry_run ? "try" : call.verb;
  if (call.def != nullptr) info.resource = call.def->plural;
  if (!call.review.empty()) info.resource = call.review;
  info.name = call.name;
  if (info.name.empty() && call.verb == "create") {
    const auto body = base::ParseJson(request.body, "the body");
    if (body.ok()) info.name = NameOf(*body);
  }
  info.has_effect = call.review.empty() && !call.dry_run && call.def != nullptr &&
                    request.method != http::Method::kGet;
}

void DescribeNomad(const http::HttpRequest& request, RequestInfo& info) {
  const NomadCall call = ParseNomadCall(request);
  info.resource = call.resource;
  info.name = call.id;
  const bool list = call.resource == "nodes" || call.resource == "allocations" ||
                    call.resource == "node-allocations" || call.resource == "jobs" ||
                    call.resource == "evaluations";
  info.verb = list ? "list" : "get";
  if (call.write) info.verb = call.resource == "jobs" ? "create" : "update";
  if (request.method == http::Method::kDelete) info.verb = "delete";
  info.has_effect = call.write;
}

}  // namespace

std::string_view SystemName(System system) {
  return system == System::kHarvester ? "harvester" : "nomad";
}

RequestInfo Describe(System system, const http::HttpRequest& request) {
  RequestInfo info;
  info.system = system;
  info.method = request.method;
  info.target = request.target;
  info.query = ParseTarget(request.target).query;
  info.effect = request.effect;
  info.body = request.body;
  if (system == System::kHarvester) {
    DescribeKube(request, info);
  } else {
    DescribeNomad(request, info);
  }
  return info;
}

}  // namespace nomad_harvester::simulator
