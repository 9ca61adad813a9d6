// SPDX-License-Identifier: Apache-2.0
#include "rules/victims.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/nodepool/readiness.h"
#include "nomad_harvester/nodepool/selector.h"

#include "absl/strings/str_join.h"
#include "rules/zones.h"

namespace nomad_harvester::scaling {
namespace {

using nodepool::LinkState;
using nomad::Node;
using nomad::NodeStatus;

// The groups of rule C8, in the order of removal.
enum class Group { kDeleteFirst, kStoppedOrLost, kNotReady, kDrifted, kCordoned, kStrategy };

// True if the strategy ranks the group's VMs. It may also exclude some.
bool IsRanked(Group group) { return group >= Group::kDrifted; }

struct Candidate {
  const VmView* view = nullptr;
  const Node* node = nullptr;  // null: none
  Group group = Group::kStrategy;
  bool came_back = false;
  int refusals = 0;
  std::size_t rank = 0;  // by the strategy
  std::string reason;
};

bool CameBackLately(const VmView& view, const Node* node, base::WallTime now) {
  if (WasRecentlyRolledBack(view.vm, now)) return true;
  if (node == nullptr || !nodepool::IsDrainOfVm(*node, view.vm->uid)) return false;
  const nomad::LastDrain& drain = *node->last_drain;
  const bool undone = drain.status == nomad::DrainStatus::kCanceled ||
                      nodepool::RollbackMarker(*node) == view.vm->rolled_back;
  return undone && drain.updated_at.has_value() &&
         IsWithin(*drain.updated_at, kVictimCooldown, now);
}

// Says why the removal of a VM without a node would be rolled back; unset if it would not.
std::optional<std::string> ObjectionWithoutNode(const VmView& view, const PoolSnapshot& snapshot) {
  const Overlay seen(snapshot, view);
  if (const Node* other = seen.Candidate(); other != nullptr) {
    return "no node has its name, but node " + other->name + " (" + other->id + ") could be it";
  }
  const std::optional<std::size_t> joined = snapshot.seen->nodes().Find(view.vm->joined_node_id);
  if (!joined.has_value()) return std::nullopt;
  return "its node " + view.vm->joined_node_id + " has another name now, " +
         snapshot.nodes()[*joined].name;
}

}  // namespace

std::optional<std::string> ObjectionToRemoval(const VmView& view, const Node* node,
                                              const PoolSnapshot& snapshot) {
  if (view.vm->protect.HoldsAt(snapshot.earlier_now())) return "protected by its annotation";
  if (IsOtherCluster(view.vm, snapshot.observation())) return "it belongs to another Nomad cluster";
  if (IsOtherNomad(view.vm, snapshot.observation())) return "made for another Nomad region";
  if (view.link.state == LinkState::kAmbiguous || view.link.state == LinkState::kContradicted) {
    return view.link.explanation;
  }
  for (const std::string& claim : view.vm->claim_names) {
    if (snapshot.seen->shared_claims().contains(claim))
      return "its volume " + claim + " is used by another VM";
  }
  const bool is_silent =
      node == nullptr ? harvester::HasJoined(view.vm) : nodepool::IsSilent(*node);
  if (is_silent && harvester::IsPausedOrMigrating(view.vm)) {
    return "its guest is paused or migrates, so that its node cannot be drained";
  }
  if (node == nullptr && !view.unread_node.empty()) return view.unread_node;
  if (node == nullptr) return ObjectionWithoutNode(view, snapshot);
  // A listed node has meta only if it was read in full before, which happens before its mark (L5).
  if (nodepool::IsProtected(*node, snapshot.earlier_now())) {
    return "protected by its node's meta harvester_protect";
  }
  const std::string& own_node_id = snapshot.observation().own_node_id;
  if (!own_node_id.empty() && node->id == own_node_id) {
    return "the autoscaler itself runs on its node";
  }
  if (!BelongsToPool(*node, view, snapshot.policy)) return "its node belongs to another Nomad pool";
  if (node->draining) return "its node is drained by another client";
  if (node->status == NodeStatus::kDisconnected) return "its node is disconnected";
  const bool ignore_ineligible = snapshot.policy->filter_ignore_ineligible.value_or(true);
  if (!node->eligible && node->status == NodeStatus::kReady && !ignore_ineligible) {
    return "its node is ineligible and node_filter_ignore_ineligible is false";
  }
  if (HoldsKeptVolume(*node, snapshot)) {
    return "its node holds the dynamic host volume " + node->dynamic_host_volumes.front();
  }
  return std::nullopt;
}

namespace {

void Classify(const PoolSnapshot& snapshot, const PlanInputs& inputs, Candidate* candidate) {
  const harvester::VirtualMachine& vm = candidate->view->vm;
  if (vm.delete_first) {
    candidate->group = Group::kDeleteFirst;
    candidate->reason = "marked to be deleted first";
  } else if (harvester::HasJoined(vm) && harvester::IsStopped(vm)) {
    candidate->group = Group::kStoppedOrLost;
    candidate->reason = "stopped";
  } else if (harvester::HasJoined(vm) && candidate->node == nullptr) {
    candidate->group = Group::kStoppedOrLost;
    candidate->reason = "lost its node";
  } else if (candidate->node == nullptr) {
    candidate->group = Group::kNotReady;
    candidate->reason = "has not joined yet";
  } else if (candidate->node->status == NodeStatus::kDown) {
    candidate->group = Group::kStoppedOrLost;
    candidate->reason = "its node is down";
  } else if (const auto why = WhyNotReady(*candidate->view, *candidate->node, snapshot);
             why.has_value()) {
    candidate->group = Group::kNotReady;
    candidate->reason = "is not ready: " + *why;
  } else if (const auto parts = DriftOf(vm, inputs.current_template, snapshot.policy->drift_ignore);
             parts.has_value()) {
    candidate->group = Group::kDrifted;
    candidate->reason = "drifted";
    if (!parts->empty()) candidate->reason += " (" + absl::StrJoin(*parts, ", ") + ")";
    candidate->reason += ", ";
  } else if (!candidate->view->host.empty() &&
             inputs.cordoned_hosts.contains(candidate->view->host)) {
    candidate->group = Group::kCordoned;
  }
}

// Ranks the candidates of the groups for which IsRanked holds; removes those that the strategy
// excludes.
void RankByStrategy(const PoolSnapshot& snapshot, const PlanInputs& inputs,
                    std::vector<Candidate>* candidates, std::vector<SkippedVm>* passed_over) {
  const policy::SelectorStrategy strategy = snapshot.policy->selector;
  std::vector<Node> nodes;
  std::map<std::string, Candidate*> by_node;
  for (Candidate& candidate : *candidates) {
    if (!IsRanked(candidate.group)) continue;
    nodes.push_back(*candidate.node);
    by_node[candidate.node->id] = &candidate;
  }
  const std::vector<std::size_t> order = nodepool::SelectNodes(strategy, nodes, inputs.allocations);
  std::set<std::string> offered;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const Node& node = nodes[order[rank]];
    offered.insert(node.id);
    Candidate& candidate = *by_node[node.id];
    candidate.rank = rank;
    if (candidate.group == Group::kCordoned) {
      candidate.reason = "its host " + candidate.view->host + " is cordoned, ";
    }
    candidate.reason += policy::NameOf(strategy);
    if (strategy == policy::SelectorStrategy::kLeastBusy) {
      const auto found = inputs.allocations.find(node.id);
      static const std::vector<nomad::Allocation> kNone;
      const auto& allocations = found == inputs.allocations.end() ? kNone : found->second;
      candidate.reason += " (" + std::to_string(nodepool::BusyScore(node, allocations)) + " %)";
    }
  }
  std::erase_if(*candidates, [&](const Candidate& candidate) {
    if (!IsRanked(candidate.group) || offered.contains(candidate.node->id)) return false;
    passed_over->push_back({candidate.view->vm->name, "not empty"});
    return true;
  });
}

bool GoesBefore(const Candidate& a, const Candidate& b) {
  if (a.refusals != b.refusals) return a.refusals < b.refusals;
  if (a.came_back != b.came_back) return !a.came_back;
  if (a.group != b.group) return a.group < b.group;
  if (a.rank != b.rank) return a.rank < b.rank;
  const std::uint64_t a_index = a.node == nullptr ? 0 : a.node->create_index;
  const std::uint64_t b_index = b.node == nullptr ? 0 : b.node->create_index;
  if (a_index != b_index) return a_index > b_index;
  return a.view->vm->name < b.view->vm->name;
}

// Zones are balanced separately within each segment: first among the drifted VMs, then among the
// others that the strategy ranks.
int SegmentOf(Group group) {
  if (!IsRanked(group)) return 0;
  return group == Group::kDrifted ? 1 : 2;
}

// Reorders the victims that the strategy ranks: the next one always comes from the zone that then
// has the most VMs, so that the zones end as even as possible (rule C8). Within a zone, and among
// zones with equally many VMs, victims on cordoned hosts go first.
std::vector<Candidate> BalanceZones(const PoolSnapshot& snapshot,
                                    std::vector<Candidate> candidates) {
  if (!SplitsZones(snapshot)) return candidates;
  std::map<std::string, std::int64_t> vms = VmsByZone(snapshot);
  std::vector<Candidate> ordered;
  const auto take = [&](Candidate& candidate) {
    --vms[candidate.view->vm->zone];
    ordered.push_back(std::move(candidate));
  };
  for (auto first = candidates.begin(); first != candidates.end();) {
    const auto last = std::find_if(first, candidates.end(), [&](const Candidate& candidate) {
      return candidate.refusals != first->refusals || candidate.came_back != first->came_back ||
             SegmentOf(candidate.group) != SegmentOf(first->group);
    });
    std::map<std::string, std::deque<Candidate*>> by_zone;
    for (auto each = first; each != last; ++each) {
      if (IsRanked(each->group)) {
        by_zone[each->view->vm->zone].push_back(&*each);
      } else {
        take(*each);
      }
    }
    while (!by_zone.empty()) {
      const auto fullest =
          std::max_element(by_zone.begin(), by_zone.end(), [&](const auto& a, const auto& b) {
            if (vms[a.first] != vms[b.first]) return vms[a.first] < vms[b.first];
            return GoesBefore(*b.second.front(), *a.second.front());
          });
      Candidate& candidate = *fullest->second.front();
      fullest->second.pop_front();
      if (fullest->second.empty()) by_zone.erase(fullest);
      take(candidate);
    }
    first = last;
  }
  return ordered;
}

}  // namespace

bool HoldsKeptVolume(const Node& node, const PoolSnapshot& snapshot) {
  return !node.dynamic_host_volumes.empty() && snapshot.policy.has_value() &&
         snapshot.policy->host_volumes == config::HostVolumes::kProtect;
}

void ChooseVictims(const PoolSnapshot& snapshot, std::size_t count, const PlanInputs& inputs,
                   ScalePlan* plan) {
  std::vector<Candidate> candidates;
  for (const VmView* each : snapshot.vms()) {
    const VmView& view = *each;
    if (!Counts(view, snapshot)) continue;
    const Node* node = LinkedNode(view, snapshot);
    const auto left_out = inputs.left_out.find(view.vm->name);
    std::optional<std::string> objection = left_out != inputs.left_out.end()
                                               ? left_out->second
                                               : ObjectionToRemoval(view, node, snapshot);
    if (objection.has_value()) {
      plan->passed_over.push_back({view.vm->name, *std::move(objection)});
      continue;
    }
    Candidate candidate{.view = &view, .node = node};
    candidate.came_back = CameBackLately(view, node, snapshot.now());
    const auto refusals = inputs.refusals.find(view.vm->name);
    if (refusals != inputs.refusals.end()) candidate.refusals = refusals->second;
    Classify(snapshot, inputs, &candidate);
    candidates.push_back(std::move(candidate));
  }
  RankByStrategy(snapshot, inputs, &candidates, &plan->passed_over);
  std::sort(candidates.begin(), candidates.end(), GoesBefore);
  for (const Candidate& candidate : BalanceZones(snapshot, std::move(candidates))) {
    std::vector<PlannedRemoval>& list = plan->remove.size() < count ? plan->remove : plan->reserve;
    list.push_back({.vm = candidate.view->vm->name,
                    .node_id = candidate.node == nullptr ? candidate.view->vm->joined_node_id
                                                         : candidate.node->id,
                    .reason = candidate.reason});
  }
}

}  // namespace nomad_harvester::scaling
