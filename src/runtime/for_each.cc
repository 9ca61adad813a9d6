// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/runtime/workers.h"

namespace nomad_harvester::runtime {
namespace {

using Function = std::function<absl::Status(std::size_t)>;

// State shared by the caller and its helpers. A helper may start after the caller has returned; it
// then finds no index and does not access `fn_`, which belongs to the caller.
class Loop {
 public:
  Loop(const Context& context, std::size_t count, const Function& fn)
      : context_(context), count_(count), fn_(fn), results_(count) {}

  // Processes indices until none is left.
  void Work() {
    while (const std::optional<std::size_t> index = Begin()) {
      absl::Status status = context_.Check();
      std::exception_ptr exception;
      if (status.ok()) {
        try {
          status = fn_(*index);
        } catch (...) {
          exception = std::current_exception();
        }
      }
      End(*index, std::move(status), exception);
    }
  }

  // Call it only after Work() has returned, when no further index can start.
  std::vector<absl::Status> Join() {
    base::MutexLock lock(mutex_);
    ended_.Wait(mutex_, [this]() NH_REQUIRES(mutex_) { return running_ == 0; });
    if (exception_) std::rethrow_exception(exception_);
    return std::move(results_);
  }

 private:
  std::optional<std::size_t> Begin() {
    base::MutexLock lock(mutex_);
    if (next_ == count_ || exception_) return std::nullopt;
    ++running_;
    return next_++;
  }

  void End(std::size_t index, absl::Status status, const std::exception_ptr& exception) {
    base::MutexLock lock(mutex_);
    results_[index] = std::move(status);
    if (exception && !exception_) exception_ = exception;
    if (--running_ == 0) ended_.NotifyAll();
  }

  const Context context_;
  const std::size_t count_;
  const Function& fn_;
  base::Mutex mutex_;
  base::CondVar ended_;
  std::size_t next_ NH_GUARDED_BY(mutex_) = 0;
  std::size_t running_ NH_GUARDED_BY(mutex_) = 0;
  std::exception_ptr exception_ NH_GUARDED_BY(mutex_);
  std::vector<absl::Status> results_ NH_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<absl::Status> ForEachBounded(const Context& context, Executor& executor,
                                         std::size_t count, std::size_t parallelism,
                                         const Function& fn) {
  const auto loop = std::make_shared<Loop>(context, count, fn);
  const std::size_t helpers = std::min(count, std::max<std::size_t>(parallelism, 1));
  for (std::size_t i = 1; i < helpers; ++i) {
    if (!executor.Submit([loop] { loop->Work(); }).ok()) break;
  }
  loop->Work();
  return loop->Join();
}

void CallAtOnce(const Context& context, Executor& executor,
                const std::vector<std::function<void()>>& functions) {
  ForEachBounded(context, executor, functions.size(), functions.size(), [&](std::size_t i) {
    functions[i]();
    return absl::OkStatus();
  });
}

}  // namespace nomad_harvester::runtime
