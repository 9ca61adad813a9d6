// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/demand/fit.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "nomad_harvester/demand/names.h"

#include "constraints.h"
#include "distinct.h"
#include "pool_nodes.h"
#include "requirements.h"
#include "room.h"

namespace nomad_harvester::demand {
namespace {

using GroupId = std::tuple<std::string, std::string, std::string>;  // namespace, job, name

// The dynamic ports, by default (hashicorp/nomad:nomad/structs/network.go, DefaultMinDynamicPort).
constexpr std::uint16_t kFirstDynamicPort = 20000;
constexpr std::uint16_t kLastDynamicPort = 32000;

// What Nomad adds up on a node: CPU, memory, disk, cores.
constexpr std::size_t kKinds = 4;
using Amounts = std::array<std::int64_t, kKinds>;

Amounts AmountsOf(const Resources& resources) {
  return {resources.cpu, resources.memory_mb, resources.disk_mb, resources.cores};
}
Amounts NeedOf(const Group& group, std::int64_t cpu_per_core) {
  Amounts need = AmountsOf(group.need);
  need[0] += group.need.cores * cpu_per_core;
  return need;
}

std::int64_t DevicesOf(const Group& group) {
  return std::accumulate(group.devices.begin(), group.devices.end(), std::int64_t{0},
                         [](std::int64_t sum, const DeviceNeed& need) { return sum + need.count; });
}

bool ShareAPort(const Group& a, const Group& b) {
  return std::any_of(a.static_ports.begin(), a.static_ports.end(),
                     [&](std::uint16_t port) { return b.static_ports.contains(port); });
}

// For how many of the costs the budget is enough, the lowest first.
std::size_t HowManyFor(double budget, std::vector<double> costs) {
  std::sort(costs.begin(), costs.end());
  std::size_t count = 0;
  for (const double cost : costs) {
    budget -= cost;
    if (budget < 0) break;
    ++count;
  }
  return count;
}

// What of a group is not compared with nodes; empty: nothing.
std::string NotCompared(const Group& group) {
  if (group.csi_volumes) return "nodes do not say whether its volumes can be used there";
  if (group.host_networks) return "nodes are not asked for its host networks";
  const bool constrains_devices =
      std::any_of(group.devices.begin(), group.devices.end(),
                  [](const DeviceNeed& need) { return !need.constraints.empty(); });
  return constrains_devices ? "nodes are not asked for the attributes of their devices" : "";
}

// Makes the group as large as what runs, which may be of an older version of its job: Nomad places
// that again while a deployment goes on.
void GrowTo(const Placed& placed, std::int64_t cpu_per_core, std::shared_ptr<const Group>& group) {
  Resources need = group->need;
  GrowToHold(placed, cpu_per_core, need);
  if (AmountsOf(need) == AmountsOf(group->need)) return;
  auto larger = std::make_shared<Group>(*group);
  larger->need = std::move(need);
  group = std::move(larger);
}

// A node that work may go to.
struct Place {
  const PoolNode* node = nullptr;
  std::size_t number = 0;  // in Requirements
  Room room;
};

bool IsPlace(const PoolNode& node) {
  return TakesWork(node) && node.node->status == nomad::NodeStatus::kReady;
}

// Work of one group that needs a place.
struct Moving {
  std::shared_ptr<const Group> group{};
  std::vector<const Requirement*> asked{};
  std::int64_t count = 0;
  bool must_fit = false;  // a drain may not leave it without a place
  bool has_ports = false;
  std::string cannot_tell{};
};

// Of all that moves.
struct Totals {
  std::array<double, kKinds> amounts{};
  Amounts largest{};  // of one allocation
  Amounts step{};     // every amount is a multiple of it; 0: there is none
  double count = 0;
  double devices = 0;
};

// Where an allocation of a group may go now.
struct Options {
  std::vector<const Place*> places{};
  double room = 0;            // for so many of the group at most
  std::size_t not_known = 0;  // nodes besides, of which it is not known
  std::string asks{};         // for what
};

class FitCheck {
 public:
  FitCheck(const World& world, const std::set<std::string>& leaving);

  bool others_fit() const { return others_fit_; }
  NodeFit Drain(const std::string& node_id, Misfit misfit);

 private:
  using JobId = std::pair<std::string_view, std::string_view>;

  void MakePlaces();
  void AddPending();
  // Of a node that is drained: all of it. Else what Nomad was told to move.
  void AddWork(const PoolNode& node, bool is_drained, bool must_fit);
  Moving Make(std::shared_ptr<const Group> group);
  // It takes none away.
  void DropWhatHasNoPlace();
  void Sum();

  // Nullopt: each allocation finds a place, wherever Nomad puts the rest.
  std::optional<WaitingWork> WaitingOf(const Moving& moving) const;
  Options OptionsOf(const Moving& moving) const;
  // How many places the rest of what moves can take away from one allocation, at most.
  std::size_t TakenFrom(const Moving& moving, const std::vector<const Place*>& places) const;
  std::size_t TakenByAmounts(const Moving& moving, const std::vector<const Place*>& places) const;
  std::size_t TakenByPorts(const Moving& moving) const;
  std::size_t TakenByDevices(const Moving& moving, const std::vector<const Place*>& places) const;
  std::size_t TakenByDistinct(const Moving& moving, const std::vector<const Place*>& places) const;
  // Of a group that asks for distinct nodes: where its job is.
  std::vector<OfJob> PlacedOf(const Group& group) const;
  std::int64_t MovingOfJob(const Group& group) const;

  const World& world_;
  const nodepool::PoolIdentity identity_{};
  const NewNode new_node_;
  const std::vector<const PoolNode*> ready_;
  Requirements requirements_;
  std::vector<Place> places_;
  std::int64_t most_cpu_per_core_ = 0;
  std::map<std::string_view, const PoolNode*> nodes_;
  std::map<JobId, std::vector<std::pair<const PoolNode*, const Placed*>>> work_of_;
  std::set<std::string> emptied_;
  std::set<GroupId> overdue_;
  std::map<GroupId, Moving> moving_;
  Totals totals_;
  bool others_fit_ = false;  // what moves or waits had a place before the first drain
};

FitCheck::FitCheck(const World& world, const std::set<std::string>& leaving)
    : world_(world),
      new_node_(Informed(KnownNodes(world)), identity_),
      ready_(NodesWith(world, &IsPlace)),
      requirements_(ready_, new_node_),
      emptied_(leaving) {
  MakePlaces();
  for (const PoolNode& node : world.nodes) {
    nodes_.emplace(node.node->id, &node);
    for (const Placed& placed : node.work) {
      work_of_[{placed.ns, placed.job}].emplace_back(&node, &placed);
    }
  }
  AddPending();
  for (const PoolNode& node : world.nodes) {
    AddWork(node, IsEmptied(node) || emptied_.contains(node.node->id), /*must_fit=*/false);
  }
  const std::size_t groups = moving_.size();
  DropWhatHasNoPlace();
  Sum();
  others_fit_ = moving_.size() == groups;
  for (auto& [id, moving] : moving_) {
    moving.must_fit = !WaitingOf(moving).has_value();
    others_fit_ &= moving.must_fit;
  }
}

void FitCheck::MakePlaces() {
  places_.reserve(ready_.size());
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    const PoolNode& node = *ready_[i];
    Place place{.node = &node, .number = i, .room = Room(node.capacity, node.cpu_per_core)};
    for (const Placed& placed : node.work) place.room.Occupy(placed);
    most_cpu_per_core_ = std::max(most_cpu_per_core_, node.cpu_per_core);
    places_.push_back(std::move(place));
  }
}

// Nomad has tried overdue work on the nodes that are there, and knows a reason against them.
void FitCheck::AddPending() {
  for (const Pending& pending : world_.pending) {
    const Group& group = *pending.group;
    if (pending.count <= 0 || !group.runnable) continue;
    GroupId id(group.ns, group.job, group.name);
    if (pending.overdue) {
      overdue_.insert(std::move(id));
      continue;
    }
    moving_.try_emplace(std::move(id), Make(pending.group)).first->second.count += pending.count;
  }
}

void FitCheck::AddWork(const PoolNode& node, bool is_drained, bool must_fit) {
  if (node.node->status == nomad::NodeStatus::kDown) return;  // Nomad has replaced it
  for (const Placed& placed : node.work) {
    if (!Moves(placed) || !(is_drained || placed.leaves)) continue;
    GroupId id(placed.ns, placed.job, placed.group);
    const auto known = world_.groups.find(id);
    if (known != world_.groups.end() && !known->second->runnable) continue;  // it ends
    auto found = moving_.find(id);
    if (found == moving_.end()) {
      Moving made;
      if (known != world_.groups.end()) {
        made = Make(known->second);
      } else {
        Group group;
        GrowToHold(placed, node.cpu_per_core, group);
        made = Make(std::make_shared<const Group>(std::move(group)));
        made.cannot_tell = "its job is gone, or has no such group any more";
      }
      if (made.cannot_tell.empty() && overdue_.contains(id)) {
        made.cannot_tell = "Nomad leaves other allocations of it waiting";
      }
      found = moving_.emplace(std::move(id), std::move(made)).first;
    }
    Moving& moving = found->second;
    GrowTo(placed, node.cpu_per_core, moving.group);
    ++moving.count;
    moving.must_fit |= must_fit;
    moving.has_ports |= !placed.ports.empty();
  }
}

Moving FitCheck::Make(std::shared_ptr<const Group> group) {
  Moving made{.group = std::move(group)};
  made.asked = requirements_.Of(*made.group);
  made.cannot_tell = NotCompared(*made.group);
  made.has_ports = !made.group->network_mode.empty();
  return made;
}

void FitCheck::DropWhatHasNoPlace() {
  std::erase_if(moving_, [&](const auto& entry) {
    const Options options = OptionsOf(entry.second);
    return options.places.empty() && options.not_known == 0;
  });
}

void FitCheck::Sum() {
  totals_ = {};
  for (const auto& [id, moving] : moving_) {
    const Amounts need = NeedOf(*moving.group, most_cpu_per_core_);
    const auto count = static_cast<double>(moving.count);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      totals_.amounts[kind] += count * static_cast<double>(need[kind]);
      totals_.largest[kind] = std::max(totals_.largest[kind], need[kind]);
      // The CPU of cores depends on the node.
      const bool is_fixed = kind != 0 || moving.group->need.cores == 0;
      totals_.step[kind] = std::gcd(totals_.step[kind], is_fixed ? need[kind] : std::int64_t{1});
    }
    totals_.count += count;
    totals_.devices += count * static_cast<double>(DevicesOf(*moving.group));
  }
}

NodeFit FitCheck::Drain(const std::string& node_id, Misfit misfit) {
  const auto node = nodes_.find(node_id);
  if (node == nodes_.end() || emptied_.contains(node_id)) return {};
  const std::map<GroupId, Moving> before = moving_;
  emptied_.insert(node_id);
  AddWork(*node->second, /*is_drained=*/true, /*must_fit=*/true);
  Sum();
  NodeFit fit;
  for (auto& [id, moving] : moving_) {
    if (!moving.must_fit) continue;
    std::optional<WaitingWork> waiting = WaitingOf(moving);
    if (!waiting.has_value()) continue;
    fit.waits.push_back(*std::move(waiting));
    moving.must_fit = false;  // told once
  }
  if (fit.fits()) return fit;
  if (misfit == Misfit::kDrained) {
    DropWhatHasNoPlace();
  } else {
    moving_ = before;
    emptied_.erase(node_id);
  }
  return fit;
}

std::optional<WaitingWork> FitCheck::WaitingOf(const Moving& moving) const {
  WaitingWork waiting{
      .group = moving.group, .moving = moving.count, .cannot_tell = moving.cannot_tell};
  if (!waiting.cannot_tell.empty()) return waiting;
  const Options options = OptionsOf(moving);
  const std::size_t taken = TakenFrom(moving, options.places);
  if (options.places.size() > taken) return std::nullopt;
  if (options.places.size() + options.not_known > taken) {
    waiting.cannot_tell = "it is not known whether other nodes have " + options.asks;
  } else if (const auto count = static_cast<double>(moving.count); options.room < count) {
    waiting.waiting = static_cast<std::int64_t>(count - options.room);
  }
  return waiting;
}

Options FitCheck::OptionsOf(const Moving& moving) const {
  const Group& group = *moving.group;
  std::vector<OfJob> of_job = PlacedOf(group);
  DistinctCounts counts(group, &of_job, new_node_);
  Options options;
  for (const Place& place : places_) {
    if (emptied_.contains(place.node->node->id)) continue;
    std::int64_t fit = counts.Limit({place.node}, place.room.HowMany(group, moving.count));
    const Requirement* not_known = nullptr;
    for (const Requirement* const each : moving.asked) {
      const Truth truth = each->On(place.number);
      if (truth == Truth::kNo) fit = 0;
      if (truth == Truth::kCannotTell) not_known = each;
    }
    if (fit == 0) continue;
    if (not_known != nullptr) {
      ++options.not_known;
      options.asks = not_known->text;
      continue;
    }
    options.places.push_back(&place);
    options.room += static_cast<double>(fit);
  }
  return options;
}

std::size_t FitCheck::TakenFrom(const Moving& moving,
                                const std::vector<const Place*>& places) const {
  const std::size_t taken = TakenByAmounts(moving, places) + TakenByPorts(moving) +
                            TakenByDevices(moving, places) + TakenByDistinct(moving, places);
  const double others = totals_.count - 1;
  return static_cast<double>(taken) < others ? taken : static_cast<std::size_t>(others);
}

// What the others need together is enough to fill so many, and each of them is on one node.
std::size_t FitCheck::TakenByAmounts(const Moving& moving,
                                     const std::vector<const Place*>& places) const {
  const Group& group = *moving.group;
  const Amounts own = NeedOf(group, most_cpu_per_core_);
  std::array<std::vector<double>, kKinds> costs;  // of each place
  std::vector<double> allocations;                // that it takes to fill it
  for (const Place* const place : places) {
    const Amounts need = NeedOf(group, place->node->cpu_per_core);
    const Amounts free = AmountsOf(place->room.free());
    std::optional<std::int64_t> fewest;
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      if (need[kind] == 0 || totals_.largest[kind] == 0) continue;
      const std::int64_t step = std::max<std::int64_t>(1, totals_.step[kind]);
      const std::int64_t steps = (free[kind] - need[kind]) / step + 1;
      const std::int64_t largest = totals_.largest[kind];
      const std::int64_t cost = steps * step;
      costs[kind].push_back(static_cast<double>(cost));
      const std::int64_t count = (cost + largest - 1) / largest;
      fewest = std::min(fewest.value_or(count), count);
    }
    if (fewest.has_value()) allocations.push_back(static_cast<double>(*fewest));
  }
  std::size_t taken = 0;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const double others = totals_.amounts[kind] - static_cast<double>(own[kind]);
    taken += HowManyFor(others, std::move(costs[kind]));
  }
  return std::min(taken, HowManyFor(totals_.count - 1, std::move(allocations)));
}

std::size_t FitCheck::TakenByPorts(const Moving& moving) const {
  const std::set<std::uint16_t>& ports = moving.group->static_ports;
  if (ports.empty()) return 0;
  const auto port = ports.lower_bound(kFirstDynamicPort);
  const bool may_be_dynamic = port != ports.end() && *port <= kLastDynamicPort;
  std::int64_t others = -1;
  for (const auto& [id, other] : moving_) {
    if ((may_be_dynamic && other.has_ports) || ShareAPort(*moving.group, *other.group)) {
      others += other.count;
    }
  }
  return static_cast<std::size_t>(others);
}

std::size_t FitCheck::TakenByDevices(const Moving& moving,
                                     const std::vector<const Place*>& places) const {
  const Group& group = *moving.group;
  if (group.devices.empty()) return 0;
  const std::int64_t own = DevicesOf(group);
  std::vector<double> costs;
  costs.reserve(places.size());
  for (const Place* const place : places) {
    std::int64_t fewest = own;
    for (const DeviceNeed& need : group.devices) {
      std::int64_t most = 0;
      for (const auto& [name, free] : place->room.free().devices) {
        if (MatchesDevice(need.name, name)) most = std::max(most, free);
      }
      fewest = &need == &group.devices.front() ? most : std::min(fewest, most);
    }
    costs.push_back(static_cast<double>(std::max<std::int64_t>(1, fewest - own + 1)));
  }
  return HowManyFor(totals_.devices - static_cast<double>(own), std::move(costs));
}

// Others of its job, or of its group, may use up values, each with all nodes that have it.
std::size_t FitCheck::TakenByDistinct(const Moving& moving,
                                      const std::vector<const Place*>& places) const {
  const Group& group = *moving.group;
  std::vector<OfJob> of_job = PlacedOf(group);
  DistinctCounts counts(group, &of_job, new_node_);
  std::size_t taken = 0;
  for (std::size_t i = 0; i < group.distinct.size(); ++i) {
    const Distinct& distinct = group.distinct[i];
    std::map<std::string_view, std::size_t> nodes;  // by value
    for (const Place* const place : places) {
      ++nodes[Resolve(distinct.property, *place->node->node).text];
    }
    std::vector<double> costs;
    std::vector<std::size_t> sizes;
    for (const auto& [value, count] : nodes) {
      costs.push_back(static_cast<double>(distinct.limit - counts.Used(i, std::string(value))));
      sizes.push_back(count);
    }
    const std::int64_t others = (distinct.whole_job ? MovingOfJob(group) : moving.count) - 1;
    const std::size_t values = HowManyFor(static_cast<double>(others), std::move(costs));
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    taken += std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(values),
                             std::size_t{0});
  }
  return taken;
}

std::vector<OfJob> FitCheck::PlacedOf(const Group& group) const {
  std::vector<OfJob> all;
  const auto work = group.distinct.empty() ? work_of_.end() : work_of_.find({group.ns, group.job});
  if (work == work_of_.end()) return all;
  for (const auto& [node, placed] : work->second) {
    const bool leaves =
        emptied_.contains(node->node->id) || IsEmptied(*node) || placed->leaves || placed->stops;
    all.push_back({.spot = {node}, .group = placed->group, .leaves = leaves});
  }
  return all;
}

std::int64_t FitCheck::MovingOfJob(const Group& group) const {
  std::int64_t count = 0;
  for (const auto& [id, other] : moving_) {
    if (other.group->ns == group.ns && other.group->job == group.job) count += other.count;
  }
  return count;
}

}  // namespace

std::string ToString(const WaitingWork& work) {
  const auto allocations = [](std::int64_t count) {
    return std::to_string(count) + (count == 1 ? " allocation" : " allocations");
  };
  const bool some = work.waiting > 0 && work.waiting < work.moving;
  std::string text =
      NameOf(*work.group) + ": " + (some ? std::to_string(work.waiting) + " of " : "") +
      allocations(work.moving) + " (" + SizeText(*work.group) + (work.moving == 1 ? ")" : " each)");
  if (!work.cannot_tell.empty()) return text + ", which cannot be told: " + work.cannot_tell;
  if (work.waiting == 0) text += ", if Nomad puts other work into the room that there is";
  return text;
}

std::string ToString(const NodeFit& fit) {
  std::string text;
  for (const WaitingWork& each : fit.waits) text += (text.empty() ? "" : "; ") + ToString(each);
  return text;
}

Fit CheckFit(const World& world, const std::set<std::string>& leaving,
             const std::vector<std::string>& nodes, Misfit misfit) {
  FitCheck check(world, leaving);
  Fit fit{.others_fit = check.others_fit()};
  fit.nodes.reserve(nodes.size());
  for (const std::string& node : nodes) fit.nodes.push_back(check.Drain(node, misfit));
  return fit;
}

}  // namespace nomad_harvester::demand
