// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "names.h"
#include "nlohmann/json.hpp"
#include "status_view.h"

namespace nomad_harvester::cli {
namespace {

using Json = nlohmann::ordered_json;
using scaling::Inspection;
using scaling::PoolSnapshot;
using scaling::VmView;

Json Time(const std::optional<base::WallTime>& time) {
  return time.has_value() ? Json(base::FormatRfc3339(*time)) : Json();
}

Json Text(std::string_view text) { return base::ToValidUtf8(text); }

Json CountersOf(const scaling::StringMap& meta) {
  Json counters = Json::object();
  for (const auto& [key, value] : meta) {
    const auto name = CounterName(key);
    const auto number = base::ParseInt(value);
    if (name.has_value() && number.ok()) counters[std::string(*name)] = *number;
  }
  return counters;
}

// False, true, or the time until which it is paused.
Json PausedOf(const harvester::Hold& paused) {
  return paused.always || !paused.until.has_value() ? Json(paused.always) : Time(paused.until);
}

Json LeaseOf(const scaling::LeaseView& lease) {
  Json action;
  if (lease.record.action.has_value()) {
    const harvester::LeaseAction& open = *lease.record.action;
    action = {{"id", Text(open.id)},    {"from", open.from},        {"to", open.to},
              {"names", Json::array()}, {"create", Json::object()}, {"back", Json::array()}};
    for (const std::string& name : open.names) action["names"].push_back(Text(name));
    for (const auto& [name, id] : open.create) action["create"][name] = Text(id);
    for (const std::string& name : open.back) action["back"].push_back(Text(name));
  }
  Json policy;
  if (const auto& last = lease.record.policy; last.has_value()) {
    policy = {{"id", Text(last->id)}, {"at", Time(last->at)}};
  }
  Json back_off = Json::object();
  for (const auto& [cause, entry] : lease.record.back_off) {
    back_off[cause] = {{"failures", entry.failures}, {"retry_at", Time(entry.retry_at)}};
  }
  return {{"used", lease.problem.empty()},
          {"problem", Text(lease.problem)},
          {"holder", Text(lease.holder)},
          {"live", lease.live},
          {"renewed_at", Time(lease.renewed_at)},
          {"action", std::move(action)},
          {"back_off", std::move(back_off)},
          {"last_event", Time(lease.record.last_event)},
          {"paused", PausedOf(lease.record.paused)},
          {"policy", std::move(policy)}};
}

Json NodeOf(const nomad::Node& node) {
  return {{"id", Text(node.id)},
          {"name", Text(node.name)},
          {"status", NodeStatusName(node.status)},
          {"eligible", node.eligible},
          {"draining", node.draining}};
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
          {"action", Text(mark.action)},
          {"reason", harvester::MarkReasonName(mark.reason)},
          {"marked_at", Time(mark.marked_at)},
          {"drain_deadline", std::move(deadline)},
          {"grace", base::FormatGoDuration(mark.grace)},
          {"force", mark.force},
          {"purge", mark.purge}};
}

Json VmOf(const VmView& view, const PoolSnapshot& snapshot) {
  const harvester::VirtualMachine& vm = view.vm;
  const nomad::Node* node = ReadableNode(view, snapshot);
  const scaling::Step step = NextStep(view, snapshot);
  return {{"name", Text(vm.name)},
          {"uid", Text(vm.uid)},
          {"state", VmStateName(StateOf(view, snapshot))},
          {"counts", Counts(view, snapshot)},
          {"harvester_status", Text(vm.printable_status)},
          {"created_at", Time(vm.created_at)},
          {"joined_at", Time(vm.joined_at)},
          {"join_deadline",
           Time(harvester::HasJoined(vm) ? std::nullopt : JoinDeadline(view, snapshot.look()))},
          {"link", snapshot.look().nomad_readable ? LinkName(view.link.state) : "unknown"},
          {"link_explanation", Text(snapshot.look().nomad_readable ? view.link.explanation : "")},
          {"node", node == nullptr ? Json() : NodeOf(*node)},
          {"mark", MarkOf(vm)},
          {"protected", vm.protect.HoldsAt(snapshot.now())},
          {"delete_first", vm.delete_first},
          {"next_step", StepName(step.kind)},
          {"row", RowName(step.row)},
          {"why", Text(step.reason)}};
}

}  // namespace

std::string StatusJson(const Inspection& inspection) {
  const PoolSnapshot& snapshot = inspection.snapshot;
  const scaling::StatusReport& report = inspection.report;
  Json vms = Json::array();
  for (const VmView* view : VmsOf(snapshot)) vms.push_back(VmOf(*view, snapshot));
  Json unlinked = Json::array();
  for (const nomad::Node* node : UnlinkedNodesOf(snapshot)) unlinked.push_back(NodeOf(*node));
  const Json document = {{"namespace", snapshot.key.ns},
                         {"node_group_name", snapshot.key.pool},
                         {"time", Time(snapshot.now())},
                         {"ready", report.status.ready},
                         {"reason", Text(report.reason)},
                         {"warning", Text(report.warning)},
                         {"count", report.status.count},
                         {"counters", CountersOf(report.status.meta)},
                         {"nomad_readable", snapshot.look().nomad_readable},
                         {"lease", LeaseOf(inspection.lease)},
                         {"vms", std::move(vms)},
                         {"unlinked_nodes", std::move(unlinked)}};
  return document.dump(2) + "\n";
}

}  // namespace nomad_harvester::cli
