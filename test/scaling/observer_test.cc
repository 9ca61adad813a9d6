// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/observer.h"

#include "pool_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using simulator::Fault;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class ObserverTest : public PoolFixture {
 protected:
  absl::StatusOr<scaling::Observation> TryLook(const Observer::BlockingWait& blocking = {}) {
    Forget();
    return MakeObserver().Observe(context(), EmptyObservation("", "", policy_), blocking);
  }
  scaling::Observation Observation() {
    auto observation = TryLook();
    EXPECT_THAT(observation, IsOk());
    return observation.ok() ? *std::move(observation) : scaling::Observation{};
  }
  // A ready node of the pool that is no VM of it.
  std::string AddStranger() {
    return cluster_.AddForeignNode({.name = "metal", .node_class = "web"});
  }
};

TEST_F(ObserverTest, C15_nodes_are_read_before_vms_and_vms_before_their_instances) {
  AddVm("web-a");
  const scaling::Observation observation = Observation();
  EXPECT_THAT(Sent(), ElementsAre("list nodes", "get jwks.json", "list virtualmachines",
                                  "list virtualmachineinstances", "get namespaces"));
  EXPECT_TRUE(observation.nomad.ok());
  EXPECT_GT(observation.nomad_index, 0U);
  ASSERT_THAT(observation.vms, SizeIs(1));
  EXPECT_EQ(observation.vms[0].link.state, nodepool::LinkState::kLinked);
  EXPECT_EQ(observation.vms[0].instance_runs, true);
}

TEST_F(ObserverTest, C15_without_nomad_vms_are_still_seen_and_nothing_is_said_of_nodes) {
  AddVm("web-a");
  Next("list nodes", RefusedByNomad());
  const scaling::Observation observation = Observation();
  EXPECT_THAT(Sent(), ElementsAre("list nodes", "list virtualmachines"));
  EXPECT_FALSE(observation.nomad.ok());
  EXPECT_THAT(base::Message(observation.nomad), HasSubstr("Permission denied"));
  EXPECT_THAT(observation.vms, SizeIs(1));
}

TEST_F(ObserverTest, C15_a_nomad_that_knows_less_than_a_vm_counts_as_unreadable) {
  AddVm("web-a");
  cluster_.EditAnnotation("web-a", harvester::kNodesAnnotation,
                          harvester::ToAnnotation({.node_class = "web", .index = 1000000}));
  const scaling::Observation observation = Observation();
  EXPECT_FALSE(observation.nomad.ok());
  EXPECT_THAT(base::Message(observation.nomad), HasSubstr("another Nomad answers"));
  EXPECT_THAT(Sent(), ElementsAre("list nodes", "get jwks.json", "list virtualmachines",
                                  "list virtualmachineinstances", "get namespaces", "list nodes"));
}

TEST_F(ObserverTest,
       C15_a_vm_that_another_pool_makes_between_the_lists_does_not_mean_another_nomad) {
  AddVm("web-a");
  const std::uint64_t index = Observation().nomad_index;
  After("list nodes", [&] {
    AddStranger();
    cluster_.EditAnnotation("web-a", harvester::kNodesAnnotation,
                            harvester::ToAnnotation({.node_class = "web", .index = index + 1}));
  });
  const scaling::Observation observation = Observation();
  EXPECT_TRUE(observation.nomad.ok()) << observation.nomad;
  EXPECT_GT(observation.nomad_index, index) << "a node is missing only in a list that can know it";
  EXPECT_THAT(observation.nodes(), SizeIs(2));
}

TEST_F(ObserverTest, S1_without_its_list_of_vms_there_is_no_look) {
  Next("list virtualmachines", Refused());
  EXPECT_THAT(TryLook(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("Harvester cannot be read")));
}

TEST_F(ObserverTest, C16_a_call_that_ends_says_so_wherever_it_ends) {
  AddVm("web-a");
  AddStranger();
  HoldLease();
  for (const std::string read :
       {"list nodes", "list virtualmachines", "list virtualmachineinstances", "get node"}) {
    const runtime::CancelSource call(runtime::Context::Background(clock_));
    Next(read, Fault::BeforeReply([&] { call.Cancel(runtime::CancelReason::kClient); }));
    Forget();
    const auto observation =
        MakeObserver().Observe(call.context(), EmptyObservation("", "", policy_), {});
    EXPECT_THAT(observation, StatusIs(absl::StatusCode::kCancelled,
                                      testing::Not(HasSubstr("Harvester cannot be read"))))
        << read;
    EXPECT_EQ(Last(), read) << "nothing is sent after it";
  }
}

TEST_F(ObserverTest, C5_without_the_right_to_list_instances_it_is_unknown_whether_a_guest_runs) {
  AddVm("web-a");
  Next("list virtualmachineinstances", Refused());
  const scaling::Observation observation = Observation();
  ASSERT_THAT(observation.vms, SizeIs(1));
  EXPECT_FALSE(observation.vms[0].instance_runs.has_value());
  EXPECT_TRUE(observation.nomad.ok());
  EXPECT_THAT(sink_->Text(), HasSubstr("Could not list instances"));
}

TEST_F(ObserverTest, C9_allocations_are_read_only_for_drains_of_ours_that_are_complete) {
  AddVm("web-a");
  cluster_.RunJob({.id = "api"});
  clock_.Advance(seconds(2));
  cluster_.HangDrain(NodeOf("web-a"));
  Mark("web-a");
  Drain("web-a");
  clock_.Advance(seconds(2));
  Observation();
  EXPECT_EQ(Count("list allocations"), 0U) << "it still drains";
  cluster_.HangDrain(NodeOf("web-a"), false);
  clock_.Advance(seconds(20));
  const scaling::Observation observation = Observation();
  EXPECT_EQ(Last(), "list allocations");
  EXPECT_EQ(Count("list allocations"), 1U);
  ASSERT_TRUE(observation.allocations.contains(NodeOf("web-a")));
  EXPECT_TRUE(nodepool::IsIdle(observation.allocations.at(NodeOf("web-a")), false));
}

TEST_F(ObserverTest, C9_a_token_that_may_not_list_allocations_is_asked_node_by_node) {
  AddVm("web-a");
  AddVm("web-b");
  Idle("web-a");
  Next("list allocations", RefusedByNomad());
  const scaling::Observation observation = Observation();
  EXPECT_EQ(Count("list node-allocations"), 1U);
  EXPECT_TRUE(observation.allocations.contains(NodeOf("web-a")));
  EXPECT_FALSE(observation.allocations.contains(NodeOf("web-b")));
}

TEST_F(ObserverTest, L1_a_list_of_allocations_that_is_too_large_is_told_once_and_costs_no_drain) {
  AddVm("web-a");
  Idle("web-a");
  Always("list allocations", Fault::Answer(200, "{}"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Observation().allocations.contains(NodeOf("web-a")));
    EXPECT_EQ(Count("list node-allocations"), 1U);
  }
  EXPECT_EQ(sink_->Count("", log::Level::kWarn), 1U) << sink_->Text();
}

TEST_F(ObserverTest, C9_a_node_whose_allocations_cannot_be_read_is_not_known_to_be_idle) {
  AddVm("web-a");
  Idle("web-a");
  Next("list allocations", RefusedByNomad());
  Next("list node-allocations", RefusedByNomad());
  const scaling::Observation observation = Observation();
  EXPECT_THAT(observation.allocations, IsEmpty());
  EXPECT_TRUE(observation.nomad.ok());
}

TEST_F(ObserverTest, C9_one_look_reads_what_holds_four_slow_drains_at_most) {
  Strings vms;
  for (int i = 0; i < 6; ++i) vms.push_back("web-" + std::to_string(i));
  for (const std::string& vm : vms) AddVm(vm);
  for (const std::string& vm : vms) {
    ASSERT_TRUE(cluster_.HangDrain(NodeOf(vm), true));
    Mark(vm);
    Drain(vm);
  }
  clock_.Advance(minutes(1));
  Observation();
  EXPECT_EQ(Count("list node-allocations"), 4U);
  Observation();
  EXPECT_EQ(Count("list node-allocations"), 2U) << "the next one reads the rest";
}

TEST_F(ObserverTest, C17_before_a_vm_that_is_cut_off_is_replaced_its_allocations_are_read) {
  policy_.replace_unhealthy_after = minutes(5);
  AddVm("web-a");
  Observation();
  cluster_.SetNodeStatus(NodeOf("web-a"), "disconnected");
  Observation();
  clock_.Advance(minutes(5) - seconds(1));
  EXPECT_THAT(Observation().allocations, IsEmpty());
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Observation().allocations.contains(NodeOf("web-a")));
}

TEST_F(ObserverTest, C2_a_selection_by_load_knows_when_it_does_not_see_every_allocation) {
  AddVm("web-a");
  cluster_.RunJob({.id = "api"});
  clock_.Advance(seconds(2));
  const auto all = MakeObserver().ReadAllocations(context());
  ASSERT_THAT(all, IsOk());
  EXPECT_FALSE(all->incomplete);
  EXPECT_THAT(all->by_node.at(NodeOf("web-a")), SizeIs(1));
  Next("list allocations", RefusedByNomad());
  const auto some = MakeObserver().ReadAllocations(context());
  ASSERT_THAT(some, IsOk());
  EXPECT_TRUE(some->incomplete);
  Next("list allocations", Failed());
  EXPECT_FALSE(MakeObserver().ReadAllocations(context()).ok());
}

TEST_F(ObserverTest, C15_only_a_404_of_nomad_itself_says_that_the_node_of_a_marked_vm_is_gone) {
  AddVm("web-a");
  Mark("web-a");
  cluster_.StopVm("web-a");
  clock_.Advance(seconds(20));
  cluster_.PurgeNode("web-a");
  EXPECT_TRUE(Observation().vms.at(0).node_gone);
  EXPECT_EQ(Last(), "get node");
  for (const Fault& answer : {Failed(), Fault::Answer(404, "page not found")}) {
    Next("get node", answer);
    EXPECT_FALSE(Observation().vms.at(0).node_gone);
  }
}

TEST_F(ObserverTest, C6_a_node_of_the_pool_without_the_name_of_a_vm_is_read_in_full_once) {
  AddVm("web-a");
  const std::string stranger = AddStranger();
  const auto is_full = [&](const scaling::Observation& observation) {
    return std::any_of(observation.nodes().begin(), observation.nodes().end(),
                       [&](const nomad::Node& node) { return node.id == stranger && node.full; });
  };
  EXPECT_TRUE(is_full(Observation()));
  EXPECT_EQ(Count("get node"), 1U);
  EXPECT_TRUE(is_full(Observation()));
  EXPECT_EQ(Count("get node"), 0U);
  cluster_.ReRegister(stranger, [](simulator::NodeSpec& node) { node.meta["rack"] = "7"; });
  EXPECT_TRUE(is_full(Observation()));
  EXPECT_EQ(Count("get node"), 1U) << "it has registered again";
}

TEST_F(ObserverTest, C6_a_node_that_changes_or_goes_between_list_and_read_stays_a_stub) {
  const std::string stranger = AddStranger();
  After("list nodes", [&] { cluster_.SetEligible(stranger, false); });
  scaling::Observation observation = Observation();
  EXPECT_TRUE(observation.nomad.ok());
  EXPECT_FALSE(observation.nodes().at(0).full);
  EXPECT_TRUE(observation.nodes().at(0).eligible) << "the observation is that of the list";
  cluster_.ReRegister(stranger, [](simulator::NodeSpec& node) { node.meta["rack"] = "7"; });
  After("list nodes", [&] { cluster_.PurgeNode(stranger); });
  observation = Observation();
  EXPECT_TRUE(observation.nomad.ok());
  EXPECT_FALSE(observation.nodes().at(0).full);
  EXPECT_THAT(sink_->Text(), Not(HasSubstr("Could not read a node"))) << "the next list tells";
}

TEST_F(ObserverTest, L1_a_node_that_cannot_be_read_in_full_concerns_only_vms_that_it_could_be) {
  AddVm("web-a");
  AddVm("web-b");
  cluster_.PurgeNode(NodeOf("web-b"));
  AddStranger();
  cluster_.EditAnnotation(
      "web-b", harvester::kNodesAnnotation,
      harvester::ToAnnotation({.node_class = "web", .index = Observation().nomad_index}));
  cluster_.ReRegister("metal", [](simulator::NodeSpec& node) { node.meta["rack"] = "7"; });
  Always("get node", Failed());
  EXPECT_EQ(Observation().vms.at(1).unread_node, "") << "it was there before the VM";
  cluster_.AddForeignNode({.name = "younger", .node_class = "web"});
  const std::string before = sink_->Text();
  const scaling::Observation observation = Observation();
  EXPECT_TRUE(observation.nomad.ok());
  EXPECT_EQ(observation.vms.at(0).unread_node, "") << "it has its node";
  EXPECT_THAT(observation.vms.at(1).unread_node, HasSubstr("younger"));
  const std::string told = sink_->Text();
  EXPECT_THAT(told.substr(before.size()), HasSubstr("Could not read a node;"));
  Observation();
  EXPECT_EQ(sink_->Text(), told) << "once";
}

TEST_F(ObserverTest, L2_a_node_that_cannot_be_read_in_full_is_tried_again_after_a_growing_wait) {
  AddVm("web-a");
  AddStranger();
  Always("get node", Failed());
  std::size_t tries = 0;
  for (int i = 0; i < 600; ++i) {
    Observation();
    tries += Count("get node");
    clock_.Advance(seconds(1));
  }
  EXPECT_GE(tries, 10U);
  EXPECT_LE(tries, 20U);
}

TEST_F(ObserverTest, L1_of_drained_nodes_whose_allocations_cannot_be_read_only_a_few_are_tried) {
  for (int i = 0; i < 20; ++i) {
    const std::string name = "web-" + std::to_string(i);
    AddVm(name);
    Idle(name);
  }
  Always("list allocations", Failed());
  Always("list node-allocations", Failed());
  EXPECT_THAT(Observation().allocations, IsEmpty());
  EXPECT_LE(Count("list node-allocations"), 8U);
}

TEST_F(ObserverTest, L1_an_outage_of_the_list_of_allocations_is_no_reason_to_ask_for_each_node) {
  AddVm("web-a");
  Idle("web-a");
  Always("list allocations", Fault::Answer(503, "no leader"));
  EXPECT_THAT(Observation().allocations, IsEmpty());
  EXPECT_EQ(Count("list node-allocations"), 0U);
}

TEST_F(ObserverTest, C6_one_look_reads_some_of_many_nodes_and_the_next_ones_read_the_rest) {
  AddVm("web-a");
  for (int i = 0; i < 100; ++i) AddStranger();
  const auto unread = [](const scaling::Observation& observation) {
    return NodesToReadInFull(observation).size();
  };
  EXPECT_EQ(unread(Observation()), 36U);
  EXPECT_EQ(Count("get node"), 64U);
  // A node that registers again and again keeps no other waiting.
  cluster_.ReRegister(AddStranger(), [](simulator::NodeSpec& node) { node.meta["rack"] = "7"; });
  EXPECT_EQ(unread(Observation()), 0U);
  EXPECT_EQ(Count("get node"), 37U);
}

TEST_F(ObserverTest, L1_of_many_nodes_that_cannot_be_read_in_full_only_a_few_are_tried) {
  for (int i = 0; i < 40; ++i) AddStranger();
  Always("get node", Failed());
  EXPECT_TRUE(Observation().nomad.ok());
  EXPECT_LE(Count("get node"), 8U);
}

TEST_F(ObserverTest, C9_a_wait_is_a_blocking_query_for_a_change_after_the_index) {
  AddVm("web-a");
  const std::uint64_t index = Observation().nomad_index;
  const base::MonoTime begun = clock_.Now();
  const auto observation = TryLook({.after_index = index, .wait = seconds(3)});
  ASSERT_THAT(observation, IsOk());
  EXPECT_EQ(observation->nomad_index, index);
  EXPECT_GE(clock_.Now() - begun, seconds(3));
  clock_.After(seconds(1), [&] { cluster_.SetEligible(NodeOf("web-a"), false); });
  const base::MonoTime again = clock_.Now();
  EXPECT_GT(TryLook({.after_index = index, .wait = seconds(3)})->nomad_index, index);
  EXPECT_LT(clock_.Now() - again, seconds(2));
}

TEST_F(ObserverTest, S3_a_nomad_that_does_not_reply_leaves_time_for_harvester) {
  AddVm("web-a");
  cluster_.Refuse({.system = simulator::System::kNomad,
                   .verb = "list",
                   .kind = simulator::Refusal::kNone,
                   .takes = seconds(60)});
  const auto observation =
      MakeObserver().Observe(context().WithTimeout(seconds(4)), EmptyObservation("", "", policy_),
                             {.nodes_limit = seconds(2)});
  ASSERT_THAT(observation, IsOk());
  EXPECT_FALSE(observation->nomad.ok());
  EXPECT_THAT(observation->vms, SizeIs(1));
}

TEST_F(ObserverTest, L1_a_node_that_cannot_be_read_holds_up_only_vms_that_it_could_be) {
  AddVm("web-a");
  AddVm("web-b");
  cluster_.PurgeNode(NodeOf("web-a"));
  AddStranger();
  Always("get node", Fault::Answer(500, "broken"));
  EXPECT_NE(Observation().vms.at(0).unread_node, "");
  EXPECT_EQ(Observation().vms.at(1).unread_node, "") << "it has its node";
  cluster_.EditAnnotation("web-a", harvester::kNodesAnnotation,
                          harvester::ToAnnotation({.node_class = "db", .index = 1}));
  policy_.node_class = "db";
  EXPECT_EQ(Observation().vms.at(0).unread_node, "") << "the node is of another class";
}

TEST_F(ObserverTest, L1_a_node_that_cannot_be_read_keeps_no_vm_whose_own_node_is_gone) {
  AddVm("web-a");
  Mark("web-a");
  cluster_.PurgeNode(NodeOf("web-a"));
  AddStranger();
  Next("get node", Failed());  // the stranger's
  const scaling::Observation observation = Observation();
  EXPECT_TRUE(observation.vms.at(0).node_gone);
  EXPECT_EQ(observation.vms.at(0).unread_node, "");
}

TEST_F(ObserverTest, L2_a_node_that_was_read_meanwhile_is_a_new_trouble_when_it_cannot_be_again) {
  AddVm("web-a");
  const std::string stranger = AddStranger();
  constexpr char kTold[] = "WARN Could not read a node; VMs that may own it are left alone";
  Always("get node", Failed());
  for (int i = 0; i < 60; ++i) {
    Observation();
    clock_.Advance(seconds(1));
  }
  EXPECT_EQ(Logged(kTold), 1U);
  Next("get node", Fault::None());
  clock_.Advance(minutes(2));
  const scaling::Observation observation = Observation();
  EXPECT_TRUE(
      std::any_of(observation.nodes().begin(), observation.nodes().end(),
                  [&](const nomad::Node& node) { return node.id == stranger && node.full; }));
  cluster_.ReRegister(stranger, [](simulator::NodeSpec& node) { node.meta["rack"] = "7"; });
  Always("get node", Failed());
  Observation();
  EXPECT_EQ(Logged(kTold), 2U);
  clock_.Advance(seconds(2));
  Observation();
  EXPECT_EQ(Count("get node"), 1U) << "the wait begins anew";
}

}  // namespace
}  // namespace nomad_harvester::scaling
