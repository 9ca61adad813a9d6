// SPDX-License-Identifier: Apache-2.0
// Derives the state of a VM from its fields.
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/harvester/virtual_machine.h"

#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

// A printableStatus that means a failing start, and the condition with its time and cause
// (kubevirt/kubevirt:pkg/virt-controller/watch/vm/vm.go, setPrintableStatus and the
// isVirtualMachineStatus… functions that it calls).
struct FailingStatus {
  std::string_view printable;
  std::string_view condition;
};
constexpr std::string_view kUnschedulable = "ErrorUnschedulable";
constexpr std::array<FailingStatus, 6> kFailingStatuses = {{
    {kUnschedulable, "PodScheduled"},
    {"ErrorPvcNotFound", "Synchronized"},
    {"DataVolumeError", "DataVolumesReady"},
    {"ErrImagePull", "Synchronized"},
    {"ImagePullBackOff", "Synchronized"},
    {"CrashLoopBackOff", "Failure"},
}};

// The scheduler's message for a volume that is still being provisioned
// (kubernetes/kubernetes:pkg/scheduler/framework/plugins/volumebinding/volume_binding.go). Without
// the pod's own message it may be the first attempt's, which is another reason to wait for the join
// timeout.
constexpr std::string_view kUnboundClaims = "unbound immediate PersistentVolumeClaims";

// The guest runs, is being stopped or has stopped: no start can fail, whatever the conditions say.
bool IsBeyondStarting(std::string_view printable) {
  return printable == "Running" || printable == "Migrating" || printable == "Paused" ||
         printable == "Stopping" || printable == "Stopped" || printable == "Terminating";
}

std::string Words(std::string_view status, const Condition* condition) {
  std::string words(status);
  if (condition == nullptr) return words;
  const std::string& detail = condition->message.empty() ? condition->reason : condition->message;
  if (!detail.empty()) words += ": " + detail;
  return words;
}

// The condition of that type if it reports a fault.
const Condition* FaultOf(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* condition = FindCondition(conditions, type);
  return condition != nullptr && ReportsFault(*condition) ? condition : nullptr;
}

// The first of these conditions that reports a fault (see FaultOf).
std::optional<StartFailure> FirstFault(const std::vector<Condition>& conditions,
                                       std::initializer_list<std::string_view> types) {
  for (const std::string_view type : types) {
    const Condition* condition = FaultOf(conditions, type);
    if (condition == nullptr) continue;
    return StartFailure{
        .reason = Words(condition->reason.empty() ? type : condition->reason, condition),
        .since = condition->last_transition};
  }
  return std::nullopt;
}

std::string FirstTrouble(const std::vector<Condition>& conditions,
                         std::initializer_list<std::string_view> types) {
  return FirstFault(conditions, types).value_or(StartFailure{}).reason;
}

std::optional<StartFailure> FromPrintableStatus(const VirtualMachine& vm,
                                                std::string_view pod_message) {
  for (const FailingStatus& failing : kFailingStatuses) {
    if (vm.printable_status != failing.printable) continue;
    const Condition* condition = FaultOf(vm.conditions, failing.condition);
    // DataVolumeError and CrashLoopBackOff may occur without their condition.
    std::string reason = Words(
        failing.printable, condition != nullptr ? condition : FaultOf(vm.conditions, "Failure"));
    if (failing.printable == kUnschedulable && !pod_message.empty()) {
      reason = std::string(kUnschedulable).append(": ").append(pod_message);
    }
    return StartFailure{.reason = reason,
                        .only_at_join_timeout = reason.find(kUnboundClaims) != std::string::npos,
                        .since = condition == nullptr ? std::nullopt : condition->last_transition};
  }
  return std::nullopt;
}

// The annotation remains after the halt until the VM runs again
// (harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go,
// cleanUpInsufficientResourceAnnotation).
bool IsHaltedByQuota(const VirtualMachine& vm) { return !vm.quota_halt.empty() && IsStopped(vm); }

}  // namespace

bool IsMember(const VirtualMachine& vm) {
  if (vm.pool.empty() || vm.firmware_uuid.empty()) return false;
  const std::string_view self = vm.self;
  const std::size_t slash = self.find('/');
  return slash != std::string::npos && self.substr(0, slash) == vm.name &&
         base::EqualsIgnoreCase(self.substr(slash + 1), vm.firmware_uuid);
}

bool IsPausedOrMigrating(const VirtualMachine& vm) {
  return (vm.printable_status == "Paused" && DiskFault(vm).empty()) ||
         vm.printable_status == "Migrating";
}

bool ReportsFault(const Condition& condition) {
  const bool is_of_faults = condition.type == "Failure" || condition.type == "Paused";
  return condition.status == (is_of_faults ? "True" : "False");
}

bool CannotMigrate(const VirtualMachine& vm) {
  return FaultOf(vm.conditions, "LiveMigratable") != nullptr;
}

std::string DiskFault(const VirtualMachine& vm) {
  const Condition* paused = FaultOf(vm.conditions, "Paused");
  const bool by_fault =
      vm.printable_status == "Paused" && paused != nullptr && paused->reason == "PausedIOError";
  return by_fault ? Words(paused->reason, paused) : "";
}

bool IsStopped(const VirtualMachine& vm) {
  if (IsTerminating(vm)) return false;
  if (vm.printable_status != "Stopped") return vm.run_strategy == kHalted && !vm.instance_exists;
  // With these strategies KubeVirt removes the instance of a guest that has ended, and restarts it
  // after a crash. Until then, for up to a second, the VM is Stopped and has its instance.
  const bool by_kubevirt = vm.run_strategy == "Always" || vm.run_strategy == "RerunOnFailure";
  return !vm.instance_exists || !by_kubevirt;
}

bool IsInMaintenance(const VirtualMachine& vm) {
  return !vm.stopped_for_host.empty() && IsStopped(vm);
}

bool WaitsToStart(const VirtualMachine& vm) {
  return vm.replaces.has_value() && !vm.replaces->start.empty() && vm.run_strategy == kHalted &&
         !HasJoined(vm);
}

bool IsRunning(const VirtualMachine& vm) {
  return vm.ready || vm.printable_status == "Running" || vm.printable_status == "Migrating" ||
         vm.printable_status == "Paused";
}

bool IsRunning(const VirtualMachineInstance& instance) {
  return instance.phase == "Running" || instance.phase == "Unknown";
}

std::optional<base::WallTime> PhaseBegan(const VirtualMachineInstance& instance) {
  std::optional<base::WallTime> began;
  for (const VirtualMachineInstance::PhaseBegin& phase : instance.phases) {
    if (phase.phase == instance.phase) began = phase.at;
  }
  return began;
}

bool IsAgentConnected(const VirtualMachineInstance& instance) {
  const Condition* condition = FindCondition(instance.conditions, "AgentConnected");
  return condition != nullptr && condition->status == "True";
}

// kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go, VirtualMachineConditionType.
std::string TroubleOf(const VirtualMachine& vm) {
  return FirstTrouble(vm.conditions,
                      {"Failure", "PodScheduled", "DataVolumesReady", "Synchronized"});
}

// The same file, VirtualMachineInstanceConditionType.
std::string TroubleOf(const VirtualMachineInstance& instance) {
  return FirstTrouble(instance.conditions,
                      {"PodScheduled", "DataVolumesReady", "Provisioning", "Synchronized"});
}

bool IsUnschedulable(const VirtualMachine& vm) { return vm.printable_status == kUnschedulable; }

bool LacksRoom(const VirtualMachine& vm) { return IsUnschedulable(vm) || IsHaltedByQuota(vm); }

std::optional<StartFailure> FindStartFailure(const VirtualMachine& vm,
                                             std::string_view pod_message) {
  if (IsTerminating(vm)) return std::nullopt;
  if (IsHaltedByQuota(vm)) {
    return StartFailure{.reason = "halted by Harvester: " + vm.quota_halt, .immediate = true};
  }
  if (IsBeyondStarting(vm.printable_status)) return std::nullopt;
  if (auto failure = FromPrintableStatus(vm, pod_message)) return failure;
  return FirstFault(vm.conditions, {"Failure", "Synchronized"});
}

}  // namespace nomad_harvester::harvester
