// SPDX-License-Identifier: Apache-2.0
#include "costs.h"

#include <functional>

namespace nomad_harvester::scenario {

namespace {

Scaled Measure(Harness& h, const std::function<absl::Status()>& scale) {
  const base::MonoTime begun = h.clock.Now();
  const int requests = h.cluster.RequestCount();
  Scaled scaled;
  scaled.outcome = scale();
  scaled.lasted = h.clock.Now() - begun;
  scaled.requests = h.cluster.RequestCount() - requests;
  return scaled;
}

}  // namespace

Scaled AcceptMeasured(Harness& h, std::int64_t count) {
  return Measure(h, [&] { return h.Accept(count); });
}

Scaled ScaleMeasured(Harness& h, std::int64_t count) {
  return Measure(h, [&] { return h.Scale(count); });
}

int RequestsAtRest(Harness& h, base::Duration duration) {
  const int requests = RequestsButKeys(h.cluster);
  h.Tick(duration);
  return RequestsButKeys(h.cluster) - requests;
}

int RequestsButKeys(const simulator::Cluster& cluster) {
  return cluster.RequestCount() - cluster.RequestCount(System::kNomad, "get", "jwks.json");
}

int RestBudget(base::Duration duration, int refused) {
  const auto ticks = static_cast<int>(duration / seconds(10));
  const auto rounds = static_cast<int>(duration / minutes(1)) + 1;
  return 2 * ticks + (refused > 0 ? rounds * (12 + 2 * refused) : 0);
}

}  // namespace nomad_harvester::scenario
