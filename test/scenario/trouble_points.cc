// SPDX-License-Identifier: Apache-2.0
#include "trouble_points.h"

#include <algorithm>
#include <map>
#include <string>

#include "costs.h"
#include "sweep.h"

namespace nomad_harvester::scenario {
namespace {

struct Undisturbed {
  std::vector<Act> acts;
  base::Duration lasted{};
};

// Measured once for each scenario.
const Undisturbed& Measured(const Scenario& scenario) {
  static std::map<std::string, Undisturbed> known;
  const auto [entry, is_new] = known.try_emplace(scenario.name);
  Undisturbed& undisturbed = entry->second;
  if (!is_new) return undisturbed;
  Harness h;
  scenario.prepare(h);
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.has_effect && !IsRenewal(request)) {
      const Act act = ActOf(request, h.cluster);
      if (std::find(undisturbed.acts.begin(), undisturbed.acts.end(), act) ==
          undisturbed.acts.end()) {
        undisturbed.acts.push_back(act);
      }
    }
    return Fault::None();
  });
  undisturbed.lasted = ScaleMeasured(h, scenario.count).lasted;
  h.cluster.SetFaultHook(nullptr);
  ComeToRest(scenario, h);
  return undisturbed;
}

bool IsFirstOrLast(const Act& act, const std::vector<Act>& acts) {
  const auto same = [&](const Act& other) { return other.Kind() == act.Kind(); };
  return *std::find_if(acts.begin(), acts.end(), same) == act ||
         *std::find_if(acts.rbegin(), acts.rend(), same) == act;
}

}  // namespace

std::vector<Act> ActsOf(const Scenario& scenario) {
  const std::vector<Act>& all = Measured(scenario).acts;
  std::vector<Act> acts;
  std::copy_if(all.begin(), all.end(), std::back_inserter(acts),
               [&](const Act& act) { return IsFullSweep() || IsFirstOrLast(act, all); });
  return acts;
}

base::Duration UndisturbedDuration(const Scenario& scenario) { return Measured(scenario).lasted; }

}  // namespace nomad_harvester::scenario
