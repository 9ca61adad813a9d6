// SPDX-License-Identifier: Apache-2.0
// On random hosts, the simulated scheduler places exactly the VMs that the forecast says. The two
// count requests by code of their own.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/host_room.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/simulator/cluster.h"

#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "nlohmann/json.hpp"
#include "support/fake_clock.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;

constexpr std::uint64_t kWorlds = 80;
constexpr std::size_t kWanted = 5;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(support::MakeSeededRandom(seed)) {}
  std::int64_t Below(std::int64_t n) {
    return static_cast<std::int64_t>(random_->Next() % static_cast<std::uint64_t>(n));
  }
  bool OneIn(std::int64_t n) { return Below(n) == 0; }
  const char* Of(const std::vector<const char*>& choices) {
    return choices[static_cast<std::size_t>(Below(static_cast<std::int64_t>(choices.size())))];
  }

 private:
  const std::unique_ptr<runtime::Random> random_;
};

json RandomHost(Dice& dice, const std::string& name) {
  json host = {{"apiVersion", "v1"},
               {"kind", "Node"},
               {"metadata",
                {{"name", name},
                 {"labels",
                  {{"rack", dice.Of({"1", "2", "3"})},
                   {"topology.kubernetes.io/zone", dice.Of({"a", "b"})}}}}},
               {"spec", {{"unschedulable", dice.OneIn(8)}}},
               {"status",
                {{"allocatable",
                  {{"cpu", std::to_string(400 + dice.Below(4000)) + "m"},
                   {"memory", std::to_string(3'000'000 + dice.Below(30'000'000)) + "Ki"},
                   {"pods", std::to_string(2 + dice.Below(9))}}}}}};
  if (dice.OneIn(2)) host["status"]["allocatable"]["x.io/gpu"] = std::to_string(dice.Below(4));
  if (dice.OneIn(3)) {
    host["spec"]["taints"] = {
        {{"key", dice.Of({"k", "l"})},
         {"value", dice.Of({"", "v"})},
         {"effect", dice.Of({"NoSchedule", "NoExecute", "PreferNoSchedule"})}}};
  }
  if (dice.OneIn(9)) host["metadata"]["labels"]["kubevirt.io/schedulable"] = "false";
  return host;
}

json RandomPod(Dice& dice, const std::string& name, const std::string& host) {
  const auto container = [&](bool stays) {
    json made = {{"resources",
                  {{"requests",
                    {{"cpu", std::to_string(dice.Below(400)) + "m"},
                     {"memory", std::to_string(dice.Below(900)) + "Mi"}}}}}};
    if (dice.OneIn(4)) made["resources"]["requests"]["x.io/gpu"] = "1";
    if (stays) made["restartPolicy"] = "Always";
    return made;
  };
  json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"name", name}, {"namespace", "default"}}},
              {"spec", {{"nodeName", host}, {"containers", json::array({container(false)})}}},
              {"status", {{"phase", dice.Of({"Running", "Pending", "Succeeded"})}}}};
  for (std::int64_t i = dice.Below(4); i > 0; --i) {
    pod["spec"]["initContainers"].push_back(container(dice.OneIn(2)));
  }
  return pod;
}

VmSpec RandomVmSpec(Dice& dice) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.cpu_cores = 1 + dice.Below(8);
  vm_spec.memory_bytes = (512 + dice.Below(6000)) << 20;
  if (dice.OneIn(3)) vm_spec.host_devices = {{"x.io/gpu", 1 + dice.Below(2)}};
  if (dice.OneIn(4)) vm_spec.node_selector = {{"rack", dice.Of({"1", "2"})}};
  if (dice.OneIn(4)) vm_spec.host_spread = policy::HostSpread::kRequired;
  if (dice.OneIn(3)) vm_spec.zones = {"a", "b"};
  return vm_spec;
}

json RandomTolerations(Dice& dice) {
  if (!dice.OneIn(3)) return json::array();
  json toleration = {{"operator", dice.Of({"Exists", "Equal"})}};
  if (dice.OneIn(2) || toleration["operator"] == "Equal") toleration["key"] = dice.Of({"k", "l"});
  if (toleration["operator"] == "Equal") toleration["value"] = dice.Of({"", "v"});
  if (dice.OneIn(2)) toleration["effect"] = dice.Of({"NoSchedule", "NoExecute"});
  return json::array({toleration});
}

json RandomTerms(Dice& dice) {
  json terms = json::array();
  for (std::int64_t i = 1 + dice.Below(2); i > 0; --i) {
    const char* const op = dice.Of({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"});
    terms.push_back(
        {{"matchExpressions", json::array({{{"key", dice.Of({"rack", "none"})},
                                            {"operator", op},
                                            {"values", json::array({dice.Of({"1", "2"})})}}})}});
  }
  return terms;
}

class World {
 public:
  explicit World(std::uint64_t seed) : dice_(seed), random_(support::MakeSeededRandom(seed)) {
    simulator::Options options;
    options.hosts.clear();
    cluster_ = std::make_unique<simulator::Cluster>(clock_, *random_, options);
    for (std::int64_t host = 1 + dice_.Below(4); host > 0; --host) {
      const std::string name = "h" + std::to_string(host);
      cluster_->PutObject(RandomHost(dice_, name));
      for (std::int64_t pod = dice_.Below(4); pod > 0; --pod) {
        cluster_->PutObject(RandomPod(dice_, name + "-" + std::to_string(pod), name));
      }
    }
    vm_spec_ = RandomVmSpec(dice_);
    tolerations_ = RandomTolerations(dice_);
    if (dice_.OneIn(4) && vm_spec_.zones.empty() && vm_spec_.node_selector.empty()) {
      terms_ = RandomTerms(dice_);
    }
  }

  // Of the VMs, in order.
  std::vector<std::string> Zones() {
    std::vector<std::string> zones(kWanted);
    if (vm_spec_.zones.empty()) return zones;
    for (std::string& zone : zones) zone = dice_.Of({"a", "b"});
    return zones;
  }
  RoomForecast Forecast(const std::vector<std::string>& zones) {
    const VmStore store(std::make_shared<kube::KubeClient>(cluster_->HarvesterTransport()),
                        "nomad");
    const auto tried = store.DryRunCreateVm(context_, Vm("batch-trial", ""));
    EXPECT_THAT(tried, IsOk());
    const auto need = NeedOf(tried.value_or(json()));
    EXPECT_THAT(need, IsOk());
    const auto rooms = ReadHostRooms(context_, Client());
    EXPECT_THAT(rooms, IsOk());
    return ForecastRoom(rooms.value_or(std::vector<HostRoom>{}), need.value_or(VmNeed{}), zones);
  }
  // Whether the VM gets a host.
  bool Runs(const std::string& name, const std::string& zone) {
    VmIdentity identity = SampleIdentity();
    identity.name = name;
    EXPECT_THAT(Client().Create(context_, kube::kSecrets, "nomad",
                                BuildSecret(vm_spec_, identity, CloudInit{})),
                IsOk());
    EXPECT_THAT(Client().Create(context_, kube::kVirtualMachines, "nomad", Vm(name, zone)), IsOk());
    clock_.Advance(std::chrono::seconds(10));
    return !cluster_->HostOfVm(name).empty();
  }

 private:
  kube::KubeClient Client() { return kube::KubeClient(cluster_->HarvesterTransport()); }
  json Vm(const std::string& name, const std::string& zone) const {
    VmIdentity identity = SampleIdentity();
    identity.name = name;
    identity.zone = zone;
    json vm = BuildVirtualMachine(vm_spec_, identity);
    json& guest = vm["spec"]["template"]["spec"];
    guest["tolerations"] = tolerations_;
    if (!terms_.is_null()) {
      guest["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
           ["nodeSelectorTerms"] = terms_;
    }
    return vm;
  }

  Dice dice_;
  support::FakeClock clock_;
  const runtime::Context context_ = runtime::Context::Background(clock_);
  const std::unique_ptr<runtime::Random> random_;
  std::unique_ptr<simulator::Cluster> cluster_;
  VmSpec vm_spec_;
  json tolerations_;
  json terms_;
};

// At the end every kind of outcome has been seen.
TEST(RoomProperty, C2_the_scheduler_places_the_vms_that_the_forecast_says) {
  std::size_t all = 0;
  std::size_t some = 0;
  std::size_t never = 0;
  for (std::uint64_t seed = 1; seed <= kWorlds; ++seed) {
    World world(seed);
    const std::vector<std::string> zones = world.Zones();
    const RoomForecast forecast = world.Forecast(zones);
    ASSERT_EQ(forecast.fits.size(), kWanted);
    std::size_t placed = 0;
    for (std::size_t i = 0; i < kWanted; ++i) {
      const bool runs = world.Runs("batch-" + std::to_string(i), zones[i]);
      if (runs) ++placed;
      EXPECT_EQ(runs, forecast.fits[i]) << "seed " << seed << ", VM " << i << ": " << forecast.why;
    }
    EXPECT_EQ(forecast.why.empty(), placed == kWanted) << "seed " << seed;
    if (forecast.never) {
      EXPECT_EQ(placed, 0U) << "seed " << seed << ": " << forecast.why;
    }
    if (placed == kWanted) ++all;
    if (placed > 0 && placed < kWanted) ++some;
    if (forecast.never) ++never;
  }
  EXPECT_GT(all, 5U);
  EXPECT_GT(some, 15U);
  EXPECT_GT(never, 5U);
}

}  // namespace
}  // namespace nomad_harvester::harvester
