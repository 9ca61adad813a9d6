// SPDX-License-Identifier: Apache-2.0
// The first parameter of every call that can block: how long, whether still wanted, and whether
// it may write.
#ifndef NOMAD_HARVESTER_RUNTIME_CONTEXT_H_
#define NOMAD_HARVESTER_RUNTIME_CONTEXT_H_

#include <memory>
#include <optional>
#include <stop_token>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/runtime/clock.h"

#include "absl/status/status.h"

namespace nomad_harvester::runtime {

// Why work was cancelled: clean-up differs.
enum class CancelReason {
  kNone,
  kClient,     // the caller of the RPC went away
  kShutdown,   // the process is to end
  kTakenOver,  // a Scale takes over from background resumption
  kLeaseLost,  // another process holds the pool
};

// Permission to change something outside the process. The retry decorator of module http asks it
// before *each attempt* of a request that has an effect; reads never ask.
class WritePermit {
 public:
  virtual ~WritePermit() = default;
  // OK, or the status that the write ends with. Thread-safe, does not block.
  virtual absl::Status Check() const = 0;
  // No single write attempt may take longer than this.
  virtual base::Duration AttemptLimit() const = 0;
};

// A value: copies share the cancellation. Children can only shorten the deadline and are cancelled
// with their parent. Thread-safe for concurrent reads.
class Context {
 public:
  // Without deadline, never cancelled, every write permitted. The clock must outlive the context.
  static Context Background(Clock& clock);

  [[nodiscard]] Context WithTimeout(base::Duration timeout) const;
  [[nodiscard]] Context WithDeadline(base::MonoTime deadline) const;
  // Writes under the result need the permission of `permit` *and* of the permits already there.
  [[nodiscard]] Context WithWritePermit(std::shared_ptr<const WritePermit> permit) const;

  Clock& clock() const { return *clock_; }
  std::stop_token stop_token() const;
  // Nothing: no deadline.
  std::optional<base::MonoTime> deadline() const { return deadline_; }
  // Time left, at least zero; Duration::max() without a deadline.
  base::Duration Remaining() const;

  CancelReason cancel_reason() const;
  // OK; CANCELLED (the message names the reason); DEADLINE_EXCEEDED.
  absl::Status Check() const;
  bool Done() const { return !Check().ok(); }

  // Sleeps and returns Check(): returns early, at once, when cancelled or at the deadline.
  absl::Status Sleep(base::Duration duration) const;

  // OK, or why a write may not be sent now: Check(), then every permit, outermost first.
  absl::Status CheckWrite() const;
  // The smallest AttemptLimit of the permits; Duration::max() without one.
  base::Duration WriteAttemptLimit() const;

 private:
  friend class CancelSource;
  struct CancelState;
  struct PermitChain;
  Context() = default;

  Clock* clock_ = nullptr;
  std::optional<base::MonoTime> deadline_;
  std::shared_ptr<CancelState> cancel_;
  std::shared_ptr<const PermitChain> permits_;
};

// Owns the right to cancel a context and all its children. Destroying it does not cancel.
class CancelSource {
 public:
  explicit CancelSource(const Context& parent);

  const Context& context() const { return context_; }
  // The first reason stays. Wakes every sleeper at once. Thread-safe.
  void Cancel(CancelReason reason) const;

 private:
  Context context_;
};

}  // namespace nomad_harvester::runtime

#endif  // NOMAD_HARVESTER_RUNTIME_CONTEXT_H_
