// SPDX-License-Identifier: Apache-2.0
#include "sweep.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "nomad_harvester/base/parse.h"

#include "trouble.h"

namespace nomad_harvester::scenario {

int Points::Number(const RequestInfo& request) {
  if (request.client != process_ || IsRenewal(request)) return 0;
  if (of_ == Of::kEffects && !request.has_effect) return 0;
  return ++seen_;
}

int Measure(const Scenario& scenario, Points::Of of, const Interleaving& interleaving) {
  static std::map<std::tuple<std::string, Order, std::uint64_t>, std::array<int, 2>> known;
  const auto [entry, is_new] =
      known.try_emplace({scenario.name, interleaving.order, interleaving.seed});
  std::array<int, 2>& counts = entry->second;
  if (is_new) {
    Harness h({}, interleaving);
    scenario.prepare(h);
    Points requests(h.process().name(), Points::Of::kRequests);
    Points effects(h.process().name(), Points::Of::kEffects);
    h.cluster.SetFaultHook([&](const RequestInfo& request) {
      requests.Number(request);
      effects.Number(request);
      return Fault::None();
    });
    const absl::Status scaled = h.Scale(scenario.count);
    h.cluster.SetFaultHook(nullptr);
    EXPECT_EQ(scaled.ok(), scenario.succeeds) << scaled << "\n" << h.Transcript();
    ComeToRest(scenario, h);
    counts = {requests.seen(), effects.seen()};
  }
  return counts.at(of == Points::Of::kRequests ? 0 : 1);
}

void SetReachable(Harness& h, System system, bool reachable) {
  if (system == System::kHarvester) {
    h.cluster.SetHarvesterReachable(reachable);
  } else {
    h.cluster.SetNomadReachable(reachable);
  }
}

namespace {

// NOMAD_HARVESTER_SWEEP: every `step`th point from `first` on; nothing without the variable.
struct Part {
  std::int64_t first = 0;
  std::int64_t step = 1;
};

std::optional<Part> AskedFor() {
  const char* value = std::getenv("NOMAD_HARVESTER_SWEEP");
  if (value == nullptr) return std::nullopt;
  const std::string_view text = value;
  if (text == "full") return Part{};
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto first = base::ParseInt(text.substr(0, slash));
  const auto step = base::ParseInt(text.substr(std::min(slash + 1, text.size())));
  if (!first.ok() || !step.ok() || *first < 0 || *first >= *step) {
    std::fprintf(stderr, "NOMAD_HARVESTER_SWEEP is full or K/N with 0 <= K < N, not \"%s\"\n",
                 value);
    std::exit(EXIT_FAILURE);
  }
  return Part{*first, *step};
}

}  // namespace

bool IsFullSweep() {
  const std::optional<Part> part = AskedFor();
  return part.has_value() && part->step == 1;
}

std::vector<int> Choose(int points, int limit, int shift) {
  std::vector<int> chosen;
  if (const std::optional<Part> part = AskedFor()) {
    // At least one point of each scenario, because a sweep that visits nothing proves nothing.
    for (std::int64_t i = part->first; i < points; i += part->step) {
      chosen.push_back(static_cast<int>(i) + 1);
    }
    if (chosen.empty() && points > 0) chosen.push_back(points);
    return chosen;
  }
  const int wanted = std::min(points, limit);
  for (int i = 0; i < wanted; ++i) {
    // The middles of `wanted` equal parts, moved by a third of a part for each shift.
    const int sixths = 6 * i + 3 + 2 * shift;
    chosen.push_back(1 + (wanted == points ? i : points * sixths / (6 * wanted) % points));
  }
  return chosen;
}

void KillAtEffect(const Scenario& scenario, int effect, bool applied, Harness& h) {
  scenario.prepare(h);
  Points points(h.process().name(), Points::Of::kEffects);
  bool killed = false;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (points.Number(request) != effect) return Fault::None();
    killed = true;
    h.process().Die();
    return applied ? Fault::ApplyThenDie() : Fault::Die();
  });
  const absl::Status scaled = h.Scale(scenario.count);
  EXPECT_TRUE(killed) << scaled;
  h.cluster.SetFaultHook(nullptr);
  h.Restart();
}

void ComeToRest(const Scenario& scenario, Harness& h, const Budget& budget) {
  if (scenario.resolve) scenario.resolve(h);
  h.Converge(scenario.count, budget);
  // The agent sees neither what is undone in the next round, nor a Lease that expires.
  const Invariants::Rest rest{.pool = h.policy.at("node_group_name"), .count = scenario.count};
  for (int tick = 0; tick < 30 && !h.invariants.AtRest(rest).empty(); ++tick) {
    h.Tick(seconds(10));
  }
  h.CheckAtRest(rest);
}

void ComeToRestAfterTrouble(const Scenario& scenario, Harness& h) {
  h.Tick(minutes(12));
  ComeToRest(scenario, h, kBackOffBudget);
}

void ReportVisits(const std::string& sweep, const Scenario& scenario, std::size_t visited,
                  int points) {
  ASSERT_GT(visited, 0U) << "a sweep that visits nothing proves nothing";
  std::printf("[ visited  ] %s: %zu of %d points of %s\n", sweep.c_str(), visited, points,
              scenario.name.c_str());
}

}  // namespace nomad_harvester::scenario
