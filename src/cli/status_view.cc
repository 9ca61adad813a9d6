// SPDX-License-Identifier: Apache-2.0
#include "status_view.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/parse.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "status_document.h"
#include "status_trouble.h"
#include "text.h"
#include "yaml.h"

namespace nomad_harvester::cli {
namespace {

using Json = nlohmann::ordered_json;
using scaling::Inspection;
using scaling::PoolSnapshot;

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

// "docker not healthy: Failed to connect to docker daemon; exec healthy".
std::string DriversText(const Json& drivers) {
  std::vector<std::string> texts;
  for (const auto& [name, driver] : drivers.items()) {
    const std::string description = TextOf(driver, "description");
    const bool healthy = driver.at("healthy") == true;
    texts.push_back(name +
                    (driver.at("detected") == false ? " not detected"
                     : healthy                      ? " healthy"
                                                    : " not healthy") +
                    (healthy || description.empty() ? "" : ": " + description));
  }
  return absl::StrJoin(texts, "; ");
}

std::string NodeId(const Json& node) { return node.is_null() ? "" : ShortId(TextOf(node, "id")); }

std::string MarkText(const Json& mark) {
  if (mark.is_null()) return "";
  if (mark.at("readable") == false) return "unreadable";
  const std::string deadline = TextOf(mark, "drain_deadline");
  return TextOf(mark, "reason") + (deadline == "none"  ? ", no deadline"
                                   : deadline == "now" ? ", immediately"
                                                       : ", until " + deadline);
}

// A table with a heading, or nothing if it has no other rows.
std::string Section(const std::vector<std::vector<std::string>>& rows, std::size_t width) {
  return rows.size() == 1 ? std::string() : "\n" + Table(rows, width);
}

// The two largest units that are not 0: "3d4h", "5m".
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

// Since a time of the document; empty: it has none.
std::string AgeSince(const Json& time, base::WallTime now) {
  if (!time.is_string()) return "";
  const auto at = base::ParseRfc3339(time.get<std::string>());
  return at.ok() ? AgeText(now - *at) : "";
}

std::string DriftText(const Json& drift) {
  if (drift.is_null()) return "";
  std::vector<std::string> parts;
  parts.reserve(drift.size());
  for (const Json& part : drift) parts.push_back(part.get<std::string>());
  return parts.empty() ? "yes" : absl::StrJoin(parts, ",");
}

std::string NodeCell(const Json& node) {
  return node.is_null() ? "" : NodeId(node) + " " + NodeText(node);
}

// At most five, and how many more.
std::string NamesText(const Json& names) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> first;
  for (const Json& name : names) {
    if (first.size() < kMost) first.push_back(name.get<std::string>());
  }
  return absl::StrJoin(first, ", ") +
         (names.size() > kMost ? " and " + std::to_string(names.size() - kMost) + " more" : "");
}

// One line per reason.
std::string Troubles(const Json& troubles) {
  std::string text;
  for (const Json& trouble : troubles) {
    const Json& vms = trouble.at("vms");
    std::string who;
    if (vms.size() == 1) who = NamesText(vms) + ": ";
    if (vms.size() > 1) who = std::to_string(vms.size()) + " VMs (" + NamesText(vms) + "): ";
    text += Line("Trouble", who + TextOf(trouble, "text"));
  }
  return text;
}

// One line per pool, which names each VM.
std::string Unclaimed(const Json& pools) {
  std::string text;
  for (const Json& pool : pools) {
    std::vector<std::string> parts;
    for (const Json& removal : pool.at("unfinished")) {
      const Json& since = removal.at("since");
      parts.push_back(TextOf(removal, "vm") + " (" + TextOf(removal, "what") +
                      (since.is_null() ? "" : ", since " + since.get<std::string>()) + ")");
    }
    constexpr std::size_t kMost = 5;
    const std::size_t more = parts.size() - std::min(parts.size(), kMost);
    parts.resize(parts.size() - more);
    text += Line("Unclaimed", "pool " + TextOf(pool, "namespace") + "/" +
                                  TextOf(pool, "node_group_name") +
                                  ", of which no policy was given, has unfinished removals: " +
                                  absl::StrJoin(parts, ", ") +
                                  (more == 0 ? "" : " and " + std::to_string(more) + " more") +
                                  "; " + TextOf(pool, "cure"));
  }
  return text;
}

// The VMs, with what the background work of Status does next or waits for if wide, and the nodes
// without a VM.
std::string Sections(const Json& document, base::WallTime now, StatusDetail detail,
                     std::size_t width) {
  const bool wide = detail == StatusDetail::kWide;
  std::vector<std::vector<std::string>> vms = {{"VM", "STATE", "AGE", "HOST", "NODE", "MARK"}};
  if (wide) vms[0].insert(vms[0].end(), {"HARVESTER", "LINK", "DRIFT", "NEXT STEP", "WHY"});
  for (const Json& vm : document.at("vms")) {
    vms.push_back({TextOf(vm, "name"), TextOf(vm, "state"), AgeSince(vm.at("created_at"), now),
                   TextOf(vm, "host"), NodeCell(vm.at("node")), MarkText(vm.at("mark"))});
    if (wide) {
      vms.back().insert(vms.back().end(),
                        {TextOf(vm, "harvester_status"), TextOf(vm, "link"),
                         DriftText(vm.at("drift")), TextOf(vm, "next_step"), TextOf(vm, "why")});
    }
  }
  std::vector<std::vector<std::string>> unlinked = {{"NODE WITHOUT A VM", "NAME", "NODE STATE"}};
  for (const Json& node : document.at("unlinked_nodes")) {
    unlinked.push_back(
        {NodeId(node), TextOf(node, "name"),
         NodeText(node) + (node.at("foreign") == true ? ", not of this namespace" : "")});
  }
  return Section(vms, width) + Section(unlinked, width);
}

const Json* FindVm(const Json& document, const std::string& name) {
  for (const Json& vm : document.at("vms")) {
    if (vm.at("name") == name) return &vm;
  }
  return nullptr;
}

// The document, or the part of it about one VM.
std::optional<Json> PartOf(const Inspection& inspection, const std::string& vm,
                           const scaling::EventsView& events) {
  Json document = StatusDocument(inspection);
  if (vm.empty()) return document;
  const Json* const found = FindVm(document, vm);
  if (found == nullptr) return std::nullopt;
  Json part = *found;
  part["events"] = EventsDocument(events);
  return part;
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

// What the pool's action wants of it.
std::string ActionsPart(const harvester::LeaseAction& action, const std::string& vm) {
  if (action.create.contains(vm)) return "action " + action.id + " creates it";
  if (action.back.contains(vm)) return "action " + action.id + " takes back its removal";
  if (action.names.contains(vm)) return "action " + action.id + " names it";
  return "";
}

std::string MarkStory(const Json& mark) {
  if (mark.is_null() || mark.at("readable") == false) return MarkText(mark);
  return MarkText(mark) + "; action " + TextOf(mark, "action") + ", set at " +
         TextOf(mark, "marked_at") + ", grace " + TextOf(mark, "grace") +
         (mark.at("force") == true ? ", deleted even if the drain does not end"
                                   : ", rolled back if the drain does not end") +
         (mark.at("purge") == true ? ", its node is purged" : "");
}

}  // namespace

std::optional<std::string> StatusJson(const Inspection& inspection, const std::string& vm,
                                      const scaling::EventsView& events) {
  const std::optional<Json> part = PartOf(inspection, vm, events);
  if (!part.has_value()) return std::nullopt;
  return PrintableJson(*part);
}

std::string StateWithoutTimes(const Inspection& inspection, const scaling::EventsView& events) {
  Json document = StatusDocument(inspection);
  document["events"] = EventsDocument(events);
  document.erase("time");
  document["lease"].erase("renewed_at");
  if (!inspection.snapshot.look().nomad_readable) {
    // They say how long Nomad was waited for.
    document.erase("reason");
    document.erase("trouble");
    for (Json& vm : document["vms"]) vm.erase("why");
  }
  return document.dump(-1, ' ', true);
}

std::optional<std::string> StatusYaml(const Inspection& inspection, const std::string& vm,
                                      const scaling::EventsView& events) {
  const std::optional<Json> part = PartOf(inspection, vm, events);
  if (!part.has_value()) return std::nullopt;
  return ToYaml(WithoutSecretsIn(*part));
}

std::optional<std::string> VmStory(const Inspection& inspection, const std::string& name,
                                   const scaling::EventsView& events) {
  const Json document = StatusDocument(inspection);
  const Json* const vm = FindVm(document, name);
  if (vm == nullptr) return std::nullopt;
  const base::WallTime now = inspection.snapshot.now();
  const auto line = [](const std::string& label, const std::string& text) {
    return text.empty() ? std::string() : Line(label, text);
  };
  const auto when = [&](const char* member) {
    const Json& time = vm->at(member);
    return time.is_null() ? "" : time.get<std::string>();
  };
  std::string story = line("VM", inspection.snapshot.key.ns + "/" + name);
  story += line("State",
                TextOf(*vm, "state") + (vm->at("counts") == true ? "" : ", not part of the count"));
  for (const Json& trouble : document.at("trouble")) {
    const Json& vms = trouble.at("vms");
    if (std::find(vms.begin(), vms.end(), name) != vms.end()) {
      story += line("Trouble", TextOf(trouble, "text"));
    }
  }
  story +=
      line("Created", when("created_at") + ", " + AgeSince(vm->at("created_at"), now) + " ago");
  story += line("Registered", when("joined_at"));
  story += line("Ready", when("ready_at"));
  story += line("Ready by", when("join_deadline"));
  story += line("Harvester", TextOf(*vm, "harvester_status"));
  story += line("Host", TextOf(*vm, "host"));
  std::vector<std::string> addresses;
  addresses.reserve(vm->at("addresses").size());
  for (const Json& address : vm->at("addresses")) addresses.push_back(address.get<std::string>());
  story += line("Address", absl::StrJoin(addresses, ", "));
  const Json& node = vm->at("node");
  if (!node.is_null()) {
    story +=
        line("Node", TextOf(node, "name") + " (" + TextOf(node, "id") + "), " + NodeText(node));
    story += line("Not ready", TextOf(*vm, "not_ready"));
    story += line("Drivers", DriversText(node.at("drivers")));
  }
  const std::string explanation = TextOf(*vm, "link_explanation");
  story += line("Link", TextOf(*vm, "link") + (explanation.empty() ? "" : ": " + explanation));
  story += line("Mark", MarkStory(vm->at("mark")));
  if (const auto& action = inspection.lease.record.action; action.has_value()) {
    story += line("Lease", ActionsPart(*action, name));
  }
  if (vm->at("protected") == true) story += line("Protected", "by its annotation");
  if (vm->at("delete_first") == true) story += line("Removal", "before others, by its annotation");
  story += line("Drift", DriftText(vm->at("drift")));
  const std::string why = TextOf(*vm, "why");
  story += line("Next step", TextOf(*vm, "next_step") + (why.empty() ? "" : ": " + why) +
                                 " (rule " + TextOf(*vm, "row") + ")");
  return story + EventLines(events, now);
}

std::string StatusTable(const Inspection& inspection, StatusDetail detail, std::size_t width) {
  const PoolSnapshot& snapshot = inspection.snapshot;
  const scaling::StatusReport& report = inspection.report;
  const scaling::PoolRecord& lease = inspection.lease.record;
  const Json document = StatusDocument(inspection);
  std::string text = Line("Pool", snapshot.key.ToString());
  text += Line("Ready", report.status.ready ? "yes" : "no: " + report.reason);
  text += Troubles(document.at("trouble"));
  text += Line("Count", std::to_string(report.status.count));
  if (const std::string counters = Counters(document.at("counters")); !counters.empty()) {
    text += Line("Counters", counters);
  }
  if (!report.drift.empty()) text += Line("Drift", report.drift);
  text += Line("Lease", LeaseText(inspection.lease, snapshot.now()));
  if (lease.action.has_value()) {
    text += Line("Action", ActionText(*lease.action));
  }
  if (lease.policy.has_value()) {
    const harvester::PolicyRecord& policy = *lease.policy;
    text += Line("Policy", policy.id + ", scaled at " + base::FormatRfc3339(policy.at));
  }
  for (const auto& [cause, entry] : lease.back_off) {
    if (snapshot.now() >= entry.retry_at) {
      text += Line("Back-off", BackOffText(cause, entry, snapshot.now()));
    }
  }
  if (lease.last_event.has_value()) {
    text += Line("Last act", base::FormatRfc3339(*lease.last_event));
  }
  text += Unclaimed(document.at("unclaimed"));
  return text + Sections(document, snapshot.now(), detail, width);
}

}  // namespace nomad_harvester::cli
