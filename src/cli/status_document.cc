// SPDX-License-Identifier: Apache-2.0
#include "status_document.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "nlohmann/json.hpp"
#include "status_trouble.h"

namespace nomad_harvester::cli {
namespace {

using Json = nlohmann::ordered_json;
using scaling::Inspection;
using scaling::PoolSnapshot;
using scaling::VmView;

std::string_view LinkName(nodepool::LinkState state) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "linked", "two-ready",
                                                      "contradicted"};
  return kNames[static_cast<std::size_t>(state)];
}

Json Time(const std::optional<base::WallTime>& time) {
  return time.has_value() ? Json(base::FormatRfc3339(*time)) : Json();
}

// Status' counters, "pending" for the member "harvester.pending" of its meta.
Json CountersOf(const scaling::StringMap& meta) {
  constexpr std::string_view kPrefix = "harvester.";
  Json counters = Json::object();
  for (const auto& [key, value] : meta) {
    if (!key.starts_with(kPrefix)) continue;
    const std::string name = key.substr(kPrefix.size());
    if (name == "leftovers") continue;  // only the plugin's process knows
    if (const auto number = base::ParseInt(value); number.ok()) counters[name] = *number;
  }
  return counters;
}

// False, true, or the time until which it is paused.
Json PausedOf(const harvester::Hold& paused) {
  return paused.always || !paused.until.has_value() ? Json(paused.always) : Time(paused.until);
}

Json LastErrorOf(const std::optional<harvester::ErrorRecord>& error) {
  if (!error.has_value()) return {};
  return {{"action", base::ToValidUtf8(error->action)},
          {"at", Time(error->at)},
          {"text", base::ToValidUtf8(error->text)}};
}

Json LeaseOf(const scaling::LeaseView& lease) {
  Json action;
  if (lease.record.action.has_value()) {
    const harvester::LeaseAction& open = *lease.record.action;
    action = {
        {"id", base::ToValidUtf8(open.id)}, {"from", open.from},        {"to", open.to},
        {"names", Json::array()},           {"create", Json::object()}, {"back", Json::array()}};
    for (const std::string& name : open.names) action["names"].push_back(base::ToValidUtf8(name));
    for (const auto& [name, id] : open.create) action["create"][name] = base::ToValidUtf8(id);
    for (const std::string& name : open.back) action["back"].push_back(base::ToValidUtf8(name));
  }
  Json policy;
  if (const auto& last = lease.record.policy; last.has_value()) {
    policy = {{"id", base::ToValidUtf8(last->id)}, {"at", Time(last->at)}};
  }
  Json back_off = Json::object();
  for (const auto& [cause, entry] : lease.record.back_off) {
    back_off[cause] = {{"failures", entry.failures}, {"retry_at", Time(entry.retry_at)}};
  }
  return {{"used", lease.problem.empty()},
          {"problem", base::ToValidUtf8(lease.problem)},
          {"holder", base::ToValidUtf8(lease.holder)},
          {"live", lease.live},
          {"renewed_at", Time(lease.renewed_at)},
          {"action", std::move(action)},
          {"back_off", std::move(back_off)},
          {"last_event", Time(lease.record.last_event)},
          {"paused", PausedOf(lease.record.paused)},
          {"policy", std::move(policy)},
          {"nomad_cluster", base::ToValidUtf8(lease.record.nomad_cluster)},
          {"last_error", LastErrorOf(lease.record.last_error)}};
}

Json NodeOf(const nomad::Node& node) {
  Json drivers = Json::object();
  for (const nomad::Driver& driver : node.drivers) {
    drivers[base::ToValidUtf8(driver.name)] = {
        {"detected", driver.detected},
        {"healthy", driver.healthy},
        {"description", base::ToValidUtf8(driver.description)}};
  }
  return {{"id", base::ToValidUtf8(node.id)},
          {"name", base::ToValidUtf8(node.name)},
          {"status", NodeStatusName(node.status)},
          {"eligible", node.eligible},
          {"draining", node.draining},
          {"drivers", std::move(drivers)}};
}

Json MarkOf(const harvester::VirtualMachine& vm) {
  if (!vm.has_mark) return {};
  if (!vm.mark.has_value()) return {{"readable", false}};
  const harvester::Mark& mark = *vm.mark;
  Json deadline = "none";
  if (mark.drain_deadline.kind == harvester::DrainDeadline::Kind::kAt) {
    deadline = Time(mark.drain_deadline.at);
  } else if (mark.drain_deadline.kind == harvester::DrainDeadline::Kind::kNow) {
    deadline = "now";
  }
  return {{"readable", true},
          {"action", base::ToValidUtf8(mark.action)},
          {"reason", harvester::MarkReasonName(mark.reason)},
          {"marked_at", Time(mark.marked_at)},
          {"drain_deadline", std::move(deadline)},
          {"grace", base::FormatGoDuration(mark.grace)},
          {"force", mark.force},
          {"purge", mark.purge}};
}

// Null: it does not differ, or nobody knows.
Json DriftOf(const VmView& view, const Inspection& inspection) {
  const auto parts = scaling::DriftOf(view.vm, inspection.template_hash, inspection.template_parts);
  if (!parts.has_value()) return {};
  Json list = Json::array();
  for (const std::string& part : *parts) list.push_back(base::ToValidUtf8(part));
  return list;
}

std::string HostOf(const VmView& view, const Inspection& inspection) {
  const auto host = inspection.hosts.find(view.vm->name);
  return view.host.empty() && host != inspection.hosts.end() ? host->second : view.host;
}

Json VmOf(const VmView& view, const Inspection& inspection) {
  const PoolSnapshot& snapshot = inspection.snapshot;
  const harvester::VirtualMachine& vm = view.vm;
  // Nothing is said about nodes while Nomad cannot be read, even if a part of it was read.
  const bool readable = snapshot.look().nomad_readable;
  const nomad::Node* node = readable ? LinkedNode(view, snapshot) : nullptr;
  const scaling::Step step = NextStep(view, snapshot);
  return {
      {"name", base::ToValidUtf8(vm.name)},
      {"uid", base::ToValidUtf8(vm.uid)},
      {"state", VmStateName(StateOf(view, snapshot))},
      {"counts", Counts(view, snapshot)},
      {"harvester_status", base::ToValidUtf8(vm.printable_status)},
      {"host", base::ToValidUtf8(HostOf(view, inspection))},
      {"addresses", view.addresses},
      {"created_at", Time(vm.created_at)},
      {"joined_at", Time(vm.joined_at)},
      {"ready_at", Time(vm.ready_at)},
      {"join_deadline",
       Time(harvester::WasReady(vm) ? std::nullopt : JoinDeadline(view, snapshot.look()))},
      {"link", readable ? LinkName(view.link.state) : "unknown"},
      {"link_explanation", base::ToValidUtf8(readable ? view.link.explanation : "")},
      {"node", node == nullptr ? Json() : NodeOf(*node)},
      {"not_ready", node == nullptr ? "" : base::ToValidUtf8(WhyNotReady(view, *node, snapshot))},
      {"mark", MarkOf(vm)},
      {"protected", vm.protect.HoldsAt(snapshot.now())},
      {"delete_first", vm.delete_first},
      {"drift", DriftOf(view, inspection)},
      {"next_step", StepName(step.kind)},
      {"row", RowName(step.row)},
      {"why", base::ToValidUtf8(step.reason)}};
}

Json TroublesOf(const Inspection& inspection) {
  Json list = Json::array();
  for (const Trouble& trouble : FindTroubles(inspection)) {
    Json vms = Json::array();
    for (const std::string& vm : trouble.vms) vms.push_back(base::ToValidUtf8(vm));
    list.push_back({{"text", base::ToValidUtf8(trouble.text)}, {"vms", std::move(vms)}});
  }
  return list;
}

Json UnclaimedOf(const Inspection& inspection) {
  Json list = Json::array();
  for (const auto& [key, removals] : inspection.unclaimed) {
    Json unfinished = Json::array();
    for (const scaling::UnfinishedRemoval& removal : removals) {
      unfinished.push_back({{"vm", base::ToValidUtf8(removal.vm)},
                            {"what", base::ToValidUtf8(removal.what)},
                            {"since", Time(removal.since)}});
    }
    list.push_back({{"namespace", key.ns},
                    {"node_group_name", base::ToValidUtf8(key.pool)},
                    {"unfinished", std::move(unfinished)},
                    {"cure", base::ToValidUtf8(UnclaimedCure(key))}});
  }
  return list;
}

}  // namespace

Json StatusDocument(const Inspection& inspection) {
  const PoolSnapshot& snapshot = inspection.snapshot;
  const scaling::StatusReport& report = inspection.report;
  std::vector<const VmView*> views = snapshot.vms();
  std::sort(views.begin(), views.end(),
            [](const auto* a, const auto* b) { return a->vm->name < b->vm->name; });
  Json vms = Json::array();
  for (const VmView* view : views) vms.push_back(VmOf(*view, inspection));
  std::vector<const nomad::Node*> nodes;
  if (snapshot.look().nomad_readable) nodes = scaling::UnlinkedNodes(snapshot);
  std::sort(nodes.begin(), nodes.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  Json unlinked = Json::array();
  for (const nomad::Node* node : nodes) {
    unlinked.push_back(NodeOf(*node));
    unlinked.back()["foreign"] = inspection.foreign_nodes.contains(node->id);
  }
  return {{"namespace", snapshot.key.ns},
          {"node_group_name", snapshot.key.pool},
          {"time", Time(snapshot.now())},
          {"ready", report.status.ready},
          {"reason", base::ToValidUtf8(report.reason)},
          {"warning", base::ToValidUtf8(report.warning)},
          {"trouble", TroublesOf(inspection)},
          {"count", report.status.count},
          {"counters", CountersOf(report.status.meta)},
          {"growth_problem", base::ToValidUtf8(inspection.growth_problem)},
          {"nomad_readable", snapshot.look().nomad_readable},
          {"lease", LeaseOf(inspection.lease)},
          {"vms", std::move(vms)},
          {"unlinked_nodes", std::move(unlinked)},
          {"unclaimed", UnclaimedOf(inspection)}};
}

Json EventsDocument(const scaling::EventsView& events) {
  if (!events.problem.empty()) return {};
  Json list = Json::array();
  for (const harvester::SeenEvent& event : events.events) {
    list.push_back({{"last", Time(event.last)},
                    {"type", base::ToValidUtf8(event.type)},
                    {"reason", base::ToValidUtf8(event.reason)},
                    {"count", event.count},
                    {"message", base::ToValidUtf8(event.note)}});
  }
  return list;
}

}  // namespace nomad_harvester::cli
