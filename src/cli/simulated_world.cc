// SPDX-License-Identifier: Apache-2.0
#include "simulated_world.h"

#include <csignal>
#include <limits>
#include <optional>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"
#include "runtime_parts.h"

namespace nomad_harvester::cli {
namespace {

constexpr int kEveryVm = std::numeric_limits<int>::max();
constexpr char kImage[] = "default/ubuntu-24.04";
constexpr char kPoolNamespace[] = "nomad";
constexpr char kHarvesterToken[] = "token-of-the-simulation";
constexpr char kNomadToken[] = "1a70c0de-51a1-4f3a-9b1c-0a5e5e5e5e5e";
// The message of Kubernetes' scheduler.
constexpr char kNoHost[] =
    "0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are available: 3 No "
    "preemption victims found for incoming pod.";

// A full quota: Harvester's webhook refuses VMs because of it, and the plugin reads it.
nlohmann::json FullQuota() {
  const nlohmann::json memory = {{"limits.memory", "16Gi"}};
  return {{"apiVersion", "v1"},
          {"kind", "ResourceQuota"},
          {"metadata", {{"name", "default-quota"}, {"namespace", kPoolNamespace}}},
          {"spec", {{"hard", memory}}},
          {"status", {{"hard", memory}, {"used", memory}}}};
}

// Returns the holder of one of these Leases; empty: nobody.
std::string HolderOf(const std::vector<nlohmann::json>& leases) {
  for (const nlohmann::json& lease : leases) {
    std::string holder = base::TextAt(lease, {"spec", "holderIdentity"});
    if (!holder.empty()) return holder;
  }
  return "";
}

// More than one host, so that VMs can leave one; a VM with one of their GPUs cannot migrate. A
// wrong token is refused.
simulator::Options ThreeHosts() {
  simulator::Options options;
  options.hosts.clear();
  for (const char* const name : {"harvester-1", "harvester-2", "harvester-3"}) {
    options.hosts.push_back({.name = name, .devices = {{"nvidia.com/GA102GL_A10", 2}}});
  }
  options.kube_token = kHarvesterToken;
  options.nomad_token = kNomadToken;
  options.admits_anonymous = true;
  return options;
}

}  // namespace

SimulatedWorld::SimulatedWorld(const SimulatedFault& fault)
    : fault_(fault),
      clock_(runtime::MakeSystemClock()),
      random_(runtime::MakeSystemRandom()),
      cluster_(*clock_, *random_, ThreeHosts()),
      server_(cluster_, *clock_) {
  for (const simulator::JobSpec& job : Jobs()) cluster_.RunJob(job);
  Fail();
  if (fault.kill_after <= 0) return;
  cluster_.SetFaultHook([this](const simulator::RequestInfo& request) {
    if (request.effect_sequence < fault_.kill_after || killed_) return simulator::Fault::None();
    return KillHolder() ? simulator::Fault::Drop() : simulator::Fault::None();
  });
}

std::vector<simulator::JobSpec> SimulatedWorld::Jobs() {
  // The simulated Nomad ignores capacity when it places work, so one node may get all of it.
  return {{.id = "api", .count = 4, .cpu = 600}, {.id = "shop", .count = 2, .cpu = 600}};
}

void SimulatedWorld::Fail() {
  if (fault_.failure == "join") cluster_.NeverJoin(kEveryVm);
  if (fault_.failure == "image") cluster_.SetImageReady(kImage, false);
  // On each node, even one without other work.
  if (fault_.failure == "drain") {
    cluster_.RunJob({.id = "stubborn", .type = "system", .never_stops = true});
  }
  if (fault_.failure == "quota") {
    cluster_.SetQuotaExceeded("memory insufficient resources due to resource quota");
    cluster_.PutObject(FullQuota());
  }
  if (fault_.failure != "unschedulable") return;
  cluster_.FailStart(kEveryVm, "ErrorUnschedulable", kNoHost);
  cluster_.SetObserver([this](const simulator::Event& event) {
    using simulator::EventKind;
    const nlohmann::json pod = simulator::UnscheduledPod(event.ns, event.name, kNoHost);
    if (event.kind == EventKind::kVmFailing) cluster_.PutObject(pod);
    if (event.kind == EventKind::kVmGone) cluster_.DeleteObject(pod);
  });
}

// Only the holder of a Lease is in the middle of an action, and its name contains the process.
bool SimulatedWorld::KillHolder() {
  const std::string holder = HolderOf(cluster_.Leases());
  if (holder.empty() || killed_.exchange(true)) return false;
  const std::optional<pid_t> process = ProcessOf(holder);
  const bool done = process.has_value() && kill(*process, SIGKILL) == 0;
  if (fault_.report != nullptr) {
    fault_.report(done ? "killed " + holder + ", which held the pool's Lease"
                       : "killed nobody: " + holder +
                             ", which holds the pool's Lease, is no "
                             "process that can be killed from here");
  }
  return done;
}

std::string SimulatedWorld::PoolSettings() const {
  std::string settings =
      "--set node_group_name=web --set namespace=" + std::string(kPoolNamespace) +
      " --set node_class=web --set networks=default/vlan100 --set image=" + kImage +
      " --set cpu_request=1 --set memory_request=1Gi";
  if (fault_.failure == "join") settings += " --set join_timeout=30s";
  if (fault_.failure == "drain") {
    settings +=
        " --set node_drain_deadline=20s --set drain_grace=10s --set force_after_deadline=false";
  }
  return settings;
}

config::StringMap SimulatedWorld::Config() const {
  return {{"harvester_url", harvester_url()},
          {"nomad_address", nomad_address()},
          {"auth_token", kHarvesterToken},
          {"nomad_token", kNomadToken}};
}

config::StringMap SimulatedWorld::Shield(const config::StringMap& environment) {
  config::StringMap shielded;
  for (const auto& [name, value] : environment) {
    const bool is_template_variable = name.rfind("HARVESTER_TEMPLATE_", 0) == 0;
    const bool leads_elsewhere = name.rfind("HARVESTER_", 0) == 0 || name.rfind("NOMAD_", 0) == 0;
    if (is_template_variable || !leads_elsewhere) shielded.emplace(name, value);
  }
  return shielded;
}

}  // namespace nomad_harvester::cli
