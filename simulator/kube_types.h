// SPDX-License-Identifier: Apache-2.0
// The resources of the simulated Kubernetes API.
#ifndef NOMAD_HARVESTER_SIMULATOR_KUBE_TYPES_H_
#define NOMAD_HARVESTER_SIMULATOR_KUBE_TYPES_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace nomad_harvester::simulator {

struct ResourceDef {
  std::string_view group;
  std::string_view version;
  std::string_view plural;
  std::string_view kind;
  bool namespaced = true;
  // Defined by a CustomResourceDefinition: list items have a kind, changes of the spec raise the
  // generation, unknown fields are pruned or refused.
  bool custom = false;
};

inline constexpr ResourceDef kVms{"kubevirt.io",    "v1", "virtualmachines",
                                  "VirtualMachine", true, true};
inline constexpr ResourceDef kInstances{
    "kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance", true, true};
inline constexpr ResourceDef kImages{"harvesterhci.io",     "v1beta1", "virtualmachineimages",
                                     "VirtualMachineImage", true,      true};
inline constexpr ResourceDef kTemplates{
    "harvesterhci.io", "v1beta1", "virtualmachinetemplates", "VirtualMachineTemplate", true, true};
inline constexpr ResourceDef kTemplateVersions{"harvesterhci.io",
                                               "v1beta1",
                                               "virtualmachinetemplateversions",
                                               "VirtualMachineTemplateVersion",
                                               true,
                                               true};
inline constexpr ResourceDef kNetworks{"k8s.cni.cncf.io",
                                       "v1",
                                       "network-attachment-definitions",
                                       "NetworkAttachmentDefinition",
                                       true,
                                       true};
inline constexpr ResourceDef kSecrets{"", "v1", "secrets", "Secret", true, false};
inline constexpr ResourceDef kClaims{"",   "v1", "persistentvolumeclaims", "PersistentVolumeClaim",
                                     true, false};
inline constexpr ResourceDef kPods{"", "v1", "pods", "Pod", true, false};
// The core group also shows the Events of the newer group, here not the other way round.
inline constexpr ResourceDef kCoreEvents{"", "v1", "events", "Event", true, false};
inline constexpr ResourceDef kEvents{"events.k8s.io", "v1", "events", "Event", true, false};
inline constexpr ResourceDef kNamespaces{"", "v1", "namespaces", "Namespace", false, false};
inline constexpr ResourceDef kStorageClasses{"storage.k8s.io", "v1",  "storageclasses",
                                             "StorageClass",   false, false};
inline constexpr ResourceDef kPriorityClasses{"scheduling.k8s.io", "v1",  "priorityclasses",
                                              "PriorityClass",     false, false};
inline constexpr ResourceDef kHosts{"", "v1", "nodes", "Node", false, false};
inline constexpr ResourceDef kSettings{"harvesterhci.io", "v1beta1", "settings",
                                       "Setting",         false,     true};
inline constexpr ResourceDef kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true, false};

// Null if there is none.
const ResourceDef* FindResource(std::string_view group, std::string_view version,
                                std::string_view plural);
const ResourceDef* FindResourceByKind(std::string_view api_version, std::string_view kind);
// The n-th; null after the last.
const ResourceDef* ResourceAt(std::size_t index);

std::string ApiVersion(const ResourceDef& def);  // "kubevirt.io/v1", "v1"
// As in error messages: "virtualmachines.kubevirt.io", "secrets".
std::string QualifiedPlural(const ResourceDef& def);
std::string QualifiedKind(const ResourceDef& def);  // "VirtualMachine.kubevirt.io", "Secret"

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_KUBE_TYPES_H_
