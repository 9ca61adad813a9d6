// SPDX-License-Identifier: Apache-2.0
// Requests that Harvester's admission webhooks deny
// (harvester/harvester:pkg/webhook/resources/{virtualmachine,persistentvolumeclaim}). They see the
// creation and every update of a VM, but not its deletion.
#include <set>
#include <string>

#include "nomad_harvester/base/json.h"

#include "kube_api.h"
#include "kube_reply.h"

namespace nomad_harvester::simulator {
namespace {

constexpr char kValidator[] = "validator.harvesterhci.io";
constexpr char kMutator[] = "mutator.harvesterhci.io";

}  // namespace

// The mutator decodes the VM, and passes the decoder's words on (pkg/webhook/types/admission.go).
// Here only the run strategy has a type.
std::optional<http::HttpResponse> KubeApi::FindWrongType(const Json& vm) const {
  const Json* strategy = base::FindPath(vm, {"spec", "runStrategy"});
  if (strategy == nullptr || strategy->is_null() || strategy->is_string()) return std::nullopt;
  const char* const type = strategy->is_boolean() ? "bool" : strategy->type_name();
  return Denied(500, "InternalError", kMutator,
                std::string("json: cannot unmarshal ") + type +
                    " into Go struct field VirtualMachineSpec.spec.runStrategy of type "
                    "v1.VirtualMachineRunStrategy");
}

// mutator.go, patchAffinity: every multus network is looked up, also for an update that does not
// concern it (harvester/harvester#6961); a name without a namespace in the VM's. Plain Go errors
// become 500 (pkg/webhook/types/admission.go).
std::optional<http::HttpResponse> KubeApi::FindMissingNetwork(const Json& vm) const {
  const Json* networks = base::FindPath(vm, {"spec", "template", "spec", "networks"});
  if (networks == nullptr || !networks->is_array()) return std::nullopt;
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
  return std::nullopt;
}

// validator.go, checkVMSpec: the templates of claims, the grace period and the strategy of
// maintenance. Releases up to 1.9 do not look for the storage classes of the claims.
std::optional<http::HttpResponse> KubeApi::CheckVmSpec(const Json& vm) const {
  const auto invalid = [](const std::string& message) {
    return Denied(422, "Invalid", kValidator, message);
  };
  const std::string text = AnnotationOf(vm, "harvesterhci.io/volumeClaimTemplates");
  const auto claims = base::ParseJson(text.empty() ? "[]" : text, "the templates");
  constexpr char kInvalidClaims[] = "the volumeClaimTemplates annotaion is invalid: ";
  if (!claims.ok() || !claims->is_array()) {
    return invalid(std::string(kInvalidClaims) + "it cannot be unmarshaled");
  }
  for (const Json& claim : *claims) {
    if (NameOf(claim).empty()) return invalid(std::string(kInvalidClaims) + "PVC name is required");
  }
  const Json* guest = base::FindPath(vm, {"spec", "template", "spec"});
  if (guest != nullptr && base::GetInt(*guest, "terminationGracePeriodSeconds") < 0) {
    return invalid("Termination grace period can't be negative");
  }
  static const std::set<std::string> kStrategies = {"", "Migrate", "ShutdownAndRestartAfterEnable",
                                                    "ShutdownAndRestartAfterDisable", "Shutdown"};
  const std::string strategy =
      base::TextAt(vm, {"metadata", "labels", "harvesterhci.io/maintain-mode-strategy"});
  if (kStrategies.count(strategy) == 0) {
    return invalid("invalid maintenance mode strategy: " + strategy);
  }
  return std::nullopt;
}

// pkg/util/resourcequota/calculator.go, CheckIfVMCanStartByResourceQuota: a VM that has a status,
// is not halted and has no pod is about to start.
bool KubeApi::AboutToStart(const Json& vm) const {
  const Json* status = base::FindMember(vm, "status");
  if (status == nullptr || base::GetString(*status, "printableStatus").empty()) return false;
  const Json* strategy = base::FindPath(vm, {"spec", "runStrategy"});
  if (strategy != nullptr && *strategy == "Halted") return false;
  return store_.Find(kInstances, NamespaceOf(vm), NameOf(vm)) == nullptr;
}

std::optional<http::HttpResponse> KubeApi::AdmitVm(const Json& vm, bool is_new) const {
  // The mutator leaves a VM alone that is being deleted, the validator does not.
  if (!IsTerminating(vm)) {
    if (auto denied = FindMissingNetwork(vm)) return denied;
  }
  if (auto denied = CheckVmSpec(vm)) return denied;
  if (quota_exceeded && (is_new || AboutToStart(vm))) {
    return Denied(500, "InternalError", kValidator, *quota_exceeded);
  }
  return std::nullopt;
}

// validator.go, Delete.
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
