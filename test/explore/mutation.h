// SPDX-License-Identifier: Apache-2.0
// Changes of the table of NextStep that an exploration must detect, made by a wrapper of the real
// function.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_MUTATION_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_MUTATION_H_

#include <optional>

#include "nomad_harvester/scaling/next_step.h"

namespace nomad_harvester::explore {

struct Mutation {
  // Left out: the decision is that of the next row that matches, if removing this row's condition
  // from the snapshot yields one; else the step does nothing.
  std::optional<scaling::Row> off;
  // Exchanged: `second` takes precedence where both match.
  struct Swap {
    scaling::Row first{};
    scaling::Row second{};
  };
  std::optional<Swap> swap;
};

scaling::Step NextStepUnder(const Mutation& mutation, const scaling::VmView& view,
                            const scaling::PoolSnapshot& snapshot);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_MUTATION_H_
