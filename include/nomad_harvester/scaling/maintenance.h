// SPDX-License-Identifier: Apache-2.0
// Operations for commands: observe a pool as Status does, and run Status' background work to
// collect the leftovers of an interrupted action.
#ifndef NOMAD_HARVESTER_SCALING_MAINTENANCE_H_
#define NOMAD_HARVESTER_SCALING_MAINTENANCE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_event.h"
#include "nomad_harvester/harvester/vm_history.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/check.h"
#include "nomad_harvester/scaling/clients.h"
#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/scaling/proposal.h"
#include "nomad_harvester/scaling/reconcile_event.h"
#include "nomad_harvester/scaling/snapshot.h"
#include "nomad_harvester/scaling/status_report.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

struct Rendering;  // rendering.h

struct MaintenanceOptions {
  runtime::Clock* clock = nullptr;  // outlives the maintenance, as does the executor
  std::shared_ptr<runtime::Random> random;
  log::Logger logger;
  // For the loop's log records; most of them are also reported as events.
  log::Logger loop_logger;
  runtime::Executor* executor = nullptr;
  // Identifies this process on the pool's Lease; unique.
  std::string holder;
};

// The state of the pool's Lease, read without acquiring it.
struct LeaseView {
  std::string problem;  // why it is unused or unreadable; empty: no problem
  bool present = false;
  std::string holder;
  std::optional<base::WallTime> renewed_at;
  bool live = false;  // its holder renewed it recently
  PoolRecord record;
  std::string misread_pause;  // Misread of its pause
};

// Says that the Lease's holder has been silent for longer than a living process is; empty: it has
// not, or there is none.
std::string DeadHolderText(const LeaseView& lease);

// Says whether a Harvester namespace can contain a pool.
struct NamespaceView {
  bool is_known = false;  // false: unreadable, or the token lacks the right to read it
  std::string problem;    // "it does not exist"; empty: none
  std::string cure;
};

// A Harvester host that is cordoned.
struct CordonedHost {
  std::string name;
  std::vector<std::string> vms;  // the pool's VMs that run there, by name
};

struct Inspection {
  PoolSnapshot snapshot;
  LeaseView lease;
  // The result that Status reports to the agent, as far as the objects show it: only the plugin
  // knows for how long it has seen a mass loss or an initializing node.
  StatusReport report;
  // The ids of the policy's nodes without a VM whose metadata says that they are VMs of another
  // namespace or no VMs of the plugin, as far as these nodes were read.
  std::set<std::string> foreign_nodes;
  // Empty: the policy does not define it, or no VM can be made; `growth_problem` then says why.
  CurrentTemplate current_template{};
  // What new VMs are made of, or a VM that CheckGrowth names, would refuse a growth. Says nothing
  // of quota, hosts and back-off.
  std::string growth_problem;
  std::vector<CordonedHost> cordoned_hosts;
  // All hosts, by name. An error: the hosts, or the VMs' placement, could not be read, and
  // `cordoned_hosts` is empty.
  absl::StatusOr<std::vector<std::string>> hosts = base::Unavailable("not read");
  // For how many more VMs like the newest one the hosts have room (rule C2), and the same as a text
  // with what limits it. Unset: AddRoom was not called, or it is unknown, such as for want of an
  // optional right.
  std::optional<std::int64_t> room;
  std::string room_text;
  // Read only if the pool has neither a VM nor a Lease. Status does not look for its problems.
  std::optional<NamespaceView> ns;
  // Says that the pool has neither a VM nor a Lease: it is ready to grow from nothing, or its name
  // is wrong. Also says what is wrong with its namespace. Empty: it exists, or its Lease is not
  // known.
  std::string nothing_exists;
  // A policy that is known names the pool, so that its name is no mistake (`claimed`).
  bool is_claimed = false;
  // Removals in other pools of the namespace that have been unfinished for ten minutes or whose age
  // is not known (rule S5). The policies of these pools are not known.
  std::map<PoolKey, std::vector<UnfinishedRemoval>> unclaimed;
};

// The Kubernetes Events of a VM and its instance, the newest last.
struct EventsView {
  std::string problem;  // why they could not be read; empty: no problem
  std::vector<harvester::SeenEvent> events;
  std::size_t earlier = 0;  // how many older ones were omitted
};
inline constexpr std::size_t kMaxEvents = 10;

// Something that Collect left unfinished, and why.
struct Unfinished {
  std::string vm;
  std::string why;
};
// Called when a command waits for the pool's Lease because the holder has stopped renewing it.
// Arguments: the holder, and the latest time at which the Lease will be taken over.
using LeaseWaitListener = std::function<void(const std::string& holder, base::WallTime until)>;

// The changes needed to give a pool to the configured Nomad cluster.
struct Adoption {
  PoolKey key;
  std::string cluster;          // the cluster's keys
  std::uint64_t index = 0;      // the index of the cluster's node list
  std::vector<SharedVm> vms;    // those of another cluster, or made at a higher index
  std::string lease_cluster{};  // the Lease's keys, if they are another cluster's
  // The number of the pool's VMs that had a node, and how many of those nodes this Nomad knows by
  // ID or name.
  std::size_t joined = 0;
  std::size_t known = 0;

  bool IsNeeded() const { return !vms.empty() || !lease_cluster.empty(); }
};

// Says whether a pool, or the replacement of its VMs, was held before it was resumed. kEnded: its
// pause was there, and did not hold any more.
enum class WasHeld { kYes, kEnded, kNo, kNoLease };

struct Collection {
  // OK: everything that could be collected was. ABORTED: another live process holds the pool's
  // Lease, and nothing was done.
  absl::Status outcome;
  // Items that need an operator or another process. Excludes items that a policy keeps on purpose.
  std::vector<Unfinished> unfinished;
  // The VMs that an interrupted growth was to make, by name: its action stays on the pool's Lease,
  // and the next growth makes them. Only of Collect.
  std::vector<std::string> not_made{};
};

class Maintenance {
 public:
  Maintenance(MaintenanceOptions options, Clients clients);

  // Sets the annotation `paused` of the pool's Lease (rule L10), and creates the Lease if there is
  // none. One request if the Lease exists. Returns whether it existed: a missing Lease means that
  // nobody has acted on the pool yet, or that its name is mistyped.
  absl::StatusOr<bool> Pause(const runtime::Context& context, const PoolKey& key,
                             const base::Hold& hold) const;
  // Removes that annotation. At most two requests. Errors: Harvester's.
  absl::StatusOr<WasHeld> Resume(const runtime::Context& context, const PoolKey& key) const;
  // Removes the annotation `replacement` of the pool's Lease, so that replacements continue (rule
  // R5). At most two requests.
  absl::StatusOr<WasHeld> ResumeReplacement(const runtime::Context& context,
                                            const PoolKey& key) const;
  // Sets the annotation `replace` of a VM, or removes it if `reason` is unset (rule R1). One
  // request, which fails if the VM has changed since it was read.
  absl::Status RequestReplacement(const runtime::Context& context,
                                  const harvester::VirtualMachine& vm,
                                  const std::optional<std::string>& reason) const;

  // Finds the VMs of the pool, and its Lease, that belong to another Nomad cluster than the
  // configured one (rule C15). Only reads. Fails if a system or the Lease cannot be read, the pool
  // does not exist, or this Nomad does not reveal its keys.
  absl::StatusOr<Adoption> FindAdoption(const runtime::Context& context, const PoolKey& key) const;
  // Records this cluster in those VMs, one PATCH each, lowers the index in `nodes` to this Nomad's,
  // and then records the cluster on the Lease. Stops at the first failure; may be repeated.
  absl::Status Adopt(const runtime::Context& context, const Adoption& adoption) const;

  // Only reads. Fails if Harvester cannot be read. If Nomad cannot be read, the snapshot says so
  // and the pool is not ready. `defines_vms`: the policy defines new VMs, and existing VMs are
  // compared with that. `claimed`: the pools for which a policy is known.
  absl::StatusOr<Inspection> Inspect(const runtime::Context& context,
                                     const config::PoolPolicy& policy, bool defines_vms,
                                     std::set<PoolKey> claimed = {}) const;

  // Forecasts for how many more VMs the hosts have room. Lists the pods of the whole cluster, for
  // three seconds at most: not for what looks again and again.
  void AddRoom(const runtime::Context& context, Inspection* inspection) const;

  // One request. The right to read a namespace is optional.
  NamespaceView ReadNamespace(const runtime::Context& context, const std::string& ns) const;

  // Lists the objects that a policy can name. Only reads. If the token lacks the right to list all
  // namespaces, returns the objects in `namespaces`.
  absl::StatusOr<harvester::Choices> FindChoices(const runtime::Context& context,
                                                 const std::vector<std::string>& namespaces) const;

  // Returns at most kMaxEvents. Sends one request to Harvester and takes at most a few seconds. If
  // Events cannot be listed, the view says so.
  EventsView EventsOf(const runtime::Context& context, const std::string& ns,
                      const std::string& vm) const;

  // Returns what the pool's removed VMs were made of, the one removed last first (rule T3). One
  // GET. NOT_FOUND: none was written yet. PERMISSION_DENIED: the token may not read it. Both name
  // the rights to grant.
  absl::StatusOr<std::vector<harvester::RemovedVm>> ReadHistory(const runtime::Context& context,
                                                                const PoolKey& key) const;

  // Shows what a Scale to `count` would do now, and what would make it fail. Only reads: a new VM
  // is tried with an API server dry run, and the Lease is not acquired. Does not know what only the
  // plugin's process remembers, such as zones without room. Fails if a system cannot be read.
  absl::StatusOr<Proposal> Plan(const runtime::Context& context, const config::PoolPolicy& policy,
                                std::int64_t count) const;

  // Returns the objects that a scale-out would create for one VM. Only reads, and only from
  // Harvester. Errors: Harvester's, or the reason why the scale-out would be refused, naming the
  // policy's keys.
  absl::StatusOr<Rendering> Render(const runtime::Context& context,
                                   const config::PoolPolicy& policy) const;

  // Checks every precondition of the policy's pool in a fixed order: Harvester's, Nomad's, then
  // those that concern both. Blocks for the requests, which go to both systems concurrently, within
  // the context's time. Writes nothing: apart from access reviews and the dry run of one VM, it
  // only reads.
  std::vector<CheckResult> Check(const runtime::Context& context,
                                 const config::PoolPolicy& policy) const;

  // Finds every pool that owns a VM, volume, Secret or Lease in the namespace, or for which a Nomad
  // node was drained. Only reads.
  absl::StatusOr<std::set<PoolKey>> FindPools(const runtime::Context& context,
                                              const std::string& ns) const;

  // Runs Reconciler::RunResumption under the pool's Lease until it has finished, drains included.
  // Without a policy no removal is started: VMs that never joined stay unfinished. `waits` is
  // called, at most once, if it has to wait for the Lease of a dead process.
  Collection Collect(const runtime::Context& context, const PoolKey& key,
                     const std::optional<config::PoolPolicy>& policy,
                     const ReconcileListener& events,
                     const LeaseWaitListener& waits = nullptr) const;
  // Reports as events the first actions that Collect would take. Only reads, and does not acquire
  // the Lease.
  Collection Preview(const runtime::Context& context, const PoolKey& key,
                     const std::optional<config::PoolPolicy>& policy,
                     const ReconcileListener& events) const;

 private:
  const MaintenanceOptions options_;
  const Clients clients_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_MAINTENANCE_H_
