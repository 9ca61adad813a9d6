// SPDX-License-Identifier: Apache-2.0
// Forecasts for how many new VMs Harvester's hosts have room (rule C2). Pure. Private to module
// scaling.
#ifndef NOMAD_HARVESTER_SCALING_ROOM_H_
#define NOMAD_HARVESTER_SCALING_ROOM_H_

#include <string>
#include <vector>

#include "nomad_harvester/harvester/host_room.h"
#include "nomad_harvester/scaling/plan.h"

namespace nomad_harvester::scaling {

// The zone of each VM of the pool that is to run and is on no host yet, such as one that was just
// made. They get their hosts before any further VM.
std::vector<std::string> WaitingForHosts(const std::vector<harvester::HostRoom>& hosts,
                                         const PoolSnapshot& snapshot);
// Forecasts which of the plan's new VMs fit now. If some do not, and the pool's VMs are split over
// zones, they are first assigned to zones that have room.
harvester::RoomForecast ForecastPlan(const std::vector<harvester::HostRoom>& hosts,
                                     const harvester::VmNeed& need, const PoolSnapshot& snapshot,
                                     PlanInputs inputs, ScalePlan* plan);
// Says that no host could hold a VM, and why.
std::string NeverText(const harvester::RoomForecast& forecast);
inline constexpr char kCureOfNever[] =
    "lower what a VM asks for (cpu_request, memory_request, gpus, host_devices), widen where it "
    "may "
    "run (node_selector, availability_zones; for a taint a toleration in vm_template), or add such "
    "a host";
inline constexpr char kCureOfNoRoom[] = "make room or add a host, and the rest follows by itself";
inline constexpr char kCureOfNoQuota[] =
    "raise the quota of the namespace, or remove what uses it, and the rest follows by itself";

// "3 more VMs; hosts a and b have …": the number, and what limits it.
std::string Describe(const harvester::Room& room);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_ROOM_H_
