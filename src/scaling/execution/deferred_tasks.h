// SPDX-License-Identifier: Apache-2.0
// Steps that are carried out beside the passes of a loop. Private to module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_DEFERRED_TASKS_H_
#define NOMAD_HARVESTER_SRC_SCALING_DEFERRED_TASKS_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/workers.h"

#include "execution/executor.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

// Used by one thread; the tasks run on the executor. The loop's passes do not wait for them.
class DeferredTasks {
 public:
  struct Ended {
    Retries::Key key;
    std::string vm;
    Step step;
    Effect effect;
  };
  using Task = std::function<Ended(const runtime::Context&)>;

  DeferredTasks();
  // Calls End().
  ~DeferredTasks();
  DeferredTasks(const DeferredTasks&) = delete;
  DeferredTasks& operator=(const DeferredTasks&) = delete;

  // Runs the task with a child of `context`, which must be the same for all tasks. False: the
  // executor has no room, and the task is dropped.
  bool Start(const runtime::Context& context, runtime::Executor& executor, Task task);
  // The tasks that ended since the last call.
  std::vector<Ended> TakeEnded();
  // True if a task runs, or waits to run.
  bool any() const;
  // Blocks until all tasks have ended. Runs those that have not begun in the calling thread.
  void Await();
  // Cancels the context of tasks that run, and waits for their end. Other tasks never begin.
  // Idempotent; no task may be started after it.
  void End();

 private:
  struct State {
    base::Mutex mutex;
    base::CondVar changed;
    std::deque<Task> waiting NH_GUARDED_BY(mutex);
    int running NH_GUARDED_BY(mutex) = 0;
    std::vector<Ended> ended NH_GUARDED_BY(mutex);
  };
  // False: none is waiting.
  static bool RunNext(State& state, const runtime::Context& context);

  // Shared, because the executor may call after this object is destroyed. It then finds no task.
  const std::shared_ptr<State> state_;
  std::optional<runtime::CancelSource> source_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_DEFERRED_TASKS_H_
