// SPDX-License-Identifier: Apache-2.0
// One task per object in a pass. A task knows how it is executed, what its effect means for the
// run, and how it is reported. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_PASS_TASK_H_
#define NOMAD_HARVESTER_SCALING_PASS_TASK_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "execution/creation.h"
#include "execution/deleted_vms.h"
#include "execution/executor.h"
#include "execution/pool_dependencies.h"
#include "rules/pool_record.h"
#include "rules/tracker.h"

namespace nomad_harvester::scaling {

// The action that a Scale adds to the loop. It is already in the Lease's record.
struct RunningAction {
  Tracker& tracker;
  const CreationPlan* creation = nullptr;  // null: it creates nothing
};

// State shared by the passes of one run, and the run's results. Used by one thread; tasks that run
// in parallel only read it.
struct Run {
  explicit Run(PoolDependencies dependencies) : deps(std::move(dependencies)), gone(deps) {}

  const PoolDependencies deps;
  std::optional<RunningAction> action{};  // of a Scale
  std::optional<Decisions> last{};        // of the last observation
  // The observed pool with the current record of the Lease.
  std::optional<PoolSnapshot> recorded{};
  DeletedVms gone;
  // The API server's time of the newest effect.
  std::optional<base::WallTime> last_event{};
  // The causes (back_off.h) of VMs that were marked as broken; `broken` describes these VMs.
  std::set<std::string> failures{};
  bool replaced = false;  // a replacement VM became ready
  std::string broken{};

  const PoolSnapshot& snapshot() const { return last->snapshot(); }
  // Returns `seen` with the current record of the Lease.
  PoolSnapshot WithRecord(PoolSnapshot seen) const;
};

// The result of an attempt, for PassTask::Conclude.
struct Attempt {
  const Effect& effect;
  bool is_news = false;           // its trouble has begun, doubled its wait, or ended
  bool refused_for_good = false;  // for a minute
  base::MonoTime ended{};
};

class PassTask {
 public:
  PassTask(std::string vm, Retries::Key key) : vm_(std::move(vm)), key_(std::move(key)) {}
  virtual ~PassTask() = default;
  PassTask(const PassTask&) = delete;
  PassTask& operator=(const PassTask&) = delete;

  const std::string& vm() const { return vm_; }
  const Retries::Key& key() const { return key_; }

  // Blocks for its requests. Tasks run in parallel; each changes only itself.
  virtual Effect CarryOut(const runtime::Context& context, const Run& run) = 0;
  // Records and reports the effect in the run. Called on the loop's thread.
  virtual void Conclude(const Attempt& attempt, Run* run) const = 0;

  // The intent that the Lease must record before the task runs; null: none.
  virtual const Decisions::Entry* intent() const { return nullptr; }
  // True if a refusal of the task counts as a refusal of the VM's removal (rule C8).
  virtual bool removes() const { return false; }
  // True if the pool needs no further Look after the task.
  virtual bool joins() const { return false; }
  // True if the agent need not wait for the task's change.
  virtual bool is_silent() const { return false; }
  // What the task does, in the log: "delete the VM".
  virtual std::string_view what() const = 0;
  // Why it does so; empty: not said.
  virtual std::string_view why() const { return {}; }
  // The VM that the task created; null: none.
  virtual const CreatedVm* created() const { return nullptr; }

 private:
  const std::string vm_;
  const Retries::Key key_;
};

using PassTasks = std::vector<std::unique_ptr<PassTask>>;

// Makes the task for a VM's next step. `entry` and `gone` must outlive their tasks.
std::unique_ptr<PassTask> MakeStepTask(const Decisions::Entry& entry);
// Tasks of a Scale's action: mark a victim, create a VM.
std::unique_ptr<PassTask> MakeMarkTask(const Decisions::Entry& entry);
std::unique_ptr<PassTask> MakeCreationTask(const std::string& vm);
std::unique_ptr<PassTask> MakePurgeTask(const OrphanedNode& gone);

// Returns the key of MakeStepTask's task.
Retries::Key KeyOfStep(const Decisions::Entry& entry);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_PASS_TASK_H_
