// SPDX-License-Identifier: Apache-2.0
// The keys of a policy that define disks, devices, firmware and placement of its VMs, and the check
// of its templates.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"

#include "config_test_support.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::int64_t kGi = std::int64_t{1} << 30;

TEST(PolicyHardware, without_its_keys_nothing_is_special) {
  const PoolPolicy policy = PolicyOf({});
  EXPECT_THAT(policy.data_disks, IsEmpty());
  EXPECT_EQ(policy.network_data, std::nullopt);
  EXPECT_EQ(policy.network_data_file, std::nullopt);
  EXPECT_EQ(policy.firmware, std::nullopt);
  EXPECT_EQ(policy.vm_template, std::nullopt);
  EXPECT_EQ(policy.host_spread, policy::HostSpread::kPreferred);
  EXPECT_THAT(policy.node_selector, IsEmpty());
  EXPECT_THAT(policy.host_devices, IsEmpty());
  EXPECT_THAT(policy.gpus, IsEmpty());
  EXPECT_THAT(policy.machine, IsEmpty());
  EXPECT_THAT(policy.warnings, IsEmpty());
}

TEST(PolicyHardware, C18_deletion_holds_are_parts_of_the_names_of_annotations) {
  EXPECT_THAT(PolicyOf({}).deletion_holds, testing::IsEmpty());
  const PoolPolicy policy = PolicyOf({{"deletion_holds", "tailscale,licence-2"}});
  EXPECT_THAT(policy.deletion_holds, testing::ElementsAre("tailscale", "licence-2"));
  EXPECT_EQ(policy.hold_timeout, std::chrono::minutes(15));
  for (const std::string& bad : {std::string("Tailscale"), std::string("a b"), std::string("-a"),
                                 std::string("a-"), std::string("a/b"), std::string(41, 'a')}) {
    EXPECT_EQ(ProblemOf(ParsePolicy({{"deletion_holds", bad}})),
              "deletion_holds: \"" + bad +
                  "\" is no name of a hold; write up to 40 lower-case "
                  "letters, digits and hyphens, such as tailscale");
  }
}

TEST(PolicyHardware, C17_ready_drivers_are_names_of_drivers_each_once) {
  EXPECT_THAT(PolicyOf({}).ready_drivers, testing::IsEmpty());
  EXPECT_THAT(PolicyOf({{"ready_drivers", "docker, raw_exec,containerd-driver"}}).ready_drivers,
              testing::ElementsAre("docker", "raw_exec", "containerd-driver"));
}

TEST(PolicyHardware, zones_are_a_list_that_is_split_evenly_unless_told) {
  const PoolPolicy policy = PolicyOf({{"availability_zones", "b, a"}});
  EXPECT_THAT(policy.zones, ElementsAre("b", "a"));
  EXPECT_TRUE(policy.evenly_split_zones);
  EXPECT_FALSE(
      PolicyOf({{"availability_zones", "a"}, {"evenly_split_zones", "false"}}).evenly_split_zones);
}

TEST(PolicyHardware, zones_are_not_also_in_the_node_selector) {
  EXPECT_THAT(ProblemOf(ParsePolicy({{"availability_zones", "a"},
                                     {"node_selector", "topology.kubernetes.io/zone=b"}})),
              HasSubstr("availability_zones: given together with topology.kubernetes.io/zone in "
                        "node_selector"));
}

TEST(PolicyHardware, a_selector_of_one_host_is_a_warning) {
  EXPECT_THAT(PolicyOf({{"node_selector", "kubernetes.io/hostname=h1"}}).warnings,
              ElementsAre(HasSubstr("VMs that only one host may run cannot be live-migrated")));
}

TEST(PolicyHardware, data_disks_have_a_size_and_perhaps_a_class_and_an_access_mode) {
  EXPECT_THAT(
      PolicyOf({{"data_disks", "100Gi,100Gi, 1Ti@fast,5Gi:rwo,20Gi@lvm.local:rwo"}}).data_disks,
      ElementsAre(policy::DataDisk{100 * kGi, "", false}, policy::DataDisk{100 * kGi, "", false},
                  policy::DataDisk{1024 * kGi, "fast", false}, policy::DataDisk{5 * kGi, "", true},
                  policy::DataDisk{20 * kGi, "lvm.local", true}));
}

TEST(PolicyHardware, a_data_disk_of_a_bare_number_is_told_with_its_unit) {
  EXPECT_THAT(ProblemOf(ParsePolicy({{"data_disks", "100"}})),
              HasSubstr("a number of bytes; write \"100Gi\""));
  EXPECT_THAT(ProblemOf(ParsePolicy({{"data_disks", "100@fast:rwo"}})),
              HasSubstr("write \"100Gi@fast:rwo\""));
  EXPECT_EQ(PolicyOf({{"data_disks", "1Mi"}}).data_disks.at(0).bytes, 1 << 20);
}

TEST(PolicyHardware, devices_have_a_resource_and_a_count) {
  const PoolPolicy policy =
      PolicyOf({{"host_devices", "intel.com/X710:2,example.org/hsm"}, {"gpus", "nvidia.com/A10"}});
  EXPECT_THAT(policy.host_devices, ElementsAre(policy::DeviceRequest{"intel.com/X710", 2},
                                               policy::DeviceRequest{"example.org/hsm", 1}));
  EXPECT_THAT(policy.gpus, ElementsAre(policy::DeviceRequest{"nvidia.com/A10", 1}));
}

TEST(PolicyHardware, enumerations_are_taken_over) {
  EXPECT_EQ(PolicyOf({{"firmware", "uefi"}}).firmware, policy::Firmware::kUefi);
  EXPECT_EQ(PolicyOf({{"firmware", "uefi-secure"}}).firmware, policy::Firmware::kUefiSecure);
  EXPECT_EQ(PolicyOf({{"host_spread", "off"}}).host_spread, policy::HostSpread::kOff);
  EXPECT_EQ(policy::TextOf(PolicyOf({{"maintain_mode_strategy", "Shutdown"}}).machine,
                           "maintain_mode_strategy"),
            "Shutdown");
}

TEST(PolicyHardware, a_node_selector_may_name_any_label_of_a_host) {
  EXPECT_EQ(PolicyOf({{"node_selector", "disk=nvme,harvesterhci.io/managed=true"}}).node_selector,
            (StringMap{{"disk", "nvme"}, {"harvesterhci.io/managed", "true"}}));
  EXPECT_THAT(PolicyOf({{"node_selector", ""}}).node_selector, IsEmpty());
}

TEST(PolicyHardware, a_priority_class_and_a_cpu_model_are_names) {
  EXPECT_EQ(policy::TextOf(PolicyOf({{"priority_class", "batch.low"}}).machine, "priority_class"),
            "batch.low");
  EXPECT_EQ(policy::TextOf(PolicyOf({{"cpu_model", "host-passthrough"}}).machine, "cpu_model"),
            "host-passthrough");
  EXPECT_EQ(policy::TextOf(PolicyOf({{"cpu_model", "Haswell-noTSX-IBRS"}}).machine, "cpu_model"),
            "Haswell-noTSX-IBRS");
}

TEST(PolicyHardware, a_termination_grace_period_is_whole_seconds) {
  EXPECT_EQ(PolicyOf({{"termination_grace_period", "5m"}}).machine.at("termination_grace_period"),
            policy::MachineValue(std::int64_t{300}));
}

TEST(PolicyHardware, what_keeps_a_vm_from_migrating_is_a_warning_of_its_key) {
  const auto warns = [](const std::string& key) {
    return ElementsAre(AllOf(StartsWith(key + ": "), HasSubstr("cannot be live-migrated"),
                             HasSubstr("upgrades"), HasSubstr("maintenance")));
  };
  EXPECT_THAT(PolicyOf({{"data_disks", "1Gi,1Gi:rwo"}}).warnings, warns("data_disks"));
  EXPECT_THAT(PolicyOf({{"data_disks", "1Gi,2Gi@fast"}}).warnings, IsEmpty());
  EXPECT_THAT(PolicyOf({{"host_devices", "x.io/a"}}).warnings, warns("host_devices"));
  EXPECT_THAT(PolicyOf({{"gpus", "x.io/a"}}).warnings, warns("gpus"));
  EXPECT_THAT(PolicyOf({{"host_devices", ""}, {"gpus", ""}}).warnings, IsEmpty());
  EXPECT_THAT(PolicyOf({{"host_spread", "required"}}).warnings,
              ElementsAre(AllOf(StartsWith("host_spread: required: "), HasSubstr("maintenance"))));
  EXPECT_THAT(PolicyOf({{"host_spread", "off"}}).warnings, IsEmpty());
}

TEST(PolicyHardware, network_data_is_in_the_policy_or_in_a_file) {
  EXPECT_EQ(PolicyOf({{"network_data", "version: 2\n"}}).network_data, "version: 2\n");
  EXPECT_EQ(PolicyOf({{"network_data_file", "/no/such/file"}}).network_data_file, "/no/such/file");
  EXPECT_EQ(ProblemOf(ParsePolicy({{"network_data", "x"}, {"network_data_file", "y"}})),
            "network_data: given together with network_data_file; remove one of them");
}

TEST(TemplateCheck, sees_each_inline_template_with_the_policy_that_it_belongs_to) {
  std::vector<std::string> seen;
  const auto check = [&](const PoolPolicy& policy, std::string_view key, const std::string& text) {
    seen.push_back(policy.pool + " " + std::string(key) + " " + text);
    return absl::OkStatus();
  };
  EXPECT_TRUE(
      ParsePoolPolicy(With(MinimalPolicy(), {{"user_data", "a"}, {"network_data", "b"}}), check)
          .ok());
  EXPECT_TRUE(ParsePoolPolicy(With(MinimalPolicy(), {{"user_data_file", "/etc/x"}}), check).ok());
  EXPECT_THAT(seen, ElementsAre("web user_data a", "web network_data b"));
}

TEST(TemplateCheck, adds_its_problems_to_all_others_each_on_one_line) {
  const auto check = [](const PoolPolicy&, std::string_view key, const std::string&) {
    return base::InvalidArgument(key == "user_data" ? "line 1: wrong\nwrite it so" : "not YAML");
  };
  const auto policy = ParsePoolPolicy(
      With(MinimalPolicy(),
           {{"user_data", "password: hunter2"}, {"network_data", "b"}, {"cpu_request", "0"}}),
      check);
  EXPECT_THAT(ProblemsOf(policy),
              ElementsAre(StartsWith("cpu_request: "), "user_data: line 1: wrong; write it so",
                          "network_data: not YAML"));
  EXPECT_THAT(base::Message(policy.status()), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace nomad_harvester::config
