// SPDX-License-Identifier: Apache-2.0
// An executor whose tasks run when the test calls Run*.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_MANUAL_EXECUTOR_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_MANUAL_EXECUTOR_H_

#include <cstddef>
#include <deque>
#include <functional>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/runtime/workers.h"

#include "absl/status/status.h"

namespace nomad_harvester::support {

// Thread-safe; tasks run in the thread that calls Run*.
class ManualExecutor final : public runtime::Executor {
 public:
  absl::Status Submit(std::function<void()> task) override;

  // Runs the oldest task; false if there is none.
  bool RunOne();
  // Runs tasks, including those that they submit, until the queue is empty; returns their number.
  std::size_t RunAll();

  std::size_t pending() const;
  // From now on Submit returns this status and drops the task.
  void set_refusal(absl::Status status);

 private:
  mutable base::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ NH_GUARDED_BY(mutex_);
  absl::Status refusal_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_MANUAL_EXECUTOR_H_
