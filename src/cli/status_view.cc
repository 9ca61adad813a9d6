// SPDX-License-Identifier: Apache-2.0
#include "status_view.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using Json = nlohmann::ordered_json;
using scaling::Inspection;
using scaling::PoolSnapshot;
using scaling::VmView;

std::string_view NodeStatusName(nomad::NodeStatus status) {
  if (status == nomad::NodeStatus::kUnknown) return "unknown";
  return nomad::kNodeStatusNames[static_cast<std::size_t>(status)];
}

std::string_view LinkName(nodepool::LinkState state) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "linked", "two-ready",
                                                      "contradicted"};
  return kNames[static_cast<std::size_t>(state)];
}

Json Time(const std::optional<base::WallTime>& time) {
  return time.has_value() ? Json(base::FormatRfc3339(*time)) : Json();
}

Json Text(std::string_view text) { return base::ToValidUtf8(text); }

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
  return {{"action", Text(error->action)}, {"at", Time(error->at)}, {"text", Text(error->text)}};
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
          {"policy", std::move(policy)},
          {"last_error", LastErrorOf(lease.record.last_error)}};
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

// Null: it does not differ, or nobody knows.
Json DriftOf(const VmView& view, const Inspection& inspection) {
  const auto parts = scaling::DriftOf(view.vm, inspection.template_hash, inspection.template_parts);
  if (!parts.has_value()) return {};
  Json list = Json::array();
  for (const std::string& part : *parts) list.push_back(Text(part));
  return list;
}

Json VmOf(const VmView& view, const Inspection& inspection) {
  const PoolSnapshot& snapshot = inspection.snapshot;
  const harvester::VirtualMachine& vm = view.vm;
  // Nothing is said about nodes while Nomad cannot be read, even if a part of it was read.
  const bool readable = snapshot.look().nomad_readable;
  const nomad::Node* node = readable ? LinkedNode(view, snapshot) : nullptr;
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
          {"link", readable ? LinkName(view.link.state) : "unknown"},
          {"link_explanation", Text(readable ? view.link.explanation : "")},
          {"node", node == nullptr ? Json() : NodeOf(*node)},
          {"mark", MarkOf(vm)},
          {"protected", vm.protect.HoldsAt(snapshot.now())},
          {"delete_first", vm.delete_first},
          {"drift", DriftOf(view, inspection)},
          {"next_step", StepName(step.kind)},
          {"row", RowName(step.row)},
          {"why", Text(step.reason)}};
}

Json Document(const Inspection& inspection) {
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
  for (const nomad::Node* node : nodes) unlinked.push_back(NodeOf(*node));
  return {{"namespace", snapshot.key.ns},
          {"node_group_name", snapshot.key.pool},
          {"time", Time(snapshot.now())},
          {"ready", report.status.ready},
          {"reason", Text(report.reason)},
          {"warning", Text(report.warning)},
          {"count", report.status.count},
          {"counters", CountersOf(report.status.meta)},
          {"growth_problem", Text(inspection.growth_problem)},
          {"nomad_readable", snapshot.look().nomad_readable},
          {"lease", LeaseOf(inspection.lease)},
          {"vms", std::move(vms)},
          {"unlinked_nodes", std::move(unlinked)}};
}

// Enough of a node ID for people to identify it.
constexpr std::size_t kShortId = 8;

// A text of several lines stays under its first one.
std::string Line(const std::string& label, const std::string& text) {
  constexpr std::size_t kColumn = 12;
  std::string line = label + ":";
  line.append(kColumn - std::min<std::size_t>(kColumn - 1, line.size()), ' ');
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(text, '\n')) {
    parts.push_back(Printable({part.data(), part.size()}));
  }
  return line + absl::StrJoin(parts, "\n" + std::string(kColumn, ' ')) + "\n";
}

std::string LeaseText(const scaling::LeaseView& lease, base::WallTime now) {
  if (!lease.problem.empty()) return "not used: " + lease.problem;
  if (!lease.present) return "none yet";
  if (lease.holder.empty()) return "free";
  std::string text = "held by " + lease.holder;
  if (lease.renewed_at.has_value()) {
    const base::Duration age = std::max(now - *lease.renewed_at, base::Duration::zero());
    text += ", renewed " + base::FormatGoDuration(std::chrono::floor<std::chrono::seconds>(age)) +
            " ago";
    if (!lease.live) text += ": no longer renewed";
  }
  return text;
}

std::string ActionText(const harvester::LeaseAction& action) {
  std::string text = action.id + ", " + std::to_string(action.from) + " → " +
                     std::to_string(action.to) + ", unfinished:";
  for (const std::string& name : action.names) {
    text += " " + name + (action.create.contains(name) ? " (to be created)" : "");
  }
  return text;
}

std::string ErrorText(const harvester::ErrorRecord& error) {
  return base::FormatRfc3339(error.at) + (error.action.empty() ? "" : ", action " + error.action) +
         ": " + error.text;
}

std::string BackOffText(const std::string& cause, const harvester::BackOffEntry& entry,
                        base::WallTime now) {
  static const std::map<std::string, std::string> kWhat = {{"create", "creating VMs failed"},
                                                           {"start", "starting VMs failed"},
                                                           {"join", "joining Nomad failed"},
                                                           {"remove", "removing VMs failed"},
                                                           {"refused", "removing VMs was refused"}};
  const auto what = kWhat.find(cause);
  return (what == kWhat.end() ? cause + " failed" : what->second) + " " +
         std::to_string(entry.failures) + (entry.failures == 1 ? " time" : " times in a row") +
         (now >= entry.retry_at ? "; it may be tried again"
                                : "; it is tried again at " + base::FormatRfc3339(entry.retry_at));
}

std::string Counters(const Json& counters) {
  std::string text;
  for (const auto& [name, value] : counters.items()) {
    if (value != 0) text += (text.empty() ? "" : ", ") + value.dump() + " " + name;
  }
  return text;
}

std::string TextOf(const Json& object, const char* member) {
  return object.at(member).get<std::string>();
}

std::string NodeText(const Json& node) {
  if (node.is_null()) return "";
  return TextOf(node, "status") + (node.at("draining") == true ? ", draining" : "") +
         (node.at("eligible") == true ? ", eligible" : ", ineligible");
}

std::string ShortId(const Json& node) {
  return node.is_null() ? "" : TextOf(node, "id").substr(0, kShortId);
}

std::string MarkText(const Json& mark) {
  if (mark.is_null()) return "";
  if (mark.at("readable") == false) return "unreadable";
  const std::string deadline = TextOf(mark, "drain_deadline");
  return TextOf(mark, "reason") + (deadline == "none"  ? ", no deadline"
                                   : deadline == "now" ? ", immediately"
                                                       : ", until " + deadline);
}

// A table with a heading, or nothing if it has no other rows.
std::string Section(const std::vector<std::vector<std::string>>& rows) {
  return rows.size() == 1 ? std::string() : "\n" + Table(rows);
}

// The VMs, the nodes without a VM, and what the background work of Status does next or waits for.
std::string Sections(const Json& document) {
  std::vector<std::vector<std::string>> vms = {
      {"VM", "STATE", "HARVESTER", "LINK", "NODE", "NODE STATE", "MARK"}};
  std::vector<std::vector<std::string>> next = {{"VM", "NEXT STEP", "WHY"}};
  for (const Json& vm : document.at("vms")) {
    const Json& node = vm.at("node");
    vms.push_back({TextOf(vm, "name"), TextOf(vm, "state"), TextOf(vm, "harvester_status"),
                   TextOf(vm, "link"), ShortId(node), NodeText(node), MarkText(vm.at("mark"))});
    if (TextOf(vm, "next_step") == StepName(scaling::StepKind::kNothing)) continue;
    next.push_back({TextOf(vm, "name"), TextOf(vm, "next_step"), TextOf(vm, "why")});
  }
  std::vector<std::vector<std::string>> unlinked = {{"NODE WITHOUT A VM", "NAME", "NODE STATE"}};
  for (const Json& node : document.at("unlinked_nodes")) {
    unlinked.push_back({ShortId(node), TextOf(node, "name"), NodeText(node)});
  }
  return Section(vms) + Section(unlinked) + Section(next);
}

}  // namespace

// In ASCII, so that no control character of any kind reaches a terminal.
std::string StatusJson(const Inspection& inspection) {
  return base::WithoutSecrets(Document(inspection).dump(2, ' ', true)) + "\n";
}

std::string StatusTable(const Inspection& inspection) {
  const PoolSnapshot& snapshot = inspection.snapshot;
  const scaling::StatusReport& report = inspection.report;
  const scaling::PoolRecord& lease = inspection.lease.record;
  const Json document = Document(inspection);
  std::string text = Line("Pool", snapshot.key.ToString());
  text += Line("Ready", report.status.ready ? "yes" : "no: " + report.reason);
  if (lease.last_error.has_value()) {
    text += Line("Last error", ErrorText(*lease.last_error));
  }
  if (!inspection.growth_problem.empty()) {
    text += Line("Growth", "would be refused: " + inspection.growth_problem);
  }
  text += Line("Count", std::to_string(report.status.count));
  if (const std::string counters = Counters(document.at("counters")); !counters.empty()) {
    text += Line("Counters", counters);
  }
  if (!report.drift.empty()) text += Line("Drift", report.drift);
  if (!report.warning.empty()) text += Line("Attention", report.warning);
  text += Line("Lease", LeaseText(inspection.lease, snapshot.now()));
  if (lease.action.has_value()) {
    text += Line("Action", ActionText(*lease.action));
  }
  if (lease.policy.has_value()) {
    const harvester::PolicyRecord& policy = *lease.policy;
    text += Line("Policy", policy.id + ", scaled at " + base::FormatRfc3339(policy.at));
  }
  for (const auto& [cause, entry] : lease.back_off) {
    text += Line("Back-off", BackOffText(cause, entry, snapshot.now()));
  }
  if (lease.last_event.has_value()) {
    text += Line("Last act", base::FormatRfc3339(*lease.last_event));
  }
  return text + Sections(document);
}

}  // namespace nomad_harvester::cli
