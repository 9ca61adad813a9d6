// SPDX-License-Identifier: Apache-2.0
#include "mutation.h"

#include <algorithm>

namespace nomad_harvester::explore {

std::vector<scaling::Rule> RulesUnder(const Mutation& mutation) {
  std::vector<scaling::Rule> rules(scaling::kRules.begin(), scaling::kRules.end());
  const auto find = [&](scaling::Row row) {
    return std::find_if(rules.begin(), rules.end(),
                        [row](const scaling::Rule& rule) { return rule.row == row; });
  };
  if (mutation.swap.has_value()) {
    // Directly before the other, so that the rows in between keep their places.
    const scaling::Rule moved = *find(mutation.swap->second);
    rules.erase(find(mutation.swap->second));
    rules.insert(find(mutation.swap->first), moved);
  }
  if (mutation.off.has_value()) rules.erase(find(*mutation.off));
  return rules;
}

}  // namespace nomad_harvester::explore
