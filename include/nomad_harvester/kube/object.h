// SPDX-License-Identifier: Apache-2.0
// Objects as returned by the API server.
#ifndef NOMAD_HARVESTER_KUBE_OBJECT_H_
#define NOMAD_HARVESTER_KUBE_OBJECT_H_

#include <optional>
#include <string>

// Full definition of WallTime: Observed holds one by value.
#include "nomad_harvester/base/time.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::kube {

using Json = nlohmann::json;

// An object and the API server's clock when it was returned (its Date header), which is the "now"
// of every decision about the object. server_time is unset if the reply had no readable date. A
// date has whole seconds: server_time is never later than the reply but up to a second earlier, by
// a varying fraction. A duration between two of them may be wrong by up to a second: round it to
// the safe side.
struct Observed {
  Json object;
  std::optional<base::WallTime> server_time;
};

// Likewise for a value read from an object, or for a list.
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
