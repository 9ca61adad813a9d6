// SPDX-License-Identifier: Apache-2.0
// The reads of one Nomad that the pools of a configuration share (rule L8). Private to module
// scaling.
#ifndef NOMAD_HARVESTER_SCALING_NOMAD_READS_H_
#define NOMAD_HARVESTER_SCALING_NOMAD_READS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/nodepool/full_node_cache.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"
#include "observation/held_list.h"

namespace nomad_harvester::scaling {

// One list of Nomad, for all callers that want it at the same time. Nothing is kept once the last
// of them has it. Thread-safe; a call blocks for its request, or for another caller's.
//
// Every caller can be cancelled alone: if the one whose request it is gives up, another sends it.
template <typename List>  // has an `index`
class SharedList {
 public:
  using Result = absl::StatusOr<std::shared_ptr<const List>>;
  using Read = std::function<absl::StatusOr<List>(const runtime::Context& context,
                                                  const nomad::ReadOptions& options)>;

  explicit SharedList(Read read) : read_(std::move(read)) {}

  // The list of a request that begins after this call. `or_running`: or of one that is under way.
  Result Get(const runtime::Context& context, bool or_running = false);
  // The same once its index is above `options.index`, or when `options.wait` is over, or half of
  // it. All callers wait on one blocking query. It may have been sent before this call: a list with
  // a higher index than that of the caller's last one is newer, and with the same index it is
  // equal.
  Result Await(const runtime::Context& context, const nomad::ReadOptions& options);

 private:
  struct InFlightRead {
    std::uint64_t index = 0;  // that a blocking query waits on
    bool done = false;
    bool abandoned = false;  // its caller gave up
    Result result{};
  };
  using Slot = std::shared_ptr<InFlightRead>;
  Result ReadForAll(const runtime::Context& context, const nomad::ReadOptions& options, Slot* slot)
      NH_REQUIRES(mutex_);
  // False: the context ended, or `until` came.
  bool WaitFor(const runtime::Context& context, base::MonoTime until, InFlightRead& in_flight)
      NH_REQUIRES(mutex_);

  const Read read_;
  base::Mutex mutex_;
  base::CondVar changed_;
  Slot plain_ NH_GUARDED_BY(mutex_);
  Slot blocking_ NH_GUARDED_BY(mutex_);
};

// Thread-safe. Lists take no slot and no connection of other requests. They are completed by what
// is known of the nodes' attributes and meta when they arrive.
class NomadReads {
 public:
  struct Nodes : nomad::Indexed<std::vector<nomad::Node>> {
    std::uint64_t completed_by = 0;  // the version of that knowledge
  };
  using Allocations = nomad::Indexed<std::vector<nomad::Allocation>>;

  // `lists`: a client without slots.
  explicit NomadReads(const std::shared_ptr<const nomad::NomadClient>& lists);

  // `options` may block.
  SharedList<Nodes>::Result ListNodes(const runtime::Context& context,
                                      const nomad::ReadOptions& options = {});
  // For Status: it may have been requested by another call that is still under way, and a list that
  // is held is proved by one request for one node.
  SharedList<Nodes>::Result ListNodesForStatus(const runtime::Context& context);
  // Which cluster it is (nomad::NomadClient::ReadClusterKeys), as it was read at most five minutes
  // ago: the keys of a cluster change once a month.
  absl::StatusOr<std::string> Cluster(const runtime::Context& context);
  // The same, read now: before what rests on this Nomad's not knowing a node.
  absl::StatusOr<std::string> ReadCluster(const runtime::Context& context);
  // Reads a node in full with `client`, and remembers it.
  absl::StatusOr<nomad::Indexed<nomad::Node>> GetNode(const runtime::Context& context,
                                                      const nomad::NomadClient& client,
                                                      const std::string& id);
  // The same node in full: as it is known in this version, else as it is read, which may be newer.
  absl::StatusOr<nomad::Node> InFull(const runtime::Context& context,
                                     const nomad::NomadClient& client, nomad::Node stub);
  // With task states, for what still runs on a drained node.
  SharedList<Allocations>::Result ListAllocations(const runtime::Context& context) {
    return allocations_.Get(context);
  }
  // With resources, for the choice of victims.
  SharedList<Allocations>::Result ListPlacements(const runtime::Context& context) {
    return placements_.Get(context);
  }

 private:
  // Holds a list that was read, and returns it.
  SharedList<Nodes>::Result Held(SharedList<Nodes>::Result list);

  nodepool::FullNodeCache cache_;
  SharedList<Nodes> nodes_;
  SharedList<nomad::Indexed<std::vector<nomad::Node>>> first_;  // at most one
  SharedList<Allocations> allocations_;
  SharedList<Allocations> placements_;
  HeldList<Nodes> for_status_;
  const std::shared_ptr<const nomad::NomadClient> lists_;
  base::Mutex mutex_;
  std::optional<std::string> cluster_ NH_GUARDED_BY(mutex_);
  base::MonoTime cluster_read_at_ NH_GUARDED_BY(mutex_){};
};

// The nodes of a list, which it keeps.
inline NodeList NodesOf(const std::shared_ptr<const NomadReads::Nodes>& list) {
  return {list, &list->value};
}
void TakeCluster(const absl::StatusOr<std::string>& cluster, Look* look);
// What such a list and Nomad's keys say; an error of the list: Nomad is unreadable.
void TakeNodes(const SharedList<NomadReads::Nodes>::Result& nodes,
               const absl::StatusOr<std::string>& cluster, Look* look);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_NOMAD_READS_H_
