// SPDX-License-Identifier: Apache-2.0
// The fields of a VirtualMachine that the plugin uses.
#ifndef NOMAD_HARVESTER_HARVESTER_VIRTUAL_MACHINE_H_
#define NOMAD_HARVESTER_HARVESTER_VIRTUAL_MACHINE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/metadata.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

struct Condition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason;
  std::string message;
  std::optional<base::WallTime> last_transition;
};

// How long a VM may take until it is ready.
struct JoinTimeout {
  bool none = false;  // annotation "none": no deadline
  base::Duration limit{};
};

// The metadata that all Kubernetes objects have in common. Missing members are empty.
struct ObjectMetadata {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  base::WallTime created_at{};
  std::optional<base::WallTime> deleted_at;  // deletionTimestamp: terminating
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};

// Plain data, read from a kubevirt.io/v1 VirtualMachine. Kubernetes' strings are kept unchanged.
// Labels are not kept. Of the annotations only `self`, `template-hash` and `template-parts` are
// kept; the members have the content of the others.
struct VirtualMachine : ObjectMetadata {
  std::string pool;           // label; empty: none, or the label managed-by is not ours
  std::string firmware_uuid;  // spec, lower case
  std::string action_id;
  std::string zone;                         // in which it must run; empty: not recorded
  std::optional<JoinTimeout> join_timeout;  // unset if the annotation is absent or unreadable
  std::optional<NodesRecord> nodes;         // unset if absent or unreadable
  // The keys of the Nomad cluster that it belongs to, as nomad::NomadClient::ReadClusterKeys
  // returns them; empty: not recorded.
  std::string nomad_cluster;
  std::string joined_node_id;
  std::optional<base::WallTime> joined_at;  // set if its node has registered
  // Its node has registered, and was not seen ready yet. False for a VM that joined before the
  // plugin recorded that.
  bool awaits_ready = false;
  // When its node was first seen ready, if that is recorded.
  std::optional<base::WallTime> ready_at;
  bool has_mark = false;     // the annotation is present, readable or not
  std::optional<Mark> mark;  // set if it is readable
  std::string rolled_back;
  // The last removal that the plugin gave up; unset if absent or unreadable.
  std::optional<UndoneRemoval> removal_undone;
  // Whether the annotation published-host is present, readable or not, and its content if it is
  // readable.
  bool has_published_host = false;
  std::optional<PublishedHost> published_host;
  Hold protect;  // an absent annotation does not hold
  bool delete_first = false;
  std::vector<std::string> holds;    // the names behind kHoldAnnotationPrefix, sorted
  std::string replace_request;       // annotation `replace`; empty: none
  std::optional<Replaces> replaces;  // unset if absent or unreadable

  std::string run_strategy;
  std::string printable_status;  // status.printableStatus; empty right after creation
  bool instance_exists = false;  // status.created
  bool ready = false;
  std::vector<Condition> conditions;
  std::string quota_halt;  // harvesterhci.io/insufficient-resource-quota
  // Harvester stopped it for the maintenance of this host, and starts it again; empty: it did not
  // (harvester/harvester:pkg/controller/master/nodedrain/nodedrain_controller.go).
  std::string stopped_for_host;
  std::vector<std::string> claim_names;     // of all volumes
  std::vector<std::string> removed_claims;  // kRemovedClaimsAnnotation

  // Kubernetes' termination grace period of the guest; Harvester's default of 120 s if it is not
  // set.
  base::Duration termination_grace = std::chrono::seconds(120);
};

// Reads leniently: members that are missing or of another type count as absent. With an unreadable
// joined-at, the VM counts as joined since its creation.
VirtualMachine ParseVirtualMachine(const nlohmann::json& object);

// Has the label and a `self` that names this VM: a clone or a restored copy has another name or
// UUID.
bool IsMember(const VirtualMachine& vm);
// The guest has run, and is paused by somebody or migrates. Its work goes on afterwards. Until then
// Nomad cannot hear its client.
bool IsPausedOrMigrating(const VirtualMachine& vm);
// KubeVirt's words if it paused the guest because its disk fails; else empty. Nobody knows whether
// such a guest ever goes on (kubevirt/kubevirt:pkg/virt-handler/vm.go, "PausedIOError").
std::string DiskFault(const VirtualMachine& vm);
// KubeVirt says that the guest cannot move to another host (condition LiveMigratable): one with a
// device of its host, for example. Maintenance mode is refused for the host of such a guest.
bool CannotMigrate(const VirtualMachine& vm);
inline bool IsTerminating(const VirtualMachine& vm) { return vm.deleted_at.has_value(); }
// Its node has registered.
inline bool HasJoined(const VirtualMachine& vm) { return vm.joined_at.has_value(); }
// Its node has registered, and was ready at some time.
inline bool WasReady(const VirtualMachine& vm) { return HasJoined(vm) && !vm.awaits_ready; }
// The guest does not run and is not being started: printableStatus Stopped, or run strategy Halted
// without an instance. Paused and migrating VMs are not stopped, nor is one whose guest has crashed
// or restarts.
bool IsStopped(const VirtualMachine& vm);
// It is stopped because its host is in maintenance, and will be started again.
bool IsInMaintenance(const VirtualMachine& vm);
// The run strategy of a VM that KubeVirt does not run.
inline constexpr char kHalted[] = "Halted";
// Replaces::start: the VM has never run, and starts once the VM is gone whose place it takes.
bool WaitsToStart(const VirtualMachine& vm);
// KubeVirt reports a running guest: Running, Migrating or Paused, or the object is Ready.
bool IsRunning(const VirtualMachine& vm);

// The claims of the VM's spec that are to be deleted with it: those in removed_claims, and those
// that Harvester restored in the place of one. A restore in place gives the volumes of the spec new
// claims, but leaves the annotation as it is
// (harvester/harvester:pkg/controller/master/backup/restore.go). A volume that was attached to the
// VM is not among them.
std::vector<std::string> ClaimsThatGoWith(const VirtualMachine& vm);

// Why the VM cannot start, if KubeVirt or Harvester reports it (rule C3). `since`: when the VM
// entered the state, if the object has it. A halt by quota counts immediately (immediate).
// kubevirt/kubevirt:pkg/virt-controller/watch/vm/vm.go setPrintableStatus.
struct StartFailure {
  std::string reason{};  // KubeVirt's or Harvester's message
  bool immediate = false;
  // The state may last until the join timeout: unbound immediate PersistentVolumeClaims.
  bool only_at_join_timeout = false;
  std::optional<base::WallTime> since{};
};
// `pod_message`: what the scheduler says about its pod now, if that is known. KubeVirt's condition
// keeps the message of the first attempt, which is nearly always about volumes that are not bound
// yet (kubevirt/kubevirt:pkg/controller/conditions.go, UpdateCondition).
std::optional<StartFailure> FindStartFailure(const VirtualMachine& vm,
                                             std::string_view pod_message = "");
// KubeVirt says that no host takes its pod, or that its volumes are not bound yet.
bool IsUnschedulable(const VirtualMachine& vm);

struct VirtualMachineInstance {
  std::string name;
  std::string phase;  // "", Pending, Scheduling, Scheduled, Running, Succeeded, Failed, Unknown
  // The host on which the guest runs; empty: on none yet. During a live migration it is the old
  // one, until the guest has moved (kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go,
  // VirtualMachineInstanceStatus).
  std::string host;
  std::vector<std::string> addresses;
  std::vector<Condition> conditions;
  // When the instance entered its phases, as far as the object has the times.
  struct PhaseBegin {
    std::string phase;
    std::optional<base::WallTime> at;
  };
  std::vector<PhaseBegin> phases;
};
VirtualMachineInstance ParseInstance(const nlohmann::json& object);
// When the instance entered its present phase, if the object has the time.
std::optional<base::WallTime> PhaseBegan(const VirtualMachineInstance& instance);
// KubeVirt reaches the guest agent, which the examples install.
bool IsAgentConnected(const VirtualMachineInstance& instance);
// The reason and message of the first condition that reports a fault or a wait, in the words of the
// scheduler, KubeVirt or CDI. Empty: no condition reports one.
std::string TroubleOf(const VirtualMachine& vm);
std::string TroubleOf(const VirtualMachineInstance& instance);
// Its guest runs or may run: in phase Unknown, KubeVirt has lost contact with it.
bool IsRunning(const VirtualMachineInstance& instance);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_VIRTUAL_MACHINE_H_
