// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/json.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "nomad_harvester/base/status.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::base {
namespace {

using nlohmann::json;

}  // namespace

std::string DumpJson(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

const json* FindMember(const json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

const json* FindPath(const json& object, std::initializer_list<std::string_view> path) {
  const json* current = &object;
  for (const std::string_view key : path) {
    current = FindMember(*current, key);
    if (current == nullptr) return nullptr;
  }
  return current;
}

std::string GetString(const json& object, std::string_view key, std::string_view fallback) {
  return FindString(object, key).value_or(std::string(fallback));
}

std::int64_t GetInt(const json& object, std::string_view key, std::int64_t fallback) {
  const json* member = FindMember(object, key);
  if (member == nullptr || !member->is_number_integer()) return fallback;
  if (member->is_number_unsigned()) {
    const auto value = *member->get_ptr<const json::number_unsigned_t*>();
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    return value > kMax ? fallback : static_cast<std::int64_t>(value);
  }
  return *member->get_ptr<const json::number_integer_t*>();
}

bool GetBool(const json& object, std::string_view key, bool fallback) {
  const json* member = FindMember(object, key);
  if (member == nullptr || !member->is_boolean()) return fallback;
  return *member->get_ptr<const json::boolean_t*>();
}

std::optional<std::string> FindString(const json& object, std::string_view key) {
  const json* member = FindMember(object, key);
  if (member == nullptr || !member->is_string()) return std::nullopt;
  return *member->get_ptr<const json::string_t*>();
}

}  // namespace nomad_harvester::base
