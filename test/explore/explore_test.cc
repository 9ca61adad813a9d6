// SPDX-License-Identifier: Apache-2.0
// The exploration with budgets that are small enough for a debug build, and proof that it detects
// errors: the table of NextStep with a row left out, or with two rows exchanged.
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explorer.h"

namespace nomad_harvester::explore {
namespace {

using scaling::Row;
using ::testing::Contains;
using ::testing::HasSubstr;

// Limit per configuration; harvester_explore visits more states.
constexpr std::size_t kStates = 25'000;
// Enough states to detect each change of the table.
constexpr std::size_t kStatesUntilNoticed = 60'000;

Configuration Named(const std::string& name) {
  for (Configuration& configuration : Configurations(false)) {
    if (configuration.name == name) return configuration;
  }
  ADD_FAILURE() << "no configuration " << name;
  return {};
}

std::string TraceOf(const Result& result) {
  std::string text = Describe(result.violation);
  for (const std::string& line : result.trace) text += "\n" + line;
  return text;
}

TEST(Exploration, I1_to_I5_hold_in_every_state_of_every_configuration) {
  std::size_t states = 0;
  for (const Configuration& configuration : Configurations(false)) {
    const Result result = Explore(configuration, {}, {.states = kStates});
    EXPECT_EQ(result.violation, Violation::kNone) << configuration.name << ": " << TraceOf(result);
    EXPECT_TRUE(result.complete || result.states >= kStates) << configuration.name;
    states += result.states;
  }
  std::printf("[ visited  ] %zu states\n", states);
}

TEST(Exploration, R1_to_R8_hold_in_every_state_while_vms_are_replaced) {
  for (const Configuration& configuration : Configurations(false)) {
    if (!configuration.replaces) continue;
    const Result result = Explore(configuration, {}, {.states = kStatesUntilNoticed});
    EXPECT_EQ(result.violation, Violation::kNone) << configuration.name << ": " << TraceOf(result);
  }
}

struct Noticed {
  Row row;
  const char* configuration;
  Violation violation;
};

// Rows whose removal causes that violation; one row may prevent several.
const std::vector<Noticed>& NeededRows() {
  static const std::vector<Noticed> kRows = {
      {Row::kTerminating, "crash", Violation::kTooManyRemoved},
      {Row::kNotMember, "marks", Violation::kUnmanagedTouched},
      {Row::kUnmarkedDraining, "crash", Violation::kDrainGoesOn},
      {Row::kUnmarkedDrained, "crash", Violation::kLeftIneligible},
      {Row::kUnmarkedRecord, "crash", Violation::kRecordLeft},
      {Row::kUnmarkedJoins, "grow", Violation::kJoinLeft},
      {Row::kUnmarkedCandidate, "joins", Violation::kTakenForBroken},
      {Row::kUnmarkedBroken, "grow", Violation::kBrokenLeft},
      {Row::kUnmarkedUnhealthy, "unhealthy", Violation::kBrokenLeft},
      {Row::kUnmarkedReady, "unready", Violation::kReadyLeft},
      {Row::kUnmarkedCutOff, "fallen", Violation::kTakenForUnhealthy},
      {Row::kUnmarkedCluster, "address", Violation::kTakenForAnothers},
      {Row::kMarkOfAnother, "restored", Violation::kDeletedByOldMark},
      {Row::kMarkedForeignDrain, "drains", Violation::kMaintenanceIgnored},
      {Row::kMarkedAmbiguous, "joins", Violation::kDeletedWithWork},
      {Row::kMarkedNotNamed, "crash", Violation::kTooManyRemoved},
      {Row::kMarkedCandidate, "joins", Violation::kDeletedWithWork},
      {Row::kMarkedNeverJoined, "grow", Violation::kRestless},
      {Row::kMarkedGone, "unhealthy", Violation::kRestless},
      {Row::kMarkedCanceled, "drains", Violation::kCancelIgnored},
      {Row::kMarkedRemovalCancelled, "cancel-removals", Violation::kNotCancelled},
      {Row::kMarkedRefused, "refused", Violation::kRefusalIgnored},
      {Row::kMarkedEnabled, "drains", Violation::kDeletedWithWork},
      {Row::kMarkedDown, "endless", Violation::kMarkLeft},
      {Row::kMarkedIdle, "endless", Violation::kMarkLeft},
      {Row::kMarkedRecovered, "unhealthy", Violation::kHealthyDrained},
      {Row::kMarkedNeverReady, "unready", Violation::kDrainedForNothing},
      {Row::kMarkedCutOff, "fallen", Violation::kMarkLeft},
      {Row::kMarkedRecovered, "unready", Violation::kHealthyDrained},
      {Row::kMarkedDrainAgain, "endless", Violation::kMarkLeft},
      {Row::kUnmarkedBroken, "unready", Violation::kBrokenLeft},
      {Row::kUnmarkedUnhealthy, "fallen", Violation::kBrokenLeft},
      {Row::kMarkedLate, "hanging-kept", Violation::kDrainLeft},
      {Row::kMarkedLate, "never-begun", Violation::kDrainTooLate},
      {Row::kMarkedWaiting, "crash", Violation::kLeftIneligible},
      {Row::kMarkedStartDrain, "crash", Violation::kDrainNotBegun},
      {Row::kGonePurge, "purge", Violation::kNodeLeft},
      {Row::kUnmarkedReplaced, "replace", Violation::kPlaceLeft},
      {Row::kUnmarkedReplaced, "old-first", Violation::kPlaceLeft},
      {Row::kUnmarkedStays, "replace-nodes", Violation::kPlaceLeft},
      {Row::kUnmarkedUnhealthyWaits, "replace-dead", Violation::kGivesWayTooEarly},
      {Row::kUnmarkedNotNeeded, "old-kept", Violation::kPlaceLeft},
      {Row::kUnmarkedStart, "old-first", Violation::kPlaceLeft},
  };
  return kRows;
}

struct Equivalent {
  Row row;
  const char* why;
};

// Rows whose removal causes no violation in the model, and why the table has them nevertheless.
const std::vector<Equivalent>& EquivalentRows() {
  static const std::vector<Equivalent> kRows = {
      {Row::kNomadUnreadable,
       "every removal reads the nodes again, and what is broken is not known"},
      {Row::kOtherNomad,
       "the Lease says whose the pool is before a VM is marked: next_step_test has the row"},
      {Row::kGoneNothing, "does nothing, and is the last of its kind"},
      {Row::kUnmarkedAmbiguous, "reports; without it the VM is one that has joined"},
      {Row::kUnmarkedContradicted, "reports"},
      {Row::kMarkUnreadable, "a mark that names no action is rolled back by the row about names"},
      {Row::kUnmarkedTokenEnds, "the model has no tokens: introduction_test has the row"},
      {Row::kUnmarkedWaiting, "waits; without it the VM has nothing to do, either"},
      {Row::kTerminatingHeld, "the model has no quota: remediation_test has the row"},
      {Row::kUnmarkedHalted, "waits; without it the VM has nothing to do, either"},
      {Row::kUnmarkedPublish, "the model has no hosts: publish_host_rows_test has the row"},
      {Row::kUnmarkedUnpublish, "likewise"},
      {Row::kUnmarkedBrokenKept, "reports"},
      {Row::kUnmarkedUnhealthyKept, "reports"},
      {Row::kUnmarkedOther, "does nothing, and is the last of its kind"},
      {Row::kMarkedProtected, "the model has no protection: marked_rows_test has the row"},
      {Row::kMarkedNoNode, "waits, and is the last of its kind"},
      {Row::kMarkedLateForced,
       "without it the VM is rolled back: the policy's wish, not safety, is lost"},
  };
  return kRows;
}

TEST(Rows, each_one_is_needed_or_listed_as_equivalent) {
  std::set<Row> rows;
  for (const Noticed& needed : NeededRows()) rows.insert(needed.row);
  for (const Equivalent& equivalent : EquivalentRows()) {
    EXPECT_TRUE(rows.insert(equivalent.row).second) << equivalent.why;
  }
  for (int i = 0; i <= static_cast<int>(Row::kMarkedStartDrain); ++i) {
    EXPECT_TRUE(rows.contains(static_cast<Row>(i)))
        << RowName(static_cast<Row>(i)) << ": explore without it, and say here what happens";
  }
}

TEST(Rows, without_a_needed_one_an_invariant_breaks) {
  for (const Noticed& needed : NeededRows()) {
    const Result result =
        Explore(Named(needed.configuration), {.off = needed.row}, {.states = kStatesUntilNoticed});
    EXPECT_EQ(Describe(result.violation), Describe(needed.violation))
        << RowName(needed.row) << " left out of " << needed.configuration << ": "
        << TraceOf(result);
  }
}

// Rows that give the same step, or never match the same snapshot, may be exchanged. Both rows of
// these pairs match some snapshot and give different steps; not all of them are adjacent.
struct Exchanged {
  Row first;
  Row second;
  const char* configuration;
  Violation violation;
};

TEST(Rows, where_their_order_matters_the_other_order_breaks_an_invariant) {
  const std::vector<Exchanged> pairs = {
      {Row::kUnmarkedCandidate, Row::kUnmarkedBroken, "joins", Violation::kTakenForBroken},
      {Row::kMarkedAmbiguous, Row::kMarkedNeverJoined, "joins", Violation::kDeletedWithWork},
      {Row::kMarkedCandidate, Row::kMarkedNeverJoined, "joins", Violation::kDeletedWithWork},
      {Row::kMarkedCanceled, Row::kMarkedStartDrain, "drains", Violation::kRestless},
      {Row::kMarkedEnabled, Row::kMarkedIdle, "drains", Violation::kDeletedWithWork},
      {Row::kMarkedLate, Row::kMarkedWaiting, "hanging-kept", Violation::kDrainLeft},
      {Row::kMarkedWaiting, Row::kMarkedStartDrain, "crash", Violation::kLeftIneligible},
      // A node that is down permanently has no work left, enabled or not.
      {Row::kMarkedEnabled, Row::kMarkedDown, "nodes", Violation::kNone},
      {Row::kMarkedGone, Row::kMarkedNoNode, "nodes", Violation::kMarkLeft},
      {Row::kMarkedRemovalCancelled, Row::kMarkedIdle, "cancel-removals", Violation::kNotCancelled},
      {Row::kMarkedRefused, Row::kMarkedIdle, "refused", Violation::kRefusalIgnored},
      {Row::kUnmarkedNotNeeded, Row::kUnmarkedHalted, "old-kept", Violation::kPlaceLeft},
      {Row::kUnmarkedStart, Row::kUnmarkedHalted, "old-first", Violation::kPlaceLeft},
      {Row::kMarkedLate, Row::kMarkedStartDrain, "never-begun", Violation::kDrainTooLate},
      // A mark that no action names is surplus, but its VM is as safe to delete as any other.
      {Row::kMarkedNotNamed, Row::kMarkedNeverJoined, "grow", Violation::kNone},
  };
  for (const Exchanged& pair : pairs) {
    const Result result =
        Explore(Named(pair.configuration),
                {.swap = Mutation::Swap{.first = pair.first, .second = pair.second}},
                {.states = pair.violation == Violation::kNone ? kStates : kStatesUntilNoticed});
    EXPECT_EQ(Describe(result.violation), Describe(pair.violation))
        << RowName(pair.first) << " below " << RowName(pair.second) << ": " << TraceOf(result);
  }
}

TEST(Trace, is_described_from_the_first_state_to_the_violation) {
  const Result result = Explore(Named("crash"), {.off = Row::kMarkedStartDrain}, {});
  ASSERT_EQ(result.violation, Violation::kDrainNotBegun);
  EXPECT_THAT(result.trace.front(), HasSubstr("node a0 ready, eligible, tasks run"));
  EXPECT_THAT(result.trace, Contains(HasSubstr("VMs and takes the Lease")));
  EXPECT_THAT(result.trace, Contains("process 1: web-a is marked by action 1"));
  EXPECT_THAT(result.trace, Contains(HasSubstr("Status wakes one process")));
}

}  // namespace
}  // namespace nomad_harvester::explore
