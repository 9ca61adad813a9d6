// SPDX-License-Identifier: Apache-2.0
// Objects as the API server returned them.
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
// date has whole seconds: server_time is never later than the reply, but up to a second earlier, by
// another fraction in each reply. A duration between two of them is up to a second too long or too
// short: round it to the safe side.
struct Observed {
  Json object;
  std::optional<base::WallTime> server_time;
};

// The same for a value that was read from an object, or for a list.
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
