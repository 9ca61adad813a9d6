// SPDX-License-Identifier: Apache-2.0
// Calls the real functions: converts a process's observation to a PoolSnapshot and caches the
// results, because building the strings of a snapshot is expensive.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_DECISION_CACHE_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_DECISION_CACHE_H_

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "nomad_harvester/scaling/rules.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "configuration.h"
#include "model.h"
#include "mutation.h"

namespace nomad_harvester::explore {

// The observation of one VM.
struct ObservedVm {
  Vm vm;
  std::array<Node, kNodesPerVm> nodes;
};

struct View {
  std::array<ObservedVm, kMaxVms> slots;
  std::uint8_t named = 0;  // bit per slot, as the three that follow
  std::uint8_t create = 0;
  std::uint8_t cancel = 0;
  std::uint8_t refused = 0;
  std::uint8_t readable = 1;
  std::uint8_t elsewhere = 0;
  std::uint8_t keys = 0;  // Keys of the Nomad that answered
  std::uint8_t lease_keys = 0;
  std::uint8_t stopped = 0;  // as in State
  std::uint8_t spare[7] = {};
};
static_assert(sizeof(View) == kMaxVms * 16 + 16);

// The decision about one VM.
struct Advice {
  scaling::StepKind kind = scaling::StepKind::kNothing;
  scaling::Row row = scaling::Row::kUnmarkedOther;
  std::uint8_t node = kNoNode;    // of the step
  std::uint8_t linked = kNoNode;  // the node that the VM links to
  bool flag = false;              // mark_eligible, was_ineligible or node_is_ready
  bool broken = false;
  bool other_nomad = false;    // it is left alone: another Nomad's
  Keys records = Keys::kNone;  // the keys that a write about its mark or its join adds
};
struct Decision {
  std::array<Advice, kMaxVms> vms;
  std::array<std::array<bool, kNodesPerVm>, kMaxVms> purge{};
  bool needs_resumption = false;
  bool removals_wait = false;
  bool other_cluster = false;  // another Nomad cluster's pool: nothing is done
  bool new_keys = false;       // for the Lease
  bool replaces = false;       // the old VM may be replaced now …
  bool for_dead = false;       // … because it is unhealthy
  std::uint8_t reuse = 0;      // … by one with this unused name of the Lease: bit per slot
  std::uint8_t count = 0;      // that Status reports
};

struct Plan {
  bool ok = false;  // false: refused
  bool nothing = false;
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  std::uint8_t cancels = 0;  // bit per slot
  std::uint8_t remove = 0;
  std::uint8_t reuse = 0;      // unused names of the action
  std::uint8_t new_names = 0;  // how many
  std::uint8_t to_count = 0;   // bit per slot: the VMs that replace no other one any more
  friend bool operator==(const Plan&, const Plan&) = default;
};

class DecisionCache {
 public:
  DecisionCache(const Configuration& configuration, const Mutation& mutation);

  const Decision& Decide(const View& view);
  // Ties are broken by name, but the model's slots are interchangeable: one plan for each order of
  // names that makes a difference.
  const std::vector<Plan>& PlanFor(const View& view, int wanted);

  std::size_t asked() const { return decisions_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const View& view) const;
  };
  struct Same {
    bool operator()(const View& a, const View& b) const;
  };
  scaling::PoolSnapshot SnapshotOf(const View& view, const Labels& labels) const;
  Decision Compute(const View& view) const;
  void SetReplacement(const View& view, const scaling::PoolSnapshot& snapshot,
                      Decision* decision) const;

  const Configuration configuration_;
  const std::vector<scaling::Rule> rules_;
  std::unordered_map<View, Decision, Hash, Same> decisions_;
  std::array<std::unordered_map<View, std::vector<Plan>, Hash, Same>, kMaxVms + 1> plans_;
};

// "web-a" …
std::string VmName(int slot);
// `size` is a multiple of eight.
std::uint64_t HashBytes(const void* data, std::size_t size, std::uint64_t seed);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_DECISION_CACHE_H_
