// SPDX-License-Identifier: Apache-2.0
// Faults, counters and observers.
#include <map>

#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;

class FaultsTest : public SimulatorTest {
 protected:
  // Applies the fault to the n-th request with an effect.
  void FailEffect(int n, Fault fault) {
    cluster().SetFaultHook([n, fault](const RequestInfo& info) {
      return info.effect_sequence == n ? fault : Fault::None();
    });
  }
  absl::Status MakeSecret(const std::string& vm, base::Duration limit = minutes(5)) {
    return kube()
        .Create(context_.WithTimeout(limit), kube::kSecrets, "nomad", SecretFor(vm))
        .status();
  }
};

TEST_F(FaultsTest, A_lost_request_changes_nothing) {
  FailEffect(1, Fault::Drop());
  EXPECT_THAT(MakeSecret("vm-1"), StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(cluster().Secrets(), IsEmpty());
  EXPECT_THAT(MakeSecret("vm-1"), IsOk());
}

TEST_F(FaultsTest, A_lost_reply_leaves_its_effect) {
  FailEffect(1, Fault::DropReply());
  EXPECT_THAT(MakeSecret("vm-1"), StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(cluster().Secrets(), SizeIs(1));
  EXPECT_TRUE(kube::IsAlreadyExists(MakeSecret("vm-1")));
}

TEST_F(FaultsTest, Requests_of_a_dead_process_fail_until_a_new_one_starts) {
  FailEffect(2, Fault::Die());
  EXPECT_THAT(MakeSecret("vm-1"), IsOk());
  EXPECT_THAT(MakeSecret("vm-2"), StatusIs(StatusCode::kUnavailable));
  EXPECT_TRUE(cluster().dead());
  const int requests = cluster().RequestCount();
  EXPECT_THAT(nomad().ListNodes(context_), StatusIs(StatusCode::kUnavailable));
  EXPECT_EQ(cluster().RequestCount(), requests);  // it was never sent
  const nomad::NomadClient successor(cluster().NomadTransport("successor"), {});
  EXPECT_THAT(successor.ListNodes(context_), IsOk());
  EXPECT_THAT(cluster().Secrets(), SizeIs(1));
}

TEST_F(FaultsTest, A_process_may_die_with_its_last_request_in_transit) {
  FailEffect(1, Fault::ApplyThenDie());
  EXPECT_THAT(MakeSecret("vm-1"), StatusIs(StatusCode::kUnavailable));
  EXPECT_TRUE(cluster().dead());
  EXPECT_THAT(cluster().Secrets(), SizeIs(1));
}

TEST_F(FaultsTest, An_answer_is_given_without_the_effect) {
  FailEffect(1, Fault::Answer(429, "", "1"));
  EXPECT_THAT(MakeSecret("vm-1"),
              StatusIs(StatusCode::kUnavailable, HasSubstr("Too many requests")));
  EXPECT_THAT(cluster().Secrets(), IsEmpty());
  FailEffect(2, Fault::Answer(503));
  EXPECT_THAT(MakeSecret("vm-1"), StatusIs(StatusCode::kUnavailable));
  cluster().SetFaultHook([](const RequestInfo&) { return Fault::Answer(500); });
  EXPECT_THAT(nomad().ListNodes(context_),
              StatusIs(StatusCode::kUnavailable, HasSubstr("No cluster leader")));
}

TEST_F(FaultsTest, A_late_request_is_applied_late) {
  FailEffect(1, Fault::Delay(seconds(20)));
  const auto start = clock_.Now();
  EXPECT_THAT(MakeSecret("vm-1"), IsOk());
  EXPECT_EQ(clock_.Now() - start, seconds(20));
}

TEST_F(FaultsTest, A_late_request_lands_even_if_its_client_gave_up) {
  FailEffect(1, Fault::Delay(seconds(20)));
  EXPECT_THAT(MakeSecret("vm-1", seconds(10)), StatusIs(StatusCode::kDeadlineExceeded));
  EXPECT_THAT(cluster().Secrets(), IsEmpty());
  Wait(seconds(9));
  EXPECT_THAT(cluster().Secrets(), IsEmpty());
  Wait(seconds(1));
  EXPECT_THAT(cluster().Secrets(), SizeIs(1));
  EXPECT_EQ(cluster().Secrets()[0]["metadata"]["creationTimestamp"], "2026-01-01T00:00:20Z");
}

TEST_F(FaultsTest, Systems_can_be_out_of_reach_one_by_one) {
  cluster().SetNomadReachable(false);
  EXPECT_THAT(nomad().ListNodes(context_), StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(MakeSecret("vm-1"), IsOk());
  cluster().SetNomadReachable(true);
  cluster().SetHarvesterReachable(false);
  EXPECT_THAT(nomad().ListNodes(context_), IsOk());
  EXPECT_THAT(MakeSecret("vm-2"), StatusIs(StatusCode::kUnavailable));
}

TEST_F(FaultsTest, Requests_take_the_configured_latency) {
  options_.request_latency = milliseconds(30);
  const auto start = clock_.Now();
  EXPECT_THAT(MakeSecret("vm-1"), IsOk());
  EXPECT_EQ(clock_.Now() - start, milliseconds(30));
  EXPECT_THAT(MakeSecret("vm-2", milliseconds(10)), StatusIs(StatusCode::kDeadlineExceeded));
}

TEST_F(FaultsTest, A_cancelled_context_sends_nothing) {
  const runtime::CancelSource source(context_);
  source.Cancel(runtime::CancelReason::kClient);
  EXPECT_THAT(kube().Create(source.context(), kube::kSecrets, "nomad", SecretFor("vm-1")).status(),
              StatusIs(StatusCode::kCancelled));
  EXPECT_EQ(cluster().RequestCount(), 0);
}

TEST_F(FaultsTest, Requests_are_counted_by_verb_and_resource) {
  std::vector<RequestInfo> seen;
  cluster().SetFaultHook([&](const RequestInfo& info) {
    seen.push_back(info);
    return Fault::None();
  });
  const nomad::Node node = JoinVm("vm-1");
  seen.clear();
  cluster().ResetCounters();
  kube::ListNames(kube(), context_, kube::kVirtualMachines, "nomad").IgnoreError();
  kube()
      .MergePatch(context_, kube::kVirtualMachines, "nomad", "vm-1", json::object())
      .IgnoreError();
  nomad().ListNodes(context_).IgnoreError();
  nomad().Drain(context_, node.id, {minutes(1), false, {}}).IgnoreError();
  EXPECT_EQ(cluster().RequestCounts(),
            (std::map<std::string, int>{{"harvester list virtualmachines", 1},
                                        {"harvester patch virtualmachines", 1},
                                        {"nomad list nodes", 1},
                                        {"nomad update drain", 1}}));
  EXPECT_EQ(cluster().EffectCount(), 2);
  ASSERT_THAT(seen, SizeIs(4));
  EXPECT_EQ(seen[1].name, "vm-1");
  EXPECT_EQ(seen[1].effect_sequence, 1);
  EXPECT_EQ(seen[3].name, node.id);
  EXPECT_EQ(seen[3].sequence, 4);
  EXPECT_THAT(seen[3].body, HasSubstr("DrainSpec"));
}

TEST_F(FaultsTest, An_observer_sees_each_step_and_may_query_the_cluster) {
  std::vector<EventKind> kinds;
  std::vector<std::size_t> claims;
  cluster().SetObserver([&](const Event& event) {
    kinds.push_back(event.kind);
    if (event.kind == EventKind::kClaimCreated) claims.push_back(cluster().Claims().size());
    if (event.kind == EventKind::kVmRunning) {
      EXPECT_EQ(cluster().Vm("vm-1")["status"]["printableStatus"], "Running");
      EXPECT_THAT(cluster().Nodes(), IsEmpty());  // the node registers three seconds later
    }
  });
  MakeVm("vm-1");
  Wait(minutes(1));
  cluster().ApplyDue();
  EXPECT_THAT(
      kinds, ElementsAre(EventKind::kSecretCreated, EventKind::kVmCreated, EventKind::kClaimCreated,
                         EventKind::kVmRunning, EventKind::kNodeRegistered));
  EXPECT_THAT(claims, ElementsAre(1U));
}

TEST_F(FaultsTest, A_deletion_shows_what_ran_on_the_vm_at_that_moment) {
  const json vm = MakeVm("vm-1");
  Wait(seconds(9));
  JobSpec job;
  job.id = "web";
  cluster().RunJob(job);
  Wait(seconds(1));
  cluster().ApplyDue();
  std::vector<Event> events;
  cluster().SetObserver([&](const Event& event) { events.push_back(event); });
  ASSERT_THAT(DeleteVm(vm), IsOk());
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].kind, EventKind::kVmDeleteRequested);
  EXPECT_EQ(events[0].actor, Actor::kApi);
  EXPECT_EQ(events[0].id, UidOf(vm));
  ASSERT_NE(events[0].node, nullptr);
  EXPECT_EQ((*events[0].node)["Name"], "vm-1");
  ASSERT_THAT(events[0].allocations, SizeIs(1));
  EXPECT_EQ((*events[0].allocations[0])["ClientStatus"], "running");
}

TEST_F(FaultsTest, Marks_and_joins_are_events_of_their_own) {
  MakeVm("vm-1");
  std::vector<EventKind> kinds;
  cluster().SetObserver([&](const Event& event) { kinds.push_back(event.kind); });
  const std::string prefix = "nomad-harvester-autoscaler/";
  cluster().EditAnnotation("vm-1", prefix + "joined-at", "2026-01-01T00:00:00Z");
  cluster().EditAnnotation("vm-1", prefix + "scale-in", "{}");
  cluster().EditAnnotation("vm-1", prefix + "scale-in", "{\"a\":1}");
  cluster().EditAnnotation("vm-1", prefix + "scale-in", std::nullopt);
  cluster().EditAnnotation("vm-1", prefix + "protect", "true");
  EXPECT_THAT(kinds, ElementsAre(EventKind::kJoinRecorded, EventKind::kMarked, EventKind::kMarked,
                                 EventKind::kUnmarked, EventKind::kVmAnnotated));
}

TEST_F(FaultsTest, The_journal_has_a_line_for_each_event_with_who_did_it) {
  const std::string id = AddNode("n");
  cluster().OperatorDrain("n", minutes(5), {{"by", "me"}});
  Wait(seconds(1));
  ASSERT_THAT(nomad().Purge(context_, id), IsOk());
  EXPECT_THAT(cluster().Journal(),
              ElementsAre("2026-01-01T00:00:00Z NodeRegistered n " + id + " (operator)",
                          "2026-01-01T00:00:00Z DrainStarted n " + id + " by=me (operator)",
                          "2026-01-01T00:00:00.1Z DrainComplete n " + id + " by=me (controller)",
                          "2026-01-01T00:00:01Z Purged n " + id + " by=me (api)"));
}

}  // namespace
}  // namespace nomad_harvester::simulator
