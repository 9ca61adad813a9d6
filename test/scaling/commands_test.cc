// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/maintenance.h"

#include "pool_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using base::Hold;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CommandsTest : public PoolFixture {
 protected:
  Maintenance Commands() {
    return Maintenance({.clock = &clock_,
                        .random = random_,
                        .logger = logger_,
                        .loop_logger = logger_,
                        .executor = &executor_,
                        .holder = "operator"},
                       clients_);
  }
  ReconcileListener Listener() {
    return [this](const ReconcileEvent& event) { events_.push_back(event); };
  }
  absl::Status Pause(const Hold& hold) {
    Forget();
    return Commands().Pause(context(), key_, hold).status();
  }
  absl::StatusOr<WasHeld> Resume() {
    Forget();
    return Commands().Resume(context(), key_);
  }
  std::string Paused() const { return LeaseAnnotation(harvester::kLeasePausedAnnotation); }
  absl::StatusOr<Inspection> Inspect() {
    Forget();
    return Commands().Inspect(context(), policy_, true);
  }
  absl::StatusOr<std::set<PoolKey>> FindPools() {
    Forget();
    return Commands().FindPools(context(), "nomad");
  }
};

TEST_F(CommandsTest, L10_a_pause_is_one_patch_of_a_lease_that_exists_and_a_resume_removes_it) {
  AnnotateLease("note", "kept");
  EXPECT_THAT(Pause(Hold{.always = true}), IsOk());
  EXPECT_THAT(Sent(), ElementsAre("patch leases"));
  EXPECT_EQ(Paused(), "true");
  const base::WallTime until = clock_.WallNow() + minutes(5);
  EXPECT_THAT(Pause(Hold{.until = until}), IsOk());
  EXPECT_EQ(Paused(), base::FormatRfc3339(until));
  EXPECT_THAT(Resume(), IsOkAndHolds(WasHeld::kYes));
  EXPECT_THAT(Sent(), ElementsAre("get leases", "patch leases"));
  EXPECT_EQ(Paused(), "");
  EXPECT_EQ(LeaseAnnotation("note"), "kept");
}

TEST_F(CommandsTest, L10_a_resume_removes_a_pause_that_has_ended_and_says_so) {
  AnnotateLease("note", "kept");
  ASSERT_THAT(Pause(Hold{.until = clock_.WallNow() + minutes(5)}), IsOk());
  clock_.Advance(minutes(6));
  EXPECT_THAT(Resume(), IsOkAndHolds(WasHeld::kEnded));
  EXPECT_EQ(Paused(), "");
  AnnotateLease(harvester::kLeasePausedAnnotation, "false");
  EXPECT_THAT(Resume(), IsOkAndHolds(WasHeld::kEnded));
}

TEST_F(CommandsTest, L10_a_pause_or_a_resume_whose_answer_was_lost_reads_the_Lease_again) {
  AnnotateLease("note", "kept");
  Next("patch leases", simulator::Fault::DropReply());
  EXPECT_THAT(Pause(Hold{.always = true}), IsOk());
  EXPECT_THAT(Sent(), ElementsAre("patch leases", "get leases"));
  EXPECT_EQ(Paused(), "true");
  Next("patch leases", simulator::Fault::DropReply());
  EXPECT_THAT(Resume(), IsOkAndHolds(WasHeld::kYes));
  EXPECT_EQ(Paused(), "");
  Next("patch leases", simulator::Fault::Drop());
  EXPECT_FALSE(Pause(Hold{.always = true}).ok()) << "it was not written";
}

TEST_F(CommandsTest, L9_a_write_without_an_answer_says_what_is_there_or_that_it_is_not_known) {
  AnnotateLease("note", "kept");
  Next("patch leases", simulator::Fault::Drop());
  EXPECT_THAT(Pause(Hold{.always = true}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the Lease of pool nomad/web was not written, as a read after it "
                                 "shows; repeat it")));
  Next("patch leases", simulator::Fault::DropReply());
  Next("get leases", Refused());
  EXPECT_THAT(Pause(Hold{.always = true}),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("whether the Lease of pool nomad/web was written is not "
                                       "known"),
                             HasSubstr("nomad-harvester status shows it"))));
  EXPECT_EQ(Paused(), "true");
  Next("patch leases", Refused());
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kPermissionDenied,
                                 HasSubstr("the Lease of pool nomad/web was not written: ")));
}

TEST_F(CommandsTest, L9_a_pause_whose_answer_was_lost_is_not_written_if_the_lease_has_another) {
  const base::WallTime until = clock_.WallNow() + minutes(5);
  ASSERT_THAT(Pause(Hold{.until = until}), IsOk());
  Next("patch leases", simulator::Fault::Drop());
  EXPECT_THAT(Pause(Hold{.always = true}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the Lease of pool nomad/web was not written, as a read after it "
                                 "shows; repeat it")));
  EXPECT_EQ(Paused(), base::FormatRfc3339(until));
}

TEST_F(CommandsTest, L9_what_another_vm_of_the_same_name_has_was_not_written) {
  AddVm("web-a");
  const auto before = harvester::VmStore(clients_.kube, "nomad").Get(context(), "web-a");
  ASSERT_THAT(before, IsOk());
  ASSERT_TRUE(cluster_.DeleteVmByHand("web-a"));
  clock_.Advance(minutes(5));
  AddVm("web-a");
  ASSERT_NE(UidOf("web-a"), before->value.uid);
  ASSERT_TRUE(cluster_.EditAnnotation("web-a", harvester::kReplaceAnnotation, "old"));
  EXPECT_THAT(Commands().RequestReplacement(context(), before->value, "old"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("VM web-a was not written, as a read after it shows")));
}

TEST_F(CommandsTest, L9_a_replacement_that_was_asked_for_without_an_answer_is_read_again) {
  AddVm("web-a");
  const auto read = [this] {
    return harvester::VmStore(clients_.kube, "nomad").Get(context(), "web-a")->value;
  };
  const auto request = [&](const std::optional<std::string>& reason) {
    const harvester::VirtualMachine vm = read();
    Forget();
    return Commands().RequestReplacement(context(), vm, reason);
  };
  // Its own repetition finds a conflict with what it has written.
  Next("patch virtualmachines", simulator::Fault::DropReply());
  EXPECT_THAT(request("old"), IsOk());
  EXPECT_EQ(read().replace_request, "old");
  const harvester::VirtualMachine before = read();
  EXPECT_THAT(request("older"), IsOk());
  EXPECT_THAT(Commands().RequestReplacement(context(), before, std::nullopt),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("VM web-a was not written, as a read after it shows; repeat it")))
      << "somebody else has changed it";
  EXPECT_EQ(read().replace_request, "older");
  Always("patch virtualmachines", simulator::Fault::DropReply());
  Next("get virtualmachines", Refused());
  EXPECT_THAT(Commands().RequestReplacement(context(), before, std::nullopt),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("whether VM web-a was written is not known")));
}

TEST_F(CommandsTest, L10_a_resume_of_a_pool_that_is_not_paused_writes_nothing_and_says_so) {
  AnnotateLease("note", "kept");
  EXPECT_THAT(Resume(), IsOkAndHolds(WasHeld::kNo));
  EXPECT_THAT(Sent(), ElementsAre("get leases"));
  Next("get leases", Refused());
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kPermissionDenied)) << "it is not known";
  Next("get leases", simulator::Fault::Answer(200, "{}"));
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is no Lease")));
}

TEST_F(CommandsTest, L10_a_pause_makes_the_lease_that_is_missing_and_a_resume_does_not) {
  EXPECT_THAT(Resume(), IsOkAndHolds(WasHeld::kNoLease));
  EXPECT_THAT(Sent(), ElementsAre("get leases"));
  EXPECT_THAT(cluster_.Leases(), IsEmpty());
  EXPECT_THAT(Pause(Hold{.always = true}), IsOk());
  EXPECT_THAT(Sent(), ElementsAre("patch leases", "create leases"));
  EXPECT_EQ(Paused(), "true");
  EXPECT_THAT(FindPools(), IsOkAndHolds(ElementsAre(key_))) << "its labels name the pool";
}

TEST_F(CommandsTest, L10_a_pause_that_is_refused_is_an_error) {
  Next("patch leases", Refused());
  EXPECT_THAT(Pause(Hold{.always = true}), StatusIs(absl::StatusCode::kPermissionDenied));
  Next("create leases", Refused());
  EXPECT_THAT(Pause(Hold{.always = true}), StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(CommandsTest,
       R5_a_roll_out_that_has_stopped_is_resumed_by_one_patch_and_no_other_is_written) {
  const auto resume = [this] {
    Forget();
    return Commands().ResumeReplacement(context(), key_);
  };
  EXPECT_THAT(resume(), IsOkAndHolds(WasHeld::kNoLease));
  AnnotateLease("note", "kept");
  EXPECT_THAT(resume(), IsOkAndHolds(WasHeld::kNo)) << "nothing has stopped";
  EXPECT_THAT(Sent(), ElementsAre("get leases"));
  AnnotateLease(harvester::kLeaseReplacementAnnotation, "{}");
  EXPECT_THAT(resume(), IsOkAndHolds(WasHeld::kYes));
  EXPECT_THAT(Sent(), ElementsAre("get leases", "patch leases"));
  EXPECT_EQ(LeaseAnnotation(harvester::kLeaseReplacementAnnotation), "");
  EXPECT_EQ(LeaseAnnotation("note"), "kept");
  AnnotateLease(harvester::kLeaseReplacementAnnotation, "{}");
  Next("patch leases", Refused());
  EXPECT_THAT(resume(), StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(CommandsTest, S3_an_inspection_reads_the_lease_and_the_pool_and_writes_nothing) {
  AddVm("web-a");
  const auto seen = Inspect();
  ASSERT_THAT(seen, IsOk());
  const Strings sent = Sent();
  ASSERT_GE(sent.size(), 6U);
  EXPECT_EQ(Strings(sent.begin(), sent.begin() + 6),
            (Strings{"get leases", "list nodes", "get jwks.json", "list virtualmachines",
                     "list virtualmachineinstances", "get namespaces"}));
  EXPECT_THAT(
      Strings(sent.begin() + 6, sent.end()),
      testing::UnorderedElementsAre("list nodes",  // Harvester's hosts
                                    "get virtualmachineimages", "list virtualmachineimages",
                                    "get network-attachment-definitions", "list resourcequotas"));
  EXPECT_FALSE(seen->lease.present);
  EXPECT_EQ(seen->lease.problem, "");
  EXPECT_EQ(seen->report.status.count, 1);
  EXPECT_TRUE(seen->report.status.ready);
  EXPECT_EQ(seen->growth_problem, "");
}

TEST_F(CommandsTest, C2_the_room_is_read_only_where_it_is_shown) {
  AddVm("web-a");
  auto seen = Inspect();
  ASSERT_THAT(seen, IsOk());
  EXPECT_FALSE(seen->room.has_value());
  Forget();
  Commands().AddRoom(context(), &*seen);
  EXPECT_THAT(Sent(),
              testing::UnorderedElementsAre("list nodes", "list pods", "get virtualmachines"));
  EXPECT_TRUE(seen->room.has_value());
}

TEST_F(CommandsTest, S4_an_inspection_tells_what_drifted_and_what_would_refuse_a_growth) {
  AddVm("web-a");
  policy_.cpu_cores = 4;
  auto seen = Inspect();
  ASSERT_THAT(seen, IsOk());
  EXPECT_EQ(seen->report.drift, "web-a (cpu)");
  cluster_.SetImageReady("default/ubuntu-24.04", false);
  seen = Inspect();
  ASSERT_THAT(seen, IsOk());
  EXPECT_EQ(seen->report.drift, "") << "nobody knows";
  EXPECT_THAT(seen->growth_problem, HasSubstr("image: default/ubuntu-24.04 cannot be used"));
  EXPECT_TRUE(seen->report.status.ready);
}

TEST_F(CommandsTest, S3_a_lease_that_is_not_read_is_a_problem_and_not_the_end) {
  AddVm("web-a");
  Next("get leases", Refused());
  const auto seen = Inspect();
  ASSERT_THAT(seen, IsOk());
  EXPECT_TRUE(seen->report.status.ready);
  EXPECT_THAT(seen->lease.problem, HasSubstr("403"));
  EXPECT_THAT(seen->lease.problem, HasSubstr("verbs: [get, create, patch]"));
}

TEST_F(CommandsTest, C11_without_the_lease_no_mark_is_called_late) {
  AddVm("web-a");
  Mark("web-a");
  Next("get leases", Refused());
  const auto seen = Inspect();
  ASSERT_THAT(seen, IsOk());
  EXPECT_NE(NextStep(*seen->snapshot.seen->FindVm("web-a"), seen->snapshot).row,
            Row::kMarkedNotNamed);
}

TEST_F(CommandsTest, S3_an_inspection_that_has_no_time_left_blames_the_system_that_took_it) {
  cluster_.Refuse({.resource = "leases", .kind = simulator::Refusal::kNone, .takes = seconds(60)});
  EXPECT_THAT(Commands().Inspect(context().WithTimeout(seconds(5)), policy_, false),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("Harvester cannot be read")));
  EXPECT_EQ(Count("list nodes"), 0U);
}

TEST_F(CommandsTest, C10_pools_are_not_found_unless_every_list_was_read_but_that_of_leases) {
  for (const std::string list :
       {"list virtualmachines", "list secrets", "list persistentvolumeclaims", "list nodes"}) {
    Next(list, Failed());
    EXPECT_THAT(FindPools(), testing::Not(IsOk())) << list;
    EXPECT_EQ(Last(), list);
  }
  Next("list leases", Failed());
  EXPECT_THAT(FindPools(), testing::Not(IsOk()));
  Next("list leases",
       simulator::Fault::Answer(403, R"({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                   "reason": "Forbidden", "code": 403})"));
  EXPECT_THAT(FindPools(), IsOk());
}

TEST_F(CommandsTest, C11_a_collection_does_nothing_while_another_live_process_holds_the_lease) {
  AddVm("web-a");
  Drain("web-a");
  HoldLease();
  const Collection done = Commands().Collect(context(), key_, policy_, Listener());
  EXPECT_THAT(done.outcome, StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Sent(), testing::Each("get leases"));
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(CommandsTest, C13_a_preview_reads_reports_and_does_not_acquire_the_lease) {
  AddVm("web-a");
  Drain("web-a");
  Forget();
  EXPECT_THAT(Commands().Preview(context(), key_, policy_, Listener()).outcome, IsOk());
  EXPECT_THAT(Effects(), IsEmpty());
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].step.kind, StepKind::kCancelDrain);
  Forget();
  Next("get leases", Failed());
  EXPECT_FALSE(Commands().Preview(context(), key_, policy_, Listener()).outcome.ok());
  EXPECT_THAT(Sent(), ElementsAre("get leases"));
}

TEST_F(CommandsTest, C18_an_inspection_takes_a_vm_as_held_since_its_drain_ended) {
  for (const char* const vm : {"web-a", "web-b"}) {
    AddVm(vm);
    Idle(vm);
  }
  cluster_.EditAnnotation("web-a", std::string(harvester::kHoldAnnotationPrefix) + "vpn", "");
  clock_.Advance(minutes(5));
  const auto seen = Inspect();
  ASSERT_THAT(seen, IsOk());
  const base::Duration held = seen->snapshot.seen->FindVm("web-a")->held_for;
  EXPECT_GE(held, minutes(5));
  EXPECT_LT(held, minutes(6));
  EXPECT_EQ(seen->snapshot.seen->FindVm("web-b")->held_for, seconds(0));
}

}  // namespace
}  // namespace nomad_harvester::scaling
