// SPDX-License-Identifier: Apache-2.0
#include "json_object_reader.h"

#include <limits>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::harvester {

using nlohmann::json;

JsonObjectReader::JsonObjectReader(const json& object, std::string what)
    : object_(object), what_(std::move(what)) {
  if (!object_.is_object()) problems_ = "must be a JSON object";
}

void JsonObjectReader::Report(std::string_view key, std::string_view problem) {
  if (!problems_.empty()) problems_ += "; ";
  problems_ += std::string(key) + ": " + std::string(problem);
}

absl::Status JsonObjectReader::status() const {
  if (problems_.empty()) return absl::OkStatus();
  return base::InvalidArgument(what_ + ": " + problems_);
}

std::string JsonObjectReader::UnknownMembers() const {
  if (!object_.is_object()) return "";
  json unknown = json::object();
  for (const auto& [key, value] : object_.items()) {
    if (!known_.contains(key)) unknown[key] = value;
  }
  return unknown.empty() ? "" : base::DumpJson(unknown);
}

const json* JsonObjectReader::Optional(std::string_view key) {
  known_.emplace(key);
  return base::FindMember(object_, key);
}

const json* JsonObjectReader::Require(std::string_view key,
                                      bool (json::*is_wanted)() const noexcept,
                                      std::string_view wanted) {
  const json* member = Optional(key);
  if (member != nullptr && (member->*is_wanted)()) return member;
  Report(key, member == nullptr ? "is missing" : "must be " + std::string(wanted));
  return nullptr;
}

std::string JsonObjectReader::Text(std::string_view key) {
  const json* member = Require(key, &json::is_string, "a string");
  if (member == nullptr) return "";
  if (member->get_ref<const std::string&>().empty()) Report(key, "must be a string");
  return member->get<std::string>();
}

std::optional<std::string> JsonObjectReader::OptionalText(std::string_view key) {
  if (Optional(key) == nullptr) return std::nullopt;
  const json* member = Require(key, &json::is_string, "a string");
  return member == nullptr ? std::nullopt : std::optional(member->get<std::string>());
}

std::uint64_t JsonObjectReader::Index(std::string_view key) {
  // nlohmann stores a negative JSON integer as a signed number.
  const json* member = Require(key, &json::is_number_unsigned, "a whole number of at least 0");
  return member == nullptr ? 0 : member->get<std::uint64_t>();
}

std::int64_t JsonObjectReader::Count(std::string_view key) {
  const std::uint64_t value = Index(key);
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    Report(key, "is too large");
    return 0;
  }
  return static_cast<std::int64_t>(value);
}

bool JsonObjectReader::Flag(std::string_view key) {
  const json* member = Require(key, &json::is_boolean, "true or false");
  return member != nullptr && member->get<bool>();
}

base::WallTime JsonObjectReader::Time(std::string_view key) {
  const std::string text = Text(key);
  if (text.empty()) return {};
  const auto time = base::ParseRfc3339(text);
  if (!time.ok()) Report(key, base::ToStd(time.status().message()));
  return time.ok() ? *time : base::WallTime{};
}

base::Duration JsonObjectReader::GoDuration(std::string_view key) {
  const std::string text = Text(key);
  if (text.empty()) return {};
  const auto duration = base::ParseGoDuration(text);
  if (!duration.ok()) {
    Report(key, base::ToStd(duration.status().message()));
    return {};
  }
  if (*duration < base::Duration::zero()) Report(key, "must not be negative");
  return *duration;
}

const json* JsonObjectReader::Object(std::string_view key) {
  return Require(key, &json::is_object, "an object");
}

absl::StatusOr<json> ParseObject(std::string_view text, std::string_view what) {
  NH_ASSIGN_OR_RETURN(json document, base::ParseJson(text, what));
  if (!document.is_object())
    return base::InvalidArgument(std::string(what) + " is not a JSON object");
  return document;
}

void AddUnknownMembers(json& object, const std::string& unknown_members) {
  if (unknown_members.empty()) return;
  const auto unknown = base::ParseJson(unknown_members, "unknown members");
  if (!unknown.ok() || !unknown->is_object()) return;
  for (const auto& [key, value] : unknown->items()) {
    if (!object.contains(key)) object[key] = value;
  }
}

}  // namespace nomad_harvester::harvester
