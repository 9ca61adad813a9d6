// SPDX-License-Identifier: Apache-2.0
// The labels that all objects of a pool have.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_LABELS_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_LABELS_H_

#include <map>
#include <string>

#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/harvester/vm_spec.h"

namespace nomad_harvester::harvester {

// The labels pool and managed-by, by which lists select.
inline std::map<std::string, std::string> ManagedLabels(const VmSpec& vm_spec) {
  return {{kPoolLabel, vm_spec.pool}, {kManagedByLabel, kManagedByValue}};
}

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_LABELS_H_
