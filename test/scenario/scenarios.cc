// SPDX-License-Identifier: Apache-2.0
#include "scenarios.h"

#include <map>

#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"

#include "support/client_behaviours.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

void Reach(Harness& h, std::int64_t count) {
  const absl::Status scaled = h.Scale(count);
  ASSERT_TRUE(scaled.ok()) << scaled << "\n" << h.Transcript();
}

// Drains end within a minute or two, so that a sweep that waits for them stays short.
void ShortenDrains(Harness& h) {
  h.policy["node_drain_deadline"] = "1m";
  h.policy["drain_grace"] = "20s";
}

void OneStartFails(Harness& h) { h.cluster.FailStart(1, "ErrorUnschedulable", "no host has room"); }

void FiveWithWork(Harness& h) {
  Reach(h, 5);
  h.RunJob(5);
}

void DrainsThatAnOperatorCancels(Harness& h) {
  Reach(h, 2);
  h.RunJob(2);
  ShortenDrains(h);
  const std::string node = h.NodeOf(h.VmNames()[0]);
  h.cluster.HangDrain(node);
  h.clock.After(seconds(12), [&h, node] {
    h.cluster.CancelDrain(node, true);
    h.cluster.HangDrain(node, false);
  });
}

// Scales in with drains that do not end before the deadline; the scenario's Scale then cancels the
// removals.
void MarkedVms(Harness& h) {
  Reach(h, 2);
  h.RunJob(2);
  ShortenDrains(h);
  for (const std::string& vm : h.VmNames()) h.cluster.HangDrain(h.NodeOf(vm));
  h.policy["force_after_deadline"] = "false";
  ASSERT_TRUE(h.Accept(0).ok());
}

// Scales in; the drains have ended, but tasks that clean up still run.
void DrainedVms(Harness& h) {
  Reach(h, 2);
  simulator::JobSpec job;
  job.id = "api";
  job.count = 2;
  job.poststop = minutes(30);
  h.cluster.RunJob(job);
  h.clock.Advance(seconds(5));
  ShortenDrains(h);
  h.policy["force_after_deadline"] = "false";
  ASSERT_TRUE(h.Accept(0).ok());
  h.clock.Advance(seconds(20));
}

void DrainsThatAreForced(Harness& h) {
  Reach(h, 2);
  simulator::JobSpec job;
  job.id = "stubborn";
  job.count = 2;
  job.never_stops = true;
  h.cluster.RunJob(job);
  h.clock.Advance(seconds(5));
  ShortenDrains(h);
}

void OneNeverJoins(Harness& h) {
  h.policy["join_timeout"] = "2m";
  h.cluster.NeverJoin(1);
}

void OneNeverJoinsAndStays(Harness& h) {
  OneNeverJoins(h);
  h.policy["on_join_timeout"] = "keep";
}

void DeleteBrokenVms(Harness& h) {
  for (const json& vm : h.Vms()) {
    if (h.cluster.NodeIdOfVm(UidOf(vm)).empty()) h.cluster.DeleteVmByHand(NameOf(vm));
  }
}

// A broken VM that is kept blocks the pool's growth until an operator deletes it.
void FindAndDeleteKeptVm(Harness& h) {
  h.Tick(seconds(30));
  if (h.Vms().empty()) {
    EXPECT_FALSE(h.Scale(2).ok()) << "the first VM never joins";
  }
  h.Tick(minutes(3));
  DeleteBrokenVms(h);
}

void JustScaledIn(Harness& h) {
  Reach(h, 3);
  h.RunJob(3);
  Reach(h, 1);
}

// Two VMs from before the change, one from after it.
void OtherIdentity(Harness& h) {
  Reach(h, 2);
  h.policy["node_class"] = "web-large";
  Reach(h, 3);
  h.RunJob(3);
}

// A copy with labels and annotations of its original, and one restored from a backup that was taken
// while it was marked.
void Copies(Harness& h) {
  Reach(h, 3);
  h.RunJob(3);
  const std::vector<std::string> names = h.VmNames();
  h.cluster.CloneVm(names[0], "web-clone");
  h.cluster.CloneVm(names[1], "web-restored");
  const json mark = {{"action", "a-of-old"},
                     {"reason", "scale-in"},
                     {"vm_uid", "uid-of-old"},
                     {"node_id", h.NodeOf(names[1])},
                     {"marked_at", "2025-12-31T00:00:00Z"},
                     {"drain_deadline", "now"},
                     {"grace", "1m"},
                     {"force", true},
                     {"ignore_system", false},
                     {"purge", true},
                     {"nodes", json::object()}};
  h.cluster.EditAnnotation("web-restored", kMarkKey, base::DumpJson(mark));
  h.clock.Advance(seconds(20));
}

// One of three is dead, and will soon have been so for long enough.
void OneIsDead(Harness& h) {
  Reach(h, 3);
  h.policy["replace_unhealthy_after"] = "1m";
  ASSERT_TRUE(h.cluster.StopVm(h.VmNames()[0]));
  h.Tick(seconds(60));
}

// As an operator does who knows that new clients start ineligible.
void EnableNewClients(Harness& h) {
  h.clock.After(seconds(60), [&h] {
    for (const std::string& vm : h.VmNames()) {
      const std::string id = h.NodeOf(vm);
      const json node = h.cluster.Node(id);
      if (node.is_object() && LastDrainStatus(node).empty()) h.cluster.SetEligible(id, true);
    }
    EnableNewClients(h);
  });
}

// Each is ready about a minute after it registered: one is initializing until then, one has its
// driver late, one starts ineligible.
void ClientsThatComeLate(Harness& h) {
  h.RequireDocker();
  h.policy["join_timeout"] = "3m";
  h.cluster.SetNextClients(1, support::InitializingFor(seconds(40)));
  h.cluster.SetNextClients(1, support::DockerAfter(seconds(50)));
  h.cluster.SetNextClients(1, support::StartsIneligible());
  EnableNewClients(h);
}

void OneStaysInitializing(Harness& h) {
  h.policy["join_timeout"] = "2m";
  h.cluster.SetNextClients(1, support::NeverReady());
}

// Nomad calls its node ready, so that it is drained before the VM is removed.
void OneNeverGetsItsDriver(Harness& h) {
  h.RequireDocker();
  h.policy["join_timeout"] = "2m";
  h.cluster.SetNextClients(1, support::NeverDocker());
}

void OneIsNeverEnabled(Harness& h) {
  h.policy["join_timeout"] = "2m";
  h.cluster.SetNextClients(1, support::StartsIneligible());
}

// One of three has fallen back to initializing, and holds up its pool no longer.
void OneFellBack(Harness& h) {
  h.cluster.SetNextClients(1, support::FallsBackAfter(minutes(1)));
  Reach(h, 3);
  h.RunJob(3);
  h.Tick(minutes(7));
}

// The same, and it will soon have been so for long enough.
void OneFellBackForGood(Harness& h) {
  h.policy["replace_unhealthy_after"] = "1m";
  h.cluster.SetNextClients(1, support::FallsBackAfter(seconds(20)));
  Reach(h, 3);
  h.Tick(seconds(60));
}

// Three VMs of which no host is published yet, which the Scale's passes do beside its work.
void UnpublishedHosts(Harness& h) {
  h.policy["publish_host"] = "true";
  Reach(h, 3);
  h.RunJob(3);
}

// Scales in to one; the drain of the other does not end before its deadline. Returns that VM.
std::string MarkOne(Harness& h) {
  ShortenDrains(h);
  return h.LeaveOneDraining();
}

// The VM's guest is paused, and its node has been down for longer than that of one that runs may
// be.
void Pause(Harness& h, const std::string& vm) {
  h.cluster.PauseVm(vm);
  h.Tick(minutes(3));
}

void OneIsPaused(Harness& h) {
  Reach(h, 3);
  h.RunJob(3);
  Pause(h, h.VmNames()[0]);
}

// Its drain ends only by its deadline, and what ran there is lost.
void OneIsPausedWhileItDrains(Harness& h) {
  const std::string vm = MarkOne(h);
  h.cluster.PauseVm(vm);
  h.clock.Advance(seconds(15));
}

// Harvester restored a VM that was marked and drained, with its annotations: mark and drain name
// the one that it was.
void OneWasRestored(Harness& h) {
  const std::string vm = MarkOne(h);
  json mark = MarkOf(h.cluster.Vm(vm));
  mark["vm_uid"] = "uid-of-old";
  h.cluster.EditAnnotation(vm, kMarkKey, base::DumpJson(mark));
  auto meta = h.cluster.Node(vm)["LastDrain"]["Meta"].get<std::map<std::string, std::string>>();
  meta["vm_uid"] = "uid-of-old";
  h.cluster.OperatorDrain(vm, minutes(1), meta);
}

// The same, and its drain has ended meanwhile.
void OneWasRestoredAfterItsDrain(Harness& h) {
  OneWasRestored(h);
  h.HangDrains(false);
  h.clock.Advance(seconds(20));
}

std::vector<Scenario> MakeRareScenarios() {
  return {
      {.name = "in_beside_a_paused_guest", .prepare = OneIsPaused, .count = 1},
      {.name = "in_a_marked_guest_is_paused", .prepare = OneIsPausedWhileItDrains, .count = 0},
      {.name = "out_one_was_restored", .prepare = OneWasRestored, .count = 3},
      {.name = "in_one_was_restored", .prepare = OneWasRestoredAfterItsDrain, .count = 1},
  };
}

std::vector<Scenario> MakeScenarios() {
  return {
      {.name = "out_0_to_5", .prepare = [](Harness&) {}, .count = 5},
      {.name = "out_one_start_fails", .prepare = OneStartFails, .count = 3, .succeeds = false},
      {.name = "in_5_to_2_with_work", .prepare = FiveWithWork, .count = 2},
      {.name = "in_drain_cancelled_by_operator",
       .prepare = DrainsThatAnOperatorCancels,
       .count = 0,
       .succeeds = false},
      {.name = "in_deadline_passes", .prepare = DrainsThatAreForced, .count = 1},
      {.name = "in_without_purge",
       .prepare =
           [](Harness& h) {
             h.policy["node_purge"] = "false";
             Reach(h, 2);
             h.RunJob(2);
           },
       .count = 0},
      {.name = "cancel_removals", .prepare = MarkedVms, .count = 2},
      {.name = "cancel_a_removal_and_grow", .prepare = MarkedVms, .count = 3},
      {.name = "cancel_drained_removals", .prepare = DrainedVms, .count = 2},
      {.name = "out_one_never_joins", .prepare = OneNeverJoins, .count = 2, .succeeds = false},
      {.name = "out_one_never_joins_and_stays",
       .prepare = OneNeverJoinsAndStays,
       .count = 2,
       .succeeds = false,
       .resolve = FindAndDeleteKeptVm},
      {.name = "out_right_after_in", .prepare = JustScaledIn, .count = 3},
      {.name = "in_other_identity", .prepare = OtherIdentity, .count = 1},
      {.name = "in_beside_copies", .prepare = Copies, .count = 1},
      {.name = "in_while_hosts_are_published", .prepare = UnpublishedHosts, .count = 1},
      {.name = "out_one_is_dead", .prepare = OneIsDead, .count = 4},
      {.name = "out_clients_come_late", .prepare = ClientsThatComeLate, .count = 3},
      {.name = "out_one_stays_initializing",
       .prepare = OneStaysInitializing,
       .count = 2,
       .succeeds = false},
      {.name = "out_one_never_gets_its_driver",
       .prepare = OneNeverGetsItsDriver,
       .count = 2,
       .succeeds = false},
      {.name = "out_one_is_never_enabled",
       .prepare = OneIsNeverEnabled,
       .count = 2,
       .succeeds = false},
      {.name = "in_one_fell_back", .prepare = OneFellBack, .count = 1},
      {.name = "out_one_fell_back_for_good", .prepare = OneFellBackForGood, .count = 4},
  };
}

}  // namespace

const std::vector<Scenario>& Scenarios() {
  static const std::vector<Scenario> kScenarios = MakeScenarios();
  return kScenarios;
}

const std::vector<Scenario>& RareScenarios() {
  static const std::vector<Scenario> kScenarios = MakeRareScenarios();
  return kScenarios;
}

}  // namespace nomad_harvester::scenario
