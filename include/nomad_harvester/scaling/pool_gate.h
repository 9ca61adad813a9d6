// SPDX-License-Identifier: Apache-2.0
// Serializes the work on a pool within this process.
#ifndef NOMAD_HARVESTER_SCALING_POOL_GATE_H_
#define NOMAD_HARVESTER_SCALING_POOL_GATE_H_

#include <memory>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

// At most one Scale or one resumption at a time; a Scale takes over from a resumption (rule C11).
// Thread-safe. Must outlive its guards.
class PoolGate {
 public:
  // Permission to act, released by the destructor. Its context is cancelled when a Scale takes
  // over, or by Cancel and CancelResumption.
  class Guard {
   public:
    Guard(PoolGate& gate, const runtime::Context& parent) : gate_(gate), source_(parent) {}
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    const runtime::Context& context() const { return source_.context(); }
    void Cancel(runtime::CancelReason reason) const { source_.Cancel(reason); }
    // True for a Scale that has interrupted a resumption.
    bool has_interrupted() const { return has_interrupted_; }

   private:
    friend class PoolGate;
    PoolGate& gate_;
    runtime::CancelSource source_;
    bool has_interrupted_ = false;
  };

  // ABORTED: a Scale is running. Otherwise cancels a running resumption and waits, within
  // `context`, until it has ended. `context` becomes the parent of the guard's context.
  absl::StatusOr<std::unique_ptr<Guard>> EnterForScale(const runtime::Context& context);
  // Null if a Scale or resumption is running, or a Scale is waiting.
  std::unique_ptr<Guard> EnterForResumption(const runtime::Context& context);

  bool ScaleIsOpen() const;
  bool Busy() const;
  void Cancel(runtime::CancelReason reason);
  // Cancels a running resumption as a Scale would, without waiting for its end.
  void CancelResumption();
  // Waits until no guard exists; false if the context ended first.
  bool WaitUntilIdle(const runtime::Context& context);

 private:
  enum class User { kNobody, kResumption, kScale };
  void Leave();
  bool WaitForNobody(const runtime::Context& context) NH_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  User user_ NH_GUARDED_BY(mutex_) = User::kNobody;
  bool scale_waits_ NH_GUARDED_BY(mutex_) = false;
  const Guard* guard_ NH_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_GATE_H_
