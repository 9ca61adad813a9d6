// SPDX-License-Identifier: Apache-2.0
#include "drivers/drain_fit.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/demand/fit.h"
#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/nodepool/selector.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {
namespace {

// How long Nomad may take to show the work.
constexpr base::Duration kRequireLimit = std::chrono::seconds(10);
constexpr base::Duration kReportLimit = std::chrono::seconds(3);
// How often to ask whether Nomad still places work.
constexpr base::Duration kReadAgainAfter = std::chrono::seconds(1);
// How many VMs are looked at besides as many as are to be removed: for a reserve, and at most. By
// then the pool is full.
constexpr std::size_t kForReserve = 10;
constexpr std::size_t kLookedAtBesides = 500;

// Each node of the pool costs a request, and a few usually have a place for all that moves.
constexpr std::size_t kPlacesAtFirst = 20;

// Of each VM that was looked at which work may wait; empty: none.
using WaitsByVm = std::map<std::string, std::string>;
struct Waits {
  WaitsByVm by_vm{};
  bool any = false;  // also of what moves or waits besides
};

// The nodes of VMs that are being removed. Nomad may not show their drains yet.
std::set<std::string> LeavingNodes(const PoolSnapshot& snapshot) {
  std::set<std::string> leaving;
  for (const VmView* const view : snapshot.vms()) {
    if (!view->vm->has_mark && !harvester::IsTerminating(view->vm)) continue;
    const nomad::Node* node = LinkedNode(*view, snapshot);
    if (node != nullptr) leaving.insert(node->id);
  }
  return leaving;
}

bool MayHaveWork(const PlannedRemoval& removal, const PlanInputs& inputs, bool knows_work) {
  if (removal.node_id.empty() || !knows_work) return !removal.node_id.empty();
  const auto found = inputs.allocations.find(removal.node_id);
  return found != inputs.allocations.end() && nodepool::HasWorkToMove(found->second);
}

Waits WaitsOf(const demand::World& world, const std::set<std::string>& leaving,
              const std::vector<PlannedRemoval>& removals, demand::Misfit misfit) {
  std::vector<std::string> nodes;
  nodes.reserve(removals.size());
  for (const PlannedRemoval& removal : removals) nodes.push_back(removal.node_id);
  const demand::Fit fit = demand::CheckFit(world, leaving, nodes, misfit);
  Waits waits{.any = !fit.others_fit};
  for (std::size_t i = 0; i < removals.size(); ++i) {
    waits.by_vm[removals[i].vm] = ToString(fit.nodes[i]);
    waits.any |= !fit.nodes[i].fits();
  }
  return waits;
}

// True if what has a place on some nodes of the pool has one in the pool: no group asks for nodes
// that differ from those of its other allocations.
bool MayLookAtFew(const demand::World& world) {
  return std::all_of(world.groups.begin(), world.groups.end(),
                     [](const auto& entry) { return entry.second->distinct.empty(); }) &&
         std::all_of(world.pending.begin(), world.pending.end(),
                     [](const demand::Pending& each) { return each.group->distinct.empty(); });
}

absl::StatusOr<WaitsByVm> ReadWaits(const runtime::Context& context, const PoolDependencies& deps,
                                    const PoolSnapshot& snapshot, const demand::Reading& reading,
                                    const std::set<std::string>& leaving,
                                    const std::vector<PlannedRemoval>& removals,
                                    demand::Misfit misfit) {
  std::set<std::string> emptied = leaving;
  for (const PlannedRemoval& removal : removals) {
    if (!removal.node_id.empty()) emptied.insert(removal.node_id);
  }
  const auto read = [&](std::size_t most_places) {
    return deps.work.WorldOf(context, reading, IdentityOf(*snapshot.policy), emptied, most_places);
  };
  NH_ASSIGN_OR_RETURN(demand::World world, read(kPlacesAtFirst + removals.size()));
  Waits waits = WaitsOf(world, leaving, removals, misfit);
  if (world.is_whole || (!waits.any && MayLookAtFew(world))) return std::move(waits.by_vm);
  NH_ASSIGN_OR_RETURN(world, read(demand::Reader::kAllPlaces));
  return WaitsOf(world, leaving, removals, misfit).by_vm;
}

// A reading while Nomad places nothing.
absl::StatusOr<std::shared_ptr<const demand::Reading>> ReadAtRest(const runtime::Context& context,
                                                                  const PoolDependencies& deps) {
  for (;;) {
    NH_ASSIGN_OR_RETURN(auto reading, deps.work.Read(context, /*from_now_on=*/true));
    NH_ASSIGN_OR_RETURN(std::string job, deps.work.JobBeingPlaced(context));
    if (job.empty()) return reading;
    // Until it is placed, one small list tells that another reading would not do either.
    while (!job.empty()) {
      if (!context.Sleep(kReadAgainAfter).ok()) {
        return base::Unavailable("Nomad is still placing work of " + job);
      }
      NH_ASSIGN_OR_RETURN(job, deps.work.JobBeingPlaced(context));
    }
  }
}

// Looks at further VMs until `wanted` of them fit. The jobs of VMs that nobody removes are not
// read.
absl::StatusOr<WaitsByVm> LookUntilEnoughFit(const runtime::Context& context,
                                             const PoolDependencies& deps,
                                             const PoolSnapshot& snapshot,
                                             const std::set<std::string>& leaving,
                                             const ScalePlan& plan) {
  std::vector<PlannedRemoval> order = plan.remove;
  order.insert(order.end(), plan.reserve.begin(), plan.reserve.end());
  order.resize(std::min(order.size(), plan.remove.size() + kLookedAtBesides));
  NH_ASSIGN_OR_RETURN(const auto reading, ReadAtRest(context, deps));
  for (std::size_t count = plan.remove.size() + kForReserve;; count *= 2) {
    count = std::min(count, order.size());
    const std::vector<PlannedRemoval> looked_at(order.begin(),
                                                order.begin() + static_cast<std::ptrdiff_t>(count));
    NH_ASSIGN_OR_RETURN(WaitsByVm waits, ReadWaits(context, deps, snapshot, *reading, leaving,
                                                   looked_at, demand::Misfit::kPassedOver));
    const auto fitting = static_cast<std::size_t>(std::count_if(
        waits.begin(), waits.end(), [](const auto& entry) { return entry.second.empty(); }));
    if (fitting >= plan.remove.size() || count == order.size()) return waits;
  }
}

absl::StatusOr<WaitsByVm> LookAtChosen(const runtime::Context& context,
                                       const PoolDependencies& deps, const PoolSnapshot& snapshot,
                                       const std::vector<PlannedRemoval>& removals) {
  NH_ASSIGN_OR_RETURN(const std::shared_ptr<const demand::Reading> reading,
                      deps.work.Read(context));
  return ReadWaits(context, deps, snapshot, *reading, LeavingNodes(snapshot), removals,
                   demand::Misfit::kDrained);
}

absl::Status NotKnown(const absl::Status& failed) {
  const bool denied = absl::IsPermissionDenied(failed);
  return base::MakeStatus(
      denied ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kUnavailable,
      "scale_in_fit = \"require\": whether the work of the VMs to remove has another place could "
      "not be read from Nomad: " +
          base::Message(failed) +
          (denied ? "; grant " + std::string(demand::kTokenNeeds) +
                        " to the Nomad token, or set scale_in_fit = \"report\""
                  : "; nothing was removed, and the next Scale reads it again"));
}

}  // namespace

bool MovesWork(const ScalePlan& plan, const PlanInputs& inputs, bool knows_work) {
  return std::any_of(plan.remove.begin(), plan.remove.end(), [&](const PlannedRemoval& removal) {
    return MayHaveWork(removal, inputs, knows_work);
  });
}

absl::Status KeepWhatFits(const runtime::Context& context, const PoolDependencies& deps,
                          const PoolSnapshot& snapshot, const PlanInputs& inputs, bool knows_work,
                          ScalePlan* plan) {
  const std::set<std::string> leaving = LeavingNodes(snapshot);
  // Without work of its own, a VM may still be the place of work that is moving.
  if (leaving.empty() && !MovesWork(*plan, inputs, knows_work)) {
    std::erase_if(plan->reserve, [&](const PlannedRemoval& removal) {
      return MayHaveWork(removal, inputs, knows_work);
    });
    return absl::OkStatus();
  }
  const auto waits =
      LookUntilEnoughFit(context.WithTimeout(kRequireLimit), deps, snapshot, leaving, *plan);
  NH_RETURN_IF_ERROR(context.Check());
  if (!waits.ok()) return NotKnown(waits.status());
  return KeepThoseThatFit(*waits, inputs.newly_counted, plan);
}

std::vector<SkippedVm> FindWhatMayWait(const runtime::Context& context,
                                       const PoolDependencies& deps, const PoolSnapshot& snapshot,
                                       const std::vector<PlannedRemoval>& removals) {
  const auto waits = LookAtChosen(context.WithTimeout(kReportLimit), deps, snapshot, removals);
  if (!waits.ok()) {
    deps.logger.Debug("Could not read whether the work of the VMs to remove has another place",
                      {{"action_id", deps.call}, {"error", waits.status()}});
    return {};
  }
  std::vector<SkippedVm> may_wait;
  for (const PlannedRemoval& removal : removals) {
    const std::string& work = waits->at(removal.vm);
    if (!work.empty()) may_wait.push_back({removal.vm, work});
  }
  return may_wait;
}

}  // namespace nomad_harvester::scaling
