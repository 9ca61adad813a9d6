// SPDX-License-Identifier: Apache-2.0
#include "refusals.h"

#include <algorithm>
#include <utility>

#include "kube_api.h"
#include "kube_reply.h"
#include "request_info.h"

namespace nomad_harvester::simulator {
namespace {

bool Matches(const RefusalRule& rule, const RequestInfo& info) {
  if (rule.system != info.system) return false;
  const bool asks = info.verb == "try" || info.verb == "ask";
  if (rule.verb.empty() ? asks : rule.verb != info.verb) return false;
  return (rule.resource.empty() || rule.resource == info.resource) &&
         (rule.name.empty() || rule.name == info.name);
}

// kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/server/filters/waitgroup.go,
// waitGroupWriteRetryAfterToResponse.
http::HttpResponse ShuttingDown() {
  http::HttpResponse reply = StatusReply(503, "ServiceUnavailable", "apiserver is shutting down");
  reply.headers.Set("Retry-After", "1");
  return reply;
}

std::optional<http::HttpResponse> KubeAnswer(const RefusalRule& rule,
                                             const http::HttpRequest& request) {
  const KubeCall call = ParseKubeCall(request);
  // Reviews have no object of their own.
  const ResourceDef review{"authorization.k8s.io", "v1", call.review, "Review", false, false};
  if (call.def == nullptr && call.review.empty()) return std::nullopt;
  const ResourceDef& def = call.def != nullptr ? *call.def : review;
  switch (rule.kind) {
    case Refusal::kNone:
      return std::nullopt;
    case Refusal::kAnswer:
      return AnyReply(rule.status, rule.text);
    case Refusal::kForbidden:
      return Forbidden(def, call.ns, call.name, call.verb == "ask" ? "create" : call.verb);
    case Refusal::kUnavailable:
      return ShuttingDown();
  }
  return std::nullopt;
}

// hashicorp/nomad:command/agent/http.go, wrap: the text of an error is the body, its code 500
// unless it ends in "Permission denied".
std::optional<http::HttpResponse> NomadAnswer(const RefusalRule& rule) {
  switch (rule.kind) {
    case Refusal::kNone:
      return std::nullopt;
    case Refusal::kAnswer:
      return AnyReply(rule.status, rule.text);
    case Refusal::kForbidden:
      return TextReply(403, "Permission denied");
    case Refusal::kUnavailable:
      // hashicorp/nomad:nomad/structs/errors.go; an agent that forwards prefixes it
      // (helper/pool/pool.go).
      return TextReply(500, "rpc error: No cluster leader");
  }
  return std::nullopt;
}

}  // namespace

int Refusals::Add(RefusalRule rule) {
  rules_.emplace(++last_id_, std::move(rule));
  return last_id_;
}

base::Duration Refusals::TimeOf(System system, const http::HttpRequest& request) const {
  base::Duration longest{};
  if (rules_.empty()) return longest;
  const RequestInfo info = Describe(system, request);
  for (const auto& [id, rule] : rules_) {
    if (Matches(rule, info)) longest = std::max(longest, rule.takes);
  }
  return longest;
}

std::optional<http::HttpResponse> Refusals::AnswerTo(System system,
                                                     const http::HttpRequest& request) const {
  if (rules_.empty()) return std::nullopt;
  const RequestInfo info = Describe(system, request);
  for (const auto& [id, rule] : rules_) {
    if (!Matches(rule, info)) continue;
    auto answer = system == System::kHarvester ? KubeAnswer(rule, request) : NomadAnswer(rule);
    if (answer) return answer;
  }
  return std::nullopt;
}

}  // namespace nomad_harvester::simulator
