// SPDX-License-Identifier: Apache-2.0
// Strict parsing of the JSON objects in the plugin's own annotations.
//
// Objects of servers are parsed leniently (base/json.h). Our own must be complete: an annotation
// that lacks something a removal needs counts as unreadable.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_JSON_OBJECT_READER_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_JSON_OBJECT_READER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "nomad_harvester/base/time.h"

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {

// Reads members of one object; collects problems and the names that were read. A member that is
// missing or of another type is a problem, and its value is a default. The object must outlive the
// reader.
class JsonObjectReader {
 public:
  JsonObjectReader(const nlohmann::json& object, std::string what);

  std::string Text(std::string_view key);                         // not empty
  std::optional<std::string> OptionalText(std::string_view key);  // may be absent
  std::int64_t Count(std::string_view key);                       // at least 0
  std::uint64_t Index(std::string_view key);
  bool Flag(std::string_view key);
  base::WallTime Time(std::string_view key);
  base::Duration GoDuration(std::string_view key);  // at least 0
  // Null if it is missing or not an object, which is a problem.
  const nlohmann::json* Object(std::string_view key);
  // Null if it is missing; any type is accepted.
  const nlohmann::json* Optional(std::string_view key);

  void Report(std::string_view key, std::string_view problem);
  // INVALID_ARGUMENT with every problem, or OK.
  absl::Status status() const;
  // The members that were not read, as the text of an object; empty if there are none.
  std::string UnknownMembers() const;

 private:
  // Null, and a problem, if the member is missing or not `wanted`.
  const nlohmann::json* Require(std::string_view key,
                                bool (nlohmann::json::*is_wanted)() const noexcept,
                                std::string_view wanted);

  const nlohmann::json& object_;
  std::string what_;
  std::set<std::string> known_;
  std::string problems_;
};

// Parses the object `text`; INVALID_ARGUMENT if it is not JSON or not an object.
absl::StatusOr<nlohmann::json> ParseObject(std::string_view text, std::string_view what);

// Adds the members of `unknown_members` that `object` lacks.
void AddUnknownMembers(nlohmann::json& object, const std::string& unknown_members);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_JSON_OBJECT_READER_H_
