// SPDX-License-Identifier: Apache-2.0
// Whether Nomad can place work on a node (rule C17). Pure.
#ifndef NOMAD_HARVESTER_NODEPOOL_READINESS_H_
#define NOMAD_HARVESTER_NODEPOOL_READINESS_H_

#include <string>
#include <vector>

#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// Why the node is not ready: "it is initializing", "its driver docker is not healthy: …". Empty: it
// is ready. A node is ready if its status is ready, if it is eligible, and if each of `drivers` is
// detected and healthy. It also counts as eligible if it was ever drained by an operator, or by us
// while it was eligible. From Nomad 2.0.3 on, a client may start ineligible
// (client.default_ineligible).
std::string WhyNotReady(const nomad::Node& node, const std::vector<std::string>& drivers);

// True if Nomad does not hear the client: the node is down or disconnected.
bool IsSilent(const nomad::Node& node);

// "initializing", …; "of an unknown status".
std::string StatusText(const nomad::Node& node);

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_NODEPOOL_READINESS_H_
