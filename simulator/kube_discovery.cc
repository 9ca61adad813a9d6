// SPDX-License-Identifier: Apache-2.0
// What kubectl asks before it asks for objects: the groups, versions and resources that there are.
// Without "watch", which the simulator does not have.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "kube_api.h"
#include "kube_reply.h"

namespace nomad_harvester::simulator {
namespace {

// Of what an operator asks for by them
// (kubevirt/kubevirt:pkg/virt-operator/resource/generate/components/crds.go, the registries of
// kubernetes/kubernetes:pkg/registry/core).
Json ShortNames(std::string_view plural) {
  static const auto* const kNames =
      new std::map<std::string_view, Json>{{"virtualmachines", {"vm", "vms"}},
                                           {"virtualmachineinstances", {"vmi", "vmis"}},
                                           {"events", {"ev"}},
                                           {"namespaces", {"ns"}},
                                           {"nodes", {"no"}},
                                           {"persistentvolumeclaims", {"pvc"}},
                                           {"pods", {"po"}},
                                           {"resourcequotas", {"quota"}},
                                           {"storageclasses", {"sc"}},
                                           {"priorityclasses", {"pc"}},
                                           {"network-attachment-definitions", {"net-attach-def"}}};
  const auto found = kNames->find(plural);
  return found == kNames->end() ? Json() : found->second;
}

std::string LowerKind(std::string_view kind) {
  std::string name(kind);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

Json ResourceOf(const ResourceDef& def) {
  Json resource = {{"name", def.plural},
                   {"singularName", LowerKind(def.kind)},
                   {"namespaced", def.namespaced},
                   {"kind", def.kind},
                   {"verbs", {"create", "delete", "get", "list", "patch", "update"}}};
  if (Json names = ShortNames(def.plural); !names.is_null()) {
    resource["shortNames"] = std::move(names);
  }
  return resource;
}

// "kubevirt.io/v1" or "v1", with all that it has; null if it has nothing.
Json ResourcesOf(const std::string& group_version) {
  Json resources = Json::array();
  for (std::size_t i = 0; ResourceAt(i) != nullptr; ++i) {
    if (ApiVersion(*ResourceAt(i)) == group_version)
      resources.push_back(ResourceOf(*ResourceAt(i)));
  }
  if (resources.empty()) return nullptr;
  return {{"kind", "APIResourceList"},
          {"apiVersion", "v1"},
          {"groupVersion", group_version},
          {"resources", std::move(resources)}};
}

// Of the groups that have a name: group and version.
std::set<std::pair<std::string, std::string>> GroupVersions() {
  std::set<std::pair<std::string, std::string>> versions;
  for (std::size_t i = 0; ResourceAt(i) != nullptr; ++i) {
    const ResourceDef& def = *ResourceAt(i);
    if (!def.group.empty()) versions.emplace(def.group, def.version);
  }
  return versions;
}

Json Groups() {
  Json groups = Json::array();
  for (const auto& [group, version] : GroupVersions()) {
    const Json only = {{"groupVersion", group + "/" + version}, {"version", version}};
    groups.push_back(
        {{"name", group}, {"versions", Json::array({only})}, {"preferredVersion", only}});
  }
  return {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}};
}

// Where the documents are that SchemaOf makes.
Json Schemas() {
  Json paths;
  const auto add = [&paths](const std::string& path) {
    paths[path] = {{"serverRelativeURL", "/openapi/v3/" + path}};
  };
  add("api/v1");
  for (const auto& [group, version] : GroupVersions()) add("apis/" + group + "/" + version);
  return {{"paths", std::move(paths)}};
}

// All that kubectl reads of a schema before it lets the server validate: a PATCH of that kind takes
// fieldValidation (kubernetes/kubernetes:staging/src/k8s.io/cli-runtime/pkg/resource/
// query_param_verifier_v3.go). Null if the version has no resource.
Json SchemaOf(const std::string& group_version) {
  const Json parameter = {{"name", "fieldValidation"}, {"in", "query"}};
  Json paths;
  for (std::size_t i = 0; ResourceAt(i) != nullptr; ++i) {
    const ResourceDef& def = *ResourceAt(i);
    if (ApiVersion(def) != group_version) continue;
    paths["/" + std::string(def.plural)]["patch"] = {
        {"parameters", Json::array({parameter})},
        {"x-kubernetes-group-version-kind",
         {{"group", def.group}, {"version", def.version}, {"kind", def.kind}}}};
  }
  if (paths.is_null()) return nullptr;
  return {{"openapi", "3.0.0"},
          {"info", {{"title", "Kubernetes"}, {"version", "v1.32.3"}}},
          {"paths", std::move(paths)}};
}

http::HttpResponse EmptyOldSchema() {
  http::HttpResponse reply = TextReply(200, "");
  reply.headers.Set("Content-Type", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
  return reply;
}

}  // namespace

std::optional<http::HttpResponse> Discover(const Target& target) {
  const std::vector<std::string>& path = target.segments;
  if (target.path == "/readyz") return TextReply(200, "ok");
  // Older kubectls skip the kinds that the schemas lack.
  if (target.path == "/openapi/v2") return EmptyOldSchema();
  Json found;
  if (path == std::vector<std::string>{"api"}) {
    found = {{"kind", "APIVersions"}, {"versions", Json::array({"v1"})}};
  } else if (path == std::vector<std::string>{"apis"}) {
    found = Groups();
  } else if (path.size() == 2 && path[0] == "api") {
    found = ResourcesOf(path[1]);
  } else if (path.size() == 3 && path[0] == "apis") {
    found = ResourcesOf(path[1] + "/" + path[2]);
  } else if (target.path == "/openapi/v3") {
    found = Schemas();
  } else if (target.path == "/openapi/v3/api/v1") {
    found = SchemaOf("v1");
  } else if (path.size() == 5 && target.path.starts_with("/openapi/v3/apis/")) {
    found = SchemaOf(path[3] + "/" + path[4]);
  }
  if (found.is_null()) return std::nullopt;
  return JsonReply(200, found);
}

}  // namespace nomad_harvester::simulator
