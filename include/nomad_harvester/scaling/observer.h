// SPDX-License-Identifier: Apache-2.0
// Reads both systems into a snapshot, and keeps the state that a single observation cannot provide.
#ifndef NOMAD_HARVESTER_SCALING_OBSERVER_H_
#define NOMAD_HARVESTER_SCALING_OBSERVER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/pending_reasons.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

class NomadReads;

// State of one pool kept between observations. Thread-safe: Status and the loop share it.
class ObserverMemory {
 public:
  // Fills in what the observation and its VMs have from earlier observations, and corrects the
  // observation's `now` (the terms of docs/behaviour.md). The observation must be linked.
  void Apply(base::MonoTime now, Observation* observation);
  // Records when the introduction token of a VM must next be renewed or checked.
  void RecordTokenOf(const std::string& vm_uid, base::MonoTime look_after_at);
  // The ids of the nodes that must not be read in full yet, because an earlier read failed, and why
  // it failed. The wait doubles from a second to a minute.
  std::map<std::string, std::string> UnreadUntil(base::MonoTime now) const;
  // Records which nodes could not be read now (`failed`, by ID), and why. The first failure of a
  // node is a WARN. Forgets nodes that are not `unread` any more.
  void RecordUnread(base::MonoTime now, const std::map<std::string, std::string>& failed,
                    const std::map<std::string, std::string>& unread, const log::Logger& logger);
  // The uid of the namespace: known once it was read, or as "" once reading it was forbidden. Apply
  // fills it in. nullopt: Harvester may be another one, so it is read anew.
  bool KnowsHarvester() const;
  void SetHarvester(std::optional<std::string> uid);
  // Sets the node on which the autoscaler itself runs. On an error the last known node stays. Apply
  // fills in the node and the error.
  void SetOwnNode(const absl::StatusOr<std::string>& id);
  // Returns the previous value.
  bool SetAllocationsUnread(bool unread);
  PendingReasons& pending_reasons() { return pending_reasons_; }
  // Records, by uid, the VMs of VmView::awaited_for and held_for. Drops the others.
  void RecordAwaiting(base::MonoTime now, const std::set<std::string>& unhealthy,
                      const std::set<std::string>& held);
  // True once a minute for each VM: what holds its drain should be read. RecordDrainWork sets it.
  bool TakeDrainWorkIsDue(base::MonoTime now, const std::string& uid);
  void RecordDrainWork(const std::string& uid, std::string held_by);
  // Sets VmView::stays_unrecorded of the VMs with these uids from now on.
  void RecordStaying(const std::set<std::string>& uids);

 private:
  // Since when a condition of a node holds without interruption. If ModifyIndex has changed, the
  // node may have recovered and failed again between two observations.
  struct NodeSince {
    base::MonoTime since{};
    std::uint64_t modify_index = 0;
  };
  struct Unread {
    std::string why;
    base::MonoTime next{};
    base::Duration wait{};
  };
  struct UnhealthySince {
    base::MonoTime since{};
    base::MonoTime last_seen{};
    std::uint64_t modify_index = 0;
  };
  struct DrainSince {
    std::string action;
    base::MonoTime since{};
  };
  // What is known about one VM.
  struct OfVm {
    base::MonoTime known_since{};
    base::Duration unreadable_before{};
    std::optional<base::MonoTime> failing_since{};
    std::optional<UnhealthySince> unhealthy{};
    std::optional<DrainSince> drain_known{};
    std::optional<NodeSince> drained{};
    base::MonoTime drain_work_next = base::MonoTime::min();
    std::string drain_held_by{};
    std::optional<base::MonoTime> awaiting_since{};
    std::optional<base::MonoTime> held_since{};
    std::optional<base::MonoTime> deleting_since{};
    bool seen_new = false;
    bool stays = false;

    // What is timed by Nomad's nodes stands still for that long.
    void Pause(base::Duration passed);
  };
  static base::Duration For(std::optional<NodeSince>* known, const nomad::Node& node,
                            base::MonoTime now);
  // `seeds`: the object's own time counts, because this process has just begun to observe it.
  static void ApplyStartFailure(base::MonoTime now, base::WallTime wall_now, bool seeds,
                                OfVm* known, VmView* view);
  static void ApplyDrain(base::MonoTime now, const nomad::Node* node, OfVm* known, VmView* view);
  static void ApplyUnhealthy(base::MonoTime now, const Observation& observation, OfVm* known,
                             VmView* view);
  void ApplyLostNodes(base::MonoTime now, Observation* observation) NH_REQUIRES(mutex_);
  void ApplyInitializing(base::MonoTime now, Observation* observation) NH_REQUIRES(mutex_);
  void CorrectNow(base::MonoTime now, Observation* observation) NH_REQUIRES(mutex_);

  PendingReasons pending_reasons_;
  mutable base::Mutex mutex_;
  // By VM uid: of every VM of the last observation.
  std::unordered_map<std::string, OfVm> of_vm_ NH_GUARDED_BY(mutex_);
  // By VM uid: RecordTokenOf may come before an observation has the VM.
  std::map<std::string, base::MonoTime> tokens_ NH_GUARDED_BY(mutex_);
  // The `now` of the last observation, and when that was.
  std::optional<std::pair<base::WallTime, base::MonoTime>> last_now_ NH_GUARDED_BY(mutex_);
  std::map<std::string, std::optional<NodeSince>> down_since_ NH_GUARDED_BY(mutex_);  // by node ID
  std::map<std::string, base::MonoTime> initializing_since_ NH_GUARDED_BY(mutex_);    // by node ID
  std::optional<base::MonoTime> unreadable_since_ NH_GUARDED_BY(mutex_);
  base::Duration unreadable_total_ NH_GUARDED_BY(mutex_){};
  std::optional<std::string> harvester_ NH_GUARDED_BY(mutex_);
  std::string own_node_ NH_GUARDED_BY(mutex_);
  absl::Status own_node_problem_ NH_GUARDED_BY(mutex_);
  bool allocations_unread_ NH_GUARDED_BY(mutex_) = false;
  std::map<std::string, Unread> unread_ NH_GUARDED_BY(mutex_);  // by node ID
};

// Performs the loop's reads. Not thread-safe; the objects it refers to are.
class Observer {
 public:
  // The change that an observation waits for.
  struct BlockingWait {
    // Index for a blocking query: first wait for a change after it.
    std::uint64_t after_index = 0;
    base::Duration wait{};
    // Time limit for the node list, so that an unresponsive Nomad leaves time to read Harvester.
    base::Duration nodes_limit = base::Duration::max();
  };

  Observer(const nomad::NomadClient& nomad, NomadReads& reads, const harvester::VmStore& vms,
           ObserverMemory& memory, runtime::Executor& executor, log::Logger logger);

  // Reads nodes before VMs, so that a VM observed without a node had none when the nodes were read.
  // Reads VMs and instances concurrently. If another pool made a VM meanwhile, reads the nodes
  // again (ListIsOlderThanVms). An unreadable Nomad is no error here (Observation::nomad says why);
  // an unreadable Harvester is. `base` provides region and policy.
  absl::StatusOr<Observation> Observe(const runtime::Context& context, Observation base,
                                      const BlockingWait& blocking);

  // Reads the region's allocations in one request, for selecting VMs by load. A token without
  // read-job is no error: the list is then incomplete.
  absl::StatusOr<AllocationList> ReadAllocations(const runtime::Context& context) const;

 private:
  // VMs and their instances. If `instances` is an error, those cannot be listed.
  struct VmsAndInstances {
    harvester::Timestamped<std::vector<harvester::VirtualMachine>> vms;
    absl::StatusOr<std::vector<harvester::VirtualMachineInstance>> instances;
  };

  // Reads both lists concurrently, or only the VMs. Fails if Harvester cannot be read.
  absl::StatusOr<VmsAndInstances> ReadVmsAndInstances(const runtime::Context& context,
                                                      bool with_instances) const;
  void ReadNodes(const runtime::Context& context, const BlockingWait& blocking,
                 Observation* observation);
  // Returns true if nodes were kept without an attribute that is needed now.
  bool NeedAttributes(const Observation& observation) const;
  void CompleteNodes(const runtime::Context& context, Observation* observation);
  static void SetInstances(std::vector<harvester::VirtualMachineInstance> instances,
                           Observation* observation);
  // Reads the allocations of nodes that must be idle, if there are any: in one list, or node by
  // node if the list fails and IsRetryable is false. A node whose allocations are unknown is not
  // idle. Fails if the context ended.
  absl::Status ReadIdleness(const runtime::Context& context, Observation* observation) const;
  void ReadHarvester(const runtime::Context& context) const;
  void ReadDetails(const runtime::Context& context, Observation* observation);
  void ReadNodesOfMarked(const runtime::Context& context, Observation* observation);
  void ReadDrainWork(const runtime::Context& context, Observation* observation) const;

  const nomad::NomadClient& nomad_;
  NomadReads& reads_;
  const harvester::VmStore& vms_;
  ObserverMemory& memory_;
  runtime::Executor& executor_;
  const log::Logger logger_;
};

// Puts the nodes and the keys into the observation. If the list is an error, or the call was
// cancelled, Nomad is unreadable.
void TakeNodes(const absl::StatusOr<nomad::Indexed<NodeList>>& nodes,
               const absl::StatusOr<std::string>& cluster, Observation* observation);

// True if a GET of the VM's node by ID proves that the node does not exist: a 404 of a Nomad whose
// index is at least that in the VM's `nodes` (rule C15).
bool IsGone(const absl::Status& read, const harvester::VirtualMachine& vm);
// True if what has failed may succeed when requested again. Callers of a list then do not fall back
// to many single requests, which would add load.
bool IsRetryable(const absl::Status& failed);
// Reads the allocations of these nodes with one request each, `at_once` concurrently. The results
// are in the order of the nodes. After a few errors the remaining nodes are not read and get
// UNAVAILABLE.
std::vector<absl::StatusOr<Allocations>> ReadAllocationsOf(const runtime::Context& context,
                                                           runtime::Executor& executor,
                                                           const nomad::NomadClient& nomad,
                                                           const std::vector<std::string>& nodes,
                                                           std::size_t at_once);
// UNAVAILABLE if a node list with this index is older than the VM, or comes from another or a
// restored Nomad (rule C15). OK for a VM that is not a member, or that belongs to another Nomad
// than the Observation's.
absl::Status CheckListIndex(const VmView& view, const Observation& observation,
                            std::uint64_t index);
// True if the list's index is below a VM's. Another pool may have made the VM after the list was
// requested; requesting the list again shows whether that is so.
bool ListIsOlderThanVms(const Observation& observation);
// Marks Nomad as unreadable if the list is older than a VM although it was requested after the VMs
// were read, or if Nomad's keys were not read although VMs have recorded them.
void CheckIndex(Observation* observation);

// Stubs that must be read in full before the links can be trusted (rule C6): pool members whose
// Name is not a VM's, nodes that could be a VM which seems broken, and candidates of a VM that has
// several. Returns indexes into observation.nodes(). O(VMs + nodes).
std::vector<std::size_t> NodesToReadInFull(const Observation& observation);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_OBSERVER_H_
