// SPDX-License-Identifier: Apache-2.0
//
// A new VM takes the place of an old one, and the pool keeps its count (docs/behaviour.md, R1 to
// R8).

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/time.h"

#include "costs.h"
#include "harness.h"
#include "support/hosts.h"
#include "trouble.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A pool whose VMs are older than those that are never replaced, and whose policy then describes
// larger VMs.
class Replacement : public testing::Test {
 protected:
  explicit Replacement(simulator::Options options = {}) : h_(std::move(options)) {}

  void MakePool(int count) {
    h_.policy["replace_drifted"] = "rolling";
    ASSERT_TRUE(h_.Scale(count).ok());
    h_.Tick(minutes(11));
    for (const std::string& vm : h_.VmNames()) old_.insert(vm);
  }
  void ChangeTemplate() { h_.policy["memory_request"] = "24Gi"; }

  std::size_t Eligible() const {
    std::size_t eligible = 0;
    for (const json& node : h_.Nodes()) {
      if (node.at("Status") == "ready" && node.at("SchedulingEligibility") == "eligible")
        ++eligible;
    }
    return eligible;
  }
  std::size_t Old() const {
    std::size_t old = 0;
    for (const std::string& vm : h_.VmNames()) old += old_.count(vm);
    return old;
  }
  // The VMs that are about to replace others.
  std::vector<std::string> PendingVms() const {
    std::vector<std::string> pending;
    for (const json& vm : h_.Vms()) {
      if (!AnnotationOf(vm, Key("replaces")).empty() && AnnotationOf(vm, Key("ready-at")).empty()) {
        pending.push_back(NameOf(vm));
      }
    }
    return pending;
  }
  // The first one of them; empty: none.
  std::string Pending() const {
    const std::vector<std::string> pending = PendingVms();
    return pending.empty() ? "" : pending[0];
  }
  void AwaitPending(std::size_t count = 1, int seconds_at_most = 700) {
    for (int i = 0; i < seconds_at_most && PendingVms().size() < count; ++i) {
      h_.clock.Advance(seconds(1));
      ASSERT_TRUE(h_.Status().ok());
      h_.process().RunBackground();
    }
    ASSERT_EQ(PendingVms().size(), count) << h_.Transcript();
  }
  // One of a pool of so many VMs is about to be replaced; returns the new one.
  std::string BeginRoll(int count) {
    MakePool(count);
    ChangeTemplate();
    AwaitPending();
    return Pending();
  }
  // Ticks until no old VM is left. At each moment the count is that, and `check` is called.
  void Roll(int count, base::Duration tick, int ticks, const std::function<void()>& check) {
    for (int i = 0; i < ticks && Old() > 0; ++i) {
      h_.Tick(tick);
      EXPECT_EQ(h_.Status()->count, count) << h_.Transcript();
      check();
    }
    EXPECT_EQ(Old(), 0U) << h_.Transcript();
  }
  // The pool has rolled, and nothing more happens.
  void ExpectDone(int count) {
    h_.WaitUntilReady();
    h_.CheckAtRest(count);
    const std::vector<std::string> now = h_.VmNames();
    h_.Tick(minutes(30));
    EXPECT_EQ(h_.VmNames(), now) << "it is done";
  }
  std::string Replaced() const {
    return json::parse(AnnotationOf(h_.cluster.Vm(Pending()), Key("replaces"))).at("vm");
  }
  void Annotate(const std::string& vm, const std::string& key, const std::string& value) {
    ASSERT_TRUE(h_.cluster.EditAnnotation(vm, Key(key), value));
  }
  void SetRunStrategy(const std::string& vm, const std::string& value) {
    json object = h_.cluster.Vm(vm);
    object["spec"]["runStrategy"] = value;
    ASSERT_TRUE(h_.cluster.PutObject(object));
  }
  // An operator pauses the pool, or does so no longer.
  void Pause(bool pause) {
    json lease = h_.Leases().at(0);
    lease["metadata"]["annotations"][Key("paused")] = "true";
    if (!pause) lease["metadata"]["annotations"].erase(Key("paused"));
    ASSERT_TRUE(h_.cluster.PutObject(lease));
  }
  // Answers Forbidden to such requests, until the fault hook is set again.
  void Refuse(std::function<bool(const RequestInfo&)> refused) {
    h_.Inject(Fault::Answer(403, R"({"kind": "Status", "reason": "Forbidden"})"),
              std::move(refused));
  }
  void RefuseDrains() {
    Refuse([](const RequestInfo& request) { return request.resource == "drain"; });
  }
  // What the Lease says of a roll-out that has stopped, and of the last error.
  std::string Recorded() const { return AnnotationOf(h_.Leases().at(0), Key("replacement")); }
  std::string LastError() const { return AnnotationOf(h_.Leases().at(0), Key("last-error")); }

  Harness h_;
  std::set<std::string> old_;
};

TEST_F(Replacement, R1_a_pool_rolls_to_a_new_template_one_vm_at_a_time_and_keeps_its_count) {
  MakePool(3);
  ChangeTemplate();
  Roll(3, seconds(10), 180, [&] {
    EXPECT_GE(Eligible(), 3U) << h_.Transcript();
    EXPECT_LE(h_.VmNames().size(), 4U) << "one at a time";
  });
  ExpectDone(3);
}

TEST_F(Replacement, R1_a_vm_is_replaced_because_somebody_asked_for_it) {
  MakePool(2);
  h_.policy["replace_drifted"] = "off";
  const std::string wanted = *old_.begin();
  Annotate(wanted, "replace", "its disk is full");
  h_.Tick(minutes(10));
  EXPECT_THAT(h_.VmNames(), Not(Contains(wanted))) << h_.Transcript();
  EXPECT_EQ(Old(), 1U);
  h_.CheckAtRest(2);
}

TEST_F(Replacement, R1_vms_are_replaced_when_they_expire) {
  MakePool(2);
  h_.policy["expire_after"] = "1h";
  h_.Tick(minutes(30));
  EXPECT_EQ(Old(), 2U) << h_.Transcript();
  h_.Tick(minutes(40));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
  h_.CheckAtRest(2);
}

TEST_F(Replacement, R2_none_begins_while_the_pool_is_paused_or_in_dry_run) {
  MakePool(2);
  h_.policy["dry-run"] = "true";
  ChangeTemplate();
  h_.Tick(minutes(20));
  EXPECT_EQ(h_.VmNames().size(), 2U);
  EXPECT_EQ(Old(), 2U) << h_.Transcript();
}

TEST_F(Replacement, R2_drifted_vms_wait_for_the_window_and_go_when_it_opens) {
  MakePool(2);
  h_.policy["replacement_window"] = "0 2 * * * 1h";
  ChangeTemplate();
  h_.Tick(minutes(90));
  EXPECT_EQ(Old(), 2U) << h_.Transcript();
  const std::string told = "outside of replacement_window, which opens at 2026-01-01T02:00:00Z";
  const std::string log = h_.log->Text();
  EXPECT_THAT(log, HasSubstr(told));
  EXPECT_EQ(log.find(told), log.rfind(told)) << "it is told once";
  h_.Tick(minutes(45));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
  h_.CheckAtRest(2);
}

TEST_F(Replacement, R2_a_vm_that_somebody_asked_to_replace_does_not_wait_for_the_window) {
  MakePool(2);
  h_.policy["replacement_window"] = "0 12 * * * 1h";
  ChangeTemplate();
  const std::string wanted = *old_.begin();
  Annotate(wanted, "replace", "its disk is full");
  h_.Tick(minutes(30));
  EXPECT_THAT(h_.VmNames(), Not(Contains(wanted))) << h_.Transcript();
  EXPECT_EQ(Old(), 1U) << "the other one has drifted, and waits";
  h_.CheckAtRest(2);
}

TEST_F(Replacement,
       R2_no_drifted_vm_goes_instead_of_a_requested_one_that_may_not_while_it_is_closed) {
  MakePool(2);
  h_.policy["replacement_window"] = "0 12 * * * 1h";
  ChangeTemplate();
  h_.Tick(minutes(11));  // what has drifted is known
  const std::string wanted = *old_.begin();
  Annotate(wanted, "replace", "its disk is full");
  ASSERT_TRUE(h_.cluster.ReRegister(h_.NodeOf(wanted), [](simulator::NodeSpec& node) {
    node.meta["harvester_protect"] = "true";
  }));
  h_.Tick(minutes(30));
  EXPECT_EQ(Old(), 2U) << h_.Transcript();
  EXPECT_EQ(h_.VmNames().size(), 2U);
}

TEST_F(Replacement, R2_one_that_has_begun_goes_on_when_the_window_closes) {
  MakePool(2);
  h_.policy["replacement_window"] = "20 0 * * * 1m";
  ChangeTemplate();
  AwaitPending();
  h_.clock.Advance(seconds(61));
  ASSERT_NE(Pending(), "") << h_.Transcript();
  h_.Tick(minutes(30));
  EXPECT_EQ(Old(), 1U) << h_.Transcript();
  h_.CheckAtRest(2);
}

// An agent that is no leader any more asks for no Status.
TEST_F(Replacement, R2_none_begins_without_a_status_within_two_intervals) {
  BeginRoll(3);
  h_.TickWithoutStatus(minutes(90));
  EXPECT_EQ(Old(), 2U) << "what has begun is finished\n" << h_.Transcript();
  EXPECT_EQ(h_.VmNames().size(), 3U);
  EXPECT_THAT(h_.log->Text(), HasSubstr("the agent has stopped asking for a Status"));
  h_.Tick(minutes(30));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
}

// Another process' Scale need not wait for the end of a drain.
TEST_F(Replacement, S5_the_lease_is_not_held_while_a_drain_is_only_waited_for) {
  h_.policy["node_drain_deadline"] = "1h";
  MakePool(2);
  h_.RunJob(2);
  h_.HangDrains();
  ChangeTemplate();
  AwaitPending();
  const auto holder = [&] {
    return base::GetString(h_.Leases().at(0).at("spec"), "holderIdentity");
  };
  int held = 0;
  int free = 0;
  h_.OnEachRequest([&](const RequestInfo& request) {
    if (request.resource == "nodes" && !h_.Leases().empty()) ++(holder().empty() ? free : held);
  });
  h_.Tick(minutes(90));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
  EXPECT_GT(free, 10 * held) << "the drains last until their deadline";
  h_.CheckAtRest(2);
}

TEST_F(Replacement, R2_what_refuses_the_new_vm_is_logged_once_and_on_the_lease) {
  MakePool(2);
  ChangeTemplate();
  h_.cluster.SetFaultHook([](const RequestInfo& request) {
    const bool tries = request.verb == "try" && request.resource == "virtualmachines";
    return tries ? Fault::Answer(400,
                                 R"({"kind": "Status", "status": "Failure", "code": 400,
                                "reason": "BadRequest", "message":
                                "admission webhook \"x\" denied the request: too large"})")
                 : Fault::None();
  });
  h_.Tick(minutes(30));
  EXPECT_EQ(Old(), 2U);
  EXPECT_EQ(h_.log->Count("Replacement is blocked", log::Level::kWarn), 1U) << h_.Transcript();
  EXPECT_THAT(LastError(),
              ::testing::AllOf(HasSubstr("the replacement of VM web-"), HasSubstr("too large")));
  h_.cluster.SetFaultHook(nullptr);
  h_.Tick(minutes(30));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
  EXPECT_EQ(LastError(), "");
}

TEST_F(Replacement, R2_a_refusal_goes_from_the_lease_once_nothing_is_to_be_replaced) {
  MakePool(2);
  const auto before = h_.policy;
  ChangeTemplate();
  h_.Inject(Fault::Answer(403), [](const RequestInfo& request) {
    return request.verb == "try" && request.resource == "virtualmachines";
  });
  h_.Tick(minutes(30));
  EXPECT_THAT(LastError(), HasSubstr("the replacement of VM web-"));
  h_.policy = before;
  h_.Tick(minutes(30));
  EXPECT_EQ(Old(), 2U);
  EXPECT_EQ(LastError(), "");
}

TEST_F(Replacement, L1_a_creation_that_is_not_answered_holds_up_the_background_for_ten_seconds) {
  MakePool(2);
  ChangeTemplate();
  std::vector<base::MonoTime> tries;
  h_.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.verb != "create" || request.resource != "virtualmachines") return Fault::None();
    tries.push_back(h_.clock.Now());
    return Fault::Answer(500);
  });
  for (int i = 0; i < 60 && tries.empty(); ++i) h_.Tick(seconds(10));
  ASSERT_FALSE(tries.empty());
  EXPECT_LE(tries.back() - tries.front(), seconds(10)) << h_.Transcript();
}

TEST_F(Replacement, R3_the_pool_is_ready_while_the_new_vm_boots_and_not_while_both_take_work) {
  BeginRoll(2);
  EXPECT_TRUE(h_.Status()->ready) << h_.Transcript();
  Refuse([](const RequestInfo& request) {
    return request.verb == "patch" && request.body.find("scale-in") != std::string::npos;
  });
  int not_ready = 0;
  for (int i = 0; i < 60 && h_.Status()->count == 2; ++i) {
    if (Eligible() > 2 && !h_.Status()->ready) ++not_ready;
    h_.Tick(seconds(10));
  }
  EXPECT_GE(not_ready, 5) << h_.Transcript();
  EXPECT_LE(not_ready, 8);
  EXPECT_EQ(h_.Status()->count, 3) << "R6" << h_.Transcript();
  EXPECT_TRUE(h_.Status()->ready);
}

TEST_F(Replacement, R3_a_scale_in_is_aborted_while_both_take_work) {
  BeginRoll(2);
  Refuse([](const RequestInfo& request) {
    return request.verb == "patch" && request.body.find("scale-in") != std::string::npos;
  });
  for (int i = 0; i < 60 && Eligible() == 2; ++i) h_.clock.Advance(seconds(1));
  const absl::Status aborted = h_.Scale(1);
  EXPECT_TRUE(absl::IsAborted(aborted)) << aborted << h_.Transcript();
  EXPECT_EQ(LastError(), "") << "the pool is busy, and has not failed";
  h_.cluster.SetFaultHook(nullptr);
  h_.Converge(1);
  h_.CheckAtRest(1);
}

TEST_F(Replacement, R4_growth_takes_the_new_vm_as_one_more_also_if_it_changes_meanwhile) {
  BeginRoll(2);
  int conflicts = 0;
  h_.cluster.SetFaultHook([&](const RequestInfo& request) {
    const bool counts =
        request.verb == "patch" && request.body.find("replaces") != std::string::npos;
    if (!counts || conflicts == 2) return Fault::None();
    ++conflicts;
    return Fault::Answer(409, R"({"kind": "Status", "reason": "Conflict"})");
  });
  EXPECT_TRUE(h_.Accept(3).ok()) << h_.Transcript();
  EXPECT_EQ(conflicts, 2);
  EXPECT_EQ(h_.VmNames().size(), 3U) << "no other VM is made";
  EXPECT_EQ(h_.Status()->count, 3);
}

TEST_F(Replacement, R4_a_scale_in_takes_the_new_vm_while_it_is_not_ready) {
  const std::string unready = BeginRoll(3);
  EXPECT_TRUE(h_.Accept(2).ok()) << h_.Transcript();
  h_.policy["replace_drifted"] = "off";
  h_.Tick(minutes(1));
  EXPECT_EQ(h_.VmNames().size(), 2U) << h_.Transcript();
  EXPECT_THAT(h_.VmNames(), Not(Contains(unready)));
}

// Six of six VMs are busy, so that only the new one could go: it would be made again at once.
TEST_F(Replacement, R4_a_scale_in_that_could_remove_only_the_new_vm_is_refused) {
  h_.policy["node_selector_strategy"] = "empty";
  MakePool(3);
  h_.RunJob(3);
  h_.cluster.NeverJoin(1);
  ChangeTemplate();
  AwaitPending();
  const std::string pending = Pending();
  for (int i = 0; i < 10; ++i) {
    const absl::Status refused = h_.Scale(2);
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused << h_.Transcript();
    h_.Tick(seconds(3));
  }
  EXPECT_THAT(h_.VmNames(), Contains(pending)) << "no VM is made again";
  EXPECT_EQ(h_.VmNames().size(), 4U);
}

TEST_F(Replacement, R5_one_that_is_not_ready_in_time_goes_and_stops_the_others) {
  h_.policy["join_timeout"] = "5m";
  MakePool(3);
  ChangeTemplate();
  h_.cluster.NeverJoin(100);
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    h_.Tick(seconds(10));
    EXPECT_EQ(h_.Status()->count, 3);
    for (const std::string& vm : h_.VmNames()) seen.insert(vm);
  }
  EXPECT_EQ(Old(), 3U) << h_.Transcript();
  EXPECT_EQ(seen.size(), 4U) << "one new VM was tried";
  EXPECT_THAT(Recorded(), HasSubstr("has not joined"));
  h_.CheckAtRest(3);
}

TEST_F(Replacement, R5_a_new_vm_that_is_lost_before_the_swap_goes_and_stops_the_others) {
  h_.policy["join_timeout"] = "5m";
  const std::string fresh = BeginRoll(2);
  // The node is gone in the moment in which it is ready.
  h_.cluster.SetFaultHook([&](const RequestInfo& request) {
    const bool marks =
        request.verb == "patch" && request.body.find("scale-in") != std::string::npos;
    if (marks && request.body.find("unhealthy") == std::string::npos) return Fault::Drop();
    return Fault::None();
  });
  for (int i = 0; i < 300 && AnnotationOf(h_.cluster.Vm(fresh), Key("ready-at")).empty(); ++i) {
    h_.Tick(seconds(1));
  }
  ASSERT_TRUE(h_.cluster.StopVm(fresh));
  h_.Tick(seconds(40));
  h_.cluster.SetFaultHook(nullptr);
  EXPECT_EQ(h_.Status()->meta.at("harvester.lost"), "1") << h_.Transcript();
  for (int i = 0; i < 120; ++i) {
    h_.Tick(seconds(10));
    EXPECT_EQ(h_.Status()->count, 2);
  }
  EXPECT_EQ(Old(), 2U) << h_.Transcript();
  EXPECT_THAT(h_.VmNames(), Not(Contains(fresh)));
  EXPECT_FALSE(Recorded().empty());
  h_.CheckAtRest(2);
}

TEST_F(Replacement, R5_a_vm_that_somebody_asked_to_replace_is_tried_once_with_a_template) {
  h_.policy["join_timeout"] = "5m";
  MakePool(2);
  h_.policy["replace_drifted"] = "off";
  Annotate(*old_.begin(), "replace", "its disk is full");
  h_.cluster.NeverJoin(100);
  std::set<std::string> seen;
  for (int i = 0; i < 400; ++i) {
    h_.Tick(seconds(10));
    for (const std::string& vm : h_.VmNames()) seen.insert(vm);
  }
  EXPECT_EQ(seen.size(), 3U) << h_.Transcript();
  EXPECT_EQ(Old(), 2U);
}

void PutPodQuota(Harness& h, const std::string& hard, const std::string& used) {
  const json limit = {{"pods", hard}};
  ASSERT_TRUE(h.cluster.PutObject({{"apiVersion", "v1"},
                                   {"kind", "ResourceQuota"},
                                   {"metadata", {{"name", "team"}, {"namespace", "nomad"}}},
                                   {"spec", {{"hard", limit}}},
                                   {"status", {{"hard", limit}, {"used", {{"pods", used}}}}}}));
}

// Its hosts are full of other VMs until somebody makes room.
class FullHosts : public Replacement {
 protected:
  FullHosts() : Replacement(support::TwoHosts()) {}

  void SetFull(bool full) {
    for (const char* host : {"rack1-a", "rack2-a"}) {
      ASSERT_TRUE(h_.cluster.PutObject(support::Host(host, full)));
    }
  }
  // Whether the first old VM gives way within two minutes.
  bool GoesOn() {
    const std::size_t old = Old();
    for (int i = 0; i < 24 && Pending().empty() && Old() == old; ++i) h_.Tick(seconds(5));
    return !Pending().empty() || Old() < old;
  }
};

TEST_F(FullHosts, R5_without_a_forecast_a_roll_out_tries_and_goes_on_within_two_minutes_of_room) {
  h_.cluster.Forbid("list", "pods", /*cluster_wide=*/true);
  MakePool(3);
  ChangeTemplate();
  SetFull(true);
  std::string first;
  for (int i = 0; i < 200; ++i) {
    h_.Tick(seconds(10));
    EXPECT_EQ(h_.Status()->count, 3) << h_.Transcript();
    if (first.empty()) first = Recorded();
  }
  ASSERT_EQ(Old(), 3U) << h_.Transcript();
  const json recorded = json::parse(Recorded());
  EXPECT_EQ(recorded.at("lacks_room"), true);
  EXPECT_THAT(recorded.at("why"), HasSubstr("2 node(s) were unschedulable"));
  EXPECT_EQ(recorded.at("stopped_at"), json::parse(first).at("stopped_at")) << "since the first";
  SetFull(false);
  EXPECT_TRUE(GoesOn()) << h_.Transcript();
  h_.Tick(minutes(20));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
  EXPECT_EQ(Recorded(), "");
  ExpectDone(3);
}

TEST_F(FullHosts, R5_a_roll_out_makes_no_vm_without_room_and_goes_on_within_two_minutes_of_room) {
  MakePool(3);
  ChangeTemplate();
  SetFull(true);
  for (int i = 0; i < 66 && Recorded().empty(); ++i) h_.Tick(seconds(10));
  for (int i = 0; i < 48; ++i) {
    h_.Tick(seconds(10));
    ASSERT_EQ(h_.VmNames().size(), 3U) << h_.Transcript();
  }
  const json recorded = json::parse(Recorded());
  EXPECT_EQ(recorded.at("lacks_room"), true);
  EXPECT_THAT(recorded.at("why"),
              HasSubstr("0 of 1 VMs fit now: hosts rack1-a and rack2-a are cordoned"));
  EXPECT_THAT(LastError(), HasSubstr("0 of 1 VMs fit now"));
  EXPECT_EQ(h_.log->Count("Replacement is blocked", log::Level::kWarn), 1U) << h_.Transcript();
  SetFull(false);
  EXPECT_TRUE(GoesOn()) << h_.Transcript();
  h_.Tick(minutes(20));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
  EXPECT_EQ(Recorded(), "");
  ExpectDone(3);
}

TEST_F(FullHosts, R5_a_roll_out_waits_for_a_quota_and_goes_on_within_two_minutes_of_it) {
  MakePool(2);
  ChangeTemplate();
  PutPodQuota(h_, "2", "2");
  h_.Tick(minutes(40));
  EXPECT_EQ(h_.VmNames().size(), 2U) << h_.Transcript();
  EXPECT_EQ(Old(), 2U);
  EXPECT_THAT(Recorded(), HasSubstr("0 of 1 VMs fit the quota of namespace nomad"));
  PutPodQuota(h_, "9", "2");
  EXPECT_TRUE(GoesOn()) << h_.Transcript();
  h_.Tick(minutes(20));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
}

TEST_F(FullHosts, C17_an_unhealthy_vm_gives_way_although_there_is_no_room_for_its_replacement) {
  h_.policy["replace_unhealthy_after"] = "5m";
  MakePool(2);
  h_.policy["replace_drifted"] = "off";
  SetFull(true);
  const std::string dead = h_.VmNames()[0];
  ASSERT_TRUE(h_.cluster.StopVm(dead));
  h_.Tick(minutes(15));
  EXPECT_THAT(h_.VmNames(), Not(Contains(dead))) << h_.Transcript();
  EXPECT_EQ(h_.VmNames().size(), 1U);
  EXPECT_EQ(Recorded(), "") << "it stops no roll-out";
}

// Without the right to list pods, KubeVirt's message says only that volumes are not bound.
TEST_F(FullHosts, R5_what_lacks_room_at_its_join_timeout_stops_nothing) {
  h_.policy["join_timeout"] = "5m";
  h_.cluster.Forbid("list", "pods");
  MakePool(2);
  ChangeTemplate();
  SetFull(true);
  h_.Tick(minutes(30));
  ASSERT_EQ(Old(), 2U) << h_.Transcript();
  EXPECT_THAT(Recorded(), HasSubstr("lacks_room"));
  SetFull(false);
  h_.Tick(minutes(20));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
}

TEST_F(FullHosts, R8_without_room_no_further_old_vm_goes_first_until_a_new_one_is_ready) {
  h_.policy["max_unavailable"] = "1";
  MakePool(3);
  ChangeTemplate();
  SetFull(true);
  h_.Tick(minutes(60));
  EXPECT_EQ(Old(), 2U) << h_.Transcript();
  SetFull(false);
  h_.Tick(minutes(30));
  EXPECT_EQ(Old(), 2U) << "nobody has shown yet that there is room";
  ASSERT_TRUE(h_.Scale(3).ok()) << "the agent makes another VM";
  h_.Tick(minutes(30));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
  EXPECT_EQ(h_.Status()->count, 3);
}

TEST_F(Replacement, R1_it_leaves_a_zone_in_which_vms_cannot_start) {
  for (const char* zone : {"a", "b"}) h_.cluster.PutObject(support::HostIn(zone));
  h_.policy["availability_zones"] = "a,b";
  MakePool(2);
  h_.policy["replace_drifted"] = "off";
  const auto zone_of = [&](const std::string& vm) {
    return AnnotationOf(h_.cluster.Vm(vm), Key("zone"));
  };
  const std::string old = *old_.begin();
  const std::string full = zone_of(old);
  h_.cluster.FailStart(1, "ErrorUnschedulable", "no host has room");
  Annotate(old, "replace", "its disk is full");
  AwaitPending();
  EXPECT_EQ(zone_of(Pending()), full);
  h_.Tick(minutes(5));
  ASSERT_EQ(Old(), 1U) << h_.Transcript();
  for (const std::string& vm : h_.VmNames()) EXPECT_NE(zone_of(vm), full);
}

TEST_F(Replacement, R1_it_keeps_no_zone_once_the_policy_splits_its_vms_no_more) {
  for (const char* zone : {"a", "b"}) h_.cluster.PutObject(support::HostIn(zone));
  h_.policy["availability_zones"] = "a,b";
  MakePool(2);
  h_.policy["replace_drifted"] = "off";
  h_.policy["evenly_split_zones"] = "false";
  Annotate(*old_.begin(), "replace", "its disk is full");
  AwaitPending();
  EXPECT_EQ(AnnotationOf(h_.cluster.Vm(Pending()), Key("zone")), "");
}

TEST_F(Replacement, R1_it_keeps_no_zone_that_the_policy_no_longer_names) {
  for (const char* zone : {"a", "b"}) h_.cluster.PutObject(support::HostIn(zone));
  h_.policy["availability_zones"] = "a,b";
  MakePool(2);
  h_.policy["replace_drifted"] = "off";
  h_.policy["availability_zones"] = "b";
  for (const std::string& vm : old_) {
    if (AnnotationOf(h_.cluster.Vm(vm), Key("zone")) == "a") Annotate(vm, "replace", "zone a ends");
  }
  AwaitPending();
  EXPECT_EQ(AnnotationOf(h_.cluster.Vm(Pending()), Key("zone")), "b");
}

// Agents whose policies describe different VMs, by turns.
struct Fight {
  int policies;
  std::size_t vms;  // until the place is blocked
  const char* told;
};
class Fighting : public Replacement, public testing::WithParamInterface<Fight> {};

TEST_P(Fighting, R1_a_place_that_policies_fight_over_is_blocked_after_a_few_rounds) {
  MakePool(1);
  std::set<std::string> made = old_;
  const std::string memories[] = {h_.policy["memory_request"], "24Gi", "28Gi"};
  for (int round = 1; round < 5 * GetParam().policies; ++round) {
    h_.policy["memory_request"] = memories[round % GetParam().policies];
    h_.Tick(minutes(25));
    for (const std::string& vm : h_.VmNames()) made.insert(vm);
    EXPECT_EQ(h_.Status()->count, 1) << h_.Transcript();
  }
  EXPECT_EQ(made.size(), GetParam().vms) << h_.Transcript();
  EXPECT_THAT(h_.log->Text(), HasSubstr(GetParam().told));
}

INSTANTIATE_TEST_SUITE_P(
    Policies, Fighting,
    testing::Values(Fight{2, 5, "two policies of this pool describe different VMs"},
                    Fight{3, 6, "policies of this pool describe different VMs"}));

TEST_F(Replacement, C8_a_pool_rolls_to_another_node_class_that_its_user_data_is_rendered_from) {
  MakePool(2);
  h_.policy["node_class"] = "batch";
  h_.Tick(minutes(40));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
  for (const json& node : h_.Nodes()) {
    EXPECT_TRUE(node.at("Status") != "ready" || node.at("NodeClass") == "batch") << node;
  }
}

TEST_F(Replacement, R4_a_pool_that_is_paused_leaves_the_new_vm_as_it_is) {
  const std::string pending = BeginRoll(2);
  Pause(true);
  EXPECT_FALSE(h_.Scale(3).ok());
  EXPECT_NE(AnnotationOf(h_.cluster.Vm(pending), Key("replaces")), "") << h_.Transcript();
}

TEST_F(Replacement, C15_a_new_vm_that_joins_another_pool_costs_no_other_vm) {
  MakePool(2);
  std::string& user_data = h_.policy["user_data"];
  const std::string node_class = "{{node_class}}";
  ASSERT_NE(user_data.find(node_class), std::string::npos) << user_data;
  user_data.replace(user_data.find(node_class), node_class.size(), "wbe");
  h_.Tick(minutes(60));
  EXPECT_EQ(Old(), 2U) << h_.Transcript();
  EXPECT_EQ(h_.VmNames().size(), 3U) << "one was tried";
  EXPECT_EQ(h_.Status()->count, 2);
  EXPECT_THAT(h_.log->Text(), HasSubstr("is in another pool"));
}

TEST_F(Replacement, C2_scale_ins_that_are_refused_let_no_pool_grow) {
  MakePool(2);
  ChangeTemplate();
  Refuse([](const RequestInfo& request) { return request.resource == "selfsubjectrulesreviews"; });
  std::size_t most = 0;
  for (int i = 0; i < 80; ++i) {
    h_.Tick(seconds(10));
    h_.Scale(1).IgnoreError();
    most = std::max(most, h_.VmNames().size());
  }
  EXPECT_LE(most, 3U) << h_.Transcript();
}

TEST_F(Replacement, R3_a_pause_during_the_boot_only_delays_the_swap) {
  BeginRoll(2);
  const std::string old = Replaced();
  Pause(true);
  h_.Tick(minutes(10));
  EXPECT_EQ(h_.VmNames().size(), 3U);
  Pause(false);
  h_.Tick(minutes(10));
  EXPECT_THAT(h_.VmNames(), Not(Contains(old))) << h_.Transcript();
  EXPECT_EQ(h_.Status()->count, 2) << h_.Transcript();
}

TEST_F(Replacement, R6_drains_that_are_always_refused_cost_one_vm_and_not_one_each_hour) {
  MakePool(2);
  ChangeTemplate();
  RefuseDrains();
  h_.Tick(hours(3));
  EXPECT_EQ(Old(), 2U) << h_.Transcript();
  EXPECT_EQ(h_.VmNames().size(), 3U) << "no other VM is replaced meanwhile";
}

TEST_F(Replacement, L1_the_trouble_of_another_object_stops_no_roll_out) {
  MakePool(2);
  h_.policy["publish_host"] = "true";
  Refuse([](const RequestInfo& request) {
    return request.body.find("published-host") != std::string::npos;
  });
  ChangeTemplate();
  h_.Tick(minutes(40));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
}

TEST_F(Replacement, R5_C12_another_template_is_tried_again_and_its_success_ends_the_back_off) {
  h_.policy["join_timeout"] = "5m";
  MakePool(2);
  ChangeTemplate();
  h_.cluster.NeverJoin(1);
  h_.Tick(minutes(30));
  ASSERT_EQ(Old(), 2U) << h_.Transcript();
  const auto back_off = [&] { return AnnotationOf(h_.Leases().at(0), Key("back-off")); };
  ASSERT_THAT(back_off(), HasSubstr("join"));
  h_.policy["memory_request"] = "28Gi";
  h_.Tick(minutes(60));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
  EXPECT_EQ(back_off(), "");
  // That of the stop: what boots afterwards is normal.
  EXPECT_EQ(h_.log->Count("Replacement is blocked", log::Level::kWarn), 1U) << h_.Transcript();
}

TEST_F(Replacement, R6_a_vm_that_is_protected_meanwhile_stays_and_the_new_one_counts_by_itself) {
  BeginRoll(2);
  const std::string stays = Replaced();
  Annotate(stays, "protect", "true");
  h_.Tick(minutes(10));
  EXPECT_THAT(h_.VmNames(), Contains(stays)) << h_.Transcript();
  EXPECT_EQ(h_.Status()->count, 3) << h_.Transcript();
  h_.Converge(2);
  EXPECT_THAT(h_.VmNames(), Contains(stays)) << h_.Transcript();
}

// A pool without room for one more VM: the old one is removed before the new one starts.
class OldGoesFirst : public Replacement {
 protected:
  OldGoesFirst() {
    h_.policy["max_surge"] = "0";
    h_.policy["max_unavailable"] = "1";
  }
  void FillQuota() { PutPodQuota(h_, "2", "2"); }
  std::size_t Running() const {
    std::size_t running = 0;
    for (const json& vm : h_.Vms()) {
      if (vm.value("status", json::object()).value("printableStatus", "") == "Running") ++running;
    }
    return running;
  }
};

TEST_F(OldGoesFirst, R8_a_pool_rolls_in_the_room_that_it_has_and_keeps_its_count) {
  MakePool(3);
  ChangeTemplate();
  Roll(3, seconds(5), 360, [&] {
    EXPECT_GE(Eligible(), 2U) << h_.Transcript();
    EXPECT_LE(Running(), 3U) << h_.Transcript();
  });
  ExpectDone(3);
}

TEST_F(OldGoesFirst, R8_no_old_vm_goes_for_a_new_one_that_harvester_refuses) {
  MakePool(2);
  ChangeTemplate();
  Refuse([](const RequestInfo& request) {
    return request.resource == "virtualmachines" && request.verb == "create";
  });
  h_.Tick(minutes(60));
  EXPECT_EQ(Old(), 2U) << h_.Transcript();
  EXPECT_EQ(h_.Status()->count, 2);
}

TEST_F(OldGoesFirst, R8_a_full_quota_does_not_stop_a_roll_out) {
  MakePool(2);
  FillQuota();
  ChangeTemplate();
  h_.Tick(minutes(60));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();
  h_.CheckAtRest(2);
}

TEST_F(OldGoesFirst, C17_a_dead_vm_leaves_its_room_to_the_one_that_replaces_it) {
  MakePool(2);
  h_.policy["replace_unhealthy_after"] = "5m";
  FillQuota();
  const std::string dead = h_.VmNames()[0];
  ASSERT_TRUE(h_.cluster.StopVm(dead));
  for (int i = 0; i < 60; ++i) {
    h_.Tick(seconds(10));
    EXPECT_EQ(h_.Status()->count, 2) << h_.Transcript();
  }
  EXPECT_THAT(h_.VmNames(), Not(Contains(dead))) << h_.Transcript();
  h_.CheckAtRest(2);
}

TEST_F(OldGoesFirst, R8_the_deadline_begins_although_the_creating_server_was_hours_ahead) {
  const std::string waits = BeginRoll(2);
  json vm = h_.cluster.Vm(waits);
  vm["metadata"]["creationTimestamp"] =
      base::FormatRfc3339(h_.clock.WallNow() + std::chrono::hours(9));
  ASSERT_TRUE(h_.cluster.PutObject(vm));
  ASSERT_TRUE(h_.Accept(3).ok()) << h_.Transcript();
  const auto limit = base::ParseGoDuration(AnnotationOf(h_.cluster.Vm(waits), Key("join-timeout")));
  ASSERT_TRUE(limit.ok()) << limit.status();
  EXPECT_GT(*limit, base::Duration());
}

TEST_F(OldGoesFirst, R4_R8_growth_starts_the_new_vm_as_one_more_and_its_deadline_begins) {
  const std::string waits = BeginRoll(2);
  ASSERT_TRUE(h_.Accept(3).ok()) << h_.Transcript();
  EXPECT_EQ(h_.VmNames().size(), 3U);
  EXPECT_EQ(Old(), 2U);
  EXPECT_EQ(h_.cluster.Vm(waits).at("spec").at("runStrategy"), "RerunOnFailure");
  EXPECT_THAT(AnnotationOf(h_.cluster.Vm(waits), Key("join-timeout")), Not("none"));
  h_.policy["replace_drifted"] = "off";
  h_.WaitUntilReady();
  h_.CheckAtRest(3);
}

TEST_F(OldGoesFirst, R4_a_scale_in_takes_the_new_vm_which_never_ran) {
  const std::string waits = BeginRoll(2);
  std::set<std::string> started;
  h_.OnEachRequest([&](const RequestInfo& request) {
    if (request.body.find("runStrategy") != std::string::npos) started.insert(request.target);
  });
  ASSERT_TRUE(h_.Accept(1).ok()) << h_.Transcript();
  h_.policy["replace_drifted"] = "off";
  h_.Tick(minutes(1));
  EXPECT_THAT(h_.VmNames(), Not(Contains(waits))) << h_.Transcript();
  EXPECT_EQ(Old(), 1U);
  EXPECT_TRUE(started.empty()) << *started.begin();
}

TEST_F(OldGoesFirst, R6_an_old_vm_that_is_protected_meanwhile_stays_and_the_new_one_goes) {
  const std::string waits = BeginRoll(2);
  const std::string stays = Replaced();
  Annotate(stays, "protect", "true");
  h_.Tick(minutes(5));
  EXPECT_THAT(h_.VmNames(), Contains(stays)) << h_.Transcript();
  EXPECT_THAT(h_.VmNames(), Not(Contains(waits))) << h_.Transcript();
  h_.CheckAtRest(2);
}

TEST_F(OldGoesFirst, R6_a_drain_that_is_refused_keeps_the_old_vm_and_not_the_new_one) {
  const std::string waits = BeginRoll(2);
  RefuseDrains();
  for (int i = 0; i < 180; ++i) {
    h_.Tick(seconds(10));
    EXPECT_EQ(h_.Status()->count, 2) << h_.Transcript();
  }
  EXPECT_EQ(Old(), 2U) << h_.Transcript();
  EXPECT_THAT(h_.VmNames(), Not(Contains(waits))) << h_.Transcript();
}

TEST_F(OldGoesFirst, R5_a_new_vm_that_never_joins_costs_one_old_vm_whatever_on_join_timeout_says) {
  h_.policy["join_timeout"] = "5m";
  h_.policy["on_join_timeout"] = "keep";
  MakePool(3);
  ChangeTemplate();
  h_.cluster.NeverJoin(1);
  h_.Tick(minutes(90));
  EXPECT_EQ(h_.VmNames().size(), 2U) << h_.Transcript();
  EXPECT_EQ(Old(), 2U);
  EXPECT_NE(Recorded(), "");
  EXPECT_EQ(h_.Status()->count, 2) << "the agent sees that one is missing";
}

TEST_F(OldGoesFirst, R8_the_deadline_of_the_new_vm_begins_when_it_starts) {
  h_.policy["join_timeout"] = "5m";
  h_.policy["node_drain_deadline"] = "1h";
  MakePool(1);
  ASSERT_TRUE(h_.cluster.HangDrain(h_.NodeOf(*old_.begin())));
  ChangeTemplate();
  AwaitPending();
  const std::string waits = Pending();
  EXPECT_EQ(AnnotationOf(h_.cluster.Vm(waits), Key("join-timeout")), "none");
  h_.Tick(minutes(90));
  EXPECT_THAT(h_.VmNames(), Contains(waits)) << h_.Transcript();
  h_.CheckAtRest(1);
}

TEST_F(OldGoesFirst, R8_a_new_vm_that_somebody_stops_after_it_has_joined_stays_stopped) {
  MakePool(1);
  ChangeTemplate();
  h_.Tick(minutes(10));
  ASSERT_EQ(Old(), 0U) << h_.Transcript();
  const std::string vm = h_.VmNames().at(0);
  SetRunStrategy(vm, "Halted");
  h_.Tick(minutes(10));
  EXPECT_EQ(h_.cluster.Vm(vm).at("spec").at("runStrategy"), "Halted") << h_.Transcript();
}

TEST_F(OldGoesFirst, L7_a_new_vm_that_somebody_stops_before_it_is_ready_costs_little_for_ever) {
  MakePool(1);
  h_.policy["join_timeout"] = "12h";
  h_.policy["ready_drivers"] = "podman";  // which its client lacks
  ChangeTemplate();
  h_.Tick(minutes(10));
  ASSERT_EQ(Old(), 0U) << h_.Transcript();
  const std::string vm = h_.VmNames().at(0);
  ASSERT_NE(AnnotationOf(h_.cluster.Vm(vm), Key("joined-at")), "") << h_.Transcript();
  SetRunStrategy(vm, "Halted");
  h_.policy["replace_drifted"] = "off";
  h_.Tick(minutes(10));
  EXPECT_LE(RequestsAtRest(h_, minutes(60)), RestBudget(minutes(60), 0)) << h_.log->Text();
  h_.Restart();
  h_.Tick(minutes(1));
  h_.cluster.ResetCounters();
  h_.TickWithoutStatus(hours(1));
  EXPECT_LE(RequestsButKeys(h_.cluster), 25 * 7) << "a round without a Status grows rare";
}

TEST_F(Replacement, R1_the_first_vm_of_a_spec_goes_alone_and_the_others_as_max_surge_allows) {
  h_.policy["max_surge"] = "3";
  MakePool(7);
  ChangeTemplate();
  std::size_t vms = 7;
  std::size_t most = 0;
  std::size_t before_the_first_drain = 0;
  h_.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.resource == "drain" && before_the_first_drain == 0) before_the_first_drain = vms;
    if (request.resource != "virtualmachines" || !request.has_effect) return Fault::None();
    if (request.verb == "create") most = std::max(most, ++vms);
    if (request.verb == "delete") --vms;
    return Fault::None();
  });
  Roll(7, seconds(5), 400, [&] { EXPECT_GE(Eligible(), 7U) << h_.Transcript(); });
  EXPECT_EQ(before_the_first_drain, 8U) << "the first one comes alone";
  EXPECT_EQ(most, 10U);
}

// Several go at a time, and the pool cannot be read after each creation.
TEST_F(Replacement, R1_a_vm_is_not_replaced_twice_while_the_pool_cannot_be_read) {
  h_.policy["max_surge"] = "3";
  MakePool(4);
  ChangeTemplate();
  base::MonoTime unreadable_until{};
  h_.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.resource != "virtualmachines") return Fault::None();
    if (request.verb == "create") unreadable_until = h_.clock.Now() + minutes(1);
    const bool fails = request.verb == "list" && h_.clock.Now() < unreadable_until;
    return fails ? Fault::CutReply() : Fault::None();
  });
  h_.Tick(minutes(40));
  EXPECT_EQ(Old(), 0U) << h_.Transcript();  // the invariants say if one was replaced twice
  h_.cluster.SetFaultHook(nullptr);
  ExpectDone(4);
}

TEST_F(Replacement, R1_a_drain_that_takes_long_holds_up_no_other_replacement) {
  h_.policy["max_surge"] = "2";
  h_.policy["node_drain_deadline"] = "2h";
  MakePool(4);
  const std::string hangs = *old_.begin();
  ASSERT_TRUE(h_.cluster.HangDrain(h_.NodeOf(hangs)));
  ChangeTemplate();
  std::vector<std::string> gone;
  h_.OnEachRequest([&](const RequestInfo& request) {
    const bool goes = request.resource == "virtualmachines" && request.verb == "delete";
    if (goes) gone.push_back(request.name);
  });
  h_.Tick(minutes(60));
  ASSERT_EQ(gone.size(), 4U) << h_.Transcript();
  EXPECT_EQ(gone.back(), hangs);
}

TEST_F(OldGoesFirst, R8_as_many_go_at_a_time_as_max_unavailable_allows) {
  h_.policy["max_unavailable"] = "2";
  MakePool(5);
  ChangeTemplate();
  int missing = 0;
  std::vector<int> missing_at_each_drain;
  h_.OnEachRequest([&](const RequestInfo& request) {
    if (request.resource == "drain" && request.has_effect) {
      missing_at_each_drain.push_back(++missing);
    }
    if (request.verb == "patch" && request.body.find("runStrategy") != std::string::npos) {
      --missing;
    }
  });
  Roll(5, seconds(5), 400, [&] { EXPECT_LE(Running(), 5U) << h_.Transcript(); });
  EXPECT_THAT(missing_at_each_drain, ElementsAre(1, 1, 2, 1, 2)) << h_.Transcript();
}

// A pool of eight, three of which are about to be replaced: the new VMs boot for long.
class ThreePending : public Replacement {
 protected:
  ThreePending() : Replacement(Slow()) {}
  void MakePending() {
    h_.policy["max_surge"] = "3";
    MakePool(8);
    ChangeTemplate();
    AwaitPending(3, 900);
    before_ = h_.Status()->count;
    ASSERT_EQ(before_, 8);
  }
  std::int64_t before_ = 0;

 private:
  static simulator::Options Slow() {
    simulator::Options options;
    options.boot_time = minutes(1);
    return options;
  }
};

TEST_F(ThreePending, R4_a_capped_scale_in_lets_the_pool_shrink_however_many_are_pending) {
  h_.policy["max_scale_in"] = "1";
  MakePending();
  ASSERT_TRUE(h_.Scale(5).ok()) << h_.Transcript();
  EXPECT_EQ(h_.Status()->count, before_ - 1) << h_.Transcript();
}

// It may still take effect, so that another plan would rest on what is not so.
TEST_F(ThreePending, R4_a_write_without_an_answer_ends_the_scale) {
  MakePending();
  h_.Inject(Fault::Delay(minutes(3)), [](const RequestInfo& request) {
    return request.verb == "patch" && request.resource == "virtualmachines" &&
           request.body.find("replaces") != std::string::npos;
  });
  const std::size_t before = h_.VmNames().size();
  EXPECT_FALSE(h_.Scale(before_ + 1).ok());
  EXPECT_EQ(h_.VmNames().size(), before) << h_.Transcript();
}

// A pool of three, and a new VM that is broken, which nobody has marked yet.
class BrokenPending : public Replacement {
 protected:
  void MakePending() {
    h_.policy["join_timeout"] = "5m";
    MakePool(3);
    h_.cluster.NeverJoin(1);
    ChangeTemplate();
    AwaitPending();
    // Its failure has been counted before (rule C12).
    Annotate(Pending(), "removal-undone", "2026-01-01T00:00:00Z it was protected");
    h_.clock.Advance(minutes(6));
  }
};

TEST_F(BrokenPending, R4_it_is_no_part_of_max_scale_out) {
  MakePending();
  h_.policy["max_scale_out"] = "1";
  EXPECT_TRUE(h_.Accept(4).ok()) << h_.Transcript();
  EXPECT_EQ(h_.Status()->count, 4) << h_.Transcript();
}

TEST_F(BrokenPending, R4_it_is_no_part_of_max_scale_in) {
  MakePending();
  h_.policy["max_scale_in"] = "1";
  EXPECT_TRUE(h_.Accept(1).ok()) << h_.Transcript();
  EXPECT_EQ(h_.Status()->count, 2) << h_.Transcript();
}

TEST_F(ThreePending, R4_growth_takes_as_many_as_it_needs_and_removes_none) {
  MakePending();
  ASSERT_TRUE(h_.Scale(before_ + 1).ok()) << h_.Transcript();
  EXPECT_EQ(h_.Status()->count, before_ + 1) << h_.Transcript();
  EXPECT_THAT(h_.log->Text(), Not(HasSubstr("scale in")));
  h_.policy["replace_drifted"] = "off";
  h_.Tick(minutes(20));
  h_.CheckAtRest(static_cast<int>(before_) + 1);
}

TEST_F(ThreePending, R4_growth_stays_within_max_scale_out_with_those_that_are_pending) {
  MakePending();
  h_.policy["max_scale_out"] = "2";
  ASSERT_TRUE(h_.Scale(20).ok()) << h_.Transcript();
  EXPECT_EQ(h_.Status()->count, before_ + 2) << h_.Transcript();
}

TEST_F(OldGoesFirst, R6_a_new_vm_that_is_protected_beside_an_old_one_that_stays_costs_no_loop) {
  const std::string waits = BeginRoll(2);
  Annotate(Replaced(), "protect", "true");
  Annotate(waits, "protect", "true");
  h_.Tick(minutes(1));
  h_.cluster.ResetCounters();
  h_.Tick(minutes(10));
  EXPECT_THAT(h_.VmNames(), Contains(waits)) << h_.Transcript();
  EXPECT_LE(h_.cluster.RequestCount(System::kHarvester, "patch", "virtualmachines"), 2);
  EXPECT_THAT(h_.log->Text(), HasSubstr("stays, whose place it was to take, and it is protected"));
}

TEST_F(OldGoesFirst, R8_a_start_that_is_refused_for_a_minute_costs_that_vm_and_stops_the_roll_out) {
  const std::string waits = BeginRoll(3);
  Refuse([](const RequestInfo& request) {
    return request.body.find("runStrategy") != std::string::npos;
  });
  h_.Tick(minutes(30));
  EXPECT_THAT(h_.VmNames(), Not(Contains(waits))) << h_.Transcript();
  EXPECT_EQ(Old(), 2U);
  EXPECT_EQ(h_.Status()->count, 2) << "the agent sees that one is missing";
  EXPECT_THAT(Recorded(), HasSubstr("refused for a minute: patch VirtualMachine"));
  EXPECT_THAT(AnnotationOf(h_.Leases().at(0), Key("back-off")), HasSubstr("\"start\"")) << "C12";
}

TEST_F(OldGoesFirst, R8_C12_a_start_that_a_full_quota_refuses_lacks_room) {
  BeginRoll(3);
  h_.Inject(Fault::Answer(403, R"({"kind": "Status", "reason": "Forbidden",
                                   "message": "exceeded quota: compute"})"),
            [](const RequestInfo& request) {
              return request.body.find("runStrategy") != std::string::npos;
            });
  h_.Tick(minutes(30));
  EXPECT_THAT(Recorded(), HasSubstr("exceeded quota: compute"));
  EXPECT_THAT(AnnotationOf(h_.Leases().at(0), Key("back-off")), HasSubstr("\"room\"")) << "C12";
}

TEST_F(OldGoesFirst, R8_a_new_vm_that_is_started_by_hand_gets_a_deadline) {
  h_.policy["join_timeout"] = "5m";
  MakePool(2);
  ASSERT_TRUE(h_.cluster.HangDrain(h_.NodeOf(*old_.begin())));
  ASSERT_TRUE(h_.cluster.HangDrain(h_.NodeOf(*old_.rbegin())));
  ChangeTemplate();
  AwaitPending();
  const std::string waits = Pending();
  SetRunStrategy(waits, "Always");
  h_.Tick(minutes(1));
  const json vm = h_.cluster.Vm(waits);
  EXPECT_EQ(vm.at("spec").at("runStrategy"), "Always") << h_.Transcript();
  EXPECT_NE(AnnotationOf(vm, Key("join-timeout")), "none");
}

// What new VMs are made of is read every ten minutes, and once more for each of them.
TEST_F(Replacement, R1_a_policy_that_is_changed_back_costs_no_vm_that_is_as_it_describes) {
  MakePool(4);
  const std::string first = h_.policy["memory_request"];
  ChangeTemplate();
  AwaitPending();
  old_.erase(Replaced());
  h_.policy["memory_request"] = first;
  h_.Tick(minutes(40));
  EXPECT_EQ(Old(), 3U) << h_.Transcript();
}

TEST_F(Replacement, R6_a_clock_that_is_set_back_costs_no_endless_writes) {
  BeginRoll(2);
  Annotate(Replaced(), "protect", "true");
  h_.cluster.SetClockSkews({minutes(-30)});
  h_.clock.set_wall_skew(minutes(-30));
  int writes = 0;
  h_.cluster.SetFaultHook([&](const RequestInfo& request) {
    const bool records =
        request.verb == "patch" && request.body.find("removal-undone") != std::string::npos;
    return records && ++writes == 20 ? Fault::Die() : Fault::None();  // it would not end
  });
  h_.Tick(minutes(1));
  EXPECT_EQ(writes, 1) << h_.log->Text();
}

// A webhook denies whatever is written on one VM.
class UnwritableVm : public ThreePending {
 protected:
  void RefuseWritesOf(const std::string& vm) {
    Refuse([vm](const RequestInfo& request) {
      return request.resource == "virtualmachines" && request.verb == "patch" && request.name == vm;
    });
  }
  // Asks for that count as the agent would.
  void Ask(std::int64_t count, base::Duration duration) {
    for (base::Duration passed{}; passed < duration; passed += seconds(30)) {
      h_.Tick(seconds(30));
      const auto status = h_.Status();
      if (status->ready && status->count != count) last_ = h_.Scale(count);
    }
  }
  absl::Status last_;
};

TEST_F(UnwritableVm, I6_a_new_one_stops_no_growth) {
  MakePending();
  RefuseWritesOf(Pending());
  Ask(12, minutes(20));
  EXPECT_EQ(h_.Status()->count, 12) << last_ << "\n" << h_.log->Text();
}

TEST_F(UnwritableVm, I6_a_new_one_stops_no_scale_in) {
  MakePending();
  Annotate(Replaced(), "delete-first", "true");
  RefuseWritesOf(Pending());
  EXPECT_TRUE(h_.Scale(3).ok()) << h_.Transcript();
  EXPECT_EQ(h_.Status()->count, 3) << h_.Transcript();
}

TEST_F(UnwritableVm, C2_a_scale_in_beside_a_new_one_lets_no_pool_grow) {
  MakePending();
  RefuseWritesOf(Pending());
  std::size_t most = 0;
  for (int i = 0; i < 60; ++i) {
    Ask(7, seconds(60));
    most = std::max(most, h_.VmNames().size());
  }
  EXPECT_LE(most, 11U) << last_ << "\n" << h_.log->Text();
}

TEST_F(UnwritableVm, R6_an_old_one_stays_and_the_new_one_counts) {
  BeginRoll(2);
  RefuseWritesOf(Replaced());
  h_.Tick(minutes(30));
  EXPECT_EQ(Eligible(), 3U) << h_.Transcript();
  EXPECT_EQ(h_.Status()->count, 3) << h_.Transcript();
  h_.cluster.SetFaultHook(nullptr);
  h_.Tick(minutes(10));
  EXPECT_EQ(h_.Status()->count, static_cast<std::int64_t>(Eligible())) << h_.Transcript();
}

}  // namespace
}  // namespace nomad_harvester::scenario
