// SPDX-License-Identifier: Apache-2.0
// Values of a policy that are wrong. Those that are right: the other tests, by what they define.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_test_support.h"

namespace nomad_harvester::config {
namespace {

using ::testing::StartsWith;

struct WrongValues {
  std::vector<std::string> keys{};
  std::vector<std::string> values{};
  std::string problem{};  // how it begins, behind the key
};

// Also an empty value: the default never replaces it.
TEST(PolicyValues, that_are_wrong_are_one_problem_of_their_key) {
  const std::string label(40, 'a');
  const std::vector<WrongValues> rows = {
      {{"node_group_name"},
       {"", label + "a", "Web", "a.b", "a_b", "-a"},
       "must be a DNS label of at most 40 characters"},
      {{"name_prefix"}, {"", label + "aa", "a.", "A"}, "must be a DNS label of at most 41"},
      {{"namespace"}, {"", "a/b"}, "must be a DNS label of at most 63 characters"},
      {{"dry-run", "node_filter_ignore_init", "node_filter_ignore_drain",
        "node_filter_ignore_ineligible", "node_purge", "force_after_deadline",
        "node_drain_ignore_system_jobs", "publish_host"},
       {"yes", "", "TrUe", "on", "maybe", " true"},
       "must be true or false (got "},
      {{"node_attribute"},
       {"", "meta.", "attr.unique.hostname", "${meta.x}", "a b", "a\n"},
       "must be the name of a Nomad node attribute"},
      {{"_nomad_autoscaler_grpc_timeout"}, {"soon"}, "must be a duration"},
      {{"join_timeout", "drain_grace", "termination_grace_period"},
       {"0", "-1h"},
       "must be longer than 0"},
      // With those of hashicorp/nomad-autoscaler:sdk/helper/scaleutils/node_drain_test.go.
      {{"join_timeout", "node_drain_deadline", "termination_grace_period"},
       {"10mm", "10", ""},
       "must be a duration (got "},
      {{"termination_grace_period"}, {"1500ms"}, "must be whole seconds"},
      {{"max_scale_out", "max_scale_in"},
       {"0", "-1", "10%", "", "1.5", "+3", " 3", "0x3", "9223372036854775808"},
       "must be a whole number greater than 0"},
      {{"max_surge", "max_unavailable"}, {"-1", ""}, "must be a whole number, or 0"},
      {{"max_unhealthy"},
       {"0", "0%", "101%", "-5", "20 %", "%", "many", ""},
       "must be a whole number greater than 0 or a percentage up to 100%"},
      {{"cpu_request"},
       {"0", "-1", "500m", "2000m", "1.5", "4097", "four", ""},
       "must be a whole number from 1 to 4096"},
      {{"memory_request", "disk_size"},
       {"0", "8GB", "-8Gi", "", "lots"},
       "must be a quantity greater than 0"},
      {{"image"},
       {"ubuntu", "/ubuntu", "default/", "default/a/b", "De fault/x", "", "default/a\nb"},
       "must be of the form NAMESPACE/IMAGE (got "},
      {{"networks"}, {"", " "}, "must name at least one network"},
      {{"vm_template"},
       {"", "worker", "default/", "/worker", "default/Worker", "a/b/c"},
       "must name a template"},
      {{"vm_template"},
       {"default/worker:", "default/worker:0", "default/worker:v1", "default/worker:1:2",
        "default/worker:-1"},
       "the version of the template must be a whole number"},
      {{"user_data", "user_data_file", "network_data", "network_data_file"},
       {""},
       "must not be empty"},
      {{"priority_class"}, {"", "Low", "a b", "-a"}, "must be the name of an object"},
      {{"cpu_model"},
       {"", "a b", "-a", "a/b"},
       "must be host-model, host-passthrough or the name of a CPU model"},
      {{"node_selector"},
       {"network.harvesterhci.io/mgmt=true"},
       "the key \"network.harvesterhci.io/mgmt\" is Harvester's own"},
      {{"node_selector"}, {"disk=a b"}, "\"a b\", the value of \"disk\", is not a valid label"},
      {{"availability_zones", "ready_drivers", "deletion_holds"}, {"a,a"}, "\"a\" is given twice"},
      {{"availability_zones"},
       {"a,b c"},
       "\"b c\" is no value of a label; write values of the hosts' label "
       "topology.kubernetes.io/zone"},
      {{"ready_drivers"},
       {"docker exec"},
       "\"docker exec\" is no name of a task driver; write names as nomad node status shows them, "
       "such as docker,exec"},
      {{"data_disks"},
       {"1Gi,2GB"},
       "the size of \"2GB\" must be a quantity of at least 1Mi; without a suffix it is a number of "
       "bytes; write SIZE[@STORAGECLASS][:rwo], such as \"100Gi@fast\""},
      {{"data_disks"}, {"@fast", ":rwo", "-1Gi", "0"}, "the size of "},
      {{"data_disks"}, {"1Gi,,2Gi"}, "the list has an empty element"},
      {{"data_disks"}, {"1Gi@", "1Gi@a@b"}, "\""},
      {{"data_disks"}, {"1Gi@Fast"}, "\"Fast\" is not the name of a storage class"},
      {{"data_disks"}, {"1Gi:rwx", "1Gi:rwo:rwo", "1Gi:rwo@fast"}, "in \"1Gi:rw"},
      {{"host_devices", "gpus"},
       {"a10"},
       "\"a10\" is not the name of a device resource; write RESOURCE[:COUNT], such as "
       "\"nvidia.com/GA102GL_A10:2\""},
      {{"host_devices", "gpus"}, {"/a", "x.io/", "X/a b"}, "\""},
      {{"host_devices", "gpus"},
       {"x.io/a:0", "x.io/a:", "x.io/a:65", "x.io/a:1:1"},
       "the count of \"x.io/a:"},
      {{"host_devices", "gpus"},
       {"x.io/a,x.io/a:2"},
       "\"x.io/a\" is given twice; write its number behind it: \"x.io/a:2\""},
      {{"run_strategy"}, {"Manual", "Halted", "WaitAsReceiver"}, "never boots a VM (got "},
      {{"drift_ignore"},
       {"tags,colour"},
       "\"colour\" is no part of a VM; choose from annotations, "},
  };
  for (const WrongValues& row : rows) {
    for (const std::string& key : row.keys) {
      for (const std::string& value : row.values) {
        EXPECT_THAT(ProblemOf(ParsePolicy({{key, value}})), StartsWith(key + ": " + row.problem))
            << value;
      }
    }
  }
}

TEST(PolicyValues, of_an_enumeration_that_are_wrong_name_all_or_the_nearest) {
  const std::vector<std::vector<std::string>> rows = {
      {"node_selector_strategy", "aliens",
       "must be one of least_busy, newest_create_index, oldest_create_index, empty, "
       "empty_ignore_system (got \"aliens\"); choose one"},
      {"on_join_timeout", "remove", "must be one of delete, keep (got \"remove\"); choose one"},
      {"firmware", "x", "must be one of bios, uefi, uefi-secure (got \"x\"); choose one"},
      {"replace_drifted", "always",
       "must be one of off, on_scale_in, rolling (got \"always\"); choose one"},
      {"scale_in_fit", "required",
       "must be one of report, require (got \"required\"); did you mean require?"},
      {"run_strategy", "always",
       "must be one of RerunOnFailure, Always, Once (got \"always\"); did you mean Always?"},
      {"host_spread", "require",
       "must be one of required, preferred, off (got \"require\"); did you mean required?"},
      {"maintain_mode_strategy", "migrate",
       "must be one of Migrate, ShutdownAndRestartAfterEnable, ShutdownAndRestartAfterDisable, "
       "Shutdown (got \"migrate\"); did you mean Migrate?"},
  };
  for (const std::vector<std::string>& row : rows) {
    EXPECT_EQ(ProblemOf(ParsePolicy({{row[0], row[1]}})), row[0] + ": " + row[2]);
  }
}

}  // namespace
}  // namespace nomad_harvester::config
