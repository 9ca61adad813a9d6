// SPDX-License-Identifier: Apache-2.0
// The Kubernetes objects that a policy would create, as they would be sent to the API server.
#ifndef NOMAD_HARVESTER_SCALING_RENDERING_H_
#define NOMAD_HARVESTER_SCALING_RENDERING_H_

#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {

// The objects of one VM, with a sample name and action. They contain no secret: the Secret's data
// is decoded and searched, and placeholders stand for the values of HARVESTER_TEMPLATE_ variables
// and for an introduction token. Nomad's index is 0.
struct Rendering {
  nlohmann::json vm;
  nlohmann::json secret;
  nlohmann::json lease;
  bool intro_token = false;  // a real VM gets a token, and its Secret records the expiry
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RENDERING_H_
