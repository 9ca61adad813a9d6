// SPDX-License-Identifier: Apache-2.0
// I1 to I3 of docs/behaviour.md for changes that several threads make at once. The order in which
// a cluster tells of them is then not that in which they happened (simulator::Cluster), so nothing
// here depends on it: I1 is judged by what each deletion found, I2 and I3 by the sums of an action.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_LEDGER_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_LEDGER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/simulator/cluster.h"

namespace nomad_harvester::scenario {

// Thread-safe. For a cluster without operators and failures: there I1 has no exceptions.
class Ledger {
 public:
  // Watches `cluster` until destroyed.
  explicit Ledger(simulator::Cluster& cluster);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Waits for the next action that has changed a VM, and returns its pool: the time of a
  // support::ThreadedClock stands still from that change until the caller waits again. Nullopt
  // after Close.
  std::optional<std::string> AwaitAction();
  void Close();

  // I1 to I3; empty if they hold.
  std::vector<std::string> Violations() const;
  int actions() const;

 private:
  struct Action {
    std::int64_t difference = 0;    // of the counts: what it may create, or remove
    std::set<std::string> created;  // uids
    std::set<std::string> marked;
  };
  void Note(const simulator::Event& event);
  void NoteChange(const simulator::Event& event, const std::string& action,
                  std::set<std::string> Action::*vms) NH_REQUIRES(mutex_);
  void CheckDeletion(const simulator::Event& event) NH_REQUIRES(mutex_);

  simulator::Cluster& cluster_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::map<std::string, Action> actions_ NH_GUARDED_BY(mutex_);  // by id
  std::deque<std::string> begun_ NH_GUARDED_BY(mutex_);          // pools
  bool closed_ NH_GUARDED_BY(mutex_) = false;
  std::vector<std::string> violations_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_LEDGER_H_
