// SPDX-License-Identifier: Apache-2.0
//
// The outcome of a creation: from the answer to its POST, and from what is observed.

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/status_matchers.h"
#include "tracker_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::minutes;
using support::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrackerMakeTest : public TrackerTest {
 protected:
  TrackerMakeTest() { Track(ToCreate({"a"})); }
};

Vm YoungVm() { return Vm("a").Age(minutes(1)); }

TEST_F(TrackerMakeTest, every_observation_of_a_new_vm_has_its_outcome) {
  struct Case {
    const char* what;
    World world;
    OutcomeState state;
    absl::StatusCode code;  // of a failure
    const char* text;       // part of the error, or of the reason why it is pending
    std::set<std::string> failures;
  };
  constexpr auto kNone = absl::StatusCode::kOk;
  const std::vector<Case> cases = {
      {"young",
       World().With(YoungVm()),
       OutcomeState::kPending,
       kNone,
       "it has not joined yet: its guest runs and no Nomad node has its name",
       {}},
      {"C17: registered, and not ready yet",
       World().With(YoungVm().Registered()).With(Node("a").Initializing()),
       OutcomeState::kPending,
       kNone,
       "it is not ready yet: its node node-a registered at 2026-03-01T11:10:00Z, but it is "
       "initializing",
       {}},
      {"C17: it was not ready by its deadline",
       World().With(Vm("a").Age(minutes(16)).Registered()).With(Node("a").Initializing()),
       OutcomeState::kFailed,
       absl::StatusCode::kDeadlineExceeded,
       "it was not ready by its deadline",
       {"join"}},
      {"its node registers",
       World().With(YoungVm()).With(Node("a")),
       OutcomeState::kPending,
       kNone,
       "its node has registered and is ready",
       {}},
      {"joined",
       World().With(YoungVm().Joined()).With(Node("a")),
       OutcomeState::kDone,
       kNone,
       "",
       {}},
      {"without a join timeout",
       World().With(YoungVm().NoTimeout()),
       OutcomeState::kDone,
       kNone,
       "",
       {}},
      {"never joined",
       World().With(Vm("a").Age(minutes(16))),
       OutcomeState::kFailed,
       absl::StatusCode::kDeadlineExceeded,
       "it has not joined Nomad by its deadline",
       {"join"}},
      {"C15: late, but Nomad cannot be read",
       World().With(Vm("a").Age(minutes(16))).NomadUnreadable(),
       OutcomeState::kPending,
       kNone,
       "Nomad cannot be read: no leader",
       {}},
      {"C3: its start fails",
       World().With(YoungVm().FailsToStart("no such image")),
       OutcomeState::kFailed,
       absl::StatusCode::kFailedPrecondition,
       "its start fails: no such image",
       {"start"}},
      {"C15: its node is in another pool",
       World().With(YoungVm()).With(Node("a").Class("db")),
       OutcomeState::kFailed,
       absl::StatusCode::kFailedPrecondition,
       "its node joined another pool: node node-a is node_class=db",
       {"join"}},
      {"being deleted",
       World().With(YoungVm().Terminating()),
       OutcomeState::kFailed,
       absl::StatusCode::kInternal,
       "the VM is being removed",
       {"create"}},
      {"marked",
       World().With(YoungVm().Marked()),
       OutcomeState::kFailed,
       absl::StatusCode::kInternal,
       "the VM is being removed",
       {"create"}},
      {"not there yet", World(), OutcomeState::kPending, kNone, "", {}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    Track(ToCreate({"a"}));
    See(each.world);
    EXPECT_EQ(StateOf("a"), each.state);
    if (each.state == OutcomeState::kFailed) {
      EXPECT_THAT(PartOf("a").error, StatusIs(each.code, HasSubstr(each.text)));
    } else if (each.state == OutcomeState::kPending) {
      EXPECT_EQ(PartOf("a").text, each.text);
    }
    EXPECT_EQ(Failures(), each.failures);
  }
}

TEST_F(TrackerMakeTest, every_answer_to_its_post_has_its_outcome) {
  struct Case {
    const char* what;
    Effect effect;
    OutcomeState state;
    bool begun;
    bool is_repeated;
  };
  const std::vector<Case> cases = {
      {"accepted", Done(), OutcomeState::kPending, true, false},
      {"C3: the server is busy", Failure(), OutcomeState::kPending, false, true},
      {"C3: no answer", EffectOf(absl::DeadlineExceededError("no answer")), OutcomeState::kPending,
       false, true},
      {"C3: no connection", EffectOf(absl::UnavailableError("reset")), OutcomeState::kPending,
       false, true},
      {"a conflict", Conflict(), OutcomeState::kPending, false, true},
      {"not wanted", {.verdict = Verdict::kNotWanted}, OutcomeState::kPending, false, true},
      {"cancelled", EffectOf(absl::CancelledError("stop")), OutcomeState::kPending, false, true},
      {"refused", Refusal(), OutcomeState::kFailed, false, false},
      {"another object has the name", EffectOf(KubeAnswer(409, "AlreadyExists")),
       OutcomeState::kFailed, false, false},
      {"a template of ours", EffectOf(absl::InvalidArgumentError("no template")),
       OutcomeState::kFailed, false, false},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    Track(ToCreate({"a"}));
    tracker_->RecordMake("a", each.effect);
    EXPECT_EQ(StateOf("a"), each.state);
    EXPECT_EQ(PartOf("a").begun, each.begun);
    EXPECT_EQ(!tracker_->ToMake().empty(), each.is_repeated);
    See(World());
    if (each.state == OutcomeState::kFailed) {
      EXPECT_EQ(PartOf("a").error, each.effect.status);
      EXPECT_THAT(Failures(), ElementsAre("create"));
    }
  }
}

TEST_F(TrackerMakeTest, C12_one_that_fails_to_start_and_then_to_join_counts_once) {
  See(World().With(YoungVm().FailsToStart("no host has room")));
  EXPECT_THAT(Failures(), ElementsAre("start"));
  See(World().With(Vm("a").Age(minutes(16))));
  EXPECT_THAT(Failures(), ElementsAre("join"));
}

TEST_F(TrackerMakeTest, C3_the_reason_of_a_post_that_is_repeated_is_told) {
  tracker_->RecordMake("a", Failure());
  EXPECT_THAT(PartOf("a").text, HasSubstr("busy"));
}

TEST_F(TrackerMakeTest, a_vm_that_was_accepted_and_is_gone_has_failed) {
  tracker_->RecordMake("a", Done());
  See(World());
  EXPECT_THAT(PartOf("a").error, StatusIs(absl::StatusCode::kInternal, "the VM is gone"));
  EXPECT_THAT(Failures(), ElementsAre("create"));
}

TEST_F(TrackerMakeTest, a_vm_that_is_deleted_while_it_joins_tells_what_it_waited_for) {
  See(World().With(YoungVm()));
  See(World().With(YoungVm().Terminating()));
  EXPECT_EQ(ErrorOf("a"),
            "it has not joined yet: its guest runs and no Nomad node has its name; it is removed");
}

TEST_F(TrackerMakeTest, C3_a_vm_that_exists_although_its_post_failed_goes_on) {
  tracker_->RecordMake("a", EffectOf(KubeAnswer(409, "AlreadyExists")));
  ASSERT_EQ(StateOf("a"), OutcomeState::kFailed);
  See(World().With(YoungVm()));
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  EXPECT_THAT(tracker_->ToMake(), IsEmpty()) << "its POST is not repeated";
  See(World().With(YoungVm().Joined()));
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone);
  EXPECT_THAT(Failures(), IsEmpty());
}

TEST_F(TrackerMakeTest, a_broken_vm_keeps_its_error_while_it_is_removed) {
  See(World().With(YoungVm().FailsToStart("no such image")));
  See(World().With(YoungVm().Marked().ForBeingBroken()));
  EXPECT_EQ(ErrorOf("a"), "its start fails: no such image");
  See(World());
  EXPECT_EQ(ErrorOf("a"), "its start fails: no such image");
  EXPECT_THAT(Failures(), ElementsAre("start"));
}

TEST_F(TrackerMakeTest, an_outcome_stays_once_it_is_done) {
  See(World().With(YoungVm().Joined()).With(Node("a")));
  See(World().With(YoungVm().Joined().Marked()).With(Node("a")));
  See(World());
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone);
}

TEST_F(TrackerMakeTest, L3_a_join_that_cannot_be_recorded_for_a_minute_fails_the_creation) {
  const World joins = World().With(YoungVm()).With(Node("a"));
  retries_.Record({"record-join", "uid-a"}, Refusal("denied by policy"), now_);
  now_ += std::chrono::seconds(59);
  See(joins);
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  now_ += std::chrono::seconds(1);
  See(joins);
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
  EXPECT_THAT(ErrorOf("a"), HasSubstr("denied by policy"));
  EXPECT_THAT(Failures(), ElementsAre("join"));
}

TEST_F(TrackerMakeTest, C10_a_name_whose_vm_has_existed_is_told_and_no_other) {
  See(World());
  EXPECT_THAT(Summary().seen, IsEmpty());
  tracker_->RecordMake("a", Failure());
  EXPECT_THAT(Summary().seen, IsEmpty()) << "its VM may still be created under this name";
  tracker_->RecordMake("a", Done());
  EXPECT_THAT(Summary().seen, ElementsAre("a")) << "its POST was accepted";
  Track(ToCreate({"a"}));
  See(World().With(YoungVm()));
  EXPECT_THAT(Summary().seen, ElementsAre("a")) << "it was observed";
}

TEST_F(TrackerMakeTest, L1_each_creation_has_its_own_outcome) {
  Track(ToCreate({"a", "b", "c"}));
  tracker_->RecordMake("c", Refusal());
  See(World().With(YoungVm().Joined()).With(Vm("b").Age(minutes(1))));
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone);
  EXPECT_EQ(StateOf("b"), OutcomeState::kPending);
  EXPECT_EQ(StateOf("c"), OutcomeState::kFailed);
  EXPECT_THAT(tracker_->Names(), ElementsAre("b"));
  EXPECT_TRUE(Summary().created);
  EXPECT_THAT(Failures(), ElementsAre("create"));
}

TEST_F(TrackerMakeTest, R4_a_vm_of_an_interrupted_replacement_is_not_delivered_and_is_taken_over) {
  Track(ToCreate({"a"}));
  World pending = World().With(Vm("old").Joined()).With(Node("old"));
  pending.With(Vm("a").Joined().Replaces("old", "drifted")).With(Node("a"));
  tracker_->RecordMake("a", {.verdict = Verdict::kFailed, .status = base::Unavailable("lost")});
  See(pending);
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending) << "it does not count, although it is ready";
  EXPECT_THAT(tracker_->ToMake(), ElementsAre("a"));
  tracker_->RecordMake("a", {.verdict = Verdict::kDone});
  pending.Raw().vms.back().vm.Change().replaces.reset();
  See(pending);
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone);
}

TEST_F(TrackerMakeTest, L2_a_token_that_cannot_be_replaced_leaves_a_creation_to_its_deadline) {
  World world = World().With(Vm("a").Age(minutes(10)).Stopped().InstanceRuns(false));
  world.Policy().intro_token = config::IntroToken::kRequired;
  world.Raw().vms[0].vm.Change().printable_status = "Provisioning";
  world.Raw().vms[0].known_for = minutes(2);
  RefuseForAMinute(StepKind::kRenewToken);
  See(world);
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  EXPECT_THAT(PartOf("a").text, HasSubstr("denied by policy"));
}

}  // namespace
}  // namespace nomad_harvester::scaling
