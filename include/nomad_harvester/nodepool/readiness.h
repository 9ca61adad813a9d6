// SPDX-License-Identifier: Apache-2.0
// Decides whether Nomad can place work on a node (rule C17). Pure.
#ifndef NOMAD_HARVESTER_NODEPOOL_READINESS_H_
#define NOMAD_HARVESTER_NODEPOOL_READINESS_H_

#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// Says why the node is not ready: "it is initializing", "its driver docker is not healthy: …".
// Unset: it is ready. Since Nomad 2.0.3 a client may start ineligible (client.default_ineligible).
std::optional<std::string> WhyNotReady(const nomad::Node& node,
                                       const std::vector<std::string>& drivers);

// True if Nomad has no contact with the client: the node is down or disconnected.
bool IsSilent(const nomad::Node& node);

// "initializing", …; "of an unknown status".
std::string StatusText(const nomad::Node& node);

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_NODEPOOL_READINESS_H_
