// SPDX-License-Identifier: Apache-2.0
#include "object_fields.h"

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

std::string ValueOf(const std::map<std::string, std::string>& values, std::string_view key) {
  const auto found = values.find(std::string(key));
  return found == values.end() ? "" : found->second;
}

}  // namespace nomad_harvester::harvester
