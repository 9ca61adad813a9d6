// SPDX-License-Identifier: Apache-2.0
// A scale-in whose victims' work has another place, or not.
#include "drivers/drain_fit.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drivers/scale_call.h"
#include "pool_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class DrainFitTest : public PoolFixture {
 protected:
  DrainFitTest() {
    policy_.selector = policy::SelectorStrategy::kOldestCreateIndex;
    policy_.scale_in_fit = config::ScaleInFit::kRequire;
  }
  // `vm`: the only one on whose node it may run; empty: any. A node has 4000 MHz.
  void Run(const std::string& job, std::int64_t cpu, const std::string& vm = "") {
    simulator::JobSpec spec;
    spec.id = job;
    spec.cpu = cpu;
    spec.node_name = vm;
    cluster_.RunJob(spec);
    clock_.Advance(seconds(2));
  }
  absl::Status Scale(std::int64_t count) {
    if (hold_ == nullptr) HoldLease();
    call_.emplace(Deps(), policy_, ScaleRequest{.count = count, .reason = "test"});
    Forget();
    absl::Status outcome = call_->Run(context());
    effects_ = Effects();
    return outcome;
  }
  Strings Reserve() const {
    Strings names;
    for (const PlannedRemoval& removal : call_->result().plan->reserve) names.push_back(removal.vm);
    return names;
  }

  std::optional<ScaleCall> call_;
  Strings effects_;
};

TEST_F(DrainFitTest, C19_a_vm_whose_work_has_no_other_place_is_passed_over_for_the_next_one) {
  for (const std::string vm : {"web-a", "web-b", "web-c"}) AddVm(vm);
  Run("pinned", 1000, "web-a");
  ASSERT_THAT(Scale(2), IsOk());
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_TRUE(IsMarked("web-b"));
  EXPECT_THAT(Reserve(), ElementsAre("web-c"));
  EXPECT_THAT(sink_->Text(),
              HasSubstr("passed over web-a: its work has no other place: default/pinned.group: 1 "
                        "allocation (1000 MHz, 128 MiB)"));
}

TEST_F(DrainFitTest, C19_the_reserve_fits_besides_the_victims) {
  AddVm("web-a");
  Run("api", 2500);
  AddVm("web-b");
  Run("shop", 2500);
  AddVm("web-c");
  ASSERT_THAT(Scale(2), IsOk());
  EXPECT_TRUE(IsMarked("web-a")) << "its work moves to the node of web-c";
  EXPECT_THAT(Reserve(), IsEmpty()) << "neither web-b nor web-c may go, too";
}

TEST_F(DrainFitTest, C19_victims_fit_one_after_the_other) {
  AddVm("web-a");
  Run("api", 2500);
  AddVm("web-b");
  Run("shop", 2500);
  AddVm("web-c");
  AddVm("web-d");
  ASSERT_THAT(Scale(2), IsOk());
  EXPECT_TRUE(IsMarked("web-a"));
  EXPECT_TRUE(IsMarked("web-b"));
  EXPECT_FALSE(IsMarked("web-c"));
}

TEST_F(DrainFitTest, C19_vms_are_looked_at_until_one_fits) {
  Strings names;
  for (int i = 0; i < 25; ++i) names.push_back("web-" + std::to_string(100 + i));
  for (const std::string& vm : names) {
    AddVm(vm);
    if (vm != names.back()) Run("of-" + vm, 1000, vm);
  }
  ASSERT_THAT(Scale(24), IsOk());
  EXPECT_TRUE(IsMarked(names.back()));
  EXPECT_EQ(call_->result().plan->passed_over.size(), 24U);
  EXPECT_EQ(Count("list jobs"), 1U) << "by one reading";
}

TEST_F(DrainFitTest, C19_if_no_vm_fits_the_action_is_refused_before_its_first_write) {
  for (const std::string vm : {"web-a", "web-b"}) {
    AddVm(vm);
    Run("of-" + vm, 2500, vm);
  }
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr("no VM of the pool may be removed"),
                                       HasSubstr("web-a: its work has no other place: "
                                                 "default/of-web-a.group: 1 allocation"),
                                       HasSubstr("web-b: its work"))));
  EXPECT_THAT(effects_, IsEmpty());
}

TEST_F(DrainFitTest,
       C19_the_node_of_a_vm_that_is_being_removed_is_no_place_and_its_work_needs_one) {
  AddVm("web-a");
  Run("api", 3000);
  AddVm("web-b");
  AddVm("web-c");
  Run("shop", 2000, "web-c");
  HoldLease({"web-a"});
  Mark("web-a");
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr("web-b: its work has no other place: "
                                                 "default/api.group: 1 allocation"),
                                       HasSubstr("web-c: its work has no other place: "))));
  AddVm("web-d");
  EXPECT_THAT(Scale(2), IsOk());
  EXPECT_TRUE(IsMarked("web-b")) << "what web-a has goes to web-d";
}

TEST_F(DrainFitTest, C19_a_token_that_does_not_see_all_work_refuses_with_what_to_grant) {
  AddVm("web-a");
  cluster_.DenyListJobs(true);
  EXPECT_THAT(
      Scale(0),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("scale_in_fit = \"require\": whether the work of the VMs to remove"),
                     HasSubstr("lacks the capability list-jobs"),
                     HasSubstr("capabilities = [\"read-job\", \"list-jobs\"]"))));
  EXPECT_THAT(effects_, IsEmpty());
}

TEST_F(DrainFitTest, C19_without_an_answer_of_nomad_nothing_is_removed) {
  AddVm("web-a");
  Always("list evaluations", simulator::Fault::Answer(400, "no"));
  EXPECT_THAT(Scale(0),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("could not be read from Nomad")));
  EXPECT_THAT(effects_, IsEmpty());
}

// An answer for blocked evaluations has none of these.
simulator::Fault Pending(const std::string& more = "") {
  return simulator::Fault::Answer(200, R"([{"ID":"1","Status":"pending","Type":"service",)"
                                       R"("Namespace":"default","JobID":"api")" +
                                           more + "}]");
}

TEST_F(DrainFitTest, C19_while_nomad_places_work_the_lists_are_read_again) {
  AddVm("web-a");
  Next("list evaluations", Pending(), 3);
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_EQ(Count("list jobs"), 2U);
}

TEST_F(DrainFitTest, C19_while_nomad_places_work_for_long_nothing_is_removed) {
  AddVm("web-a");
  Always("list evaluations", Pending());
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("Nomad is still placing work of default/api; nothing "
                                           "was removed, and the next Scale reads it again")));
  EXPECT_THAT(effects_, IsEmpty());
  EXPECT_EQ(Count("list jobs"), 1U);
}

TEST_F(DrainFitTest, C16_a_call_that_its_client_cancels_meanwhile_has_no_outcome) {
  AddVm("web-a");
  HoldLease();
  Always("list evaluations", Pending());
  clock_.After(seconds(3), [&] { client_.Cancel(runtime::CancelReason::kClient); });
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(effects_, IsEmpty());
  EXPECT_FALSE(troubles_.unrecorded.error.has_value());
}

TEST_F(DrainFitTest, C19_an_evaluation_that_nomad_delays_places_nothing_now) {
  AddVm("web-a");
  Always("list evaluations", Pending(R"(,"WaitUntil":"2030-01-01T00:00:00Z")"));
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_EQ(Count("list jobs"), 1U);
}

// hashicorp/nomad:nomad/leader.go, reapFailedEvaluations.
TEST_F(DrainFitTest, C19_an_evaluation_that_follows_a_failed_one_places_nothing_now) {
  AddVm("web-a");
  Always("list evaluations", Pending(R"(,"Wait":60000000000,"WaitUntil":"0001-01-01T00:00:00Z")"));
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_EQ(Count("list jobs"), 1U);
}

TEST_F(DrainFitTest, C19_nothing_is_read_if_no_victim_has_work) {
  policy_.selector = policy::SelectorStrategy::kLeastBusy;
  for (const std::string vm : {"web-a", "web-b", "web-c"}) AddVm(vm);
  Run("busy", 1000, "web-a");
  ASSERT_THAT(Scale(2), IsOk());
  EXPECT_EQ(Count("list evaluations"), 0U);
  EXPECT_EQ(Count("list jobs"), 0U);
  EXPECT_THAT(Reserve(), Not(testing::Contains("web-a"))) << "nobody looked at its work";
}

TEST_F(DrainFitTest, C19_with_report_nothing_is_read_beside_another_removal_either) {
  policy_.selector = policy::SelectorStrategy::kLeastBusy;
  policy_.scale_in_fit = config::ScaleInFit::kReport;
  for (const std::string vm : {"web-a", "web-b", "web-c"}) AddVm(vm);
  HoldLease({"web-a"});
  Mark("web-a");
  ASSERT_THAT(Scale(1), IsOk());
  EXPECT_EQ(Count("list evaluations"), 0U);
}

TEST_F(DrainFitTest, C19_with_report_the_plan_names_what_may_wait_and_its_vm_goes) {
  policy_.scale_in_fit = config::ScaleInFit::kReport;
  AddVm("web-a");
  AddVm("web-b");
  Run("pinned", 1000, "web-a");
  ASSERT_THAT(Scale(1), IsOk());
  EXPECT_TRUE(IsMarked("web-a"));
  EXPECT_THAT(sink_->Text(), HasSubstr("of web-a may wait: default/pinned.group: 1 allocation"));
  ASSERT_EQ(call_->result().plan->would_wait.size(), 1U);
  EXPECT_EQ(call_->result().plan->would_wait[0].vm, "web-a");
}

TEST_F(DrainFitTest, C19_with_report_a_victim_whose_work_may_wait_is_no_place_either) {
  policy_.scale_in_fit = config::ScaleInFit::kReport;
  policy_.selector = policy::SelectorStrategy::kNewestCreateIndex;
  AddVm("web-c");
  Run("full", 2000, "web-c");
  AddVm("web-b");
  Run("api", 2500);
  AddVm("web-a");
  Run("pinned", 1000, "web-a");
  ASSERT_THAT(Scale(1), IsOk());
  EXPECT_EQ(call_->result().plan->would_wait.size(), 2U) << Describe(*call_->result().plan);
}

TEST_F(DrainFitTest, C14_the_work_is_read_for_a_scale_in_beside_a_vm_that_is_left_out) {
  policy_.scale_in_fit = config::ScaleInFit::kReport;
  policy_.selector = policy::SelectorStrategy::kLeastBusy;
  for (const std::string vm : {"web-a", "web-b", "web-c"}) AddVm(vm);
  Run("busy", 1000, "web-c");
  Mark("web-a");
  cluster_.Refuse({.verb = "patch", .resource = "virtualmachines", .name = "web-a"});
  ASSERT_THAT(Scale(2), IsOk());
  EXPECT_TRUE(IsMarked("web-b"));
  EXPECT_FALSE(IsMarked("web-c"));
}

// Of a pool of forty; "api" is the work of the victim, web-100.
class LargePoolFits : public DrainFitTest {
 protected:
  LargePoolFits() {
    policy_.scale_in_fit = config::ScaleInFit::kReport;
    AddVm("web-100");
    Run("api", 3000);
    for (int i = 101; i < 140; ++i) AddVm("web-" + std::to_string(i));
  }
  // The nodes that were read for the plan.
  std::size_t NodesRead() {
    EXPECT_THAT(Scale(39), IsOk());
    EXPECT_TRUE(IsMarked("web-100"));
    EXPECT_THAT(call_->result().plan->would_wait, IsEmpty()) << Describe(*call_->result().plan);
    return Count("get node");
  }
};

TEST_F(LargePoolFits, C19_a_few_nodes_are_read_if_they_have_a_place_for_all_that_moves) {
  EXPECT_LT(NodesRead(), 30U);
}

TEST_F(LargePoolFits, C19_every_node_is_read_before_work_is_told_to_wait) {
  for (int i = 101; i < 139; ++i) Run("of-" + std::to_string(i), 2000, "web-" + std::to_string(i));
  for (const char* const job : {"small", "tiny"}) Run(job, 10, "web-139");
  EXPECT_GE(NodesRead(), 40U) << "only web-139, which has the most allocations, has a place";
}

TEST_F(LargePoolFits, C19_every_node_is_read_while_other_work_has_no_place_on_a_few) {
  Run("moves", 3900, "web-101");
  for (int i = 102; i < 139; ++i) Run("of-" + std::to_string(i), 900, "web-" + std::to_string(i));
  for (const char* const job : {"small", "tiny"}) Run(job, 10, "web-139");
  Always("get job", simulator::Fault::None());
  HoldLease({"web-101"});
  Mark("web-101");
  ASSERT_THAT(Scale(38), IsOk());
  EXPECT_GE(Count("get node"), 40U) << "only web-139 has a place for what web-101 has";
}

// What uses up the values may be on a node that was not read.
TEST_F(LargePoolFits, C19_every_node_is_read_for_work_that_asks_for_distinct_ones) {
  Always("get job", simulator::Fault::Answer(200, R"({"ID": "api", "Namespace": "default",
      "Type": "service", "Datacenters": ["*"], "JobModifyIndex": 1, "TaskGroups": [{"Name": "group",
      "Constraints": [{"Operand": "distinct_hosts", "RTarget": "true"}],
      "Tasks": [{"Name": "task", "Resources": {"CPU": 3000, "MemoryMB": 128}}]}]})"));
  EXPECT_GE(NodesRead(), 40U);
}

TEST_F(DrainFitTest, C19_with_report_what_cannot_be_read_is_told_at_debug_and_holds_nothing) {
  policy_.scale_in_fit = config::ScaleInFit::kReport;
  AddVm("web-a");
  cluster_.DenyListJobs(true);
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_TRUE(IsMarked("web-a"));
  EXPECT_THAT(sink_->Text(), HasSubstr("Could not read whether the work"));
  EXPECT_EQ(Logged("WARN Could not read whether the work of the VMs to remove has another place"),
            0U);
}

TEST_F(DrainFitTest, C13_C19_a_dry_run_names_it_too) {
  AddVm("web-a");
  AddVm("web-b");
  Run("pinned", 1000, "web-a");
  HoldLease();
  call_.emplace(Deps(), policy_, ScaleRequest{.count = 1, .dry_run = true});
  ASSERT_THAT(call_->DryRun(context()), IsOk());
  EXPECT_THAT(sink_->Text(), HasSubstr("passed over web-a: its work has no other place"));
}

ScalePlan PlanOf(const Strings& remove, const Strings& reserve) {
  ScalePlan plan{.direction = Direction::kIn};
  for (const std::string& vm : remove) plan.remove.push_back({.vm = vm});
  for (const std::string& vm : reserve) plan.reserve.push_back({.vm = vm});
  return plan;
}

Strings NamesOf(const std::vector<PlannedRemoval>& removals) {
  Strings names;
  for (const PlannedRemoval& removal : removals) names.push_back(removal.vm);
  return names;
}

TEST(KeepThoseThatFit, C19_as_many_as_were_chosen_stay_and_the_rest_is_the_reserve) {
  ScalePlan plan = PlanOf({"a", "b"}, {"c", "d", "e", "f"});
  ASSERT_THAT(
      KeepThoseThatFit({{"a", ""}, {"b", "work"}, {"c", ""}, {"d", "more"}, {"e", ""}}, 0, &plan),
      IsOk());
  EXPECT_THAT(NamesOf(plan.remove), ElementsAre("a", "c"));
  EXPECT_THAT(NamesOf(plan.reserve), ElementsAre("e")) << "nobody looked at f";
  ASSERT_EQ(plan.passed_over.size(), 2U);
  EXPECT_EQ(plan.passed_over[0].vm, "b");
  EXPECT_EQ(plan.passed_over[0].reason, "its work has no other place: work");
  EXPECT_EQ(plan.missing_victims, 0);
}

TEST(KeepThoseThatFit, C19_what_is_missing_is_counted_and_nothing_left_is_refused) {
  ScalePlan plan = PlanOf({"a", "b"}, {});
  ASSERT_THAT(KeepThoseThatFit({{"a", "work"}, {"b", ""}}, 0, &plan), IsOk());
  EXPECT_EQ(plan.missing_victims, 1);
  plan = PlanOf({"a"}, {});
  EXPECT_THAT(KeepThoseThatFit({{"a", "work"}}, 0, &plan),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("a: its work")));
  plan = PlanOf({"a", "b"}, {});
  EXPECT_FALSE(KeepThoseThatFit({{"a", "work"}, {"b", ""}}, 1, &plan).ok())
      << "one replacement would only be undone";
}

TEST(KeepThoseThatFit, C19_vms_that_nobody_looked_at_are_told_if_victims_are_missing) {
  ScalePlan plan = PlanOf({"a"}, {"b", "c"});
  EXPECT_THAT(KeepThoseThatFit({{"a", "work"}}, 0, &plan),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("a: its work has no other place: work; VMs that were not looked "
                                 "at: 2")));
  plan = PlanOf({"a"}, {"b", "c"});
  ASSERT_THAT(KeepThoseThatFit({{"a", "work"}, {"b", ""}}, 0, &plan), IsOk());
  EXPECT_THAT(Describe(plan), Not(HasSubstr("looked at"))) << "b is enough";
}

TEST(KeepThoseThatFit, C19_the_reasons_of_the_first_ten_vms_are_told) {
  ScalePlan plan = PlanOf({"fits", "last"}, {});
  std::map<std::string, std::string> waits = {{"fits", ""}, {"last", "work"}};
  for (int i = 10; i < 20; ++i) {
    plan.reserve.push_back({.vm = "vm-" + std::to_string(i)});
    waits[plan.reserve.back().vm] = "work";
  }
  ASSERT_THAT(KeepThoseThatFit(waits, 0, &plan), IsOk());
  EXPECT_EQ(plan.passed_over.size(), 11U);
  EXPECT_THAT(Describe(plan), AllOf(HasSubstr("; passed over last: its work"),
                                    HasSubstr("; passed over vm-18: its work has no other place: "
                                              "work; and 1 more"),
                                    Not(HasSubstr("vm-19"))));
  plan = PlanOf({"last"}, {});
  for (const auto& [vm, work] : waits) {
    if (!work.empty() && vm != "last") plan.reserve.push_back({.vm = vm});
  }
  EXPECT_THAT(KeepThoseThatFit(waits, 0, &plan),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("; and 1 more"), Not(HasSubstr("vm-19")))));
}

}  // namespace
}  // namespace nomad_harvester::scaling
