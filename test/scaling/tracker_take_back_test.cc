// SPDX-License-Identifier: Apache-2.0
//
// Rule L6: the outcome of taking a removal back, before which nothing is created.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/status_matchers.h"
#include "tracker_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using nomad::NodeStatus;
using support::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrackerTakeBackTest : public TrackerTest {
 protected:
  TrackerTakeBackTest() { Track(ToCreate({"new"}, {"a"})); }
};

// The Lease takes a back; its VM and node are as given.
World Back(const Vm& vm) {
  World world;
  world.With(vm);
  world.Pool().action->back.insert("a");
  return world;
}
World Back(const Vm& vm, const Node& node) { return Back(vm).With(node); }
Vm MarkedA() { return Vm("a").Joined().Marked(); }

TEST_F(TrackerTakeBackTest, L6_every_observation_has_its_outcome) {
  struct Case {
    const char* what;
    World world;
    OutcomeState state;
    const char* text;  // the error, or the reason why it is pending
  };
  const char* const goes_on = "its removal goes on: its node is not ready any more";
  const char* const gone = "its removal could not be cancelled: it is gone";
  World not_yet;
  not_yet.With(MarkedA()).With(Node("a").Draining("a"));
  World unread = Back(MarkedA());
  unread.Raw().vms[0].unread_node = "node n9 (metal), which could be it: HTTP 500";
  World draining = Back(Vm("a").Joined()).With(Node("other", "n9").Draining("a"));
  draining.Raw().vms[0].unread_node = unread.Raw().vms[0].unread_node;
  const auto of_another_nomad = [](Vm vm) {
    World world = Back(vm.OfCluster("k1"));
    world.Raw().nomad_cluster = "k2";
    return world;
  };
  const char* const another = "it belongs to another Nomad cluster";
  const std::vector<Case> cases = {
      {"marked, and another Nomad answers", of_another_nomad(MarkedA().NodeGone()),
       OutcomeState::kPending, another},
      {"un-marked, and another Nomad answers", of_another_nomad(Vm("a").Joined()),
       OutcomeState::kPending, another},
      {"marked, and its node is unread", unread, OutcomeState::kPending,
       "its node node-a exists, but no longer has its name"},
      {"un-marked, and its draining node is unread", draining, OutcomeState::kPending,
       "the VM carries no mark, but node other (n9) is drained for it"},
      {"marked", Back(MarkedA(), Node("a").Draining("a")), OutcomeState::kPending,
       "a scale-out needs it: its removal is cancelled"},
      {"marked, and the Lease does not name it yet", not_yet, OutcomeState::kPending,
       "node a (node-a) drains"},
      {"un-marked, its drain runs", Back(Vm("a").Joined(), Node("a").Draining("a")),
       OutcomeState::kPending, "the VM carries no mark, but node a (node-a) is drained for it"},
      {"un-marked, its node is ineligible", Back(Vm("a").Joined(), Node("a").Drained("a")),
       OutcomeState::kPending, "the VM carries no mark, but node a (node-a) was drained for it"},
      {"un-marked, not recorded", Back(Vm("a").Joined(), Node("a").Drained("a").Eligible()),
       OutcomeState::kPending, "the drain of node a (node-a) is undone"},
      {"undone", Back(Vm("a").Joined(), Node("a")), OutcomeState::kDone, ""},
      {"its node is down", Back(MarkedA(), Node("a").Down()), OutcomeState::kFailed, goes_on},
      {"its node is disconnected", Back(MarkedA(), Node("a").Status(NodeStatus::kDisconnected)),
       OutcomeState::kFailed, goes_on},
      {"its node is gone", Back(MarkedA().NodeGone()), OutcomeState::kFailed, goes_on},
      {"terminating", Back(MarkedA().Terminating(), Node("a")), OutcomeState::kFailed, gone},
      {"gone", World(), OutcomeState::kFailed, gone},
      {"gone, but Nomad cannot be read", World().NomadUnreadable(), OutcomeState::kPending, ""},
      {"un-marked, but Nomad cannot be read", Back(Vm("a").Joined(), Node("a")).NomadUnreadable(),
       OutcomeState::kPending, ""},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    Track(ToCreate({"new"}, {"a"}));
    See(each.world);
    EXPECT_EQ(StateOf("a"), each.state);
    if (each.state == OutcomeState::kFailed) {
      EXPECT_THAT(PartOf("a").error, StatusIs(absl::StatusCode::kFailedPrecondition, each.text));
    } else if (each.state == OutcomeState::kPending) {
      EXPECT_EQ(PartOf("a").text, each.text);
    }
    const bool has_outcome = each.state != OutcomeState::kPending;
    EXPECT_EQ(!tracker_->ToMake().empty(), has_outcome)
        << "nothing is created before it has its outcome";
  }
}

TEST_F(TrackerTakeBackTest, L6_nothing_is_created_before_every_one_has_its_outcome) {
  Track(ToCreate({"new-1", "new-2"}, {"a", "b"}));
  EXPECT_THAT(tracker_->ToMake(), IsEmpty());
  See(Back(Vm("a").Joined(), Node("a")).With(Vm("b").Joined().Marked()).With(Node("b")));
  EXPECT_THAT(tracker_->ToMake(), IsEmpty());
  See(Back(Vm("a").Joined(), Node("a")).With(Vm("b").Joined()).With(Node("b")));
  EXPECT_THAT(tracker_->ToMake(), ElementsAre("new-1", "new-2"));
}

TEST_F(TrackerTakeBackTest, L6_one_that_is_refused_for_a_minute_has_failed_with_the_refusal) {
  const World marked = Back(MarkedA(), Node("a").Draining("a"));
  retries_.Record({"roll-back", "uid-a"}, Refusal("denied by policy"), now_);
  now_ += std::chrono::seconds(59);
  See(marked);
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  now_ += std::chrono::seconds(1);
  See(marked);
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
  EXPECT_THAT(ErrorOf("a"), HasSubstr("denied by policy"));
}

TEST_F(TrackerTakeBackTest, L6_a_cancel_that_is_refused_for_a_minute_has_failed_too) {
  RefuseForAMinute(StepKind::kCancelDrain);
  See(Back(Vm("a").Joined(), Node("a").Draining("a")));
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
}

TEST_F(TrackerTakeBackTest, L6_its_name_is_among_those_that_the_lease_must_hold_until_then) {
  EXPECT_THAT(tracker_->Names(), ElementsAre("a", "new"));
  See(Back(Vm("a").Joined(), Node("a")));
  EXPECT_THAT(tracker_->Names(), ElementsAre("new"));
}

TEST_F(TrackerTakeBackTest, it_is_neither_a_removal_nor_a_creation_for_the_record) {
  Track(ToCreate({}, {"a"}));
  See(World());
  ASSERT_EQ(StateOf("a"), OutcomeState::kFailed);
  EXPECT_THAT(Failures(), IsEmpty()) << "C12: taking back never waits";
  EXPECT_FALSE(Summary().removed);
  EXPECT_FALSE(Summary().created);
}

}  // namespace
}  // namespace nomad_harvester::scaling
