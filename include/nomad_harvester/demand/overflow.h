// SPDX-License-Identifier: Apache-2.0
// What the pool of a query needs, also of an overflow, which leaves to another pool the work for
// which that one has a place.
#ifndef NOMAD_HARVESTER_DEMAND_OVERFLOW_H_
#define NOMAD_HARVESTER_DEMAND_OVERFLOW_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "nomad_harvester/demand/packing.h"
#include "nomad_harvester/demand/query.h"
#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/demand/room_reader.h"
#include "nomad_harvester/demand/work.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::demand {

// A node of each pool that was seen earlier, for one that has none now; null: none.
struct LastSeen {
  std::shared_ptr<const PoolNode> own{};
  std::shared_ptr<const PoolNode> home{};
};

struct Needs {
  World world{};    // of the query's nodes, with the work that is left to them
  Demand demand{};  // of `world`
  // Of an overflow whose nodes have no place for all that waits: how many more nodes the other pool
  // can have, and the node that shows what they hold, if one does.
  std::optional<std::int64_t> home_nodes_to_come{};
  std::shared_ptr<const PoolNode> home_shown_by{};
};

// The query is not one for room. `harvester`: null if there is no connection. FAILED_PRECONDITION:
// an overflow without it, or as RoomReader::Read, or its nodes may be those of the other pool.
// Blocks for requests; asks Harvester only if new nodes are needed.
absl::StatusOr<Needs> NeedsOf(const runtime::Context& context, const Query& query,
                              const Reading& reading, const LastSeen& last_seen, Reader& nomad,
                              RoomReader* harvester);

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_DEMAND_OVERFLOW_H_
