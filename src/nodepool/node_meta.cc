// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/nodepool/link.h"

namespace nomad_harvester::nodepool {
namespace {

std::optional<std::string> Meta(const nomad::Node& node, const char* key) {
  const auto found = node.meta.find(key);
  if (found == node.meta.end()) return std::nullopt;
  return found->second;
}

}  // namespace

bool IsDeclaredForeign(const nomad::Node& node) {
  const auto value = Meta(node, "harvester_vm_uuid");
  return value.has_value() && base::EqualsIgnoreCase(*value, "none");
}

bool IsProtected(const nomad::Node& node) {
  const auto value = Meta(node, "harvester_protect");
  if (!value.has_value()) return false;
  return base::ParseGoBool(*value).value_or(true);
}

}  // namespace nomad_harvester::nodepool
