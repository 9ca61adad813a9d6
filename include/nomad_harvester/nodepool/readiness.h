// SPDX-License-Identifier: Apache-2.0
// Whether Nomad can place work on a node (rule C17). Pure.
#ifndef NOMAD_HARVESTER_NODEPOOL_READINESS_H_
#define NOMAD_HARVESTER_NODEPOOL_READINESS_H_

#include <string>
#include <vector>

#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// Why the node is not ready; empty: it is. It is ready if its status is, if it is eligible, and if
// it has each of `drivers`, detected and healthy. One that was ever drained counts as eligible: by
// an operator, or by us if it was eligible before. From Nomad 2.0.3 on a client may start
// ineligible (client.default_ineligible). "it is initializing", "its driver docker is not healthy:
// …".
std::string WhyNotReady(const nomad::Node& node, const std::vector<std::string>& drivers);

// Down or disconnected: Nomad does not hear its client.
bool IsSilent(const nomad::Node& node);

// "initializing", …; "of an unknown status".
std::string StatusText(const nomad::Node& node);

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_NODEPOOL_READINESS_H_
