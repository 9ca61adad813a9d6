// SPDX-License-Identifier: Apache-2.0
// Finds the VM with a value, such as a host name, and the nodes with the same value.
#ifndef NOMAD_HARVESTER_SRC_NODEPOOL_VALUE_INDEX_H_
#define NOMAD_HARVESTER_SRC_NODEPOOL_VALUE_INDEX_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "nomad_harvester/base/parse.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"

namespace nomad_harvester::nodepool {

// Values are host names, UUIDs or addresses, and are compared ignoring case. The keys are views of
// the VMs' strings, which must outlive the index. Empty values are ignored.
class ValueIndex {
 public:
  struct Entry {
    std::uint32_t vm = 0;  // the first VM with the value
    bool several_vms = false;
    absl::InlinedVector<std::uint32_t, 4> nodes{};  // in the order of the list
  };

  void AddVm(std::string_view value, std::size_t vm) {
    if (value.empty()) return;
    const auto index = static_cast<std::uint32_t>(vm);
    const auto [entry, is_new] = entries_.try_emplace(value, Entry{.vm = index});
    if (!is_new && entry->second.vm != index) entry->second.several_vms = true;
  }
  // Ignores values that no VM has, so add the VMs first.
  void AddNode(std::string_view value, std::size_t node) {
    if (entries_.empty() || value.empty()) return;
    const auto found = entries_.find(value);
    if (found != entries_.end()) found->second.nodes.push_back(static_cast<std::uint32_t>(node));
  }
  // Null if no VM has the value.
  const Entry* Find(std::string_view value) const {
    const auto found = entries_.find(value);
    return found == entries_.end() ? nullptr : &found->second;
  }

 private:
  struct Hash {
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string>()(base::AsciiLower(text));
    }
  };
  struct Equal {
    bool operator()(std::string_view a, std::string_view b) const {
      return a == b || base::EqualsIgnoreCase(a, b);
    }
  };
  absl::flat_hash_map<std::string_view, Entry, Hash, Equal> entries_;
};

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_SRC_NODEPOOL_VALUE_INDEX_H_
