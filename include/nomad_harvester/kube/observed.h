// SPDX-License-Identifier: Apache-2.0
// An object with its content. Apart from object.h, so that only those who read or write objects
// compile nlohmann's JSON.
#ifndef NOMAD_HARVESTER_KUBE_OBSERVED_H_
#define NOMAD_HARVESTER_KUBE_OBSERVED_H_

#include <optional>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/kube/object.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::kube {

// An object and the API server's clock when it was returned (its Date header), which is the "now"
// of every decision about the object. server_time is unset if the reply had no readable date. A
// date has whole seconds: server_time is never later than the reply but up to a second earlier, by
// a varying fraction. A duration between two of them may be wrong by up to a second: round it to
// the safe side.
struct Observed {
  Json object;
  std::optional<base::WallTime> server_time;
};

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_OBSERVED_H_
