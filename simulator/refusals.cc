// SPDX-License-Identifier: Apache-2.0
#include "refusals.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kube_api.h"
#include "kube_reply.h"
#include "request_info.h"

namespace nomad_harvester::simulator {
namespace {

constexpr char kValidator[] = "validator.harvesterhci.io";

bool Matches(const RefusalRule& rule, const RequestInfo& info) {
  if (rule.system != info.system) return false;
  const bool asks = info.verb == "try" || info.verb == "ask";
  if (rule.verb.empty() ? asks : rule.verb != info.verb) return false;
  return (rule.resource.empty() || rule.resource == info.resource) &&
         (rule.name.empty() || rule.name == info.name);
}

// harvester/harvester:pkg/webhook/resources/virtualmachine/validator.go, checkVMBackup, and
// getVMInterfaceInfo, whose plain Go error becomes a 500.
std::string DefaultText(Refusal kind, const std::string& ns, const std::string& name) {
  if (kind == Refusal::kDeniedAs500) return "vm " + name + " template is nil";
  return "vm " + ns + "/" + name +
         " has a backup in progress; wait for it to finish or delete it before stopping/restarting";
}

// kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go,
// ValidateAnnotationsSize. Nothing validates the object of a DELETE but webhooks
// (harvester/harvester:pkg/webhook/resources/persistentvolumeclaim/validator.go, Delete).
http::HttpResponse InvalidReply(const ResourceDef& def, const std::string& name,
                                const std::string& verb) {
  if (verb == "delete") {
    return Denied(422, "Invalid", kValidator, "can not delete golden image PVC");
  }
  return Invalid(def, name,
                 {{"metadata.annotations", "Too long: may not be more than 262144 bytes",
                   "FieldValueTooLong"}});
}

// kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/
// controller.go, CheckRequest.
http::HttpResponse QuotaReply(const ResourceDef& def, const std::string& name) {
  const std::string count = "count/" + QualifiedPlural(def);
  return StatusReply(403, "Forbidden",
                     QualifiedPlural(def) + " \"" + name +
                         "\" is forbidden: exceeded quota: default-quota, requested: " + count +
                         "=1, used: " + count + "=3, limited: " + count + "=3");
}

// kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/server/filters/waitgroup.go,
// waitGroupWriteRetryAfterToResponse.
http::HttpResponse ShuttingDown() {
  http::HttpResponse reply = StatusReply(503, "ServiceUnavailable", "apiserver is shutting down");
  reply.headers.Set("Retry-After", "1");
  return reply;
}

// As quoted in kubernetes/kubernetes#105519; the service is that of
// harvester/harvester:pkg/webhook/server/server.go.
http::HttpResponse WebhookDown() {
  return StatusReply(500, "InternalError",
                     "Internal error occurred: failed calling webhook \"" +
                         std::string(kValidator) +
                         "\": failed to call webhook: Post "
                         "\"https://harvester-webhook.harvester-system.svc:443/v1/webhook/"
                         "validation?timeout=10s\": dial tcp 10.53.171.20:443: connect: connection "
                         "refused");
}

// Whether the server refuses it before it looks the object up.
bool IsEarly(Refusal kind) {
  return kind == Refusal::kAnswer || kind == Refusal::kForbidden || kind == Refusal::kUnavailable ||
         kind == Refusal::kUnauthorized || kind == Refusal::kBadRequest;
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
    auto answer =
        system == System::kHarvester ? KubeAnswer(rule, info, request) : NomadAnswer(rule, info);
    if (answer) return answer;
  }
  return std::nullopt;
}

std::optional<http::HttpResponse> Refusals::KubeAnswer(const RefusalRule& rule,
                                                       const RequestInfo& info,
                                                       const http::HttpRequest& request) const {
  const KubeCall call = ParseKubeCall(request);
  // Reviews have no object of their own.
  const ResourceDef review{"authorization.k8s.io", "v1", call.review, "Review", false, false};
  if (call.def == nullptr && call.review.empty()) return std::nullopt;
  const ResourceDef& def = call.def != nullptr ? *call.def : review;
  const bool lost = !call.name.empty() && store_.Find(def, call.ns, call.name) == nullptr;
  if (lost && !IsEarly(rule.kind)) return std::nullopt;
  switch (rule.kind) {
    case Refusal::kAnswer:
      return AnyReply(rule.status, rule.text);
    case Refusal::kForbidden:
      return Forbidden(def, call.ns, call.name, call.verb == "ask" ? "create" : call.verb);
    case Refusal::kUnavailable:
      return ShuttingDown();
    case Refusal::kUnauthorized:
      return StatusReply(401, "Unauthorized", "Unauthorized");
    case Refusal::kInvalid:
      return InvalidReply(def, info.name, call.verb);
    case Refusal::kDenied:
      return Denied(400, "BadRequest", kValidator,
                    rule.text.empty() ? DefaultText(rule.kind, call.ns, info.name) : rule.text);
    case Refusal::kDeniedAs500:
      return Denied(500, "InternalError", kValidator,
                    rule.text.empty() ? DefaultText(rule.kind, call.ns, info.name) : rule.text);
    case Refusal::kQuotaExceeded:
      return QuotaReply(def, info.name);
    case Refusal::kAlreadyExists:
      return AlreadyExists(def, info.name, false);
    case Refusal::kConflict:
      return Modified(def, info.name);
    case Refusal::kWebhookDown:
      return WebhookDown();
    default:
      return std::nullopt;
  }
}

// hashicorp/nomad:command/agent/http.go, wrap: the text of an error is the body, its code 500
// unless it ends in "Permission denied".
std::optional<http::HttpResponse> Refusals::NomadAnswer(const RefusalRule& rule,
                                                        const RequestInfo& info) const {
  const bool of_node = info.resource == "node" || info.resource == "drain" ||
                       info.resource == "eligibility" || info.resource == "purge";
  if (of_node && nomads_.WithNode(info.name) == nullptr && !IsEarly(rule.kind)) return std::nullopt;
  switch (rule.kind) {
    case Refusal::kAnswer:
      return AnyReply(rule.status, rule.text);
    case Refusal::kForbidden:
      return TextReply(403, "Permission denied");
    case Refusal::kUnavailable:
      // hashicorp/nomad:nomad/structs/errors.go; an agent that forwards prefixes it
      // (helper/pool/pool.go).
      return TextReply(500, "rpc error: No cluster leader");
    case Refusal::kBadRequest:
      // The JSON decoder's error (command/agent/node_endpoint.go, nodeToggleDrain).
      return TextReply(400, "invalid character '<' looking for beginning of value");
    case Refusal::kNodeNotFound:
      return TextReply(500, "node not found");
    case Refusal::kLeadershipLost:
      // hashicorp/raft:api.go, ErrLeadershipLost.
      return TextReply(500, "leadership lost while committing log");
    default:
      return std::nullopt;
  }
}

}  // namespace nomad_harvester::simulator
