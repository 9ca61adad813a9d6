// SPDX-License-Identifier: Apache-2.0
// The query of the APM: the whole input.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "nomad_harvester/demand/packing.h"
#include "nomad_harvester/demand/query.h"

#include "fuzz/fuzz.h"

namespace {

namespace demand = nomad_harvester::demand;
using nomad_harvester::fuzz::Require;

void CheckSize(const demand::Resources& size) {
  std::vector<std::int64_t> amounts = {size.cpu, size.cores, size.memory_mb, size.disk_mb};
  for (const auto& [device, count] : size.devices) amounts.push_back(count);
  Require(std::all_of(amounts.begin(), amounts.end(),
                      [](std::int64_t n) { return n >= 0 && n <= demand::kUnlimited; }),
          "amounts are within their limits");
  Require(std::any_of(amounts.begin(), amounts.end(), [](std::int64_t n) { return n > 0; }),
          "a size has an amount");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto query = demand::ParseQuery(nomad_harvester::fuzz::Text(data, size));
  if (!query.ok()) {
    Require(absl::IsInvalidArgument(query.status()) && !query.status().message().empty(),
            "a query that is refused has a reason");
    return 0;
  }
  const bool is_of_room = query->subject == demand::Subject::kRoom;
  Require(query->node_class || query->datacenter || query->node_pool || is_of_room,
          "a query names its pool");
  Require(query->subject == demand::Subject::kNodesNeeded ||
              (!query->home.ns.empty() && !query->home.pool.empty() && query->home.max >= 0),
          "a query about a pool on Harvester names it");
  Require(query->idle_for >= query->idle_for.zero(), "idle_for is not negative");
  for (const demand::Headroom& headroom : query->headroom) {
    Require(headroom.count >= 1 && headroom.count <= demand::kMaxAddedForGroup,
            "headroom has units");
    CheckSize(headroom.unit);
  }
  if (query->node.has_value()) CheckSize(*query->node);
  const std::string written = ToString(*query);
  const auto again = demand::ParseQuery(written);
  Require(again.ok() && ToString(*again) == written, "what was read can be written and read again");
  const demand::Demand answer = demand::ComputeDemand(*query, {});
  Require(answer.needed >= 0 && answer.needed <= demand::kMaxAdded, "an answer is a count");
  return 0;
}
