// SPDX-License-Identifier: Apache-2.0
// POST, PATCH and PUT.
#include <string>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "kube_api.h"
#include "kube_reply.h"
#include "kube_schema.h"
#include "pod_requests.h"
#include "templates.h"

namespace nomad_harvester::simulator {
namespace {

http::HttpResponse BadRequest(std::string_view message) {
  return StatusReply(400, "BadRequest", message);
}

std::string CannotHandle(const ResourceDef& def, std::string_view why) {
  std::string text(def.kind);
  text.append(" in version \"").append(def.version).append("\" cannot be handled as a ");
  return text.append(def.kind).append(": ").append(why);
}

// The object of a POST or PUT, or the refusal.
struct Body {
  Json object;
  std::optional<http::HttpResponse> refusal;
};

Body ReadBody(const KubeCall& call, const std::string& text) {
  Body body;
  auto parsed = base::ParseJson(text, "the body");
  if (!parsed.ok() || !parsed->is_object()) {
    body.refusal =
        BadRequest("the object provided is unrecognized (must be of type " +
                   std::string(call.def->kind) + "): couldn't get version/kind; json parse error");
    return body;
  }
  body.object = *std::move(parsed);
  const std::string kind = base::GetString(body.object, "kind", call.def->kind);
  const std::string version = base::GetString(body.object, "apiVersion", ApiVersion(*call.def));
  Json& metadata = body.object["metadata"];
  if (kind != call.def->kind || version != ApiVersion(*call.def) ||
      !(metadata.is_object() || metadata.is_null())) {
    body.refusal = BadRequest(CannotHandle(*call.def, "it is a " + version + " " + kind));
    return body;
  }
  const std::string ns = base::GetString(metadata, "namespace", call.ns);
  if (ns != call.ns) {
    body.refusal = BadRequest(
        "the namespace of the provided object does not match the namespace sent on the request");
    return body;
  }
  if (call.def->namespaced) metadata["namespace"] = call.ns;
  return body;
}

// Unknown fields are refused if the client requests strict validation, else dropped with a warning.
struct Pruned {
  std::optional<http::HttpResponse> refusal;
  std::string warning;
};

Pruned Prune(const KubeCall& call, Json& object) {
  Pruned pruned;
  std::string all;
  for (const std::string& field : PruneUnknown(*call.def, object)) {
    all += (all.empty() ? "" : ", ") + ("unknown field \"" + field + "\"");
    pruned.warning += pruned.warning.empty() ? "" : ", ";
    pruned.warning += "299 - \"unknown field \\\"" + field + "\\\"\"";
  }
  if (!all.empty() && call.target.Query("fieldValidation") == "Strict") {
    pruned.refusal = BadRequest(CannotHandle(*call.def, "strict decoding error: " + all));
  }
  return pruned;
}

// A member such as "$patch" or "$retainKeys".
bool HasDirective(const Json& patch) {
  const Json members = patch.flatten();
  for (const auto& [path, value] : members.items()) {
    if (path.find("/$") != std::string::npos) return true;
  }
  return false;
}

http::HttpResponse WithWarning(http::HttpResponse response, const std::string& warning) {
  if (!warning.empty()) response.headers.Set("Warning", warning);
  return response;
}

}  // namespace

std::optional<http::HttpResponse> KubeApi::Validate(const ResourceDef& def, const std::string& name,
                                                    const Json& object) const {
  if (&def == &kVms) {
    if (auto denied = FindWrongType(object)) return denied;
  }
  const auto problems = FindProblems(def, object);
  if (problems.empty()) return std::nullopt;
  return Invalid(def, name, problems);
}

http::HttpResponse KubeApi::Create(const KubeCall& call, const http::HttpRequest& request) {
  const ResourceDef& def = *call.def;
  Body body = ReadBody(call, request.body);
  if (body.refusal) return *body.refusal;
  Json& object = body.object;
  const Pruned pruned = Prune(call, object);
  if (pruned.refusal) return *pruned.refusal;
  if (def.namespaced && store_.Find(kNamespaces, "", call.ns) == nullptr) {
    return NotFound(kNamespaces, call.ns);
  }
  if (const auto problem = FindUndecodable(def, object)) {
    return BadRequest(CannotHandle(def, *problem));
  }
  if (!MetaString(object, "resourceVersion").empty()) {
    return StatusReply(500, "InternalError",
                       "resourceVersion should not be set on objects to be created");
  }
  SetDefaults(def, object);
  if (base::GetString(object, "type") == "kubernetes.io/service-account-token") {
    object["data"]["token"] = base::Base64Encode(world_.options.kube_token);
  }
  if (NameOf(object).empty() && !MetaString(object, "generateName").empty()) {
    object["metadata"]["name"] = MetaString(object, "generateName") + world_.random.NextName(5);
  }
  if (const auto refused = Validate(def, NameOf(object), object)) return *refused;
  if (&def == &kVms) {
    // The status is a subresource: a POST ignores it.
    object.erase("status");
    SetRequests(object);
    if (const auto denied = AdmitVm(object, true)) return *denied;
  }
  if (&def == &kTemplateVersions) {
    if (const auto denied = AdmitTemplateVersion(store_, object)) return *denied;
  }
  if (const Object old = store_.Find(def, call.ns, NameOf(object)); old != nullptr) {
    return AlreadyExists(def, NameOf(object), IsTerminating(*old));
  }
  store_.Stamp(def, object);
  if (call.dry_run) return WithWarning(JsonReply(201, object), pruned.warning);
  const Object created = store_.Insert(def, std::move(object));
  if (&def == &kTemplateVersions) SettleTemplates(store_, world_.wall());
  return WithWarning(JsonReply(201, *created), pruned.warning);
}

http::HttpResponse KubeApi::Put(const KubeCall& call, const http::HttpRequest& request) {
  Body body = ReadBody(call, request.body);
  if (body.refusal) return *body.refusal;
  if (NameOf(body.object) != call.name) {
    return BadRequest("the name of the object (" + NameOf(body.object) +
                      ") does not match the name on the URL (" + call.name + ")");
  }
  const Object current = store_.Find(*call.def, call.ns, call.name);
  if (current == nullptr) return NotFound(*call.def, call.name);
  return Update(call, current, std::move(body.object), false);
}

// JSON merge patches (RFC 7386): both built-in and custom resources accept them. For a built-in one
// kubectl sends a strategic one, which is the same for it while it has no directive.
http::HttpResponse KubeApi::Patch(const KubeCall& call, const http::HttpRequest& request) {
  std::string type = request.headers.Find("Content-Type").value_or("");
  type = type.substr(0, type.find(';'));
  const bool is_strategic = !call.def->custom && type == "application/strategic-merge-patch+json";
  if (type != "application/merge-patch+json" && !is_strategic) {
    return StatusReply(415, "UnsupportedMediaType",
                       "the body of the request was in an unknown format - accepted media types "
                       "include: application/json-patch+json, application/merge-patch+json, "
                       "application/apply-patch+yaml");
  }
  const Object current = store_.Find(*call.def, call.ns, call.name);
  if (current == nullptr) return NotFound(*call.def, call.name);
  const auto patch = base::ParseJson(request.body, "the patch");
  if (!patch.ok() || !patch->is_object()) {
    return BadRequest("error decoding patch: unexpected end of JSON input");
  }
  if (is_strategic && HasDirective(*patch)) {
    return StatusReply(415, "UnsupportedMediaType",
                       "the simulated API server knows no directives of strategic merge patches: "
                       "send a merge patch");
  }
  Json wanted = *current;
  wanted.merge_patch(*patch);
  if (!wanted["metadata"].is_object()) return BadRequest("error decoding patch: metadata");
  if (NameOf(wanted) != call.name) {
    return BadRequest("the name of the object (" + NameOf(wanted) +
                      ") does not match the name on the URL (" + call.name + ")");
  }
  return Update(call, current, std::move(wanted), true);
}

std::optional<http::HttpResponse> KubeApi::CheckChange(const KubeCall& call, const Json& current,
                                                       const Json& wanted) const {
  const ResourceDef& def = *call.def;
  const std::string version = MetaString(wanted, "resourceVersion");
  if (!version.empty() && version != MetaString(current, "resourceVersion")) {
    return Modified(def, call.name);
  }
  const std::string uid = UidOf(wanted);
  if (!uid.empty() && uid != UidOf(current)) {
    // Two validators find it on custom resources (observed on kube-apiserver 1.32.3).
    const FieldProblem problem{"metadata.uid",
                               "Invalid value: \"" + uid + "\": field is immutable"};
    return Invalid(def, call.name, std::vector<FieldProblem>(def.custom ? 2 : 1, problem));
  }
  return std::nullopt;
}

http::HttpResponse KubeApi::Update(const KubeCall& call, const Object& current, Json wanted,
                                   bool patch) {
  const ResourceDef& def = *call.def;
  if (auto refusal = CheckChange(call, *current, wanted)) return *std::move(refusal);
  if (&def == &kTemplateVersions) return DenyTemplateVersionChange();
  const Pruned pruned = Prune(call, wanted);
  if (pruned.refusal) return *pruned.refusal;
  if (const auto problem = FindUndecodable(def, wanted)) {
    // kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go: an object
    // that cannot be decoded after the patch is invalid.
    if (patch) return Invalid(def, call.name, {{"patch", "Invalid value: " + *problem}});
    return BadRequest(CannotHandle(def, *problem));
  }
  SetDefaults(def, wanted);
  // Only the server sets these fields.
  for (const char* key : {"uid", "resourceVersion", "creationTimestamp", "generation",
                          "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    const Json* old = base::FindPath(*current, {"metadata", key});
    wanted["metadata"].erase(key);
    if (old != nullptr) wanted["metadata"][key] = *old;
  }
  if (def.custom) {
    const Json* status = base::FindMember(*current, "status");
    wanted.erase("status");
    if (status != nullptr) wanted["status"] = *status;
    if (wanted.value("spec", Json()) != current->value("spec", Json())) {
      wanted["metadata"]["generation"] = base::GetInt(wanted["metadata"], "generation") + 1;
    }
  }
  if (const auto refused = Validate(def, call.name, wanted)) return *refused;
  if (const auto changes = FindChanges(def, *current, wanted); !changes.empty()) {
    return Invalid(def, call.name, changes);
  }
  if (&def == &kVms) {
    const auto limits_of = [](const Json& vm) {
      const Json* const limits =
          base::FindPath(vm, {"spec", "template", "spec", "domain", "resources", "limits"});
      return limits == nullptr ? Json() : *limits;
    };
    if (limits_of(wanted) != limits_of(*current)) SetRequests(wanted);
    if (const auto denied = AdmitVm(wanted, false)) return *denied;
  }
  if (call.dry_run) return WithWarning(JsonReply(200, wanted), pruned.warning);
  const Object stored = store_.Replace(def, std::move(wanted));
  if (IsTerminating(*stored) && !HasFinalizers(*stored)) {
    store_.Erase(def, call.ns, call.name);
  }
  return WithWarning(JsonReply(200, *stored), pruned.warning);
}

}  // namespace nomad_harvester::simulator
