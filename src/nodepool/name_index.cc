// SPDX-License-Identifier: Apache-2.0
#include "name_index.h"

#include <algorithm>
#include <string_view>

#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::nodepool {
namespace {

constexpr std::string_view kMetaPrefix = "meta.";
constexpr std::string_view kHostName = "unique.hostname";

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

std::vector<std::size_t> NameIndex::NodesNamed(const VmIdentityHints& vm) {
  const std::string name = ShortHostName(vm.name);
  if (name.empty()) return {};
  const Table& table = TableOf(vm.node_attribute);
  const auto found = table.find(name);
  if (found == table.end()) return {};
  std::vector<std::size_t> named = found->second;
  // If another attribute is configured, a stub's Name is only a guess: full nodes that have the
  // name are preferred.
  const auto is_full = [this](std::size_t i) { return nodes_[i].full; };
  if (vm.node_attribute != kHostName && std::any_of(named.begin(), named.end(), is_full)) {
    named.erase(std::remove_if(named.begin(), named.end(),
                               [&is_full](std::size_t i) { return !is_full(i); }),
                named.end());
  }
  return named;
}

const NameIndex::Table& NameIndex::TableOf(const std::string& attribute) {
  const auto [entry, is_new] = tables_.try_emplace(attribute);
  if (is_new) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      entry->second[NameOf(nodes_[i], attribute)].push_back(i);
    }
  }
  return entry->second;
}

}  // namespace nomad_harvester::nodepool
