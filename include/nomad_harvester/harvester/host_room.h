// SPDX-License-Identifier: Apache-2.0
// How many more VMs fit on Harvester's hosts: a forecast of what Kubernetes' scheduler decides
// (rule C2). What it does not know makes it say yes rather than no.
//
// Known: requests, the number of pods, taints, cordons, node selectors, required node affinity, and
// required anti-affinity among the VMs of a pool. Not known: preferences, topology spread, other
// affinity to pods, ports, where volumes can be used, the networks of a host. Pods that have no
// host yet are not counted: they compete, but they may never run. The caller says which VMs of its
// own pool have none.
#ifndef NOMAD_HARVESTER_HARVESTER_HOST_ROOM_H_
#define NOMAD_HARVESTER_HARVESTER_HOST_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/harvester/host.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

// Amounts of what the scheduler counts on a host, by resource as in its allocatable: CPUs in
// thousandths, memory and huge pages in bytes, pods, devices.
using Amounts = std::map<std::string, std::int64_t>;
inline constexpr char kCpu[] = "cpu";
inline constexpr char kMemory[] = "memory";
inline constexpr char kPods[] = "pods";

// A condition on a label of a host, or on its name.
struct HostExpression {
  std::string key{};
  std::string op{};  // In, NotIn, Exists, DoesNotExist, Gt, Lt
  std::vector<std::string> values{};
  bool is_field = false;  // `key` is a field of the host, such as metadata.name
};
struct Toleration {
  std::string key{};  // empty: any taint
  std::string op{};   // empty: Equal
  std::string value{};
  std::string effect{};  // empty: any
};

// What the pod of one VM asks of its host.
struct VmNeed {
  Amounts amounts{};
  // Without what KubeVirt adds to the VM, which depends on its release and on Harvester's settings.
  Amounts least{};
  std::map<std::string, std::string> node_selector{};
  // Required node affinity: a host must meet all expressions of one of the terms. Empty: any host.
  std::vector<std::vector<HostExpression>> terms{};
  std::vector<Toleration> tolerations{};
  bool one_per_host = false;  // at most one VM of the pool on a host
  std::string ns{};           // of the VM
  std::string pool{};
};

// `vm`: a VirtualMachine as the API server returns it, of a trial creation or stored, because
// Harvester's webhook sets its requests. Pure. INVALID_ARGUMENT: it requests no memory.
absl::StatusOr<VmNeed> NeedOf(const nlohmann::json& vm);

struct HostRoom {
  Host host{};
  Amounts used{};  // by the pods on it that have not ended
  // The names of each pool's VMs, by its namespace and name. One for each pod, so that a VM that
  // migrates is on both hosts.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> vms{};
};
// Blocks for two lists: of the hosts, and of the pods of all namespaces. In ascending order of
// names. PERMISSION_DENIED (kube::IsForbidden): the token lacks one of these optional rights.
absl::StatusOr<std::vector<HostRoom>> ReadHostRooms(const runtime::Context& context,
                                                    const kube::KubeClient& client);

struct RoomForecast {
  std::vector<bool> fits{};  // for each wanted VM, in order
  // No host could hold one VM even if it were empty: its labels, lasting taints, or what it has in
  // all. A cordon or a host that is not ready is no such reason.
  bool never = false;
  // Why no VM ever fits, or why the first one that does not fit does not: "hosts h1, h2 and h3 have
  // 6 GiB of memory free each, a VM needs 8.4 GiB". Empty: all fit.
  std::string why{};
};
// `zones`: of each wanted VM; empty: any that its need allows. `waiting`: likewise of each VM of
// the pool that waits for a host, and gets one first. Pure. Each VM takes the host with the fewest
// VMs of the pool.
RoomForecast ForecastRoom(const std::vector<HostRoom>& hosts, const VmNeed& need,
                          const std::vector<std::string>& zones,
                          const std::vector<std::string>& waiting = {});
// How many of the VMs fit.
std::size_t FitsIn(const RoomForecast& forecast);

// The room for one pool.
struct Room {
  std::int64_t vms = 0;  // how many more fit now, at most kMostRoom
  RoomForecast forecast{};
};
// As many as one action may create.
inline constexpr std::int64_t kMostRoom = 1000;
Room FindRoom(const std::vector<HostRoom>& hosts, const VmNeed& need,
              const std::vector<std::string>& waiting = {});

// The zones (empty: any) of those members of a pool that are to run, and of which no host has a
// pod.
std::vector<std::string> ZonesOfWaiting(const std::vector<HostRoom>& hosts,
                                        const std::pair<std::string, std::string>& pool,
                                        const std::vector<const VirtualMachine*>& members);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_HOST_ROOM_H_
