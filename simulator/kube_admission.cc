// SPDX-License-Identifier: Apache-2.0
// Requests that Harvester's admission webhooks deny
// (harvester/harvester:pkg/webhook/resources/{virtualmachine,persistentvolumeclaim}).
#include "nomad_harvester/base/json.h"

#include "kube_api.h"
#include "kube_reply.h"

namespace nomad_harvester::simulator {
namespace {

constexpr char kValidator[] = "validator.harvesterhci.io";
constexpr char kMutator[] = "mutator.harvesterhci.io";

}  // namespace

std::optional<http::HttpResponse> KubeApi::AdmitVm(const Json& vm) const {
  // The mutator looks up every multus network; a name without a namespace in the VM's. Plain Go
  // errors become 500 (harvester/harvester:pkg/webhook/types/admission.go).
  const Json* networks = base::FindPath(vm, {"spec", "template", "spec", "networks"});
  if (networks != nullptr && networks->is_array()) {
    for (const Json& network : *networks) {
      const Json* multus = base::FindMember(network, "multus");
      if (multus == nullptr) continue;
      const std::string full = base::GetString(*multus, "networkName");
      const std::size_t slash = full.find('/');
      const std::string ns = slash == std::string::npos ? NamespaceOf(vm) : full.substr(0, slash);
      const std::string name = slash == std::string::npos ? full : full.substr(slash + 1);
      if (store_.Find(kNetworks, ns, name) == nullptr) {
        return Denied(500, "InternalError", kMutator,
                      QualifiedPlural(kNetworks) + " \"" + name + "\" not found");
      }
    }
  }
  if (quota_exceeded) return Denied(500, "InternalError", kValidator, *quota_exceeded);
  return std::nullopt;
}

std::optional<http::HttpResponse> KubeApi::AdmitClaimDeletion(const Json& claim) const {
  for (const auto& [key, vm] : store_.All(kVms)) {
    if (key.first != NamespaceOf(claim) || IsTerminating(*vm)) continue;
    if (ClaimsOf(*vm).count(NameOf(claim)) == 0) continue;
    return Denied(409, "Conflict", kValidator,
                  "can not delete the volume " + NameOf(claim) +
                      " which is currently attached to VM: " + key.first + "/" + key.second);
  }
  return std::nullopt;
}

}  // namespace nomad_harvester::simulator
