// SPDX-License-Identifier: Apache-2.0
#include "status_document.h"

#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "status_fields.h"

namespace nomad_harvester::cli {
namespace {

using Json = nlohmann::ordered_json;

// Returns false, true, or the time until which it is paused.
Json PausedJson(const harvester::Hold& paused) {
  return paused.always || !paused.until.has_value() ? Json(paused.always) : TimeJson(paused.until);
}

Json ActionJson(const harvester::LeaseAction& action) {
  return {{"id", action.id},       {"from", action.from},     {"to", action.to},
          {"names", action.names}, {"create", action.create}, {"back", action.back}};
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
          {"scale_open", lease.scale_open},
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
          {"time", TimeJson(status.time)},
          {"ready", report.status.ready},
          {"reason", report.reason},
          {"warning", report.warning},
          {"trouble", FindingsJson(status.troubles)},
          {"under_way", FindingsJson(status.under_way)},
          {"count", report.status.count},
          {"counters", status.counters},
          {"growth_problem", inspection.growth_problem},
          {"nomad_readable", inspection.snapshot.look().nomad_readable},
          {"lease", LeaseJson(inspection.lease)},
          {"vms", std::move(vms)},
          {"unlinked_nodes", std::move(unlinked)},
          {"cordoned_hosts", CordonedHostsJson(inspection)},
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
  if (!status.inspection.snapshot.look().nomad_readable) {
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

}  // namespace nomad_harvester::cli
