// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "harvester/store_fixture.h"
#include "support/object_uid.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::SizeIs;
using testing::StartsWith;

class VmStoreVms : public StoreTest {
 protected:
  // Returns the VM as the API server stored it.
  json PutVm(const std::string& name) {
    json vm = SampleVmObject();
    vm["metadata"]["name"] = name;
    Put(kube::kVirtualMachines, kNs, vm);
    return FindVm(name);
  }
  json FindVm(const std::string& name) const { return Find(kube::kVirtualMachines, kNs, name); }
  absl::Status Delete(const json& vm) {
    return store_.DeleteVm(context_, kube::NameOf(vm), support::UidOf(vm),
                           kube::ResourceVersionOf(vm));
  }
  const json wanted_ = BuildVirtualMachine(SampleVmSpec(), SampleIdentity());
  const std::string name_ = SampleIdentity().name;
};

TEST_F(VmStoreVms, S3_lists_what_is_managed_in_one_request) {
  PutVm("batch-a");
  const json b = PutVm("batch-b");
  Put(kube::kVirtualMachines, kNs, {{"metadata", {{"name", "unmanaged"}}}});
  const auto seen = store_.ListManaged(context_);
  ASSERT_THAT(seen, IsOk());
  ASSERT_THAT(seen->value, SizeIs(2));
  EXPECT_EQ(seen->value[0].name, "batch-a");
  EXPECT_EQ(seen->value[1].uid, support::UidOf(b));
  EXPECT_EQ(seen->server_time, At("2026-11-21T02:03:04Z"));
  ASSERT_THAT(script_.requests(), SizeIs(1));
  EXPECT_THAT(script_.requests()[0].target,
              StartsWith("/apis/kubevirt.io/v1/namespaces/nomad/virtualmachines?"));
  EXPECT_EQ(script_.requests()[0].query.at("labelSelector"), ManagedSelector());
}

TEST_F(VmStoreVms, S3_the_versions_of_what_is_managed_are_those_of_the_list_in_its_order) {
  PutVm("batch-b");
  PutVm("batch-a");
  Put(kube::kVirtualMachines, kNs, {{"metadata", {{"name", "unmanaged"}}}});
  const auto same = [this] {
    const auto vms = store_.ListManaged(context_);
    const auto versions = store_.ListManagedVersions(context_);
    EXPECT_THAT(vms, IsOk());
    EXPECT_THAT(versions, IsOk());
    EXPECT_EQ(vms->server_time, versions->server_time);
    std::vector<VmStore::Version> of_vms;
    for (const VirtualMachine& vm : vms->value) of_vms.push_back({vm.uid, vm.resource_version});
    EXPECT_THAT(of_vms, SizeIs(2));
    EXPECT_EQ(of_vms, versions->value);
    return versions->value;
  };
  const auto before = same();
  const auto& request = script_.requests().back();
  EXPECT_EQ(request.query.at("labelSelector"), ManagedSelector());
  Touch(kube::kVirtualMachines, kNs, "batch-b");
  const auto after = same();
  EXPECT_EQ(before[0], after[0]);
  EXPECT_NE(before[1], after[1]);
}

TEST_F(VmStoreVms, lists_every_VM_of_the_namespace_when_asked_for_all) {
  PutVm("batch-a");
  Put(kube::kVirtualMachines, kNs, {{"metadata", {{"name", "unmanaged"}}}});
  const auto seen = store_.ListAll(context_);
  ASSERT_THAT(seen, IsOk());
  EXPECT_THAT(seen->value, SizeIs(2));
  EXPECT_FALSE(script_.requests()[0].query.contains("labelSelector"));
}

// A list must drop nothing that ParseVirtualMachine uses.
TEST_F(VmStoreVms, a_list_and_a_GET_give_the_same_VM) {
  json vm = SampleVmObject();
  json& spec = vm["spec"]["template"]["spec"];
  spec["terminationGracePeriodSeconds"] = 77;
  spec["volumes"].push_back({{"name", "x"}, {"dataVolume", {{"name", "shared"}}}});
  spec["volumes"].push_back(
      {{"name", "y"},
       {"cloudInitConfigDrive", {{"userData", "big"}, {"secretRef", {{"name", "more"}}}}}});
  json& annotations = vm["metadata"]["annotations"];
  annotations[kScaleInAnnotation] = ToAnnotation(SampleMark());
  annotations[kNodeIdAnnotation] = "node-1";
  annotations[kJoinedAtAnnotation] = "2026-11-21T02:05:00Z";
  annotations["harvesterhci.io/insufficient-resource-quota"] = "cpu";
  vm["status"]["volumeSnapshotStatuses"] = json::array({{{"name", "disk-0"}}});
  Put(kube::kVirtualMachines, kNs, vm);
  const auto listed = store_.ListManaged(context_);
  const auto got = store_.Get(context_, name_);
  ASSERT_THAT(listed, IsOk());
  ASSERT_THAT(got, IsOk());
  const VirtualMachine& a = listed->value.at(0);
  const VirtualMachine& b = got->value;
  EXPECT_EQ(a.firmware_uuid, b.firmware_uuid);
  EXPECT_TRUE(IsMember(a));
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.annotations, b.annotations);
  EXPECT_EQ(a.mark, b.mark);
  EXPECT_TRUE(a.mark.has_value());
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.joined_at, b.joined_at);
  EXPECT_EQ(a.run_strategy, b.run_strategy);
  EXPECT_EQ(a.printable_status, b.printable_status);
  EXPECT_TRUE(a.ready);
  EXPECT_TRUE(a.instance_exists);
  EXPECT_EQ(a.quota_halt, "cpu");
  EXPECT_EQ(a.conditions.size(), b.conditions.size());
  EXPECT_EQ(a.termination_grace, std::chrono::seconds(77));
  EXPECT_THAT(a.claim_names, ElementsAre("batch-7f3k2-disk-0-x2b4c", "shared"));
  EXPECT_EQ(a.claim_names, b.claim_names);
}

TEST_F(VmStoreVms, lists_many_in_one_request) {
  for (int i = 0; i < 250; ++i) PutVm("batch-" + std::to_string(1000 + i));
  const auto seen = store_.ListManaged(context_);
  ASSERT_THAT(seen, IsOk());
  EXPECT_THAT(seen->value, SizeIs(250));
  EXPECT_THAT(script_.requests(), SizeIs(1));
}

TEST_F(VmStoreVms, gets_a_VM_with_the_time_of_the_server) {
  PutVm("batch-a");
  const auto seen = store_.Get(context_, "batch-a");
  ASSERT_THAT(seen, IsOk());
  EXPECT_EQ(seen->value.name, "batch-a");
  EXPECT_EQ(seen->server_time, At("2026-11-21T02:03:04Z"));
  EXPECT_THAT(store_.Get(context_, "batch-x"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(VmStoreVms, lists_and_gets_instances) {
  Put(kube::kVirtualMachineInstances, kNs,
      {{"metadata", {{"name", "batch-a"}}},
       {"status",
        {{"phase", "Running"}, {"interfaces", {{{"name", "nic-0"}, {"ipAddress", "10.0.0.5"}}}}}}});
  const auto instances = store_.ListInstances(context_);
  ASSERT_THAT(instances, IsOk());
  ASSERT_THAT(*instances, SizeIs(1));
  const auto instance = store_.GetInstance(context_, "batch-a");
  ASSERT_THAT(instance, IsOk());
  for (const VirtualMachineInstance& found : {instances->at(0), *instance}) {
    EXPECT_EQ(found.name, "batch-a");
    EXPECT_EQ(found.phase, "Running");
    EXPECT_THAT(found.addresses, ElementsAre("10.0.0.5"));
  }
  EXPECT_THAT(store_.GetInstance(context_, "batch-b"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(VmStoreVms, annotates_under_a_precondition_and_touches_nothing_else) {
  const json before = PutVm("batch-a");
  const auto vm =
      store_.Annotate(context_, "batch-a", kube::ResourceVersionOf(before),
                      {{kNodeIdAnnotation, "node-1"}, {kActionIdAnnotation, std::nullopt}});
  ASSERT_THAT(vm, IsOk());
  EXPECT_EQ(vm->joined_node_id, "node-1");
  EXPECT_EQ(vm->action_id, "");
  EXPECT_NE(vm->resource_version, kube::ResourceVersionOf(before));
  json expected = before;
  expected["metadata"]["annotations"][kNodeIdAnnotation] = "node-1";
  expected["metadata"]["annotations"].erase(kActionIdAnnotation);
  expected["metadata"]["resourceVersion"] = vm->resource_version;
  EXPECT_EQ(FindVm("batch-a"), expected);
  EXPECT_THAT(script_.requests(), SizeIs(1));
}

TEST_F(VmStoreVms, does_not_annotate_a_VM_that_has_changed) {
  const json before = PutVm("batch-a");
  Touch(kube::kVirtualMachines, kNs, "batch-a");
  const auto vm = store_.Annotate(context_, "batch-a", kube::ResourceVersionOf(before),
                                  {{kNodeIdAnnotation, "node-1"}});
  EXPECT_THAT(vm, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(kube::IsConflict(vm.status()));
  EXPECT_THAT(store_.Annotate(context_, "batch-a", "", {{kNodeIdAnnotation, "node-1"}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(FindVm("batch-a")["metadata"]["annotations"].contains(kNodeIdAnnotation));
}

TEST_F(VmStoreVms, C3_creates_a_VM_strictly) {
  const auto vm = store_.CreateVm(context_, wanted_);
  ASSERT_THAT(vm, IsOk());
  EXPECT_TRUE(IsMember(vm->value));
  EXPECT_NE(vm->value.uid, "");
  ASSERT_THAT(script_.requests(), SizeIs(1));
  EXPECT_EQ(script_.requests()[0].query.at("fieldValidation"), "Strict");
  EXPECT_EQ(script_.requests()[0].effect, http::Effect::kWrite);
}

TEST_F(VmStoreVms, C3_a_repetition_after_a_lost_reply_finds_the_same_VM) {
  script_.Next("create", Fault::DropReply());
  EXPECT_THAT(store_.CreateVm(context_, wanted_), StatusIs(absl::StatusCode::kUnavailable));
  const std::string uid = FindVm(name_)["metadata"]["uid"];
  const auto vm = store_.CreateVm(context_, wanted_);
  ASSERT_THAT(vm, IsOk());
  EXPECT_EQ(vm->value.uid, uid);
  EXPECT_EQ(vm->server_time, At("2026-11-21T02:03:04Z"));
}

TEST_F(VmStoreVms, C3_a_VM_that_is_not_this_very_one_stays_a_refusal) {
  const std::vector<std::pair<const char*, json>> changes = {
      {kActionIdAnnotation, "another action"},
      {kActionIdAnnotation, nullptr},
      {kSelfAnnotation, name_ + "/another-uuid"},
      {kSelfAnnotation, nullptr}};
  for (const auto& [key, value] : changes) {
    json other = wanted_;
    other["metadata"]["annotations"].merge_patch({{key, value}});
    Put(kube::kVirtualMachines, kNs, other);
    const auto vm = store_.CreateVm(context_, wanted_);
    EXPECT_THAT(vm, StatusIs(absl::StatusCode::kAlreadyExists)) << key << value;
  }
}

TEST_F(VmStoreVms, C10_a_VM_that_came_and_went_between_two_tries_stays_a_refusal) {
  PutVm(name_);
  script_.Before("get", [this] { Remove(kube::kVirtualMachines, kNs, name_); });
  EXPECT_THAT(store_.CreateVm(context_, wanted_), StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(VmStoreVms, C10_a_VM_of_ours_that_is_being_deleted_is_reported_as_such) {
  PutTerminating(kube::kVirtualMachines, kNs, wanted_);
  const auto vm = store_.CreateVm(context_, wanted_);
  ASSERT_THAT(vm, IsOk());
  EXPECT_TRUE(IsTerminating(vm->value));
}

TEST_F(VmStoreVms, passes_on_a_refusal_and_a_read_back_that_fails) {
  script_.Next("create", Refusal(422, "Invalid", "no such storage class"));
  EXPECT_THAT(store_.CreateVm(context_, wanted_), StatusIs(absl::StatusCode::kInvalidArgument));
  PutVm(name_);
  script_.Next("get", Refusal(503, "ServiceUnavailable", "later"));
  EXPECT_THAT(store_.CreateVm(context_, wanted_), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(VmStoreVms, C13_a_try_stores_nothing_and_is_a_read) {
  EXPECT_THAT(store_.DryRunCreateVm(context_, wanted_), IsOk());
  EXPECT_EQ(FindVm(name_), nullptr);
  ASSERT_THAT(script_.requests(), SizeIs(1));
  EXPECT_EQ(script_.requests()[0].query.at("dryRun"), "All");
  EXPECT_EQ(script_.requests()[0].effect, http::Effect::kRead);
  script_.Next("try", Refusal(422, "Invalid", "x"));
  EXPECT_THAT(store_.DryRunCreateVm(context_, wanted_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(VmStoreVms, C5_deletes_by_uid_and_resourceVersion_in_the_foreground) {
  const json vm = PutVm("batch-a");
  EXPECT_THAT(Delete(vm), IsOk());
  ASSERT_THAT(script_.requests(), SizeIs(1));
  const json options = json::parse(script_.requests()[0].body);
  EXPECT_EQ(options["preconditions"],
            json({{"uid", support::UidOf(vm)}, {"resourceVersion", kube::ResourceVersionOf(vm)}}));
  EXPECT_EQ(options["propagationPolicy"], "Foreground");
  const auto seen = store_.Get(context_, "batch-a");
  ASSERT_THAT(seen, IsOk()) << "it stays visible until its guest is gone";
  EXPECT_TRUE(IsTerminating(seen->value));
  server_clock_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(FindVm("batch-a"), nullptr);
}

TEST_F(VmStoreVms, C5_does_not_delete_a_VM_that_has_changed_or_was_recreated) {
  const json before = PutVm("batch-a");
  Touch(kube::kVirtualMachines, kNs, "batch-a");
  const absl::Status changed = Delete(before);
  EXPECT_THAT(changed, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(kube::IsConflict(changed));
  Remove(kube::kVirtualMachines, kNs, "batch-a");
  json anew = PutVm("batch-a");
  anew["metadata"]["uid"] = before["metadata"]["uid"];
  EXPECT_TRUE(kube::IsConflict(Delete(anew)));
  EXPECT_NE(FindVm("batch-a"), nullptr);
}

TEST_F(VmStoreVms, C5_never_sends_a_DELETE_without_both_preconditions) {
  const json vm = PutVm("batch-a");
  EXPECT_THAT(store_.DeleteVm(context_, "batch-a", "", kube::ResourceVersionOf(vm)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_.DeleteVm(context_, "batch-a", support::UidOf(vm), ""),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(script_.requests(), SizeIs(0));
}

TEST_F(VmStoreVms, a_VM_that_no_longer_exists_counts_as_deleted) {
  EXPECT_THAT(store_.DeleteVm(context_, "batch-a", "u", "1"), IsOk());
}

TEST_F(VmStoreVms, sends_nothing_for_a_cancelled_call) {
  runtime::CancelSource cancel(context_);
  cancel.Cancel(runtime::CancelReason::kClient);
  EXPECT_THAT(store_.ListManaged(cancel.context()), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(store_.CreateVm(cancel.context(), wanted_), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(FindVm(name_), nullptr);
}

}  // namespace
}  // namespace nomad_harvester::harvester
