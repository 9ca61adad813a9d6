// SPDX-License-Identifier: Apache-2.0
#include "demand_view.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/demand/names.h"
#include "nomad_harvester/demand/overflow.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using demand::Verdict;
using Json = nlohmann::ordered_json;

std::string Nodes(std::int64_t count) { return Counted(count, "node"); }

// "memory (3), cpu (1)".
std::string Counts(const std::map<std::string, std::int64_t>& counts) {
  std::vector<std::string> texts;
  texts.reserve(counts.size());
  for (const auto& [what, nodes] : counts) {
    texts.push_back(what + " (" + std::to_string(nodes) + ")");
  }
  return absl::StrJoin(texts, ", ");
}

// Where the count comes from: "5 nodes: 3 with work, 2 new".
std::string CountText(const demand::Demand& demand) {
  std::vector<std::string> parts;
  for (const demand::DemandPart& part : demand::kDemandParts) {
    const std::int64_t count = demand.*part.count;
    if (count > 0) parts.push_back(std::to_string(count) + " " + std::string(part.nodes));
  }
  return Nodes(demand.needed) + (parts.empty() ? "" : ": " + absl::StrJoin(parts, ", "));
}

// The query about the nodes of a target block, with the default of everything else.
std::string QueryOfTarget(const config::StringMap& target) {
  const auto find = [&target](const char* key) {
    const auto found = target.find(key);
    return found == target.end() ? std::nullopt : std::optional(found->second);
  };
  return ToString(demand::Query{.node_class = find("node_class"),
                                .datacenter = find("datacenter"),
                                .node_pool = find("node_pool")});
}

// Fills the empty `queries` with those of one pool. Returns the mistake in one of them.
std::optional<UnreadPolicy> ReadQueriesOf(const FileSettings& files,
                                          std::vector<AnsweredQuery>* queries) {
  std::optional<UnreadPolicy> wrong;
  const auto add = [&](const std::string& text, const std::string& where, const std::string& what) {
    auto query = demand::ParseQuery(text);
    if (!query.ok()) {
      wrong = {.label = files.policy_name,
               .where = where,
               .ns = "",
               .problem = what + ": " + base::Message(query.status())};
      return;
    }
    if (query->subject == demand::Subject::kRoom) return;
    AnsweredQuery made{
        .policy = files.policy_name, .files = &files, .text = text, .query = *std::move(query)};
    if (files.limits.has_value()) made.max = files.limits->max;
    queries->push_back(std::move(made));
  };
  for (const MetricQuery& query : files.queries) {
    const PolicyCheck& check = query.check;
    if (IsOurs(query)) {
      add(check.query, check.where, "the query of check \"" + check.name + "\"");
    }
  }
  if (wrong.has_value() || !queries->empty()) return wrong;
  add(QueryOfTarget(files.policy), files.policy_where,
      "the target block of policy \"" + files.policy_name + "\"");
  if (wrong.has_value()) return wrong;
  const bool knows = std::any_of(files.queries.begin(), files.queries.end(),
                                 [](const MetricQuery& query) { return query.apms_are_known; });
  queries->back().note =
      std::string("this is about the nodes of the policy's target block: ") +
      (knows ? "no check asks an apm block with the driver " NOMAD_HARVESTER_PLUGIN_NAME
             : "the sources of its checks are not known; give the agent's configuration, too: "
               "--agent-config");
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<AnsweredQuery>> QueriesOf(const std::vector<DemandPool>& pools,
                                                     std::vector<UnreadPolicy>* unread) {
  std::vector<AnsweredQuery> queries;
  std::vector<UnreadPolicy> wrong;
  for (const DemandPool& pool : pools) {
    std::vector<AnsweredQuery> of_pool;
    if (auto mistake = ReadQueriesOf(pool.files, &of_pool)) {
      wrong.push_back(*std::move(mistake));
    } else {
      std::move(of_pool.begin(), of_pool.end(), std::back_inserter(queries));
    }
  }
  if (queries.empty() && !wrong.empty()) return base::InvalidArgument(wrong.front().Text());
  std::move(wrong.begin(), wrong.end(), std::back_inserter(*unread));
  return queries;
}

absl::StatusOr<std::shared_ptr<const demand::Reading>> Answer(const DemandRun& run,
                                                              std::vector<AnsweredQuery>* queries) {
  const runtime::Context limited = run.context.WithTimeout(kOperatorBudget);
  auto reading = run.reader.Read(limited);
  if (!reading.ok()) {
    const absl::Status& failed = reading.status();
    const std::string cure =
        absl::IsCancelled(failed) ? "" : "; " + CureOfDemand(failed, run.nomad);
    return base::MakeStatus(failed.code(),
                            NomadText(run.nomad) + ": " + base::Message(failed) + cure);
  }
  for (AnsweredQuery& each : *queries) {
    auto needs = demand::NeedsOf(limited, each.query, **reading, {}, run.reader, run.harvester);
    if (!needs.ok()) return base::Annotate(needs.status(), each.text);
    each.demand = std::move(needs->demand);
    each.home_nodes_to_come = needs->home_nodes_to_come;
  }
  return reading;
}

std::string VerdictText(const demand::GroupDemand& group) {
  std::string text(demand::NameOf(group.verdict));
  if (group.verdict == Verdict::kNeedsNodes) {
    text = group.nodes > 0 ? "needs " + Nodes(group.nodes) : "needs room on new nodes";
  }
  if (group.verdict == Verdict::kCannotTell) text = "cannot tell";
  if (group.verdict == Verdict::kOtherPool) text = "other pool";
  if (group.verdict == Verdict::kNotRunnable) text = "not runnable";
  return text + (group.why.empty() ? "" : ": " + group.why);
}

std::string PoolText(const AnsweredQuery& answered) {
  return absl::StrReplaceAll(answered.query.Identity().ToString(), {{", ", " "}}) +
         (answered.policy.empty() ? "" : " (policy " + answered.policy + ")");
}

std::string NeededText(std::int64_t nodes) {
  return Nodes(nodes) + (nodes == 1 ? " is needed" : " are needed");
}

std::string MaxText(std::int64_t max, std::int64_t needed) {
  return "the policy's max is " + std::to_string(max) + ", and " + NeededText(needed);
}

std::vector<std::string> NotesOf(const AnsweredQuery& answered) {
  std::vector<std::string> notes;
  if (!answered.note.empty()) notes.push_back(answered.note);
  if (answered.home_nodes_to_come.has_value()) {
    notes.push_back("pool " + demand::ToString(answered.query.home) + " can have " +
                    Nodes(*answered.home_nodes_to_come) +
                    " more, and the work that they hold is not counted here");
  }
  if (answered.demand.probe) {
    notes.emplace_back(
        "how much a node of this pool holds is not known; the first node shows it. With "
        "node=(cpu=MHZ,memory=MIB) in the query the count is right at once");
  }
  const demand::PoolNode* const shown_by = answered.demand.shown_by.get();
  if (answered.query.node.has_value() && shown_by != nullptr) {
    notes.push_back("node= is not used: the size of a new node is that of node " +
                    shown_by->node->name);
  }
  if (shown_by == nullptr || shown_by->node->status != nomad::NodeStatus::kReady) {
    notes.emplace_back(
        "the pool has no ready node; the agent's answer may differ: its APM remembers for 24 h "
        "how much the last node held");
  }
  return notes;
}

std::string DemandTable(const AnsweredQuery& answered, std::size_t width) {
  std::vector<std::vector<std::string>> rows = {{"JOB", "GROUP", "PENDING", "SIZE", "VERDICT"}};
  std::int64_t elsewhere = 0;
  for (const demand::GroupDemand& each : answered.demand.groups) {
    if (each.verdict == Verdict::kOtherPool) {
      elsewhere += each.pending;
      continue;
    }
    const std::string ns = demand::IsHeadroom(*each.group) ? "" : each.group->ns + "/";
    rows.push_back({Printable(ns + each.group->job), Printable(each.group->name),
                    std::to_string(each.pending), Printable(demand::SizeText(*each.group)),
                    Printable(VerdictText(each))});
  }
  std::string text = "Pool:      " + Printable(PoolText(answered)) +
                     "\nNeeded:    " + CountText(answered.demand) + "\n";
  if (answered.max.has_value() && answered.demand.needed > *answered.max) {
    text += "Trouble:   " + MaxText(*answered.max, answered.demand.needed) + "\n";
  }
  for (const std::string& note : NotesOf(answered)) text += "Note:      " + Printable(note) + "\n";
  if (elsewhere > 0) {
    text += "Elsewhere: " + std::to_string(elsewhere) + " pending that this pool cannot take\n";
  }
  if (rows.size() == 1) return text + "Nothing is pending for this pool.\n";
  return text + "\n" + Table(rows, width);
}

Json GroupDocument(const demand::GroupDemand& group) {
  return {{"namespace", group.group->ns},
          {"job", group.group->job},
          {"group", group.group->name},
          {"pending", group.pending},
          {"cpu", group.group->need.cpu},
          {"memory_mb", group.group->need.memory_mb},
          {"fits", group.fits},
          {"nodes", group.nodes},
          {"verdict", demand::NameOf(group.verdict)},
          {"why", group.why}};
}

Json DemandDocument(const std::vector<AnsweredQuery>& answered) {
  Json pools = Json::array();
  for (const AnsweredQuery& each : answered) {
    const demand::Demand& demand = each.demand;
    Json groups = Json::array();
    for (const demand::GroupDemand& group : demand.groups) groups.push_back(GroupDocument(group));
    Json pool = {{"policy", each.policy.empty() ? Json(nullptr) : Json(each.policy)},
                 {"query", each.text},
                 {"pool", each.query.Identity().ToString()},
                 {"max", each.max.has_value() ? Json(*each.max) : Json(nullptr)},
                 {"needed", demand.needed}};
    for (const demand::DemandPart& part : demand::kDemandParts) {
      pool[std::string(part.name)] = demand.*part.count;
    }
    pool["probe"] = demand.probe;
    pool["notes"] = NotesOf(each);
    pool["groups"] = std::move(groups);
    pools.push_back(std::move(pool));
  }
  return {{"pools", std::move(pools)}};
}

std::string FailureText(const nomad::PlacementFailure& failure) {
  std::string text = failure.nodes_evaluated == 0
                         ? "no node was eligible for it when Nomad last tried"
                         : Nodes(failure.nodes_evaluated) + " evaluated";
  if (failure.nodes_filtered > 0) {
    text += "; " + std::to_string(failure.nodes_filtered) + " filtered";
    std::map<std::string, std::int64_t> reasons = failure.constraint_filtered;
    for (const auto& [name, nodes] : failure.class_filtered) reasons["class " + name] += nodes;
    if (!reasons.empty()) text += ": " + Counts(reasons);
  }
  if (failure.nodes_exhausted > 0) {
    text += "; " + std::to_string(failure.nodes_exhausted) + " without room";
    if (!failure.dimension_exhausted.empty()) text += ": " + Counts(failure.dimension_exhausted);
  }
  if (!failure.quota_exhausted.empty()) {
    text += "; quota: " + absl::StrJoin(failure.quota_exhausted, ", ");
  }
  return text;
}

Json FailureDocument(const nomad::PlacementFailure& failure) {
  return {{"nodes_evaluated", failure.nodes_evaluated},
          {"nodes_filtered", failure.nodes_filtered},
          {"nodes_exhausted", failure.nodes_exhausted},
          {"constraint_filtered", failure.constraint_filtered},
          {"class_filtered", failure.class_filtered},
          {"dimension_exhausted", failure.dimension_exhausted},
          {"quota_exhausted", failure.quota_exhausted}};
}

}  // namespace nomad_harvester::cli
