// SPDX-License-Identifier: Apache-2.0
// What one pass does for one object. A task knows how it is carried out, what its effect means for
// the run, and what is told about it. Private to module scaling.
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
#include "execution/executor.h"
#include "execution/gone_vms.h"
#include "execution/pool_dependencies.h"
#include "rules/pool_record.h"
#include "rules/tracker.h"

namespace nomad_harvester::scaling {

// What a Scale adds to the loop. The Lease's record holds its action already.
struct RunningAction {
  Tracker& tracker;
  const CreationPlan* creation = nullptr;  // null: it creates nothing
  // Nodes of victims that were read in full just now, by ID; null: none. For the first pass.
  const NodesRead* nodes = nullptr;
};

// What the passes of one run share, and what the run has achieved. Used by one thread, but for the
// tasks that it carries out in parallel, which do not change it.
struct Run {
  explicit Run(PoolDependencies dependencies) : deps(std::move(dependencies)), gone(deps) {}

  const PoolDependencies deps;
  std::optional<RunningAction> action{};  // of a Scale
  std::optional<Decisions> last{};        // of the last observation
  // The pool that was observed, with the record that is on the Lease by now.
  std::optional<PoolSnapshot> recorded{};
  GoneVms gone;
  // The API server's time of the newest effect.
  std::optional<base::WallTime> last_event{};
  // The causes of back_off.h of the VMs that were marked as broken, and what was said of them.
  std::set<std::string> failures{};
  std::string broken{};

  const PoolSnapshot& snapshot() const { return last->snapshot(); }
  // `seen` with the present record of the Lease.
  PoolSnapshot WithRecord(PoolSnapshot seen) const;
};

// How an attempt ended, for PassTask::Conclude.
struct Attempt {
  const Effect& effect;
  bool is_news = false;           // its trouble begins, has doubled its wait, or ends
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

  // Blocks for its requests. Tasks run in parallel, and change themselves alone.
  virtual Effect CarryOut(const runtime::Context& context, const Run& run) = 0;
  // Notes what the effect means for the run, and tells it. In the loop's thread.
  virtual void Conclude(const Attempt& attempt, Run* run) const = 0;

  // What the Lease must say before; null: nothing.
  virtual const Decisions::Entry* intent() const { return nullptr; }
  // A refusal of it is one of the VM's removal (rule C8).
  virtual bool removes() const { return false; }
  // Once it is done nothing is left to be seen.
  virtual bool joins() const { return false; }
  // Its effect changes nothing that the agent should wait for.
  virtual bool is_silent() const { return false; }
  // What the line about its trouble says besides the VM, the key and the error.
  virtual std::vector<log::Field> fields() const { return {}; }
  // The VM that it created, if any.
  virtual const CreatedVm* created() const { return nullptr; }

 private:
  const std::string vm_;
  const Retries::Key key_;
};

using PassTasks = std::vector<std::unique_ptr<PassTask>>;

// The next step of a VM. `entry` and `gone` must outlive the task.
std::unique_ptr<PassTask> MakeStepTask(const Decisions::Entry& entry);
// Of the action: the mark of a victim, and a new VM.
std::unique_ptr<PassTask> MakeMarkTask(const Decisions::Entry& entry);
std::unique_ptr<PassTask> MakeCreationTask(const std::string& vm);
std::unique_ptr<PassTask> MakePurgeTask(const NodeOfGoneVm& gone);

// The key of MakeStepTask's task.
Retries::Key KeyOfStep(const Decisions::Entry& entry);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_PASS_TASK_H_
