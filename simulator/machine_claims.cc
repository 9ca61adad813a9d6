// SPDX-License-Identifier: Apache-2.0
// The claims of VirtualMachines: creation, protection while they are used, removal with their VM.
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

#include "kube_api.h"
#include "machines.h"

namespace nomad_harvester::simulator {
namespace {

Json ClaimTemplates(const Json& vm) {
  auto parsed =
      base::ParseJson(AnnotationOf(vm, "harvesterhci.io/volumeClaimTemplates"), "the templates");
  return parsed.ok() && parsed->is_array() ? *std::move(parsed) : Json::array();
}

// The image of the annotation imageId ("ns/name").
struct ClaimImage {
  bool is_missing = false;
  bool is_cdi = false;
};
ClaimImage ImageOf(const KubeStore& store, const Json& claim) {
  const std::string full = AnnotationOf(claim, "harvesterhci.io/imageId");
  const std::size_t slash = full.find('/');
  if (slash == std::string::npos) return {};
  const Object image = store.Find(kImages, full.substr(0, slash), full.substr(slash + 1));
  if (image == nullptr) return {true, false};
  const Json* backend = base::FindPath(*image, {"spec", "backend"});
  return {false, backend != nullptr && *backend == "cdi"};
}

// Harvester creates a DataVolume without labels and annotations of the template (vm_controller.go,
// createDataVolume), and CDI its claim (kubevirt/containerized-data-importer:
// pkg/controller/common/util.go, pkg/common/common.go).
Json OfDataVolume(const Json& claim, const std::string& uid) {
  return {{"metadata",
           {{"name", NameOf(claim)},
            {"labels",
             {{"app", "containerized-data-importer"},
              {"app.kubernetes.io/component", "storage"},
              {"app.kubernetes.io/managed-by", "cdi-controller"}}},
            {"annotations", {{"cdi.kubevirt.io/createdForDataVolume", uid}}},
            {"ownerReferences", Json::array({{{"apiVersion", "cdi.kubevirt.io/v1beta1"},
                                              {"kind", "DataVolume"},
                                              {"name", NameOf(claim)},
                                              {"uid", uid},
                                              {"controller", true},
                                              {"blockOwnerDeletion", true}}})}}},
          {"spec", claim.value("spec", Json::object())}};
}

}  // namespace

// harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go,
// createPVCsFromAnnotation: a literal copy of the template, without an owner; an entry whose image
// does not exist is skipped.
void Machines::MakeClaims(Machine& machine, const Json& vm) {
  for (Json claim : ClaimTemplates(vm)) {
    if (!claim.is_object() || NameOf(claim).empty()) continue;
    const ClaimImage image = ImageOf(store_, claim);
    if (image.is_missing) {
      machine.failure =
          Failure{0, "ErrorPvcNotFound", "persistentvolumeclaim " + NameOf(claim) + " not found"};
      continue;
    }
    if (store_.Find(kClaims, machine.ns, NameOf(claim)) != nullptr) continue;
    if (image.is_cdi) claim = OfDataVolume(claim, world_.NextUuid());
    claim["metadata"]["namespace"] = machine.ns;
    claim["metadata"]["finalizers"] = Json::array({"kubernetes.io/pvc-protection"});
    claim["status"] = {{"phase", "Bound"}};
    store_.Stamp(kClaims, claim);
    store_.Insert(kClaims, std::move(claim));
  }
}

// vm_controller.go, removePVCInRemovedPVCsAnnotation: the claims that the annotation names are
// deleted with the VM if it has Harvester's finalizer.
void Machines::DeleteClaims(const Json& vm) {
  const Json* finalizers = base::FindPath(vm, {"metadata", "finalizers"});
  bool cleans_up = false;
  if (finalizers != nullptr && finalizers->is_array()) {
    for (const Json& finalizer : *finalizers) {
      const auto* text = finalizer.get_ptr<const std::string*>();
      if (text != nullptr && text->find("CleanupPVC") != std::string::npos) cleans_up = true;
    }
  }
  const auto names =
      base::ParseList(AnnotationOf(vm, "harvesterhci.io/removedPersistentVolumeClaims"));
  if (!cleans_up || keep_claims_ || !names.ok()) return;
  for (const std::string& name : *names) {
    if (hanging_claims_.count(name) == 0) {
      store_.Erase(kClaims, NamespaceOf(vm), name);
      continue;
    }
    Mutate(kClaims, NamespaceOf(vm), name, [this](Json& claim) {
      claim["metadata"]["deletionTimestamp"] = base::FormatRfc3339(world_.wall());
    });
  }
}

void Machines::HangClaim(const std::string& name, bool hang) {
  if (hang) {
    hanging_claims_.insert(name);
  } else {
    hanging_claims_.erase(name);
    ReleaseClaims();
  }
}

// kubernetes.io/pvc-protection: a claim stays until no pod uses it.
bool Machines::IsUsed(const Json& claim) const {
  for (const auto& [key, vm] : store_.All(kVms)) {
    if (key.first != NamespaceOf(claim) || ClaimsOf(*vm).count(NameOf(claim)) == 0) continue;
    if (store_.Find(kInstances, key.first, key.second) != nullptr) return true;
  }
  return false;
}

void Machines::ReleaseClaims() {
  const KubeStore::Objects all = store_.All(kClaims);
  for (const auto& [key, claim] : all) {
    if (!IsTerminating(*claim) || hanging_claims_.count(key.second) != 0) continue;
    if (!IsUsed(*claim)) store_.Erase(kClaims, key.first, key.second);
  }
}

}  // namespace nomad_harvester::simulator
