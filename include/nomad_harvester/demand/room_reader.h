// SPDX-License-Identifier: Apache-2.0
// Reads of one Harvester how many VMs its pools have, and for how many more the hosts have room.
#ifndef NOMAD_HARVESTER_DEMAND_ROOM_READER_H_
#define NOMAD_HARVESTER_DEMAND_ROOM_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/demand/query.h"
#include "nomad_harvester/demand/work.h"
#include "nomad_harvester/harvester/host_room.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::demand {

// What has no connection to Harvester needs.
inline constexpr char kNeedsHarvester[] =
    "needs Harvester: add harvester_url and auth_token_file, or harvester_kubeconfig, to the "
    "config of the apm block, as in the target block";

// A VM whose node may not be in Nomad's list yet.
struct ComingVm {
  std::string name{};
  std::string node_id{};  // empty: its node has not registered
};

struct PoolRoom {
  std::int64_t vms = 0;            // that count, as far as Harvester shows it (rule S1)
  std::vector<ComingVm> coming{};  // of these
  harvester::Room room{};
  // Which nodes are the pool's, as its newest VM records it.
  harvester::NodesRecord nodes{};
};
// How many nodes that are not in `world`, the world of its nodes, the pool can have.
std::int64_t NodesToCome(const PoolRoom& room, std::int64_t max, const World& world);

// Thread-safe; calls block for requests.
class RoomReader {
 public:
  explicit RoomReader(std::shared_ptr<const kube::KubeClient> client)
      : client_(std::move(client)) {}

  // Its newest VM shows what one asks of its host, also once it is gone. FAILED_PRECONDITION: this
  // process has seen none, or it does not record its nodes. PERMISSION_DENIED names the right.
  absl::StatusOr<PoolRoom> Read(const runtime::Context& context, const HomePool& pool);

 private:
  struct Known {
    harvester::VmNeed need{};
    harvester::NodesRecord nodes{};
  };

  const std::shared_ptr<const kube::KubeClient> client_;
  base::Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Known> known_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_DEMAND_ROOM_READER_H_
