// SPDX-License-Identifier: Apache-2.0
// Describes the progress of a new VM. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_PROGRESS_H_
#define NOMAD_HARVESTER_SCALING_PROGRESS_H_

#include <string>

#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// Describes a VM without a node: its phase (cloning, booting or joining), since when, and the
// messages of KubeVirt, the scheduler or CDI: "its guest runs since … at 10.0.0.7, its guest agent
// answers, and no Nomad node has its name". Times are absolute, so that the text stays the same
// while nothing happens. Pure.
std::string DescribeProgress(const VmView& view);
// Describes a VM whose node has registered but was never ready: "its node … registered at …, but
// its driver docker is not healthy: …". `node`: the VM's linked node, or null.
std::string DescribeReadiness(const VmView& view, const nomad::Node* node,
                              const PoolSnapshot& snapshot);
// Likewise for a VM past its deadline, with the time that it had after registering.
std::string DescribeLateReadiness(const VmView& view, const nomad::Node* node,
                                  const PoolSnapshot& snapshot);
// Tells the operator what to do about a guest that runs but does not join. Empty if it does not
// run.
std::string AdviceToJoin(const VmView& view, const PoolSnapshot& snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_PROGRESS_H_
