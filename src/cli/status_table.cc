// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <vector>

#include "nomad_harvester/scaling/step_spec.h"

#include "names.h"
#include "status_view.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using scaling::Inspection;
using scaling::PoolSnapshot;
using scaling::VmView;

// Enough of a node ID for people to identify it.
constexpr std::size_t kShortId = 8;

std::string Line(const std::string& label, const std::string& text) {
  std::string line = label + ":";
  line.append(12 - std::min<std::size_t>(11, line.size()), ' ');
  return line + Printable(text) + "\n";
}

std::string Count(std::size_t number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

std::string Counters(const scaling::StringMap& meta) {
  std::string text;
  for (const auto& [key, value] : meta) {
    const auto name = CounterName(key);
    if (!name.has_value() || value == "0") continue;
    text += (text.empty() ? "" : ", ") + value + " " + std::string(*name);
  }
  return text;
}

std::string Ago(base::Duration age) {
  return base::FormatGoDuration(std::chrono::floor<std::chrono::seconds>(age)) + " ago";
}

std::string LeaseText(const scaling::LeaseView& lease, base::WallTime now) {
  if (!lease.problem.empty()) return "not used: " + lease.problem;
  if (!lease.present) return "none yet";
  if (lease.holder.empty()) return "free";
  std::string text = "held by " + lease.holder;
  if (lease.renewed_at.has_value()) {
    const base::Duration age = std::max(now - *lease.renewed_at, base::Duration::zero());
    text += ", renewed " + Ago(age);
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

std::string BackOffText(const std::string& cause, const harvester::BackOffEntry& entry,
                        base::WallTime now) {
  return cause + " failed " + Count(static_cast<std::size_t>(entry.failures), "time", "times") +
         " in a row, " +
         (now >= entry.retry_at ? "may be tried again"
                                : "is tried again at " + base::FormatRfc3339(entry.retry_at));
}

std::string NodeText(const nomad::Node& node) {
  std::string text(NodeStatusName(node.status));
  if (node.draining) text += ", draining";
  text += node.eligible ? ", eligible" : ", ineligible";
  return text;
}

std::string MarkText(const harvester::VirtualMachine& vm) {
  if (!vm.has_mark) return "";
  if (!vm.mark.has_value()) return "unreadable";
  using Kind = harvester::DrainDeadline::Kind;
  const harvester::Mark& mark = *vm.mark;
  std::string text(harvester::MarkReasonName(mark.reason));
  switch (mark.drain_deadline.kind) {
    case Kind::kAt:
      return text + ", until " + base::FormatRfc3339(mark.drain_deadline.at);
    case Kind::kNone:
      return text + ", no deadline";
    case Kind::kNow:
      return text + ", immediately";
  }
  return text;
}

std::string VmTable(const PoolSnapshot& snapshot) {
  std::vector<std::vector<std::string>> rows = {
      {"VM", "STATE", "HARVESTER", "LINK", "NODE", "NODE STATE", "MARK"}};
  for (const VmView* view : VmsOf(snapshot)) {
    const nomad::Node* node = ReadableNode(*view, snapshot);
    rows.push_back(
        {view->vm.name, std::string(VmStateName(StateOf(*view, snapshot))),
         view->vm.printable_status,
         snapshot.look().nomad_readable ? std::string(LinkName(view->link.state)) : "unknown",
         node == nullptr ? "" : node->id.substr(0, kShortId),
         node == nullptr ? "" : NodeText(*node), MarkText(view->vm)});
  }
  return rows.size() == 1 ? std::string() : "\n" + Table(rows);
}

std::string UnlinkedTable(const PoolSnapshot& snapshot) {
  std::vector<std::vector<std::string>> rows = {{"NODE WITHOUT A VM", "NAME", "NODE STATE"}};
  for (const nomad::Node* node : UnlinkedNodesOf(snapshot)) {
    rows.push_back({node->id.substr(0, kShortId), node->name, NodeText(*node)});
  }
  return rows.size() == 1 ? std::string() : "\n" + Table(rows);
}

// What the background work of Status does next, or waits for.
std::string NextTable(const PoolSnapshot& snapshot) {
  std::vector<std::vector<std::string>> rows = {{"VM", "NEXT STEP", "WHY"}};
  for (const VmView* view : VmsOf(snapshot)) {
    const scaling::Step step = NextStep(*view, snapshot);
    if (step.kind == scaling::StepKind::kNothing) continue;
    rows.push_back({view->vm.name, std::string(StepName(step.kind)), step.reason});
  }
  return rows.size() == 1 ? std::string() : "\n" + Table(rows);
}

}  // namespace

std::string StatusTable(const Inspection& inspection) {
  const PoolSnapshot& snapshot = inspection.snapshot;
  const scaling::StatusReport& report = inspection.report;
  const harvester::BackOff& back_off = inspection.lease.record.back_off;
  std::string text = Line("Pool", snapshot.key.ToString());
  text += Line("Ready", report.status.ready ? "yes" : "no: " + report.reason);
  text += Line("Count", std::to_string(report.status.count));
  if (const std::string counters = Counters(report.status.meta); !counters.empty()) {
    text += Line("Counters", counters);
  }
  if (!report.warning.empty()) text += Line("Attention", report.warning);
  text += Line("Lease", LeaseText(inspection.lease, snapshot.now()));
  if (inspection.lease.record.action.has_value()) {
    text += Line("Action", ActionText(*inspection.lease.record.action));
  }
  if (inspection.lease.record.policy.has_value()) {
    const harvester::PolicyRecord& policy = *inspection.lease.record.policy;
    text += Line("Policy", policy.id + ", scaled at " + base::FormatRfc3339(policy.at));
  }
  for (const auto& [cause, entry] : back_off) {
    text += Line("Back-off", BackOffText(cause, entry, snapshot.now()));
  }
  if (inspection.lease.record.last_event.has_value()) {
    text += Line("Last act", base::FormatRfc3339(*inspection.lease.record.last_event));
  }
  return text + VmTable(snapshot) + UnlinkedTable(snapshot) + NextTable(snapshot);
}

}  // namespace nomad_harvester::cli
