// SPDX-License-Identifier: Apache-2.0
// Objects as the API server returned them.
#ifndef NOMAD_HARVESTER_KUBE_OBJECT_H_
#define NOMAD_HARVESTER_KUBE_OBJECT_H_

#include <optional>
#include <string>
#include <vector>

// The whole header: Observed holds a document by value.
#include "nomad_harvester/base/time.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::kube {

using Json = nlohmann::json;

// An object and the API server's clock at that moment (its Date header): the "now" of every
// decision about the object. Nothing if the reply had no readable date. metadata.managedFields is
// never there: it is dropped while the reply is read.
struct Observed {
  Json object;
  std::optional<base::WallTime> server_time;
};

struct ObservedList {
  std::vector<Json> items;
  std::string resource_version;
  // Of the first page: all pages show the state of that moment.
  std::optional<base::WallTime> server_time;
  int requests = 0;  // pages that it took, those of abandoned attempts included
};

// metadata's members, by name; empty if missing.
std::string NameOf(const Json& object);
std::string ResourceVersionOf(const Json& object);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_OBJECT_H_
