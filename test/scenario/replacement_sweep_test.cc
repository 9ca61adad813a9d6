// SPDX-License-Identifier: Apache-2.0
//
// A pool rolls to a new template, and is disturbed at every point of that (docs/behaviour.md, R1 to
// R8): the process is killed, a system is away, a second process works on the pool.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/runtime/random.h"

#include "chaos.h"
#include "harness.h"
#include "support/seeded_random.h"
#include "sweep.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

constexpr int kVms = 2;

class Roll;

// Which of the two VMs of a place is there first (max_surge, max_unavailable).
enum class First { kNew, kOldGoes };

using Disturb = std::function<Fault(Roll&, const RequestInfo&)>;

struct Size {
  int vms = kVms;
  int at_a_time = 1;
};

// Rolls a pool, while `disturb` decides about each request.
class Roll {
 public:
  Roll(First first, Disturb disturb, Size size = {})
      : count_(size.vms),
        least_(first == First::kNew ? size.vms : size.vms - size.at_a_time),
        disturb_(std::move(disturb)) {
    h.policy["replace_drifted"] = "rolling";
    h.policy["max_surge"] = first == First::kNew ? std::to_string(size.at_a_time) : "0";
    h.policy["max_unavailable"] = first == First::kNew ? "0" : std::to_string(size.at_a_time);
    h.policy["node_drain_deadline"] = "1m";
    h.policy["drain_grace"] = "20s";
    EXPECT_TRUE(h.Scale(count_).ok());
    h.RunJob(count_);
    h.Tick(minutes(11));
    for (const std::string& vm : h.VmNames()) old_.push_back(vm);
    h.policy["cpu_request"] = "4";
    h.cluster.SetFaultHook([this](const RequestInfo& request) { return disturb_(*this, request); });
  }

  // Ticks as an agent that wants that count, until no old VM is left.
  void Finish(int ticks = 360) {
    for (int i = 0; i < ticks && !IsRolled(); ++i) {
      if (dead_) {
        dead_ = false;
        h.Restart();
      }
      Tick();
      if (testing::Test::HasFatalFailure()) return;
    }
    h.cluster.SetFaultHook(nullptr);
    if (dead_) h.Restart();
    EXPECT_TRUE(IsRolled()) << h.Transcript();
    h.Converge(count_);
    h.CheckAtRest(count_);
  }
  void Tick() {
    const auto status = h.Status();
    if (status.ok() && !dead_) {
      ASSERT_EQ(status->count, count_) << h.Transcript();
      ASSERT_GE(Eligible(), least_) << h.Transcript();
    }
    if (!dead_) h.process().RunBackground();
    h.clock.Advance(seconds(10));
  }
  void Kill() {
    dead_ = true;
    h.process().Die();
  }
  // What ends the promise of eligible nodes, such as a Nomad that is away.
  int Eligible() const {
    int eligible = 0;
    for (const json& node : h.Nodes()) {
      const bool takes =
          node.at("Status") == "ready" && node.at("SchedulingEligibility") == "eligible";
      if (takes && IsOfPool(node)) ++eligible;
    }
    return eligible;
  }

  Harness h;

 private:
  bool IsOfPool(const json& node) const {
    for (const std::string& vm : h.VmNames()) {
      if (node.at("Name") == vm) return true;
    }
    return false;
  }
  bool IsRolled() const {
    for (const std::string& vm : h.VmNames()) {
      for (const std::string& old : old_) {
        if (vm == old) return false;
      }
    }
    return true;
  }

  const int count_;
  const int least_;  // eligible nodes
  Disturb disturb_;
  std::vector<std::string> old_;
  bool dead_ = false;
};

int MeasureRoll(First first) {
  std::optional<Points> points;
  Roll roll(first, [&](Roll& self, const RequestInfo& request) {
    if (!points.has_value()) points.emplace(self.h.process().name(), Points::Of::kEffects);
    points->Number(request);
    return Fault::None();
  });
  roll.Finish();
  return points->seen();
}

// `then` decides about that effect of the first process.
Disturb AtEffect(int effect, Disturb then) {
  return [effect, then = std::move(then), points = std::optional<Points>()](
             Roll& self, const RequestInfo& request) mutable {
    if (!points.has_value()) points.emplace(self.h.process().name(), Points::Of::kEffects);
    return points->Number(request) == effect ? then(self, request) : Fault::None();
  };
}

class ReplacementSweep : public testing::TestWithParam<First> {};
INSTANTIATE_TEST_SUITE_P(R1, ReplacementSweep, testing::Values(First::kNew));
INSTANTIATE_TEST_SUITE_P(R8, ReplacementSweep, testing::Values(First::kOldGoes));

TEST_P(ReplacementSweep, R1_a_kill_at_any_effect_costs_no_vm_and_counts_none_twice) {
  const int effects = MeasureRoll(GetParam());
  ASSERT_GT(effects, 10);
  for (const bool applied : {false, true}) {
    for (const int effect : Choose(effects, 12, applied ? 1 : 0)) {
      SCOPED_TRACE("killed " + std::string(applied ? "after" : "before") + " effect " +
                   std::to_string(effect));
      Roll roll(GetParam(), AtEffect(effect, [&](Roll& self, const RequestInfo&) {
                  self.Kill();
                  return applied ? Fault::ApplyThenDie() : Fault::Die();
                }));
      roll.Finish();
    }
  }
}

TEST_P(ReplacementSweep, R2_an_answer_that_is_lost_or_refused_once_costs_only_time) {
  const int effects = MeasureRoll(GetParam());
  const Fault faults[] = {Fault::DropReply(), Fault::Drop(), Fault::Answer(503, "busy"),
                          Fault::Answer(403, R"({"kind": "Status", "reason": "Forbidden"})")};
  int shift = 0;
  for (const Fault& fault : faults) {
    for (const int number : Choose(effects, 8, shift++)) {
      SCOPED_TRACE("fault " + std::to_string(shift) + " at effect " + std::to_string(number));
      Roll roll(GetParam(), AtEffect(number, [&](Roll&, const RequestInfo&) { return fault; }));
      roll.Finish();
    }
  }
}

TEST_P(ReplacementSweep, R2_an_outage_that_begins_at_any_effect_costs_only_time) {
  const int effects = MeasureRoll(GetParam());
  for (const System system : {System::kHarvester, System::kNomad}) {
    for (const int number : Choose(effects, 8, system == System::kNomad ? 1 : 0)) {
      SCOPED_TRACE(std::string(simulator::SystemName(system)) + " is away from effect " +
                   std::to_string(number));
      Roll roll(GetParam(), AtEffect(number, [&](Roll& self, const RequestInfo&) {
                  SetReachable(self.h, system, false);
                  self.h.clock.After(minutes(6),
                                     [&h = self.h, system] { SetReachable(h, system, true); });
                  return Fault::None();
                }));
      roll.h.policy["node_drain_deadline"] = "30m";  // else an old VM stays (R6)
      roll.Finish();
    }
  }
}

// The first process is frozen at an effect for minutes, in which another one takes over.
TEST_P(ReplacementSweep, C11_a_process_that_is_frozen_at_any_effect_replaces_nothing_twice) {
  const int effects = MeasureRoll(GetParam());
  for (const bool is_late : {false, true}) {
    for (const int number : Choose(effects, 8, is_late ? 1 : 0)) {
      SCOPED_TRACE("frozen at effect " + std::to_string(number) +
                   (is_late ? ", whose answer is late" : ""));
      bool is_met = false;
      Roll roll(GetParam(), AtEffect(number, [&](Roll& self, const RequestInfo&) {
                  is_met = true;
                  const auto others_turn = [&self] {
                    Process& first = self.h.process();
                    first.Freeze();
                    self.h.clock.Advance(minutes(1));
                    self.h.Start();
                    for (int i = 0; i < 12; ++i) self.Tick();
                    first.Thaw();
                  };
                  if (is_late) return Fault::BeforeReply(others_turn);
                  others_turn();
                  return Fault::None();
                }));
      roll.h.policy["node_drain_deadline"] = "30m";  // else an old VM stays (R6)
      roll.Finish();
      EXPECT_TRUE(is_met);
    }
  }
}

TEST_P(ReplacementSweep, R4_a_scale_at_any_moment_gets_its_count) {
  for (int second = 0; second < 120; second += IsFullSweep() ? 1 : 6) {
    for (const int count : {1, 3}) {
      SCOPED_TRACE("a Scale to " + std::to_string(count) + " after " + std::to_string(second) +
                   " s");
      Roll roll(GetParam(), [](Roll&, const RequestInfo&) { return Fault::None(); });
      roll.h.clock.Advance(seconds(10));
      ASSERT_TRUE(roll.h.Status().ok());
      roll.h.process().RunBackground();
      for (int i = 0; i < second; ++i) {
        roll.h.clock.Advance(seconds(1));
        ASSERT_TRUE(roll.h.Status().ok());
        roll.h.process().RunBackground();
      }
      roll.h.Scale(count).IgnoreError();
      roll.h.Converge(count);
      roll.h.CheckAtRest(count);
    }
  }
}

TEST_P(ReplacementSweep, R1_a_pool_of_a_hundred_rolls_while_requests_fail_and_the_process_dies) {
  const std::unique_ptr<runtime::Random> random = support::MakeSeededRandom(7);
  Dice dice(*random);
  Roll* rolling = nullptr;
  Roll roll(GetParam(),
            [&](Roll& self, const RequestInfo& request) {
              if (rolling == nullptr || request.client != self.h.process().name())
                return Fault::None();
              if (request.has_effect && dice.Percent(0.5)) {
                self.Kill();
                return dice.Percent(50) ? Fault::ApplyThenDie() : Fault::Die();
              }
              return dice.Percent(5) ? MakeFault(dice, self.h.clock, request) : Fault::None();
            },
            {.vms = 100, .at_a_time = 5});
  roll.h.policy["node_drain_deadline"] = "30m";  // else an old VM stays (R6)
  roll.h.invariants.ExpectLateRequests();
  rolling = &roll;
  roll.Finish(2000);
}

}  // namespace
}  // namespace nomad_harvester::scenario
