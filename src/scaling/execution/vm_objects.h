// SPDX-License-Identifier: Apache-2.0
// The objects of one VM (ComposeVm).
#ifndef NOMAD_HARVESTER_SCALING_EXECUTION_VM_OBJECTS_H_
#define NOMAD_HARVESTER_SCALING_EXECUTION_VM_OBJECTS_H_

#include <vector>

#include "nomad_harvester/base/secret.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {

struct VmObjects {
  nlohmann::json secret;
  nlohmann::json vm;
  std::vector<base::Secret> lines;  // as in CloudInit
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_EXECUTION_VM_OBJECTS_H_
