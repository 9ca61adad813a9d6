// SPDX-License-Identifier: Apache-2.0
// Parses what all Kubernetes objects have in common.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_OBJECT_FIELDS_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_OBJECT_FIELDS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/harvester/virtual_machine.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

// Nullopt if the member is missing, null or not an RFC 3339 time.
std::optional<base::WallTime> FindTime(const nlohmann::json& object, std::string_view key);

// The members of an object's metadata that the plugin uses. Missing members are empty.
struct Metadata {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  base::WallTime created_at{};
  std::optional<base::WallTime> deleted_at;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};
Metadata ParseMetadata(const nlohmann::json& object);

// status.conditions.
std::vector<Condition> ParseConditions(const nlohmann::json& object);
const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);

// The value of `key`, or an empty string.
std::string ValueOf(const std::map<std::string, std::string>& values, std::string_view key);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_OBJECT_FIELDS_H_
