// SPDX-License-Identifier: Apache-2.0
// The writes of one pass, and what their effects mean. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_PASS_TASK_H_
#define NOMAD_HARVESTER_SCALING_PASS_TASK_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/scaling/step_spec.h"

#include "execution/executor.h"
#include "execution/pool_dependencies.h"

namespace nomad_harvester::scaling {

// One write, and what came of it: a VM's next step, or the purge of a gone VM's node. What it
// points to must outlive it.
struct PassTask {
  explicit PassTask(const Decisions::Entry& next);
  explicit PassTask(const OrphanedNode& to_purge);

  const Decisions::Entry* entry = nullptr;  // null: a purge
  const OrphanedNode* gone = nullptr;
  std::string vm;
  StepKind kind = StepKind::kPurge;
  Retries::Key key;

  Effect effect{};          // of the last attempt
  bool should_log = false;  // its trouble has begun, doubled its wait, or ended
  base::MonoTime ended{};

  std::string_view what() const { return SpecOf(kind).infinitive; }
  bool is_trouble() const {
    return effect.verdict == Verdict::kRefused || effect.verdict == Verdict::kFailed;
  }
  // Why it is done; empty for a purge.
  std::string_view why() const {
    return entry == nullptr ? std::string_view() : entry->step.reason;
  }
};
using PassTasks = std::vector<PassTask>;

// Records and reports the task's effect. Called on the loop's thread. `decisions`: those of which
// the task is a part.
void Conclude(const PassTask& task, const PoolDependencies& deps, const Decisions& decisions);

// Records that the removal of a VM has failed: before it is rolled back, because nothing of it
// shows afterwards (rule C12).
void RecordRollBack(const PassTask& task, const Decisions& decisions, PoolBacklog* backlog);
// Records that a VM is broken: it is marked, or it stays and is reported.
void ConcludeBroken(const VmView& view, const std::string& reason, base::MonoTime now,
                    PoolBacklog* backlog);

// The key of a VM's next step.
Retries::Key KeyOfStep(const Decisions::Entry& entry);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_PASS_TASK_H_
