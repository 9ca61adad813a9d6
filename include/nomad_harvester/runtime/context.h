// SPDX-License-Identifier: Apache-2.0
// The first parameter of every call that can block: deadline, cancellation and write permits.
#ifndef NOMAD_HARVESTER_RUNTIME_CONTEXT_H_
#define NOMAD_HARVESTER_RUNTIME_CONTEXT_H_

#include <memory>
#include <optional>
#include <stop_token>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/runtime/clock.h"

#include "absl/status/status.h"

namespace nomad_harvester::runtime {

// Why work was cancelled; the clean-up depends on it.
enum class CancelReason {
  kNone,
  kClient,     // the RPC was cancelled or its connection closed
  kShutdown,   // the process is shutting down
  kTakenOver,  // a Scale takes over from background resumption
  kLeaseLost,  // another process holds the pool
};

// Permission to change something outside the process. The retry decorator of module http checks it
// before *each attempt* of a write; reads do not check it.
class WritePermit {
 public:
  virtual ~WritePermit() = default;
  // OK, or the error to return for the write. Thread-safe, does not block.
  virtual absl::Status Check() const = 0;
  // No single write attempt may take longer than this.
  virtual base::Duration AttemptLimit() const = 0;
  // For a permit that must know whether its writes may still take effect. Called once per write,
  // which includes all its attempts: before the first Check, and when the caller stops waiting.
  // `abandoned`: the last attempt was sent and got no reply, so it may take effect later.
  // Implementations are thread-safe and do not block.
  virtual void WriteBegan() const {}
  virtual void WriteEnded(bool /*abandoned*/) const {}
};

// A value type: copies share the cancellation. Children can only shorten the deadline and are
// cancelled with their parent. Thread-safe for concurrent reads.
class Context {
 public:
  // Without deadline, never cancelled, every write permitted. The clock must outlive the context.
  static Context Background(Clock& clock);

  [[nodiscard]] Context WithTimeout(base::Duration timeout) const;
  [[nodiscard]] Context WithDeadline(base::MonoTime deadline) const;
  // Writes with the resulting context need the permission of `permit` *and* of the context's
  // existing permits.
  [[nodiscard]] Context WithWritePermit(std::shared_ptr<const WritePermit> permit) const;

  Clock& clock() const { return *clock_; }
  std::stop_token stop_token() const;
  // nullopt: no deadline.
  std::optional<base::MonoTime> deadline() const { return deadline_; }
  // Time left, at least zero; Duration::max() without a deadline.
  base::Duration Remaining() const;

  CancelReason cancel_reason() const;
  // OK; CANCELLED (the message names the reason); DEADLINE_EXCEEDED.
  absl::Status Check() const;
  bool Done() const { return !Check().ok(); }

  // Sleeps, then returns Check(). Cancellation or the deadline ends the sleep immediately.
  absl::Status Sleep(base::Duration duration) const;

  // OK, or the reason why a write may not be sent now: runs Check(), then every permit, outermost
  // first.
  absl::Status CheckWrite() const;
  // The smallest AttemptLimit of the permits; Duration::max() without one.
  base::Duration WriteAttemptLimit() const;

 private:
  friend class CancelSource;
  friend class PendingWrite;
  struct CancelState;
  struct PermitChain;
  Context() = default;

  Clock* clock_ = nullptr;
  std::optional<base::MonoTime> deadline_;
  std::shared_ptr<CancelState> cancel_;
  std::shared_ptr<const PermitChain> permits_;
};

// Informs the permits of `context` about one write, with all its attempts, from construction to
// destruction. For one thread.
class PendingWrite {
 public:
  explicit PendingWrite(const Context& context);
  ~PendingWrite();
  PendingWrite(const PendingWrite&) = delete;
  PendingWrite& operator=(const PendingWrite&) = delete;

  // True if the last attempt was sent and got no reply.
  void SetAbandoned(bool abandoned) { abandoned_ = abandoned; }

 private:
  const std::shared_ptr<const Context::PermitChain> permits_;
  bool abandoned_ = false;
};

// Owns the right to cancel a context and all its children. Destroying it does not cancel.
class CancelSource {
 public:
  explicit CancelSource(const Context& parent);

  const Context& context() const { return context_; }
  // Only the first call sets the reason. Wakes all sleepers immediately. Thread-safe.
  void Cancel(CancelReason reason) const;

 private:
  Context context_;
};

}  // namespace nomad_harvester::runtime

#endif  // NOMAD_HARVESTER_RUNTIME_CONTEXT_H_
