// SPDX-License-Identifier: Apache-2.0
// The annotations of a pool's Lease: the current action, the back-off and the last policy.
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/metadata.h"

#include "json_object_reader.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

void ReadNames(JsonObjectReader& reader, std::string_view key, const json* names,
               std::set<std::string>* result) {
  if (names == nullptr || !names->is_array()) {
    reader.Report(key, "must be a list");
    return;
  }
  for (const json& name : *names) {
    if (name.is_string()) {
      result->insert(name.get<std::string>());
    } else {
      reader.Report(key, "must hold strings only");
      return;
    }
  }
}

void ReadCreate(JsonObjectReader& reader, LeaseAction& action) {
  const json* create = reader.Object("create");
  if (create == nullptr) return;
  for (const auto& [name, id] : create->items()) {
    if (id.is_string()) {
      action.create.emplace(name, id.get<std::string>());
    } else {
      reader.Report("create", "holds an action id that is not a string");
      return;
    }
  }
}

}  // namespace

std::string ToAnnotation(const LeaseAction& action) {
  json object = {{"id", action.id},
                 {"from", action.from},
                 {"to", action.to},
                 {"names", action.names},
                 {"create", action.create}};
  if (!action.back.empty()) object["back"] = action.back;
  AddUnknownMembers(object, action.unknown_members);
  return base::DumpJson(object);
}

absl::StatusOr<LeaseAction> ParseLeaseAction(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const json object, ParseObject(text, "action"));
  JsonObjectReader reader(object, "action");
  LeaseAction action;
  action.id = reader.Text("id");
  action.from = reader.Count("from");
  action.to = reader.Count("to");
  ReadNames(reader, "names", reader.Optional("names"), &action.names);
  ReadCreate(reader, action);
  if (const json* back = reader.Optional("back"); back != nullptr) {
    ReadNames(reader, "back", back, &action.back);
  }
  NH_RETURN_IF_ERROR(reader.status());
  action.unknown_members = reader.UnknownMembers();
  return action;
}

std::string ToAnnotation(const BackOff& back_off) {
  json object = json::object();
  for (const auto& [cause, entry] : back_off) {
    json& member = object[cause];
    member = {{"failures", entry.failures}, {"retry_at", base::FormatRfc3339Nanos(entry.retry_at)}};
    AddUnknownMembers(member, entry.unknown_members);
  }
  return base::DumpJson(object);
}

absl::StatusOr<BackOff> ParseBackOff(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const json object, ParseObject(text, "back-off"));
  BackOff back_off;
  for (const auto& [cause, member] : object.items()) {
    JsonObjectReader reader(member, "back-off " + cause);
    BackOffEntry entry;
    entry.failures = reader.Count("failures");
    entry.retry_at = reader.Time("retry_at");
    NH_RETURN_IF_ERROR(reader.status());
    entry.unknown_members = reader.UnknownMembers();
    back_off.emplace(cause, std::move(entry));
  }
  return back_off;
}

std::string ToAnnotation(const PolicyRecord& policy) {
  json object = {{"id", policy.id}, {"at", base::FormatRfc3339Nanos(policy.at)}};
  AddUnknownMembers(object, policy.unknown_members);
  return base::DumpJson(object);
}

absl::StatusOr<PolicyRecord> ParsePolicyRecord(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const json object, ParseObject(text, "policy"));
  JsonObjectReader reader(object, "policy");
  PolicyRecord policy;
  policy.id = reader.Text("id");
  policy.at = reader.Time("at");
  NH_RETURN_IF_ERROR(reader.status());
  policy.unknown_members = reader.UnknownMembers();
  return policy;
}

}  // namespace nomad_harvester::harvester
