// SPDX-License-Identifier: Apache-2.0
// An executor that runs each task immediately in the calling thread, for tests that need a known
// order.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_INLINE_EXECUTOR_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_INLINE_EXECUTOR_H_

#include <functional>

#include "nomad_harvester/runtime/workers.h"

#include "absl/status/status.h"

namespace nomad_harvester::support {

class InlineExecutor final : public runtime::Executor {
 public:
  absl::Status Submit(std::function<void()> task) override {
    task();
    return absl::OkStatus();
  }
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_INLINE_EXECUTOR_H_
