// SPDX-License-Identifier: Apache-2.0
//
// Rules L2 and L3: when what was refused or failed is retried, and for how long it has been so.

#include "rules/retries.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answers.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using support::IsOk;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FixedRandom final : public runtime::Random {
 public:
  explicit FixedRandom(std::uint64_t value) : value_(value) {}
  std::uint64_t Next() override { return value_; }

 private:
  const std::uint64_t value_;
};
constexpr std::uint64_t kLeast = 0;
constexpr std::uint64_t kMiddle = std::uint64_t{1} << 63;  // no jitter
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

const base::MonoTime kStart{std::chrono::hours(5)};
const Retries::Key kDrain{"start-drain", "uid-a"};
// Two writes of one step.
const Retries::Key kFirst{"cancel-drain", "uid-a", "node-1"};
const Retries::Key kSecond{"cancel-drain", "uid-a", "node-2"};

// The waits of an object that fails `times` in a row, each time as soon as it may be tried.
std::vector<base::Duration> WaitsOf(Retries* retries, int times, const Retries::Key& key = kDrain) {
  std::vector<base::Duration> waits;
  base::MonoTime now = kStart;
  for (int i = 0; i < times; ++i) {
    retries->Record(key, Failure(), now);
    waits.push_back(*retries->NextAttempt(now) - now);
    now = *retries->NextAttempt(now);
  }
  return waits;
}

class RetriesTest : public testing::Test {
 protected:
  bool Record(const Effect& effect, base::Duration at, const Retries::Key& key = kDrain) {
    return retries_.Record(key, effect, kStart + at);
  }
  base::Duration RefusedFor(base::Duration at, const Retries::Key& key = kDrain) const {
    return retries_.RefusedFor(key, kStart + at);
  }
  bool MayTry(base::Duration at, const Retries::Key& key = kDrain) const {
    return retries_.MayTry(key, kStart + at);
  }

  FixedRandom random_{kMiddle};
  Retries retries_{random_};
};

TEST_F(RetriesTest, L2_the_wait_doubles_from_one_second_to_sixty) {
  EXPECT_THAT(WaitsOf(&retries_, 9),
              ElementsAre(seconds(1), seconds(2), seconds(4), seconds(8), seconds(16), seconds(32),
                          seconds(60), seconds(60), seconds(60)));
}

TEST_F(RetriesTest, L2_an_object_may_be_tried_when_its_wait_is_over_and_not_before) {
  EXPECT_TRUE(MayTry(seconds(0))) << "nothing has failed";
  Record(Failure(), seconds(0));
  EXPECT_FALSE(MayTry(milliseconds(999)));
  EXPECT_TRUE(MayTry(seconds(1)));
}

TEST_F(RetriesTest, L1_each_object_and_each_thing_to_do_waits_on_its_own) {
  Record(Failure(), seconds(0));
  EXPECT_TRUE(MayTry(seconds(0), {"start-drain", "uid-b"}));
  EXPECT_TRUE(MayTry(seconds(0), {"delete", "uid-a"}));
}

TEST_F(RetriesTest, L2_refusals_failures_and_conflicts_wait_alike) {
  for (const Effect& effect : {Refusal(), Failure(), Conflict()}) {
    Retries retries(random_);
    retries.Record(kDrain, effect, kStart);
    EXPECT_EQ(retries.NextAttempt(kStart), kStart + seconds(1));
  }
}

TEST_F(RetriesTest, a_success_ends_the_wait_and_the_next_failure_begins_anew) {
  for (const Verdict verdict : {Verdict::kDone, Verdict::kNotWanted}) {
    WaitsOf(&retries_, 5);
    Record({.verdict = verdict}, seconds(0));
    EXPECT_TRUE(MayTry(seconds(0)));
    EXPECT_EQ(retries_.NextAttempt(kStart), std::nullopt);
    EXPECT_THAT(WaitsOf(&retries_, 2), ElementsAre(seconds(1), seconds(2)));
    Record({.verdict = verdict}, seconds(0));
  }
}

TEST_F(RetriesTest, L2_what_was_accepted_and_is_asked_for_again_is_refused_until_a_read_shows_it) {
  for (int i = 0; i < 70; ++i) {
    const base::MonoTime observed = kStart + seconds(i);
    if (retries_.WasAccepted(kDrain, observed)) retries_.Record(kDrain, WithoutEffect(), observed);
    if (retries_.MayTry(kDrain, observed)) Record({.verdict = Verdict::kDone}, seconds(i));
  }
  EXPECT_TRUE(retries_.IsRefusedForGood(kDrain, kStart + seconds(70)));
  EXPECT_THAT(retries_.LastOf(kDrain).ToString(), HasSubstr("accepted without effect"));
  EXPECT_TRUE(retries_.LacksEffect(kDrain));
}

TEST_F(RetriesTest, L2_an_acceptance_is_judged_by_an_observation_that_began_after_it) {
  Record({.verdict = Verdict::kDone}, seconds(1));
  EXPECT_FALSE(retries_.WasAccepted(kDrain, kStart));
  retries_.ConfirmAccepted(kStart, false);
  EXPECT_TRUE(retries_.WasAccepted(kDrain, kStart + seconds(2)));
  retries_.ConfirmAccepted(kStart + seconds(2), false);
  EXPECT_FALSE(retries_.WasAccepted(kDrain, kStart + seconds(3))) << "it had its effect";
}

TEST_F(RetriesTest, L2_another_node_or_value_of_the_same_step_is_another_write) {
  Record({.verdict = Verdict::kDone}, seconds(0), kFirst);
  EXPECT_TRUE(retries_.WasAccepted(kFirst, kStart + seconds(1)));
  EXPECT_FALSE(retries_.WasAccepted(kSecond, kStart + seconds(1)));
  Record(WithoutEffect(), seconds(1), kFirst);
  EXPECT_FALSE(MayTry(seconds(1), kSecond)) << "a step of one object has one pace";
  Record({.verdict = Verdict::kDone}, seconds(2), kSecond);
  EXPECT_FALSE(retries_.LacksEffect(kSecond)) << "it is an effect like any other";
}

TEST_F(RetriesTest, L2_a_failure_of_another_write_says_nothing_of_the_effect_of_the_first) {
  Record({.verdict = Verdict::kDone}, seconds(0), kFirst);
  Record(Failure(), seconds(1), kSecond);
  EXPECT_FALSE(retries_.LacksEffect(kFirst));
  EXPECT_FALSE(retries_.LacksEffect(kSecond));
}

TEST_F(RetriesTest, L2_another_write_that_follows_one_without_effect_is_judged_by_its_own_effect) {
  Record({.verdict = Verdict::kDone}, seconds(0), kFirst);
  Record(WithoutEffect(), seconds(1), kFirst);
  Record({.verdict = Verdict::kDone}, seconds(2), kSecond);
  EXPECT_TRUE(retries_.WasAccepted(kSecond, kStart + seconds(3)));
  EXPECT_FALSE(retries_.WasAccepted(kFirst, kStart + seconds(3)));
}

TEST_F(RetriesTest, L2_an_observation_that_began_as_the_write_was_accepted_shows_its_effect) {
  Record({.verdict = Verdict::kDone}, seconds(1));
  EXPECT_TRUE(retries_.WasAccepted(kDrain, kStart + seconds(1)));
  retries_.ConfirmAccepted(kStart + seconds(1), false);
  EXPECT_FALSE(retries_.WasAccepted(kDrain, kStart + seconds(2)));
}

TEST_F(RetriesTest, L3_what_was_given_up_stays_so_when_it_is_not_asked_for) {
  Record({.verdict = Verdict::kDone}, seconds(0));
  Record(WithoutEffect(), seconds(0));
  Record({.verdict = Verdict::kDone}, seconds(61));
  retries_.ConfirmAccepted(kStart + seconds(62), false);
  EXPECT_TRUE(retries_.IsRefusedForGood(kDrain, kStart + seconds(62)));
}

TEST_F(RetriesTest, L2_an_effect_after_all_ends_the_trouble) {
  Record({.verdict = Verdict::kDone}, seconds(0));
  Record(WithoutEffect(), seconds(0));
  Record({.verdict = Verdict::kDone}, seconds(2));
  retries_.ConfirmAccepted(kStart + seconds(3), false);
  EXPECT_FALSE(retries_.LacksEffect(kDrain));
  EXPECT_THAT(retries_.LastOf(kDrain), IsOk());
}

TEST_F(RetriesTest, R6_a_single_refusal_has_not_lasted_however_long_ago_it_was) {
  Record(Refusal(), seconds(0));
  EXPECT_EQ(RefusedFor(seconds(90)), seconds(90));
  EXPECT_EQ(retries_.RefusedAgainFor(kDrain), seconds(0));
  Record(Refusal(), seconds(61));
  EXPECT_EQ(retries_.RefusedAgainFor(kDrain), seconds(61));
  Record({.verdict = Verdict::kDone}, seconds(70));
  EXPECT_EQ(retries_.RefusedAgainFor(kDrain), seconds(0));
}

TEST_F(RetriesTest, an_attempt_that_was_cancelled_or_found_an_unsuitable_vm_changes_nothing) {
  for (const Verdict verdict : {Verdict::kCancelled, Verdict::kUnsuitable}) {
    EXPECT_FALSE(Record({.verdict = verdict, .status = absl::CancelledError("stop")}, seconds(0)));
    EXPECT_TRUE(MayTry(seconds(0))) << "no trouble begins";
  }
  Record(Refusal(), seconds(0));
  for (const Verdict verdict : {Verdict::kCancelled, Verdict::kUnsuitable}) {
    Record({.verdict = verdict, .status = absl::CancelledError("stop")}, seconds(5));
    EXPECT_EQ(retries_.NextAttempt(kStart), kStart + seconds(1)) << "and none ends";
    EXPECT_EQ(RefusedFor(seconds(10)), seconds(10));
  }
}

TEST(RetriesJitter, L2_every_wait_is_within_a_fifth_of_its_length) {
  FixedRandom least(kLeast);
  Retries shortest(least);
  EXPECT_EQ(WaitsOf(&shortest, 1).back(), milliseconds(800));
  EXPECT_EQ(WaitsOf(&shortest, 8).back(), seconds(48));
  FixedRandom most(kMost);
  Retries longest(most);
  const base::Duration first = WaitsOf(&longest, 1).back();
  EXPECT_GT(first, milliseconds(1199));
  EXPECT_LE(first, milliseconds(1200));
  const base::Duration last = WaitsOf(&longest, 8).back();
  EXPECT_GT(last, milliseconds(71'999));
  EXPECT_LE(last, seconds(72));
}

TEST(RetriesJitter, L2_objects_that_fail_together_do_not_come_back_together) {
  const auto random = support::MakeSeededRandom(7);
  std::vector<base::Duration> waits;
  for (int i = 0; i < 200; ++i) {
    Retries alone(*random);
    waits.push_back(WaitsOf(&alone, 1).front());
  }
  EXPECT_THAT(waits, Each(testing::AllOf(testing::Ge(base::Duration(milliseconds(800))),
                                         testing::Le(base::Duration(milliseconds(1200))))));
  const auto [least, most] = std::minmax_element(waits.begin(), waits.end());
  EXPECT_LT(*least, milliseconds(850)) << "the whole width is used";
  EXPECT_GT(*most, milliseconds(1150));
}

TEST(RetriesJitter, L2_jitter_does_not_add_up_from_wait_to_wait) {
  FixedRandom most(kMost);
  Retries retries(most);
  EXPECT_LE(WaitsOf(&retries, 6).back(), milliseconds(38'400)) << "32 s and a fifth";
}

TEST_F(RetriesTest, L3_refused_for_runs_from_the_first_refusal) {
  EXPECT_EQ(RefusedFor(seconds(0)), seconds(0));
  Record(Refusal(), seconds(10));
  Record(Refusal(), seconds(30));
  EXPECT_EQ(RefusedFor(seconds(40)), seconds(30));
}

TEST_F(RetriesTest, L3_an_object_that_was_just_refused_counts_as_refused) {
  Record(Refusal(), seconds(10));
  EXPECT_GT(RefusedFor(seconds(10)), base::Duration::zero());
}

TEST_F(RetriesTest, L3_conflicts_and_transient_failures_in_between_do_not_reset_it) {
  Record(Refusal(), seconds(0));
  Record(Conflict(), seconds(10));
  Record(Failure(), seconds(20));
  Record(EffectOf(absl::UnavailableError("connection reset")), seconds(30));
  EXPECT_EQ(RefusedFor(seconds(45)), seconds(45));
  Record(Refusal(), seconds(50));
  EXPECT_EQ(RefusedFor(seconds(60)), seconds(60));
}

TEST_F(RetriesTest, L3_transient_failures_alone_are_no_refusal_however_long_they_last) {
  Record(Failure(), seconds(0));
  Record(Conflict(), seconds(300));
  EXPECT_EQ(RefusedFor(seconds(600)), seconds(0));
  EXPECT_EQ(retries_.FailingFor(kDrain, kStart + seconds(600)), seconds(600));
}

TEST_F(RetriesTest, L3_failures_before_the_first_refusal_do_not_count_as_refused) {
  Record(Failure(), seconds(0));
  Record(Refusal(), seconds(40));
  EXPECT_EQ(RefusedFor(seconds(60)), seconds(20));
  EXPECT_EQ(retries_.FailingFor(kDrain, kStart + seconds(60)), seconds(60));
}

TEST_F(RetriesTest, L3_an_acceptance_ends_it) {
  Record(Refusal(), seconds(0));
  Record(Done(), seconds(30));
  EXPECT_EQ(RefusedFor(seconds(40)), seconds(0));
  Record(Refusal(), seconds(50));
  EXPECT_EQ(RefusedFor(seconds(60)), seconds(10));
}

TEST_F(RetriesTest, L3_a_refusal_is_for_good_after_a_minute) {
  Record(Refusal(), seconds(0));
  EXPECT_FALSE(retries_.IsRefusedForGood(kDrain, kStart + milliseconds(59'999)));
  EXPECT_TRUE(retries_.IsRefusedForGood(kDrain, kStart + seconds(60)));
}

TEST_F(RetriesTest, the_last_error_is_kept_until_a_success) {
  EXPECT_THAT(retries_.LastOf(kDrain), IsOk());
  Record(Refusal("first"), seconds(0));
  Record(Refusal("second"), seconds(1));
  EXPECT_THAT(base::Message(retries_.LastOf(kDrain)), HasSubstr("second"));
  Record(Done(), seconds(2));
  EXPECT_THAT(retries_.LastOf(kDrain), IsOk());
}

TEST_F(RetriesTest, L2_a_refusal_is_logged_when_it_begins_at_each_doubling_and_when_it_ends) {
  std::vector<bool> lines;
  lines.reserve(9);
  for (int i = 0; i < 9; ++i) lines.push_back(Record(Refusal(), seconds(60 * i)));
  EXPECT_THAT(lines, ElementsAre(true, true, true, true, true, true, true, false, false));
  EXPECT_TRUE(Record(Done(), seconds(600)));
  EXPECT_FALSE(Record(Done(), seconds(601))) << "nothing ends";
}

TEST_F(RetriesTest, L2_a_refusal_after_failures_is_logged_although_the_wait_stays) {
  for (int i = 0; i < 9; ++i) Record(Failure(), seconds(60 * i));
  EXPECT_TRUE(Record(Refusal(), seconds(600)));
  EXPECT_FALSE(Record(Refusal(), seconds(660)));
}

TEST_F(RetriesTest, a_conflict_is_never_logged) {
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(Record(Conflict(), seconds(i)));
}

TEST_F(RetriesTest, what_is_forgotten_begins_anew_and_nothing_else_does) {
  const Retries::Key other{"delete", "uid-a"};
  Record(Refusal(), seconds(0));
  Record(Refusal(), seconds(0), other);
  retries_.Forget(kDrain);
  EXPECT_TRUE(MayTry(seconds(0)));
  EXPECT_EQ(RefusedFor(seconds(30)), seconds(0));
  EXPECT_FALSE(MayTry(seconds(0), other));
  EXPECT_EQ(RefusedFor(seconds(30), other), seconds(30));
}

TEST_F(RetriesTest, the_next_attempt_is_the_earliest_of_all) {
  EXPECT_EQ(retries_.NextAttempt(kStart), std::nullopt);
  Record(Failure(), seconds(5));
  Record(Failure(), seconds(0), {"start-drain", "uid-b"});
  EXPECT_EQ(retries_.NextAttempt(kStart), kStart + seconds(1));
}

TEST_F(RetriesTest, L2_what_was_due_and_is_not_tried_is_no_next_attempt) {
  Record(Failure(), seconds(0));
  Record(Failure(), seconds(5), {"start-drain", "uid-b"});
  EXPECT_EQ(retries_.NextAttempt(kStart + seconds(1)), kStart + seconds(6));
  EXPECT_EQ(retries_.NextAttempt(kStart + seconds(6)), std::nullopt);
}

TEST_F(RetriesTest, troubles_of_objects_that_are_gone_are_forgotten) {
  Record(Refusal(), seconds(0), {"delete", "uid-a"});
  Record(Refusal(), seconds(0), {"delete", "uid-b"});
  retries_.KeepOnly({"uid-b"}, false);
  EXPECT_THAT(retries_.LastOf({"delete", "uid-a"}), IsOk());
  EXPECT_FALSE(retries_.LastOf({"delete", "uid-b"}).ok());
}

TEST_F(RetriesTest, L4_troubles_of_claims_and_secrets_are_kept_while_there_are_leftovers) {
  const std::vector<Retries::Key> clean_up = {
      {kDeleteClaim, "claim"}, {kDeleteSecret, "secret"}, {kSetSecretOwner, "secret"}};
  for (const Retries::Key& key : clean_up) Record(Refusal(), seconds(0), key);
  Record(Refusal(), seconds(0), {"purge", "node-a"});
  retries_.KeepOnly({}, true);
  for (const Retries::Key& key : clean_up) {
    EXPECT_EQ(RefusedFor(seconds(30), key), seconds(30)) << key.what;
  }
  EXPECT_EQ(RefusedFor(seconds(30), {"purge", "node-a"}), seconds(0));
  retries_.KeepOnly({}, false);
  EXPECT_EQ(retries_.NextAttempt(kStart), std::nullopt);
}

TEST_F(RetriesTest, L3_each_vm_of_a_look_learns_of_its_own_refusals) {
  Observation observation = World()
                                .With(Vm("drain"))
                                .With(Vm("delete"))
                                .With(Vm("both"))
                                .With(Vm("unmark"))
                                .With(Vm("other"))
                                .With(Vm("none"))
                                .Raw();
  Record(Refusal(), seconds(0), {"start-drain", "uid-drain"});
  Record(Refusal(), seconds(10), {"delete", "uid-delete"});
  Record(Refusal(), seconds(20), {"start-drain", "uid-both"});
  Record(Refusal(), seconds(30), {"delete", "uid-both"});
  Record(Refusal(), seconds(0), {"roll-back", "uid-unmark"});
  Record(Refusal(), seconds(0), {"record-join", "uid-other"});
  retries_.Apply(kStart + seconds(60), &observation);
  const auto view = [&](const std::string& name) {
    return *std::find_if(observation.vms.begin(), observation.vms.end(),
                         [&](const VmView& each) { return each.vm->name == name; });
  };
  EXPECT_EQ(view("drain").removal_refused_for, seconds(60));
  EXPECT_EQ(view("delete").removal_refused_for, seconds(50));
  EXPECT_EQ(view("both").removal_refused_for, seconds(40)) << "the longer of both";
  EXPECT_EQ(view("other").removal_refused_for, seconds(0));
  EXPECT_EQ(view("none").removal_refused_for, seconds(0));
  EXPECT_TRUE(view("unmark").unmarking_refused);
  EXPECT_FALSE(view("drain").unmarking_refused);
}

TEST(EffectOf, the_answers_of_both_systems_have_their_verdicts) {
  EXPECT_EQ(EffectOf(absl::OkStatus()).verdict, Verdict::kDone);
  EXPECT_EQ(EffectOf(absl::CancelledError("stop")).verdict, Verdict::kCancelled);
  EXPECT_EQ(EffectOf(KubeAnswer(409, "Conflict")).verdict, Verdict::kConflict);
  EXPECT_EQ(EffectOf(KubeAnswer(409, "AlreadyExists")).verdict, Verdict::kFailed);
  EXPECT_EQ(EffectOf(KubeAnswer(422, "Invalid")).verdict, Verdict::kRefused);
  EXPECT_EQ(EffectOf(KubeAnswer(403, "Forbidden")).verdict, Verdict::kRefused);
  EXPECT_EQ(EffectOf(KubeAnswer(401, "Unauthorized")).verdict, Verdict::kFailed);
  EXPECT_EQ(EffectOf(KubeAnswer(503, "ServiceUnavailable")).verdict, Verdict::kFailed);
  EXPECT_EQ(EffectOf(NomadAnswer(403, "Permission denied")).verdict, Verdict::kRefused);
  EXPECT_EQ(EffectOf(NomadAnswer(403, "ACL token expired")).verdict, Verdict::kFailed);
  EXPECT_EQ(EffectOf(NomadAnswer(500, "No cluster leader")).verdict, Verdict::kFailed);
  EXPECT_EQ(EffectOf(absl::DeadlineExceededError("no answer")).verdict, Verdict::kFailed);
}

TEST(EffectOf, the_error_is_kept) {
  EXPECT_EQ(EffectOf(absl::UnavailableError("gone away")).status,
            absl::UnavailableError("gone away"));
}

}  // namespace
}  // namespace nomad_harvester::scaling
