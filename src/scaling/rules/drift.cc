// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/drift.h"

#include <algorithm>
#include <set>

#include "nomad_harvester/harvester/template_hash.h"

namespace nomad_harvester::scaling {

bool IsSameTemplate(const std::string& hash, const std::string& other) {
  return !hash.empty() && hash == other;
}

std::optional<std::vector<std::string>> DriftOf(const harvester::VirtualMachine& vm,
                                                const CurrentTemplate& current,
                                                const std::vector<std::string>& ignored) {
  if (!harvester::IsDrift(vm.template_hash, current.hash)) return std::nullopt;
  std::vector<std::string> parts = harvester::DriftedParts(vm.template_parts, current.parts);
  const bool known = !parts.empty();
  std::erase_if(parts, [&](const std::string& part) {
    return std::find(ignored.begin(), ignored.end(), part) != ignored.end();
  });
  if (known && parts.empty()) return std::nullopt;
  return parts;
}

bool IsMixed(const PoolSnapshot& snapshot) {
  std::set<std::string> hashes;
  for (const VmView* view : snapshot.vms()) {
    if (view->member) hashes.insert(view->vm->template_hash);
  }
  return hashes.size() > 1;
}

}  // namespace nomad_harvester::scaling
