// SPDX-License-Identifier: Apache-2.0
#include "object_fields.h"

#include <utility>

#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

std::map<std::string, std::string> TextMembers(const json& object, std::string_view key) {
  std::map<std::string, std::string> members;
  const json* map = base::FindMember(object, key);
  if (map == nullptr || !map->is_object()) return members;
  for (const auto& [name, value] : map->items()) {
    if (value.is_string()) members.emplace(name, value.get<std::string>());
  }
  return members;
}

}  // namespace

std::optional<base::WallTime> FindTime(const json& object, std::string_view key) {
  const auto text = base::FindString(object, key);
  if (!text) return std::nullopt;
  const auto time = base::ParseRfc3339(*text);
  if (!time.ok()) return std::nullopt;
  return *time;
}

Metadata ParseMetadata(const json& object) {
  Metadata metadata;
  const json* source = base::FindMember(object, "metadata");
  if (source == nullptr) return metadata;
  metadata.ns = base::GetString(*source, "namespace");
  metadata.name = base::GetString(*source, "name");
  metadata.uid = base::GetString(*source, "uid");
  metadata.resource_version = base::GetString(*source, "resourceVersion");
  metadata.created_at = FindTime(*source, "creationTimestamp").value_or(base::WallTime{});
  metadata.deleted_at = FindTime(*source, "deletionTimestamp");
  metadata.labels = TextMembers(*source, "labels");
  metadata.annotations = TextMembers(*source, "annotations");
  return metadata;
}

std::vector<Condition> ParseConditions(const json& object) {
  std::vector<Condition> conditions;
  const json* list = base::FindPath(object, {"status", "conditions"});
  if (list == nullptr || !list->is_array()) return conditions;
  for (const json& item : *list) {
    Condition condition;
    condition.type = base::GetString(item, "type");
    condition.status = base::GetString(item, "status");
    condition.reason = base::GetString(item, "reason");
    condition.message = base::GetString(item, "message");
    condition.last_transition = FindTime(item, "lastTransitionTime");
    if (!condition.type.empty()) conditions.push_back(std::move(condition));
  }
  return conditions;
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
