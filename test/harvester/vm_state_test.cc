// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "nomad_harvester/harvester/virtual_machine.h"

#include "gtest/gtest.h"
#include "harvester/samples.h"

namespace nomad_harvester::harvester {
namespace {

VirtualMachine SampleVm() { return ParseVirtualMachine(SampleVmObject()); }

TEST(IsMember, holds_for_a_VM_that_we_made) { EXPECT_TRUE(IsMember(SampleVm())); }

TEST(IsMember, does_not_look_at_the_case_of_the_uuid) {
  VirtualMachine vm = SampleVm();
  vm.self = "batch-7f3k2/0B0A7D4E-4C3E-4F0C-9D5D-2F6A8F1F7C11";
  EXPECT_TRUE(IsMember(vm));
}

// A clone made in Harvester's UI copies labels and annotations, but has another name. A VM that was
// restored in place keeps its name, but may have another UUID.
TEST(IsMember, does_not_hold_for_a_copy) {
  VirtualMachine clone = SampleVm();
  clone.name = "batch-7f3k2-copy";
  EXPECT_FALSE(IsMember(clone));
  VirtualMachine restored = SampleVm();
  restored.firmware_uuid = "99999999-4c3e-4f0c-9d5d-2f6a8f1f7c11";
  EXPECT_FALSE(IsMember(restored));
}

TEST(IsMember, needs_pool_self_and_uuid) {
  VirtualMachine no_pool = SampleVm();
  no_pool.pool.clear();
  EXPECT_FALSE(IsMember(no_pool));
  VirtualMachine no_self = SampleVm();
  no_self.self.clear();
  EXPECT_FALSE(IsMember(no_self));
  VirtualMachine no_uuid = SampleVm();
  no_uuid.firmware_uuid.clear();
  no_uuid.self = "batch-7f3k2/";
  EXPECT_FALSE(IsMember(no_uuid));
  for (const char* self : {"", "batch-7f3k2", "/", "batch-7f3k2/x"}) {
    VirtualMachine vm = SampleVm();
    vm.self = self;
    EXPECT_FALSE(IsMember(vm)) << self;
  }
}

struct StoppedCase {
  const char* run_strategy;
  const char* printable_status;
  bool instance_exists;
  bool stopped;
};

TEST(IsStopped, means_no_guest_and_nothing_on_the_way_to_one) {
  const StoppedCase cases[] = {
      {"RerunOnFailure", "Stopped", false, true},
      // It has crashed, or was switched off: KubeVirt removes the instance within a second.
      {"RerunOnFailure", "Stopped", true, false},
      {"Always", "Stopped", true, false},
      {"Manual", "Stopped", true, true},  // its instance has ended, and stays
      {"Halted", "Stopped", false, true},
      {"Halted", "", false, true},
      {"Halted", "Stopping", true, false},
      {"RerunOnFailure", "", false, false},
      {"RerunOnFailure", "Starting", false, false},
      {"RerunOnFailure", "Running", true, false},
      {"RerunOnFailure", "ErrorUnschedulable", true, false},
      {"RerunOnFailure", "Unknown", true, false},
      {"Always", "CrashLoopBackOff", false, false},
  };
  for (const StoppedCase& c : cases) {
    VirtualMachine vm = SampleVm();
    vm.run_strategy = c.run_strategy;
    vm.printable_status = c.printable_status;
    vm.instance_exists = c.instance_exists;
    EXPECT_EQ(IsStopped(vm), c.stopped) << c.run_strategy << " " << c.printable_status;
  }
}

TEST(IsStopped, C8_does_not_hold_for_paused_and_migrating_VMs) {
  for (const char* status : {"Paused", "Migrating"}) {
    VirtualMachine vm = SampleVm();
    vm.printable_status = status;
    EXPECT_FALSE(IsStopped(vm)) << status;
  }
}

TEST(IsPausedOrMigrating, C17_does_not_hold_for_a_guest_that_was_paused_because_its_disk_fails) {
  VirtualMachine vm = SampleVm();
  vm.printable_status = "Paused";
  vm.conditions.resize(1);
  vm.conditions[0].type = "Paused";
  vm.conditions[0].status = "True";
  vm.conditions[0].reason = "PausedByUser";
  EXPECT_TRUE(IsPausedOrMigrating(vm));
  EXPECT_EQ(DiskFault(vm), "");
  vm.conditions[0].reason = "PausedIOError";
  vm.conditions[0].message = "VMI was paused, low-level IO error detected";
  EXPECT_FALSE(IsPausedOrMigrating(vm));
  EXPECT_EQ(DiskFault(vm), "PausedIOError: VMI was paused, low-level IO error detected");
  vm.printable_status = "Running";
  EXPECT_EQ(DiskFault(vm), "") << "it goes on";
}

// An operator who stops a VM that has run must not see it start again (rule R8).
TEST(WaitsToStart, R8_means_halted_since_its_creation) {
  VirtualMachine vm = SampleVm();
  vm.run_strategy = kHalted;
  EXPECT_FALSE(WaitsToStart(vm)) << "it replaces no VM";
  vm.replaces = Replaces{.vm = "old",
                         .uid = "u",
                         .reason = {ReplaceReason::Kind::kExpired},
                         .start = "RerunOnFailure"};
  EXPECT_TRUE(WaitsToStart(vm));
  VirtualMachine joined = vm;
  joined.joined_at = joined.created_at;
  EXPECT_FALSE(WaitsToStart(joined));
  VirtualMachine started = vm;
  started.run_strategy = "RerunOnFailure";
  EXPECT_FALSE(WaitsToStart(started)) << "by hand";
  vm.replaces->start.clear();
  EXPECT_FALSE(WaitsToStart(vm)) << "it was started, and then stopped";
}

TEST(IsRunning, C5_an_instance_that_KubeVirt_has_lost_contact_with_may_run) {
  VirtualMachineInstance instance;
  for (const char* phase : {"Running", "Unknown"}) {
    instance.phase = phase;
    EXPECT_TRUE(IsRunning(instance)) << phase;
  }
  for (const char* phase : {"", "Pending", "Scheduling", "Scheduled", "Succeeded", "Failed"}) {
    instance.phase = phase;
    EXPECT_FALSE(IsRunning(instance)) << phase;
  }
}

TEST(IsStopped, does_not_hold_for_a_VM_that_is_being_deleted) {
  VirtualMachine vm = SampleVm();
  vm.printable_status = "Stopped";
  vm.deleted_at = vm.created_at;
  EXPECT_FALSE(IsStopped(vm));
}

}  // namespace
}  // namespace nomad_harvester::harvester
