// SPDX-License-Identifier: Apache-2.0
// The labels that the objects of a pool share.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_LABELS_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_LABELS_H_

#include <map>
#include <string>

#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/harvester/vm_spec.h"

namespace nomad_harvester::harvester {

// pool and managed-by: what one list call selects by.
inline std::map<std::string, std::string> ManagedLabels(const VmSpec& vm_spec) {
  return {{kPoolLabel, vm_spec.pool}, {kManagedByLabel, kManagedByValue}};
}

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_LABELS_H_
