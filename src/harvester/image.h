// SPDX-License-Identifier: Apache-2.0
// A VirtualMachineImage as a root disk needs it.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_IMAGE_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_IMAGE_H_

#include "nomad_harvester/harvester/vm_spec.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

Image ParseImage(const nlohmann::json& object);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_IMAGE_H_
