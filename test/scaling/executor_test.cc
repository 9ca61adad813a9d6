// SPDX-License-Identifier: Apache-2.0
#include "execution/executor.h"

#include <stdexcept>

#include "pool_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using simulator::Fault;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ExecutorTest : public PoolFixture {
 protected:
  const Decisions& Observation() {
    auto seen = Reconciler(Deps(), policy_).Observe(context());
    EXPECT_THAT(seen, support::IsOk());
    return decisions_.emplace(*std::move(seen));
  }
  // The step that an observation asks for, by that row; `meanwhile` happens between observation and
  // step.
  Effect Act(const std::string& vm, Row row, const std::function<void()>& meanwhile = {}) {
    const Decisions::Entry* entry = Observation().Find(vm);
    if (entry == nullptr) throw std::logic_error(vm + " is not there");
    EXPECT_EQ(RowName(entry->step.row), RowName(row)) << entry->step.reason;
    if (meanwhile) meanwhile();
    Forget();
    return Execute(context(), Deps(), *decisions_, *entry->view, entry->step);
  }
  Effect MarkNow(const std::string& vm, const std::function<void()>& meanwhile = {}) {
    const VmView* view = Observation().Find(vm)->view;
    const nomad::Node* node = LinkedNode(*view, decisions_->snapshot());
    if (meanwhile) meanwhile();
    Forget();
    return MarkVictim(context(), Deps(), decisions_->snapshot(), *view, "act",
                      node == nullptr ? "" : node->id);
  }
  // A VM that is gone, and its node, which is down and to be purged.
  void AddGone() {
    AddVm("web-a");
    Drain("web-a", true);
    clock_.Advance(seconds(2));
    gone_node_ = NodeOf("web-a");
    cluster_.DeleteVmByHand("web-a");
    clock_.Advance(seconds(20));
  }
  Effect PurgeNow(const std::function<void()>& meanwhile = {}) {
    EXPECT_EQ(Observation().to_purge().size(), 1U);
    if (meanwhile) meanwhile();
    Forget();
    return Purge(context(), Deps(), *decisions_, decisions_->to_purge().at(0));
  }
  void SetMeta(const std::string& vm, const std::string& key, const std::string& value) {
    cluster_.ReRegister(NodeOf(vm), [&](simulator::NodeSpec& node) { node.meta[key] = value; });
  }

  std::optional<Decisions> decisions_;
  std::string gone_node_;
};

TEST_F(ExecutorTest, C5_each_step_sends_the_reads_of_its_spec_and_then_one_write) {
  const auto stop = [&](const std::string& vm) {
    Mark(vm);
    cluster_.StopVm(vm);
    clock_.Advance(seconds(20));
  };
  struct Case {
    std::string vm;
    Row row;
    std::function<void()> prepare;
    Strings sent;
  };
  const std::vector<Case> cases = {
      {"a", Row::kUnmarkedDraining, [&] { Drain("a"); }, {"get node", "update drain"}},
      {"b",
       Row::kUnmarkedDrained,
       [&] {
         Drain("b");
         clock_.Advance(seconds(2));
       },
       {"get node", "update eligibility"}},
      {"c", Row::kMarkedStartDrain, [&] { Mark("c"); }, {"get node", "update drain"}},
      {"d",
       Row::kMarkedIdle,
       [&] { Idle("d"); },
       {"list nodes", "get node", "list node-allocations", "get virtualmachines",
        "delete virtualmachines"}},
      {"e",
       Row::kMarkedDown,
       [&] { stop("e"); },
       {"list nodes", "get node", "get virtualmachines", "get virtualmachineinstances",
        "delete virtualmachines"}},
      {"f",
       Row::kMarkedGone,
       [&] {
         const std::string node = NodeOf("f");
         stop("f");
         cluster_.PurgeNode(node);
       },
       {"list nodes", "get node", "get jwks.json", "get virtualmachines",
        "delete virtualmachines"}},
      {"g",
       Row::kMarkedCanceled,
       [&] {
         Mark("g");
         Drain("g");
         cluster_.CancelDrain(NodeOf("g"), true);
       },
       {"patch virtualmachines"}},
      {"h", Row::kUnmarkedJoins, [] {}, {"patch virtualmachines"}}};
  for (const Case& c : cases) c.vm == "h" ? AddUnjoined(c.vm) : AddVm(c.vm);
  HoldLease({"c", "d", "e", "f", "g"});
  for (const Case& c : cases) {
    c.prepare();
    EXPECT_EQ(Act(c.vm, c.row).verdict, Verdict::kDone) << c.vm;
    EXPECT_EQ(Sent(), c.sent) << c.vm;
  }
}

TEST_F(ExecutorTest, C5_a_deletion_names_the_uid_and_the_version_that_it_has_just_read) {
  AddNamed({"a"});
  Idle("a");
  nlohmann::json read;
  EXPECT_EQ(Act("a", Row::kMarkedIdle,
                [&] {
                  cluster_.EditAnnotation("a", "note", "changed since the observation");
                  read = cluster_.Vm("a")["metadata"];
                })
                .verdict,
            Verdict::kDone);
  const nlohmann::json preconditions = Body("delete virtualmachines")["preconditions"];
  EXPECT_EQ(preconditions["uid"], read["uid"]);
  EXPECT_EQ(preconditions["resourceVersion"], read["resourceVersion"]);
}

TEST_F(ExecutorTest, C5_a_read_that_fails_or_is_refused_ends_the_deletion_before_its_write) {
  AddNamed({"a"});
  Idle("a");
  const Strings reads = {"list nodes", "get node", "list node-allocations", "get virtualmachines"};
  for (const std::string& read : reads) {
    EXPECT_EQ(Act("a", Row::kMarkedIdle, [&] { Next(read, Failed()); }).verdict, Verdict::kFailed)
        << read;
    EXPECT_EQ(Last(), read);
    const bool harvester = read == "get virtualmachines";
    const Fault no = harvester ? Refused() : RefusedByNomad();
    EXPECT_EQ(Act("a", Row::kMarkedIdle, [&] { Next(read, no); }).verdict, Verdict::kRefused)
        << read;
    EXPECT_EQ(Last(), read);
  }
}

TEST_F(ExecutorTest, C5_what_has_changed_since_the_look_is_not_wanted_and_nothing_is_written) {
  AddNamed({"a"});
  const std::vector<std::function<void()>> changes = {
      [&] { cluster_.SetEligible(NodeOf("a"), true); },
      [&] { cluster_.EditAnnotation("a", harvester::kProtectAnnotation, "true"); },
      [&] { cluster_.EditAnnotation("a", harvester::kScaleInAnnotation, std::nullopt); },
      [&] { SetMeta("a", "harvester_protect", "true"); },
      [&] { cluster_.OperatorDrain(NodeOf("a")); }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    cluster_.EditAnnotation("a", harvester::kProtectAnnotation, std::nullopt);
    Idle("a");
    EXPECT_EQ(Act("a", Row::kMarkedIdle, changes[i]).verdict, Verdict::kNotWanted) << i;
    EXPECT_THAT(Effects(), IsEmpty()) << i;
    if (i == 3) SetMeta("a", "harvester_protect", "false");
  }
}

TEST_F(ExecutorTest, C5_a_vm_that_is_gone_is_not_wanted_and_one_of_its_name_is_not_touched) {
  AddNamed({"a"});
  Idle("a");
  const auto remove = [&] {
    cluster_.DeleteVmByHand("a");
    clock_.Advance(seconds(5));
  };
  EXPECT_EQ(Act("a", Row::kMarkedIdle, remove).verdict, Verdict::kNotWanted);
  EXPECT_THAT(Effects(), IsEmpty());
  AddVm("b");
  Mark("b");
  cluster_.StopVm("b");
  clock_.Advance(seconds(20));
  cluster_.PurgeNode("b");
  HoldLease({"b"});
  nlohmann::json other = cluster_.Vm("b");
  const auto replace = [&] {
    cluster_.DeleteVmByHand("b");
    clock_.Advance(seconds(5));
    other["metadata"].erase("uid");
    other["metadata"].erase("deletionTimestamp");
    cluster_.PutObject(other);
  };
  const Effect effect = Act("b", Row::kMarkedGone, replace);
  EXPECT_EQ(effect.verdict, Verdict::kFailed);
  EXPECT_THAT(effect.status.ToString(), HasSubstr("was replaced by another one"));
  EXPECT_THAT(Effects(), IsEmpty());
}

TEST_F(ExecutorTest, C9_a_drain_that_an_operator_has_begun_since_the_look_is_not_undone) {
  AddVm("a");
  AddVm("b");
  HoldLease();
  Drain("a");
  const auto drain = [&](const std::string& vm) {
    cluster_.OperatorDrain(NodeOf(vm), minutes(60), {{"message", "maintenance"}});
  };
  EXPECT_EQ(Act("a", Row::kUnmarkedDraining, [&] { drain("a"); }).verdict, Verdict::kNotWanted);
  EXPECT_THAT(Effects(), IsEmpty());
  Drain("b");
  clock_.Advance(seconds(2));
  EXPECT_EQ(Act("b", Row::kUnmarkedDrained, [&] { drain("b"); }).verdict, Verdict::kNotWanted);
  EXPECT_THAT(Effects(), IsEmpty());
}

TEST_F(ExecutorTest, C5_a_vm_is_not_deleted_for_another_node_than_the_one_that_was_decided_on) {
  AddNamed({"a"});
  Mark("a");
  cluster_.SetNodeStatus(NodeOf("a"), "down");
  Observation();
  clock_.Advance(minutes(2));
  const auto register_again = [&] {
    cluster_.SetNodeStatus(cluster_.AddForeignNode({.name = "a", .node_class = "web"}), "down");
  };
  EXPECT_EQ(Act("a", Row::kMarkedDown, register_again).verdict, Verdict::kNotWanted)
      << "that one has only just gone down";
  EXPECT_THAT(Effects(), IsEmpty());
}

TEST_F(ExecutorTest, C5_a_change_after_the_last_read_is_a_conflict_and_the_vm_stands) {
  AddNamed({"a"});
  Idle("a");
  const Effect effect = Act("a", Row::kMarkedIdle, [&] {
    After("get virtualmachines", [&] { cluster_.EditAnnotation("a", "note", "late"); });
  });
  EXPECT_EQ(effect.verdict, Verdict::kConflict);
  EXPECT_FALSE(cluster_.Vm("a")["metadata"].contains("deletionTimestamp"));
}

TEST_F(ExecutorTest, C16_nothing_is_sent_for_a_client_that_went_away) {
  AddNamed({"a"});
  Idle("a");
  const Effect effect =
      Act("a", Row::kMarkedIdle, [&] { client_.Cancel(runtime::CancelReason::kClient); });
  EXPECT_EQ(effect.verdict, Verdict::kCancelled);
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(ExecutorTest, C9_a_drain_gets_the_time_that_is_left_and_names_vm_action_and_pool) {
  AddNamed({"a"});
  Mark("a", [](harvester::Mark& mark) { mark.ignore_system = mark.purge = true; });
  clock_.Advance(minutes(5));
  EXPECT_EQ(Act("a", Row::kMarkedStartDrain).verdict, Verdict::kDone);
  const nlohmann::json body = Body("update drain");
  EXPECT_EQ(body["DrainSpec"]["Deadline"], std::chrono::nanoseconds(minutes(10)).count());
  EXPECT_EQ(body["DrainSpec"]["IgnoreSystemJobs"], true);
  const nomad::Node node{.last_drain = nomad::LastDrain{
                             .meta = body["Meta"].get<std::map<std::string, std::string>>()}};
  const auto mark = nodepool::ParseDrainMark(node);
  ASSERT_TRUE(mark.has_value());
  EXPECT_THAT((std::vector{mark->action, mark->vm, mark->vm_uid, mark->pool}),
              ElementsAre("act", "a", UidOf("a"), "nomad/web"));
  EXPECT_TRUE(mark->purge);
}

TEST_F(ExecutorTest, L3_the_drain_of_a_broken_vm_begins_however_late_it_is_accepted) {
  AddNamed({"a"});
  policy_.ready_drivers = {"podman"};
  cluster_.EditAnnotation("a", harvester::kReadyAtAnnotation, harvester::kNotReadyYet);
  Mark("a", [](harvester::Mark& mark) { mark.reason = harvester::MarkReason::kBroken; });
  clock_.Advance(minutes(50));
  EXPECT_EQ(Act("a", Row::kMarkedStartDrain).verdict, Verdict::kDone);
  EXPECT_EQ(Body("update drain")["DrainSpec"]["Deadline"],
            std::chrono::nanoseconds(seconds(1)).count());
}

TEST_F(ExecutorTest, C4_a_drain_says_that_its_node_was_ineligible_before) {
  AddNamed({"a"});
  Mark("a");
  cluster_.SetEligible(NodeOf("a"), false);
  EXPECT_EQ(Act("a", Row::kMarkedStartDrain).verdict, Verdict::kDone);
  EXPECT_EQ(Body("update drain")["Meta"]["was"], "ineligible");
}

TEST_F(ExecutorTest, C9_a_drain_whose_reply_is_lost_is_posted_once) {
  AddNamed({"a"});
  Mark("a");
  EXPECT_EQ(
      Act("a", Row::kMarkedStartDrain, [&] { Next("update drain", Fault::DropReply()); }).verdict,
      Verdict::kFailed);
  EXPECT_EQ(Count("update drain"), 1U);
}

TEST_F(ExecutorTest, C8_every_roll_back_leaves_a_note_with_the_time_and_the_reason) {
  AddNamed({"a"});
  Mark("a");
  const Decisions& decisions = Observation();
  const Step step{
      .kind = StepKind::kRollBack, .row = Row::kMarkedProtected, .reason = "it was protected"};
  EXPECT_EQ(Execute(context(), Deps(), decisions, *decisions.Find("a")->view, step).verdict,
            Verdict::kDone);
  EXPECT_FALSE(IsMarked("a"));
  EXPECT_EQ(Annotation("a", harvester::kRemovalUndoneAnnotation),
            base::FormatRfc3339(decisions.snapshot().now()) + " it was protected");
}

TEST_F(ExecutorTest, C4_C7_a_victims_node_is_read_before_its_mark_and_before_its_drain) {
  AddNamed({"a"});
  EXPECT_EQ(MarkNow("a").verdict, Verdict::kDone);
  EXPECT_THAT(Sent(), ElementsAre("get node", "patch virtualmachines", "get node", "update drain"));
  const auto mark = harvester::ParseMark(Annotation("a", harvester::kScaleInAnnotation));
  ASSERT_THAT(mark, support::IsOk());
  EXPECT_EQ(mark->action, "act");
  EXPECT_EQ(mark->node_id, NodeOf("a"));
  EXPECT_EQ(mark->vm_uid, UidOf("a"));
}

TEST_F(ExecutorTest, C4_a_mark_stands_although_its_drain_does_not_begin) {
  AddNamed({"a"});
  EXPECT_EQ(MarkNow("a", [&] { Next("update drain", RefusedByNomad()); }).verdict, Verdict::kDone);
  EXPECT_TRUE(IsMarked("a"));
  EXPECT_EQ(Logged("INFO Could not start the drain; retrying"), 1U);
}

TEST_F(ExecutorTest, C15_a_victim_without_a_node_is_marked_only_by_the_word_of_its_own_nomad) {
  AddVm("a");
  cluster_.StopVm("a");
  clock_.Advance(seconds(20));
  cluster_.PurgeNode("a");
  HoldLease({"a"});
  const std::string keys = "get jwks.json";
  Next(keys, RefusedByNomad());
  EXPECT_NE(MarkNow("a").verdict, Verdict::kDone);
  EXPECT_FALSE(IsMarked("a"));
  EXPECT_EQ(MarkNow("a").verdict, Verdict::kDone);
  EXPECT_THAT(Sent(), ElementsAre(keys, "patch virtualmachines"));
}

// The first attempt failed, and the API server that answers the second one has another time.
TEST_F(ExecutorTest, C9_one_wrong_clock_neither_shortens_nor_prolongs_a_drain) {
  AddNamed({"a", "b"});
  const std::map<std::string, base::Duration> skews = {{"a", minutes(14) + seconds(50)},
                                                       {"b", -minutes(30)}};
  for (const auto& [vm, skew] : skews) {
    Mark(vm);
    cluster_.SetClockSkews({skew});
    EXPECT_EQ(Act(vm, Row::kMarkedStartDrain).verdict, Verdict::kDone);
    EXPECT_EQ(Body("update drain")["DrainSpec"]["Deadline"],
              std::chrono::nanoseconds(minutes(15)).count())
        << vm;
    cluster_.SetClockSkews({});
  }
}

TEST_F(ExecutorTest, L5_an_unsuitable_victim_is_not_marked_and_says_why) {
  struct Case {
    std::string vm, why;
    std::function<void()> change;
  };
  const std::vector<Case> cases = {
      {"a", "protected by its node's meta harvester_protect",
       [&] { SetMeta("a", "harvester_protect", "true"); }},
      {"b", "is drained by another client", [&] { cluster_.OperatorDrain(NodeOf("b")); }},
      {"c", "holds the dynamic host volume data",
       [&] {
         cluster_.ReRegister(NodeOf("c"),
                             [](simulator::NodeSpec& node) { node.host_volumes["data"] = "id"; });
       }},
      {"d", "is not this VM's", [&] { cluster_.PurgeNode(NodeOf("d")); }}};
  for (const Case& c : cases) AddVm(c.vm);
  HoldLease({"a", "b", "c", "d"});
  for (const Case& c : cases) {
    const Effect effect = MarkNow(c.vm, c.change);
    EXPECT_EQ(effect.verdict, Verdict::kUnsuitable) << c.vm;
    EXPECT_THAT(effect.status.ToString(), HasSubstr(c.why));
    EXPECT_THAT(Sent(), ElementsAre("get node")) << c.vm;
  }
}

TEST_F(ExecutorTest, L5_a_victim_whose_name_has_passed_to_another_node_is_not_marked) {
  AddNamed({"a"});
  cluster_.SetNodeStatus(cluster_.AddForeignNode({.name = "a", .node_class = "web"}), "down");
  const Effect effect = MarkNow("a", [&] {
    cluster_.ReRegister(NodeOf("a"), [](simulator::NodeSpec& node) { node.name = "renamed"; });
  });
  EXPECT_EQ(effect.verdict, Verdict::kUnsuitable);
  EXPECT_THAT(effect.status.ToString(), HasSubstr("is not this VM's"));
  EXPECT_FALSE(IsMarked("a"));
}

TEST_F(ExecutorTest, L5_a_victim_whose_node_cannot_be_read_or_that_has_changed_is_not_marked) {
  AddNamed({"a"});
  EXPECT_EQ(MarkNow("a", [&] { Next("get node", Failed()); }).verdict, Verdict::kFailed);
  EXPECT_EQ(MarkNow("a", [&] { cluster_.EditAnnotation("a", "note", "changed"); }).verdict,
            Verdict::kConflict);
  EXPECT_FALSE(IsMarked("a"));
  EXPECT_EQ(Count("update drain"), 0U);
}

TEST_F(ExecutorTest, C4_a_purge_reads_vm_and_node_first) {
  AddGone();
  EXPECT_EQ(PurgeNow().verdict, Verdict::kDone);
  EXPECT_THAT(Sent(),
              ElementsAre("get virtualmachines", "get node", "get jwks.json", "update purge"));
  EXPECT_TRUE(cluster_.Node(gone_node_).is_null());
}

TEST_F(ExecutorTest, C4_a_purge_needs_the_word_of_both_systems_and_one_that_was_done_is_done) {
  AddGone();
  EXPECT_EQ(PurgeNow([&] { Next("get virtualmachines", Failed()); }).verdict, Verdict::kFailed);
  EXPECT_EQ(PurgeNow([&] { Next("get node", RefusedByNomad()); }).verdict, Verdict::kRefused);
  EXPECT_EQ(PurgeNow([&] { Next("update purge", RefusedByNomad()); }).verdict, Verdict::kRefused);
  EXPECT_EQ(PurgeNow([&] { After("get node", [&] { cluster_.PurgeNode(gone_node_); }); }).verdict,
            Verdict::kDone);
}

TEST_F(ExecutorTest, C15_no_node_is_purged_in_another_nomad_than_the_one_that_was_observed) {
  AddGone();
  const Effect effect = PurgeNow([&] { cluster_.SetNomadKeys({"other"}); });
  EXPECT_THAT(effect.status.ToString(), HasSubstr("another Nomad cluster answers"));
  EXPECT_EQ(Count("update purge"), 0U);
}

TEST_F(ExecutorTest, C4_a_node_that_is_ready_again_or_gone_is_not_purged) {
  AddGone();
  EXPECT_EQ(PurgeNow([&] { cluster_.SetNodeStatus(gone_node_, "ready"); }).verdict,
            Verdict::kNotWanted);
  cluster_.SetNodeStatus(gone_node_, "down");
  EXPECT_EQ(PurgeNow([&] { cluster_.PurgeNode(gone_node_); }).verdict, Verdict::kNotWanted);
  EXPECT_EQ(Count("update purge"), 0U);
}

}  // namespace
}  // namespace nomad_harvester::scaling
