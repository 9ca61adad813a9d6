// SPDX-License-Identifier: Apache-2.0
#include "identity_hints.h"

#include <algorithm>

#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::nodepool {
namespace {

template <typename Values, typename Kind>
void Add(Values* values, Kind kind, const std::string& text) {
  if (!text.empty()) values->emplace_back(kind, base::AsciiLower(text));
}

template <typename Values, typename Kind>
void Add(Values* values, Kind kind, const std::map<std::string, std::string>& map,
         const char* key) {
  const auto found = map.find(key);
  if (found != map.end()) Add(values, kind, found->second);
}

// A node has the same address in two places, a VM may have one twice.
template <typename Values>
Values Distinct(Values values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

std::string IdentityHints::Describe(const Value& value) {
  switch (value.first) {
    case Kind::kMetaUuid:
      return "meta.harvester_vm_uuid";
    case Kind::kAddress:
      return "address " + value.second;
    case Kind::kHostId:
      return "unique.host_id";
  }
  return "";
}

std::vector<IdentityHints::Value> IdentityHints::ValuesOf(const nomad::Node& node) {
  std::vector<Value> values;
  Add(&values, Kind::kMetaUuid, node.meta, "harvester_vm_uuid");
  // Not reported by any release of Nomad up to 2.0.5; its main branch does.
  Add(&values, Kind::kHostId, node.attributes, "unique.host_id");
  Add(&values, Kind::kAddress, node.address);
  Add(&values, Kind::kAddress, node.attributes, "unique.network.ip-address");
  return Distinct(std::move(values));
}

std::vector<IdentityHints::Value> IdentityHints::ValuesOf(const VmIdentityHints& vm) {
  std::vector<Value> values;
  Add(&values, Kind::kMetaUuid, vm.firmware_uuid);
  Add(&values, Kind::kHostId, vm.firmware_uuid);
  for (const std::string& address : vm.addresses) Add(&values, Kind::kAddress, address);
  return Distinct(std::move(values));
}

IdentityHints::IdentityHints(const std::vector<VmIdentityHints>& vms,
                             const std::vector<nomad::Node>& nodes) {
  for (std::size_t i = 0; i < vms.size(); ++i) {
    for (Value& value : ValuesOf(vms[i])) {
      const auto [owners, is_new] = owners_.try_emplace(std::move(value));
      owners->second.several_vms = !is_new;
      owners->second.vm = i;
    }
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const Value& value : ValuesOf(nodes[i])) {
      const auto found = owners_.find(value);
      if (found != owners_.end()) found->second.nodes.push_back(i);
    }
  }
}

std::vector<IdentityHint> IdentityHints::Of(std::size_t index, const nomad::Node& node) const {
  std::vector<IdentityHint> hints;
  for (const Value& value : ValuesOf(node)) {
    const auto found = owners_.find(value);
    if (found == owners_.end() || found->second.several_vms) continue;
    const std::vector<std::size_t>& nodes = found->second.nodes;
    const bool shared =
        std::any_of(nodes.begin(), nodes.end(), [&](std::size_t other) { return other != index; });
    if (!shared) hints.push_back({found->second.vm, Describe(value)});
  }
  return hints;
}

}  // namespace nomad_harvester::nodepool
