// SPDX-License-Identifier: Apache-2.0
#include "observation/hosts.h"

#include <memory>
#include <set>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/host.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/scaling/replacement.h"

namespace nomad_harvester::scaling {
namespace {

// Each one occupies a connection to Nomad, for some seconds if the client hangs.
constexpr int kMaxPublications = 4;

}  // namespace

absl::StatusOr<harvester::VmNeed> NeedOfNewestVm(const runtime::Context& context,
                                                 const kube::KubeClient& client,
                                                 const PoolSnapshot& snapshot) {
  const harvester::VirtualMachine* newest = nullptr;
  for (const VmView* view : snapshot.vms()) {
    const harvester::VirtualMachine& vm = view->vm;
    if (!IsPoolMember(*view, snapshot)) continue;
    if (newest == nullptr || newest->created_at < vm.created_at) newest = &vm;
  }
  if (newest == nullptr) return base::NotFound("the pool has no VM");
  NH_ASSIGN_OR_RETURN(const kube::Observed observed,
                      client.Get(context, kube::kVirtualMachines, newest->ns, newest->name));
  return harvester::NeedOf(observed.object);
}

bool Hosts::IsDue(HostUse use, const std::string& ns, base::MonoTime now) {
  base::MutexLock lock(mutex_);
  const auto [read, is_first] = read_.try_emplace({use, ns}, now);
  if (!is_first && now - read->second < kHostsEvery) return false;
  read->second = now;
  return true;
}

void Hosts::List(const runtime::Context& context, const std::string& ns) {
  const base::MonoTime began = context.clock().Now();
  const auto instances = harvester::VmStore(kube_, ns).ListInstances(context);
  if (!instances.ok()) {
    bool warn = false;
    if (kube::IsForbidden(instances.status())) {
      base::MutexLock lock(mutex_);
      warn = !std::exchange(warned_of_instances_, true);
    }
    logger_.Log(
        warn ? log::Level::kWarn : log::Level::kDebug,
        "Could not list virtualmachineinstances, so that it is not known on which hosts the "
        "VMs run (publish_host, on_host_maintenance)",
        {{"namespace", ns}, {"error", instances.status()}});
    return;
  }
  std::map<std::string, std::string> host_of;
  for (const harvester::VirtualMachineInstance& instance : *instances) {
    if (harvester::IsRunning(instance)) host_of.emplace(instance.name, instance.host);
  }
  Keep(ns, began, std::move(host_of));
}

std::set<std::string> Hosts::ListCordoned(const runtime::Context& context, bool evacuates) {
  const auto hosts = harvester::ListHosts(context, *kube_);
  const base::MonoTime now = context.clock().Now();
  base::MutexLock lock(mutex_);
  if (hosts.ok()) {
    std::set<std::string> cordoned;
    for (const harvester::Host& host : *hosts) {
      if (host.cordoned) cordoned.insert(host.name);
    }
    std::erase_if(cordoned_since_,
                  [&](const auto& host) { return !cordoned.contains(host.first); });
    for (const std::string& host : cordoned) cordoned_since_.try_emplace(host, now);
    warned_of_host_list_ = false;
    return cordoned;
  }
  // An old list is no evidence: a host may have been uncordoned since. But a call that ended while
  // it waited says nothing to the other pools.
  const bool is_answer = !context.Done();
  if (is_answer) cordoned_since_.clear();
  const bool warn = evacuates && is_answer && !std::exchange(warned_of_host_list_, true);
  logger_.Log(warn ? log::Level::kWarn : log::Level::kDebug,
              "on_host_maintenance: could not list Harvester's hosts, so that none is evacuated. "
              "The optional ClusterRole in examples/rbac.yaml grants list of nodes",
              {{"error", hosts.status()}});
  return {};
}

absl::StatusOr<HostRooms> Hosts::ListRooms(const runtime::Context& context) {
  const base::MonoTime now = context.clock().Now();
  {
    base::MutexLock lock(mutex_);
    if (rooms_denied_at_.has_value() && now - *rooms_denied_at_ < kZoneFor) {
      return base::MakeStatus(absl::StatusCode::kPermissionDenied,
                              "the token may not list the cluster's hosts and pods");
    }
  }
  auto rooms = harvester::ReadHostRooms(context, *kube_);
  base::MutexLock lock(mutex_);
  rooms_denied_at_.reset();
  if (kube::IsForbidden(rooms.status())) rooms_denied_at_ = now;
  if (rooms.ok()) {
    rooms_ = *rooms;
    rooms_read_at_ = now;
  }
  return rooms;
}

std::optional<HostRooms> Hosts::NewRooms(base::MonoTime now, base::MonoTime* last) const {
  base::MutexLock lock(mutex_);
  if (rooms_.empty() || rooms_read_at_ <= *last || now - rooms_read_at_ >= kHostsFor) {
    return std::nullopt;
  }
  *last = rooms_read_at_;
  return rooms_;
}

void Hosts::ApplyCordoned(const std::string& ns, base::MonoTime now,
                          Observation* observation) const {
  base::MutexLock lock(mutex_);
  if (cordoned_since_.empty()) return;
  const auto instances = instances_.find(ns);
  const bool is_known = instances != instances_.end() && now - instances->second.began < kHostsFor;
  for (VmView& view : observation->vms) {
    if (!harvester::CannotMigrate(view.vm)) continue;
    std::string host = view.host;
    if (host.empty() && is_known) {
      const auto known = instances->second.host_of.find(view.vm->name);
      if (known != instances->second.host_of.end()) host = known->second;
    }
    const auto since = cordoned_since_.find(host);
    if (since == cordoned_since_.end() || now - since->second < kLeaveHostAfter) continue;
    view.host_to_leave = host;
  }
}

void Hosts::Keep(const std::string& ns, base::MonoTime began,
                 std::map<std::string, std::string> host_of) {
  base::MutexLock lock(mutex_);
  Instances& known = instances_[ns];
  if (began < known.began) return;  // another caller's list is newer
  known = {.began = began, .host_of = std::move(host_of)};
  // Drop the zones of hosts on which nothing runs.
  std::set<std::string> hosts;
  for (const auto& [name, instances] : instances_) {
    for (const auto& [vm, host] : instances.host_of) hosts.insert(host);
  }
  hosts.erase("");
  std::erase_if(zones_, [&](const auto& entry) { return !hosts.contains(entry.first); });
  for (const std::string& host : hosts) zones_.try_emplace(host);
}

void Hosts::RefreshZone(const runtime::Context& context) {
  const base::MonoTime now = context.clock().Now();
  std::string oldest;
  {
    base::MutexLock lock(mutex_);
    if (IsDenied(now)) return;
    // A host that was never read counts as the oldest.
    base::MonoTime read_at = now - kZoneFor;
    for (const auto& [host, zone] : zones_) {
      const base::MonoTime at = zone.read_at.value_or(base::MonoTime::min());
      if (at > read_at || (!oldest.empty() && at == read_at)) continue;
      oldest = host;
      read_at = at;
    }
  }
  if (oldest.empty()) return;
  const absl::Status read = ReadZone(context, oldest);
  if (!read.ok()) logger_.Debug("Could not read a host", {{"host", oldest}, {"error", read}});
}

absl::Status Hosts::ReadZone(const runtime::Context& context, const std::string& name) {
  const auto host = harvester::GetHost(context, *kube_, name);
  const base::MonoTime now = context.clock().Now();
  bool warn = false;
  {
    base::MutexLock lock(mutex_);
    if (host.ok()) {
      denied_at_.reset();
      zones_[name] = {.name = host->zone, .read_at = now};
      return absl::OkStatus();
    }
    // The host has left the cluster.
    if (kube::IsNotFound(host.status())) {
      zones_[name] = {.name = "", .read_at = now};
      return absl::OkStatus();
    }
    if (!kube::IsForbidden(host.status())) return host.status();
    denied_at_ = now;
    zones_[name] = {.name = std::nullopt, .read_at = now};
    warn = !std::exchange(warned_of_hosts_, true);
  }
  if (warn) {
    logger_.Warn(
        "publish_host: the token may not read Harvester's hosts, so that no harvester_zone is "
        "published. Grant get of nodes, as the optional ClusterRole in examples/rbac.yaml does",
        {{"error", host.status()}});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Hosts::ZoneOf(const runtime::Context& context,
                                          const std::string& host) {
  const base::MonoTime now = context.clock().Now();
  {
    base::MutexLock lock(mutex_);
    const Zone& zone = zones_[host];
    // FillZones also uses the zone read before the right was withdrawn, so both agree.
    if (IsDenied(now)) return zone.name.value_or("");
    if (zone.name.has_value() && zone.read_at.has_value() && now - *zone.read_at < kZoneFor) {
      return *zone.name;
    }
  }
  NH_RETURN_IF_ERROR(ReadZone(context, host));
  base::MutexLock lock(mutex_);
  return zones_[host].name.value_or("");
}

bool Hosts::IsDenied(base::MonoTime now) const {
  return denied_at_.has_value() && now - *denied_at_ < kZoneFor;
}

void Hosts::Record(const std::string& ns, base::MonoTime began, Observation* observation) {
  std::map<std::string, std::string> host_of;
  bool were_read = false;
  for (const VmView& view : observation->vms) {
    were_read = were_read || view.instance_runs.has_value();
    if (!view.host.empty()) host_of.emplace(view.vm->name, view.host);
  }
  if (were_read) Keep(ns, began, std::move(host_of));
  base::MutexLock lock(mutex_);
  FillZones(observation);
}

void Hosts::Apply(const std::string& ns, Observation* observation) const {
  base::MutexLock lock(mutex_);
  const auto known = instances_.find(ns);
  if (known == instances_.end()) return;
  const std::map<std::string, std::string>& host_of = known->second.host_of;
  for (VmView& view : observation->vms) {
    if (const auto host = host_of.find(view.vm->name); host != host_of.end()) {
      view.host = host->second;
    }
  }
  FillZones(observation);
}

void Hosts::FillZones(Observation* observation) const {
  for (VmView& view : observation->vms) {
    const auto zone = zones_.find(view.host);
    if (zone != zones_.end()) view.host_zone = zone->second.name;
  }
}

std::shared_ptr<void> Hosts::BeginPublication() {
  base::MutexLock lock(mutex_);
  if (publications_ >= kMaxPublications) return nullptr;
  ++publications_;
  return {this, [](Hosts* hosts) {
            base::MutexLock ending(hosts->mutex_);
            --hosts->publications_;
          }};
}

}  // namespace nomad_harvester::scaling
