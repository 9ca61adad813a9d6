// SPDX-License-Identifier: Apache-2.0
#include "status_view.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/scaling/replacement.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Aligns the lines of a multi-line text.
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

std::string LineIf(const std::string& label, const std::string& text) {
  return text.empty() ? "" : Line(label, text);
}

std::string TimeText(const std::optional<base::WallTime>& time) {
  return time.has_value() ? base::FormatRfc3339(*time) : "";
}

std::string LeaseText(const scaling::LeaseView& lease, base::WallTime now) {
  if (!lease.problem.empty()) return "cannot be read: " + lease.problem;
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

// A VM that the action made or removed may be gone; then only its leftovers remain to be handled.
std::string ActionText(const harvester::LeaseAction& action, const PoolStatus& status) {
  std::string unfinished;
  std::string gone;
  for (const std::string& name : action.names) {
    const bool exists = std::any_of(status.vms.begin(), status.vms.end(),
                                    [&](const VmStatus& vm) { return vm.vm().name == name; });
    if (exists || action.create.contains(name)) {
      unfinished += " " + name + (exists ? "" : " (to be created)");
    } else {
      gone += " " + name;
    }
  }
  return action.id + ", " + std::to_string(action.from) + " → " + std::to_string(action.to) +
         (unfinished.empty() ? "" : ", unfinished:" + unfinished) +
         (gone.empty() ? ""
                       : ", gone:" + gone +
                             " (if anything is left of them, the plugin's Status or "
                             "nomad-harvester gc removes it)");
}

std::string UnclaimedText(const scaling::PoolKey& key,
                          const std::vector<scaling::UnfinishedRemoval>& removals) {
  std::vector<std::string> parts;
  parts.reserve(removals.size());
  for (const scaling::UnfinishedRemoval& removal : removals) {
    const std::string since = TimeText(removal.since);
    parts.push_back(removal.vm + " (" + removal.what + (since.empty() ? "" : ", since " + since) +
                    ")");
  }
  return "pool " + key.ToString() +
         ", of which no policy was given, has unfinished removals: " + FirstFew(parts) + "; " +
         UnclaimedCure(key);
}

Rows VmRows(const PoolStatus& status, StatusDetail detail) {
  std::vector<const VmField*> columns;
  for (const bool wide : {false, true}) {
    if (wide && detail != StatusDetail::kWide) break;
    for (const VmField& field : VmFields()) {
      if (field.title != nullptr && field.wide == wide) columns.push_back(&field);
    }
  }
  Rows rows(1 + status.vms.size());
  for (const VmField* const column : columns) {
    rows[0].emplace_back(column->title);
    for (std::size_t i = 0; i < status.vms.size(); ++i) {
      rows[i + 1].push_back(column->Cell(status.vms[i]));
    }
  }
  return rows;
}

Rows UnlinkedRows(const PoolStatus& status) {
  Rows rows = {{"NODE WITHOUT A VM", "NAME", "NODE STATE"}};
  for (const nomad::Node* const node : status.unlinked) {
    const bool foreign = status.inspection.foreign_nodes.contains(node->id);
    rows.push_back({ShortId(node->id), node->name,
                    NodeText(*node) + (foreign ? ", not of this namespace" : "")});
  }
  return rows;
}

std::string UnlinkedText(std::size_t count) {
  return (count == 1 ? "1 node has" : std::to_string(count) + " nodes have") +
         " no VM (below): removed VMs, until Nomad collects them, or other machines (give them "
         "another node_class, or harvester_vm_uuid = \"none\" in their meta)";
}

std::string Section(const Rows& rows, std::size_t width) {
  return rows.size() == 1 ? std::string() : "\n" + Table(rows, width);
}

// "docker not healthy: Failed to connect to docker daemon; exec healthy".
std::string DriversText(const nomad::Node& node) {
  std::vector<std::string> texts;
  texts.reserve(node.drivers.size());
  for (const nomad::Driver& driver : node.drivers) {
    texts.push_back(
        driver.name +
        (!driver.detected ? " not detected"
         : driver.healthy ? " healthy"
                          : " not healthy") +
        (driver.healthy || driver.description.empty() ? "" : ": " + driver.description));
  }
  return absl::StrJoin(texts, "; ");
}

// A line for each finding that concerns the VM.
std::string LinesOf(const std::string& label, const std::vector<Finding>& findings,
                    const std::string& vm) {
  std::string lines;
  for (const Finding& finding : findings) {
    if (std::find(finding.vms.begin(), finding.vms.end(), vm) == finding.vms.end()) continue;
    const bool is_its_own = !finding.varies || finding.vms.front() == vm;
    lines += Line(label, is_its_own ? finding.text : FindingText(finding));
  }
  return lines;
}

std::string ActionsPart(const std::optional<harvester::LeaseAction>& action,
                        const std::string& vm) {
  if (!action.has_value()) return "";
  if (action->create.contains(vm)) return "action " + action->id + " creates it";
  if (action->cancel.contains(vm)) return "action " + action->id + " cancels its removal";
  if (action->names.contains(vm)) return "action " + action->id + " names it";
  return "";
}

std::string MarkStory(const harvester::VirtualMachine& vm) {
  if (!vm.mark.has_value()) return MarkText(vm);
  const harvester::Mark& mark = *vm.mark;
  return MarkText(vm) + "; action " + mark.action + ", set at " +
         base::FormatRfc3339(mark.marked_at) + ", grace " + base::FormatGoDuration(mark.grace) +
         (mark.force ? ", deleted even if the drain does not end"
                     : ", rolled back if the drain does not end") +
         (mark.purge ? ", its node is purged" : "");
}

// "5m ago: Warning FailedCreate (3 times): …".
std::string EventText(const harvester::SeenEvent& event, base::WallTime now) {
  return AgeText(now - event.last) + " ago: " + event.type + " " + event.reason +
         (event.count > 1 ? " (" + std::to_string(event.count) + " times)" : "") +
         (event.note.empty() ? "" : ": " + event.note);
}

std::string EventLines(const scaling::EventsView& view, base::WallTime now) {
  if (!view.problem.empty()) return Line("Events", view.problem);
  if (view.events.empty()) return Line("Events", "none");
  std::string text;
  if (view.earlier > 0) {
    text += Line("Events", "the last " + std::to_string(view.events.size()) + " of " +
                               std::to_string(view.events.size() + view.earlier));
  }
  for (const harvester::SeenEvent& event : view.events) {
    text += Line("Event", EventText(event, now));
  }
  return text;
}

std::string WithReason(const std::string& what, const std::string& why) {
  return why.empty() ? what : what + ": " + why;
}

// Returns the VMs to be replaced, the next one first, and the reason for waiting.
std::string QueueText(const scaling::Inspection& inspection) {
  const auto [queue, blocked_reason] = QueueOfReplacements(
      inspection.snapshot, inspection.lease.record, inspection.current_template);
  if (queue.empty()) return "";
  std::vector<std::string> vms;
  vms.reserve(queue.size());
  for (const auto& next : queue)
    vms.push_back(next.vm->vm->name + " (" + Describe(next.reason) + ")");
  return FirstFew(vms) + (blocked_reason.has_value() ? "; waits: " + *blocked_reason : "");
}

// "rack1-a is cordoned; on it: web-1, web-2 (cannot migrate)".
std::string HostText(const scaling::CordonedHost& host, const PoolStatus& status) {
  std::vector<std::string> vms = host.vms;
  for (std::string& name : vms) {
    const auto found = std::find_if(status.vms.begin(), status.vms.end(),
                                    [&](const VmStatus& vm) { return vm.vm().name == name; });
    if (found != status.vms.end() && harvester::CannotMigrate(found->vm())) {
      name += " (cannot migrate)";
    }
  }
  return host.name + " is cordoned; " +
         (vms.empty() ? "no VM of the pool is on it" : "on it: " + absl::StrJoin(vms, ", "));
}

// "web (p1, scaled at 2026-03-01T11:54:00Z)": the label in the files, and what the Lease records.
std::string PolicyText(const PoolStatus& status) {
  const auto& last = status.inspection.lease.record.policy;
  if (!last.has_value()) return status.policy;
  const std::string scaled = last->id + ", scaled at " + TimeText(last->at);
  return status.policy.empty() ? scaled : status.policy + " (" + scaled + ")";
}

}  // namespace

std::string FindingText(const Finding& finding) {
  const std::vector<std::string>& vms = finding.vms;
  if (vms.empty()) return finding.text;
  if (vms.size() == 1) return vms[0] + ": " + finding.text;
  return std::to_string(vms.size()) + " VMs (" + FirstFew(vms) + ")" +
         (finding.varies ? ", such as " + vms[0] : "") + ": " + finding.text;
}

std::string VmStory(const PoolStatus& status, const VmStatus& vm,
                    const scaling::EventsView& events) {
  const harvester::VirtualMachine& object = vm.vm();
  std::string story = Line("VM", status.inspection.snapshot.key.ns + "/" + object.name);
  story += Line("State",
                std::string(VmStateName(vm.state)) + (vm.counts ? "" : ", not part of the count"));
  story += LinesOf("Trouble", status.troubles, object.name);
  story += LinesOf("Under way", status.under_way, object.name);
  story += Line("Created", TimeText(object.created_at) + ", " + AgeText(vm.age) + " ago");
  story += LineIf("Registered", TimeText(object.joined_at));
  story += LineIf("Ready", TimeText(object.ready_at));
  story += LineIf("Ready by", TimeText(vm.ready_by));
  const std::optional<harvester::Replaces>& replaces = vm.vm().replaces;
  if (replaces.has_value())
    story += LineIf("Replaces", replaces->vm + " (" + Describe(replaces->reason) + ")");
  story += LineIf("To replace", vm.to_be_replaced);
  story += LineIf("Harvester", object.printable_status);
  story += LineIf("Host", vm.host);
  story += LineIf("Address", absl::StrJoin(vm.view->addresses, ", "));
  if (const nomad::Node* const node = vm.node; node != nullptr) {
    story += Line("Node", node->name + " (" + node->id + "), " + NodeText(*node));
    story += LineIf("Not ready", vm.not_ready);
    story += LineIf("Drivers", DriversText(*node));
  }
  story += Line("Link", WithReason(std::string(vm.link), vm.link_explanation));
  story += LineIf("Mark", MarkStory(object));
  story += LineIf("Lease", ActionsPart(status.inspection.lease.record.action, object.name));
  if (!vm.protected_by.empty()) story += Line("Protected", "by " + vm.protected_by);
  if (object.delete_first) story += Line("Removal", "before others, by its annotation");
  story += LineIf("Drift", DriftText(vm));
  story +=
      Line("Next step", WithReason(std::string(SpecOf(vm.step.kind).infinitive), vm.step.reason));
  return story + EventLines(events, status.time);
}

std::string CountersText(const PoolStatus& status) {
  std::string text;
  for (const auto& [name, value] : status.counters) {
    if (value != 0) text += (text.empty() ? "" : ", ") + std::to_string(value) + " " + name;
  }
  return text;
}

std::string StatusTable(const PoolStatus& status, StatusDetail detail, std::size_t width,
                        const std::string& note) {
  const scaling::Inspection& inspection = status.inspection;
  const scaling::StatusReport& report = inspection.report;
  const scaling::PoolRecord& lease = inspection.lease.record;
  std::string text = Line("Pool", inspection.snapshot.key.ToString());
  text += Line("Ready", report.status.ready ? "yes" : "no: " + report.reason);
  text += LineIf("Note", note);
  for (const Finding& each : status.troubles) text += Line("Trouble", FindingText(each));
  for (const Finding& each : status.under_way) text += Line("Under way", FindingText(each));
  text += Line("Count", std::to_string(report.status.count));
  text += LineIf("Counters", CountersText(status));
  text += LineIf("Drift", report.drift);
  text += LineIf("To replace", QueueText(inspection));
  for (const scaling::CordonedHost& host : inspection.cordoned_hosts) {
    text += Line("Host", HostText(host, status));
  }
  text += LineIf("Room", inspection.room_text);
  text += Line("Lease", LeaseText(inspection.lease, status.time));
  if (lease.action.has_value()) text += Line("Action", ActionText(*lease.action, status));
  text += LineIf("Policy", PolicyText(status));
  for (const auto& [cause, entry] : lease.back_off) {
    if (!scaling::MustWait(cause, entry, status.time)) {
      text += Line("Back-off", BackOffText(cause, entry, status.time));
    }
  }
  text += LineIf("Changed", TimeText(lease.last_event));
  for (const auto& [key, removals] : inspection.unclaimed) {
    text += Line("Unclaimed", UnclaimedText(key, removals));
  }
  if (!status.unlinked.empty()) text += Line("Unlinked", UnlinkedText(status.unlinked.size()));
  return text + Section(VmRows(status, detail), width) + Section(UnlinkedRows(status), width);
}

}  // namespace nomad_harvester::cli
