// SPDX-License-Identifier: Apache-2.0
// On which host a guest runs: Kubernetes' scheduler, and live migration.
#include <limits>
#include <map>

#include "nomad_harvester/base/json.h"

#include "machines.h"

namespace nomad_harvester::simulator {
namespace {

constexpr base::Duration kMigrationTime = std::chrono::seconds(2);

bool IsCordoned(const Json& host) {
  const Json* spec = base::FindMember(host, "spec");
  return spec != nullptr && base::GetBool(*spec, "unschedulable");
}

std::string HostOf(const Json& instance) {
  const Json* host = base::FindPath(instance, {"status", "nodeName"});
  return host != nullptr && host->is_string() ? host->get<std::string>() : "";
}

}  // namespace

// The one with the fewest guests that is not cordoned; if all are, the first.
std::string Machines::NextHost() const {
  std::map<std::string, int> guests;
  for (const auto& [key, instance] : store_.All(kInstances)) ++guests[HostOf(*instance)];
  std::string next;
  int fewest = std::numeric_limits<int>::max();
  for (const auto& [key, host] : store_.All(kHosts)) {
    if (next.empty()) next = NameOf(*host);
    if (IsCordoned(*host) || guests[NameOf(*host)] >= fewest) continue;
    fewest = guests[NameOf(*host)];
    next = NameOf(*host);
  }
  return next;
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

}  // namespace nomad_harvester::simulator
