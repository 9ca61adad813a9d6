// SPDX-License-Identifier: Apache-2.0
// The values of the plugin's annotations: on a VM the mark, the node selection and the protection,
// on a pool's Lease the action, the back-off, the last policy and the pause.
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/metadata.h"

#include "json_object_reader.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

json NodesToJson(const NodesRecord& nodes) {
  json object = {{"node_attribute", nodes.node_attribute}, {"index", nodes.index}};
  if (!nodes.region.empty()) object["region"] = nodes.region;
  if (nodes.node_class) object["node_class"] = *nodes.node_class;
  if (nodes.datacenter) object["datacenter"] = *nodes.datacenter;
  if (nodes.node_pool) object["node_pool"] = *nodes.node_pool;
  return object;
}

absl::StatusOr<NodesRecord> NodesFromJson(const json& object) {
  JsonObjectReader reader(object, "nodes");
  NodesRecord nodes;
  nodes.region = reader.OptionalText("region").value_or("");
  nodes.node_class = reader.OptionalText("node_class");
  nodes.datacenter = reader.OptionalText("datacenter");
  nodes.node_pool = reader.OptionalText("node_pool");
  nodes.node_attribute = reader.Text("node_attribute");
  nodes.index = reader.Index("index");
  NH_RETURN_IF_ERROR(reader.status());
  return nodes;
}

constexpr std::string_view kNone = "none";
constexpr std::string_view kNow = "now";

std::string DeadlineText(const DrainDeadline& deadline) {
  switch (deadline.kind) {
    case DrainDeadline::Kind::kNone:
      return std::string(kNone);
    case DrainDeadline::Kind::kNow:
      return std::string(kNow);
    case DrainDeadline::Kind::kAt:
      break;
  }
  return base::FormatRfc3339Nanos(deadline.at);
}

DrainDeadline ReadDeadline(JsonObjectReader& reader) {
  constexpr std::string_view kKey = "drain_deadline";
  const std::string text = reader.Text(kKey);
  if (text.empty()) return {};
  if (text == kNone) return {DrainDeadline::Kind::kNone, {}};
  if (text == kNow) return {DrainDeadline::Kind::kNow, {}};
  const auto at = base::ParseRfc3339(text);
  if (!at.ok()) {
    reader.Report(kKey, "is neither a time nor \"none\" nor \"now\"");
    return {};
  }
  return {DrainDeadline::Kind::kAt, *at};
}

MarkReason ReadReason(JsonObjectReader& reader) {
  const std::string text = reader.Text("reason");
  for (const MarkReason reason :
       {MarkReason::kScaleIn, MarkReason::kBroken, MarkReason::kUnhealthy}) {
    if (text == MarkReasonName(reason)) return reason;
  }
  if (!text.empty()) reader.Report("reason", "is unknown");
  return MarkReason::kScaleIn;
}

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

std::string ToAnnotation(const NodesRecord& nodes) { return base::DumpJson(NodesToJson(nodes)); }

absl::StatusOr<NodesRecord> ParseNodesRecord(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const json object, ParseObject(text, "nodes"));
  return NodesFromJson(object);
}

std::string_view MarkReasonName(MarkReason reason) {
  switch (reason) {
    case MarkReason::kBroken:
      return "broken";
    case MarkReason::kUnhealthy:
      return "unhealthy";
    case MarkReason::kScaleIn:
      break;
  }
  return "scale-in";
}

std::string ToAnnotation(const Mark& mark) {
  json object = {{"action", mark.action},
                 {"reason", MarkReasonName(mark.reason)},
                 {"vm_uid", mark.vm_uid},
                 {"node_id", mark.node_id},
                 {"marked_at", base::FormatRfc3339Nanos(mark.marked_at)},
                 {"drain_deadline", DeadlineText(mark.drain_deadline)},
                 {"grace", base::FormatGoDuration(mark.grace)},
                 {"force", mark.force},
                 {"ignore_system", mark.ignore_system},
                 {"purge", mark.purge},
                 {"nodes", NodesToJson(mark.nodes)}};
  AddUnknownMembers(object, mark.unknown_members);
  return base::DumpJson(object);
}

absl::StatusOr<Mark> ParseMark(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const json object, ParseObject(text, "mark"));
  JsonObjectReader reader(object, "mark");
  Mark mark;
  mark.action = reader.Text("action");
  mark.reason = ReadReason(reader);
  mark.vm_uid = reader.Text("vm_uid");
  mark.node_id = reader.OptionalText("node_id").value_or("");
  mark.marked_at = reader.Time("marked_at");
  mark.drain_deadline = ReadDeadline(reader);
  mark.grace = reader.GoDuration("grace");
  mark.force = reader.Flag("force");
  mark.ignore_system = reader.Flag("ignore_system");
  mark.purge = reader.Flag("purge");
  if (const json* nodes = reader.Object("nodes"); nodes != nullptr) {
    auto record = NodesFromJson(*nodes);
    if (!record.ok()) return base::Annotate(record.status(), "mark");
    mark.nodes = *std::move(record);
  }
  NH_RETURN_IF_ERROR(reader.status());
  mark.unknown_members = reader.UnknownMembers();
  return mark;
}

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

Hold ParseHold(std::string_view text) {
  if (const auto until = base::ParseRfc3339(text); until.ok()) return {.until = *until};
  return {.always = base::ParseGoBool(text).value_or(true)};
}

std::string FormatHold(const Hold& hold) {
  if (!hold.always && hold.until.has_value()) return base::FormatRfc3339Nanos(*hold.until);
  return hold.always ? "true" : "false";
}

}  // namespace nomad_harvester::harvester
