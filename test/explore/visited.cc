// SPDX-License-Identifier: Apache-2.0
#include "visited.h"

#include <algorithm>
#include <cstring>

#include "decision_cache.h"

namespace nomad_harvester::explore {

StateHash HashOf(const State& state) {
  return {HashBytes(&state, sizeof state, 0x243F6A8885A308D3U),
          HashBytes(&state, sizeof state, 0x13198A2E03707344U)};
}

void Canonicalize(int vms, State* state, Labels* labels) {
  for (int i = 1; i < vms; ++i) {
    for (int j = i; j > 0; --j) {
      Slot& a = state->slots[static_cast<std::size_t>(j - 1)];
      Slot& b = state->slots[static_cast<std::size_t>(j)];
      if (std::memcmp(&a, &b, sizeof a) <= 0) break;
      std::swap(a, b);
      if (labels == nullptr) continue;
      std::swap((*labels)[static_cast<std::size_t>(j - 1)], (*labels)[static_cast<std::size_t>(j)]);
    }
  }
}

bool Visited::Insert(const StateHash& hash, std::uint32_t parent) {
  if (entries_.size() * 2 >= table_.size()) Grow();
  const std::size_t mask = table_.size() - 1;
  for (std::size_t i = hash.low & mask;; i = (i + 1) & mask) {
    if (table_[i] == kRoot) {
      table_[i] = static_cast<std::uint32_t>(entries_.size());
      entries_.push_back({hash, parent});
      return true;
    }
    if (entries_[table_[i]].hash == hash) return false;
  }
}

void Visited::Grow() {
  table_.assign(table_.size() * 2, kRoot);
  const std::size_t mask = table_.size() - 1;
  for (std::size_t entry = 0; entry < entries_.size(); ++entry) {
    std::size_t i = entries_[entry].hash.low & mask;
    while (table_[i] != kRoot) i = (i + 1) & mask;
    table_[i] = static_cast<std::uint32_t>(entry);
  }
}

std::vector<StateHash> Visited::PathTo(std::uint32_t entry) const {
  std::vector<StateHash> path;
  for (; entry != kRoot; entry = entries_[entry].parent) path.push_back(entries_[entry].hash);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace nomad_harvester::explore
