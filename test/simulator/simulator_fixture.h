// SPDX-License-Identifier: Apache-2.0
// A cluster on a fake clock, with the plugin's own clients.
#ifndef NOMAD_HARVESTER_TEST_SIMULATOR_SIMULATOR_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_SIMULATOR_SIMULATOR_FIXTURE_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/simulator/cluster.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/list_names.h"
#include "nlohmann/json.hpp"
#include "support/fake_clock.h"
#include "support/object_uid.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::simulator {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kUuid[] = "5d3f0f4e-8a1c-4a53-9d0f-3b7c1a2e4d55";

inline json SecretFor(const std::string& vm, const std::string& node_class = "batch") {
  const std::string text = "#cloud-config\nwrite_files:\n- content: |\n    name = \"" + vm +
                           "\"\n    client {\n      node_class = \"" + node_class +
                           "\"\n      node_pool  = \"\"\n      meta {\n        "
                           "harvester_vm_uuid = \"" +
                           kUuid + "\"\n      }\n    }\n";
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", {{"name", vm + "-cloudinit"}, {"labels", {{"pool", "p"}}}}},
          {"data", {{"userdata", base::Base64Encode(text)}}}};
}

inline json VmNamed(const std::string& vm) {
  const std::string claim = vm + "-disk-0-abcde";
  const json templates =
      json::array({{{"metadata",
                     {{"name", claim},
                      {"labels", {{"pool", "p"}}},
                      {"annotations", {{"harvesterhci.io/imageId", "default/image-rx7kp"}}}}},
                    {"spec", {{"storageClassName", "lh-2f0c8d6e"}}}}});
  const json volumes = json::array(
      {{{"name", "disk-0"}, {"persistentVolumeClaim", {{"claimName", claim}}}},
       {{"name", "init"}, {"cloudInitNoCloud", {{"secretRef", {{"name", vm + "-cloudinit"}}}}}}});
  return {
      {"apiVersion", "kubevirt.io/v1"},
      {"kind", "VirtualMachine"},
      {"metadata",
       {{"name", vm},
        {"namespace", "nomad"},
        {"labels", {{"pool", "p"}}},
        {"annotations",
         {{"harvesterhci.io/volumeClaimTemplates", templates.dump()},
          {"harvesterhci.io/removedPersistentVolumeClaims", claim}}}}},
      {"spec",
       {{"runStrategy", "RerunOnFailure"},
        {"template",
         {{"spec",
           {{"domain", {{"firmware", {{"uuid", kUuid}}}}},
            {"networks",
             json::array({{{"name", "nic-0"}, {"multus", {{"networkName", "default/vlan100"}}}}})},
            {"volumes", volumes}}}}}}}};
}

class SimulatorTest : public testing::Test {
 protected:
  // The first call creates the cluster: options must be set before it.
  Cluster& cluster() {
    if (cluster_ == nullptr) cluster_ = std::make_unique<Cluster>(clock_, *random_, options_);
    return *cluster_;
  }
  kube::KubeClient kube() { return kube::KubeClient(cluster().HarvesterTransport()); }
  nomad::NomadClient nomad() { return nomad::NomadClient(cluster().NomadTransport(), {}); }

  // Creates Secret and VM like the plugin.
  json MakeVm(const std::string& name, const json& resources = json::object()) {
    EXPECT_THAT(kube().Create(context_, kube::kSecrets, "nomad", SecretFor(name)), IsOk());
    json wanted = VmNamed(name);
    wanted["spec"]["template"]["spec"]["domain"]["resources"] = resources;
    const auto vm = kube().Create(context_, kube::kVirtualMachines, "nomad", wanted);
    EXPECT_THAT(vm, IsOk());
    return vm.ok() ? vm->object : json();
  }
  // Creates a VM, waits until its node is ready, and returns the node.
  nomad::Node JoinVm(const std::string& name) {
    MakeVm(name);
    Wait(seconds(9));
    return NodeOf(name);
  }
  nomad::Node NodeOf(const std::string& name) {
    const json node = cluster().Node(name);
    if (!node.is_object()) return {};
    return Read(node["ID"].get<std::string>());
  }
  // A node without a VM.
  std::string AddNode(const std::string& name) { return cluster().AddForeignNode({.name = name}); }
  nomad::Node Read(const std::string& id) {
    const auto node = nomad().GetNode(context_, id);
    EXPECT_THAT(node, IsOk());
    return node.ok() ? node->value : nomad::Node{};
  }
  bool IsComplete(const std::string& id) {
    const auto drain = Read(id).last_drain;
    return drain && drain->status == nomad::DrainStatus::kComplete;
  }
  std::vector<nomad::Allocation> AllocationsOf(const std::string& node_id) {
    const auto list = nomad().NodeAllocations(context_, node_id);
    EXPECT_THAT(list, IsOk());
    return list.ok() ? list->value : std::vector<nomad::Allocation>{};
  }
  std::string PhaseOf(const std::string& name) {
    const auto vmi = kube().Get(context_, kube::kVirtualMachineInstances, "nomad", name);
    if (!vmi.ok()) return "none";
    return vmi->object["status"]["phase"];
  }
  std::string StatusOf(const std::string& name) {
    const auto vm = kube().Get(context_, kube::kVirtualMachines, "nomad", name);
    if (!vm.ok()) return "none";
    const json* status = base::FindMember(vm->object, "status");
    return status == nullptr ? "" : base::GetString(*status, "printableStatus");
  }
  static std::string UidOf(const json& object) { return support::UidOf(object); }
  absl::Status DeleteVm(const json& vm) {
    kube::DeleteOptions options;
    options.uid = UidOf(vm);
    return kube().Delete(context_, kube::kVirtualMachines, "nomad", kube::NameOf(vm), options);
  }
  void Wait(base::Duration time) { clock_.Advance(time); }
  // The raw response, of which the clients would return less.
  http::HttpResponse Ask(System system, http::Method method, const std::string& target,
                         const std::string& body = "",
                         const std::string& type = "application/json") {
    http::HttpRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.headers.Set("Content-Type", type);
    const auto transport =
        system == System::kHarvester ? cluster().HarvesterTransport() : cluster().NomadTransport();
    const auto reply = transport->Send(context_, request);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? *reply : http::HttpResponse{};
  }

  support::FakeClock clock_;
  std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  runtime::Context context_ = runtime::Context::Background(clock_);
  Options options_;

 private:
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_TEST_SIMULATOR_SIMULATOR_FIXTURE_H_
