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

// The time a VM may take to become ready.
struct JoinTimeout {
  bool none = false;  // annotation "none": no deadline
  base::Duration limit{};
};

// The metadata common to all Kubernetes objects. Missing members are empty.
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
// Labels are dropped. Of the annotations only `protect` and `delete-first` are kept, because a
// misread one is told; the members hold the others' content.
struct VirtualMachine : ObjectMetadata {
  std::string pool;           // label; empty: none, or the label managed-by is not ours
  std::string firmware_uuid;  // spec, lower case
  std::string self;           // annotation
  std::string action_id;
  std::string template_hash;
  std::string template_parts;
  std::string zone;                         // the zone in which it must run; empty: not recorded
  std::optional<JoinTimeout> join_timeout;  // unset if the annotation is absent or unreadable
  std::optional<NodesRecord> nodes;         // unset if absent or unreadable
  // The keys of its Nomad cluster, as returned by nomad::NomadClient::ReadClusterKeys; empty: not
  // recorded.
  std::string nomad_cluster;
  std::string joined_node_id;
  std::optional<base::WallTime> joined_at;  // set if its node has registered
  // Its node has registered but has not been seen ready. False for a VM that joined before the
  // plugin recorded that.
  bool awaits_ready = false;
  // When its node was first seen ready, if recorded.
  std::optional<base::WallTime> ready_at;
  bool has_mark = false;     // the annotation is present, readable or not
  std::optional<Mark> mark;  // set if it is readable
  std::string rolled_back;
  // The last removal that the plugin gave up; unset if absent or unreadable.
  std::optional<CancelledRemoval> removal_undone;
  // Whether the annotation published-host is present, readable or not; and its content if readable.
  bool has_published_host = false;
  std::optional<PublishedHost> published_host;
  base::Hold protect;  // an absent annotation does not hold
  bool delete_first = false;
  std::vector<std::string> holds;    // the names behind kHoldAnnotationPrefix, sorted
  std::string replace_request;       // annotation `replace`; empty: none
  std::optional<Replaces> replaces;  // unset if absent or unreadable

  std::string run_strategy;
  std::string printable_status;  // status.printableStatus; empty right after creation
  bool instance_exists = false;  // status.created
  bool ready = false;
  std::vector<Condition> conditions;  // those that report a fault
  std::string quota_halt;             // harvesterhci.io/insufficient-resource-quota
  // The host for whose maintenance Harvester stopped the VM, which it will start again; empty: none
  // (harvester/harvester:pkg/controller/master/nodedrain/nodedrain_controller.go).
  std::string stopped_for_host;
  std::vector<std::string> claim_names;     // of all volumes
  std::vector<std::string> removed_claims;  // kRemovedClaimsAnnotation

  // Kubernetes' termination grace period of the guest; by default Harvester's 120 s.
  base::Duration termination_grace = std::chrono::seconds(120);
};

// Reads leniently: members that are missing or of another type count as absent. With an unreadable
// joined-at, the VM counts as joined since its creation.
VirtualMachine ParseVirtualMachine(const nlohmann::json& object);

// True if it has the label and a `self` that names this VM; a clone or restored copy has another
// name or UUID.
bool IsMember(const VirtualMachine& vm);
// True if the guest has run and is currently paused or migrating. Its work continues afterwards.
// Until then Nomad cannot hear its client.
bool IsPausedOrMigrating(const VirtualMachine& vm);
// Returns KubeVirt's message if it paused the guest because of a disk fault; otherwise empty. Such
// a guest may never continue (kubevirt/kubevirt:pkg/virt-handler/vm.go, "PausedIOError").
std::string DiskFault(const VirtualMachine& vm);
// True if KubeVirt says that the guest cannot move to another host (condition LiveMigratable), for
// example because it uses a device of its host. Harvester refuses maintenance mode for that host.
bool CannotMigrate(const VirtualMachine& vm);
inline bool IsTerminating(const VirtualMachine& vm) { return vm.deleted_at.has_value(); }
// True if its node has registered.
inline bool HasJoined(const VirtualMachine& vm) { return vm.joined_at.has_value(); }
// True if its node has registered and was ready at some time.
inline bool WasReady(const VirtualMachine& vm) { return HasJoined(vm) && !vm.awaits_ready; }
// True if the guest does not run and is not being started: printableStatus Stopped, or run strategy
// Halted without an instance. False for paused and migrating VMs, and for one whose guest has
// crashed or is restarting.
bool IsStopped(const VirtualMachine& vm);
// True if it was stopped for its host's maintenance, and will be started again.
bool IsInMaintenance(const VirtualMachine& vm);
// The run strategy of a VM that KubeVirt does not run.
inline constexpr char kHalted[] = "Halted";
// True if the VM has never run, and starts once the VM that it replaces is gone (Replaces::start).
bool WaitsToStart(const VirtualMachine& vm);
// True if KubeVirt reports a running guest: Running, Migrating or Paused, or the object is Ready.
bool IsRunning(const VirtualMachine& vm);

// Returns the claims of the VM's spec that must be deleted with it: those in removed_claims, and
// those that Harvester restored in place of one of them. A restore in place gives the volumes of
// the spec new claims but does not change the annotation
// (harvester/harvester:pkg/controller/master/backup/restore.go). Volumes attached to the VM are not
// included.
std::vector<std::string> ClaimsThatGoWith(const VirtualMachine& vm);

// The reason why the VM cannot start, if KubeVirt or Harvester reports one (rule C3). `since`: when
// the VM entered the state, if the object says so. A halt by a quota counts immediately
// (immediate). kubevirt/kubevirt:pkg/virt-controller/watch/vm/vm.go setPrintableStatus.
struct StartFailure {
  std::string reason{};  // KubeVirt's or Harvester's message
  bool immediate = false;
  // The state may last until the join timeout: unbound immediate PersistentVolumeClaims.
  bool only_at_join_timeout = false;
  std::optional<base::WallTime> since{};
};
// `pod_message`: the scheduler's current message about its pod, if known. KubeVirt's condition
// keeps the message of the first attempt, which is nearly always about volumes that are not bound
// yet (kubevirt/kubevirt:pkg/controller/conditions.go, UpdateCondition).
std::optional<StartFailure> FindStartFailure(const VirtualMachine& vm,
                                             std::string_view pod_message = "");
// True if KubeVirt says that no host accepts its pod, or that its volumes are not bound yet.
bool IsUnschedulable(const VirtualMachine& vm);
// True if the VM does not run for want of room: IsUnschedulable, or halted by a quota (rule C3).
bool LacksRoom(const VirtualMachine& vm);

struct VirtualMachineInstance {
  std::string name;
  std::string phase;  // "", Pending, Scheduling, Scheduled, Running, Succeeded, Failed, Unknown
  // The host on which the guest runs; empty: none yet. During a live migration it is the old one
  // until the guest has moved (kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go,
  // VirtualMachineInstanceStatus).
  std::string host;
  std::vector<std::string> addresses;
  std::vector<Condition> conditions;
  // When the instance entered its phases, as far as the object says so.
  struct PhaseBegin {
    std::string phase;
    std::optional<base::WallTime> at;
  };
  std::vector<PhaseBegin> phases;
};
VirtualMachineInstance ParseInstance(const nlohmann::json& object);
// When the instance entered its current phase, if the object says so.
std::optional<base::WallTime> PhaseBegan(const VirtualMachineInstance& instance);
// True if KubeVirt reaches the guest agent, which the examples install.
bool IsAgentConnected(const VirtualMachineInstance& instance);
// The reason and message of the first condition that reports a fault or a wait, as written by the
// scheduler, KubeVirt or CDI. Empty: none does.
std::string TroubleOf(const VirtualMachine& vm);
std::string TroubleOf(const VirtualMachineInstance& instance);
// True if its guest runs or may run: in phase Unknown, KubeVirt has lost contact with it.
bool IsRunning(const VirtualMachineInstance& instance);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_VIRTUAL_MACHINE_H_
