#include "nomad_harvester/base/json.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <string_view>

#include "nomad_harvester/base/status.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::base {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 200;

absl::Status NotJson(std::string_view what, std::string_view why) {
  return InvalidArgument(std::string(what) + " is not JSON: " + std::string(why));
}

// Looked at before parsing: the value of a document that is too deep is never built.
absl::Status CheckDepth(std::string_view text, std::string_view what) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (c != '[' && c != '{') continue;
    if (++depth > kMaxDepth) {
      return NotJson(what, "nested deeper than " + std::to_string(kMaxDepth) + " levels at byte " +
                               std::to_string(i + 1));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// The texts of nlohmann's exceptions quote the input, which may hold a secret: only the position
// is passed on.
absl::StatusOr<json> ParseJson(std::string_view text, std::string_view what) {
  NH_RETURN_IF_ERROR(CheckDepth(text, what));
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    if (error.byte > text.size()) return NotJson(what, "it ends too early");
    return NotJson(what, "syntax error at byte " + std::to_string(error.byte));
  } catch (const json::out_of_range&) {
    return NotJson(what, "a number is out of range");
  } catch (const std::exception&) {
    return NotJson(what, "it cannot be read");
  }
}

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
