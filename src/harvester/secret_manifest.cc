// SPDX-License-Identifier: Apache-2.0
// Builds the Secret with a VM's user data.
//
// It is created before the VM, so that a VM always has its user data. Once the VM has a uid, the VM
// becomes its owner, and the garbage collector removes the Secret with the VM.
#include <string>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/kube/resource_type.h"

#include "labels.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {

using nlohmann::json;

// `data`, not `stringData`: base64 preserves every byte of the rendered text. The key is one that
// KubeVirt reads (kubevirt/kubevirt:pkg/cloud-init/cloud-init.go).
json BuildSecret(const VmSpec& vm_spec, const VmIdentity& identity, const std::string& user_data) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"name", SecretName(identity.name)},
            {"namespace", vm_spec.ns},
            {"labels", ManagedLabels(vm_spec)},
            {"annotations", {{kActionIdAnnotation, identity.action_id}}}}},
          {"type", "Opaque"},
          {"data", {{"userdata", base::Base64Encode(user_data)}}}};
}

// With blockOwnerDeletion true, clusters that run the admission plugin
// OwnerReferencesPermissionEnforcement require the right to update the VM's finalizers.
json BuildSecretOwnerPatch(const VmIdentity& identity, const std::string& vm_uid,
                           const std::string& secret_resource_version) {
  const json owner = {{"apiVersion", "kubevirt.io/v1"},
                      {"kind", std::string(kube::kVirtualMachines.kind)},
                      {"name", identity.name},
                      {"uid", vm_uid},
                      {"blockOwnerDeletion", false}};
  return {
      {"metadata",
       {{"resourceVersion", secret_resource_version}, {"ownerReferences", json::array({owner})}}}};
}

}  // namespace nomad_harvester::harvester
