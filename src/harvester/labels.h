// The labels that the objects of a pool share.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_LABELS_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_LABELS_H_

#include <map>
#include <string>

#include "nomad_harvester/harvester/blueprint.h"
#include "nomad_harvester/harvester/metadata.h"

namespace nomad_harvester::harvester {

// pool and managed-by: what one list call selects by.
inline std::map<std::string, std::string> ManagedLabels(const VmBlueprint& blueprint) {
  return {{kPoolLabel, blueprint.pool}, {kManagedByLabel, kManagedByValue}};
}

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_LABELS_H_
