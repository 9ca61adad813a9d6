// SPDX-License-Identifier: Apache-2.0
#include "bystanders.h"

#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"
#include "support/node_to_purge.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using nlohmann::json;
using std::chrono::hours;
using std::chrono::seconds;

// A drain of an operator lasts longer than any scenario.
constexpr base::Duration kLongDrain = hours(24) * 365;

// A VM that another pool made, with one volume and its Secret.
struct OtherVm {
  std::string ns;
  std::string pool;
  std::string node_class;
  std::string name;
  std::string uuid;
};

const std::vector<OtherVm>& OtherVms() {
  static const std::vector<OtherVm> kVms = {
      {std::string(kNamespace), "db", "db", "db-k3v9x", "5b0c1f52-6f0e-4c57-9c1c-3d1f0a4be001"},
      {"harvester-public", "web", "web-elsewhere", "elsewhere-p7q2d",
       "5b0c1f52-6f0e-4c57-9c1c-3d1f0a4be002"},
  };
  return kVms;
}

json LabelsOf(const std::string& pool) {
  return {{"app.kubernetes.io/managed-by", "nomad-harvester-autoscaler"}, {Key("pool"), pool}};
}

std::string ClaimOf(const OtherVm& vm) { return vm.name + "-disk-0-h4w8z"; }
std::string SecretOf(const OtherVm& vm) { return vm.name + "-cloudinit"; }

json VmObject(const OtherVm& vm) {
  const json claim = {{"metadata", {{"name", ClaimOf(vm)}, {"labels", LabelsOf(vm.pool)}}},
                      {"spec", {{"accessModes", json::array({"ReadWriteMany"})}}}};
  const json nodes = {{"region", "global"},
                      {"node_class", vm.node_class},
                      {"node_attribute", "unique.hostname"},
                      {"index", 1}};
  const json volumes = json::array(
      {{{"name", "disk-0"}, {"persistentVolumeClaim", {{"claimName", ClaimOf(vm)}}}},
       {{"name", "cloudinit"}, {"cloudInitNoCloud", {{"secretRef", {{"name", SecretOf(vm)}}}}}}});
  return {
      {"apiVersion", "kubevirt.io/v1"},
      {"kind", "VirtualMachine"},
      {"metadata",
       {{"name", vm.name},
        {"namespace", vm.ns},
        {"labels", LabelsOf(vm.pool)},
        {"annotations",
         {{Key("self"), vm.name + "/" + vm.uuid},
          {Key("action-id"), "a-of-" + vm.pool},
          {Key("template-hash"), "v1:0"},
          {Key("join-timeout"), "15m0s"},
          {Key("nodes"), base::DumpJson(nodes)},
          {"harvesterhci.io/volumeClaimTemplates", base::DumpJson(json::array({claim}))}}}}},
      {"spec",
       {{"runStrategy", "RerunOnFailure"},
        {"template",
         {{"spec", {{"domain", {{"firmware", {{"uuid", vm.uuid}}}}}, {"volumes", volumes}}}}}}}};
}

json SecretObject(const OtherVm& vm, const std::string& uid) {
  const std::string user_data = "name = \"" + vm.name + "\"\nnode_class = \"" + vm.node_class +
                                "\"\nharvester_vm_uuid = \"" + vm.uuid + "\"\n";
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"name", SecretOf(vm)},
            {"namespace", vm.ns},
            {"labels", LabelsOf(vm.pool)},
            {"annotations", {{Key("action-id"), "a-of-" + vm.pool}}},
            {"ownerReferences", json::array({{{"apiVersion", "kubevirt.io/v1"},
                                              {"kind", "VirtualMachine"},
                                              {"name", vm.name},
                                              {"uid", uid}}})}}},
          {"data", {{"userdata", base::Base64Encode(user_data)}}}};
}

json LeaseObject(const OtherVm& vm) {
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata",
           {{"name", "nomad-harvester-autoscaler-" + vm.pool},
            {"namespace", vm.ns},
            {"labels", LabelsOf(vm.pool)}}},
          {"spec", {{"holderIdentity", ""}}}};
}

// Objects whose names follow our patterns, without our labels: those of a VM that never was ours.
void PutOperatorsObjects(simulator::Cluster& cluster) {
  cluster.PutObject(
      {{"apiVersion", "v1"},
       {"kind", "PersistentVolumeClaim"},
       {"metadata", {{"name", "x-disk-0-abc"}, {"namespace", std::string(kNamespace)}}},
       {"spec", {{"accessModes", json::array({"ReadWriteOnce"})}}},
       {"status", {{"phase", "Bound"}}}});
  cluster.PutObject(
      {{"apiVersion", "v1"},
       {"kind", "Secret"},
       {"metadata", {{"name", "x-cloudinit"}, {"namespace", std::string(kNamespace)}}},
       {"data", {{"userdata", base::Base64Encode("#cloud-config\n")}}}});
}

void AddOperatorsNodes(simulator::Cluster& cluster) {
  const std::map<std::string, std::string> no_vm = {{"harvester_vm_uuid", "none"}};
  const std::string metal =
      cluster.AddForeignNode({.name = "metal-1", .node_class = "web", .meta = no_vm});
  cluster.SetEligible(metal, false);
  // Under maintenance, with a drain that waits for work.
  const std::string maintained = cluster.AddForeignNode({.name = "metal-2", .node_class = "metal"});
  cluster.HangDrain(maintained);
  cluster.OperatorDrain(maintained, kLongDrain, {{"message", "maintenance"}});
  // To be purged by the pool of the other namespace, and by no other.
  cluster.KillNode(support::AddNodeToPurge(
      cluster, {.name = "elsewhere-a1b2c", .node_class = "web"}, "harvester-public/web"));
}

// The uid of a Kubernetes object, the ID of a Nomad node.
std::string IdOf(const json& object) {
  return object.contains("metadata") ? UidOf(object) : base::GetString(object, "ID");
}

std::string TitleOf(const json& object) {
  if (!object.contains("metadata")) return "node " + base::GetString(object, "Name");
  return base::GetString(object, "kind") + " " + NamespaceOf(object) + "/" + NameOf(object);
}

}  // namespace

Bystanders::Bystanders(support::FakeClock& clock, simulator::Cluster& cluster)
    : clock_(clock), cluster_(cluster), made_at_(clock.Now()) {
  std::set<std::string> others;
  for (const json& node : cluster.Nodes()) others.insert(IdOf(node));
  PutOperatorsObjects(cluster);
  AddOperatorsNodes(cluster);
  for (const OtherVm& vm : OtherVms()) {
    cluster.PutObject(VmObject(vm));
    cluster.PutObject(SecretObject(vm, UidOf(cluster.Vm(vm.name))));
    cluster.PutObject(LeaseObject(vm));
  }
  clock.Advance(seconds(15));
  for (const OtherVm& vm : OtherVms()) {
    const std::string uid = UidOf(cluster.Vm(vm.name));
    while (cluster.NodeIdOfVm(uid).empty()) clock.Advance(seconds(5));
    const std::string node = cluster.NodeIdOfVm(uid);
    cluster.EditAnnotation(vm.name, Key("nomad-node-id"), node);
    cluster.EditAnnotation(vm.name, Key("joined-at"), base::FormatRfc3339(clock.WallNow()));
    cluster.SetEligible(node, false);
  }
  for (auto& [id, object] : Present()) {
    if (!others.contains(id)) kept_.emplace(id, std::move(object));
  }
}

// Without the resourceVersion, which the systems' own controllers may move, and the holder of a
// Lease: every process of the plugin looks once for what was left in its namespace, whatever the
// pool.
std::map<std::string, json> Bystanders::Present() const {
  std::map<std::string, json> present;
  for (const auto& list : {cluster_.Vms(), cluster_.Secrets(), cluster_.Claims(), cluster_.Leases(),
                           cluster_.Nodes()}) {
    for (json object : list) {
      if (object.contains("metadata")) object["metadata"].erase("resourceVersion");
      if (base::GetString(object, "kind") == "Lease") object.erase("spec");
      std::string id = IdOf(object);
      present.emplace(std::move(id), std::move(object));
    }
  }
  return present;
}

bool Bystanders::Include(const json& object) const { return kept_.contains(IdOf(object)); }

std::vector<json> Bystanders::Without(std::vector<json> objects) const {
  std::erase_if(objects, [this](const json& object) { return Include(object); });
  return objects;
}

void Bystanders::NomadWasRestored() {
  for (const auto& [id, object] : Present()) {
    const bool is_node = !object.contains("metadata");
    if (is_node && kept_.contains(id)) cluster_.SetEligible(id, false);
  }
  const std::map<std::string, json> present = Present();
  std::erase_if(kept_, [&](const auto& entry) { return !present.contains(entry.first); });
  for (auto& [id, object] : kept_) object = present.at(id);
}

std::vector<std::string> Bystanders::Changes() const {
  const std::map<std::string, json> present = Present();
  std::vector<std::string> changes;
  for (const auto& [id, object] : kept_) {
    const auto found = present.find(id);
    // Nomad's own collector removes it after a day (hashicorp/nomad:nomad/config.go,
    // NodeGCThreshold).
    const bool was_down = base::GetString(object, "Status") == "down";
    if (found == present.end() && was_down && clock_.Now() - made_at_ > hours(24)) continue;
    if (found == present.end()) {
      changes.push_back("a bystander is gone: " + TitleOf(object));
    } else if (found->second != object) {
      changes.push_back("a bystander was changed: " + TitleOf(object) + ": " +
                        json::diff(object, found->second).dump());
    }
  }
  return changes;
}

}  // namespace nomad_harvester::scenario
