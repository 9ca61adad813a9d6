// SPDX-License-Identifier: Apache-2.0
//
// Rule L5: a victim that a fresh look shows unsuitable is replaced by the next candidate.

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/status_matchers.h"
#include "tracker_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using support::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TrackerReplaceTest : public TrackerTest {
 protected:
  TrackerReplaceTest() { Track(ToRemove({"a"}, {"b", "c"})); }
};

// The candidates b and c stand; a is as given.
World WithA(const Vm& vm, const Node& node = Node("a")) {
  World world;
  return world.With(vm)
      .With(node)
      .With(Vm("b").Joined())
      .With(Node("b"))
      .With(Vm("c").Joined())
      .With(Node("c"));
}
World Protected() { return WithA(Vm("a").Joined().Protected()); }

TEST_F(TrackerReplaceTest, L5_a_suitable_victim_is_marked) {
  EXPECT_THAT(ToMark(WithA(Vm("a").Joined())), ElementsAre("a"));
  EXPECT_THAT(tracker_->Names(), ElementsAre("a"));
}

TEST_F(TrackerReplaceTest, L5_the_name_of_the_next_candidate_is_known_before_it_is_marked) {
  EXPECT_THAT(ToMark(Protected()), IsEmpty());
  EXPECT_THAT(tracker_->Names(), ElementsAre("b")) << "the Lease must hold it first";
  EXPECT_EQ(PartOf("b").node_id, "node-b");
  EXPECT_THAT(ToMark(Protected()), ElementsAre("b"));
}

TEST_F(TrackerReplaceTest, L5_every_objection_replaces_the_victim) {
  const std::vector<std::pair<const char*, World>> cases = {
      {"C7: protected by its annotation", Protected()},
      {"C7: protected by its node's meta",
       WithA(Vm("a").Joined(), Node("a").Meta("harvester_protect", "true"))},
      {"C7: its volume is another VM's",
       WithA(Vm("a").Joined().Claim("data")).With(Vm("d").Unmanaged().Claim("data"))},
      {"C6: contradicted", WithA(Vm("a").Joined(), Node("a").Meta("harvester_vm_uuid", "fw-b"))},
      {"C6: two ready nodes", WithA(Vm("a").Joined()).With(Node("a", "n2"))},
      {"its node is in another pool", WithA(Vm("a").Joined(), Node("a").Class("db"))},
      {"an operator drains its node", WithA(Vm("a").Joined(), Node("a").DrainedByOperator())},
      {"another region", WithA(Vm("a").Joined().Region("us")).Region("eu")},
  };
  for (const auto& [what, world] : cases) {
    SCOPED_TRACE(what);
    Track(ToRemove({"a"}, {"b", "c"}));
    EXPECT_THAT(ToMark(world), IsEmpty());
    EXPECT_THAT(tracker_->Names(), ElementsAre("b"));
  }
}

TEST_F(TrackerReplaceTest, C7_the_autoscalers_own_node_replaces_the_victim) {
  Track(ToRemove({"a"}, {"b"}));
  World world = WithA(Vm("a").Joined());
  world.Raw().own_node_id = "node-a";
  EXPECT_THAT(ToMark(world), IsEmpty());
  EXPECT_THAT(tracker_->Names(), ElementsAre("b"));
}

TEST_F(TrackerReplaceTest, L5_a_vm_that_turned_out_unsuitable_just_before_its_mark_is_replaced) {
  tracker_->RecordMark("a",
                       {.verdict = Verdict::kUnsuitable,
                        .status = absl::FailedPreconditionError("protected by its annotation")},
                       false);
  EXPECT_THAT(tracker_->Names(), ElementsAre("b"));
}

TEST_F(TrackerReplaceTest, L5_candidates_follow_in_their_order_until_none_is_left) {
  World all_protected;
  for (const char* name : {"a", "b", "c"}) {
    all_protected.With(Vm(name).Joined().Protected()).With(Node(name));
  }
  ToMark(all_protected);
  EXPECT_THAT(tracker_->Names(), ElementsAre("b"));
  ToMark(all_protected);
  EXPECT_THAT(tracker_->Names(), ElementsAre("c"));
  ToMark(all_protected);
  EXPECT_THAT(tracker_->Names(), IsEmpty());
  EXPECT_THAT(tracker_->FinalStatus(absl::OkStatus()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "1 of 1 VMs failed:"
                       "\nc: failed: protected by its annotation"
                       "\na: passed over, protected by its annotation"
                       "\nb: passed over, protected by its annotation"))
      << "the error names each with its reason";
}

TEST_F(TrackerReplaceTest, L5_two_victims_are_replaced_by_two_candidates) {
  Track(ToRemove({"a", "d"}, {"b", "c"}));
  World world = Protected();
  world.With(Vm("d").Joined().Protected()).With(Node("d"));
  EXPECT_THAT(ToMark(world), IsEmpty());
  EXPECT_THAT(tracker_->Names(), ElementsAre("b", "c"));
}

TEST_F(TrackerReplaceTest, L5_a_replaced_victim_is_no_failure) {
  ToMark(Protected());
  See(World().With(Vm("a").Joined().Protected()).With(Node("a")));  // b is gone
  EXPECT_EQ(StateOf("b"), OutcomeState::kDone);
  EXPECT_TRUE(tracker_->FinalStatus(absl::OkStatus()).ok());
  EXPECT_THAT(Failures(), IsEmpty());
}

TEST_F(TrackerReplaceTest, L5_a_victim_that_is_gone_or_terminating_by_then_is_never_replaced) {
  World gone;
  gone.With(Vm("b").Joined()).With(Node("b"));
  EXPECT_THAT(ToMark(gone), IsEmpty());
  EXPECT_THAT(tracker_->Names(), ElementsAre("a"));
  EXPECT_THAT(ToMark(WithA(Vm("a").Joined().Protected().Terminating())), IsEmpty());
  EXPECT_THAT(tracker_->Names(), ElementsAre("a"));
  See(gone);
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone) << "it counts as removed";
}

TEST_F(TrackerReplaceTest, L5_a_vm_that_is_marked_is_never_replaced) {
  tracker_->RecordMark("a", Done(), false);
  EXPECT_THAT(ToMark(Protected()), IsEmpty()) << "an old look";
  EXPECT_THAT(tracker_->Names(), ElementsAre("a"));
}

TEST_F(TrackerReplaceTest, L5_a_conflict_while_marking_tries_the_same_vm_again) {
  tracker_->RecordMark("a", Conflict(), false);
  EXPECT_THAT(ToMark(WithA(Vm("a").Joined())), ElementsAre("a"));
}

TEST_F(TrackerReplaceTest, C15_nothing_is_marked_or_replaced_while_nomad_cannot_be_read) {
  EXPECT_THAT(ToMark(Protected().NomadUnreadable()), IsEmpty());
  EXPECT_THAT(ToMark(WithA(Vm("a").Joined()).NomadUnreadable()), IsEmpty());
  EXPECT_THAT(tracker_->Names(), ElementsAre("a"));
}

TEST_F(TrackerReplaceTest, L3_a_mark_that_is_refused_for_good_is_a_failure_and_not_replaced) {
  tracker_->RecordMark("a", Refusal("denied"), true);
  EXPECT_THAT(ToMark(WithA(Vm("a").Joined())), IsEmpty());
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
  See(WithA(Vm("a").Joined()));
  EXPECT_THAT(Failures(), ElementsAre("refused"));
}

}  // namespace
}  // namespace nomad_harvester::scaling
