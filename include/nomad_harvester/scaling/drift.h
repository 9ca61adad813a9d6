// SPDX-License-Identifier: Apache-2.0
// Drift: a VM was made from a template that differs from the policy's current one.
#ifndef NOMAD_HARVESTER_SCALING_DRIFT_H_
#define NOMAD_HARVESTER_SCALING_DRIFT_H_

#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// The template of new VMs, as last read. Empty: not read yet.
struct CurrentTemplate {
  std::string hash;   // harvester::TemplateHash
  std::string parts;  // harvester::TemplateParts
};

// True if both are known and equal.
bool IsSameTemplate(const std::string& hash, const std::string& other);

// Returns the parts of the template in which the VM differs, sorted, without those that the policy
// ignores; an empty list if the VM differs but the parts are not known. nullopt: the VM does not
// differ, or that cannot be told.
std::optional<std::vector<std::string>> DriftOf(const harvester::VirtualMachine& vm,
                                                const CurrentTemplate& current,
                                                const std::vector<std::string>& ignored);

// True if the pool's VMs were made from different templates. Otherwise drift does not influence
// their order.
bool IsMixed(const PoolSnapshot& snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_DRIFT_H_
