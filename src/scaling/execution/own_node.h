// SPDX-License-Identifier: Apache-2.0
// Finds the Nomad node on which the autoscaler itself runs (rule C7). Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_OWN_NODE_H_
#define NOMAD_HARVESTER_SCALING_OWN_NODE_H_

#include <string>

#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

// Returns the node of the autoscaler's own allocation, which may be a node of the pool. Empty if
// there is no allocation (`allocation` is empty) or if it is in another cluster, which only a token
// with read-job everywhere can prove. Blocks for one or a few requests. Returns NomadClient's
// errors.
absl::StatusOr<std::string> FindOwnNode(const runtime::Context& context,
                                        const nomad::NomadClient& nomad,
                                        const std::string& allocation);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_OWN_NODE_H_
