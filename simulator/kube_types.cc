// SPDX-License-Identifier: Apache-2.0
#include "kube_types.h"

#include <iterator>

namespace nomad_harvester::simulator {
namespace {

constexpr ResourceDef kKeyPairs{"harvesterhci.io", "v1beta1", "keypairs", "KeyPair", true, true};
constexpr ResourceDef kQuotas{"", "v1", "resourcequotas", "ResourceQuota", true, false};
// Stored, but they grant nothing: see Cluster::Forbid.
constexpr ResourceDef kAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true, false};
constexpr char kRbac[] = "rbac.authorization.k8s.io";
constexpr ResourceDef kRoles{kRbac, "v1", "roles", "Role", true, false};
constexpr ResourceDef kRoleBindings{kRbac, "v1", "rolebindings", "RoleBinding", true, false};
constexpr ResourceDef kClusterRoles{kRbac, "v1", "clusterroles", "ClusterRole", false, false};
constexpr ResourceDef kClusterRoleBindings{kRbac, "v1", "clusterrolebindings", "ClusterRoleBinding",
                                           false, false};

constexpr const ResourceDef* kAll[] = {
    &kVms,       &kInstances,    &kImages,         &kNetworks,
    &kKeyPairs,  &kSecrets,      &kClaims,         &kCoreEvents,
    &kEvents,    &kNamespaces,   &kTemplates,      &kTemplateVersions,
    &kLeases,    &kQuotas,       &kStorageClasses, &kPriorityClasses,
    &kSettings,  &kHosts,        &kPods,           &kAccounts,
    &kRoles,     &kRoleBindings, &kClusterRoles,   &kClusterRoleBindings,
    &kConfigMaps};

std::string WithGroup(std::string_view name, const ResourceDef& def) {
  std::string text(name);
  if (!def.group.empty()) text.append(".").append(def.group);
  return text;
}

}  // namespace

const ResourceDef* FindResource(std::string_view group, std::string_view version,
                                std::string_view plural) {
  for (const ResourceDef* def : kAll) {
    if (def->group == group && def->version == version && def->plural == plural) return def;
  }
  return nullptr;
}

const ResourceDef* FindResourceByKind(std::string_view api_version, std::string_view kind) {
  for (const ResourceDef* def : kAll) {
    if (def->kind == kind && ApiVersion(*def) == api_version) return def;
  }
  return nullptr;
}

const ResourceDef* ResourceAt(std::size_t index) {
  return index < std::size(kAll) ? kAll[index] : nullptr;
}

std::string ApiVersion(const ResourceDef& def) {
  std::string text(def.group);
  if (!text.empty()) text += "/";
  return text.append(def.version);
}

std::string QualifiedPlural(const ResourceDef& def) { return WithGroup(def.plural, def); }
std::string QualifiedKind(const ResourceDef& def) { return WithGroup(def.kind, def); }

}  // namespace nomad_harvester::simulator
