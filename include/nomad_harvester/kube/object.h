// SPDX-License-Identifier: Apache-2.0
// Objects as returned by the API server.
#ifndef NOMAD_HARVESTER_KUBE_OBJECT_H_
#define NOMAD_HARVESTER_KUBE_OBJECT_H_

#include <optional>
#include <string>

#include "nomad_harvester/base/time.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::kube {

using Json = nlohmann::json;

struct Observed;  // observed.h

// A value read from an object, or a list, and the API server's clock when it was returned, as in
// Observed.
template <typename T>
struct Timestamped {
  T value;
  std::optional<base::WallTime> server_time;
};

// Members of metadata; empty if missing.
std::string NameOf(const Json& object);
std::string ResourceVersionOf(const Json& object);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_OBJECT_H_
