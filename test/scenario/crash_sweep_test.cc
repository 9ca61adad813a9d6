// SPDX-License-Identifier: Apache-2.0
//
// The process is killed at every request that has an effect, once before it is applied and once
// after, when the reply is lost. A new process then gets only Status calls, as from the agent, and
// the pool must converge.

#include <algorithm>
#include <optional>
#include <string_view>

#include "operator.h"
#include "sweep.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

void KillAt(const Scenario& scenario, int effect, bool applied) {
  SCOPED_TRACE("killed at effect " + std::to_string(effect) +
               (applied ? ", applied" : ", not applied"));
  Harness h;
  KillAtEffect(scenario, effect, applied, h);
  ComeToRest(scenario, h);
}

class CrashSweep : public Sweep {};

TEST_P(CrashSweep, C10_the_pool_converges_after_a_kill_at_any_effect) {
  const Scenario& scenario = GetParam();
  const int effects = Measure(scenario, Points::Of::kEffects);
  std::size_t visited = 0;
  for (const bool applied : {false, true}) {
    for (const int effect : Choose(effects, 1, applied ? 1 : 0)) {
      KillAt(scenario, effect, applied);
      ++visited;
      if (HasFailure()) return;
    }
  }
  ReportVisits("crash", scenario, visited, 2 * effects);
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(CrashSweep);
NOMAD_HARVESTER_INSTANTIATE_RARE_SWEEP(CrashSweep);

constexpr int kAdopted = 3;
constexpr char kAdopter[] = "adopter";

// The clients of a Nomad that was rebuilt register again: before the adoption, while it goes on, or
// never, because they ask other servers.
enum class Clients { kBack, kReturning, kAway };

std::string_view TitleOf(Clients clients) {
  static constexpr std::string_view kNames[] = {"back", "returning", "away"};
  return kNames[static_cast<std::size_t>(clients)];
}

// It has another key and a low index, and knows nothing but the clients that register.
void RebuildNomad(Harness& h, Clients clients) {
  ASSERT_TRUE(h.Scale(kAdopted).ok());
  h.cluster.RestoreNomad(/*agents_return=*/clients != Clients::kAway);
  h.cluster.SetNomadKeys({"rebuilt"});
  if (clients != Clients::kReturning) h.clock.Advance(seconds(10));
}

// Kills the adoption at a request, 0: at none; returns how many there were until then.
int KillAdoption(Harness& h, int request, bool applied) {
  Operator person(h, kAdopter);
  Points points(kAdopter, Points::Of::kRequests);
  h.cluster.SetFaultHook([&](const RequestInfo& info) {
    if (points.Number(info) != request || request == 0) return Fault::None();
    return applied ? Fault::ApplyThenDie() : Fault::Die();
  });
  EXPECT_EQ(person.Adopt().ok(), request == 0) << h.Transcript();
  h.cluster.SetFaultHook(nullptr);
  h.clock.Advance(seconds(10));
  h.bystanders.NomadWasRestored();
  return points.seen();
}

// The VMs that have the record of the rebuilt Nomad.
std::int64_t CountAdopted(const Harness& h) {
  const auto vms = h.Vms();
  return std::count_if(vms.begin(), vms.end(), [](const json& vm) {
    return AnnotationOf(vm, Key("nomad-cluster")) == "rebuilt";
  });
}

// The agent of a pool that is adopted in part; with `wanted`, it asks for so many VMs whenever the
// pool is ready.
void RemoveNothing(Harness& h, const std::optional<std::int64_t>& wanted) {
  const std::vector<std::string> vms = h.VmNames();
  const std::int64_t adopted = CountAdopted(h);
  // Less than a mass loss lasts.
  for (int tick = 0; tick < 50; ++tick) {
    const auto status = h.Status();
    ASSERT_TRUE(status.ok()) << status.status();
    h.process().RunBackground();
    if (status->ready && wanted.has_value()) h.Scale(*wanted).IgnoreError();
    h.clock.Advance(seconds(10));
  }
  EXPECT_EQ(h.VmNames(), vms) << h.Transcript();
  EXPECT_EQ(CountAdopted(h), adopted) << "the agent adopts nothing";
  for (const json& vm : h.Vms()) EXPECT_FALSE(IsMarked(vm)) << NameOf(vm);
}

void AdoptAgainAfterAKillAt(int request, bool applied, Clients clients) {
  SCOPED_TRACE("killed at request " + std::to_string(request) +
               (applied ? ", applied" : ", not applied") + "; the clients are " +
               std::string(TitleOf(clients)));
  Harness h;
  RebuildNomad(h, clients);
  KillAdoption(h, request, applied);
  h.RunJob(kAdopted);
  h.Restart();
  // A VM with a node may be removed, once it is drained.
  RemoveNothing(h, clients == Clients::kAway ? std::optional(kAdopted - 1) : std::nullopt);
  EXPECT_TRUE(Operator(h).Adopt().ok());
  EXPECT_EQ(CountAdopted(h), kAdopted);
  if (clients == Clients::kAway) return;
  h.Converge(kAdopted);
  h.CheckAtRest(kAdopted);
  h.Converge(1);
  h.CheckAtRest(1);
}

TEST(AdoptionCrash, C15_an_adoption_that_was_killed_removes_nothing_and_is_repeated) {
  for (const Clients clients : {Clients::kBack, Clients::kReturning, Clients::kAway}) {
    Harness h;
    RebuildNomad(h, clients);
    const int requests = KillAdoption(h, /*request=*/0, false);
    ASSERT_GE(requests, kAdopted);
    for (const bool applied : {false, true}) {
      for (int request = 1; request <= requests; ++request) {
        AdoptAgainAfterAKillAt(request, applied, clients);
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace nomad_harvester::scenario
