// SPDX-License-Identifier: Apache-2.0
// Stop of a VirtualMachine that stays, by its run strategy or by its own guest, and its next start.
#include "nomad_harvester/base/json.h"

#include "machines.h"

namespace nomad_harvester::simulator {

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
    Show(machines_.at(uid), "Stopped", false);
    Emit(EventKind::kVmStopped, *VmOf(uid));
    // The VM may have been started again meanwhile.
    if (Starts(*VmOf(uid))) Boot(uid);
  });
}

void Machines::EndInstance(const std::string& uid) {
  const auto found = machines_.find(uid);
  if (found == machines_.end()) return;
  store_.Erase(kInstances, found->second.ns, found->second.name);
  RemovePod(found->second);
  found->second.waits_for_host = false;
  ++found->second.boot;
  LoseClient(found->second);
}

// The guest has shut itself down: its VMI has succeeded. What follows depends on the run strategy
// (kubevirt/kubevirt:pkg/virt-controller/watch/vm/vm.go, syncRunStrategy): Always deletes the VMI
// and makes a new one, RerunOnFailure deletes it and leaves the VM stopped, Once and Manual keep
// it.
bool Machines::PowerOff(const std::string& uid) {
  const auto found = machines_.find(uid);
  const Object vm = VmOf(uid);
  if (found == machines_.end() || vm == nullptr || found->second.ending) return false;
  const Machine& machine = found->second;
  const Object instance = store_.Find(kInstances, machine.ns, machine.name);
  if (instance == nullptr || (*instance)["status"]["phase"] != "Running") return false;
  ++found->second.boot;
  LoseClient(machine);
  Mutate(kInstances, machine.ns, machine.name, [this](Json& object) {
    object["status"]["phase"] = "Succeeded";
    SetCondition(object, "Ready", "False", "GuestNotRunning", "", world_.wall());
  });
  Show(machine, "Stopped", true);
  Emit(EventKind::kVmStopped, *VmOf(uid));
  const Json* strategy = base::FindPath(*vm, {"spec", "runStrategy"});
  const std::string text = strategy != nullptr && strategy->is_string() ? *strategy : "";
  if (text != "Always" && text != "RerunOnFailure") return true;
  world_.After(world_.options.reaction_time, [this, uid, again = text == "Always"] {
    const Object now = VmOf(uid);
    if (now == nullptr || IsTerminating(*now)) return;
    EndInstance(uid);
    Show(machines_.at(uid), "Stopped", false);
    if (again) Boot(uid);
  });
  return true;
}

// kubevirt/kubevirt:pkg/virt-api/rest/lifecycle.go, StartVMRequestHandler: a request to start,
// which a VM that already has an instance refuses.
void Machines::RequestStart(const std::string& uid) {
  world_.After(world_.options.reaction_time, [this, uid] { Boot(uid); });
}

void Machines::Show(const Machine& machine, const char* printable_status, bool has_instance) {
  Mutate(kVms, machine.ns, machine.name, [&](Json& object) {
    object["status"]["printableStatus"] = printable_status;
    object["status"]["created"] = has_instance;
    object["status"]["ready"] = false;
    SetCondition(object, "Ready", "False", has_instance ? "GuestNotRunning" : "VMINotExists",
                 has_instance ? "Guest VM is not reported as running" : "VMI does not exist",
                 world_.wall());
  });
}

}  // namespace nomad_harvester::simulator
