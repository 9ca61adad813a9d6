// SPDX-License-Identifier: Apache-2.0
// The visited states, by a 128-bit hash of their canonical form, with their predecessors.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_VISITED_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_VISITED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model.h"

namespace nomad_harvester::explore {

struct StateHash {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const StateHash&, const StateHash&) = default;
};
StateHash HashOf(const State& state);

// Slots are interchangeable: sorts them, and `labels` in the same way.
void Canonicalize(int vms, State* state, Labels* labels = nullptr);

class Visited {
 public:
  static constexpr std::uint32_t kRoot = UINT32_MAX;

  // True if it is new. Its number is then size() - 1.
  bool Insert(const StateHash& hash, std::uint32_t parent);
  std::size_t size() const { return entries_.size(); }
  // From the first state to this one.
  std::vector<StateHash> PathTo(std::uint32_t entry) const;

 private:
  struct Entry {
    StateHash hash;
    std::uint32_t parent = kRoot;
  };
  void Grow();

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> table_ = std::vector<std::uint32_t>(1024, kRoot);
};

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_VISITED_H_
