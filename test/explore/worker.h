// SPDX-License-Identifier: Apache-2.0
// One process in one state that is being changed: what it reads, remembers and sends, as
// src/scaling's loop (pool_loop.cc), actor (actor.cc) and record (pool_record.cc) make it.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_WORKER_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_WORKER_H_

#include <array>
#include <cstddef>

#include "acts.h"
#include "decision_cache.h"
#include "world.h"

namespace nomad_harvester::explore {

inline constexpr std::array<Holder, kMaxProcesses> kHolderOf = {Holder::kFirst, Holder::kSecond};

class Worker {
 public:
  Worker(const Configuration& configuration, DecisionCache& cache, State* state, int p)
      : configuration_(configuration),
        cache_(cache),
        state_(*state),
        process_(state->processes[static_cast<std::size_t>(p)]),
        p_(static_cast<std::size_t>(p)) {}

  Observation& ObservationOf(Slot& slot) const { return slot.observations[p_]; }

  View CurrentView() const;
  const Advice& AdviceOn(std::size_t slot) const { return cache_.Decide(CurrentView()).vms[slot]; }

  // The Lease is taken, with what its record says.
  void Acquire(Mode mode) const;
  void Release() const;

  // Everything that lives in the process's memory.
  void Forget() const;
  void ClearSights() const;
  void ReadNodes(bool answered) const;
  void ReadVms() const;

  // What the loop does about what it saw. False: nothing.
  bool Launch(bool only_repairs) const;

  // What RecordBefore of pool_record.cc puts on the Lease before anything is carried out.
  void WriteAhead() const;
  void NameMarked() const;

  // What RecordAfter leaves: names that have yet to come, and what is marked.
  void CloseRecord() const;
  void StoreNames() const;
  Bits TakeActionId() const;
  static Act PurgeOf(const std::array<bool, kNodesPerVm>& purge);

  // After its mark, a victim's drain begins at once (MarkAndDrain): the reply showed the VM.
  void DrainAfterMark(std::size_t index) const;

  // All acts of the pass have ended: the next look begins with nothing remembered.
  void EndPassIfDone() const;

  // The next read of an act, or its end. Afterwards it has sent its request, reads on, or is over.
  void Read(std::size_t index) const;

 private:
  bool Proceed(std::size_t index) const;
  void Refresh(const Slot& slot, Observation* observation, std::size_t node) const;
  bool ReadNode(std::size_t index) const;
  bool ReadWork(std::size_t index) const;
  bool ReadVm(std::size_t index) const;
  bool ReadInstance(std::size_t index) const;

  // After the last read: the request, if the row is still the same.
  bool Send(std::size_t index) const;

  const Configuration& configuration_;
  DecisionCache& cache_;
  State& state_;
  Process& process_;
  const std::size_t p_;
};

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_WORKER_H_
