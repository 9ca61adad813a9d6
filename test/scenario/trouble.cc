// SPDX-License-Identifier: Apache-2.0
#include "trouble.h"

#include <utility>

#include "nomad_harvester/base/json.h"

#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

constexpr std::string_view kWebhook =
    "admission webhook \"validator.harvesterhci.io\" denied the request: ";

json BodyOf(const RequestInfo& request) {
  auto parsed = base::ParseJson(request.body, "the body");
  return parsed.ok() && parsed->is_object() ? *std::move(parsed) : json::object();
}

json AnnotationsIn(const json& body) {
  const json* annotations = base::FindPath(body, {"metadata", "annotations"});
  return annotations != nullptr && annotations->is_object() ? *annotations : json::object();
}

std::string AspectOfVmPatch(const json& body) {
  const json annotations = AnnotationsIn(body);
  if (annotations.contains(kMarkKey)) return annotations[kMarkKey].is_null() ? "un-mark" : "mark";
  for (const char* key : {"joined-at", "ready-at", "rolled-back", "join-timeout"}) {
    if (annotations.contains(Key(key))) return key;
  }
  return "other";
}

std::string AspectOf(const RequestInfo& request) {
  const bool patch = request.verb == "patch";
  const json body = BodyOf(request);
  if (patch && request.resource == "virtualmachines") return AspectOfVmPatch(body);
  if (patch && request.resource == "leases") {
    return AnnotationsIn(body).contains(kActionKey) ? "action" : "holder";
  }
  if (request.resource == "drain") {
    const json* drain = base::FindMember(body, "DrainSpec");
    return drain != nullptr && drain->is_object() ? "start" : "cancel";
  }
  return "";
}

std::string VmOf(const RequestInfo& request, const simulator::Cluster& cluster) {
  // Nodes have the names of their VMs.
  if (request.system == System::kNomad) {
    return base::GetString(cluster.Node(request.name), "Name");
  }
  if (request.resource == "virtualmachines") return request.name;
  if (request.resource == "secrets" || request.resource == "persistentvolumeclaims") {
    return VmOfLeftover({{"metadata", {{"name", request.name}}}});
  }
  return "";
}

std::string Quoted(const RequestInfo& request) {
  return request.resource + " \"" + request.name + "\"";
}

Fault KubeFault(int status, const char* reason, const std::string& message) {
  return Fault::Answer(status, base::DumpJson({{"kind", "Status"},
                                               {"apiVersion", "v1"},
                                               {"metadata", json::object()},
                                               {"status", "Failure"},
                                               {"message", message},
                                               {"reason", reason},
                                               {"code", status}}));
}

}  // namespace

std::string Act::Kind() const {
  return verb + " " + resource + (aspect.empty() ? "" : " (" + aspect + ")");
}

std::ostream& operator<<(std::ostream& out, const Act& act) {
  return out << act.Kind() << (act.vm.empty() ? "" : " of " + act.vm);
}

bool IsRenewal(const RequestInfo& request) {
  return request.resource == "leases" && request.verb == "patch" &&
         request.body.find("renewTime") != std::string::npos &&
         request.body.find("holderIdentity") == std::string::npos;
}

Act ActOf(const RequestInfo& request, const simulator::Cluster& cluster) {
  return {.system = request.system,
          .verb = request.verb,
          .resource = request.resource,
          .aspect = AspectOf(request),
          .vm = VmOf(request, cluster)};
}

bool IsOfKind(const Act& act, const Act& kind) {
  return act.system == kind.system && act.verb == kind.verb && act.resource == kind.resource &&
         (kind.aspect.empty() || act.aspect == kind.aspect) &&
         (kind.vm.empty() || act.vm == kind.vm);
}

Answer Forbidden() {
  return {"403", [](const RequestInfo& request) {
            // hashicorp/nomad:nomad/structs/errors.go, ErrPermissionDenied.
            if (request.system == System::kNomad) return Fault::Answer(403, "Permission denied");
            return KubeFault(403, "Forbidden",
                             Quoted(request) + " is forbidden: User \"autoscaler\" cannot " +
                                 request.verb + " resource \"" + request.resource +
                                 "\" in the namespace \"" + kNamespace + "\"");
          }};
}

Answer Invalid() {
  return {"422", [](const RequestInfo& request) {
            return KubeFault(422, "Invalid",
                             Quoted(request) +
                                 " is invalid: metadata.annotations: Too long: may "
                                 "not be more than 262144 bytes");
          }};
}

Answer Denied() {
  return {"a webhook's 400", [](const RequestInfo&) {
            return KubeFault(400, "BadRequest", std::string(kWebhook) + "a backup is in progress");
          }};
}

Answer DeniedAs500() {
  return {"a webhook's 500", [](const RequestInfo&) {
            return KubeFault(500, "InternalError", std::string(kWebhook) + "template is nil");
          }};
}

bool MayBeIgnored(const Act& act) {
  return act.system == System::kNomad || act.verb == "delete" ||
         (act.verb == "patch" && act.resource == "virtualmachines");
}

// hashicorp/nomad:command/agent/http.go, decodeBody.
Answer BadRequest() {
  return {"400", [](const RequestInfo&) { return Fault::Answer(400, "Request body is empty"); }};
}

std::vector<Answer> RefusalsOf(const Act& act) {
  if (act.system == System::kNomad) return {Forbidden(), BadRequest()};
  return {Forbidden(), Invalid(), Denied(), DeniedAs500()};
}

Answer Unavailable() {
  return {"503", [](const RequestInfo& request) {
            if (request.system == System::kNomad) {
              return Fault::Answer(500, "rpc error: No cluster leader");
            }
            return KubeFault(503, "ServiceUnavailable", "apiserver is shutting down");
          }};
}

Answer NoAnswer() {
  return {"no answer", [](const RequestInfo&) { return Fault::Drop(); }};
}

Answer Conflict() {
  return {"409", [](const RequestInfo& request) {
            if (request.system == System::kNomad || request.verb == "create") {
              return Unavailable().fault(request);
            }
            return KubeFault(409, "Conflict",
                             "Operation cannot be fulfilled on " + Quoted(request) +
                                 ": the object has been modified; please apply your changes to the "
                                 "latest version and try again");
          }};
}

Answer ServerError() {
  return {"500", [](const RequestInfo& request) {
            if (request.system == System::kNomad) {
              return Fault::Answer(500, "rpc error: something nobody has heard of");
            }
            return KubeFault(500, "InternalError", "Internal error occurred: nobody knows why");
          }};
}

Answer Ignored() {
  return {"200 without effect", [](const RequestInfo& request) {
            return Fault::Answer(200, request.system == System::kNomad
                                          ? R"({"NodeModifyIndex": 1, "EvalIDs": []})"
                                          : R"({"kind": "Status", "status": "Success"})");
          }};
}

Trouble::Trouble(Harness& h, Act kind, Answer answer)
    : h_(h), kind_(std::move(kind)), answer_(std::move(answer)) {
  h_.invariants.ExpectRefusals();
  h_.cluster.SetFaultHook([this](const RequestInfo& request) { return OnRequest(request); });
}

Fault Trouble::OnRequest(const RequestInfo& request) {
  if (!request.has_effect || IsRenewal(request)) return Fault::None();
  if (ended_ || (most_ > 0 && answers_ >= most_)) return Fault::None();
  if (answers_ > 0 && duration_ > base::Duration::zero() && h_.clock.Now() - begun_ >= duration_) {
    return Fault::None();
  }
  const Act act = ActOf(request, h_.cluster);
  if (!IsOfKind(act, kind_)) return Fault::None();
  if (first_vm_ && answers_ > 0 && act.vm != vm_) return Fault::None();
  if (answers_++ == 0) {
    begun_ = h_.clock.Now();
    vm_ = act.vm;
  }
  Fault fault = answer_.fault(request);
  // The reply to a patch that is ignored has the object as it is.
  if (fault.status == 200 && request.verb == "patch") {
    fault.body = base::DumpJson(h_.cluster.Vm(request.name));
  }
  return fault;
}

}  // namespace nomad_harvester::scenario
