// SPDX-License-Identifier: Apache-2.0
// Faults, counters, and the state that tests inspect.
#include <utility>

#include "nomad_harvester/base/json.h"

#include "cluster_impl.h"
#include "nomad_json.h"

namespace nomad_harvester::simulator {

void Cluster::SetFaultHook(std::function<Fault(const RequestInfo&)> hook) {
  base::MutexLock lock(impl_->mutex);
  impl_->fault_hook = std::move(hook);
}

void Cluster::Kill(const std::string& client) {
  base::MutexLock lock(impl_->mutex);
  impl_->dead.insert(client);
}

bool Cluster::dead(const std::string& client) const {
  base::MutexLock lock(impl_->mutex);
  return impl_->dead.contains(client);
}

void Cluster::SetHarvesterReachable(bool reachable) {
  base::MutexLock lock(impl_->mutex);
  impl_->reachable[0] = reachable;
}

void Cluster::SetNomadReachable(bool reachable) {
  base::MutexLock lock(impl_->mutex);
  impl_->reachable[1] = reachable;
}

int Cluster::Refuse(RefusalRule rule) {
  base::MutexLock lock(impl_->mutex);
  return impl_->refusals.Add(std::move(rule));
}

void Cluster::StopRefusing(int id) {
  base::MutexLock lock(impl_->mutex);
  impl_->refusals.Remove(id);
}

void Cluster::StopRefusing() {
  base::MutexLock lock(impl_->mutex);
  impl_->refusals.Clear();
}

void Cluster::SetClockSkews(std::vector<base::Duration> skews) {
  base::MutexLock lock(impl_->mutex);
  impl_->clock_skews = std::move(skews);
}

void Cluster::SetIntroduction(Introduction introduction) {
  base::MutexLock lock(impl_->mutex);
  impl_->world.options.introduction = introduction;
}

void Cluster::Forbid(const std::string& verb, const std::string& resource, bool cluster_wide) {
  base::MutexLock lock(impl_->mutex);
  KubeApi& api = impl_->kube_api;
  (cluster_wide ? api.forbidden_cluster_wide : api.forbidden).insert({verb, resource});
}

void Cluster::AllowAll() {
  base::MutexLock lock(impl_->mutex);
  impl_->kube_api.forbidden.clear();
  impl_->kube_api.forbidden_cluster_wide.clear();
}

void Cluster::SetRulesIncomplete(bool incomplete) {
  base::MutexLock lock(impl_->mutex);
  impl_->kube_api.rules_incomplete = incomplete;
}

void Cluster::SetNomadKeys(std::vector<std::string> ids, const std::string& nomad) {
  base::MutexLock lock(impl_->mutex);
  impl_->nomads.At(nomad).api.keys = std::move(ids);
}

void Cluster::DenyReadJob(bool read_job_denied) {
  base::MutexLock lock(impl_->mutex);
  impl_->nomads.first().api.read_job_denied = read_job_denied;
  impl_->nomads.first().api.acl = true;
}

void Cluster::DenyListJobs(bool list_jobs_denied) {
  base::MutexLock lock(impl_->mutex);
  impl_->nomads.first().api.list_jobs_denied = list_jobs_denied;
  impl_->nomads.first().api.acl = true;
}

void Cluster::DenyNodeWrite(bool node_write_denied) {
  base::MutexLock lock(impl_->mutex);
  impl_->nomads.first().api.node_write_denied = node_write_denied;
  impl_->nomads.first().api.acl = true;
}

std::map<std::string, int> Cluster::RequestCounts() const {
  base::MutexLock lock(impl_->mutex);
  return impl_->counts;
}

int Cluster::RequestCount(System system, const std::string& verb,
                          const std::string& resource) const {
  base::MutexLock lock(impl_->mutex);
  const auto found =
      impl_->counts.find(std::string(SystemName(system)) + " " + verb + " " + resource);
  return found == impl_->counts.end() ? 0 : found->second;
}

int Cluster::RequestCount() const {
  base::MutexLock lock(impl_->mutex);
  return impl_->requests;
}

int Cluster::EffectCount() const {
  base::MutexLock lock(impl_->mutex);
  return impl_->effects;
}

void Cluster::ResetCounters() {
  base::MutexLock lock(impl_->mutex);
  impl_->counts.clear();
  impl_->requests = 0;
  impl_->effects = 0;
}

std::vector<nlohmann::json> Cluster::Impl::Copies(const ResourceDef& def) {
  ApplyDue();
  base::MutexLock lock(mutex);
  std::vector<nlohmann::json> copies;
  for (const auto& [key, object] : store.All(def)) copies.push_back(*object);
  return copies;
}

std::vector<nlohmann::json> Cluster::Vms() const { return impl_->Copies(kVms); }
std::vector<nlohmann::json> Cluster::Secrets() const { return impl_->Copies(kSecrets); }
std::vector<nlohmann::json> Cluster::Claims() const { return impl_->Copies(kClaims); }
std::vector<nlohmann::json> Cluster::Leases() const { return impl_->Copies(kLeases); }
std::vector<nlohmann::json> Cluster::ConfigMaps() const { return impl_->Copies(kConfigMaps); }
std::vector<nlohmann::json> Cluster::Events() const { return impl_->Copies(kEvents); }

std::vector<nlohmann::json> Cluster::Nodes() const {
  impl_->ApplyDue();
  base::MutexLock lock(impl_->mutex);
  std::vector<nlohmann::json> copies;
  for (const auto& [name, nomad] : impl_->nomads.all()) {
    for (const auto& [id, node] : nomad.state.nodes()) copies.push_back(NodeJson(node));
  }
  return copies;
}

std::vector<nlohmann::json> Cluster::Allocations() const {
  impl_->ApplyDue();
  base::MutexLock lock(impl_->mutex);
  std::vector<nlohmann::json> copies;
  for (const auto& [name, nomad] : impl_->nomads.all()) {
    for (const auto& [id, allocation] : nomad.state.allocations()) {
      copies.push_back(AllocationJson(allocation));
    }
  }
  return copies;
}

nlohmann::json Cluster::Vm(const std::string& name) const {
  impl_->ApplyDue();
  base::MutexLock lock(impl_->mutex);
  const Object vm = impl_->store.FindByName(kVms, name);
  return vm == nullptr ? nlohmann::json() : *vm;
}

std::string Cluster::HostOfVm(const std::string& name) const {
  impl_->ApplyDue();
  base::MutexLock lock(impl_->mutex);
  const Object instance = impl_->store.FindByName(kInstances, name);
  const nlohmann::json* host =
      instance == nullptr ? nullptr : base::FindPath(*instance, {"status", "nodeName"});
  return host != nullptr && host->is_string() ? host->get<std::string>() : "";
}

nlohmann::json Cluster::Node(const std::string& name_or_id) const {
  impl_->ApplyDue();
  base::MutexLock lock(impl_->mutex);
  const NomadState* nomad = impl_->nomads.WithNode(name_or_id);
  return nomad == nullptr ? nlohmann::json() : NodeJson(*nomad->LookUp(name_or_id));
}

std::string Cluster::NodeIdOfVm(const std::string& vm_uid) const {
  impl_->ApplyDue();
  base::MutexLock lock(impl_->mutex);
  return impl_->machines.NodeOf(vm_uid);
}

std::vector<std::string> Cluster::Journal() const {
  impl_->ApplyDue();
  base::MutexLock lock(impl_->mutex);
  return impl_->world.journal();
}

void Cluster::SetObserver(std::function<void(const Event&)> observer) {
  base::MutexLock lock(impl_->mutex);
  impl_->observer = std::move(observer);
}

}  // namespace nomad_harvester::simulator
