// SPDX-License-Identifier: Apache-2.0
#include "plan_view.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/policy/strategies.h"
#include "nomad_harvester/scaling/check.h"

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "terminal.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;
using scaling::Direction;
using scaling::Proposal;
using scaling::ScalePlan;

// Says why there are fewer VMs than requested; empty: not limited.
std::string LimitOf(const Proposal& proposal) {
  const ScalePlan& plan = proposal.plan;
  if (!plan.capped) return "";
  if (!proposal.left_out.ok()) return base::Message(proposal.left_out);
  if (plan.to == plan.from) return "";  // the refusal says why
  const config::PoolPolicy& policy = *proposal.snapshot.policy;
  if (plan.direction == Direction::kOut) {
    return policy.max_scale_out && plan.to == plan.from + *policy.max_scale_out
               ? "max_scale_out"
               : "new VMs have failed several times in a row: only one is created";
  }
  return policy.max_scale_in && plan.to == plan.from - *policy.max_scale_in
             ? "max_scale_in"
             : "every removal of the last action was refused: one VM alone is removed";
}

std::string DirectionName(Direction direction) {
  if (direction == Direction::kNone) return "none";
  return direction == Direction::kOut ? "out" : "in";
}

std::string Heading(const Proposal& proposal) {
  const ScalePlan& plan = proposal.plan;
  const std::string pool = proposal.snapshot.key.ToString();
  if (plan.direction == Direction::kNone) {
    return pool + ": " + std::to_string(plan.from) + ", nothing to do";
  }
  std::string text = pool + ": " + std::to_string(plan.from) + " → " + std::to_string(plan.to) +
                     ", scale " + DirectionName(plan.direction);
  if (plan.direction == Direction::kIn) {
    text += " by ";
    text += policy::NameOf(proposal.snapshot.policy->selector);
  }
  return text;
}

constexpr std::size_t kFoldIndent = 2;

Rows RemovalRows(const std::vector<scaling::PlannedRemoval>& removals) {
  Rows rows = {{"#", "VM", "NODE", "WHY"}};
  for (const scaling::PlannedRemoval& removal : removals) {
    rows.push_back(
        {std::to_string(rows.size()), removal.vm, ShortId(removal.node_id), removal.reason});
  }
  return rows;
}

Rows PassedRows(const std::vector<scaling::SkippedVm>& passed) {
  Rows rows = {{"VM", "WHY"}};
  for (const scaling::SkippedVm& one : passed) rows.push_back({one.vm, one.reason});
  return rows;
}

// New VMs have no names yet, so they are counted by zone.
Rows CreationRows(const ScalePlan& plan) {
  Rows rows = {{"COUNT", "ZONE", "NAME"}};
  std::map<std::string, int> new_ones;
  for (const scaling::PlannedCreation& creation : plan.create) {
    if (creation.name.empty()) {
      ++new_ones[creation.zone];
    } else {
      rows.push_back({"1", creation.zone, creation.name + " (left over from an earlier action)"});
    }
  }
  for (const auto& [zone, count] : new_ones) {
    rows.push_back({std::to_string(count), zone, "new"});
  }
  return rows;
}

Rows UnmarkRows(const ScalePlan& plan) {
  Rows rows = {{"VM", "WHY"}};
  for (const std::string& vm : plan.cancel_removals) {
    rows.push_back({vm, "its removal has begun, and the pool grows"});
  }
  return rows;
}

// Returns VMs that were marked by an earlier action and stay marked.
std::vector<std::string> BeingRemoved(const Proposal& proposal) {
  std::set<std::string> stay(proposal.plan.cancel_removals.begin(),
                             proposal.plan.cancel_removals.end());
  std::vector<std::string> names;
  for (const scaling::VmView* const view : proposal.snapshot.vms()) {
    if (view->vm->has_mark && IsPoolMember(*view, proposal.snapshot) &&
        !stay.contains(view->vm->name)) {
      names.push_back(view->vm->name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Lines(const Proposal& proposal) {
  const ScalePlan& plan = proposal.plan;
  std::string text;
  if (const std::string limit = LimitText(proposal); !limit.empty()) text += limit + "\n";
  if (plan.missing_victims > 0) {
    text += "only " + std::to_string(plan.remove.size()) + " of " +
            std::to_string(plan.from - plan.to) + " VMs may be removed\n";
  }
  if (const std::vector<std::string> names = BeingRemoved(proposal); !names.empty()) {
    text += "an earlier action is removing, besides: " + absl::StrJoin(names, ", ") +
            "; the plugin's Status or nomad-harvester gc goes on with that\n";
  }
  for (const std::string& note : proposal.notes) text += "note: " + note + "\n";
  return text;
}

Json RemovalsOf(const std::vector<scaling::PlannedRemoval>& removals) {
  Json list = Json::array();
  for (const scaling::PlannedRemoval& removal : removals) {
    list.push_back({{"vm", removal.vm}, {"node", removal.node_id}, {"why", removal.reason}});
  }
  return list;
}

Json PassedOf(const std::vector<scaling::SkippedVm>& passed) {
  Json list = Json::array();
  for (const scaling::SkippedVm& one : passed) {
    list.push_back({{"vm", one.vm}, {"why", one.reason}});
  }
  return list;
}

// Returns null if nothing would refuse it.
Json RefusalOf(const absl::Status& refusal) {
  return refusal.ok() ? Json() : Json(base::Message(refusal));
}

}  // namespace

std::string RefusalText(const Proposal& proposal, std::size_t width) {
  std::string text = proposal.refusal.ok() ? "nothing would refuse it"
                                           : "would be refused: " + base::Message(proposal.refusal);
  if (proposal.snapshot.policy->dry_run) {
    text = (proposal.refusal.ok() ? "" : text + "\n") +
           "would not be done: " + scaling::kDryRunMeans +
           "; to scale, set dry-run = \"false\" and restart the agent";
  }
  return Fold(PrintableLines(text), width, kFoldIndent);
}

std::string LimitText(const Proposal& proposal) {
  const std::string limit = LimitOf(proposal);
  if (limit.empty()) return "";
  const ScalePlan& plan = proposal.plan;
  const std::string text =
      "limited: a count of " + std::to_string(plan.desired) + " was asked for; " + limit;
  if (!limit.starts_with("max_scale_")) return text;
  return text + " is " + std::to_string(std::abs(plan.to - plan.from));
}

std::string PlanText(const Proposal& proposal, std::size_t width) {
  const ScalePlan& plan = proposal.plan;
  const auto section = [width](const std::string& title, const Rows& rows) {
    return rows.size() == 1 ? "" : "\n" + title + "\n" + Table(rows, width);
  };
  const std::string text =
      PrintableLines(Heading(proposal) + "\n" + Lines(proposal)) +
      section("ROLLED BACK FIRST", PassedRows(proposal.roll_backs)) +
      section("REMOVE IN ANY CASE", PassedRows(proposal.replaced)) +
      section("REMOVE", RemovalRows(plan.remove)) + section("RESERVE", RemovalRows(plan.reserve)) +
      section("PASSED OVER", PassedRows(plan.passed_over)) +
      section("MAY WAIT", PassedRows(plan.would_wait)) + section("UNMARK", UnmarkRows(plan)) +
      section("CREATE", CreationRows(plan)) + "\n";
  return Fold(text, width, kFoldIndent);
}

std::string ReplacementText(const Proposal& proposal, std::size_t width) {
  const std::string& blocked_reason = proposal.replacement_blocked_reason;
  if (proposal.to_replace.empty() && blocked_reason.empty()) return "";
  std::string text = "REPLACE\n";
  if (!proposal.to_replace.empty()) text += Table(PassedRows(proposal.to_replace), width);
  if (!blocked_reason.empty()) text += PrintableLines("waits: " + blocked_reason);
  return Fold(text + "\n", width, kFoldIndent);
}

Json PlanDocument(const Proposal& proposal) {
  const ScalePlan& plan = proposal.plan;
  Json create = Json::array();
  for (const scaling::PlannedCreation& creation : plan.create) {
    create.push_back({{"zone", creation.zone}, {"name", creation.name}});
  }
  return {{"namespace", proposal.snapshot.key.ns},
          {"node_group_name", proposal.snapshot.key.pool},
          {"direction", DirectionName(plan.direction)},
          {"from", plan.from},
          {"to", plan.to},
          {"desired", plan.desired},
          {"limited", LimitOf(proposal)},
          {"missing_victims", plan.missing_victims},
          {"roll_backs", PassedOf(proposal.roll_backs)},
          {"replaced", PassedOf(proposal.replaced)},
          {"remove", RemovalsOf(plan.remove)},
          {"reserve", RemovalsOf(plan.reserve)},
          {"passed_over", PassedOf(plan.passed_over)},
          {"would_wait", PassedOf(plan.would_wait)},
          {"being_removed", BeingRemoved(proposal)},
          {"unmark", plan.cancel_removals},
          {"create", std::move(create)},
          {"to_replace", PassedOf(proposal.to_replace)},
          {"replacement_blocked_reason", proposal.replacement_blocked_reason},
          {"notes", proposal.notes},
          {"refusal", RefusalOf(proposal.refusal)},
          {"dry_run", proposal.snapshot.policy->dry_run}};
}

}  // namespace nomad_harvester::cli
