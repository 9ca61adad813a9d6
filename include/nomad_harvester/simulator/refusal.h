// SPDX-License-Identifier: Apache-2.0
// Permanent refusals: every matching request gets the same answer until the rule is withdrawn.
#ifndef NOMAD_HARVESTER_SIMULATOR_REFUSAL_H_
#define NOMAD_HARVESTER_SIMULATOR_REFUSAL_H_

#include <string>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/simulator/fault.h"

namespace nomad_harvester::simulator {

// How a request is refused, with the reason and the text of the real server.
enum class Refusal {
  kNone,         // the request is applied; the rule only delays it
  kAnswer,       // `status` and `text`
  kForbidden,    // 403: RBAC, Nomad's ACL. Reviews still allow it: see Cluster::Forbid
  kUnavailable,  // an API server that shuts down (503); a Nomad without a leader (500)
};

// A matching request is not applied, but counted like any other, also if its object is missing.
struct RefusalRule {
  System system = System::kHarvester;
  // As in RequestInfo; empty: any. Dry runs and access reviews match only rules that name their
  // verbs, "try" and "ask".
  std::string verb{};
  std::string resource{};
  std::string name{};
  Refusal kind = Refusal::kForbidden;
  int status = 0;      // of kAnswer
  std::string text{};  // of kAnswer: the body
  // How long such a request takes before it is answered. A request whose client gives up meanwhile
  // is not applied.
  base::Duration takes{};
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_REFUSAL_H_
