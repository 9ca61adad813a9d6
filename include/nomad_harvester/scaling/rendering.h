// SPDX-License-Identifier: Apache-2.0
// The objects of Kubernetes that a policy would create, as the API server would get them.
#ifndef NOMAD_HARVESTER_SCALING_RENDERING_H_
#define NOMAD_HARVESTER_SCALING_RENDERING_H_

#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {

// Of one VM, with a sample of its name and action. No secret is in them: the Secret's data is
// searched decoded, values of HARVESTER_TEMPLATE_ variables and an introduction token are
// placeholders, and Nomad's index is 0.
struct Rendering {
  nlohmann::json vm;
  nlohmann::json secret;
  nlohmann::json lease;
  bool intro_token = false;  // a real VM gets a token, and its Secret says when it expires
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RENDERING_H_
