// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/workers.h"

namespace nomad_harvester::runtime {

struct WorkerPool::State {
  explicit State(Options pool_options) : options(std::move(pool_options)) {}

  // The loop of each thread until the pool stops.
  void Work() {
    while (true) {
      std::function<void()> task;
      {
        base::MutexLock lock(mutex);
        wake.Wait(mutex, [this]() NH_REQUIRES(mutex) { return stopping || !queue.empty(); });
        if (stopping) return;
        task = std::move(queue.front());
        queue.pop_front();
        ++busy;
      }
      Run(std::move(task));
      const base::MutexLock lock(mutex);
      --busy;
    }
  }

  void Run(std::function<void()> task) const {
    try {
      task();
      task = nullptr;  // destroys the task's captures inside the try block, too
    } catch (const std::exception& error) {
      Report(error.what());
    } catch (...) {
      Report("an exception of an unknown type");
    }
  }

  void Report(const std::string& text) const {
    if (options.on_exception) options.on_exception(text);
  }

  const Options options;
  base::Mutex mutex;
  base::CondVar wake;
  bool stopping NH_GUARDED_BY(mutex) = false;
  std::deque<std::function<void()>> queue NH_GUARDED_BY(mutex);
  std::size_t busy NH_GUARDED_BY(mutex) = 0;  // threads that run a task
  std::vector<std::jthread> threads NH_GUARDED_BY(mutex);
  std::once_flag joined;
};

WorkerPool::WorkerPool(Options options) : state_(std::make_shared<State>(std::move(options))) {}

WorkerPool::~WorkerPool() { Stop(); }

absl::Status WorkerPool::Submit(std::function<void()> task) {
  base::MutexLock lock(state_->mutex);
  if (state_->stopping) {
    return base::MakeStatus(absl::StatusCode::kCancelled, "the worker pool has stopped");
  }
  // Includes threads that have just been started: a task with a thread on its way does not wait.
  std::size_t free = state_->threads.size() - state_->busy;
  if (state_->queue.size() >= free && state_->threads.size() < state_->options.threads) {
    try {
      state_->threads.emplace_back([state = state_] { state->Work(); });
      ++free;
    } catch (const std::system_error& error) {
      // The process may have reached its thread limit. Fewer workers suffice.
      state_->Report(error.what());
    }
  }
  if (state_->threads.empty()) {
    return base::MakeStatus(absl::StatusCode::kResourceExhausted, "the worker pool has no threads");
  }
  if (state_->queue.size() >= free + state_->options.queue_limit) {
    return base::MakeStatus(absl::StatusCode::kResourceExhausted,
                            "the queue of the worker pool is full");
  }
  state_->queue.push_back(std::move(task));
  state_->wake.NotifyOne();
  return absl::OkStatus();
}

void WorkerPool::Stop() {
  std::deque<std::function<void()>> dropped;  // destroyed outside of the lock
  {
    base::MutexLock lock(state_->mutex);
    state_->stopping = true;
    dropped.swap(state_->queue);
  }
  state_->wake.NotifyAll();
  // A second caller waits here until the first one has joined.
  std::call_once(state_->joined, [this] {
    std::vector<std::jthread> threads;
    {
      base::MutexLock lock(state_->mutex);
      threads.swap(state_->threads);
    }
    for (std::jthread& thread : threads) {
      // A task that destroys the pool cannot join its own thread; the thread ends after the task.
      if (thread.get_id() == std::this_thread::get_id()) {
        thread.detach();
      } else {
        thread.join();
      }
    }
  });
}

}  // namespace nomad_harvester::runtime
