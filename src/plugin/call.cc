// SPDX-License-Identifier: Apache-2.0
#include "call.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace nomad_harvester::plugin {

std::optional<base::Duration> TimeGiven(gpr_timespec deadline) {
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return std::nullopt;
  // Uses gRPC's monotonic clock, so that changes of the wall clock have no effect.
  const gpr_timespec left = gpr_time_sub(gpr_convert_clock_type(deadline, GPR_CLOCK_MONOTONIC),
                                         gpr_now(GPR_CLOCK_MONOTONIC));
  if (gpr_time_cmp(left, gpr_inf_future(GPR_TIMESPAN)) == 0) return std::nullopt;
  // A caller's deadline may exceed the range of nanoseconds.
  constexpr std::int64_t kYear = 365LL * 24 * 3600;
  if (left.tv_sec > kYear) return std::nullopt;
  return std::max(
      base::Duration::zero(),
      std::chrono::seconds(left.tv_sec) + base::Duration(std::chrono::nanoseconds(left.tv_nsec)));
}

base::Duration TimeToWork(base::Duration given) {
  constexpr base::Duration kMaxForTheReply = std::chrono::milliseconds(250);
  return given - std::min(given / 10, kMaxForTheReply);
}

bool CallRegistry::Add(const std::shared_ptr<OpenRpc>& rpc) {
  base::MutexLock lock(mutex_);
  if (closed_) return false;
  open_.insert(rpc);
  return true;
}

void CallRegistry::Remove(const std::shared_ptr<OpenRpc>& rpc) {
  base::MutexLock lock(mutex_);
  open_.erase(rpc);
  if (open_.empty()) changed_.NotifyAll();
}

void CallRegistry::Close() {
  base::MutexLock lock(mutex_);
  closed_ = true;
}

void CallRegistry::EndAll(const grpc::Status& status) {
  std::vector<std::shared_ptr<OpenRpc>> open;
  {
    base::MutexLock lock(mutex_);
    open.assign(open_.begin(), open_.end());
  }
  // Without the lock, because End may lead to Remove.
  for (const std::shared_ptr<OpenRpc>& rpc : open) rpc->End(status);
}

std::size_t CallRegistry::WaitUntilNone(const runtime::Context& context) {
  const base::MonoTime until = context.deadline().value_or(base::MonoTime::max());
  base::MutexLock lock(mutex_);
  changed_.WaitUntil(mutex_, context.stop_token(), until,
                     [this]() NH_REQUIRES(mutex_) { return open_.empty(); });
  return open_.size();
}

}  // namespace nomad_harvester::plugin
