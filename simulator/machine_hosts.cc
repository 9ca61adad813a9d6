// SPDX-License-Identifier: Apache-2.0
// On which host a guest runs: Kubernetes' scheduler, and live migration.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/simulator/cluster.h"

#include "kube_scheduler.h"
#include "machines.h"
#include "pod_requests.h"

namespace nomad_harvester::simulator {
namespace {

constexpr base::Duration kMigrationTime = std::chrono::seconds(2);
constexpr char kUnschedulable[] = "ErrorUnschedulable";
constexpr char kFirstAttempt[] =
    "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
constexpr char kMaintainStatus[] = "harvesterhci.io/maintain-status";

std::string HostOf(const Json& instance) { return base::TextAt(instance, {"status", "nodeName"}); }

// Whether a migration can begin: the guest is not in the middle of one.
bool CanMigrate(const Json& instance) {
  const Json* moved = base::FindPath(instance, {"status", "migrationState", "completed"});
  if (moved != nullptr && *moved == false) return false;
  const Json& conditions = ElementsAt(instance, {"status", "conditions"});
  return std::any_of(conditions.begin(), conditions.end(), [](const Json& condition) {
    return base::GetString(condition, "type") == "LiveMigratable" &&
           base::GetString(condition, "status") == "True";
  });
}

// Where the guest or the pod takes room; empty: it has no host, or it has ended.
std::string HostUsedBy(const ResourceDef& def, const Object& object) {
  if (object == nullptr) return "";
  const std::string phase = base::TextAt(*object, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") return "";
  return &def == &kPods ? base::TextAt(*object, {"spec", "nodeName"}) : HostOf(*object);
}

}  // namespace

bool Machines::CountLoad(const ResourceDef& def, const Object& before, const Object& after) {
  if (&def != &kInstances && &def != &kPods) return false;
  const std::string uid = UidOf(after != nullptr ? *after : *before);
  const std::string host = HostUsedBy(def, after);
  const auto counted = loads_.find(uid);
  const bool was_counted = counted != loads_.end();
  if (host == (was_counted ? counted->second.host : "")) return false;
  if (was_counted) {
    Requests& used = used_[counted->second.host];
    for (const auto& [resource, amount] : counted->second.requests) used[resource] -= amount;
    loads_.erase(counted);
  }
  if (!host.empty()) {
    const Json pod = &def == &kPods ? *after : LauncherPod(*after);
    Load load{.host = host,
              .ns = NamespaceOf(pod),
              .labels = pod["metadata"].value("labels", Json::object()),
              .requests = RequestsOf(pod)};
    for (const auto& [resource, amount] : load.requests) used_[host][resource] += amount;
    loads_.emplace(uid, std::move(load));
  }
  return was_counted;
}

bool Machines::IsAvoided(const std::string& host, const Json& instance) const {
  const std::vector<Json> avoided = LabelsToAvoid(instance);
  if (avoided.empty()) return false;
  return std::any_of(loads_.begin(), loads_.end(), [&](const auto& entry) {
    const Load& load = entry.second;
    if (load.host != host || load.ns != NamespaceOf(instance)) return false;
    return std::any_of(avoided.begin(), avoided.end(),
                       [&](const Json& labels) { return HasLabels(load.labels, labels); });
  });
}

// kubernetes/kubernetes:pkg/scheduler/framework/types.go, FitError.
absl::StatusOr<std::string> Machines::FindHost(const Json& instance) const {
  const Requests wanted = RequestsOf(LauncherPod(instance));
  static const Requests kNone;
  const auto used_on = [this](const std::string& host) -> const Requests& {
    const auto found = used_.find(host);
    return found == used_.end() ? kNone : found->second;
  };
  const auto pods_on = [&](const std::string& host) {
    const auto pods = used_on(host).find("pods");
    return pods == used_on(host).end() ? 0 : pods->second;
  };
  std::string best;
  std::map<std::string, int> reasons;
  for (const auto& [key, host] : store_.All(kHosts)) {
    const std::string name = NameOf(*host);
    std::vector<std::string> against = ReasonsAgainst(*host, instance, used_on(name), wanted);
    if (against.empty() && IsAvoided(name, instance)) {
      against.emplace_back("node(s) didn't match pod anti-affinity rules");
    }
    for (const std::string& reason : against) ++reasons[reason];
    if (!against.empty()) continue;
    if (best.empty() || pods_on(name) < pods_on(best)) best = name;
  }
  if (!best.empty()) return best;
  std::string message = "0/" + std::to_string(store_.All(kHosts).size()) + " nodes are available: ";
  const char* separator = "";
  for (const auto& [reason, hosts] : reasons) {
    message += std::exchange(separator, ", ") + std::to_string(hosts) + " " + reason;
  }
  return base::Unavailable(message + ".");
}

bool Machines::FindAndBind(const Json& instance, const std::string& uid) {
  if (!HostOf(instance).empty()) return true;
  const auto host = FindHost(instance);
  if (!host.ok()) {
    AwaitHost(uid, std::string(host.status().message()));
    return false;
  }
  const Machine& machine = machines_.at(uid);
  Mutate(kInstances, machine.ns, machine.name,
         [&host](Json& bound) { bound["status"]["nodeName"] = *host; });
  return true;
}

// KubeVirt's condition keeps the message of the first attempt, and the pod has the present one
// (kubevirt/kubevirt:pkg/controller/conditions.go, UpdateCondition).
void Machines::AwaitHost(const std::string& uid, const std::string& message) {
  Machine& machine = machines_.at(uid);
  if (!std::exchange(machine.waits_for_host, true)) {
    Show(machine, kUnschedulable, true);
    Mutate(kVms, machine.ns, machine.name, [this](Json& vm) {
      SetCondition(vm, "PodScheduled", "False", "Unschedulable", kFirstAttempt, world_.wall());
    });
    Emit(EventKind::kVmFailing, *VmOf(uid), std::string(kUnschedulable) + ": " + message);
  }
  Json pod = UnscheduledPod(machine.ns, machine.name, message);
  RemovePod(machine);
  store_.Stamp(kPods, pod);
  store_.Insert(kPods, std::move(pod));
}

void Machines::RemovePod(const Machine& machine) {
  store_.Erase(kPods, machine.ns, "virt-launcher-" + machine.name);
}

// A host may have room now for what waits.
void Machines::RetryAwaiting() {
  for (auto& [uid, machine] : machines_) {
    if (!machine.waits_for_host) continue;
    const Object instance = store_.Find(kInstances, machine.ns, machine.name);
    if (instance == nullptr || machine.ending) continue;
    if (!FindAndBind(*instance, uid)) continue;
    machine.waits_for_host = false;
    RemovePod(machine);
    Show(machine, "Starting", true);
    Mutate(kVms, machine.ns, machine.name,
           [this](Json& vm) { SetCondition(vm, "PodScheduled", "True", "", "", world_.wall()); });
    for (const char* phase : {"Scheduling", "Scheduled"}) SetPhase(uid, machine.boot, phase);
    world_.After(world_.options.boot_time,
                 [this, vm = uid, boot = machine.boot] { Run(vm, boot); });
  }
}

// The instance keeps its old host until the guest has moved
// (kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go,
// VirtualMachineInstanceMigrationState); the guest and its Nomad agent notice nothing.
bool Machines::Migrate(const std::string& uid, const std::string& host) {
  const auto found = machines_.find(uid);
  if (found == machines_.end() || found->second.ending) return false;
  const Machine& machine = found->second;
  const Object instance = store_.Find(kInstances, machine.ns, machine.name);
  if (instance == nullptr || (*instance)["status"]["phase"] != "Running") return false;
  const std::uint64_t boot = machine.boot;
  const std::string source = HostOf(*instance);
  Mutate(kInstances, machine.ns, machine.name, [&](Json& object) {
    object["status"]["migrationState"] = {
        {"sourceNode", source}, {"targetNode", host}, {"completed", false}};
  });
  Mutate(kVms, machine.ns, machine.name,
         [](Json& vm) { vm["status"]["printableStatus"] = "Migrating"; });
  world_.After(kMigrationTime, [this, uid, boot, host] {
    const auto still = machines_.find(uid);
    if (still == machines_.end() || still->second.boot != boot) return;
    const Machine& moved = still->second;
    Mutate(kInstances, moved.ns, moved.name, [&host](Json& object) {
      object["status"]["nodeName"] = host;
      object["status"]["migrationState"]["completed"] = true;
    });
    Mutate(kVms, moved.ns, moved.name,
           [](Json& vm) { vm["status"]["printableStatus"] = "Running"; });
  });
  return true;
}

// Cordons it, and migrates the guests that can
// (harvester/harvester:pkg/controller/master/nodedrain/ nodedrain_controller.go,
// pkg/controller/master/node/maintain_controller.go).
void Machines::EmptyHost(const std::string& name) {
  const Object host = store_.Find(kHosts, "", name);
  if (host == nullptr) return;
  const bool begins = !AnnotationOf(*host, kDrainRequested).empty();
  if (!begins && AnnotationOf(*host, kMaintainStatus) != "running") return;
  if (begins) {
    Mutate(kHosts, "", name, [](Json& cordoned) {
      cordoned["metadata"]["annotations"].erase(kDrainRequested);
      cordoned["spec"]["unschedulable"] = true;
    });
  }
  bool is_empty = true;
  for (const auto& [uid, machine] : machines_) {
    const Object instance = store_.Find(kInstances, machine.ns, machine.name);
    if (instance == nullptr || HostOf(*instance) != name) continue;
    is_empty = false;
    if (!CanMigrate(*instance)) continue;
    if (const auto other = FindHost(*instance); other.ok()) Migrate(uid, *other);
  }
  Mutate(kHosts, "", name, [is_empty](Json& left) {
    left["metadata"]["annotations"][kMaintainStatus] = is_empty ? "completed" : "running";
  });
  if (!is_empty) world_.After(kMigrationTime, [this, name] { EmptyHost(name); });
}

}  // namespace nomad_harvester::simulator
