// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/full_node_cache.h"

#include <string_view>
#include <utility>

#include "nomad_harvester/nodepool/link.h"

namespace nomad_harvester::nodepool {
namespace {

constexpr std::string_view kMeta = "meta.";
// A longer value is no host name, UUID or address; what is cut off does not make it one.
constexpr std::size_t kMaxValue = 256;

// Drops the values whose names, after `prefix`, nothing reads.
void KeepValues(std::string_view prefix, const std::set<std::string>& needed,
                std::map<std::string, std::string>* values) {
  std::erase_if(*values, [&](const auto& entry) {
    const std::string name = std::string(prefix) + entry.first;
    return !IsReadOfNodes(name) && !needed.contains(name);
  });
  for (auto& [name, value] : *values) {
    if (value.size() > kMaxValue) value = value.substr(0, kMaxValue);
  }
}

}  // namespace

bool FullNodeCache::Need(const std::string& attribute) {
  const base::MutexLock lock(mutex_);
  if (IsReadOfNodes(attribute) || !needed_.insert(attribute).second) return false;
  const bool had_entries = !entries_.empty();
  entries_.clear();
  ++version_;
  return had_entries;
}

bool FullNodeCache::Complete(nomad::Node* stub) const {
  if (stub->full) return true;
  const base::MutexLock lock(mutex_);
  const auto found = entries_.find(stub->id);
  if (found == entries_.end() || found->second.modify_index != stub->modify_index) return false;
  stub->attributes = found->second.attributes;
  stub->meta = found->second.meta;
  stub->full = true;
  return true;
}

nomad::Node FullNodeCache::Remember(nomad::Node full) {
  const base::MutexLock lock(mutex_);
  KeepValues("", needed_, &full.attributes);
  KeepValues(kMeta, needed_, &full.meta);
  if (!full.full) return full;
  Entry known{full.modify_index, full.attributes, full.meta};
  Entry& entry = entries_[full.id];
  if (entry == known) return full;
  entry = std::move(known);
  ++version_;
  return full;
}

std::uint64_t FullNodeCache::version() const {
  const base::MutexLock lock(mutex_);
  return version_;
}

void FullNodeCache::Keep(const std::vector<nomad::Node>& listed) {
  std::map<std::string, Entry> kept;
  const base::MutexLock lock(mutex_);
  for (const nomad::Node& node : listed) {
    const auto found = entries_.find(node.id);
    if (found == entries_.end() || found->second.modify_index < node.modify_index) continue;
    kept.insert(entries_.extract(found));
  }
  entries_.swap(kept);
}

}  // namespace nomad_harvester::nodepool
