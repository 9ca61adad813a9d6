// SPDX-License-Identifier: Apache-2.0
//
// What a refused or failing step of one object may cost (docs/behaviour.md, "Liveness"), in
// simulated time and in requests.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"

#include "costs.h"
#include "support/status_matchers.h"
#include "trouble.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using support::StatusIs;
using ::testing::Contains;
using ::testing::HasSubstr;

const Act kJoin{.verb = "patch", .resource = "virtualmachines", .aspect = "joined-at"};
const Act kMark{.verb = "patch", .resource = "virtualmachines", .aspect = "mark"};
const Act kUnmark{.verb = "patch", .resource = "virtualmachines", .aspect = "un-mark"};
const Act kDeleteVm{.verb = "delete", .resource = "virtualmachines"};
const Act kDeleteClaim{.verb = "delete", .resource = "persistentvolumeclaims"};

// The VM stands as if it had never been chosen, except for the record of the refusal.
void ExpectRolledBackAfterRefusal(Harness& h, const std::string& vm) {
  const json object = h.cluster.Vm(vm);
  ASSERT_FALSE(object.is_null()) << h.Transcript();
  EXPECT_FALSE(IsMarked(object));
  EXPECT_NE(AnnotationOf(object, Key("removal-undone")), "");
  EXPECT_TRUE(IsEligible(h.cluster.Node(h.NodeOf(vm))));
}

TEST(Join, L1_a_refused_join_is_told_and_holds_up_no_other_vm) {
  Harness h;
  Trouble refused(h, kJoin, Denied());
  refused.LimitToFirstVm();
  EXPECT_TRUE(h.Accept(2).ok());
  h.Tick(minutes(2));
  EXPECT_THAT(AnnotationOf(h.Leases().at(0), Key("last-error")),
              HasSubstr("a backup is in progress"))
      << "L3";
  h.Tick(minutes(5));
  const Scaled beside = AcceptMeasured(h, 3);
  EXPECT_TRUE(beside.outcome.ok()) << beside.outcome << "\n" << h.Transcript();
  EXPECT_LE(beside.lasted, minutes(1)) << "L1";
  h.Tick(minutes(1));
  EXPECT_EQ(h.log->Count("A new VM is ready"), 2U) << h.Transcript();
  refused.End();
  h.WaitUntilReady();
  h.CheckAtRest(3);
}

TEST(Purge, L4_a_purge_that_never_succeeds_holds_no_scale_and_is_counted) {
  for (const Answer& answer : {Forbidden(), ServerError()}) {
    SCOPED_TRACE(answer.name);
    Harness h;
    ASSERT_TRUE(h.Scale(2).ok());
    Trouble refused(h, kPurge, answer);
    const Scaled in = AcceptMeasured(h, 1);
    EXPECT_TRUE(in.outcome.ok()) << in.outcome;
    EXPECT_LE(in.lasted, minutes(1));
    h.Settle();
    ASSERT_GT(refused.answers(), 0);
    EXPECT_GT(h.log->Count(refused.vm(), log::Level::kWarn), 0U) << h.Transcript();
    EXPECT_EQ(h.Status()->meta.at("harvester.leftovers"), "1");
    EXPECT_LE(RequestsAtRest(h, minutes(20)), RestBudget(minutes(20), 1)) << "L7";
    refused.End();
    h.Tick(minutes(12));
    EXPECT_TRUE(h.cluster.Node(refused.vm()).is_null());
    h.CheckAtRest(1);
  }
}

TEST(Purge, L7_what_fails_for_an_hour_is_tried_once_in_ten_minutes) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  Trouble refused(h, kPurge, Forbidden());
  ASSERT_TRUE(h.Scale(1).ok());
  h.Tick(minutes(75));
  const int before = refused.answers();
  h.Tick(minutes(40));
  EXPECT_GE(refused.answers() - before, 3);
  EXPECT_LE(refused.answers() - before, 6);
  refused.End();
  h.Tick(minutes(12));
  h.CheckAtRest(1);
}

// Refused, or accepted and ignored: by a webhook or a program that answers 200 and does nothing.
class Standing : public testing::TestWithParam<Answer> {
 protected:
  // Scales three VMs to one while the act is answered so for one of them, which stays.
  void ExpectRolledBackAlone(Harness& h, Trouble& trouble) {
    trouble.LimitToFirstVm();
    const base::MonoTime begun = h.clock.Now();
    const Scaled in = ScaleMeasured(h, 1);
    EXPECT_FALSE(in.outcome.ok());
    h.Settle();  // the refusal of a drain ends the Scale itself
    EXPECT_THAT(in.outcome.ToString(), HasSubstr(trouble.vm()));
    if (is_ignored_) {
      EXPECT_THAT(in.outcome.ToString(), HasSubstr("accepted without effect"));
    }
    EXPECT_LE(h.clock.Now() - begun, minutes(3));
    EXPECT_LE(trouble.answers(), 9) << "L2: it backs off";
    EXPECT_EQ(h.VmNames().size(), 2U) << "the other victim is removed";
    h.WaitUntilReady();
    ExpectRolledBackAfterRefusal(h, trouble.vm());
  }

  const bool is_ignored_ = GetParam().name == Ignored().name;
};

TEST_P(Standing, L3_a_vm_whose_deletion_does_not_succeed_is_rolled_back_alone_and_goes_last) {
  Harness h;
  ASSERT_TRUE(h.Scale(3).ok());
  Trouble trouble(h, kDeleteVm, GetParam());
  ExpectRolledBackAlone(h, trouble);
  const Scaled again = ScaleMeasured(h, 1);
  EXPECT_TRUE(again.outcome.ok()) << again.outcome;
  EXPECT_LE(again.lasted, minutes(1));
  EXPECT_EQ(h.VmNames(), std::vector<std::string>{trouble.vm()}) << "C8: it goes last";
  h.CheckAtRest(1);
}

TEST_P(Standing, L3_a_vm_whose_drain_does_not_succeed_is_rolled_back_alone) {
  Harness h;
  ASSERT_TRUE(h.Scale(3).ok());
  h.RunJob(3);
  Trouble trouble(h, kDrain, GetParam());
  ExpectRolledBackAlone(h, trouble);
  h.CheckAtRest(2);
}

TEST_P(Standing, C14_an_un_marking_that_does_not_succeed_counts_and_holds_nobody_else) {
  Harness h;
  const std::string marked = h.LeaveOneDraining();
  Trouble trouble(h, kUnmark, is_ignored_ ? GetParam() : Denied());
  ASSERT_TRUE(h.cluster.CancelDrain(h.NodeOf(marked), true));
  h.Tick(minutes(2));
  EXPECT_GT(trouble.answers(), 0) << "it is due to be rolled back";
  const Scaled out = AcceptMeasured(h, 3);
  EXPECT_TRUE(out.outcome.ok()) << out.outcome << "\n" << h.Transcript();
  EXPECT_LE(out.lasted, minutes(1));
  EXPECT_LE(out.requests, 200);
  h.Tick(minutes(1));
  EXPECT_EQ(h.VmNames().size(), 3U);
  EXPECT_LE(RequestsAtRest(h, minutes(20)), RestBudget(minutes(20), 1)) << "L7";
  h.HangDrains(false);
  trouble.End();
  h.Converge(3);
  h.CheckAtRest(3);
}

INSTANTIATE_TEST_SUITE_P(Liveness, Standing, testing::Values(Forbidden(), Ignored()),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "refused" : "ignored");
                         });

// A webhook keeps the run strategy of a VM that is being deleted.
TEST(Halt, L2_one_that_is_undone_backs_off_and_holds_up_no_growth) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  ASSERT_TRUE(h.cluster.HangDeletion(h.VmNames()[0]));
  Trouble ignored(h, {.verb = "patch", .resource = "virtualmachines", .aspect = "other"},
                  Ignored());
  EXPECT_TRUE(h.Accept(0).ok());
  h.Tick(minutes(2));
  ASSERT_GT(ignored.answers(), 0) << h.Transcript();
  const Scaled out = AcceptMeasured(h, 1);
  EXPECT_TRUE(out.outcome.ok()) << out.outcome << h.Transcript();
  EXPECT_LE(out.lasted, minutes(1)) << "L1";
  h.Tick(minutes(1));
  EXPECT_EQ(h.log->Count("A new VM is ready"), 3U);
  const int before = ignored.answers();
  EXPECT_LE(RequestsAtRest(h, minutes(20)), RestBudget(minutes(20), 1)) << "L7";
  EXPECT_LE(ignored.answers() - before, 25) << "one in a round";
}

TEST(Claims, L4_a_volume_of_a_former_vm_that_cannot_be_deleted_never_concerns_a_scale) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  ASSERT_TRUE(h.cluster.PutObject(FormerClaim()));
  Trouble refused(h, kDeleteClaim, Invalid());
  h.Restart();
  h.Tick(minutes(1));
  EXPECT_GT(refused.answers(), 0) << "the first Status of a process looks for volumes";
  const Scaled in = AcceptMeasured(h, 1);
  EXPECT_TRUE(in.outcome.ok()) << in.outcome << "\n" << h.Transcript();
  EXPECT_LE(in.lasted, minutes(1));
  h.Settle();
  EXPECT_LE(RequestsAtRest(h, minutes(20)), RestBudget(minutes(20), 1)) << "L7";
  refused.End();
  h.Tick(minutes(12));
  h.CheckAtRest(1);
}

TEST(Claims, C2_without_the_right_to_list_volumes_a_removal_is_refused_before_any_effect) {
  Harness h;
  h.Reach(1);
  h.cluster.Forbid("list", "persistentvolumeclaims");
  const Scaled in = ScaleMeasured(h, 0);
  EXPECT_EQ(in.outcome.code(), absl::StatusCode::kPermissionDenied) << in.outcome;
  EXPECT_LE(in.lasted, seconds(10));
  EXPECT_FALSE(IsMarked(h.cluster.Vm(h.VmNames().at(0))));
  EXPECT_TRUE(IsEligible(h.cluster.Node(h.NodeOf(h.VmNames().at(0)))));
  h.cluster.AllowAll();
  h.CheckAtRest(1);
}

// The Lease names the VM, but whoever may write the Lease could write any name there.
TEST(Claims, C10_an_unlabelled_volume_that_only_the_lease_leads_to_is_left_to_harvester) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  json claim = h.Claims().at(0);
  h.ScaleAndDieAt(0, "delete", "virtualmachines");
  h.clock.Advance(minutes(1));
  ASSERT_TRUE(h.VmNames().empty());
  claim["metadata"].erase("labels");
  ASSERT_TRUE(h.cluster.PutObject(claim));
  h.Restart();
  h.Tick(minutes(3));
  EXPECT_EQ(h.Claims().size(), 1U);
}

TEST(CancelRemovals, L6_a_conflict_is_retried_and_nothing_is_made_in_its_place) {
  Harness h;
  const std::string marked = h.LeaveOneDraining();
  const std::vector<std::string> before = h.VmNames();
  Trouble conflict(h, kUnmark, Conflict());
  conflict.LimitTo(1);
  const Scaled out = ScaleMeasured(h, 4);
  EXPECT_TRUE(out.outcome.ok()) << out.outcome << "\n" << h.Transcript();
  EXPECT_EQ(conflict.answers(), 1);
  EXPECT_LE(out.lasted, minutes(2));
  EXPECT_THAT(h.VmNames(), ::testing::IsSupersetOf(before));
  EXPECT_EQ(h.VmNames().size(), 4U);
  h.HangDrains(false);
  h.WaitUntilReady();
  h.CheckAtRest(4);
}

TEST(CancelRemovals, L6_one_without_an_outcome_ends_the_scale_and_is_finished_once_nomad_is_back) {
  Harness h;
  const std::string marked = h.LeaveOneDraining();
  bool away = false;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (away || !IsOfKind(ActOf(request, h.cluster), kUnmark)) return Fault::None();
    away = true;
    return Fault::BeforeReply([&h] {
      h.cluster.SetNomadReachable(false);
      h.clock.After(minutes(2), [&h] { h.cluster.SetNomadReachable(true); });
    });
  });
  const Scaled out = AcceptMeasured(h, 3);
  ASSERT_TRUE(away);
  EXPECT_TRUE(absl::IsUnavailable(out.outcome)) << out.outcome << "\n" << h.Transcript();
  EXPECT_LE(out.lasted, seconds(20));
  EXPECT_EQ(h.VmNames().size(), 2U) << "nothing is made in its place";
  h.Tick(minutes(3));
  const json node = h.cluster.Node(h.NodeOf(marked));
  EXPECT_FALSE(IsDraining(node));
  EXPECT_TRUE(IsEligible(node));
  h.HangDrains(false);
  h.WaitUntilReady();
  h.CheckAtRest(2);
}

// Leaves a pool of three VMs of which one is being removed, and Scale(3) wants it back.
class RefusedCancellation : public ::testing::Test {
 protected:
  RefusedCancellation() {
    h_.Reach(3);
    h_.RunJob(3);
    h_.HangDrains();
    EXPECT_TRUE(h_.Accept(2).ok());
    refused_.emplace(h_, kUnmark, Denied());
    EXPECT_FALSE(h_.Accept(3).ok());
    h_.Tick(minutes(2));
  }

  int Marked() {
    const std::vector<json> vms = h_.Vms();
    return static_cast<int>(std::count_if(vms.begin(), vms.end(), &IsMarked));
  }

  Harness h_;
  std::optional<Trouble> refused_;
};

TEST_F(RefusedCancellation, I2_a_scale_in_lets_that_removal_go_on_and_counts_it) {
  EXPECT_TRUE(h_.Accept(1).ok());
  EXPECT_EQ(Marked(), 2) << h_.Transcript();
  h_.HangDrains(false);
  h_.Tick(minutes(5));
  EXPECT_EQ(Marked(), 0);
  EXPECT_EQ(h_.VmNames().size(), 1U) << h_.Transcript();
  refused_->End();
  h_.CheckAtRest(1);
}

TEST_F(RefusedCancellation, C14_a_removal_that_goes_on_was_agreed_to_before) {
  scaling::RemovalConsent consent;
  for (const json& vm : h_.Vms()) {
    if (!IsMarked(vm)) consent.vms.insert(NameOf(vm));
  }
  EXPECT_TRUE(h_.Accept(1, "", consent).ok()) << h_.Transcript();
  EXPECT_EQ(Marked(), 2);
}

TEST_F(RefusedCancellation, C14_growth_does_not_take_it_for_granted) {
  EXPECT_THAT(h_.Accept(3), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("counts although it is marked for removal")));
  EXPECT_THAT(AnnotationOf(h_.Leases().at(0), Key("last-error")), HasSubstr("marked for removal"));
}

TEST_F(RefusedCancellation, L6_growth_beside_it_leaves_it_cancelled) {
  EXPECT_TRUE(h_.Accept(4).ok()) << h_.Transcript();
  refused_->End();
  h_.HangDrains(false);
  h_.Tick(minutes(5));
  EXPECT_EQ(Marked(), 0);
  EXPECT_EQ(h_.VmNames().size(), 4U) << h_.Transcript();
  h_.WaitUntilReady();
  h_.CheckAtRest(4);
}

TEST(Deletion, C12_one_that_is_ignored_backs_off_so_that_its_node_is_not_drained_over_and_over) {
  Harness h;
  h.Reach(1);
  h.RunJob(1);
  Trouble ignored(h, kDeleteVm, Ignored());
  int accepted = 0;
  for (int i = 0; i < 360; ++i) {
    const auto status = h.Status();
    ASSERT_TRUE(status.ok());
    if (status->ready && status->count == 1) accepted += h.Accept(0).ok() ? 1 : 0;
    h.Tick(seconds(10));
  }
  EXPECT_GT(accepted, 1);
  EXPECT_LE(accepted, 8) << "in an hour";
  ignored.End();
}

TEST(Mark, L5_a_victim_that_is_protected_at_the_last_moment_is_replaced) {
  Harness h;
  ASSERT_TRUE(h.Scale(3).ok());
  std::string protected_vm;
  h.OnEachRequest([&](const RequestInfo& request) {
    if (protected_vm.empty() && IsOfKind(ActOf(request, h.cluster), kMark)) {
      protected_vm = request.name;
      h.cluster.EditAnnotation(protected_vm, Key("protect"), "true");
    }
  });
  const Scaled in = ScaleMeasured(h, 2);
  EXPECT_TRUE(in.outcome.ok()) << in.outcome << "\n" << h.Transcript();
  EXPECT_LE(in.lasted, minutes(1));
  EXPECT_THAT(h.VmNames(), Contains(protected_vm));
  h.CheckAtRest(2);
}

// Lists have no meta: the node is read in full before the mark.
TEST(Mark, C7_a_victim_whose_node_is_protected_by_its_meta_is_replaced_before_its_mark) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  const std::string vm = h.VmNames()[0];
  ASSERT_TRUE(h.cluster.ReRegister(
      h.NodeOf(vm), [](simulator::NodeSpec& node) { node.meta["harvester_protect"] = "true"; }));
  ASSERT_TRUE(h.cluster.EditAnnotation(vm, Key("delete-first"), "true"));
  h.WaitUntilReady();
  const Scaled in = ScaleMeasured(h, 1);
  EXPECT_TRUE(in.outcome.ok()) << in.outcome << "\n" << h.Transcript();
  EXPECT_THAT(h.VmNames(), ::testing::ElementsAre(vm));
  h.CheckAtRest(1);
}

TEST(Mark, L5_a_conflict_is_read_again_and_costs_no_back_off) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  Trouble conflict(h, kMark, Conflict());
  conflict.LimitTo(1);
  const Scaled in = ScaleMeasured(h, 1);
  EXPECT_TRUE(in.outcome.ok()) << in.outcome << "\n" << h.Transcript();
  EXPECT_EQ(conflict.answers(), 1);
  EXPECT_LE(in.lasted, minutes(1));
  EXPECT_TRUE(h.Scale(0).ok());
  h.CheckAtRest(0);
}

// In nanoseconds, of the drain of a removal under that policy.
std::int64_t PostedDeadline(const std::string& node_drain_deadline) {
  Harness h;
  h.policy["node_drain_deadline"] = node_drain_deadline;
  EXPECT_TRUE(h.Scale(1).ok());
  std::vector<std::int64_t> posted;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (!IsOfKind(ActOf(request, h.cluster), kDrain)) return Fault::None();
    const auto body = base::ParseJson(request.body, "the drain");
    posted.push_back(base::GetInt((*body)["DrainSpec"], "Deadline"));
    return Fault::None();
  });
  EXPECT_TRUE(h.Scale(0).ok()) << h.Transcript();
  EXPECT_EQ(posted.size(), 1U);
  return posted.empty() ? 42 : posted[0];
}

TEST(Deadline, C9_zero_means_none_and_a_negative_one_means_now) {
  EXPECT_EQ(PostedDeadline("0"), 0);
  EXPECT_LT(PostedDeadline("-1s"), 0);
  EXPECT_GT(PostedDeadline("10m"), std::chrono::nanoseconds(minutes(9)).count());
}

// The deadline and its grace have passed before the next process may act.
TEST(Deadline, C9_a_timed_drain_that_was_never_posted_is_rolled_back_at_once) {
  Harness h;
  h.policy["node_drain_deadline"] = "5s";
  ASSERT_TRUE(h.Scale(2).ok());
  h.RunJob(2);
  h.ScaleAndDieAt(1, "patch", "virtualmachines");
  h.clock.Advance(seconds(30));
  h.Restart();
  EXPECT_LE(RequestsAtRest(h, minutes(1)), 80) << h.Transcript();
  for (const json& vm : h.Vms()) EXPECT_FALSE(IsMarked(vm)) << NameOf(vm);
  const auto settled = h.Status();
  EXPECT_EQ(RequestsAtRest(h, minutes(5)), RestBudget(minutes(5), 0)) << "L7";
  EXPECT_EQ(h.Status()->meta, settled->meta) << "L2: no event without an effect";
  const Scaled in = ScaleMeasured(h, 1);
  EXPECT_TRUE(in.outcome.ok()) << in.outcome << "\n" << h.Transcript();
  EXPECT_LE(in.lasted, minutes(1));
  h.CheckAtRest(1);
}

}  // namespace
}  // namespace nomad_harvester::scenario
