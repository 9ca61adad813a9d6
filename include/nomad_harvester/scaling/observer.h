// SPDX-License-Identifier: Apache-2.0
// Reads both systems into a snapshot, and remembers what a single look cannot tell.
#ifndef NOMAD_HARVESTER_SCALING_OBSERVER_H_
#define NOMAD_HARVESTER_SCALING_OBSERVER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/nodepool/full_node_cache.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

// What is remembered of a namespace between observations. Thread-safe: Status and the loop share
// it.
class ObserverMemory {
 public:
  // Fills start_failure, node_down_for, unhealthy_for and nomad_unreadable_for of the snapshot.
  void Apply(base::MonoTime now, PoolSnapshot* snapshot);

 private:
  struct Failing {
    std::string reason;
    base::MonoTime since{};
  };
  // Since when something about a node holds without a break. Between two looks it may have come
  // back and gone again: then Nomad gave it another ModifyIndex.
  struct NodeSince {
    base::MonoTime since{};
    std::uint64_t modify_index = 0;
  };
  static base::Duration For(std::map<std::string, NodeSince>* all, const std::string& key,
                            const nomad::Node* node, base::MonoTime now);
  void ApplyStartFailure(base::MonoTime now, base::WallTime wall_now, VmView* view)
      NH_REQUIRES(mutex_);
  void ApplyNodeDown(base::MonoTime now, const PoolSnapshot& snapshot, VmView* view)
      NH_REQUIRES(mutex_);
  void ApplyUnhealthy(base::MonoTime now, const PoolSnapshot& snapshot, VmView* view)
      NH_REQUIRES(mutex_);

  base::Mutex mutex_;
  std::map<std::string, Failing> failing_ NH_GUARDED_BY(mutex_);            // by VM uid
  std::map<std::string, NodeSince> down_since_ NH_GUARDED_BY(mutex_);       // by node ID
  std::map<std::string, NodeSince> unhealthy_since_ NH_GUARDED_BY(mutex_);  // by VM uid
  std::optional<base::MonoTime> unreadable_since_ NH_GUARDED_BY(mutex_);
  base::Duration unreadable_total_ NH_GUARDED_BY(mutex_){};
  std::map<std::string, base::Duration> unreadable_before_ NH_GUARDED_BY(mutex_);  // by VM uid
};

// What the loop reads. Not thread-safe by itself; what it refers to is.
class Observer {
 public:
  struct BlockingWait {
    // A blocking query: wait for a change after this index first.
    std::uint64_t after_index = 0;
    base::Duration wait{};
    // The limit of the node list: a Nomad that does not answer leaves time to read Harvester.
    base::Duration nodes_limit = base::Duration::max();
  };

  Observer(const nomad::NomadClient& nomad, const harvester::VmStore& vms,
           nodepool::FullNodeCache& cache, ObserverMemory& memory, log::Logger logger);

  // Nodes first, then VMs: a VM that is seen without a node has none that came before it. Nomad
  // that cannot be read is not an error (nomad_readable is false); Harvester is. `base` brings
  // policy, key, region and the Lease's action.
  absl::StatusOr<PoolSnapshot> Observe(const runtime::Context& context, PoolSnapshot base,
                                       const BlockingWait& blocking);

  // Adds the allocations of the region to a snapshot, in one request. A token without read-job is
  // not an error (`allocations_incomplete` says so; then only nodes that have to be idle are asked,
  // one by one).
  absl::Status ReadAllocations(const runtime::Context& context, PoolSnapshot* snapshot);

  // Links VMs and nodes of a snapshot anew; used as well for the lists that Status reads.
  static void Link(PoolSnapshot* snapshot);

 private:
  void ReadNodes(const runtime::Context& context, const BlockingWait& blocking,
                 PoolSnapshot* snapshot);
  void CompleteNodes(const runtime::Context& context, PoolSnapshot* snapshot);
  absl::Status ReadInstances(const runtime::Context& context, PoolSnapshot* snapshot);
  // What single nodes tell.
  void ReadDetails(const runtime::Context& context, PoolSnapshot* snapshot);
  void ReadNodesOfMarked(const runtime::Context& context, PoolSnapshot* snapshot);

  const nomad::NomadClient& nomad_;
  const harvester::VmStore& vms_;
  nodepool::FullNodeCache& cache_;
  ObserverMemory& memory_;
  const log::Logger logger_;
};

// Stubs that have to be read in full before the links can be trusted (rule C6): pool members whose
// Name is not a VM's, nodes that could be a VM which seems broken, and ready ones that share a VM's
// name. Indexes into snapshot.nodes.
std::vector<std::size_t> NodesToReadInFull(const PoolSnapshot& snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_OBSERVER_H_
