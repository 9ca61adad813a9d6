// SPDX-License-Identifier: Apache-2.0
#include "support/manual_executor.h"

#include <cstddef>
#include <functional>
#include <utility>

namespace nomad_harvester::support {

absl::Status ManualExecutor::Submit(std::function<void()> task) {
  base::MutexLock lock(mutex_);
  if (refusal_.ok()) tasks_.push_back(std::move(task));
  return refusal_;
}

bool ManualExecutor::RunOne() {
  std::function<void()> task;
  {
    base::MutexLock lock(mutex_);
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  task();
  return true;
}

std::size_t ManualExecutor::RunAll() {
  std::size_t count = 0;
  while (RunOne()) ++count;
  return count;
}

std::size_t ManualExecutor::pending() const {
  base::MutexLock lock(mutex_);
  return tasks_.size();
}

void ManualExecutor::set_refusal(absl::Status status) {
  base::MutexLock lock(mutex_);
  refusal_ = std::move(status);
}

}  // namespace nomad_harvester::support
