// SPDX-License-Identifier: Apache-2.0
#include "drivers/acceptance.h"

#include <algorithm>

#include "nomad_harvester/scaling/replacement.h"

#include "pool_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using absl::StatusCode;
using simulator::Fault;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class AcceptanceTest : public PoolFixture {
 protected:
  // The writes of a Scale whose action the Lease holds.
  absl::Status Run(ScalePlan plan, const std::function<void()>& meanwhile = {}) {
    reconciler_.emplace(Deps(), policy_);
    if (!plan.create.empty()) creation_ = PrepareCreation();
    plan_ = std::move(plan);
    action_deps_.call = "act";
    acceptance_.emplace(action_deps_, *reconciler_, plan_, creation_.ok() ? &*creation_ : nullptr);
    auto first = reconciler_->Observe(context());
    EXPECT_THAT(first, IsOk());
    if (meanwhile) meanwhile();
    Forget();
    return acceptance_->Run(context().WithTimeout(minutes(1)), *std::move(first));
  }
  ScalePlan ToRemove(const Strings& vms, const Strings& reserve = {}) {
    ScalePlan plan{.direction = Direction::kIn};
    for (const std::string& vm : vms) plan.remove.push_back({vm, NodeOf(vm), "newest"});
    for (const std::string& vm : reserve) plan.reserve.push_back({vm, NodeOf(vm), "newest"});
    return plan;
  }
  static ScalePlan ToMake(const Strings& vms, const std::string& action = "act") {
    ScalePlan plan{.direction = Direction::kOut};
    for (const std::string& vm : vms) plan.create.push_back({vm, action});
    return plan;
  }
  // Makes web-b, once the removal of web-a, as the Lease says, is cancelled.
  ScalePlan ToMakeInstead() {
    PoolRecord record = lease_.record();
    record.action->cancel = {"web-a"};
    Store(record);
    ScalePlan plan = ToMake({"web-b"});
    plan.cancel_removals = {"web-a"};
    return plan;
  }
  std::set<std::string> Failures() const {
    std::set<std::string> causes;
    for (const auto& [cause, action] : troubles_.unrecorded.failures) causes.insert(cause);
    return causes;
  }
  // The VMs that were made.
  std::set<std::string> Made() const { return troubles_.unrecorded.made; }
  Strings Writes() const {
    Strings writes = Effects();
    std::erase(writes, "patch leases");
    return writes;
  }

  const PoolDependencies deps_ = Deps();
  ScalePlan plan_;
  std::optional<Reconciler> reconciler_;
  PoolDependencies action_deps_ = Deps();
  std::optional<Acceptance> acceptance_;
  absl::StatusOr<CreationPlan> creation_ = base::Unavailable("none");
};

TEST_F(AcceptanceTest, C16_a_growth_is_accepted_once_its_vms_are_seen) {
  HoldLease({"web-a", "web-b"});
  const base::MonoTime begun = clock_.Now();
  EXPECT_THAT(Run(ToMake({"web-a", "web-b"})), IsOk());
  EXPECT_EQ(Writes(), (Strings{"create secrets", "create virtualmachines", "create secrets",
                               "create virtualmachines", "patch secrets", "patch secrets"}));
  EXPECT_LT(clock_.Now() - begun, seconds(1)) << "it does not wait for their nodes";
  EXPECT_THAT(Made(), ElementsAre("web-a", "web-b"));
  EXPECT_THAT(Failures(), IsEmpty());
}

TEST_F(AcceptanceTest, C16_a_removal_is_accepted_once_its_drain_is_seen) {
  AddNamed({"web-a"});
  cluster_.HangDrain(NodeOf("web-a"), true);
  EXPECT_THAT(Run(ToRemove({"web-a"})), IsOk());
  EXPECT_EQ(Writes(), (Strings{"patch virtualmachines", "update drain"}));
  EXPECT_EQ(Logged("INFO Marked a VM for removal"), 1U);
}

TEST_F(AcceptanceTest, C3_a_creation_without_an_answer_is_repeated_with_its_name) {
  HoldLease({"web-a"});
  Next("create virtualmachines", Fault::Answer(500), 3);
  EXPECT_THAT(Run(ToMake({"web-a"})), IsOk());
  EXPECT_EQ(cluster_.Vms().size(), 1U);
}

TEST_F(AcceptanceTest, C16_a_creation_that_is_never_answered_ends_with_the_call) {
  HoldLease({"web-a"});
  Always("create virtualmachines", Fault::Answer(500));
  EXPECT_THAT(Run(ToMake({"web-a"})),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("web-a: unfinished, ")));
  EXPECT_THAT(Failures(), ElementsAre("create")) << "the next Scale waits";
  EXPECT_LT(Count("create virtualmachines"), 40U);
  EXPECT_TRUE(troubles_.leftovers.contains("web-a")) << "a late request may still take effect";
}

TEST_F(AcceptanceTest, C12_a_vm_that_appears_late_and_is_ready_ends_the_back_off) {
  HoldLease({"web-a"});
  Always("create virtualmachines", Fault::Answer(500));
  EXPECT_THAT(Run(ToMake({"web-a"})), StatusIs(StatusCode::kDeadlineExceeded));
  EXPECT_THAT(reconciler_->StoreRecord(context()), IsOk());
  EXPECT_TRUE(lease_.record().back_off.contains("create"));
  Next("create virtualmachines", Fault::None());
  EXPECT_THAT(CreateVm(context(), deps_, *creation_, {.name = "web-a", .action_id = "act"},
                       clock_.WallNow()),
              IsOk());
  clock_.Advance(seconds(10));
  EXPECT_THAT(reconciler_->RunResumption(context()), IsOk());
  EXPECT_THAT(reconciler_->StoreRecord(context()), IsOk());
  EXPECT_THAT(lease_.record().back_off, IsEmpty());
}

TEST_F(AcceptanceTest, S4_a_clock_that_is_ahead_leads_last_event_into_no_future) {
  cluster_.SetClockSkews({std::chrono::hours(24)});
  AddNamed({"web-a"});
  EXPECT_THAT(Run(ToRemove({"web-a"})), IsOk());
  ASSERT_TRUE(troubles_.unrecorded.last_event.has_value());
  EXPECT_LE(*troubles_.unrecorded.last_event, clock_.WallNow());
}

TEST_F(AcceptanceTest, L6_vms_that_were_not_tried_leave_nothing_and_have_not_failed) {
  AddNamed({"web-a"});
  ScalePlan plan = ToMake({"web-b"});
  plan.cancel_removals = {"web-a"};
  EXPECT_THAT(Run(plan, [&] { Always("list virtualmachines", Fault::Delay(minutes(2))); }),
              StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(Failures(), IsEmpty());
  EXPECT_THAT(troubles_.leftovers, IsEmpty());
  EXPECT_THAT(troubles_.unanswered, IsEmpty());
}

TEST_F(AcceptanceTest, C3_a_refused_creation_fails_at_once_and_the_others_are_made) {
  HoldLease({"web-a", "web-b"});
  Next("create virtualmachines", Refused());
  EXPECT_THAT(Run(ToMake({"web-a", "web-b"})),
              StatusIs(StatusCode::kInternal, HasSubstr("1 of 2 VMs failed:\nweb-a: failed: ")));
  EXPECT_THAT(Failures(), ElementsAre("create"));
  EXPECT_THAT(Made(), ElementsAre("web-b"));
  EXPECT_TRUE(troubles_.leftovers.contains("web-a")) << "its Secret";
}

TEST_F(AcceptanceTest, C10_a_vm_that_is_gone_after_its_creation_was_accepted_has_failed) {
  HoldLease({"web-a"});
  After("create virtualmachines", [&] { cluster_.DeleteObject(cluster_.Vm("web-a")); });
  EXPECT_THAT(Run(ToMake({"web-a"})), StatusIs(StatusCode::kInternal));
  EXPECT_THAT(Made(), ElementsAre("web-a")) << "its name is not used again";
  EXPECT_THAT(Failures(), ElementsAre("create"));
}

TEST_F(AcceptanceTest, C10_a_name_of_an_earlier_action_is_cleared_before_it_is_used_again) {
  HoldLease({"web-a"});
  EXPECT_THAT(Run(ToMake({"web-a"}, "earlier")), IsOk());
  const Strings sent = Sent();
  const auto first = std::find(sent.begin(), sent.end(), "get secrets");
  ASSERT_NE(first, sent.end());
  EXPECT_EQ(*(first + 1), "create secrets");
  EXPECT_EQ(Annotation("web-a", harvester::kActionIdAnnotation), "earlier");
}

TEST_F(AcceptanceTest, R4_a_vm_that_an_interrupted_replacement_made_is_taken_over) {
  AddVm("web-old");
  auto replacing = PrepareCreation();
  ASSERT_THAT(replacing, IsOk());
  replacing->halted = true;
  const PlannedCreation creation{.name = "web-a",
                                 .action_id = "act",
                                 .replaces = harvester::Replaces{.vm = "web-old",
                                                                 .uid = UidOf("web-old"),
                                                                 .reason = {ReplaceKind::kDrifted},
                                                                 .start = "RerunOnFailure"}};
  ASSERT_THAT(CreateVm(context(), deps_, *replacing, creation, clock_.WallNow()), IsOk());
  EXPECT_EQ(cluster_.Vm("web-a")["spec"]["runStrategy"], "Halted");
  HoldLease({"web-a"});
  EXPECT_THAT(Run(ToMake({"web-a"})), IsOk());
  EXPECT_EQ(Annotation("web-a", harvester::kReplacesAnnotation), "");
  EXPECT_EQ(cluster_.Vm("web-a")["spec"]["runStrategy"], "RerunOnFailure");
}

TEST_F(AcceptanceTest, C8_a_refused_mark_fails_and_the_vm_goes_last) {
  AddNamed({"web-a"});
  Always("patch virtualmachines", Refused());
  EXPECT_THAT(Run(ToRemove({"web-a"})), StatusIs(StatusCode::kPermissionDenied));
  EXPECT_EQ(Count("patch virtualmachines"), 1U);
  EXPECT_EQ(troubles_.removal_refusals.at("web-a").count, 1);
  EXPECT_THAT(Failures(), ElementsAre("refused"));
}

TEST_F(AcceptanceTest,
       C12_of_one_that_was_refused_and_one_that_failed_otherwise_the_refusal_counts) {
  AddNamed({"web-a", "web-b"});
  Next("patch virtualmachines", Refused());
  EXPECT_THAT(Run(ToRemove({"web-a", "web-b"}),
                  [&] { cluster_.EditAnnotation("web-b", harvester::kProtectAnnotation, "true"); }),
              Not(IsOk()));
  EXPECT_THAT(Failures(), ElementsAre("refused"));
}

TEST_F(AcceptanceTest, L3_a_removal_that_has_begun_leaves_the_back_off_alone) {
  AddNamed({"web-a", "web-b"});
  Next("patch virtualmachines", Refused());
  EXPECT_THAT(Run(ToRemove({"web-a", "web-b"})), StatusIs(StatusCode::kInternal));
  EXPECT_THAT(Failures(), IsEmpty());
}

TEST_F(AcceptanceTest, L2_a_mark_that_is_accepted_without_effect_is_refused) {
  AddNamed({"web-a"});
  const std::string vm = cluster_.Vm("web-a").dump();
  Always("patch virtualmachines", Fault::Answer(200, vm));
  EXPECT_THAT(Run(ToRemove({"web-a"})),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("accepted without effect")));
  EXPECT_THAT(Failures(), ElementsAre("refused"));
}

TEST_F(AcceptanceTest, L2_a_drain_that_is_accepted_without_effect_is_refused) {
  AddNamed({"web-a"});
  Always("update drain", Fault::Answer(200, "{}"));
  EXPECT_THAT(Run(ToRemove({"web-a"})),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("accepted without effect")));
  EXPECT_LE(Count("update drain"), 2U);
  EXPECT_TRUE(IsMarked("web-a")) << "the background rolls it back";
}

TEST_F(AcceptanceTest, C16_a_drain_that_fails_is_repeated_and_a_refused_one_is_the_error) {
  AddNamed({"web-a", "web-b"});
  Next("update drain", Failed(), 3);
  EXPECT_THAT(Run(ToRemove({"web-a"})), IsOk());
  Always("update drain", RefusedByNomad());
  EXPECT_THAT(Run(ToRemove({"web-b"})), StatusIs(StatusCode::kPermissionDenied));
}

TEST_F(AcceptanceTest, L5_an_unsuitable_victim_is_replaced_by_one_that_the_lease_names) {
  AddVm("web-a");
  AddVm("web-b");
  HoldLease({"web-a"});
  EXPECT_THAT(Run(ToRemove({"web-a"}, {"web-b"}),
                  [&] { cluster_.EditAnnotation("web-a", harvester::kProtectAnnotation, "true"); }),
              IsOk());
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_TRUE(IsMarked("web-b"));
  EXPECT_TRUE(StoredAction().names.contains("web-b"));
}

TEST_F(AcceptanceTest, L5_a_candidate_that_is_gone_when_it_takes_a_victims_place_is_removed) {
  AddVm("web-a");
  AddVm("web-b");
  HoldLease({"web-a"});
  const ScalePlan plan = ToRemove({"web-a"}, {"web-b"});
  cluster_.EditAnnotation("web-a", harvester::kProtectAnnotation, "true");
  cluster_.DeleteObject(cluster_.Vm("web-b"));
  EXPECT_THAT(Run(plan), IsOk());
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_EQ(Count("create virtualmachines"), 0U);
}

TEST_F(AcceptanceTest, L5_a_victim_whose_node_registers_before_its_mark_is_drained) {
  AddNamed({"web-a"});
  ScalePlan plan = ToRemove({"web-a"});
  plan.remove[0].node_id.clear();
  EXPECT_THAT(Run(plan), IsOk());
  EXPECT_EQ(Writes(), (Strings{"patch virtualmachines", "update drain"}));
}

TEST_F(AcceptanceTest, L5_a_victim_whose_mark_may_have_been_written_is_never_replaced) {
  AddVm("web-a");
  AddVm("web-b");
  HoldLease({"web-a"});
  Next("patch virtualmachines", Failed());
  const auto protect = [&] {
    After("list virtualmachineinstances",
          [&] { cluster_.EditAnnotation("web-a", harvester::kProtectAnnotation, "true"); });
  };
  EXPECT_THAT(Run(ToRemove({"web-a"}, {"web-b"}), protect), Not(IsOk()));
  EXPECT_FALSE(IsMarked("web-b"));
}

TEST_F(AcceptanceTest, L5_a_victim_whose_node_could_not_be_read_before_its_mark_is_replaced) {
  AddVm("web-a");
  AddVm("web-b");
  HoldLease({"web-a"});
  Next("get node", Failed());
  const auto protect = [&] {
    After("list virtualmachineinstances",
          [&] { cluster_.EditAnnotation("web-a", harvester::kProtectAnnotation, "true"); });
  };
  EXPECT_THAT(Run(ToRemove({"web-a"}, {"web-b"}), protect), IsOk());
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_TRUE(IsMarked("web-b"));
}

TEST_F(AcceptanceTest, C16_a_victim_that_is_no_vm_of_the_pool_any_more_is_named_with_the_cure) {
  AddNamed({"web-a"});
  Next("patch virtualmachines", Failed());
  const auto relabel = [&] {
    After("list virtualmachineinstances",
          [&] { cluster_.EditAnnotation("web-a", harvester::kSelfAnnotation, "other"); });
  };
  EXPECT_THAT(Run(ToRemove({"web-a"}), relabel),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("Restore them, or delete it")));
}

TEST_F(AcceptanceTest, L6_vms_are_created_once_each_removal_was_removal_cancelled) {
  AddNamed({"web-a"});
  Mark("web-a");
  Drain("web-a");
  const ScalePlan plan = ToMakeInstead();
  EXPECT_THAT(Run(plan), IsOk());
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_EQ(Logged("INFO Cancelled the removal of a VM"), 1U);
  const Strings writes = Writes();
  const auto made = std::find(writes.begin(), writes.end(), "create virtualmachines");
  EXPECT_NE(std::find(writes.begin(), made, "patch virtualmachines"), made);
}

TEST_F(AcceptanceTest,
       L6_a_removal_that_cannot_be_removal_cancelled_is_an_error_and_costs_no_creation) {
  AddNamed({"web-a"});
  Idle("web-a");
  const ScalePlan plan = ToMakeInstead();
  EXPECT_THAT(
      Run(plan, [&] { cluster_.DeleteVmByHand("web-a"); }),
      StatusIs(StatusCode::kInternal, HasSubstr("web-a: failed: its removal could not be")));
  EXPECT_FALSE(cluster_.Vm("web-b").is_null());
}

TEST_F(AcceptanceTest, L6_a_removal_whose_node_is_not_ready_any_more_goes_on_and_is_an_error) {
  AddNamed({"web-a"});
  cluster_.HangDrain(NodeOf("web-a"));
  Mark("web-a");
  Drain("web-a");
  const ScalePlan plan = ToMakeInstead();
  EXPECT_THAT(Run(plan, [&] { cluster_.SetNodeStatus(NodeOf("web-a"), "down"); }),
              StatusIs(StatusCode::kInternal, HasSubstr("web-a: failed: its removal goes on")));
  EXPECT_TRUE(IsMarked("web-a"));
  EXPECT_EQ(Logged("INFO Cancelled the removal of a VM"), 0U);
}

TEST_F(AcceptanceTest, C16_systems_that_are_silent_are_asked_again_until_the_call_ends) {
  AddNamed({"web-a"});
  const auto silence = [&] {
    Always("list virtualmachines", Failed());
    clock_.After(seconds(30), [&] { Next("list virtualmachines", Fault::None()); });
  };
  EXPECT_THAT(Run(ToRemove({"web-a"}), silence), IsOk());
  AddNamed({"web-b"});
  clock_.After(seconds(30), [&] { client_.Cancel(runtime::CancelReason::kClient); });
  Always("update drain", Failed());
  EXPECT_THAT(Run(ToRemove({"web-b"})), StatusIs(StatusCode::kCancelled));
}

}  // namespace
}  // namespace nomad_harvester::scaling
