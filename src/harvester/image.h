// SPDX-License-Identifier: Apache-2.0
// Parses the fields of a VirtualMachineImage that a root disk needs.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_IMAGE_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_IMAGE_H_

#include "nomad_harvester/harvester/vm_spec.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

Image ParseImage(const nlohmann::json& object);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_IMAGE_H_
