// SPDX-License-Identifier: Apache-2.0
// The resources that the plugin works with.
#ifndef NOMAD_HARVESTER_KUBE_RESOURCE_TYPE_H_
#define NOMAD_HARVESTER_KUBE_RESOURCE_TYPE_H_

#include <string_view>

namespace nomad_harvester::kube {

// A resource as it appears in a path: "/apis/<group>/<version>/…/<plural>", or "/api/v1/…" for the
// core group (group ""). A literal type, so that the constants below do not depend on
// initialisation order.
struct ResourceType {
  std::string_view group;
  std::string_view version;
  std::string_view plural;
  std::string_view kind;  // for errors and objects
  // Of what is created or patched; see http::HttpRequest.
  bool late_is_harmless = false;
};

inline constexpr ResourceType kVirtualMachines{"kubevirt.io", "v1", "virtualmachines",
                                               "VirtualMachine"};
inline constexpr ResourceType kVirtualMachineInstances{
    "kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance"};
inline constexpr ResourceType kVirtualMachineImages{"harvesterhci.io", "v1beta1",
                                                    "virtualmachineimages", "VirtualMachineImage"};
inline constexpr ResourceType kKeyPairs{"harvesterhci.io", "v1beta1", "keypairs", "KeyPair"};
inline constexpr ResourceType kVirtualMachineTemplates{
    "harvesterhci.io", "v1beta1", "virtualmachinetemplates", "VirtualMachineTemplate"};
inline constexpr ResourceType kVirtualMachineTemplateVersions{"harvesterhci.io", "v1beta1",
                                                              "virtualmachinetemplateversions",
                                                              "VirtualMachineTemplateVersion"};
inline constexpr ResourceType kNetworkAttachments{
    "k8s.cni.cncf.io", "v1", "network-attachment-definitions", "NetworkAttachmentDefinition"};
inline constexpr ResourceType kSecrets{"", "v1", "secrets", "Secret"};
// Nothing acts on a pool's history (rule T3).
inline constexpr ResourceType kConfigMaps{"", "v1", "configmaps", "ConfigMap",
                                          /*late_is_harmless=*/true};
inline constexpr ResourceType kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims",
                                                      "PersistentVolumeClaim"};
inline constexpr ResourceType kPods{"", "v1", "pods", "Pod"};
inline constexpr ResourceType kResourceQuotas{"", "v1", "resourcequotas", "ResourceQuota"};
// These five are cluster-wide, without a namespace.
inline constexpr ResourceType kStorageClasses{"storage.k8s.io", "v1", "storageclasses",
                                              "StorageClass"};
inline constexpr ResourceType kPriorityClasses{"scheduling.k8s.io", "v1", "priorityclasses",
                                               "PriorityClass"};
inline constexpr ResourceType kNamespaces{"", "v1", "namespaces", "Namespace"};
inline constexpr ResourceType kHosts{"", "v1", "nodes", "Node"};
inline constexpr ResourceType kSettings{"harvesterhci.io", "v1beta1", "settings", "Setting"};
inline constexpr ResourceType kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline constexpr ResourceType kEvents{"events.k8s.io", "v1", "events", "Event"};

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_RESOURCE_TYPE_H_
