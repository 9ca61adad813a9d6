// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/demand/room_reader.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/nodepool/link.h"

namespace nomad_harvester::demand {
namespace {

using harvester::VirtualMachine;

// From then on, a node that has registered is in Nomad's list, or gone.
constexpr base::Duration kListedAfter = std::chrono::minutes(1);

// A VM that is past its deadline will be removed, and does not count.
bool IsLate(const VirtualMachine& vm, base::WallTime now) {
  return !harvester::HasJoined(vm) && !harvester::WaitsToStart(vm) && vm.join_timeout.has_value() &&
         !vm.join_timeout->none && now - vm.created_at >= vm.join_timeout->limit;
}

bool Counts(const VirtualMachine& vm, base::WallTime now) {
  return !harvester::IsTerminating(vm) && !vm.has_mark && !vm.replaces.has_value() &&
         !IsLate(vm, now);
}

bool IsComing(const VirtualMachine& vm, base::WallTime now) {
  return !harvester::HasJoined(vm) || now - *vm.joined_at < kListedAfter;
}

// A VM of a pool that is split over zones is bound to its own; a new one may go to any of them.
void WidenZone(const std::set<std::string>& zones, harvester::VmNeed* need) {
  for (auto& term : need->terms) {
    for (harvester::HostExpression& expression : term) {
      if (expression.key != "topology.kubernetes.io/zone" || expression.op != "In") continue;
      expression.values.assign(zones.begin(), zones.end());
    }
  }
}

absl::Status WithGrant(const absl::Status& failed) {
  if (!kube::IsForbidden(failed)) return failed;
  return base::MakeStatus(failed.code(),
                          base::Message(failed) +
                              "; grant list on nodes and pods, as the optional ClusterRole of "
                              "examples/rbac.yaml does");
}

}  // namespace

std::int64_t NodesToCome(const PoolRoom& room, std::int64_t max, const World& world) {
  const auto is_listed = [&](const ComingVm& vm) {
    return std::any_of(world.nodes.begin(), world.nodes.end(), [&](const PoolNode& node) {
      return node.node->id == vm.node_id ||
             nodepool::ShortHostName(node.node->name) == nodepool::ShortHostName(vm.name);
    });
  };
  const std::int64_t more = std::max<std::int64_t>(0, std::min(max - room.vms, room.room.vms));
  return more + std::count_if(room.coming.begin(), room.coming.end(),
                              [&](const ComingVm& vm) { return !is_listed(vm); });
}

absl::StatusOr<PoolRoom> RoomReader::Read(const runtime::Context& context, const HomePool& pool) {
  NH_ASSIGN_OR_RETURN(const auto listed, harvester::VmStore(client_, pool.ns).ListManaged(context));
  const base::WallTime now = listed.server_time.value_or(context.clock().WallNow());
  PoolRoom room;
  const VirtualMachine* newest = nullptr;
  std::set<std::string> zones;
  std::vector<const VirtualMachine*> members;
  for (const VirtualMachine& vm : listed.value) {
    if (vm.pool != pool.pool || !harvester::IsMember(vm)) continue;
    members.push_back(&vm);
    if (newest == nullptr || newest->created_at < vm.created_at) newest = &vm;
    if (!vm.zone.empty()) zones.insert(vm.zone);
    if (!Counts(vm, now)) continue;
    ++room.vms;
    if (IsComing(vm, now)) room.coming.push_back({.name = vm.name, .node_id = vm.joined_node_id});
  }
  const std::pair key(pool.ns, pool.pool);
  Known known;
  if (newest != nullptr) {
    if (!newest->nodes.has_value()) {
      return base::FailedPrecondition(
          "VM " + newest->name + " does not record which nodes pool " + ToString(pool) +
          " has (annotation " + harvester::kNodesAnnotation + "): nomad-harvester adopt writes it");
    }
    NH_ASSIGN_OR_RETURN(const kube::Observed vm,
                        client_->Get(context, kube::kVirtualMachines, pool.ns, newest->name));
    NH_ASSIGN_OR_RETURN(known.need, harvester::NeedOf(vm.object));
    known.nodes = *newest->nodes;
    if (!newest->zone.empty()) WidenZone(zones, &known.need);
    const base::MutexLock lock(mutex_);
    known_[key] = known;
  } else {
    const base::MutexLock lock(mutex_);
    const auto found = known_.find(key);
    if (found == known_.end()) {
      return base::FailedPrecondition(
          "pool " + ToString(pool) +
          " has no VM yet, which would show what one asks of its host: set min = 1 in its policy "
          "until it has one, or correct namespace and pool in the query");
    }
    known = found->second;
  }
  auto hosts = harvester::ReadHostRooms(context, *client_);
  if (!hosts.ok()) return WithGrant(hosts.status());
  room.room = harvester::FindRoom(*hosts, known.need,
                                  ZonesOfWaiting(*hosts, {pool.ns, pool.pool}, members));
  room.nodes = std::move(known.nodes);
  return room;
}

}  // namespace nomad_harvester::demand
