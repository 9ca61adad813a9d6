// SPDX-License-Identifier: Apache-2.0
// After harvester/harvester:pkg/webhook/resources/templateversion and
// pkg/controller/master/template.
#include "templates.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"

#include "kube_reply.h"
#include "machines.h"
#include "seed.h"

namespace nomad_harvester::simulator {
namespace {

constexpr char kWebhook[] = "validator.harvesterhci.io";
constexpr char kClaimsAnnotation[] = "harvesterhci.io/volumeClaimTemplates";

std::string TemplateIdOf(const Json& version) {
  return base::TextAt(version, {"spec", "templateId"});
}

Object TemplateOf(const KubeStore& store, const Json& version) {
  const std::string id = TemplateIdOf(version);
  const std::size_t slash = id.find('/');
  if (slash == std::string::npos) return nullptr;
  return store.Find(kTemplates, id.substr(0, slash), id.substr(slash + 1));
}

bool IsTrue(const Json& object, std::string_view type) {
  const Json* conditions = base::FindPath(object, {"status", "conditions"});
  return conditions != nullptr && conditions->is_array() &&
         std::any_of(conditions->begin(), conditions->end(), [type](const Json& condition) {
           return base::GetString(condition, "type") == type &&
                  base::GetString(condition, "status") == "True";
         });
}

// The templates of the claims; nothing: they cannot be read.
std::optional<Json> ClaimTemplatesOf(const Json& version) {
  const std::string text =
      base::TextAt(version, {"spec", "vm", "metadata", "annotations", kClaimsAnnotation});
  auto claims = base::ParseJson(text.empty() ? "[]" : text, "the templates");
  if (!claims.ok() || !claims->is_array()) return std::nullopt;
  return *std::move(claims);
}

bool HasItsImages(const KubeStore& store, const Json& version) {
  const std::optional<Json> claims = ClaimTemplatesOf(version);
  if (!claims.has_value()) return false;
  return std::all_of(claims->begin(), claims->end(), [&store](const Json& claim) {
    const std::string image = AnnotationOf(claim, "harvesterhci.io/imageId");
    if (image.empty()) return true;
    const Object found = FindImage(store, image);
    return found != nullptr && IsTrue(*found, "Imported");
  });
}

std::int64_t NumberOf(const Json& version) {
  const Json* status = base::FindMember(version, "status");
  return status == nullptr ? 0 : base::GetInt(*status, "version");
}

std::int64_t LastNumber(const KubeStore& store, const std::string& template_id) {
  std::int64_t last = 0;
  for (const auto& [key, version] : store.All(kTemplateVersions)) {
    if (TemplateIdOf(*version) == template_id) last = std::max(last, NumberOf(*version));
  }
  return last;
}

void SettleTemplate(KubeStore& store, const Object& version_template, const Json& version) {
  Json changed = *version_template;
  const std::int64_t number = NumberOf(version);
  const std::string id = NamespaceOf(version) + "/" + NameOf(version);
  if (number == 1 && base::GetString(changed["spec"], "defaultVersionId").empty()) {
    changed["spec"]["defaultVersionId"] = id;
  }
  changed["status"]["latestVersion"] = LastNumber(store, TemplateIdOf(version));
  if (base::GetString(changed["spec"], "defaultVersionId") == id) {
    changed["status"]["defaultVersion"] = number;
  }
  store.Replace(kTemplates, std::move(changed));
}

}  // namespace

std::optional<http::HttpResponse> AdmitTemplateVersion(const KubeStore& store,
                                                       const Json& version) {
  const auto invalid = [](const std::string& message) {
    return Denied(422, "Invalid", kWebhook, message);
  };
  const std::string id = TemplateIdOf(version);
  if (id.empty()) return invalid("TemplateId is empty");
  if (id.substr(0, id.find('/')) != NamespaceOf(version)) {
    return invalid("Template version and template should reside in the same namespace");
  }
  if (TemplateOf(store, version) == nullptr) {
    return invalid("virtualmachinetemplate.harvesterhci.io \"" + id.substr(id.find('/') + 1) +
                   "\" not found");
  }
  if (!ClaimTemplatesOf(version).has_value()) {
    return invalid(std::string("Invalid JSON data in annotation ") + kClaimsAnnotation);
  }
  const Json* guest = base::FindPath(version, {"spec", "vm", "spec", "template"});
  if (guest == nullptr) return std::nullopt;
  const Json* limits = base::FindPath(*guest, {"spec", "domain", "resources", "limits"});
  if (limits == nullptr || limits->empty()) {
    return invalid("CPU and Memory limits are required fields, but are missing from the input");
  }
  if (!limits->contains("memory")) {
    return invalid("Memory limit is an required field, but is missing from the input");
  }
  if (!limits->contains("cpu")) {
    return invalid("CPU limit is an required field, but is missing from the input");
  }
  return std::nullopt;
}

http::HttpResponse DenyTemplateVersionChange() {
  return Denied(405, "MethodNotAllowed", kWebhook, "Update templateVersion is not supported");
}

std::optional<http::HttpResponse> AdmitTemplateVersionDeletion(const KubeStore& store,
                                                               const Json& version) {
  const Object of = TemplateOf(store, version);
  const Json* spec = of == nullptr ? nullptr : base::FindMember(*of, "spec");
  if (spec == nullptr ||
      base::GetString(*spec, "defaultVersionId") != NamespaceOf(version) + "/" + NameOf(version)) {
    return std::nullopt;
  }
  return Denied(400, "BadRequest", kWebhook, "Cannot delete the default templateVersion");
}

void SettleTemplates(KubeStore& store, base::WallTime now) {
  std::vector<Object> versions;
  for (const auto& [key, version] : store.All(kTemplateVersions)) versions.push_back(version);
  for (const Object& version : versions) {
    const Object of = TemplateOf(store, *version);
    if (of == nullptr || IsTerminating(*version)) continue;
    Json changed = *version;
    // It stays ready whatever becomes of its images (vm_image_controller.go).
    if (!IsTrue(changed, "ready")) {
      SetCondition(changed, "ready", HasItsImages(store, changed) ? "True" : "False", "", "", now);
    }
    if (!IsTrue(changed, "assigned")) {
      changed["status"]["version"] = LastNumber(store, TemplateIdOf(changed)) + 1;
      SetCondition(changed, "assigned", "True", "", "", now);
      changed["metadata"]["labels"]["template.harvesterhci.io/templateID"] = NameOf(*of);
      changed["metadata"]["ownerReferences"] =
          Json::array({{{"apiVersion", "harvesterhci.io/v1beta1"},
                        {"kind", "VirtualMachineTemplate"},
                        {"name", NameOf(*of)},
                        {"uid", UidOf(*of)},
                        {"blockOwnerDeletion", true},
                        {"controller", true}}});
    }
    SettleTemplate(store, of, *store.Replace(kTemplateVersions, std::move(changed)));
  }
}

}  // namespace nomad_harvester::simulator
