// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "nomad_harvester/scaling/step_spec.h"

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "status_view.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using Json = nlohmann::ordered_json;

Json PausedJson(const base::Hold& paused) {
  return paused.always || !paused.until.has_value() ? Json(paused.always) : TimeJson(paused.until);
}

Json ActionJson(const harvester::LeaseAction& action) {
  return {{"id", action.id},       {"from", action.from},     {"to", action.to},
          {"names", action.names}, {"create", action.create}, {"cancel", action.cancel}};
}

Json LeaseJson(const scaling::LeaseView& lease) {
  const scaling::PoolRecord& record = lease.record;
  Json policy;
  if (const auto& last = record.policy; last.has_value()) {
    policy = {{"id", last->id}, {"at", TimeJson(last->at)}};
  }
  Json error;
  if (const auto& last = record.last_error; last.has_value()) {
    error = {{"action", last->action}, {"at", TimeJson(last->at)}, {"text", last->text}};
  }
  Json back_off = Json::object();
  for (const auto& [cause, entry] : record.back_off) {
    back_off[cause] = {{"failures", entry.failures}, {"retry_at", TimeJson(entry.retry_at)}};
  }
  return {{"problem", lease.problem},
          {"holder", lease.holder},
          {"live", lease.live},
          {"renewed_at", TimeJson(lease.renewed_at)},
          {"action", record.action.has_value() ? ActionJson(*record.action) : Json()},
          {"back_off", std::move(back_off)},
          {"last_event", TimeJson(record.last_event)},
          {"paused", PausedJson(record.paused)},
          {"policy", std::move(policy)},
          {"nomad_cluster", record.nomad_cluster},
          {"last_error", std::move(error)}};
}

Json FindingsJson(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"text", finding.text}, {"vms", finding.vms}});
  }
  return list;
}

Json VmJson(const VmStatus& vm) {
  Json object;
  for (const VmField& field : VmFields()) {
    if (field.key != nullptr) object[field.key] = field.json(vm);
  }
  return object;
}

Json UnclaimedJson(const scaling::Inspection& inspection) {
  Json list = Json::array();
  for (const auto& [key, removals] : inspection.unclaimed) {
    Json unfinished = Json::array();
    for (const scaling::UnfinishedRemoval& removal : removals) {
      unfinished.push_back(
          {{"vm", removal.vm}, {"what", removal.what}, {"since", TimeJson(removal.since)}});
    }
    list.push_back({{"namespace", key.ns},
                    {"node_group_name", key.pool},
                    {"unfinished", std::move(unfinished)},
                    {"cure", UnclaimedCure(key)}});
  }
  return list;
}

Json CordonedHostsJson(const scaling::Inspection& inspection) {
  Json list = Json::array();
  for (const scaling::CordonedHost& host : inspection.cordoned_hosts) {
    list.push_back({{"name", host.name}, {"vms", host.vms}});
  }
  return list;
}

Json EventsJson(const scaling::EventsView& events) {
  if (!events.problem.empty()) return {};
  Json list = Json::array();
  for (const harvester::SeenEvent& event : events.events) {
    list.push_back({{"last", TimeJson(event.last)},
                    {"type", event.type},
                    {"reason", event.reason},
                    {"count", event.count},
                    {"message", event.note}});
  }
  return list;
}

using Deadline = harvester::DrainDeadline::Kind;

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
     .json = [](const VmStatus& vm) -> Json { return VmStateName(vm.state); },
     .text =
         [](const VmStatus& vm) {
           return std::string(VmStateName(vm.state)) +
                  (vm.protected_by.empty() ? "" : ", protected");
         }},
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
    {.key = "protected_by", .json = [](const VmStatus& vm) -> Json { return vm.protected_by; }},
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

Json StatusDocument(const PoolStatus& status) {
  const scaling::Inspection& inspection = status.inspection;
  const scaling::StatusReport& report = inspection.report;
  Json vms = Json::array();
  for (const VmStatus& vm : status.vms) vms.push_back(VmJson(vm));
  Json unlinked = Json::array();
  for (const nomad::Node* const node : status.unlinked) {
    unlinked.push_back(NodeJson(*node));
    unlinked.back()["foreign"] = inspection.foreign_nodes.contains(node->id);
  }
  return {{"namespace", inspection.snapshot.key.ns},
          {"node_group_name", inspection.snapshot.key.pool},
          {"policy", status.policy.empty() ? Json() : Json(status.policy)},
          {"time", TimeJson(status.time)},
          {"ready", report.status.ready},
          {"reason", report.reason},
          {"warning", report.warning},
          {"trouble", FindingsJson(status.troubles)},
          {"under_way", FindingsJson(status.under_way)},
          {"count", report.status.count},
          {"counters", status.counters},
          {"growth_problem", inspection.growth_problem},
          {"nomad_readable", inspection.snapshot.observation().nomad.ok()},
          {"lease", LeaseJson(inspection.lease)},
          {"vms", std::move(vms)},
          {"unlinked_nodes", std::move(unlinked)},
          {"cordoned_hosts", CordonedHostsJson(inspection)},
          {"room", inspection.room.has_value() ? Json(*inspection.room) : Json()},
          {"unclaimed", UnclaimedJson(inspection)}};
}

Json VmDocument(const VmStatus& vm, const scaling::EventsView& events) {
  Json document = VmJson(vm);
  document["events"] = EventsJson(events);
  return document;
}

std::string StateWithoutTimes(PoolStatus status, const scaling::EventsView& events) {
  status.time = {};
  status.inspection.lease.renewed_at.reset();
  if (!status.inspection.snapshot.observation().nomad.ok()) {
    // These texts say how long Nomad was waited for.
    status.inspection.report.reason.clear();
    status.troubles.clear();
    status.under_way.clear();
    for (VmStatus& vm : status.vms) vm.step.reason.clear();
  }
  Json document = StatusDocument(status);
  document["events"] = EventsJson(events);
  return document.dump(-1, ' ', true, Json::error_handler_t::replace);
}

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
