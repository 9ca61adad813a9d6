// SPDX-License-Identifier: Apache-2.0
#include "status_fields.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using Json = nlohmann::ordered_json;
using Deadline = harvester::DrainDeadline::Kind;

// Returns null if it has none.
Json MarkJson(const harvester::VirtualMachine& vm) {
  if (!vm.has_mark) return {};
  if (!vm.mark.has_value()) return {{"readable", false}};
  const harvester::Mark& mark = *vm.mark;
  Json deadline = mark.drain_deadline.kind == Deadline::kNow ? "now" : "none";
  if (mark.drain_deadline.kind == Deadline::kAt) deadline = TimeJson(mark.drain_deadline.at);
  return {{"readable", true},
          {"action", mark.action},
          {"reason", harvester::MarkReasonName(mark.reason)},
          {"marked_at", TimeJson(mark.marked_at)},
          {"drain_deadline", std::move(deadline)},
          {"grace", base::FormatGoDuration(mark.grace)},
          {"force", mark.force},
          {"purge", mark.purge}};
}

std::string NodeCell(const VmStatus& vm) {
  return vm.node == nullptr ? "" : ShortId(vm.node->id) + " " + NodeText(*vm.node);
}

constexpr VmField kFields[] = {
    {.key = "name", .title = "VM", .json = [](const VmStatus& vm) -> Json { return vm.vm().name; }},
    {.key = "uid", .json = [](const VmStatus& vm) -> Json { return vm.vm().uid; }},
    {.key = "state",
     .title = "STATE",
     .json = [](const VmStatus& vm) -> Json { return VmStateName(vm.state); }},
    {.key = "counts", .json = [](const VmStatus& vm) -> Json { return vm.counts; }},
    {.key = "harvester_status",
     .title = "HARVESTER",
     .wide = true,
     .json = [](const VmStatus& vm) -> Json { return vm.vm().printable_status; }},
    {.key = nullptr, .title = "AGE", .text = [](const VmStatus& vm) { return AgeText(vm.age); }},
    {.key = "host", .title = "HOST", .json = [](const VmStatus& vm) -> Json { return vm.host; }},
    {.key = "addresses", .json = [](const VmStatus& vm) -> Json { return vm.view->addresses; }},
    {.key = "created_at",
     .json = [](const VmStatus& vm) -> Json { return TimeJson(vm.vm().created_at); }},
    {.key = "joined_at",
     .json = [](const VmStatus& vm) -> Json { return TimeJson(vm.vm().joined_at); }},
    {.key = "ready_at",
     .json = [](const VmStatus& vm) -> Json { return TimeJson(vm.vm().ready_at); }},
    {.key = "join_deadline",
     .json = [](const VmStatus& vm) -> Json { return TimeJson(vm.ready_by); }},
    {.key = "link",
     .title = "LINK",
     .wide = true,
     .json = [](const VmStatus& vm) -> Json { return vm.link; }},
    {.key = "link_explanation",
     .json = [](const VmStatus& vm) -> Json { return vm.link_explanation; }},
    {.key = "node",
     .title = "NODE",
     .json = [](const VmStatus& vm) { return vm.node == nullptr ? Json() : NodeJson(*vm.node); },
     .text = NodeCell},
    {.key = "not_ready", .json = [](const VmStatus& vm) -> Json { return vm.not_ready; }},
    {.key = "mark",
     .title = "MARK",
     .json = [](const VmStatus& vm) { return MarkJson(vm.vm()); },
     .text = [](const VmStatus& vm) { return MarkText(vm.vm()); }},
    {.key = "protected", .json = [](const VmStatus& vm) -> Json { return vm.is_protected; }},
    {.key = "delete_first",
     .json = [](const VmStatus& vm) -> Json { return vm.vm().delete_first; }},
    {.key = "drift",
     .title = "DRIFT",
     .wide = true,
     .json = [](const VmStatus& vm) { return vm.drift.has_value() ? Json(*vm.drift) : Json(); },
     .text = DriftText},
    {.key = "to_be_replaced", .json = [](const VmStatus& vm) -> Json { return vm.to_be_replaced; }},
    {.key = "replaces",
     .json = [](const VmStatus& vm) -> Json {
       return vm.vm().replaces.has_value() ? vm.vm().replaces->vm : "";
     }},
    {.key = "next_step",
     .title = "NEXT STEP",
     .wide = true,
     .json = [](const VmStatus& vm) -> Json { return StepName(vm.step.kind); },
     .text = [](const VmStatus& vm) { return std::string(SpecOf(vm.step.kind).infinitive); }},
    {.key = "row", .json = [](const VmStatus& vm) -> Json { return RowName(vm.step.row); }},
    {.key = "why", .title = "WHY", .wide = true, .json = [](const VmStatus& vm) -> Json {
       return vm.step.reason;
     }}};

}  // namespace

std::string VmField::Cell(const VmStatus& vm) const {
  return text != nullptr ? text(vm) : json(vm).get<std::string>();
}

std::span<const VmField> VmFields() { return kFields; }

Json TimeJson(const std::optional<base::WallTime>& time) {
  return time.has_value() ? Json(base::FormatRfc3339(*time)) : Json();
}

Json NodeJson(const nomad::Node& node) {
  Json drivers = Json::object();
  for (const nomad::Driver& driver : node.drivers) {
    drivers[driver.name] = {{"detected", driver.detected},
                            {"healthy", driver.healthy},
                            {"description", driver.description}};
  }
  return {{"id", node.id},
          {"name", node.name},
          {"status", NodeStatusName(node.status)},
          {"eligible", node.eligible},
          {"draining", node.draining},
          {"drivers", std::move(drivers)}};
}

std::string NodeText(const nomad::Node& node) {
  return std::string(NodeStatusName(node.status)) + (node.draining ? ", draining" : "") +
         (node.eligible ? ", eligible" : ", ineligible");
}

std::string MarkText(const harvester::VirtualMachine& vm) {
  if (!vm.has_mark) return "";
  if (!vm.mark.has_value()) return "unreadable";
  const harvester::DrainDeadline& deadline = vm.mark->drain_deadline;
  const std::string reason(harvester::MarkReasonName(vm.mark->reason));
  if (deadline.kind == Deadline::kAt) return reason + ", until " + base::FormatRfc3339(deadline.at);
  return reason + (deadline.kind == Deadline::kNow ? ", immediately" : ", no deadline");
}

std::string DriftText(const VmStatus& vm) {
  if (!vm.drift.has_value()) return "";
  return vm.drift->empty() ? "yes" : absl::StrJoin(*vm.drift, ",");
}

std::string AgeText(base::Duration age) {
  constexpr std::pair<std::int64_t, char> kUnits[] = {
      {86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
  std::int64_t left =
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(age).count());
  std::string text;
  int units = 0;
  for (const auto& [seconds, unit] : kUnits) {
    const std::int64_t count = left / seconds;
    left -= count * seconds;
    if (count > 0) text += std::to_string(count) + unit;
    if (!text.empty() && ++units == 2) break;
  }
  return text.empty() ? "0s" : text;
}

}  // namespace nomad_harvester::cli
