// SPDX-License-Identifier: Apache-2.0
// Rule C3: a start that fails, with KubeVirt's or Harvester's message.
#include <optional>
#include <string>

#include "nomad_harvester/harvester/virtual_machine.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"

namespace nomad_harvester::harvester {
namespace {

constexpr char kSince[] = "2026-11-21T02:00:30Z";

VirtualMachine Starting(const std::string& printable_status) {
  VirtualMachine vm = ParseVirtualMachine(SampleVmObject());
  vm.printable_status = printable_status;
  vm.ready = false;
  vm.conditions.clear();
  return vm;
}

Condition MakeCondition(const std::string& type, const std::string& status,
                        const std::string& reason, const std::string& message) {
  return {type, status, reason, message, At(kSince)};
}

struct StatusCase {
  std::string printable_status;
  Condition condition;
  std::string reason;
};

TEST(StartFailure, C3_each_failing_status_has_the_message_and_time_of_its_condition) {
  const StatusCase cases[] = {
      {"ErrorUnschedulable",
       MakeCondition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available"),
       "ErrorUnschedulable: 0/3 nodes are available"},
      {"ErrorPvcNotFound",
       MakeCondition("Synchronized", "False", "FailedPvcNotFound", "PVC nomad/x does not exist"),
       "ErrorPvcNotFound: PVC nomad/x does not exist"},
      {"DataVolumeError", MakeCondition("DataVolumesReady", "False", "DataVolumeError", "no space"),
       "DataVolumeError: no space"},
      {"ErrImagePull", MakeCondition("Synchronized", "False", "ErrImagePull", "not found"),
       "ErrImagePull: not found"},
      {"ImagePullBackOff", MakeCondition("Synchronized", "False", "ImagePullBackOff", "back-off"),
       "ImagePullBackOff: back-off"},
      {"CrashLoopBackOff", MakeCondition("Failure", "True", "FailedCreate", "denied"),
       "CrashLoopBackOff: denied"},
  };
  for (const StatusCase& c : cases) {
    VirtualMachine vm = Starting(c.printable_status);
    vm.conditions = {MakeCondition("Ready", "False", "PodNotExists", ""), c.condition};
    const auto failure = FindStartFailure(vm);
    ASSERT_TRUE(failure.has_value()) << c.printable_status;
    EXPECT_EQ(failure->reason, c.reason);
    EXPECT_EQ(failure->since, At(kSince));
    EXPECT_FALSE(failure->immediate);
    EXPECT_FALSE(failure->only_at_join_timeout);
  }
}

TEST(StartFailure, C3_a_failing_status_without_a_condition_has_no_beginning) {
  for (const char* status : {"ErrorUnschedulable", "ErrorPvcNotFound", "DataVolumeError",
                             "ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"}) {
    const auto failure = FindStartFailure(Starting(status));
    ASSERT_TRUE(failure.has_value()) << status;
    EXPECT_EQ(failure->reason, status);
    EXPECT_FALSE(failure->since.has_value());
  }
}

TEST(StartFailure, C3_a_condition_that_no_longer_says_so_is_not_quoted) {
  VirtualMachine vm = Starting("ErrorUnschedulable");
  vm.conditions = {MakeCondition("PodScheduled", "True", "", "all is well")};
  const auto failure = FindStartFailure(vm);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->reason, "ErrorUnschedulable");
  EXPECT_FALSE(failure->since.has_value());
}

TEST(StartFailure, C3_a_DataVolumeError_may_take_its_message_from_Failure) {
  VirtualMachine vm = Starting("DataVolumeError");
  vm.conditions = {MakeCondition("Failure", "True", "FailedCreate", "quota")};
  EXPECT_EQ(FindStartFailure(vm)->reason, "DataVolumeError: quota");
}

TEST(StartFailure, C3_unbound_volumes_may_take_until_the_join_timeout) {
  VirtualMachine vm = Starting("ErrorUnschedulable");
  vm.conditions = {
      MakeCondition("PodScheduled", "False", "Unschedulable",
                    "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. "
                    "preemption: 0/3 nodes are available")};
  const auto failure = FindStartFailure(vm);
  ASSERT_TRUE(failure.has_value());
  EXPECT_TRUE(failure->only_at_join_timeout);
  EXPECT_FALSE(failure->immediate);
}

TEST(StartFailure, C3_what_the_pod_says_now_replaces_the_message_of_the_first_attempt) {
  VirtualMachine vm = Starting("ErrorUnschedulable");
  vm.conditions = {MakeCondition("PodScheduled", "False", "Unschedulable",
                                 "pod has unbound immediate PersistentVolumeClaims")};
  const auto failure = FindStartFailure(vm, "no host matches its anti-affinity rules");
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->reason, "ErrorUnschedulable: no host matches its anti-affinity rules");
  EXPECT_FALSE(failure->only_at_join_timeout);
  EXPECT_EQ(failure->since, At(kSince));
  vm.printable_status = "ErrImagePull";
  EXPECT_EQ(FindStartFailure(vm, "no host")->reason, "ErrImagePull");
}

TEST(StartFailure, C3_a_Failure_condition_counts_while_the_VM_is_starting) {
  VirtualMachine vm = Starting("Starting");
  vm.conditions = {MakeCondition("Failure", "True", "FailedCreate",
                                 "failure while starting VMI: exceeded quota: default-quota")};
  const auto failure = FindStartFailure(vm);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->reason,
            "FailedCreate: failure while starting VMI: exceeded quota: default-quota");
  EXPECT_EQ(failure->since, At(kSince));
  EXPECT_FALSE(failure->immediate);
  vm.conditions[0].status = "False";
  EXPECT_FALSE(FindStartFailure(vm).has_value());
}

TEST(StartFailure, C3_an_instance_that_cannot_be_synchronized_counts_while_it_is_starting) {
  VirtualMachine vm = Starting("Starting");
  vm.conditions = {MakeCondition("Synchronized", "False", "FailedCreate", "exceeded quota")};
  ASSERT_TRUE(FindStartFailure(vm).has_value());
  EXPECT_EQ(FindStartFailure(vm)->reason, "FailedCreate: exceeded quota");
  vm.conditions[0].status = "True";
  EXPECT_FALSE(FindStartFailure(vm).has_value());
  vm.conditions[0] = MakeCondition("Synchronized", "False", "", "");
  EXPECT_EQ(FindStartFailure(vm)->reason, "Synchronized");
}

TEST(StartFailure, C3_a_halt_by_quota_counts_at_once) {
  VirtualMachine vm = Starting("Stopped");
  vm.run_strategy = "Halted";
  vm.instance_exists = false;
  vm.quota_halt = "limits.memory insufficient resources due to resource quota";
  const auto failure = FindStartFailure(vm);
  ASSERT_TRUE(failure.has_value());
  EXPECT_TRUE(failure->immediate);
  EXPECT_THAT(failure->reason, testing::HasSubstr("limits.memory insufficient resources"));
  vm.printable_status = "";
  EXPECT_TRUE(FindStartFailure(vm).has_value()) << "before KubeVirt has seen the halt";
}

TEST(StartFailure, a_quota_annotation_that_outlived_its_halt_is_not_a_failure) {
  VirtualMachine vm = Starting("Running");
  vm.quota_halt = "limits.memory";
  EXPECT_FALSE(FindStartFailure(vm).has_value());
  vm.printable_status = "Starting";
  EXPECT_FALSE(FindStartFailure(vm).has_value()) << "an operator started it again";
}

TEST(LacksRoom, C3_is_what_no_host_takes_and_what_a_quota_halted) {
  EXPECT_TRUE(LacksRoom(Starting("ErrorUnschedulable")));
  for (const char* status : {"Starting", "Running", "Stopped", "ErrorPvcNotFound",
                             "DataVolumeError", "ErrImagePull", "CrashLoopBackOff"}) {
    EXPECT_FALSE(LacksRoom(Starting(status))) << status;
  }
  VirtualMachine halted = Starting("Stopped");
  halted.instance_exists = false;
  halted.quota_halt = "limits.memory";
  EXPECT_TRUE(LacksRoom(halted));
  halted.printable_status = "Starting";
  halted.instance_exists = true;
  EXPECT_FALSE(LacksRoom(halted)) << "it was started again";
}

TEST(StartFailure, is_none_for_a_VM_on_its_way) {
  for (const char* status :
       {"", "Starting", "Provisioning", "WaitingForVolumeBinding", "Unknown"}) {
    EXPECT_FALSE(FindStartFailure(Starting(status)).has_value()) << status;
  }
}

TEST(StartFailure, is_none_once_the_guest_runs_stops_or_terminates) {
  for (const char* status :
       {"Running", "Migrating", "Paused", "Stopping", "Stopped", "Terminating"}) {
    VirtualMachine vm = Starting(status);
    vm.conditions = {MakeCondition("Failure", "True", "HotPlugVolumeError", "x"),
                     MakeCondition("Synchronized", "False", "FailedMigration", "x")};
    EXPECT_FALSE(FindStartFailure(vm).has_value()) << status;
  }
}

TEST(StartFailure, is_none_for_a_VM_that_is_being_deleted) {
  VirtualMachine vm = Starting("ErrorUnschedulable");
  vm.quota_halt = "x";
  vm.run_strategy = "Halted";
  vm.instance_exists = false;
  vm.deleted_at = vm.created_at;
  EXPECT_FALSE(FindStartFailure(vm).has_value());
}

}  // namespace
}  // namespace nomad_harvester::harvester
