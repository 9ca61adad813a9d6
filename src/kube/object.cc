// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/object.h"

#include "nomad_harvester/base/json.h"

namespace nomad_harvester::kube {

std::string NameOf(const Json& object) { return base::TextAt(object, {"metadata", "name"}); }

std::string ResourceVersionOf(const Json& object) {
  return base::TextAt(object, {"metadata", "resourceVersion"});
}

}  // namespace nomad_harvester::kube
