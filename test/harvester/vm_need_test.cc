// SPDX-License-Identifier: Apache-2.0
// What the pod of a VM asks of its host.
#include <cstdint>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/host_room.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "launcher.h"
#include "nlohmann/json.hpp"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// One CPU and 1 GiB, with the requests of Harvester 1.8's webhook.
json SmallDomain() {
  return json::parse(R"({
    "cpu": {"cores": 1, "sockets": 1, "threads": 1},
    "devices": {},
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"},
                  "requests": {"cpu": "100m", "memory": "682Mi"}}})");
}

json VmWith(const json& domain, const json& guest = json::object()) {
  json spec = guest;
  spec["domain"] = domain;
  return {{"metadata", {{"name", "batch-1"}}},
          {"spec",
           {{"template", {{"metadata", {{"labels", {{kPoolLabel, "batch"}}}}}, {"spec", spec}}}}}};
}

VmNeed NeedIn(const json& vm) {
  const auto need = NeedOf(vm);
  EXPECT_THAT(need, IsOk());
  return need.value_or(VmNeed{});
}

// The need of the small VM with a change of its domain.
VmNeed NeedWith(const json& patch) {
  json domain = SmallDomain();
  domain.merge_patch(patch);
  return NeedIn(VmWith(domain));
}

// Of the small VM, with these CPUs, further overhead and console log.
std::int64_t SmallMemory(std::int64_t cpus, std::int64_t more,
                         std::int64_t console_log = kConsoleLogRequest) {
  return 682 * kMi + LauncherOverhead(682 * kMi, cpus, more) + console_log;
}

// The overhead is that of the pod that Harvester 1.8.0 and KubeVirt 1.7.0 make, whose limit is
// 1557364928 bytes, 60 MB of them for the console's log: 423623104.
TEST(VmNeed, C2_is_what_the_vm_requests_and_what_its_launcher_takes) {
  const VmNeed need = NeedIn(VmWith(SmallDomain()));
  EXPECT_EQ(need.amounts,
            (Amounts{{kCpu, 105}, {kMemory, 682 * kMi + 423'623'104 + 35'000'000}, {kPods, 1}}));
  EXPECT_EQ(need.least, (Amounts{{kCpu, 100}, {kMemory, 682 * kMi}, {kPods, 1}}))
      << "what does not depend on KubeVirt's release or on Harvester's settings";
  EXPECT_EQ(need.pool, "batch");
}

TEST(VmNeed, C2_the_overhead_depends_on_what_the_vm_has) {
  const auto memory = [](const json& patch) { return NeedWith(patch).amounts.at(kMemory); };
  EXPECT_EQ(memory({{"cpu", {{"cores", 4}}}}), SmallMemory(4, 0));
  EXPECT_EQ(memory({{"cpu", {{"cores", 2}, {"threads", 3}}}}), SmallMemory(6, 0));
  EXPECT_EQ(memory({{"cpu", {{"cores", 2}, {"sockets", 4}}}}), SmallMemory(8, 0));
  EXPECT_EQ(memory({{"cpu", nullptr}, {"resources", {{"limits", {{"cpu", "3"}}}}}}),
            SmallMemory(3, 0));
  EXPECT_EQ(memory({{"cpu", {{"dedicatedCpuPlacement", true}}}}), SmallMemory(1, 100 * kMi));
  EXPECT_EQ(memory({{"devices", {{"tpm", json::object()}}}}), SmallMemory(1, 53 * kMi));
  EXPECT_EQ(memory({{"devices", {{"tpm", {{"enabled", false}}}}}}), SmallMemory(1, 0));
  EXPECT_EQ(memory({{"devices", {{"autoattachGraphicsDevice", false}}}}),
            SmallMemory(1, -32 * kMi));
}

TEST(VmNeed, C2_a_vm_without_a_log_of_its_console_needs_none) {
  for (const char* const off : {"autoattachSerialConsole", "logSerialConsole"}) {
    const VmNeed need = NeedWith({{"devices", {{off, false}}}});
    EXPECT_EQ(need.amounts.at(kMemory), SmallMemory(1, 0, 0)) << off;
    EXPECT_EQ(need.amounts.at(kCpu), 100) << off;
  }
}

TEST(VmNeed, C2_an_overhead_that_is_not_requested_does_not_count) {
  const VmNeed need = NeedWith({{"resources", {{"overcommitGuestOverhead", true}}}});
  EXPECT_EQ(need.amounts.at(kMemory), 682 * kMi + kConsoleLogRequest);
}

TEST(VmNeed, C2_counts_devices_by_resource) {
  const VmNeed need = NeedWith(json::parse(R"({"devices": {
    "hostDevices": [{"name": "a", "deviceName": "intel.com/X710"},
                    {"name": "b", "deviceName": "nvidia.com/A10"},
                    {"name": "c", "deviceName": "intel.com/X710"},
                    {"name": "d", "claimName": "of-another-kind"}],
    "gpus": [{"name": "e", "deviceName": "nvidia.com/A10"}]}})"));
  for (const Amounts& amounts : {need.amounts, need.least}) {
    EXPECT_THAT(amounts, UnorderedElementsAre(Pair("intel.com/X710", 2), Pair("nvidia.com/A10", 2),
                                              Key(kCpu), Key(kMemory), Key(kPods)));
  }
  EXPECT_EQ(need.amounts.at(kMemory), SmallMemory(1, kOverheadOfVfio)) << "once, for all of them";
}

TEST(VmNeed, C2_without_a_cpu_request_a_tenth_of_the_virtual_cpus_counts) {
  const auto cpu = [](const json& patch) { return NeedWith(patch).least.at(kCpu); };
  const json none = {{"requests", {{"cpu", nullptr}}}};
  EXPECT_EQ(cpu({{"cpu", {{"cores", 3}}}, {"resources", none}}), 300);
  EXPECT_EQ(cpu({{"resources", {{"requests", {{"cpu", "2"}}}}}}), 2000);
  EXPECT_EQ(cpu({{"resources", {{"requests", {{"cpu", "many"}}}}}}), 100);
}

TEST(VmNeed, C2_huge_pages_are_a_resource_of_their_own) {
  const VmNeed need =
      NeedWith({{"memory", {{"hugepages", {{"pageSize", "2Mi"}}}, {"guest", "600Mi"}}}});
  EXPECT_EQ(need.amounts.at("hugepages-2Mi"), 600 * kMi);
  EXPECT_EQ(need.amounts.at(kMemory), SmallMemory(1, 0) - 600 * kMi);
}

TEST(VmNeed, C2_has_the_conditions_that_the_vm_puts_on_its_host) {
  const VmNeed need = NeedIn(VmWith(SmallDomain(), json::parse(R"({
    "nodeSelector": {"disk": "nvme"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {
      "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a", "b"]}],
         "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["h1"]}]},
        {"matchExpressions": [{"key": "fast", "operator": "Exists"}]},
        {}]},
      "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}]}}
  })")));
  EXPECT_THAT(need.node_selector, ElementsAre(Pair("disk", "nvme")));
  ASSERT_THAT(need.tolerations, SizeIs(1));
  EXPECT_EQ(need.tolerations[0].key, "gpu");
  EXPECT_EQ(need.tolerations[0].op, "Exists");
  EXPECT_EQ(need.tolerations[0].effect, "NoSchedule");
  ASSERT_THAT(need.terms, SizeIs(2)) << "an empty term selects no host";
  ASSERT_THAT(need.terms[0], SizeIs(2));
  EXPECT_EQ(need.terms[0][0].key, "rack");
  EXPECT_THAT(need.terms[0][0].values, ElementsAre("a", "b"));
  EXPECT_FALSE(need.terms[0][0].is_field);
  EXPECT_TRUE(need.terms[0][1].is_field);
  EXPECT_FALSE(need.one_per_host);
}

// A trial creation's VM, with the requests that the webhook adds.
json Tried(const VmSpec& vm_spec) {
  json vm = BuildVirtualMachine(vm_spec, SampleIdentity());
  vm["spec"]["template"]["spec"]["domain"]["resources"]["requests"] = {{"cpu", "200m"},
                                                                       {"memory", "2Gi"}};
  return vm;
}

TEST(VmNeed, C2_of_a_vm_that_the_plugin_makes_has_its_policys_conditions) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.node_selector = {{"rack", "a"}};
  vm_spec.host_spread = policy::HostSpread::kRequired;
  const VmNeed need = NeedIn(Tried(vm_spec));
  EXPECT_EQ(need.least.at(kMemory), 2048 * kMi);
  EXPECT_EQ(need.ns, vm_spec.ns);
  EXPECT_EQ(need.pool, vm_spec.pool);
  EXPECT_TRUE(need.one_per_host);
  ASSERT_THAT(need.terms, SizeIs(1));
  EXPECT_EQ(need.terms[0][0].key, "rack");
  vm_spec.host_spread = policy::HostSpread::kPreferred;
  EXPECT_FALSE(NeedIn(Tried(vm_spec)).one_per_host);
}

TEST(VmNeed, C2_a_cpu_model_needs_a_host_that_offers_it) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.machine["cpu_model"] = std::string("EPYC-Rome");
  EXPECT_THAT(NeedIn(Tried(vm_spec)).node_selector,
              ElementsAre(Pair("cpu-model.node.kubevirt.io/EPYC-Rome", "true")));
  for (const char* const any : {"host-model", "host-passthrough"}) {
    vm_spec.machine["cpu_model"] = std::string(any);
    EXPECT_THAT(NeedIn(Tried(vm_spec)).node_selector, testing::IsEmpty()) << any;
  }
}

TEST(VmNeed, C2_anti_affinity_to_other_pods_is_not_judged) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.host_spread = policy::HostSpread::kRequired;
  json vm = Tried(vm_spec);
  json& term = vm["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
                 ["requiredDuringSchedulingIgnoredDuringExecution"][0];
  term["labelSelector"]["matchLabels"]["app"] = "x";
  EXPECT_FALSE(NeedIn(vm).one_per_host);
}

TEST(VmNeed, C2_needs_the_requests_that_harvesters_webhook_sets) {
  json domain = SmallDomain();
  domain["resources"].erase("requests");
  for (const json& vm : {VmWith(domain), VmWith(json::object()), json(), json(7), json::array(),
                         json{{"spec", {{"template", "x"}}}}}) {
    EXPECT_THAT(NeedOf(vm),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("requests no memory")))
        << vm;
  }
}

TEST(VmNeed, P2_survives_members_of_other_types) {
  const json bad = json::parse(R"({
    "nodeSelector": ["x"], "tolerations": [7, {"key": 1}], "affinity": {"nodeAffinity":
      {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [1, {"matchExpressions":
        [2, {"values": "x"}]}]}}, "podAntiAffinity": 3}})");
  json domain = SmallDomain();
  domain["cpu"] = {{"cores", -5}, {"sockets", 9'000'000'000'000'000'000}};
  domain["devices"] = {{"gpus", {1, "x", {{"deviceName", 5}}}}, {"tpm", true}};
  domain["resources"]["requests"] = {{"cpu", "9223372036854775807m"}, {"memory", "8E"}};
  const VmNeed need = NeedIn(VmWith(domain, bad));
  EXPECT_GT(need.amounts.at(kMemory), 0) << "no overflow";
  EXPECT_GT(need.amounts.at(kCpu), 0);
}

}  // namespace
}  // namespace nomad_harvester::harvester
