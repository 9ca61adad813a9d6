// SPDX-License-Identifier: Apache-2.0
// The mark: the annotation scale-in, which records the removal of a VM.
#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/metadata.h"

#include "json_object_reader.h"
#include "nodes_record.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

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

}  // namespace

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

}  // namespace nomad_harvester::harvester
