// SPDX-License-Identifier: Apache-2.0
// The output of nomad-harvester demand and why. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_DEMAND_VIEW_H_
#define NOMAD_HARVESTER_CLI_DEMAND_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/demand/packing.h"
#include "nomad_harvester/demand/query.h"
#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/nomad/types.h"

#include "absl/status/statusor.h"
#include "command.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::cli {

// A query, and what its pool needs now.
struct AnsweredQuery {
  std::string policy{};                 // empty: the query was given
  const FileSettings* files = nullptr;  // of the policy; outlives this
  std::optional<std::int64_t> max{};
  std::string text{};
  std::string note{};  // why the query is not that of a check; empty: it is, or was given
  demand::Query query{};
  demand::Demand demand{};
  // Of an overflow: how many more nodes the other pool can have, if that was asked.
  std::optional<std::int64_t> home_nodes_to_come{};
};

// The queries of the policies' checks that ask this plugin for a number of nodes, not answered yet;
// of a policy without one, the query about the nodes of its target block. Adds each policy with a
// wrong query to `unread`. INVALID_ARGUMENT: every policy has one.
absl::StatusOr<std::vector<AnsweredQuery>> QueriesOf(const std::vector<DemandPool>& pools,
                                                     std::vector<UnreadPolicy>* unread);
// Answers them by one reading of Nomad, which is returned. Blocks. FAILED_PRECONDITION: an overflow
// that cannot be answered, and why.
absl::StatusOr<std::shared_ptr<const demand::Reading>> Answer(const DemandRun& run,
                                                              std::vector<AnsweredQuery>* queries);

// "needs 3 nodes", "impossible: needs 8192 MiB, a node has 4096".
std::string VerdictText(const demand::GroupDemand& group);
// "node_class=web datacenter=dc1 (policy web)": the keys as in a query.
std::string PoolText(const AnsweredQuery& answered);

// "6 nodes are needed".
std::string NeededText(std::int64_t nodes);
// "the policy's max is 2, and 6 nodes are needed".
std::string MaxText(std::int64_t max, std::int64_t needed);

// What the count depends on, for people: that it is a probe, or what the agent knows besides.
std::vector<std::string> NotesOf(const AnsweredQuery& answered);
// The groups of the query's pool in a table no wider than `width` (0: no limit), and the count.
std::string DemandTable(const AnsweredQuery& answered, std::size_t width);
// The members are documented in docs/commands.md. Members may be added, but none changes its name
// or meaning.
nlohmann::ordered_json DemandDocument(const std::vector<AnsweredQuery>& answered);

// Why nothing of a group was placed, as Nomad tells it: "4 nodes evaluated; 1 filtered: …".
std::string FailureText(const nomad::PlacementFailure& failure);
nlohmann::ordered_json FailureDocument(const nomad::PlacementFailure& failure);
nlohmann::ordered_json GroupDocument(const demand::GroupDemand& group);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_DEMAND_VIEW_H_
