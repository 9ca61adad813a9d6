// SPDX-License-Identifier: Apache-2.0
// The uid of a Kubernetes object, which the product reads only while it decodes.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_OBJECT_UID_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_OBJECT_UID_H_

#include <string>

#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::support {

// Empty if it has none.
inline std::string UidOf(const nlohmann::json& object) {
  const nlohmann::json* uid = base::FindPath(object, {"metadata", "uid"});
  return uid == nullptr ? "" : uid->get<std::string>();
}

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_OBJECT_UID_H_
