// SPDX-License-Identifier: Apache-2.0
#include "rules/room.h"

#include <cstddef>
#include <utility>

#include "rules/zones.h"

namespace nomad_harvester::scaling {
namespace {

std::vector<std::string> ZonesOf(const ScalePlan& plan) {
  std::vector<std::string> zones;
  zones.reserve(plan.create.size());
  for (const PlannedCreation& creation : plan.create) zones.push_back(creation.zone);
  return zones;
}

}  // namespace

std::vector<std::string> WaitingForHosts(const std::vector<harvester::HostRoom>& hosts,
                                         const PoolSnapshot& snapshot) {
  std::vector<const harvester::VirtualMachine*> members;
  for (const VmView* view : snapshot.vms()) {
    if (IsPoolMember(*view, snapshot)) members.push_back(&*view->vm);
  }
  return ZonesOfWaiting(hosts, {snapshot.key.ns, snapshot.key.pool}, members);
}

harvester::RoomForecast ForecastPlan(const std::vector<harvester::HostRoom>& hosts,
                                     const harvester::VmNeed& need, const PoolSnapshot& snapshot,
                                     PlanInputs inputs, ScalePlan* plan) {
  const std::vector<std::string> waiting = WaitingForHosts(hosts, snapshot);
  const auto forecast_in = [&](const std::vector<std::string>& zones) {
    return harvester::ForecastRoom(hosts, need, zones, waiting);
  };
  harvester::RoomForecast forecast = forecast_in(ZonesOf(*plan));
  const std::size_t wanted = plan->create.size();
  if (forecast.never || FitsIn(forecast) == wanted || !SplitsZones(snapshot)) return forecast;
  // Each host is in one zone, so that the zones do not compete.
  for (const std::string& zone : snapshot.policy->zones) {
    inputs.zone_room[zone] = FitsIn(forecast_in(std::vector<std::string>(wanted, zone)));
  }
  AssignZones(snapshot, inputs, plan);
  std::vector<std::string> zones = ZonesOf(*plan);
  forecast = forecast_in(zones);
  if (FitsIn(forecast) == wanted) return forecast;
  // What did not fit has found no zone: why not is told of all hosts.
  for (std::size_t i = 0; i < wanted; ++i) {
    if (!forecast.fits[i]) zones[i].clear();
  }
  std::string why = forecast_in(zones).why;
  if (!why.empty()) forecast.why = std::move(why);
  return forecast;
}

std::string NeverText(const harvester::RoomForecast& forecast) {
  return "no host could hold a VM, even if it were empty: " + forecast.why;
}

std::string Describe(const harvester::Room& room) {
  if (room.vms == harvester::kMostRoom) {
    return "at least " + std::to_string(harvester::kMostRoom) + " more VMs";
  }
  const std::string number = room.vms == 0   ? "no more VM"
                             : room.vms == 1 ? "1 more VM"
                                             : std::to_string(room.vms) + " more VMs";
  return number + ": " + room.forecast.why;
}

}  // namespace nomad_harvester::scaling
