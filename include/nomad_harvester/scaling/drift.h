// SPDX-License-Identifier: Apache-2.0
// Drift: a VM was made of something else than the policy describes now.
#ifndef NOMAD_HARVESTER_SCALING_DRIFT_H_
#define NOMAD_HARVESTER_SCALING_DRIFT_H_

#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// What new VMs of a pool are made of, when that was read last. Empty: it was not.
struct CurrentTemplate {
  std::string hash;   // harvester::TemplateHash
  std::string parts;  // harvester::TemplateParts
};

// Of what a VM was made; empty: it does not say.
std::string TemplateHashOf(const harvester::VirtualMachine& vm);

// In which parts a VM differs from it, sorted, without those that the policy ignores; an empty list
// if the parts are not known. nullopt: it does not differ, or nobody knows.
std::optional<std::vector<std::string>> DriftOf(const harvester::VirtualMachine& vm,
                                                const CurrentTemplate& current,
                                                const std::vector<std::string>& ignored);

// Whether the VMs of a pool were made of different things: otherwise drift decides nothing about
// their order.
bool IsMixed(const PoolSnapshot& snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_DRIFT_H_
