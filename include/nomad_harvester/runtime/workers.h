// SPDX-License-Identifier: Apache-2.0
// Executors for blocking work.
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
// through ForEachBounded, which also uses the calling thread.
class Executor {
 public:
  virtual ~Executor() = default;
  // RESOURCE_EXHAUSTED if the queue is full, CANCELLED after Stop; then the task is dropped and
  // never runs.
  virtual absl::Status Submit(std::function<void()> task) = 0;
};

// Runs tasks on at most `threads` threads, and queues at most `queue_limit` waiting tasks. Starts a
// thread only when a task would otherwise have to wait. Catches exceptions of tasks and passes
// their text to `on_exception`.
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
  // Rejects new tasks, drops queued ones and waits for running ones; cancel their contexts first.
  // Idempotent. A task that stops its own pool does not wait for itself.
  void Stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Calls fn(i) for every i < count, at most `parallelism` at a time. The calling thread takes part,
// and helpers run on `executor` as far as its queue has room, so the call cannot deadlock. Returns
// when all calls have ended, with one status per index; a failure does not stop the other calls.
// After cancellation of the context, every index that has not started gets the context's status. fn
// should not throw; if it does, no further call starts, and the first exception is rethrown to the
// caller after the running calls have ended.
std::vector<absl::Status> ForEachBounded(const Context& context, Executor& executor,
                                         std::size_t count, std::size_t parallelism,
                                         const std::function<absl::Status(std::size_t)>& fn);
// Calls all of these functions at the same time, as ForEachBounded does.
void CallAtOnce(const Context& context, Executor& executor,
                const std::vector<std::function<void()>>& functions);

}  // namespace nomad_harvester::runtime

#endif  // NOMAD_HARVESTER_RUNTIME_WORKERS_H_
