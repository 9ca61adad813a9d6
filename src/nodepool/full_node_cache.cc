// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/full_node_cache.h"

namespace nomad_harvester::nodepool {

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

void FullNodeCache::Remember(const nomad::Node& full) {
  if (!full.full) return;
  Entry known{full.modify_index, full.attributes, full.meta};
  const base::MutexLock lock(mutex_);
  Entry& entry = entries_[full.id];
  if (entry == known) return;
  entry = std::move(known);
  ++version_;
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
