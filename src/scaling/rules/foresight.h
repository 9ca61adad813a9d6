// SPDX-License-Identifier: Apache-2.0
// Predicts the pool after the repairs that precede every plan (rule C14).
#ifndef NOMAD_HARVESTER_SCALING_FORESIGHT_H_
#define NOMAD_HARVESTER_SCALING_FORESIGHT_H_

#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// The snapshot after all repairs that are due, and those that follow from them: marks removed,
// drains cancelled, nodes enabled, as Harvester and Nomad would then answer. Without repairs the
// snapshot is unchanged.
PoolSnapshot AfterRepairs(PoolSnapshot snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_FORESIGHT_H_
