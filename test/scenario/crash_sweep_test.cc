// The process is killed at every request that has an effect, once before it is applied and once
// after, when the reply is lost. A new process then has nothing but Status, as under the agent, and
// everything must come right.

#include <cstdio>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "harness.h"

namespace nomad_harvester::scenario {
namespace {

struct Scenario {
  std::string name;
  std::function<void(Harness&)> prepare;
  std::int64_t count = 0;
};

// The effects of the undisturbed action.
int CountEffects(const Scenario& scenario) {
  Harness h;
  scenario.prepare(h);
  h.cluster.ResetCounters();
  const absl::Status scaled = h.Scale(scenario.count);
  EXPECT_TRUE(scaled.ok()) << scaled << "\n" << h.Story();
  return h.cluster.EffectCount();
}

void KillAt(const Scenario& scenario, int effect, bool applied) {
  SCOPED_TRACE(scenario.name + ": killed at effect " + std::to_string(effect) +
               (applied ? ", applied" : ", not applied"));
  Harness h;
  scenario.prepare(h);
  h.cluster.ResetCounters();
  bool killed = false;
  h.cluster.SetFaultHook([&](const simulator::RequestInfo& request) {
    if (killed || request.effect_sequence != effect) return simulator::Fault::None();
    killed = true;
    h.process().Die();
    return applied ? simulator::Fault::ApplyThenDie() : simulator::Fault::Die();
  });
  const absl::Status scaled = h.Scale(scenario.count);
  EXPECT_TRUE(killed) << scaled;
  h.cluster.SetFaultHook(nullptr);
  h.Restart();
  h.Converge(scenario.count);
  h.CheckAtRest(scenario.count);
}

void Sweep(const Scenario& scenario) {
  const int effects = CountEffects(scenario);
  ASSERT_GT(effects, 0) << "a sweep that visits nothing proves nothing";
  for (int effect = 1; effect <= effects; ++effect) {
    for (const bool applied : {false, true}) {
      KillAt(scenario, effect, applied);
      if (::testing::Test::HasFailure()) return;
    }
  }
  std::printf("[ visited  ] %d points of \"%s\"\n", 2 * effects, scenario.name.c_str());
}

void RunJob(Harness& h, int count) {
  simulator::JobSpec job;
  job.id = "api";
  job.count = count;
  h.cluster.RunJob(job);
  h.clock.Advance(std::chrono::seconds(5));
}

TEST(CrashSweep, C10_out_from_nothing_to_three) {
  Sweep({.name = "out 0 → 3", .prepare = [](Harness&) {}, .count = 3});
}

TEST(CrashSweep, C10_in_from_three_to_one_with_running_jobs) {
  Sweep({.name = "in 3 → 1 with running jobs",
         .prepare =
             [](Harness& h) {
               ASSERT_TRUE(h.Scale(3).ok());
               RunJob(h, 3);
             },
         .count = 1});
}

TEST(CrashSweep, C10_taking_two_marked_vms_back) {
  Sweep({.name = "take back 2",
         .prepare =
             [](Harness& h) {
               ASSERT_TRUE(h.Scale(2).ok());
               RunJob(h, 2);
               for (const std::string& vm : h.VmNames()) h.cluster.HangDrain(h.NodeOf(vm));
               h.policy["scale_in_wait"] = "false";
               // Resumption may come first: then it is the deadline that brings the VMs back.
               h.policy["force_after_deadline"] = "false";
               ASSERT_TRUE(h.Scale(0).ok());
             },
         .count = 2});
}

}  // namespace
}  // namespace nomad_harvester::scenario
