// SPDX-License-Identifier: Apache-2.0
// One process in a state that is being changed: what it reads, keeps and sends, as src/scaling's
// loop (pool_loop.cc), executor (executor.cc) and record (pool_record.cc) do.
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
  const Act& ActOn(std::size_t slot) const { return state_.slots[slot].observations[p_].act; }

  View CurrentView() const;
  const Decision& CurrentDecision() const { return cache_.Decide(CurrentView()); }
  const Advice& AdviceOn(std::size_t slot) const { return CurrentDecision().vms[slot]; }

  // Acquires the Lease and reads its record.
  void Acquire(Mode mode) const;
  void Release() const;

  bool AsksOther() const { return state_.AsksOther(p_); }
  // Whether the keys that it holds are those of the Nomad that it asks now.
  bool HoldsKeys() const {
    return process_.keys == (AsksOther() ? KeysHeld::kOther : KeysHeld::kOwn);
  }

  // Clears the process's memory, as a kill does.
  void Forget() const;
  void ClearSights() const;
  // `reads_keys`: else those that it holds are taken for the cluster's.
  void ReadNodes(bool answered, bool reads_keys = true) const;
  void ReadVms() const;

  // Starts the acts for the observation, as the loop does. False: none.
  bool Launch(bool only_repairs) const;

  // Writes to the Lease before any act, as RecordBefore of pool_record.cc.
  void WriteAhead() const;

  // Whether a removal is yet its removal to be cancelled. One that is, or cannot be any more, is
  // not waited for again, as Acceptance::TakeBack.
  bool Cancels() const;

  // Keeps the names that are yet to be created or are marked, as RecordAfter.
  void CloseRecord() const;
  void StoreNames() const;
  void StoreKeys() const;
  Bits TakeActionId() const;
  static Act PurgeOf(const std::array<bool, kNodesPerVm>& purge);

  // The reply to the act: what it says about refusals is remembered.
  void RecordReply(std::size_t index, const Act& act, bool refused) const;

  // After the mark, the victim's drain begins immediately (MarkAndDrain): the reply holds the VM.
  void DrainAfterMark(std::size_t index) const;

  // If all acts of the pass have ended, the next observation starts without earlier state.
  void EndPassIfDone() const;

  // The next read of an act. Afterwards it has sent its request, needs another read, or has ended.
  void Read(std::size_t index) const;

 private:
  bool Proceed(std::size_t index) const;
  void Refresh(const Slot& slot, Observation* observation, std::size_t node) const;
  bool ReadPhase(std::size_t index) const;
  void ReadNode(std::size_t index) const;
  void ReadWork(std::size_t index) const;
  bool ReadVm(std::size_t index) const;
  void ReadInstance(std::size_t index) const;
  bool IsStillWanted(std::size_t index) const;
  // Whether the VM links to a node that was ready when it was read.
  bool IsReady(std::size_t index) const;

  const Configuration& configuration_;
  DecisionCache& cache_;
  State& state_;
  Process& process_;
  const std::size_t p_;
};

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_WORKER_H_
