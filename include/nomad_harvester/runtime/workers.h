// SPDX-License-Identifier: Apache-2.0
// Threads for work that blocks.
#ifndef NOMAD_HARVESTER_RUNTIME_WORKERS_H_
#define NOMAD_HARVESTER_RUNTIME_WORKERS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/runtime/context.h"

#include "absl/status/status.h"

namespace nomad_harvester::runtime {

// Runs tasks. Thread-safe. A task must not wait for another task of the same executor, except
// through ForEachBounded, which works in the calling thread, too.
class Executor {
 public:
  virtual ~Executor() = default;
  // RESOURCE_EXHAUSTED if the queue is full, CANCELLED after Stop; then the task is dropped and
  // never runs.
  virtual absl::Status Submit(std::function<void()> task) = 0;
};

// A fixed number of threads and a bounded queue. An exception that leaves a task is swallowed by
// the pool after `on_exception` saw its text.
class WorkerPool final : public Executor {
 public:
  struct Options {
    std::size_t threads = 4;
    std::size_t queue_limit = 1024;
    std::function<void(const std::string&)> on_exception;
  };
  explicit WorkerPool(Options options);
  // Stops and joins.
  ~WorkerPool() override;

  absl::Status Submit(std::function<void()> task) override;
  // Refuses new tasks, drops queued ones, and waits for those that run: cancel their contexts
  // first. Idempotent. A task that stops its own pool does not wait for itself.
  void Stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Runs tasks in the calling thread at once: for tests and commands, where order must be known.
class InlineExecutor final : public Executor {
 public:
  absl::Status Submit(std::function<void()> task) override;
};

// Calls fn(i) for every i < count, at most `parallelism` at a time, the calling thread included;
// helpers come from `executor` as far as it has room, so that it never deadlocks. Returns when all
// have ended, one status per index; one failure does not stop the others. A cancelled context
// gives its status to every index that has not begun. fn should not throw; if it does, no further
// index begins, and the first exception reaches the caller once those under way have ended.
std::vector<absl::Status> ForEachBounded(const Context& context, Executor& executor,
                                         std::size_t count, std::size_t parallelism,
                                         const std::function<absl::Status(std::size_t)>& fn);

}  // namespace nomad_harvester::runtime

#endif  // NOMAD_HARVESTER_RUNTIME_WORKERS_H_
