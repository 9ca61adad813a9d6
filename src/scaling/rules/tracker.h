// SPDX-License-Identifier: Apache-2.0
// Tracks the outcome of each VM of an action, from observations and from the effects of attempts.
// Pure: it sends nothing and reads no clock.
#ifndef NOMAD_HARVESTER_SCALING_TRACKER_H_
#define NOMAD_HARVESTER_SCALING_TRACKER_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/rules.h"

#include "rules/pool_record.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

enum class Goal { kMake, kRemove, kTakeBack };
enum class OutcomeState { kPending, kDone, kFailed };

// One VM of an action, and its progress.
struct VmOutcome {
  Goal goal = Goal::kRemove;
  OutcomeState state = OutcomeState::kPending;
  absl::Status error{};       // kFailed
  std::string text{};         // why it is pending
  std::string action{};       // the action in its mark, if observed
  std::string node_id{};      // kRemove: the node in the plan
  std::string creation_id{};  // kMake: the action id under which it is made
  std::string zone{};         // kMake: its zone
  // kMake: its POST was accepted, or the VM was observed. kRemove: its mark was written or
  // observed.
  bool begun = false;
  bool registered = false;    // kMake: its node has registered, which was logged
  bool unknown = false;       // kRemove: its mark may have been written without a reply
  bool mark_refused = false;  // kRemove: its mark was refused in this action
  bool refused = false;       // kRemove: it failed because it was refused
  // kRemove: when the VM was first seen gone, and how long to wait for its leftovers (rule L4).
  std::optional<base::MonoTime> gone_since{};
  base::Duration leftovers_limit = std::chrono::minutes(4);
  std::string left{};  // kDone: the leftovers that were not waited for
};

// Leftovers of gone VMs, by VM name (rule L4).
struct Leftover {
  std::string what;               // "volume web-a-disk-0-x (being deleted)"
  bool refused_for_good = false;  // the clean-up of every object is refused
  bool in_trouble = false;        // the clean-up of every object has failed
};
using Leftovers = std::map<std::string, Leftover>;
// Adds one object to the leftovers of `vm`. `key`: identifies its clean-up in `retries`.
void AddLeftover(const std::string& vm, const std::string& what, const Retries& retries,
                 const Retries::Key& key, base::MonoTime now, Leftovers* leftovers);

// True if a failed creation may succeed when repeated under the same name. False for our own
// errors, such as in a template, and for a name that another object has.
bool MayRepeatCreation(const Effect& effect);

// Returns the cause (back_off.h) to which a broken VM is attributed.
std::string CauseOfBroken(const VmView& view);

class Tracker {
 public:
  struct Options {
    std::string action_id;
    // A removal is done once its drain is accepted (scale_in_wait = "false").
    bool until_accepted = false;
    // Removals continue despite mass loss, because that has lasted long enough (rule C15).
    bool despite_mass_loss = false;
    // VMs that did not count until this Scale: removing them is no success (rule R4).
    std::set<std::string> uncounted{};
    log::Logger logger;
  };
  Tracker(Options options, const ScalePlan& plan);

  const std::map<std::string, VmOutcome>& outcomes() const { return outcomes_; }
  const std::string& action_id() const { return options_.action_id; }
  bool despite_mass_loss() const { return options_.despite_mass_loss; }

  // Every name that the Lease must hold before anything else is done for this action.
  std::set<std::string> Names() const;

  // Updates the outcomes from a Look. A Look without Nomad does not show that a removal was rolled
  // back or taken back.
  void Observe(const Decisions& decisions, const Retries& retries, const Leftovers& leftovers,
               base::MonoTime now);

  // Returns the victims to mark now: those that this Look shows running, unmarked and suitable. An
  // unsuitable victim is replaced by the next candidate, which the Lease must name before it is
  // marked (rule L5).
  std::set<std::string> ToMark(const Decisions& decisions);
  // Returns the VMs to create now: none until every VM that is taken back has its outcome (L6).
  std::vector<std::string> ToMake() const;

  void RecordMark(const std::string& vm, const Effect& effect, bool refused_for_good);
  void RecordMake(const std::string& vm, const Effect& effect);
  // Records that the join of a VM, healthy in the last Look, was written. If this action makes the
  // VM and it is ready, its outcome is done without another Look.
  void RecordJoined(const std::string& vm, const std::string& node_id, bool ready);

  // True if every VM has its outcome, and the VM of each failed creation is gone, or stays for a
  // reason that this action cannot change.
  bool Ended(const Decisions& decisions, const Retries& retries, base::MonoTime now) const;
  // The removed VMs whose leftovers this action waits for.
  std::set<std::string> Gone() const;

  // Adds what the pool's record must store at the end.
  void AddTo(RunSummary* run) const;
  // The names of the VMs that AddTo counts for a cause by themselves.
  std::set<std::string> FailedVms() const;
  // The call's status: OK, or one line per VM. `ended`: why the run ended early, else OK.
  absl::Status FinalStatus(const absl::Status& ended) const;

 private:
  void ObserveMake(const std::string& vm, const Decisions::Entry* entry, const Decisions& decisions,
                   const Retries& retries, base::MonoTime now, VmOutcome* outcome);
  void ObserveRemove(const std::string& vm, const Decisions::Entry* entry,
                     const Decisions& decisions, const Retries& retries, const Leftovers& leftovers,
                     base::MonoTime now, VmOutcome* outcome);
  void RecordRegistered(const std::string& vm, const std::string& node_id, VmOutcome* outcome);
  void SetMade(const std::string& vm, const std::string& node_id, std::string_view message,
               VmOutcome* outcome);
  void ObserveGone(const std::string& vm, const Leftovers& leftovers, base::MonoTime now,
                   VmOutcome* outcome);
  void ObserveTakeBack(const Decisions::Entry* entry, const Decisions& decisions,
                       const Retries& retries, base::MonoTime now, VmOutcome* outcome);
  bool Replace(const std::string& vm, const std::string& why);
  // True if the step removes a VM and has waited for a minute because too many VMs have lost their
  // nodes: this action then ends, and a later one goes on.
  bool WaitsForNodes(const Step& step, base::MonoTime now) const;

  const Options options_;
  std::map<std::string, VmOutcome> outcomes_;
  std::vector<PlannedRemoval> reserve_;  // in order; taken from the front
  std::vector<SkippedVm> passed_over_;
  std::optional<base::MonoTime> mass_loss_since_;
  // New VM → the cause of back_off.h by which it failed last: each counts once (rule C12).
  std::map<std::string, std::string> failed_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_TRACKER_H_
