// SPDX-License-Identifier: Apache-2.0
#include "name_index.h"

#include <algorithm>
#include <string_view>

#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::nodepool {
namespace {

constexpr std::string_view kMetaPrefix = "meta.";

std::string Lookup(const std::map<std::string, std::string>& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? "" : found->second;
}

// A stub has no attributes; its Name is the host name unless the client's configuration sets
// another (hashicorp/nomad:nomad/structs/structs.go, Node.Stub).
std::string NameOf(const nomad::Node& node, const std::string& attribute) {
  if (!node.full) return ShortHostName(node.name);
  if (attribute.compare(0, kMetaPrefix.size(), kMetaPrefix) == 0) {
    return ShortHostName(Lookup(node.meta, attribute.substr(kMetaPrefix.size())));
  }
  return ShortHostName(Lookup(node.attributes, attribute));
}

}  // namespace

std::string ShortHostName(std::string_view name) {
  return base::AsciiLower(name.substr(0, name.find('.')));
}

NameIndex::NameIndex(const std::vector<VmIdentityHints>& vms,
                     const std::vector<nomad::Node>& nodes) {
  for (std::size_t i = 0; i < vms.size(); ++i) {
    std::string name = ShortHostName(vms[i].name);
    if (!name.empty()) tables_[vms[i].node_attribute][std::move(name)].vms.push_back(i);
  }
  for (auto& [attribute, table] : tables_) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto found = table.find(NameOf(nodes[i], attribute));
      if (found != table.end()) found->second.nodes.push_back(i);
    }
  }
}

const std::vector<std::size_t>& NameIndex::NodesNamed(const VmIdentityHints& vm) const {
  static const std::vector<std::size_t> kNone;
  const auto table = tables_.find(vm.node_attribute);
  if (table == tables_.end()) return kNone;
  const auto found = table->second.find(ShortHostName(vm.name));
  return found == table->second.end() ? kNone : found->second.nodes;
}

bool NameIndex::Matches(const nomad::Node& node, const VmIdentityHints& vm) {
  const std::string name = ShortHostName(vm.name);
  return !name.empty() && NameOf(node, vm.node_attribute) == name;
}

bool NameIndex::IsNamedAfterAnother(const nomad::Node& node, std::size_t vm) const {
  return std::any_of(tables_.begin(), tables_.end(), [&](const auto& entry) {
    const auto found = entry.second.find(NameOf(node, entry.first));
    if (found == entry.second.end()) return false;
    const std::vector<std::size_t>& vms = found->second.vms;
    return std::any_of(vms.begin(), vms.end(), [vm](std::size_t other) { return other != vm; });
  });
}

}  // namespace nomad_harvester::nodepool
