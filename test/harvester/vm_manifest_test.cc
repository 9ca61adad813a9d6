// SPDX-License-Identifier: Apache-2.0
// The whole objects: golden_test.cc.
#include <cstdint>
#include <memory>
#include <string>

#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/harvester/vm_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t kGi = std::int64_t{1024} * 1024 * 1024;

TEST(BuildVirtualMachine, sets_the_run_strategy_and_nothing_deprecated) {
  VmSpec vm_spec = SampleVmSpec();
  for (const auto& [name, strategy] : policy::kRunStrategies) {
    vm_spec.run_strategy = strategy;
    const json vm = BuildVirtualMachine(vm_spec, SampleIdentity());
    EXPECT_EQ(vm["spec"]["runStrategy"], name);
    EXPECT_EQ(vm["metadata"]["annotations"]["harvesterhci.io/vmRunStrategy"], name);
    EXPECT_FALSE(vm["spec"].contains("running"));
    EXPECT_EQ(vm["spec"].size(), 2U);
  }
}

TEST(BuildVirtualMachine, C18_is_held_from_its_creation_on) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.deletion_holds = {"vpn"};
  const json vm = BuildVirtualMachine(vm_spec, SampleIdentity());
  EXPECT_EQ(vm["metadata"]["annotations"]["nomad-harvester-autoscaler/hold-vpn"], "true");
}

TEST(BuildVirtualMachine, R8_may_be_halted_whatever_the_template_says) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.base.spec = std::make_shared<const json>(json{{"runStrategy", "Always"}});
  VmIdentity identity = SampleIdentity();
  identity.halted = true;
  EXPECT_EQ(BuildVirtualMachine(vm_spec, identity)["spec"]["runStrategy"], "Halted");
}

TEST(BuildVirtualMachine, never_lets_an_operator_override_what_we_write) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.labels = {{kPoolLabel, "theirs"}, {kManagedByLabel, "x"}, {kCreatorLabel, "x"}};
  vm_spec.annotations = {{kSelfAnnotation, "x"},
                         {"harvesterhci.io/volumeClaimTemplates", "[]"},
                         {"field.cattle.io/description", "mine"}};
  const json object = BuildVirtualMachine(vm_spec, SampleIdentity());
  const VirtualMachine vm = ParseVirtualMachine(object);
  EXPECT_EQ(vm.pool, "batch");
  EXPECT_TRUE(IsMember(vm));
  const json& labels = object["metadata"]["labels"];
  EXPECT_EQ(labels[kManagedByLabel], kManagedByValue);
  EXPECT_EQ(labels[kCreatorLabel], kManagedByValue);
  const json& annotations = object["metadata"]["annotations"];
  EXPECT_NE(annotations["harvesterhci.io/volumeClaimTemplates"], "[]");
  EXPECT_EQ(annotations["field.cattle.io/description"], "mine");
}

TEST(BuildVirtualMachine, reads_back_as_the_VM_that_was_meant) {
  const VirtualMachine vm =
      ParseVirtualMachine(BuildVirtualMachine(SampleVmSpec(), SampleIdentity()));
  EXPECT_TRUE(IsMember(vm));
  EXPECT_EQ(vm.nodes, SampleNodes());
  EXPECT_EQ(vm.join_timeout->limit, std::chrono::minutes(15));
  EXPECT_EQ(vm.claim_names.size(), 1U);
  EXPECT_TRUE(IsClaimNameOf(vm.claim_names[0], vm.name));
}

TEST(RootDiskBytes, is_10_Gi_or_what_the_image_needs_unless_told) {
  Image image = SampleImage();
  image.virtual_size = 0;
  EXPECT_THAT(RootDiskBytes(image, nullptr), IsOkAndHolds(10 * kGi));
  image.virtual_size = 10 * kGi + 1;
  EXPECT_THAT(RootDiskBytes(image, nullptr), IsOkAndHolds(10 * kGi + 1));
}

TEST(RootDiskBytes, takes_any_size_that_holds_the_image) {
  Image image = SampleImage();
  image.virtual_size = 5 * kGi;
  const std::int64_t exact = 5 * kGi;
  EXPECT_THAT(RootDiskBytes(image, &exact), IsOkAndHolds(5 * kGi));
  const std::int64_t smaller = 5 * kGi - 1;
  EXPECT_THAT(RootDiskBytes(image, &smaller),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("disk_size 5368709119"), HasSubstr("default/image-rx7kp"),
                             HasSubstr("5Gi"))));
}

}  // namespace
}  // namespace nomad_harvester::harvester
