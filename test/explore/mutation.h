// SPDX-License-Identifier: Apache-2.0
// Changes of the table of NextStep that an exploration has to notice, made around the real
// function.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_MUTATION_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_MUTATION_H_

#include <optional>

#include "nomad_harvester/scaling/next_step.h"

namespace nomad_harvester::explore {

struct Mutation {
  // Left out: the decision falls through to the next row that matches if hiding what the row looks
  // at shows it, else nothing is done.
  std::optional<scaling::Row> off;
  // Stands one place lower: `first` gives way wherever `second` matches, too.
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
