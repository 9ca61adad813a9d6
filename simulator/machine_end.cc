// SPDX-License-Identifier: Apache-2.0
// Stop and removal of a VirtualMachine.
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

#include "machines.h"

namespace nomad_harvester::simulator {

void Machines::HangDeletion(const std::string& uid, bool hang) {
  const auto found = machines_.find(uid);
  if (found == machines_.end()) return;
  found->second.hangs = hang;
  if (!hang && found->second.ending &&
      store_.Find(kInstances, found->second.ns, found->second.name) == nullptr) {
    Remove(uid);
  }
}

void Machines::BeginDeletion(const std::string& uid) {
  const auto found = machines_.find(uid);
  if (found == machines_.end()) return;
  const Machine& machine = found->second;
  Mutate(kVms, machine.ns, machine.name, [](Json& vm) {
    vm["status"]["printableStatus"] = "Terminating";
    vm["status"]["ready"] = false;
  });
  const std::string now = base::FormatRfc3339(world_.wall());
  Mutate(kInstances, machine.ns, machine.name,
         [&now](Json& instance) { instance["metadata"]["deletionTimestamp"] = now; });
}

// runStrategy Halted: the guest is shut down, the VM stays.
void Machines::Halt(const std::string& uid) {
  const auto found = machines_.find(uid);
  const Object vm = VmOf(uid);
  if (found == machines_.end() || vm == nullptr || Starts(*vm) || found->second.ending) return;
  const Machine& machine = found->second;
  if (store_.Find(kInstances, machine.ns, machine.name) == nullptr) return;
  Mutate(kVms, machine.ns, machine.name, [](Json& object) {
    object["status"]["printableStatus"] = "Stopping";
    object["status"]["ready"] = false;
  });
  world_.After(world_.options.shutdown_time - world_.options.reaction_time, [this, uid] {
    const Object now = VmOf(uid);
    if (now == nullptr || IsTerminating(*now)) return;
    EndInstance(uid);
    Mutate(kVms, NamespaceOf(*now), NameOf(*now), [this](Json& object) {
      object["status"]["printableStatus"] = "Stopped";
      object["status"]["created"] = false;
      SetCondition(object, "Ready", "False", "VMINotExists", "VMI does not exist", world_.wall());
    });
    Emit(EventKind::kVmStopped, *VmOf(uid));
    // The VM may have been started again meanwhile.
    if (Starts(*VmOf(uid))) Boot(uid);
  });
}

void Machines::EndInstance(const std::string& uid) {
  const auto found = machines_.find(uid);
  if (found == machines_.end()) return;
  store_.Erase(kInstances, found->second.ns, found->second.name);
  ++found->second.boot;
  nomad_.LoseClient(found->second.node_id);
}

// harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go: if the VM has
// Harvester's finalizer, the claims that the annotation names are deleted with it; then the
// finalizers are removed.
void Machines::Remove(const std::string& uid) {
  const auto found = machines_.find(uid);
  const Object vm = VmOf(uid);
  if (found == machines_.end() || vm == nullptr || found->second.hangs) return;
  const std::string ns = found->second.ns;
  const std::string name = found->second.name;
  const Json* finalizers = base::FindPath(*vm, {"metadata", "finalizers"});
  bool cleans_up = false;
  if (finalizers != nullptr && finalizers->is_array()) {
    for (const Json& finalizer : *finalizers) {
      const auto* text = finalizer.get_ptr<const std::string*>();
      if (text != nullptr && text->find("CleanupPVC") != std::string::npos) cleans_up = true;
    }
  }
  const auto claims =
      base::ParseList(AnnotationOf(*vm, "harvesterhci.io/removedPersistentVolumeClaims"));
  if (cleans_up && claims.ok()) {
    for (const std::string& claim : *claims) store_.Erase(kClaims, ns, claim);
  }
  store_.Erase(kVms, ns, name);
}

}  // namespace nomad_harvester::simulator
