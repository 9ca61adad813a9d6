// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/demand/packing.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "nomad_harvester/base/time.h"

#include "constraints.h"
#include "distinct.h"
#include "items.h"
#include "pool_nodes.h"
#include "requirements.h"
#include "room.h"

namespace nomad_harvester::demand {
namespace {

// Smallest first. Equal capacities are one.
auto SizeOf(const PoolNode& node) {
  const Resources& r = node.capacity;
  return std::tie(r.memory_mb, r.cpu, r.disk_mb, r.cores, r.devices, node.cpu_per_core);
}

// What an empty new node can hold, besides its system jobs.
struct Model {
  Room room;
  bool has_system = false;
};

// Of overdue work.
std::string LeavesRoom() {
  return "Nomad has not placed it for " + base::FormatGoDuration(kOverdueAfter) +
         " although there is room";
}

// A node that takes work.
struct Bin {
  Room room;
  Spot spot;
  std::size_t place = 0;  // in Requirements, if it is there
  bool busy = false;
  bool counts = false;  // in any case
  bool fresh = false;
  bool used = false;
  bool was_tried = false;  // idle, and Nomad does not use its room for work that then orders more
};

// CPU and memory that are free, at most.
struct Free {
  std::int64_t cpu = 0;
  std::int64_t memory_mb = 0;

  bool MayHold(const Group& group) const {
    return group.need.cpu <= cpu && group.need.memory_mb <= memory_mb;
  }
  void Cover(const Free& other) {
    cpu = std::max(cpu, other.cpu);
    memory_mb = std::max(memory_mb, other.memory_mb);
  }
};

// In the order in which they are filled. Bins only lose room: what one, or a stretch of them, had
// free at the last look is the most that it has now. Most work is too large for most of them, so
// they are kept apart from it: few bins are looked at.
class Bins {
 public:
  void Add(Bin bin) {
    if (all_.size() % kStretch == 0) most_.emplace_back();
    free_.push_back(FreeIn(bin));
    most_.back().Cover(free_.back());
    all_.push_back(std::move(bin));
  }
  const std::vector<Bin>& all() const { return all_; }
  // Calls use(bin) for those that may hold the group, until it returns false.
  template <typename Use>
  void ForEachThatMayHold(const Group& group, const Use& use) {
    for (std::size_t begin = 0; begin < all_.size(); begin += kStretch) {
      Free& most = most_[begin / kStretch];
      if (!most.MayHold(group)) continue;
      Free now;
      for (std::size_t i = begin; i < std::min(begin + kStretch, all_.size()); ++i) {
        if (free_[i].MayHold(group)) {
          if (!use(all_[i])) return;
          free_[i] = FreeIn(all_[i]);
        }
        now.Cover(free_[i]);
      }
      most = now;
    }
  }

 private:
  static constexpr std::size_t kStretch = 64;
  static Free FreeIn(const Bin& bin) {
    Free free;
    free.Cover({.cpu = bin.room.free().cpu, .memory_mb = bin.room.free().memory_mb});
    return free;
  }

  std::vector<Bin> all_{};
  std::vector<Free> free_{};  // of each
  std::vector<Free> most_{};  // of each stretch
};

class Packer {
 public:
  Packer(const Query& query, const World& world, std::int64_t most_added)
      : query_(query),
        world_(world),
        most_added_(most_added),
        identity_(query.Identity()),
        known_(KnownNodes(world)),
        takers_(NodesWith(world, &TakesWork)),
        new_node_(Informed(known_), identity_),
        requirements_(takers_, new_node_) {}

  Demand Pack() {
    PackAll();
    return Count();
  }
  Rest Remain() {
    PackAll();
    Rest rest{.shown_by = shown_by_};
    for (const Item& item : items_) {
      const std::int64_t count = std::min(item.left, item.blocked);
      if (count == 0) continue;
      rest.pending.push_back({.group = item.demand.group,
                              .count = count,
                              .create_index = item.create_index,
                              .overdue = item.overdue});
    }
    return rest;
  }

 private:
  using Asked = std::vector<const Requirement*>;

  void PackAll() {
    ListSystem();
    MakeModels();
    MakeBins();
    items_ = ItemsOf(query_, world_, scale_);
    for (const Item& item : items_) jobs_.Expect(*item.demand.group);
    for (const PoolNode& node : world_.nodes) {
      for (const Placed& placed : node.work) {
        if (!Leaves(node, placed) && !placed.stops) jobs_.Add(placed, node);
      }
    }
    for (Item& item : items_) PackItem(item);
  }
  void ListSystem();
  void MakeModels();
  // System jobs that Nomad will place on a node, and that are not there yet.
  bool TakeSystem(Room& room, const PoolNode* node);
  void MakeBins();

  void PackItem(Item& item);
  void PackIntoKnown(Item& item, const Asked& asked, DistinctCounts& counts);
  void PackIntoNew(Item& item, DistinctCounts& counts);
  // One new node will show what becomes of the rest.
  void WaitForProbe(Item& item);
  // Says what stands against a new node; nullopt: nothing does.
  std::optional<std::pair<Verdict, std::string>> Objection(const Asked& asked) const;
  std::string WhyNoModel(const Group& group, const DistinctCounts& counts) const;
  void Take(Bin& bin, Item& item, std::int64_t count, DistinctCounts& counts);
  Demand Count();

  const Query& query_;
  const World& world_;
  const std::int64_t most_added_;
  const nodepool::PoolIdentity identity_;
  const std::vector<const PoolNode*> known_;
  const std::vector<const PoolNode*> takers_;
  const NewNode new_node_;
  Requirements requirements_;
  Resources scale_{};                 // that makes needs comparable: the smallest new node
  std::vector<const Group*> system_;  // what Nomad places on each new node
  std::vector<Model> models_;
  Bins bins_;  // that are there, in the order in which they are filled
  Bins new_bins_;
  std::vector<Item> items_;
  JobsWithDistinct jobs_;
  std::shared_ptr<const PoolNode> shown_by_{};  // see Demand
  bool wants_probe_ = false;
};

void Packer::MakeModels() {
  std::vector<const PoolNode*> nodes = known_;
  PoolNode told;
  if (nodes.empty() && query_.node.has_value()) {
    told.capacity = *query_.node;
    const Resources& r = told.capacity;
    const bool both = r.cores > 0 && r.cores < kUnlimited && r.cpu < kUnlimited;
    if (both) told.cpu_per_core = r.cpu / r.cores;
    nodes.push_back(&told);
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const auto* a, const auto* b) { return SizeOf(*a) < SizeOf(*b); });
  nodes.erase(std::unique(nodes.begin(), nodes.end(),
                          [](const auto* a, const auto* b) { return SizeOf(*a) == SizeOf(*b); }),
              nodes.end());
  if (!nodes.empty()) scale_ = nodes.front()->capacity;
  if (!known_.empty()) shown_by_ = std::make_shared<const PoolNode>(*nodes.front());
  for (const PoolNode* node : nodes) {
    Model model{.room = Room(node->capacity, node->cpu_per_core)};
    model.has_system = TakeSystem(model.room, nullptr);
    models_.push_back(std::move(model));
  }
}

void Packer::ListSystem() {
  for (const auto& group : world_.system) {
    if (!group->runnable) continue;
    const Asked asked = requirements_.Of(*group);
    const bool refused = std::any_of(asked.begin(), asked.end(),
                                     [](const Requirement* r) { return r->on_new == Truth::kNo; });
    if (!refused) system_.push_back(group.get());
  }
  std::sort(system_.begin(), system_.end(), [](const Group* a, const Group* b) {
    return GroupKey(*a, a->name) < GroupKey(*b, b->name);
  });
}

bool Packer::TakeSystem(Room& room, const PoolNode* node) {
  bool took = false;
  for (const Group* group : system_) {
    const bool is_there =
        node != nullptr &&
        std::any_of(node->work.begin(), node->work.end(), [&](const Placed& placed) {
          return GroupKey(placed, placed.group) == GroupKey(*group, group->name);
        });
    if (is_there || room.HowMany(*group, 1) == 0) continue;
    room.Take(*group, 1);
    took = true;
  }
  return took;
}

// Nodes with work are filled first, then those that count anyway, then idle ones, of which fresh
// ones last, because overdue work has no others; of equals the fullest, as Nomad does.
void Packer::MakeBins() {
  std::vector<std::pair<std::tuple<bool, bool, bool, double, std::string>, Bin>> ordered;
  ordered.reserve(takers_.size());
  for (std::size_t place = 0; place < takers_.size(); ++place) {
    const PoolNode& node = *takers_[place];
    Bin bin{.room = Room(node.capacity, node.cpu_per_core), .spot = {&node, 0}, .place = place};
    for (const Placed& placed : node.work) bin.room.Occupy(placed);
    if (node.node->status == nomad::NodeStatus::kInitializing) TakeSystem(bin.room, &node);
    bin.busy = IsBusy(node);
    bin.counts = bin.busy || IsKept(node, world_.at);
    bin.fresh = IsFresh(node, world_.at);
    const double free = bin.room.FreeShareOf(node.capacity);
    ordered.emplace_back(std::tuple(!bin.busy, !bin.counts, bin.fresh, free, node.node->id),
                         std::move(bin));
  }
  std::sort(ordered.begin(), ordered.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [order, bin] : ordered) bins_.Add(std::move(bin));
}

void Packer::PackItem(Item& item) {
  GroupDemand& demand = item.demand;
  const Group& group = *demand.group;
  item.left = demand.pending;
  if (!group.runnable) {
    demand.verdict = Verdict::kNotRunnable;
    demand.why = "its job is stopped";
    return;
  }
  if (!group.quota.empty()) {
    demand.verdict = Verdict::kCannotTell;
    demand.why = "the quota " + group.quota + " refused it, and may still";
    return;
  }
  const Asked asked = item.is_headroom ? Asked() : requirements_.Of(group);
  for (const Requirement* const each : asked) {
    if (!each->IsOfPool() || each->on_new != Truth::kNo || each->IsMetAnywhere()) continue;
    demand.verdict = Verdict::kOtherPool;
    demand.why = each->text;
    return;
  }
  DistinctCounts counts(group, jobs_.Of(group), new_node_);
  PackIntoKnown(item, asked, counts);
  demand.fits = demand.pending - item.left;
  if (item.left == 0) return;
  if (auto objection = Objection(asked)) {
    std::tie(demand.verdict, demand.why) = *std::move(objection);
    if (demand.verdict == Verdict::kCannotTell && new_node_.known().nodes().empty()) {
      WaitForProbe(item);
    }
    return;
  }
  if (models_.empty()) {
    WaitForProbe(item);
    demand.verdict = Verdict::kNeedsNodes;
    demand.why = "waits for the probe, which shows what a node of the pool holds";
    return;
  }
  if (item.leaves_room && (group.csi_volumes || group.host_networks)) {
    demand.verdict = Verdict::kCannotTell;
    demand.why = LeavesRoom() + ": nodes may lack its volume or its host network";
    return;
  }
  PackIntoNew(item, counts);
  if (item.leaves_room && demand.why.empty()) demand.why = LeavesRoom() + ": see why";
}

void Packer::WaitForProbe(Item& item) {
  wants_probe_ = true;
  if (most_added_ > 0) item.left = 0;
}

void Packer::PackIntoKnown(Item& item, const Asked& asked, DistinctCounts& counts) {
  const Group& group = *item.demand.group;
  const auto fitting = [&](const Bin& bin, std::int64_t wanted) -> std::int64_t {
    const std::int64_t count = bin.room.HowMany(group, wanted);
    const bool has_all =
        count > 0 && std::all_of(asked.begin(), asked.end(), [&](const Requirement* r) {
          return r->On(bin.place) == Truth::kYes;
        });
    return has_all ? counts.Limit(bin.spot, count) : 0;
  };
  bins_.ForEachThatMayHold(group, [&](Bin& bin) {
    if (item.left == 0) return false;
    if (item.overdue && !bin.fresh) return true;
    const std::int64_t count = fitting(bin, item.left);
    if (count > 0) Take(bin, item, count, counts);
    return true;
  });
  std::int64_t unplaced = item.overdue ? item.left : 0;
  bins_.ForEachThatMayHold(group, [&](Bin& bin) {
    if (unplaced == 0 && !item.leaves_room) return false;
    if (bin.fresh || (unplaced == 0 && bin.counts)) return true;
    const std::int64_t count = fitting(bin, std::max<std::int64_t>(unplaced, 1));
    if (count == 0) return true;
    if (unplaced == 0) {
      bin.was_tried = true;
      return true;
    }
    item.leaves_room = true;
    bin.used = true;
    unplaced -= count;
    return true;
  });
}

void Packer::PackIntoNew(Item& item, DistinctCounts& counts) {
  GroupDemand& demand = item.demand;
  const Group& group = *demand.group;
  const auto fill = [&](Bin& bin) {
    const std::int64_t count = counts.Limit(bin.spot, bin.room.HowMany(group, item.left));
    if (count > 0) Take(bin, item, count, counts);
    return count > 0;
  };
  const std::int64_t before = item.left;
  new_bins_.ForEachThatMayHold(group, [&](Bin& bin) {
    if (item.left > 0) fill(bin);
    return item.left > 0;
  });
  while (item.left > 0 && demand.nodes < kMaxAddedForGroup &&
         static_cast<std::int64_t>(new_bins_.all().size()) < most_added_) {
    const bool made = std::any_of(models_.begin(), models_.end(), [&](const Model& model) {
      Bin bin{.room = model.room, .spot = {nullptr, new_bins_.all().size()}};
      if (!fill(bin)) return false;
      new_bins_.Add(std::move(bin));
      return true;
    });
    if (!made) {
      demand.why = WhyNoModel(group, counts);
      break;
    }
    ++demand.nodes;
  }
  demand.verdict = demand.why.empty() || item.left != before ? Verdict::kNeedsNodes
                   : counts.CannotTell()                     ? Verdict::kCannotTell
                                                             : Verdict::kImpossible;
  if (item.left > 0 && demand.why.empty()) demand.why = "more nodes are not counted";
}

std::optional<std::pair<Verdict, std::string>> Packer::Objection(const Asked& asked) const {
  const auto find = [&](Truth truth) {
    return std::find_if(asked.begin(), asked.end(),
                        [&](const Requirement* r) { return r->on_new == truth; });
  };
  if (const auto no = find(Truth::kNo); no != asked.end()) {
    return std::pair(Verdict::kImpossible, "a new node lacks what it asks for: " + (*no)->text);
  }
  if (const auto unknown = find(Truth::kCannotTell); unknown != asked.end()) {
    return std::pair(Verdict::kCannotTell, "a new node may lack: " + (*unknown)->text);
  }
  return std::nullopt;
}

std::string Packer::WhyNoModel(const Group& group, const DistinctCounts& counts) const {
  const Model& largest = models_.back();
  const std::string lack = largest.room.WhyNone(group);
  if (lack.empty()) return counts.Why();
  return lack + " on an empty node" + (largest.has_system ? " beside its system jobs" : "");
}

void Packer::Take(Bin& bin, Item& item, std::int64_t count, DistinctCounts& counts) {
  bin.room.Take(*item.demand.group, count);
  bin.used = true;
  counts.Add(bin.spot, count);
  item.left -= count;
}

Demand Packer::Count() {
  Demand demand{.shown_by = shown_by_};
  for (const PoolNode& node : world_.nodes) {
    demand.busy += IsBusy(node) ? 1 : 0;
    demand.kept += !IsBusy(node) && IsKept(node, world_.at) ? 1 : 0;
  }
  std::int64_t useless = 0;
  for (const Bin& bin : bins_.all()) {
    if (bin.counts) continue;
    demand.used_idle += bin.used ? 1 : 0;
    useless += !bin.used && !bin.was_tried && HasVmThatCounts(*bin.spot.node) ? 1 : 0;
  }
  demand.added = static_cast<std::int64_t>(new_bins_.all().size());
  // A node that takes work shows by itself what it holds, once it has booted.
  if (wants_probe_ && demand.added == 0 && bins_.all().empty()) {
    demand.added = 1;
    demand.probe = true;
  }
  for (const PoolNode& node : world_.nodes) {
    const bool stays = TakesWork(node) || IsBusy(node) || IsKept(node, world_.at);
    useless += !stays && HasVmThatCounts(node) ? 1 : 0;
  }
  // The target adds new VMs to all that it counts.
  if (demand.added > 0) demand.away = useless;
  demand.needed = demand.busy + demand.kept + demand.used_idle + demand.away + demand.added;
  std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
    const auto key = [](const Item& item) {
      const Group& group = *item.demand.group;
      return std::tuple(item.demand.verdict == Verdict::kOtherPool, item.is_headroom,
                        GroupKey(group, group.name), -item.demand.pending, item.overdue);
    };
    return key(a) < key(b);
  });
  for (Item& item : items_) demand.groups.push_back(std::move(item.demand));
  return demand;
}

}  // namespace

Demand ComputeDemand(const Query& query, const World& world) {
  return Packer(query, world, kMaxAdded).Pack();
}

Rest RestOf(const Query& query, const World& world, std::int64_t most_added) {
  return Packer(query, world, most_added).Remain();
}

}  // namespace nomad_harvester::demand
