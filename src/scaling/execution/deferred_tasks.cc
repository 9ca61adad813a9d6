// SPDX-License-Identifier: Apache-2.0
#include "execution/deferred_tasks.h"

#include <utility>

#include "absl/cleanup/cleanup.h"

namespace nomad_harvester::scaling {

DeferredTasks::DeferredTasks() : state_(std::make_shared<State>()) {}

DeferredTasks::~DeferredTasks() { End(); }

bool DeferredTasks::RunNext(State& state, const runtime::Context& context) {
  Task task;
  {
    base::MutexLock lock(state.mutex);
    if (state.waiting.empty()) return false;
    task = std::move(state.waiting.front());
    state.waiting.pop_front();
    ++state.running;
  }
  const absl::Cleanup over = [&state, &task] {
    task = nullptr;  // what the task holds may be gone once it has ended
    base::MutexLock lock(state.mutex);
    --state.running;
    state.changed.NotifyAll();
  };
  Ended ended = task(context);
  base::MutexLock lock(state.mutex);
  state.ended.push_back(std::move(ended));
  return true;
}

bool DeferredTasks::Start(const runtime::Context& context, runtime::Executor& executor, Task task) {
  if (!source_.has_value()) source_.emplace(context);
  {
    base::MutexLock lock(state_->mutex);
    state_->waiting.push_back(std::move(task));
  }
  const absl::Status submitted =
      executor.Submit([state = state_, aside = source_->context()] { RunNext(*state, aside); });
  if (submitted.ok()) return true;
  Task left;  // destroyed without the lock
  base::MutexLock lock(state_->mutex);
  // Each call of the executor takes the first task, so the last one is left without a call.
  left = std::move(state_->waiting.back());
  state_->waiting.pop_back();
  return false;
}

std::vector<DeferredTasks::Ended> DeferredTasks::TakeEnded() {
  base::MutexLock lock(state_->mutex);
  return std::exchange(state_->ended, {});
}

bool DeferredTasks::any() const {
  base::MutexLock lock(state_->mutex);
  return state_->running > 0 || !state_->waiting.empty();
}

void DeferredTasks::Await() {
  if (!source_.has_value()) return;
  while (RunNext(*state_, source_->context())) {
  }
  base::MutexLock lock(state_->mutex);
  state_->changed.Wait(state_->mutex,
                       [this]() NH_REQUIRES(state_->mutex) { return state_->running == 0; });
}

void DeferredTasks::End() {
  std::deque<Task> dropped;  // destroyed without the lock
  if (source_.has_value()) source_->Cancel(runtime::CancelReason::kNone);
  base::MutexLock lock(state_->mutex);
  dropped.swap(state_->waiting);
  state_->changed.Wait(state_->mutex,
                       [this]() NH_REQUIRES(state_->mutex) { return state_->running == 0; });
}

}  // namespace nomad_harvester::scaling
