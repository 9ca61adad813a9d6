// SPDX-License-Identifier: Apache-2.0
// A VirtualMachine as the plugin sees it.
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

// How long a VM may take to join.
struct JoinTimeout {
  bool none = false;  // annotation "none": no deadline
  base::Duration limit{};
};

// Plain data; read from a kubevirt.io/v1 VirtualMachine. Strings of Kubernetes are kept as they
// are.
struct VirtualMachine {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  base::WallTime created_at{};
  std::optional<base::WallTime> deleted_at;  // deletionTimestamp: terminating
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;

  std::string pool;           // label; empty: none
  std::string firmware_uuid;  // spec, lower case
  std::string action_id;
  std::optional<JoinTimeout> join_timeout;  // absent or unreadable annotation: nothing
  std::optional<NodesRecord> nodes;         // likewise
  std::string joined_node_id;
  std::optional<base::WallTime> joined_at;  // joined, if present
  bool has_mark = false;                    // the annotation is there, readable or not
  std::optional<Mark> mark;                 // it is readable
  std::string rolled_back;
  bool is_protected = false;  // annotation protect, Go bool; unreadable counts as true
  bool delete_first = false;

  std::string run_strategy;
  std::string printable_status;  // §"printableStatus"; empty right after creation
  bool instance_exists = false;  // status.created
  bool ready = false;
  std::vector<Condition> conditions;
  std::string quota_halt;                // harvesterhci.io/insufficient-resource-quota
  std::vector<std::string> claim_names;  // of all volumes
  std::vector<std::string> secret_names;

  // Kubernetes' termination grace of the guest; 120 s, Harvester's default, if it is not set.
  base::Duration termination_grace = std::chrono::seconds(120);
};

// Whatever the object holds is read: members that are missing or of another type are absent. A
// joined-at that cannot be read counts as joined since the VM's creation.
VirtualMachine ParseVirtualMachine(const nlohmann::json& object);

// Label and a `self` that is this very VM: a clone or a restored copy has another name or UUID.
bool IsMember(const VirtualMachine& vm);
inline bool IsTerminating(const VirtualMachine& vm) { return vm.deleted_at.has_value(); }
inline bool HasJoined(const VirtualMachine& vm) { return vm.joined_at.has_value(); }
// The guest does not run and nothing is under way to start it: printableStatus Stopped, or a run
// strategy Halted without an instance. Paused and migrating VMs are not stopped.
bool IsStopped(const VirtualMachine& vm);
// KubeVirt says that its guest runs: Running, Migrating or Paused, or the object is Ready.
bool IsRunning(const VirtualMachine& vm);

// Why the VM cannot start, if KubeVirt or Harvester says so (rule C3). `since`: when the state was
// entered, where the object tells; a halt by quota counts at once (immediate).
// kubevirt/kubevirt:pkg/virt-controller/watch/vm/vm.go setPrintableStatus.
struct StartFailure {
  std::string reason;  // KubeVirt's or Harvester's own words
  bool immediate = false;
  // A state that may last until the join timeout: unbound immediate PersistentVolumeClaims.
  bool only_at_join_timeout = false;
  std::optional<base::WallTime> since;
};
std::optional<StartFailure> FindStartFailure(const VirtualMachine& vm);

struct VirtualMachineInstance {
  std::string name;
  std::string phase;  // "", Pending, Scheduling, Scheduled, Running, Succeeded, Failed, Unknown
  std::vector<std::string> addresses;
};
VirtualMachineInstance ParseInstance(const nlohmann::json& object);
// Its guest runs, or may run: KubeVirt has lost sight of an Unknown one.
bool IsRunning(const VirtualMachineInstance& instance);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_VIRTUAL_MACHINE_H_
