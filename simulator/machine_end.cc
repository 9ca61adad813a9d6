// SPDX-License-Identifier: Apache-2.0
// Removal of a VirtualMachine.
#include "nomad_harvester/base/json.h"

#include "machines.h"

namespace nomad_harvester::simulator {
namespace {

constexpr base::Duration kRetryOfController = std::chrono::seconds(10);

}  // namespace

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

// The finalizers end: Harvester's deletes the claims, then the object goes. A full quota denies the
// removal of KubeVirt's finalizer, which virt-controller tries again (kube_admission.cc).
void Machines::Remove(const std::string& uid) {
  const auto found = machines_.find(uid);
  const Object vm = VmOf(uid);
  if (found == machines_.end() || vm == nullptr || found->second.hangs) return;
  if (quota_is_full_ && Starts(*vm)) {
    world_.After(kRetryOfController, [this, uid] { Remove(uid); });
    return;
  }
  DeleteClaims(*vm);
  store_.Erase(kVms, NamespaceOf(*vm), NameOf(*vm));
}

}  // namespace nomad_harvester::simulator
