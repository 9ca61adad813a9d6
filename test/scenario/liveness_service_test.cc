// SPDX-License-Identifier: Apache-2.0
//
// What Scale and Status owe their pool, whatever happens to a VM, to another pool or to the process
// itself: ends, in simulated time and in requests.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/harvester/metadata.h"

#include "costs.h"
#include "support/node_to_purge.h"
#include "trouble.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Act kCreateVm{.verb = "create", .resource = "virtualmachines"};

TEST(Creation, L1_a_vm_that_is_deleted_by_hand_before_the_first_look_ends_its_part) {
  Harness h;
  std::string deleted;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (!deleted.empty() || !IsOfKind(ActOf(request, h.cluster), kCreateVm)) return Fault::None();
    deleted = request.name;
    return Fault::BeforeReply([&] { h.cluster.DeleteVmByHand(deleted); });
  });
  const Scaled out = ScaleMeasured(h, 2);
  EXPECT_FALSE(out.outcome.ok());
  EXPECT_THAT(out.outcome.ToString(), HasSubstr(deleted));
  EXPECT_LE(out.lasted, minutes(2));
  h.Converge(2);
  h.CheckAtRest(2);
}

TEST(Creation, C3_a_post_that_lands_late_finds_its_secret) {
  Harness h;
  h.invariants.ExpectLateRequests();
  const base::MonoTime begun = h.clock.Now();
  h.Inject(Fault::Delay(minutes(3)), [&](const RequestInfo& request) {
    return h.clock.Now() - begun < minutes(2) && IsOfKind(ActOf(request, h.cluster), kCreateVm);
  });
  const Scaled out = ScaleMeasured(h, 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(out.outcome)) << out.outcome << "\n" << h.Transcript();
  EXPECT_LE(out.lasted, minutes(1));
  h.Converge(1);
  // All that was sent has landed.
  h.Tick(minutes(5));
  EXPECT_EQ(h.Secrets().size(), h.VmNames().size());
  h.CheckAtRest(1);
}

TEST(Creation, C15_a_vm_that_joins_with_another_class_fails_its_creation_and_stays) {
  Harness h;
  h.policy["user_data"] =
      "#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: |\n"
      "    name = \"{{vm_name}}\"\n    node_class = \"batch\"\n";
  const Scaled out = ScaleMeasured(h, 1);
  EXPECT_FALSE(out.outcome.ok());
  EXPECT_THAT(out.outcome.ToString(),
              AllOf(HasSubstr("node_class"), HasSubstr("batch"), HasSubstr("web")));
  EXPECT_LE(out.lasted, minutes(2));
  EXPECT_EQ(h.VmNames().size(), 1U);
  EXPECT_FALSE(h.Scale(2).ok()) << "nothing more is made";
  EXPECT_EQ(h.VmNames().size(), 1U);
}

// Failing for 60 s counts, not failing for 60 s with the same words.
TEST(Creation, C3_a_start_that_fails_for_other_reasons_in_turn_is_as_broken_as_any) {
  Harness h;
  h.cluster.FailStart(1, "ErrorUnschedulable", "no host has room");
  h.clock.After(seconds(40), [&h] {
    json vm = h.Vms().at(0);
    for (json& condition : vm["status"]["conditions"]) {
      if (base::GetString(condition, "type") != "PodScheduled") continue;
      condition["message"] = "a host has room, but no disk";
      condition["lastTransitionTime"] = base::FormatRfc3339(h.clock.WallNow());
    }
    h.cluster.PutObject(vm);
  });
  const Scaled out = ScaleMeasured(h, 1);
  EXPECT_FALSE(out.outcome.ok());
  EXPECT_THAT(out.outcome.ToString(), HasSubstr("no disk"));
  EXPECT_GE(out.lasted, seconds(60));
  EXPECT_LE(out.lasted, seconds(90));
  h.CheckAtRest(0);
}

// KubeVirt keeps the words of the first attempt, the pod has those of now. An agent asks for Status
// all the time, which reads no pods.
TEST(Creation, C3_a_vm_that_no_host_takes_is_broken_as_soon_while_status_is_asked_for) {
  Harness h;
  h.cluster.FailStart(1, "ErrorUnschedulable",
                      "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.");
  h.clock.After(seconds(2), [&h] {
    h.cluster.PutObject(
        simulator::UnscheduledPod("nomad", h.VmNames().at(0), "no host without one"));
  });
  for (int second = 1; second <= 120; ++second) {
    h.clock.After(seconds(second), [&h] { EXPECT_TRUE(h.Status().ok()); });
  }
  const Scaled out = ScaleMeasured(h, 1);
  EXPECT_THAT(out.outcome.ToString(), HasSubstr("its start fails: ErrorUnschedulable: no host"));
  EXPECT_LE(out.lasted, seconds(100));
}

std::int64_t JoinFailures(const Harness& h) {
  const auto back_off = harvester::ParseBackOff(AnnotationOf(h.Leases().at(0), Key("back-off")));
  if (!back_off.ok() || !back_off->contains("join")) return 0;
  return back_off->at("join").failures;
}

// Then the agent may call Scale.
TEST(Creation, C12_the_back_off_is_on_the_lease_before_the_broken_vm_is_deleted) {
  Harness h;
  h.policy["join_timeout"] = "2m";
  h.cluster.NeverJoin(1);
  std::int64_t failures = 0;
  h.OnEachRequest([&](const RequestInfo& request) {
    if (request.verb == "delete" && request.resource == "virtualmachines") {
      failures = JoinFailures(h);
    }
  });
  EXPECT_FALSE(h.Scale(1).ok());
  EXPECT_EQ(failures, 1) << h.Transcript();
  EXPECT_EQ(JoinFailures(h), 1);
}

TEST(Creation, C12_vms_of_an_action_that_fail_one_after_the_other_count_as_one_failure) {
  Harness h;
  h.policy["join_timeout"] = "2m";
  h.cluster.NeverJoin(2);
  EXPECT_TRUE(h.Accept(2).ok());
  ASSERT_TRUE(h.cluster.EditAnnotation(h.VmNames().at(0), Key("join-timeout"), "4m"));
  h.Tick(minutes(6));
  EXPECT_TRUE(h.VmNames().empty()) << h.Transcript();
  EXPECT_EQ(JoinFailures(h), 1) << h.Transcript();
}

// A process that runs as a Nomad allocation.
constexpr char kAllocation[] = "0d6b4f0e-0000-4000-8000-00000000a110";

absl::Status ScaleIn(Harness& h, Process& process, std::int64_t count) {
  const Invariants::Scale open(h.invariants, "web", count);
  absl::Status scaled = process.Scale(count, h.policy);
  for (int tick = 0; tick < 6; ++tick) {
    EXPECT_TRUE(process.Status(h.policy).ok());
    process.RunBackground();
    h.clock.Advance(seconds(10));
  }
  return scaled;
}

TEST(OwnNode, C7_an_allocation_of_another_cluster_holds_up_neither_growth_nor_removal) {
  Harness h;
  Process process(h.clock, h.cluster, 9, h.log, {.environment = {{"NOMAD_ALLOC_ID", kAllocation}}});
  EXPECT_TRUE(ScaleIn(h, process, 2).ok()) << h.Transcript();
  EXPECT_TRUE(ScaleIn(h, process, 1).ok()) << h.Transcript();
  h.CheckAtRest(1);
}

TEST(OwnNode, C7_a_denied_allocation_refuses_removal_and_not_growth) {
  Harness h;
  h.cluster.Refuse({.system = System::kNomad, .resource = "allocation"});
  Process process(h.clock, h.cluster, 9, h.log, {.environment = {{"NOMAD_ALLOC_ID", kAllocation}}});
  EXPECT_TRUE(ScaleIn(h, process, 2).ok()) << h.Transcript();
  EXPECT_THAT(h.log->Text(), HasSubstr(kAllocation)) << "one WARN";
  const absl::Status in = ScaleIn(h, process, 1);
  EXPECT_FALSE(in.ok());
  EXPECT_THAT(in.ToString(), HasSubstr(kAllocation));
  h.CheckAtRest(2);
}

TEST(OwnNode, C7_the_vm_on_which_the_autoscaler_runs_is_no_victim) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  const std::string own = h.VmNames()[0];
  simulator::JobSpec autoscaler;
  autoscaler.id = "autoscaler";
  autoscaler.node_name = own;
  h.cluster.RunJob(autoscaler);
  h.clock.Advance(seconds(5));
  ASSERT_EQ(h.cluster.Allocations().size(), 1U);
  const std::string allocation = base::GetString(h.cluster.Allocations()[0], "ID");
  ASSERT_TRUE(h.cluster.EditAnnotation(own, Key("delete-first"), "true"));
  Process process(h.clock, h.cluster, 9, h.log, {.environment = {{"NOMAD_ALLOC_ID", allocation}}});
  EXPECT_TRUE(ScaleIn(h, process, 1).ok()) << h.Transcript();
  EXPECT_EQ(h.VmNames(), std::vector<std::string>{own});
  h.CheckAtRest(1);
}

// A node without hints in the second pool must be read in full once, and not again because the
// first pool has never read it.
TEST(Rest, L7_two_pools_of_a_process_take_two_requests_for_each_status) {
  Harness h;
  scaling::StringMap batch = h.policy;
  batch["node_group_name"] = batch["node_class"] = "batch";
  h.cluster.AddForeignNode({.name = "metal-3", .node_class = "batch"});
  ASSERT_TRUE(h.Scale(1).ok());
  {
    const Invariants::Scale open(h.invariants, "batch", 1);
    ASSERT_TRUE(h.process().Scale(1, batch).ok());
  }
  const auto tick = [&] {
    ASSERT_TRUE(h.Status().ok());
    ASSERT_TRUE(h.process().Status(batch).ok());
    h.process().RunBackground();
    h.clock.Advance(seconds(10));
  };
  for (int i = 0; i < 6; ++i) tick();
  for (const json& vm : h.Vms()) {
    if (PoolOf(vm) != "batch") continue;
    ASSERT_TRUE(h.cluster.ReRegister(h.NodeOf(NameOf(vm)), [&](simulator::NodeSpec& node) {
      node.name = "client-of-" + NameOf(vm);
      node.attributes["unique.hostname"] = NameOf(vm);
    }));
  }
  for (int i = 0; i < 6; ++i) tick();
  h.cluster.ResetCounters();
  for (int i = 0; i < 10; ++i) tick();
  EXPECT_EQ(h.cluster.RequestCount(), 2 * 2 * 10)
      << testing::PrintToString(h.cluster.RequestCounts());
}

// Cancels a Scale that blocks its thread: nothing else could end it, because nothing else runs.
class Watchdog {
 public:
  explicit Watchdog(Process& process)
      : thread_([this, &process] {
          std::unique_lock lock(mutex_);
          if (!changed_.wait_for(lock, seconds(10), [this] { return ended_; })) {
            process.CancelScale();
          }
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::jthread thread_;
};

// Nomad keeps the ID and CreateIndex of a client that restarts with another host name.
TEST(Link, C6_a_client_that_registers_again_under_its_id_is_what_it_says_now) {
  Harness h;
  h.Reach(1);
  const std::string vm = h.VmNames().at(0);
  const std::string node = h.NodeOf(vm);
  const auto rename = [&](const std::string& name) {
    ASSERT_TRUE(h.cluster.ReRegister(node, [&](simulator::NodeSpec& spec) {
      spec.name = spec.attributes["unique.hostname"] = name;
    }));
    h.Tick(seconds(20));
  };
  rename("localhost");
  EXPECT_EQ(h.Status()->meta.at("harvester.lost"), "1");
  rename(vm);
  EXPECT_EQ(h.Status()->meta.at("harvester.lost"), "0") << h.Transcript();
  h.CheckAtRest(1);
}

// A scale-in from 2 to 1 whose process died when the drain had begun; the next one has seen it, and
// its resumption has not begun.
void LeaveToResume(Harness& h) {
  ASSERT_TRUE(h.Scale(2).ok());
  h.ScaleAndDieAt(1, "update", "drain");
  h.clock.Advance(seconds(30));
  h.Restart();
  ASSERT_TRUE(h.Status().ok());
}

TEST(Resumption, C11_one_that_waits_in_the_queue_does_not_hold_a_scale) {
  Harness h;
  ASSERT_NO_FATAL_FAILURE(LeaveToResume(h));
  // The resumption has not begun: all background threads are busy.
  const Watchdog watchdog(h.process());
  const Scaled out = ScaleMeasured(h, 2);
  EXPECT_TRUE(out.outcome.ok()) << out.outcome << "\n" << h.Transcript();
  EXPECT_LE(out.lasted, minutes(1));
  h.WaitUntilReady();
  h.CheckAtRest(2);
}

TEST(Resumption, C11_one_whose_lease_is_taken_deletes_nothing) {
  Harness h;
  ASSERT_NO_FATAL_FAILURE(LeaveToResume(h));
  h.cluster.ResetCounters();
  bool taken = false;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    const json lease = h.Leases().at(0);
    if (taken || request.resource != "nodes" || HolderOf(lease) != h.process().name()) {
      return Fault::None();
    }
    taken = true;
    h.cluster.PutObject(WithHolder(lease, "other", h.clock.WallNow()));
    h.clock.Advance(seconds(5));  // the renewal notices it
    return Fault::None();
  });
  h.process().RunBackground();
  ASSERT_TRUE(taken);
  EXPECT_EQ(h.cluster.RequestCount(System::kHarvester, "delete", "virtualmachines"), 0)
      << h.Transcript();
  h.cluster.SetFaultHook(nullptr);
  h.Tick(minutes(3));
  h.CheckAtRest(1);
}

TEST(Resumption, S5_a_node_to_purge_of_a_pool_without_vms_is_purged_once_a_policy_claims_it) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  const std::string node =
      support::AddNodeToPurge(h.cluster, {.name = "old-k2m4p", .node_class = "old"}, "nomad/old");
  h.Tick(minutes(2));  // the drain of a node without work is complete
  h.cluster.KillNode(node);
  h.Tick(minutes(3));
  EXPECT_FALSE(h.cluster.Node(node).is_null()) << h.Transcript();
  EXPECT_EQ(RequestsAtRest(h, minutes(5)), RestBudget(minutes(5), 0)) << "L7";
  h.policy["node_group_name"] = "old";
  h.policy["node_class"] = "old";
  h.Tick(minutes(3));
  EXPECT_TRUE(h.cluster.Node(node).is_null()) << h.Transcript();
}

TEST(Rest, I7_after_many_actions_a_status_costs_two_lists_and_nothing_else) {
  Harness h;
  for (const std::int64_t count : {3, 1, 4, 0, 2, 3, 1, 2}) {
    ASSERT_TRUE(h.Scale(count).ok()) << h.Transcript();
  }
  h.Tick(minutes(2));
  EXPECT_EQ(RequestsAtRest(h, minutes(10)), 2 * 60);
  h.CheckAtRest(2);
}

TEST(Reload, S4_the_last_event_survives_a_new_configuration) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  // A process that knows it from the Lease alone.
  h.Restart();
  h.Tick(minutes(1));
  const auto before = h.Status();
  ASSERT_TRUE(before.ok());
  ASSERT_TRUE(before->meta.contains("nomad_autoscaler.last_event"));
  h.process().Configure();
  EXPECT_EQ(h.Status()->meta, before->meta);
}

}  // namespace
}  // namespace nomad_harvester::scenario
