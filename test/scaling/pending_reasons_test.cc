// SPDX-License-Identifier: Apache-2.0
//
// Why a VM does not start: what is asked, and how often.

#include "nomad_harvester/scaling/pending_reasons.h"

#include <string>

#include "pool_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kList[] = "list events";
constexpr char kPods[] = "list pods";

class PendingReasonsTest : public PoolFixture {
 protected:
  // A VM whose volumes cannot be made, and what the provisioner says about the first one.
  std::string AddStuck(const std::string& vm) {
    cluster_.FailStart(1, "ErrorUnschedulable",
                       "0/3 nodes are available: pod has unbound immediate "
                       "PersistentVolumeClaims.");
    AddUnjoined(vm);
    const std::string claim = cluster_.Vm(
        vm)["spec"]["template"]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"];
    Warn(claim, "storageclass.storage.k8s.io \"fast\" not found");
    return claim;
  }
  void Warn(const std::string& claim, const std::string& note) {
    EXPECT_TRUE(cluster_.PutObject(
        {{"apiVersion", "events.k8s.io/v1"},
         {"kind", "Event"},
         {"metadata", {{"name", claim + ".1"}, {"namespace", "nomad"}}},
         {"deprecatedLastTimestamp", base::FormatRfc3339(clock_.WallNow())},
         {"regarding",
          {{"kind", "PersistentVolumeClaim"}, {"namespace", "nomad"}, {"name", claim}}},
         {"reason", "ProvisioningFailed"},
         {"note", note},
         {"type", "Warning"}}));
  }
  void AddPod(const std::string& vm, const std::string& message) {
    EXPECT_TRUE(cluster_.PutObject(simulator::UnscheduledPod("nomad", vm, message)));
  }
  VmView ViewOf(const std::string& vm) {
    const auto observation =
        MakeObserver().Observe(context(), EmptyObservation("", "", policy_), {});
    EXPECT_THAT(observation, support::IsOk());
    for (const VmView& view : observation->vms) {
      if (view.vm->name == vm) return view;
    }
    ADD_FAILURE() << "no VM " << vm;
    return VmView{};
  }
  std::string WarningOf(const std::string& vm) { return ViewOf(vm).volume_warning; }
  std::string FailureOf(const std::string& vm) {
    return ViewOf(vm).start_failure.value_or(harvester::StartFailure{}).reason;
  }
};

TEST_F(PendingReasonsTest, C3_a_vm_whose_guest_does_not_come_has_them_after_a_minute) {
  const std::string claim = AddStuck("web-a");
  EXPECT_THAT(WarningOf("web-a"), IsEmpty());
  EXPECT_EQ(Count(kList), 0U) << "a volume that is just being made needs no reason";
  clock_.Advance(minutes(1));
  EXPECT_EQ(
      WarningOf("web-a"),
      "volume " + claim + ": ProvisioningFailed: storageclass.storage.k8s.io \"fast\" not found");
}

TEST_F(PendingReasonsTest, L7_they_are_read_once_a_minute_however_often_the_pool_is_observed) {
  const std::string claim = AddStuck("web-a");
  clock_.Advance(minutes(1));
  for (int i = 0; i < 59; ++i) {
    EXPECT_THAT(WarningOf("web-a"), HasSubstr("not found"));
    clock_.Advance(seconds(1));
  }
  EXPECT_EQ(Count(kList), 2U) << "of claims and of DataVolumes";
  Warn(claim, "the provisioner is not there");
  clock_.Advance(seconds(1));
  EXPECT_THAT(WarningOf("web-a"), EndsWith("the provisioner is not there"));
  EXPECT_EQ(Count(kList), 4U);
}

TEST_F(PendingReasonsTest, S3_nothing_is_asked_while_no_member_waits) {
  AddVm("web-a");
  cluster_.FailStart(1, "ErrorUnschedulable", "no room");
  AddUnjoined("web-b");
  cluster_.StopVm("web-b");
  clock_.Advance(minutes(10));
  EXPECT_THAT(WarningOf("web-a"), IsEmpty());
  EXPECT_THAT(WarningOf("web-b"), IsEmpty());
  EXPECT_EQ(Count(kList), 0U);
}

TEST_F(PendingReasonsTest, L7_a_token_that_may_not_list_Events_is_refused_once_an_hour) {
  AddStuck("web-a");
  clock_.Advance(minutes(1));
  Always(kList, Refused());
  for (int i = 0; i < 59; ++i) {
    EXPECT_THAT(WarningOf("web-a"), IsEmpty());
    clock_.Advance(minutes(1));
  }
  EXPECT_EQ(Count(kList), 1U);
  clock_.Advance(minutes(1));
  WarningOf("web-a");
  EXPECT_EQ(Count(kList), 2U);
  EXPECT_EQ(Logged("WARN Could not list what explains why VMs do not start"), 0U)
      << "the right is optional";
}

// KubeVirt's condition still has the message of the first attempt.
TEST_F(PendingReasonsTest, C3_a_vm_that_no_host_takes_fails_with_what_its_pod_says_now) {
  AddStuck("web-a");
  AddPod("web-a", "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.");
  EXPECT_THAT(FailureOf("web-a"), IsEmpty());
  EXPECT_EQ(Count(kPods), 0U) << "that it is unschedulable is normal for some seconds";
  clock_.Advance(seconds(20));
  EXPECT_THAT(FailureOf("web-a"), IsEmpty());
  EXPECT_EQ(Count(kPods), 1U);
  clock_.Advance(seconds(60));
  EXPECT_THAT(FailureOf("web-a"), HasSubstr("ErrorUnschedulable: 0/3 nodes are available: 3 node"));
}

TEST_F(PendingReasonsTest, C3_a_pod_that_waits_for_its_volumes_may_do_so_until_the_join_timeout) {
  AddStuck("web-a");
  AddPod("web-a", "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.");
  clock_.Advance(seconds(20));
  FailureOf("web-a");
  clock_.Advance(minutes(3));
  EXPECT_THAT(FailureOf("web-a"), IsEmpty());
}

TEST_F(PendingReasonsTest, C3_a_pod_that_waits_for_its_volumes_is_asked_about_until_it_has_them) {
  AddStuck("web-a");
  AddPod("web-a", "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.");
  const auto needs = [this] {
    const auto observation =
        MakeObserver().Observe(context(), EmptyObservation("", "", policy_), {});
    EXPECT_THAT(observation, support::IsOk());
    return NeedsPodMessage(observation->vms.at(0), *observation);
  };
  clock_.Advance(seconds(20));
  EXPECT_TRUE(needs()) << "the volumes may come, and no host take it then";
  AddPod("web-a", "0/3 nodes are available: 3 Insufficient memory.");
  clock_.Advance(seconds(20));
  EXPECT_FALSE(needs()) << "it fails for good";
}

TEST_F(PendingReasonsTest, L7_pods_are_read_every_twenty_seconds_and_once_an_hour_if_refused) {
  AddStuck("web-a");
  clock_.Advance(seconds(20));
  for (int i = 0; i < 40; ++i) {
    FailureOf("web-a");
    clock_.Advance(seconds(1));
  }
  EXPECT_EQ(Count(kPods), 2U);
  Always(kPods, Refused());
  for (int i = 0; i < 59; ++i) {
    FailureOf("web-a");
    clock_.Advance(minutes(1));
  }
  EXPECT_EQ(Count(kPods), 3U);
}

TEST_F(PendingReasonsTest,
       L7_a_pod_that_just_became_unschedulable_is_not_asked_about_although_its_vm_is_old) {
  AddStuck("web-a");
  auto observation = MakeObserver().Observe(context(), EmptyObservation("", "", policy_), {});
  ASSERT_THAT(observation, support::IsOk());
  observation->vms[0].vm.Change().created_at -= hours(1);
  PendingReasons().ReadPods(context(), vms_, logger_, &*observation);
  EXPECT_EQ(Count(kPods), 0U);
}

TEST_F(PendingReasonsTest,
       L7_a_list_of_pods_that_fails_once_is_asked_for_again_after_twenty_seconds) {
  AddStuck("web-a");
  clock_.Advance(seconds(20));
  Next(kPods, simulator::Fault::Answer(500));
  FailureOf("web-a");
  const std::size_t failed = Count(kPods);
  EXPECT_GE(failed, 1U);
  clock_.Advance(seconds(20));
  FailureOf("web-a");
  EXPECT_GT(Count(kPods), failed);
}

TEST_F(PendingReasonsTest, C3_volumes_are_not_blamed_when_it_is_not_known_whether_the_guest_runs) {
  AddStuck("web-a");
  clock_.Advance(minutes(1));
  Always("list virtualmachineinstances", Refused());
  EXPECT_THAT(WarningOf("web-a"), IsEmpty());
  EXPECT_EQ(Count(kList), 0U);
}

TEST_F(PendingReasonsTest, L7_a_server_that_hangs_costs_three_seconds_a_minute) {
  AddStuck("web-a");
  clock_.Advance(minutes(1));
  EXPECT_THAT(WarningOf("web-a"), HasSubstr("not found"));
  clock_.Advance(minutes(1));
  Always(kList, simulator::Fault::Delay(hours(1)));
  const base::MonoTime began = clock_.Now();
  EXPECT_THAT(WarningOf("web-a"), HasSubstr("not found")) << "what was read before stays";
  EXPECT_EQ(clock_.Now() - began, seconds(3));
}

}  // namespace
}  // namespace nomad_harvester::scaling
