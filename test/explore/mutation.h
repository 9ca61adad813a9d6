// SPDX-License-Identifier: Apache-2.0
// Changes of the table of rules that an exploration must detect.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_MUTATION_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_MUTATION_H_

#include <optional>
#include <vector>

#include "nomad_harvester/scaling/rules.h"

namespace nomad_harvester::explore {

struct Mutation {
  std::optional<scaling::Row> off;  // left out
  // Exchanged: `second` takes precedence where both match.
  struct Swap {
    scaling::Row first{};
    scaling::Row second{};
  };
  std::optional<Swap> swap;
};

// The real rules with that change.
std::vector<scaling::Rule> RulesUnder(const Mutation& mutation);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_MUTATION_H_
