// SPDX-License-Identifier: Apache-2.0
// Names of verdicts, parts of a count and groups, for people, programs and metrics.
#ifndef NOMAD_HARVESTER_DEMAND_NAMES_H_
#define NOMAD_HARVESTER_DEMAND_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "nomad_harvester/demand/packing.h"
#include "nomad_harvester/demand/work.h"
#include "nomad_harvester/policy/strategies.h"

namespace nomad_harvester::demand {

inline constexpr policy::Choice<Verdict> kVerdicts[] = {
    {"fits", Verdict::kFits},
    {"needs-nodes", Verdict::kNeedsNodes},
    {"other-pool", Verdict::kOtherPool},
    {"impossible", Verdict::kImpossible},
    {"cannot-tell", Verdict::kCannotTell},
    {"not-runnable", Verdict::kNotRunnable},
};
inline std::string_view NameOf(Verdict verdict) { return policy::NameIn(kVerdicts, verdict); }

// The parts of a count: its name for programs, and which nodes it counts.
struct DemandPart {
  std::string_view name;
  std::string_view nodes;
  std::int64_t Demand::*count;
};
inline constexpr DemandPart kDemandParts[] = {
    {"busy", "with work", &Demand::busy},
    {"kept", "kept (protected or with a volume)", &Demand::kept},
    {"used_idle", "idle, for pending work or headroom", &Demand::used_idle},
    {"away", "of no use for that work, kept in the count", &Demand::away},
    {"added", "new", &Demand::added},
};

// Headroom is a group without a namespace.
inline bool IsHeadroom(const Group& group) { return group.ns.empty(); }
// "default/web.server": namespace, job, group; "headroom 1x(cpu=500)".
inline std::string NameOf(const Group& group) {
  if (IsHeadroom(group)) return group.job + " " + group.name;
  return group.ns + "/" + group.job + "." + group.name;
}

// What one allocation needs: "500 MHz, 256 MiB, 2 nvidia/gpu".
inline std::string SizeText(const Group& group) {
  std::string text;
  if (group.need.cpu > 0) text += std::to_string(group.need.cpu) + " MHz, ";
  if (group.need.cores > 0) text += std::to_string(group.need.cores) + " cores, ";
  text += std::to_string(group.need.memory_mb) + " MiB";
  for (const DeviceNeed& device : group.devices) {
    text += ", " + std::to_string(device.count) + " " + device.name;
  }
  return text;
}

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_DEMAND_NAMES_H_
