// SPDX-License-Identifier: Apache-2.0
#include "call_registry.h"

#include <vector>

namespace nomad_harvester::plugin {

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
  // Without the lock: End may lead to Remove.
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
