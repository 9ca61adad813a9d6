// SPDX-License-Identifier: Apache-2.0
#include "object_fields.h"

#include <algorithm>
#include <limits>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
std::optional<base::WallTime> TimeOf(const base::JsonEvent& event) {
  return base::ToOptional(base::ParseRfc3339(event.text));
}

const base::JsonFields<ObjectMetadata>& MetadataFields() {
  static const auto* const kFields =
      new base::JsonFields<ObjectMetadata>(WithMetadata<ObjectMetadata>({}));
  return *kFields;
}

const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type) {
  for (const Condition& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

std::optional<std::int64_t> Thousandths(std::string_view quantity) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max() / 1000;
  if (!quantity.empty() && quantity.back() == 'm') {
    return base::ToOptional(base::ParseInt(quantity.substr(0, quantity.size() - 1)));
  }
  const auto value = base::ParseQuantity(quantity);
  if (!value.ok() || *value > kLargest) return std::nullopt;
  return *value * 1000;
}

void AddAmounts(const std::map<std::string, std::int64_t>& more,
                std::map<std::string, std::int64_t>* amounts) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const auto& [resource, amount] : more) {
    std::int64_t& sum = (*amounts)[resource];
    sum = std::min(sum, kMost - amount) + amount;
  }
}

}  // namespace nomad_harvester::harvester
