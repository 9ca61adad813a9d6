// SPDX-License-Identifier: Apache-2.0
#include "identity_hints.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::nodepool {
namespace {

enum class Kind { kMetaUuid, kAddress, kHostId };
using Value = std::pair<Kind, std::string>;

std::string Describe(const Value& value) {
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

void AddTo(std::set<Value>& values, Kind kind, const std::string& text) {
  if (!text.empty()) values.emplace(kind, base::AsciiLower(text));
}

void AddTo(std::set<Value>& values, Kind kind, const std::map<std::string, std::string>& map,
           const char* key) {
  const auto found = map.find(key);
  if (found != map.end()) AddTo(values, kind, found->second);
}

std::set<Value> ValuesOf(const nomad::Node& node) {
  std::set<Value> values;
  AddTo(values, Kind::kMetaUuid, node.meta, "harvester_vm_uuid");
  // Not reported by any release of Nomad up to 2.0.5; its main branch does.
  AddTo(values, Kind::kHostId, node.attributes, "unique.host_id");
  AddTo(values, Kind::kAddress, node.address);
  AddTo(values, Kind::kAddress, node.attributes, "unique.network.ip-address");
  return values;
}

std::set<Value> ValuesOf(const VmIdentityHints& vm) {
  std::set<Value> values;
  AddTo(values, Kind::kMetaUuid, vm.firmware_uuid);
  AddTo(values, Kind::kHostId, vm.firmware_uuid);
  for (const std::string& address : vm.addresses) AddTo(values, Kind::kAddress, address);
  return values;
}

// Maps each value to its owners.
template <typename T>
std::map<Value, std::vector<std::size_t>> Owners(const std::vector<T>& things) {
  std::map<Value, std::vector<std::size_t>> owners;
  for (std::size_t i = 0; i < things.size(); ++i) {
    for (const Value& value : ValuesOf(things[i])) owners[value].push_back(i);
  }
  return owners;
}

}  // namespace

IdentityHints::IdentityHints(const std::vector<VmIdentityHints>& vms,
                             const std::vector<nomad::Node>& nodes)
    : hints_(nodes.size()) {
  const auto vms_by_value = Owners(vms);
  for (const auto& [value, named] : Owners(nodes)) {
    if (named.size() != 1) continue;
    const auto found = vms_by_value.find(value);
    if (found == vms_by_value.end() || found->second.size() != 1) continue;
    hints_[named.front()].push_back({found->second.front(), Describe(value)});
  }
}

bool IdentityHints::Identifies(std::size_t node, std::size_t vm) const {
  const auto& all = hints_[node];
  return std::any_of(all.begin(), all.end(), [vm](const IdentityHint& t) { return t.vm == vm; });
}

const IdentityHint* IdentityHints::Contradiction(std::size_t node, std::size_t vm) const {
  const auto& all = hints_[node];
  const auto found =
      std::find_if(all.begin(), all.end(), [vm](const IdentityHint& t) { return t.vm != vm; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace nomad_harvester::nodepool
