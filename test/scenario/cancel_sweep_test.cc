// SPDX-License-Identifier: Apache-2.0
//
// The client of a Scale disconnects: the call ends immediately, and nothing more happens until the
// next Status continues its work (C16).

#include <optional>

#include "sweep.h"

namespace nomad_harvester::scenario {
namespace {

enum class Moment {
  kBefore,  // the request is not sent any more
  kAfter,   // it takes effect, and its reply is lost
};

void CancelAt(const Scenario& scenario, int point, Points::Of of, Moment moment) {
  SCOPED_TRACE(std::string("cancelled ") + (moment == Moment::kBefore ? "before " : "after ") +
               (of == Points::Of::kEffects ? "effect " : "request ") + std::to_string(point));
  Harness h;
  scenario.prepare(h);
  Points points(h.process().name(), of);
  std::optional<base::MonoTime> cancelled;
  int effects = 0;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (cancelled.has_value() || points.Number(request) != point) return Fault::None();
    cancelled = h.clock.Now();
    effects = h.cluster.EffectCount();
    h.process().CancelScale();
    return moment == Moment::kAfter ? Fault::DropReply() : Fault::None();
  });
  h.Accept(scenario.count).IgnoreError();
  h.cluster.SetFaultHook(nullptr);
  ASSERT_TRUE(cancelled.has_value());
  EXPECT_LE(h.clock.Now() - *cancelled, std::chrono::milliseconds(1)) << "it did not end at once";
  h.clock.Advance(seconds(60));
  EXPECT_EQ(h.cluster.EffectCount(), effects) << "an effect after the end\n" << h.Transcript();
  ComeToRest(scenario, h);
}

// The number of points of the call alone, without the background's.
int PointsOfCall(const Scenario& scenario, Points::Of of) {
  Harness h;
  scenario.prepare(h);
  Points points(h.process().name(), of);
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    points.Number(request);
    return Fault::None();
  });
  EXPECT_TRUE(h.Accept(scenario.count).ok());
  h.cluster.SetFaultHook(nullptr);
  return points.seen();
}

class CancelSweep : public Sweep {};

TEST_P(CancelSweep, C16_a_cancelled_call_ends_at_once_and_without_any_further_effect) {
  const Scenario& scenario = GetParam();
  std::size_t visited = 0;
  // The last effect releases the Lease: the call has its outcome already.
  const int effects = PointsOfCall(scenario, Points::Of::kEffects) - 1;
  for (const Moment moment : {Moment::kBefore, Moment::kAfter}) {
    for (const int effect : Choose(effects, 1, static_cast<int>(moment))) {
      CancelAt(scenario, effect, Points::Of::kEffects, moment);
      ++visited;
      if (HasFailure()) return;
    }
  }
  const int requests = PointsOfCall(scenario, Points::Of::kRequests) - 1;
  for (const int request : Choose(requests, 1)) {
    CancelAt(scenario, request, Points::Of::kRequests, Moment::kBefore);
    ++visited;
    if (HasFailure()) return;
  }
  ReportVisits("cancel", scenario, visited, 2 * effects + requests);
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(CancelSweep);

}  // namespace
}  // namespace nomad_harvester::scenario
