// SPDX-License-Identifier: Apache-2.0
// How far a new VM has come. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_PROGRESS_H_
#define NOMAD_HARVESTER_SCALING_PROGRESS_H_

#include <string>

#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// In which phase a VM without a node is, cloning, booting or joining, since when, and what
// KubeVirt, the scheduler or CDI say: "its guest runs since … at 10.0.0.7, its guest agent answers,
// and no Nomad node has its name". Times are absolute, so that the text stays the same while
// nothing happens. Pure.
std::string DescribeProgress(const VmView& view);
// How far a VM has come whose node has registered and was never ready: "its node … registered at …,
// but its driver docker is not healthy: …". `node`: the one that it links to; null: none.
std::string DescribeReadiness(const VmView& view, const nomad::Node* node,
                              const PoolSnapshot& snapshot);
// The same, of one that is past its deadline, with the time that it had.
std::string DescribeLateReadiness(const VmView& view, const nomad::Node* node,
                                  const PoolSnapshot& snapshot);
// What an operator does about a guest that runs and does not join; empty: it does not run.
std::string AdviceToJoin(const VmView& view, const PoolSnapshot& snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_PROGRESS_H_
