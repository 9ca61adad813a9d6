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

constexpr char kBeforeNodes = '/';

std::string IdOf(const std::string& hash, const std::string& parts) {
  const std::string nodes = hash.empty() ? "" : harvester::NodesPartOf(parts);
  return nodes.empty() ? hash : hash + kBeforeNodes + nodes;
}

}  // namespace

std::string TemplateIdOf(const harvester::VirtualMachine& vm) {
  return IdOf(ValueOf(vm, harvester::kTemplateHashAnnotation),
              ValueOf(vm, harvester::kTemplatePartsAnnotation));
}

std::string TemplateIdOf(const CurrentTemplate& current) {
  return IdOf(current.hash, current.parts);
}

bool IsSameTemplate(const std::string& one, const std::string& other) {
  if (one.empty() || other.empty()) return false;
  const std::size_t end = one.find(kBeforeNodes);
  const std::size_t other_end = other.find(kBeforeNodes);
  const bool known = end != std::string::npos && other_end != std::string::npos;
  return known ? one == other : one.substr(0, end) == other.substr(0, other_end);
}

std::optional<std::vector<std::string>> DriftOf(const harvester::VirtualMachine& vm,
                                                const CurrentTemplate& current,
                                                const std::vector<std::string>& ignored) {
  const std::string stored = ValueOf(vm, harvester::kTemplateHashAnnotation);
  const std::string stored_parts = ValueOf(vm, harvester::kTemplatePartsAnnotation);
  const bool is_same = stored == current.hash;
  if (is_same ? stored_parts == current.parts : !harvester::IsDrift(stored, current.hash)) {
    return std::nullopt;
  }
  std::vector<std::string> parts = harvester::DriftedParts(stored_parts, current.parts);
  if (is_same && parts.empty()) return std::nullopt;
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
    if (view->member) hashes.insert(TemplateIdOf(view->vm));
  }
  return hashes.size() > 1;
}

}  // namespace nomad_harvester::scaling
