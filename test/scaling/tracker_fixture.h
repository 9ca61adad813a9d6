// SPDX-License-Identifier: Apache-2.0
// A tracker of action "act", and the looks that it is shown.
#ifndef NOMAD_HARVESTER_TEST_SCALING_TRACKER_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_SCALING_TRACKER_FIXTURE_H_

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "answers.h"
#include "rules/tracker.h"
#include "support/seeded_random.h"
#include "world.h"

namespace nomad_harvester::scaling {

inline ScalePlan ToRemove(const std::vector<std::string>& vms,
                          const std::vector<std::string>& reserve = {}) {
  ScalePlan plan{.direction = Direction::kIn};
  for (const std::string& vm : vms) plan.remove.push_back({vm, "node-" + vm, "newest"});
  for (const std::string& vm : reserve) plan.reserve.push_back({vm, "node-" + vm, "newest"});
  return plan;
}
inline ScalePlan ToCreate(const std::vector<std::string>& vms,
                          const std::vector<std::string>& back = {}) {
  ScalePlan plan{.direction = Direction::kOut, .cancel_removals = back};
  for (const std::string& vm : vms) plan.create.push_back({vm, "act"});
  return plan;
}

class TrackerTest : public testing::Test {
 protected:
  void Track(const ScalePlan& plan, bool until_accepted = false) {
    tracker_ = std::make_unique<Tracker>(
        Tracker::Options{.action_id = "act", .until_accepted = until_accepted, .logger = {}}, plan);
  }
  void TrackUntilAccepted(const ScalePlan& plan) { Track(plan, true); }

  // The world as the loop sees it: with what the backlog say about its VMs.
  const Decisions& Look(World world) {
    retries_.Apply(now_, &world.Raw());
    decisions_ = std::make_unique<Decisions>(world.Snapshot());
    return *decisions_;
  }
  void See(const World& world) { tracker_->Observe(Look(world), retries_, leftovers_, now_); }
  std::set<std::string> ToMark(const World& world) { return tracker_->ToMark(Look(world)); }
  bool EndedWith(const World& world) {
    See(world);
    return tracker_->Ended(*decisions_, retries_, now_);
  }
  // A minute of refusals of what is done to VM a.
  void RefuseForAMinute(StepKind kind, const std::string& message = "denied by policy") {
    const Retries::Key key(StepName(kind), "uid-a");
    retries_.Record(key, Refusal(message), now_);
    now_ += kRefusedForGood;
    retries_.Record(key, Refusal(message), now_);
  }

  const VmOutcome& PartOf(const std::string& vm) const { return tracker_->outcomes().at(vm); }
  OutcomeState StateOf(const std::string& vm) const { return PartOf(vm).state; }
  std::string ErrorOf(const std::string& vm) const { return base::Message(PartOf(vm).error); }
  RunSummary Summary() const {
    RunSummary run{.last = decisions_->snapshot()};
    tracker_->AddTo(&run);
    return run;
  }
  std::set<std::string> Failures() const { return Summary().failures; }

  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  Retries retries_{*random_};
  Leftovers leftovers_;
  base::MonoTime now_{std::chrono::hours(5)};
  std::unique_ptr<Tracker> tracker_;
  std::unique_ptr<Decisions> decisions_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_TEST_SCALING_TRACKER_FIXTURE_H_
