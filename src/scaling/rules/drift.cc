// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/drift.h"

#include <algorithm>
#include <set>

#include "nomad_harvester/harvester/template_hash.h"

namespace nomad_harvester::scaling {
namespace {

std::string ValueOf(const harvester::VirtualMachine& vm, const char* annotation) {
  const auto found = vm.annotations.find(annotation);
  return found == vm.annotations.end() ? std::string() : found->second;
}

}  // namespace

std::string TemplateHashOf(const harvester::VirtualMachine& vm) {
  return ValueOf(vm, harvester::kTemplateHashAnnotation);
}

bool IsSameTemplate(const std::string& hash, const std::string& other) {
  return !hash.empty() && hash == other;
}

std::optional<std::vector<std::string>> DriftOf(const harvester::VirtualMachine& vm,
                                                const CurrentTemplate& current,
                                                const std::vector<std::string>& ignored) {
  if (!harvester::IsDrift(TemplateHashOf(vm), current.hash)) return std::nullopt;
  std::vector<std::string> parts =
      harvester::DriftedParts(ValueOf(vm, harvester::kTemplatePartsAnnotation), current.parts);
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
    if (view->member) hashes.insert(TemplateHashOf(view->vm));
  }
  return hashes.size() > 1;
}

}  // namespace nomad_harvester::scaling
