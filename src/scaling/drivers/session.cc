// SPDX-License-Identifier: Apache-2.0
#include "drivers/session.h"

#include <algorithm>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/scaling/service.h"

namespace nomad_harvester::scaling {

void Pool::Publish(const PoolLease& lease) {
  const std::optional<base::WallTime> recorded = lease.record().last_event;
  base::MutexLock lock(mutex);
  state.leftovers = static_cast<std::int64_t>(backlog.leftovers.size());
  state.reported.clear();
  for (const auto& [uid, row] : backlog.reported) state.reported.insert(uid);
  state.new_vms = backlog.new_vms;
  if (backlog.need.has_value()) state.need = backlog.need;
  state.last_event = std::max({state.last_event, backlog.unrecorded.last_event, recorded});
}

std::shared_ptr<Pool> Pools::Find(const PoolKey& key) {
  base::MutexLock lock(mutex_);
  std::shared_ptr<Pool>& pool = pools_[key];
  if (pool == nullptr) pool = std::make_shared<Pool>(key, options_);
  return pool;
}

void Pool::BeginAnew() {
  {
    const base::MutexLock lock(mutex);
    state.inspected = false;
    state.rounds.Finished();
  }
  gate.CancelResumption();
}

std::shared_ptr<Pool> Pools::Find(const SharedPolicy& policy, const StringMap& values) {
  std::shared_ptr<Pool> pool = Find(PoolKey{.ns = policy->ns, .pool = policy->pool});
  pool->WarnOnce(policy->warnings);
  bool changes = false;
  {
    const base::MutexLock lock(pool->mutex);
    const base::MonoTime now = options_.clock->Now();
    pool->state.policy = policy;
    pool->state.asked_at = now;
    changes = pool->state.values.Changes(values, now);
  }
  if (changes) pool->BeginAnew();
  return pool;
}

std::vector<std::shared_ptr<Pool>> Pools::All() const {
  std::vector<std::shared_ptr<Pool>> all;
  base::MutexLock lock(mutex_);
  for (const auto& [key, pool] : pools_) all.push_back(pool);
  return all;
}

void Pool::WarnOnce(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    {
      base::MutexLock lock(mutex);
      if (!state.warned.insert(warning).second) continue;
    }
    logger.Warn(warning);
  }
}

Session::Session(const ServiceOptions& options, Clients clients, const runtime::Context& root)
    : options_(options),
      clients_(std::move(clients)),
      nomad_(clients_.nomad_urgent),
      work_(clients_.nomad, *options.foreground),
      hosts_(clients_.kube_urgent, options.logger),
      ending_(root),
      vm_events_(!clients_.config->events
                     ? nullptr
                     : std::make_shared<VmEvents>(ending_.context(),
                                                  VmEvents::Options{.kube = clients_.kube_events,
                                                                    .executor = options.background,
                                                                    .instance = options.holder,
                                                                    .logger = options.logger})) {}

absl::StatusOr<harvester::Timestamped<std::shared_ptr<const Session::Vms>>> Session::VmsForStatus(
    const runtime::Context& context, const std::string& ns) {
  const harvester::VmStore store(clients_.kube_urgent, ns);
  HeldList<Vms>& held = [&]() -> HeldList<Vms>& {
    base::MutexLock lock(mutex_);
    return held_vms_[ns];  // never removed
  }();
  harvester::Timestamped<HeldList<Vms>::Ptr> seen;
  NH_ASSIGN_OR_RETURN(seen.value, held.Current([&](const Vms& vms) -> absl::StatusOr<bool> {
    NH_ASSIGN_OR_RETURN(const auto now, store.ListManagedVersions(context));
    seen.server_time = now.server_time;
    return std::equal(vms.begin(), vms.end(), now.value.begin(), now.value.end(),
                      [](const harvester::VirtualMachine& vm, const auto& version) {
                        return vm.uid == version.uid && !vm.uid.empty() &&
                               vm.resource_version == version.resource_version;
                      });
  }));
  if (seen.value != nullptr) return seen;
  NH_ASSIGN_OR_RETURN(auto read, store.ListManaged(context));
  seen = {std::make_shared<const Vms>(std::move(read.value)), read.server_time};
  held.Hold(seen.value);
  return seen;
}

std::unique_ptr<PoolLease> Session::MakeLease(const Pool& pool) const {
  PoolLease::Options lease = PoolLease::OptionsOf(*clients_.config, options_.holder);
  lease.on_wait = [logger = pool.logger](const std::string& holder, base::WallTime until) {
    logger.Info(kWaitsForLease, {{"holder", holder}, {"until", base::FormatRfc3339(until)}});
  };
  return std::make_unique<PoolLease>(clients_.kube_urgent, pool.key, *options_.clock,
                                     std::move(lease), pool.logger);
}

std::shared_ptr<PoolAccess> Session::AccessTo(const Pool& pool) {
  base::MutexLock lock(mutex_);
  std::shared_ptr<PoolAccess>& access = pools_[pool.key];
  if (access == nullptr) {
    access = std::make_shared<PoolAccess>(ClientsForPool(clients_), pool.key, MakeLease(pool));
  }
  return access;
}

PoolDependencies Session::DependenciesFor(Pool& pool, const PoolAccess& access, PoolLease& lease,
                                          PoolBacklog* backlog) {
  return {.key = pool.key,
          .clients = access.clients,
          .vms = access.vms,
          .nodes = nomad_,
          .work = work_,
          .hosts = hosts_,
          .memory = pool.memory,
          .backlog = backlog != nullptr ? *backlog : pool.backlog,
          .lease = lease,
          .clock = *options_.clock,
          .random = *options_.random,
          .executor = *options_.foreground,
          .logger = pool.logger,
          .vm_events = vm_events()};
}

absl::StatusOr<std::string> Session::OwnNode(const runtime::Context& context) {
  {
    base::MutexLock lock(mutex_);
    if (own_node_.has_value()) return *own_node_;
  }
  NH_ASSIGN_OR_RETURN(std::string node,
                      FindOwnNode(context, *clients_.nomad, clients_.config->own_allocation_id));
  // For now it seems that the autoscaler runs in another cluster. Ask again next time.
  if (node.empty()) return node;
  base::MutexLock lock(mutex_);
  own_node_ = node;
  return node;
}

}  // namespace nomad_harvester::scaling
