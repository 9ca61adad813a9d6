// SPDX-License-Identifier: Apache-2.0
// DELETE: preconditions, finalizers, immediate removal.
#include "nomad_harvester/base/json.h"

#include "kube_api.h"
#include "kube_reply.h"
#include "templates.h"

namespace nomad_harvester::simulator {
namespace {

Json Success(const ResourceDef& def, const Json& object) {
  Json details = {{"name", NameOf(object)}, {"kind", def.plural}, {"uid", UidOf(object)}};
  if (!def.group.empty()) details["group"] = def.group;
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", Json::object()},
          {"status", "Success"},
          {"details", std::move(details)}};
}

std::optional<http::HttpResponse> CheckPreconditions(const KubeCall& call, const Json& options,
                                                     const Json& object) {
  const Json* preconditions = base::FindMember(options, "preconditions");
  if (preconditions == nullptr) return std::nullopt;
  const auto uid = base::FindString(*preconditions, "uid");
  if (uid && *uid != UidOf(object)) {
    return PreconditionFailed(*call.def, call.name, "UID", *uid, UidOf(object));
  }
  const auto version = base::FindString(*preconditions, "resourceVersion");
  const std::string is = MetaString(object, "resourceVersion");
  if (version && *version != is) {
    return PreconditionFailed(*call.def, call.name, "ResourceVersion", *version, is);
  }
  return std::nullopt;
}

// Only a VM's deletion waits for dependents: nothing depends on the other objects.
bool Lingers(const ResourceDef& def, const Json& object, bool foreground) {
  return HasFinalizers(object) || (&def == &kVms && foreground);
}

}  // namespace

Json KubeApi::MarkDeleted(const ResourceDef& def, Json object, bool foreground) const {
  if (IsTerminating(object)) return object;
  Json& metadata = object["metadata"];
  metadata["deletionTimestamp"] = base::FormatRfc3339(world_.server_time());
  metadata["deletionGracePeriodSeconds"] = 0;
  if (def.custom) metadata["generation"] = base::GetInt(metadata, "generation") + 1;
  if (foreground && &def == &kVms) {
    if (!metadata["finalizers"].is_array()) metadata["finalizers"] = Json::array();
    metadata["finalizers"].push_back("foregroundDeletion");
  }
  return object;
}

http::HttpResponse KubeApi::Delete(const KubeCall& call, const http::HttpRequest& request) {
  const ResourceDef& def = *call.def;
  const Object object = store_.Find(def, call.ns, call.name);
  if (object == nullptr) return NotFound(def, call.name);
  Json options = Json::object();
  if (!request.body.empty()) {
    auto parsed = base::ParseJson(request.body, "the options");
    if (!parsed.ok()) return StatusReply(400, "BadRequest", "the options are not JSON");
    options = *std::move(parsed);
  }
  if (auto refusal = CheckPreconditions(call, options, *object)) return *std::move(refusal);
  if (&def == &kClaims) {
    if (auto refusal = AdmitClaimDeletion(*object)) return *std::move(refusal);
  }
  if (&def == &kTemplateVersions) {
    if (auto refusal = AdmitTemplateVersionDeletion(store_, *object)) return *std::move(refusal);
  }
  const std::string policy =
      base::GetString(options, "propagationPolicy", call.target.Query("propagationPolicy"));
  const bool foreground = policy == "Foreground";
  const bool lingers = Lingers(def, *object, foreground);
  if (call.dry_run) {
    return JsonReply(200, lingers ? MarkDeleted(def, *object, foreground) : Success(def, *object));
  }
  if (lingers) {
    return JsonReply(200, *store_.Replace(def, MarkDeleted(def, *object, foreground)));
  }
  store_.Erase(def, call.ns, call.name);
  return JsonReply(200, Success(def, *object));
}

void KubeApi::DeleteByHand(const ResourceDef& def, const std::string& ns, const std::string& name) {
  const Object object = store_.Find(def, ns, name);
  if (object == nullptr) return;
  if (Lingers(def, *object, false)) {
    store_.Replace(def, MarkDeleted(def, *object, false));
  } else {
    store_.Erase(def, ns, name);
  }
}

}  // namespace nomad_harvester::simulator
