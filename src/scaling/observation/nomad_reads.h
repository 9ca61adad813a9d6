// SPDX-License-Identifier: Apache-2.0
// Reads of one Nomad that the pools of a configuration share (rule L8). Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_NOMAD_READS_H_
#define NOMAD_HARVESTER_SCALING_NOMAD_READS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/nodepool/full_node_cache.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/nomad/shared_list.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"
#include "observation/held_list.h"

namespace nomad_harvester::scaling {

// Thread-safe. Lists use no slot and no connection of other requests. While a list of nodes
// arrives, already known attributes and meta are filled in.
class NomadReads {
 public:
  using Allocations = nomad::Indexed<std::vector<nomad::Allocation>>;

  // `lists`: a client without slots.
  explicit NomadReads(const std::shared_ptr<const nomad::NomadClient>& lists);

  // `options` may block.
  absl::StatusOr<nomad::Indexed<NodeList>> ListNodes(const runtime::Context& context,
                                                     const nomad::ReadOptions& options = {});
  // For Status. The list may come from another call's request that is under way, or from an earlier
  // one, if one request for one node proves that it is current.
  absl::StatusOr<nomad::Indexed<NodeList>> ListNodesForStatus(const runtime::Context& context);
  // The keys of the cluster (nomad::NomadClient::ReadClusterKeys), read at most five minutes ago:
  // they change once a month.
  absl::StatusOr<std::string> Cluster(const runtime::Context& context);
  // Like Cluster, but reads now. For decisions that rest on this Nomad not knowing a node.
  absl::StatusOr<std::string> ReadCluster(const runtime::Context& context);
  // See nodepool::FullNodeCache.
  bool NeedAttribute(const std::string& attribute) { return cache_.Need(attribute); }
  // Reads a node in full with `client`, and caches it.
  absl::StatusOr<nomad::Indexed<nomad::Node>> GetNode(const runtime::Context& context,
                                                      const nomad::NomadClient& client,
                                                      const std::string& id);
  // Returns the stub's node in full, from the cache if it has this version. Otherwise reads the
  // node, which may be newer.
  absl::StatusOr<nomad::Node> GetFullNode(const runtime::Context& context,
                                          const nomad::NomadClient& client, nomad::Node stub);
  // Lists with task states, which show what still runs on a drained node.
  nomad::SharedList<Allocations>::Result ListAllocations(const runtime::Context& context) {
    return allocations_.Get(context);
  }
  // Lists with resources, used to choose victims.
  nomad::SharedList<Allocations>::Result ListPlacements(const runtime::Context& context) {
    return placements_.Get(context);
  }

 private:
  struct Nodes : nomad::Indexed<std::vector<nomad::Node>> {
    std::uint64_t completed_by = 0;  // the version of the cache that filled it in
  };
  // The nodes of a list. The pointer keeps the whole list alive.
  static nomad::Indexed<NodeList> NodesOf(const std::shared_ptr<const Nodes>& list) {
    return {.value = {list, &list->value}, .index = list->index};
  }
  // Holds the list for Status, unless it is empty, and returns its nodes.
  absl::StatusOr<nomad::Indexed<NodeList>> Held(const nomad::SharedList<Nodes>::Result& list);

  nodepool::FullNodeCache cache_;
  nomad::SharedList<Nodes> nodes_;
  nomad::SharedList<nomad::Indexed<std::vector<nomad::Node>>> first_;  // has at most one node
  nomad::SharedList<Allocations> allocations_;
  nomad::SharedList<Allocations> placements_;
  HeldList<Nodes> for_status_;
  const std::shared_ptr<const nomad::NomadClient> lists_;
  base::Mutex mutex_;
  std::optional<std::string> cluster_ NH_GUARDED_BY(mutex_);
  base::MonoTime cluster_read_at_ NH_GUARDED_BY(mutex_){};
};

// Returns the node of the autoscaler's own allocation, which may be a node of the pool (rule C7).
// Empty if there is no allocation (`allocation` is empty) or if it is in another cluster, which
// only a token with read-job everywhere can prove. Blocks for one or a few requests. Returns
// NomadClient's errors.
absl::StatusOr<std::string> FindOwnNode(const runtime::Context& context,
                                        const nomad::NomadClient& nomad,
                                        const std::string& allocation);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_NOMAD_READS_H_
