// SPDX-License-Identifier: Apache-2.0
//
// Two processes of the plugin on one pool: two agents in a hand-over, or a process that was stopped
// and continues after another one has taken over. The pool's Lease separates them (C11); requests
// that a stopped process still has under way must be refused or do no harm.

#include <string_view>

#include "sweep.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

std::string LeaseHolder(const Harness& h) {
  const auto leases = h.Leases();
  return leases.empty() ? "" : HolderOf(leases.front());
}

bool IsRelease(const RequestInfo& request) {
  return request.resource == "leases" &&
         request.body.find(R"("holderIdentity":"")") != std::string::npos;
}

// What an agent would do in two minutes, regardless of the result.
void WorkAsAgent(Harness& h, std::int64_t count) {
  for (int tick = 0; tick < 12; ++tick) {
    const auto status = h.Status();
    ASSERT_TRUE(status.ok()) << status.status();
    h.process().RunBackground();
    if (status->ready && status->count == count && tick > 0) return;
    if (status->ready && status->count != count) h.Accept(count).IgnoreError();
    h.clock.Advance(seconds(10));
  }
}

// The other process is alive: while the first one holds the Lease, it cannot acquire it.
void Interfere(const Scenario& scenario, int effect) {
  SCOPED_TRACE("another process at effect " + std::to_string(effect));
  Harness h;
  scenario.prepare(h);
  Process& first = h.process();
  Points points(first.name(), Points::Of::kEffects);
  bool met = false;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (met || points.Number(request) != effect) return Fault::None();
    met = true;
    const bool held = LeaseHolder(h) == first.name() && !IsRelease(request);
    h.Start();
    EXPECT_TRUE(h.Status().ok());
    h.process().RunBackground();
    const absl::Status scaled = h.Accept(scenario.count);
    EXPECT_TRUE(!held || absl::IsAborted(scaled)) << "C11: " << scaled;
    return Fault::None();
  });
  h.Scale(scenario.count).IgnoreError();
  EXPECT_TRUE(met);
  h.cluster.SetFaultHook(nullptr);
  ComeToRest(scenario, h);
}

enum class Pending {
  kNotSent,    // stopped before it was sent: expired when the process continues
  kLate,       // it was sent, and arrives when the process continues
  kReplyLate,  // it arrived in time; the process gets the reply when it continues
};

std::string_view NameOf(Pending pending) {
  static constexpr std::string_view kNames[] = {"not sent", "late", "its reply late"};
  return kNames[static_cast<std::size_t>(pending)];
}

// The first process is frozen at a request for more than a minute. Another one acquires the Lease
// and works; then the first one continues.
void FreezeAt(const Scenario& scenario, int point, Points::Of of, Pending pending,
              base::Duration skew = {}) {
  SCOPED_TRACE(std::string("stopped at ") + (of == Points::Of::kEffects ? "effect " : "request ") +
               std::to_string(point) + ", " + std::string(NameOf(pending)));
  Harness h;
  scenario.prepare(h);
  if (pending == Pending::kLate) h.invariants.ExpectLateRequests();
  Process& first = h.process();
  first.SkewWallClock(skew);
  Points points(first.name(), of);
  bool met = false;
  const auto others_turn = [&] {
    first.Freeze();
    h.clock.Advance(minutes(1));
    h.Start();
    h.process().SkewWallClock(-skew);
    WorkAsAgent(h, scenario.count);
    first.Thaw();
  };
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (met || points.Number(request) != point) return Fault::None();
    met = true;
    if (pending == Pending::kReplyLate) return Fault::BeforeReply(others_turn);
    others_turn();
    return pending == Pending::kLate ? Fault::DropReply() : Fault::None();
  });
  h.Scale(scenario.count).IgnoreError();
  EXPECT_TRUE(met);
  h.cluster.SetFaultHook(nullptr);
  // Its agent goes on, too: only the process that sent a late request knows of a Secret that landed
  // after everything had been cleaned up.
  EXPECT_TRUE(first.Status(h.policy).ok());
  first.RunBackground();
  // A VM whose creation arrives late has its own join timeout.
  const Budget& budget = pending == Pending::kLate ? kBackOffBudget : kRestBudget;
  ComeToRest(scenario, h, budget);
  // The first process makes the last call.
  EXPECT_TRUE(first.Status(h.policy).ok());
  first.RunBackground();
  h.Converge(scenario.count, budget);
  h.CheckAtRest(scenario.count);
}

// An operator deletes the Lease, or sets a holder that never renews it.
void LoseLeaseAt(const Scenario& scenario, int effect, bool deleted) {
  SCOPED_TRACE(std::string("Lease ") + (deleted ? "deleted" : "taken") + " at effect " +
               std::to_string(effect));
  Harness h;
  scenario.prepare(h);
  Points points(h.process().name(), Points::Of::kEffects);
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (points.Number(request) != effect) return Fault::None();
    for (json& lease : h.Leases()) {
      if (deleted) {
        h.cluster.DeleteObject(lease);
      } else {
        h.cluster.PutObject(WithHolder(lease, "somebody", h.clock.WallNow()));
      }
    }
    return Fault::None();
  });
  // With the Lease goes what it records as failed.
  h.Accept(scenario.count).IgnoreError();
  h.Settle();
  h.cluster.SetFaultHook(nullptr);
  ComeToRest(scenario, h);
}

class TwoProcesses : public Sweep {};

TEST_P(TwoProcesses, C11_a_second_one_does_not_act_while_the_first_one_works) {
  const Scenario& scenario = GetParam();
  const int effects = Measure(scenario, Points::Of::kEffects);
  const std::vector<int> chosen = Choose(effects, 1);
  for (const int effect : chosen) {
    Interfere(scenario, effect);
    if (HasFailure()) return;
  }
  ReportVisits("another process", scenario, chosen.size(), effects);
}

TEST_P(TwoProcesses, C10_a_stopped_one_that_continues_later_does_no_harm) {
  const Scenario& scenario = GetParam();
  const int effects = Measure(scenario, Points::Of::kEffects);
  std::size_t visited = 0;
  for (const Pending pending : {Pending::kNotSent, Pending::kLate}) {
    for (const int effect : Choose(effects, 1, static_cast<int>(pending))) {
      FreezeAt(scenario, effect, Points::Of::kEffects, pending);
      ++visited;
      if (HasFailure()) return;
    }
  }
  ReportVisits("stopped process", scenario, visited, 2 * effects);
}

TEST_P(TwoProcesses, C10_a_stopped_one_does_not_act_on_old_observations) {
  const Scenario& scenario = GetParam();
  const int requests = Measure(scenario, Points::Of::kRequests);
  const std::vector<int> chosen = Choose(requests, 1);
  bool ahead = false;
  for (const int request : chosen) {
    ahead = !ahead;
    FreezeAt(scenario, request, Points::Of::kRequests, Pending::kReplyLate,
             ahead ? minutes(7) : minutes(-7));
    if (HasFailure()) return;
  }
  ReportVisits("stale process, clocks apart", scenario, chosen.size(), requests);
}

TEST_P(TwoProcesses, I5_an_operator_who_deletes_or_takes_the_lease_causes_no_leftovers) {
  const Scenario& scenario = GetParam();
  const int effects = Measure(scenario, Points::Of::kEffects);
  std::size_t visited = 0;
  for (const bool deleted : {false, true}) {
    for (const int effect : Choose(effects, 1, deleted ? 1 : 2)) {
      LoseLeaseAt(scenario, effect, deleted);
      ++visited;
      if (HasFailure()) return;
    }
  }
  ReportVisits("Lease by hand", scenario, visited, 2 * effects);
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(TwoProcesses);

// The VM appears after another process has taken over, is observed by Status only, and an operator
// deletes it: the next Scale must not create another VM of that name.
TEST(LateCreation, C10_a_name_whose_vm_was_observed_is_never_used_again) {
  Harness h;
  h.policy["on_join_timeout"] = "keep";
  h.policy["join_timeout"] = "1h";
  h.cluster.NeverJoin(1);
  h.invariants.ExpectLateRequests();
  Process& first = h.process();
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.client != first.name() || request.resource != "virtualmachines" ||
        request.verb != "create") {
      return Fault::None();
    }
    first.Freeze();
    h.clock.Advance(minutes(1));
    h.Start();
    h.Tick(minutes(1));
    return Fault::ApplyThenDie();
  });
  EXPECT_FALSE(h.Scale(1).ok());
  h.cluster.SetFaultHook(nullptr);
  ASSERT_EQ(h.VmNames().size(), 1U);
  const std::string late = h.VmNames().front();
  h.Tick(minutes(1));
  ASSERT_TRUE(h.cluster.DeleteVmByHand(late));
  h.Converge(1);
  EXPECT_NE(h.VmNames().front(), late) << h.Transcript();
  h.CheckAtRest(1);
}

}  // namespace
}  // namespace nomad_harvester::scenario
