// SPDX-License-Identifier: Apache-2.0
#include "guest.h"

#include <map>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::simulator {
namespace {

constexpr char kNodesAnnotation[] = "nomad-harvester-autoscaler/nodes";

// The first value of each key: `node_class = "batch"` in HCL.
std::map<std::string, std::string> Assignments(std::string_view text) {
  std::map<std::string, std::string> found;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string key(base::TrimAsciiSpace(line.substr(0, equals)));
    const std::string_view value = base::TrimAsciiSpace(line.substr(equals + 1));
    if (value.size() < 2 || value.front() != '"' || value.back() != '"') continue;
    found.emplace(key, value.substr(1, value.size() - 2));
  }
  return found;
}

const Json* CloudInitOf(const Json& vm) {
  const Json* volumes = base::FindPath(vm, {"spec", "template", "spec", "volumes"});
  if (volumes == nullptr || !volumes->is_array()) return nullptr;
  for (const Json& volume : *volumes) {
    for (const char* source : {"cloudInitNoCloud", "cloudInitConfigDrive"}) {
      if (const Json* found = base::FindMember(volume, source)) return found;
    }
  }
  return nullptr;
}

}  // namespace

std::string UserDataSecretOf(const Json& vm) {
  const Json* source = CloudInitOf(vm);
  return source == nullptr ? "" : base::TextAt(*source, {"secretRef", "name"});
}

std::optional<std::string> UserDataOf(const KubeStore& store, const Json& vm) {
  const std::string name = UserDataSecretOf(vm);
  if (name.empty()) {
    const Json* source = CloudInitOf(vm);
    return source == nullptr ? "" : base::GetString(*source, "userData");
  }
  const Object secret = store.Find(kSecrets, NamespaceOf(vm), name);
  if (secret == nullptr) return std::nullopt;
  // kubevirt/kubevirt:pkg/cloud-init/cloud-init.go accepts both spellings.
  for (const char* key : {"userdata", "userData"}) {
    const Json* data = base::FindPath(*secret, {"data", key});
    if (data == nullptr || !data->is_string()) continue;
    return base::Base64Decode(data->get<std::string>()).value_or("");
  }
  return "";
}

NodeSpec ReadGuest(const Json& vm, std::string_view user_data) {
  NodeSpec spec;
  const auto record = base::ParseJson(AnnotationOf(vm, kNodesAnnotation), "the annotation");
  const Json nodes = record.ok() ? *record : Json::object();
  const auto assigned = Assignments(user_data);
  const auto pick = [&](const char* key, const std::string& fallback) {
    const auto found = assigned.find(key);
    if (found != assigned.end() && !found->second.empty()) return found->second;
    const std::string recorded = base::GetString(nodes, key);
    return recorded.empty() ? fallback : recorded;
  };
  spec.node_class = pick("node_class", "");
  spec.node_pool = pick("node_pool", "default");
  spec.datacenter = pick("datacenter", "");
  if (const auto cluster = assigned.find("nomad_cluster"); cluster != assigned.end()) {
    spec.nomad = cluster->second;
  }
  const auto name = assigned.find("name");
  spec.name = name != assigned.end() && !name->second.empty() ? name->second : NameOf(vm);
  spec.attributes["unique.hostname"] = spec.name;
  if (const auto uuid = assigned.find("harvester_vm_uuid"); uuid != assigned.end()) {
    spec.meta["harvester_vm_uuid"] = uuid->second;
  }
  return spec;
}

}  // namespace nomad_harvester::simulator
