// SPDX-License-Identifier: Apache-2.0
// What a pool will look like once what is due before any plan has been done (rule C14).
#ifndef NOMAD_HARVESTER_SCALING_FORESIGHT_H_
#define NOMAD_HARVESTER_SCALING_FORESIGHT_H_

#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// The snapshot after every repair that its facts ask for, those included that a repair makes due:
// marks removed, drains cancelled, nodes enabled, as Harvester and Nomad would then answer. Without
// repairs it is the same one.
PoolSnapshot AfterRepairs(PoolSnapshot snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_FORESIGHT_H_
