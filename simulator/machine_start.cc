// SPDX-License-Identifier: Apache-2.0
// Start of a VirtualMachine, and registration of its guest with Nomad.
#include <string_view>
#include <utility>

#include "nomad_harvester/base/json.h"

#include "guest.h"
#include "machines.h"

namespace nomad_harvester::simulator {
namespace {

// kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go, and wrangler's name for
// harvester/harvester:pkg/controller/master/virtualmachine/register.go.
constexpr char kKubeVirtFinalizer[] = "kubevirt.io/virtualMachineControllerFinalize";
constexpr char kHarvesterFinalizer[] = "wrangler.cattle.io/VMController.CleanupPVCAndSnapshot";
constexpr char kQuotaAnnotation[] = "harvesterhci.io/insufficient-resource-quota";

// A guest with a device of its host cannot move to another one
// (kubevirt/kubevirt:pkg/virt-handler/vm.go, calculateLiveMigrationCondition).
bool HasDevices(const Json& vm) {
  for (const char* kind : {"gpus", "hostDevices"}) {
    const Json* devices =
        base::FindPath(vm, {"spec", "template", "spec", "domain", "devices", kind});
    if (devices != nullptr && !devices->empty()) return true;
  }
  return false;
}

void SetMigratable(Json& object, bool migratable, base::WallTime now) {
  SetCondition(object, "LiveMigratable", migratable ? "True" : "False",
               migratable ? "" : "HostDeviceNotLiveMigratable",
               migratable ? "" : "VMI uses a PCI host devices", now);
}

// The condition that shows a failed start (kubevirt/kubevirt:pkg/virt-controller/watch/vm/vm.go,
// the isVirtualMachineStatus… functions), and its reason.
struct FaultCondition {
  const char* type;
  const char* status;
  const char* reason;
};
FaultCondition ConditionOf(std::string_view printable_status) {
  if (printable_status == "ErrorUnschedulable") return {"PodScheduled", "False", "Unschedulable"};
  if (printable_status == "ErrorPvcNotFound") return {"Synchronized", "False", "FailedPvcNotFound"};
  if (printable_status == "DataVolumeError") return {"DataVolumesReady", "False", "DVError"};
  if (printable_status == "ErrImagePull" || printable_status == "ImagePullBackOff") {
    return {"Synchronized", "False", "ErrImagePull"};
  }
  return {"Failure", "True", "FailedCreate"};
}

// kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go,
// VirtualMachineInstancePhaseTransitionTimestamp.
void EnterPhase(Json& instance, const char* phase, base::WallTime at) {
  Json& status = instance["status"];
  status["phase"] = phase;
  status["phaseTransitionTimestamps"].push_back(
      {{"phase", phase}, {"phaseTransitionTimestamp", base::FormatRfc3339(at)}});
}

}  // namespace

// The controllers' first steps with a VM, one reaction time apart: it is Stopped and has its
// claims; then it starts. Harvester's finalizer comes last: a VM that is deleted before leaves its
// claims.
void Machines::Adopt(const std::string& uid) {
  const Object vm = VmOf(uid);
  if (vm == nullptr || IsTerminating(*vm)) return;
  Machine& machine = machines_.at(uid);
  AddFinalizer(machine, kKubeVirtFinalizer);
  MakeClaims(machine, *vm);
  Show(machine, "Stopped", false);
  world_.After(world_.options.reaction_time, [this, uid] {
    const Object now = VmOf(uid);
    if (now == nullptr || IsTerminating(*now)) return;
    AddFinalizer(machines_.at(uid), kHarvesterFinalizer);
    Boot(uid);
  });
}

void Machines::AddFinalizer(const Machine& machine, const char* finalizer) {
  Mutate(kVms, machine.ns, machine.name, [finalizer](Json& object) {
    Json& finalizers = object["metadata"]["finalizers"];
    if (!finalizers.is_array()) finalizers = Json::array();
    finalizers.push_back(finalizer);
  });
}

void Machines::Boot(const std::string& uid) {
  const Object vm = VmOf(uid);
  if (vm == nullptr || IsTerminating(*vm) || !Starts(*vm)) return;
  Machine& machine = machines_.at(uid);
  if (store_.Find(kInstances, machine.ns, machine.name) != nullptr) return;
  const std::uint64_t boot = ++machine.boot;
  if (machine.failure && machine.failure->printable_status == "Stopped") {
    Fail(machine);
    return;
  }
  Json instance = {{"metadata",
                    {{"name", machine.name},
                     {"namespace", machine.ns},
                     {"labels", (*vm)["metadata"].value("labels", Json::object())},
                     {"ownerReferences", Json::array({{{"apiVersion", ApiVersion(kVms)},
                                                       {"kind", kVms.kind},
                                                       {"name", machine.name},
                                                       {"uid", uid},
                                                       {"controller", true},
                                                       {"blockOwnerDeletion", true}}})}}},
                   {"spec", (*vm)["spec"]["template"].value("spec", Json::object())},
                   {"status", Json::object()}};
  EnterPhase(instance, "Pending", world_.wall());
  store_.Stamp(kInstances, instance);
  store_.Insert(kInstances, std::move(instance));
  Show(machine, boot == 1 ? "WaitingForVolumeBinding" : "Starting", true);
  if (machine.failure) {
    Fail(machine);
    return;
  }
  const base::Duration step = world_.options.reaction_time;
  if (boot == 1) {
    // Its first attempt to get a host comes before its claims are bound, and fails.
    world_.After(step, [this, uid, boot] { ShowStart(uid, boot, "ErrorUnschedulable"); });
    world_.After(step * 2, [this, uid, boot] { Schedule(uid, boot); });
  } else {
    Schedule(uid, boot);
  }
  const base::Duration time = world_.options.boot_time;
  world_.After(time / 4, [this, uid, boot] { SetPhase(uid, boot, "Scheduling"); });
  world_.After(time / 2, [this, uid, boot] { SetPhase(uid, boot, "Scheduled"); });
  const base::Duration passed = boot == 1 ? step * 2 : step;  // since the VM was made, or started
  world_.After(time - passed, [this, uid, boot] { Run(uid, boot); });
}

Machines::Machine* Machines::Booting(const std::string& uid, std::uint64_t boot) {
  const auto found = machines_.find(uid);
  const bool boots =
      found != machines_.end() && found->second.boot == boot && !found->second.ending;
  return boots ? &found->second : nullptr;
}

void Machines::Schedule(const std::string& uid, std::uint64_t boot) {
  const Machine* const machine = Booting(uid, boot);
  if (machine == nullptr) return;
  const Object instance = store_.Find(kInstances, machine->ns, machine->name);
  if (instance == nullptr) return;
  if (!FindAndBind(*instance, uid)) return;
  ShowStart(uid, boot, "Starting");
}

void Machines::ShowStart(const std::string& uid, std::uint64_t boot, const char* printable_status) {
  Machine* const machine = Booting(uid, boot);
  if (machine == nullptr) return;
  const Object instance = store_.Find(kInstances, machine->ns, machine->name);
  if (instance == nullptr || (*instance)["status"]["phase"] == "Running") return;
  Show(*machine, printable_status, true);
}

void Machines::Fail(Machine& machine) {
  const Failure failure = *machine.failure;
  Mutate(kVms, machine.ns, machine.name, [&failure, this](Json& vm) {
    vm["status"]["printableStatus"] = failure.printable_status;
    vm["status"]["ready"] = false;
    if (failure.printable_status == "Stopped") {
      // harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go, stopVM.
      vm["status"]["created"] = false;
      vm["spec"]["runStrategy"] = "Halted";
      vm["metadata"]["annotations"][kQuotaAnnotation] = failure.message;
      return;
    }
    const FaultCondition fault = ConditionOf(failure.printable_status);
    SetCondition(vm, fault.type, fault.status, fault.reason, failure.message, world_.wall());
  });
  const Object vm = store_.Find(kVms, machine.ns, machine.name);
  Emit(EventKind::kVmFailing, *vm, failure.printable_status + ": " + failure.message);
}

void Machines::SetPhase(const std::string& uid, std::uint64_t boot, const char* phase) {
  const Machine* const machine = Booting(uid, boot);
  if (machine == nullptr || machine->waits_for_host) return;
  Mutate(kInstances, machine->ns, machine->name, [&](Json& instance) {
    // A guest that boots faster than the controllers react runs already.
    if (instance["status"]["phase"] != "Running") EnterPhase(instance, phase, world_.wall());
  });
}

void Machines::Run(const std::string& uid, std::uint64_t boot) {
  Machine* const booting = Booting(uid, boot);
  if (booting == nullptr) return;
  Machine& machine = *booting;
  const Object vm = VmOf(uid);
  const Object instance = store_.Find(kInstances, machine.ns, machine.name);
  if (vm == nullptr || !Starts(*vm) || instance == nullptr || machine.waits_for_host) return;
  if ((*instance)["status"]["phase"] == "Running") return;
  // A guest that boots faster than the controllers react has no host yet.
  if (!FindAndBind(*instance, uid)) return;
  // Its pod cannot mount a missing Secret.
  machine.waits_for_secret = !UserDataOf(store_, *vm).has_value();
  if (machine.waits_for_secret) return;
  if (machine.address.empty()) machine.address = nomads_.first().state.NextAddress();
  const std::string address = machine.address;
  Mutate(kInstances, machine.ns, machine.name, [&](Json& running) {
    const std::string mac = "52:54:00:" + UidOf(running).substr(0, 2) + ":" +
                            UidOf(running).substr(2, 2) + ":" + UidOf(running).substr(4, 2);
    EnterPhase(running, "Running", world_.wall());
    running["status"]["interfaces"] = Json::array({{{"name", "nic-0"},
                                                    {"mac", mac},
                                                    {"ipAddress", address},
                                                    {"ipAddresses", Json::array({address})},
                                                    {"infoSource", "domain, guest-agent"}}});
    SetCondition(running, "Ready", "True", "", "", world_.wall());
    SetMigratable(running, !HasDevices(*vm), world_.wall());
  });
  Mutate(kVms, machine.ns, machine.name, [this](Json& object) {
    object["status"]["ready"] = true;
    object["status"]["printableStatus"] = "Running";
    SetCondition(object, "Ready", "True", "", "", world_.wall());
    SetMigratable(object, !HasDevices(object), world_.wall());
  });
  Emit(EventKind::kVmRunning, *VmOf(uid));
  if (machine.never_joins || UserDataOf(store_, *vm)->empty()) return;
  world_.After(world_.options.join_time, [this, uid, boot] { Join(uid, boot); });
}

void Machines::Join(const std::string& uid, std::uint64_t boot) {
  const auto found = machines_.find(uid);
  if (found == machines_.end() || found->second.boot != boot) return;
  Machine& machine = found->second;
  const Object vm = VmOf(uid);
  if (vm == nullptr || store_.Find(kInstances, machine.ns, machine.name) == nullptr) return;
  // A restarted machine keeps its disk, which holds the ID of its node.
  if (!machine.node_id.empty()) {
    machine.nomad->ReturnClient(machine.node_id);
    return;
  }
  const std::string user_data = UserDataOf(store_, *vm).value_or("");
  NodeSpec spec = ReadGuest(*vm, user_data);
  if (const auto name = guest_names_.find({machine.ns, machine.name}); name != guest_names_.end()) {
    spec.name = name->second;
    spec.attributes["unique.hostname"] = name->second;
    spec.meta.erase("harvester_vm_uuid");
  }
  // It tries again with the same token, and is refused for ever.
  NomadState& nomad = nomads_.At(spec.nomad).state;
  if (!nomad.Admits(spec, user_data)) return;
  machine.nomad = &nomad;
  machine.node_id = nomad.AddClient(std::move(spec), machine.address, machine.client);
}

}  // namespace nomad_harvester::simulator
