// SPDX-License-Identifier: Apache-2.0
// Actions of a pool's loop, reported to a listener such as a command on a terminal.
#ifndef NOMAD_HARVESTER_SCALING_RECONCILE_EVENT_H_
#define NOMAD_HARVESTER_SCALING_RECONCILE_EVENT_H_

#include <functional>
#include <string>

#include "nomad_harvester/scaling/rules.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

struct ReconcileEvent {
  enum class Kind {
    kStep,            // `step`; for kWait and kReport its reason says why nothing was done
    kPurge,           // a node was removed from Nomad: `object` is its ID
    kDeleteClaim,     // `object` is its name
    kDeleteSecret,    // likewise
    kSetSecretOwner,  // the Secret was given its VM as owner
  };
  Kind kind = Kind::kStep;
  std::string vm;
  Step step;             // kStep
  std::string object;    // the others
  absl::Status outcome;  // an error is retried
};

// Called on the loop's thread after the action. kWait and kReport are reported once per change.
using ReconcileListener = std::function<void(const ReconcileEvent& event)>;

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RECONCILE_EVENT_H_
