// SPDX-License-Identifier: Apache-2.0
// Decides which requests are retried, and after how long, and how many are sent at a time.
#ifndef NOMAD_HARVESTER_HTTP_RETRY_H_
#define NOMAD_HARVESTER_HTTP_RETRY_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/metrics/sink.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/random.h"

#include "absl/status/status.h"

namespace nomad_harvester::http {

// Thread-safe. Taking a free slot does not read the clock. Waiting uses the system's steady clock:
// with a fake clock, a context still wakes on cancellation, and times out after its remaining time
// in real time.
class FifoSlots {
 public:
  // At least one slot.
  explicit FifoSlots(std::size_t count);

  // Blocks until a slot is free. OK, or the context's own status.
  absl::Status Acquire(const runtime::Context& context);
  void Release();
  // The number of waiting callers; for tests.
  std::size_t waiting() const;

 private:
  struct Waiter {
    bool served = false;
    base::CondVar changed;
  };

  mutable base::Mutex mutex_;
  std::size_t free_ NH_GUARDED_BY(mutex_);
  std::list<Waiter> waiters_ NH_GUARDED_BY(mutex_);
};

// True if a request is retried after this outcome. `permanently_refused` recognises a 429 or 5xx
// that another attempt cannot change (Harvester sends quota and MAC refusals as 500, and a webhook
// chooses the status of its denial); null: none.
//   no reply             retried if the request is idempotent, unless MarkFinal was called
//   429                  retried unless permanently_refused: the server did not act on it
//   500 502 503 504      retried if idempotent and not permanently_refused
//   everything else      not retried
bool ShouldRetry(const HttpRequest& request, const absl::StatusOr<HttpResponse>& outcome,
                 const std::function<bool(const HttpResponse&)>& permanently_refused);

// Marks an UNAVAILABLE that ShouldRetry does not retry: the caller has no more time for the server.
void MarkFinal(absl::Status* status);

// The wait that the server requests in seconds, at most 60 s. nullopt if there is none, or another
// text: neither Kubernetes nor Nomad sends a date.
std::optional<base::Duration> RetryAfter(const HttpResponse& response);

struct RetryOptions {
  int max_attempts = 4;
  // Full jitter: uniform in [0, min(cap, base * 2^n)). Added to the reply's Retry-After.
  base::Duration backoff_base = std::chrono::milliseconds(200);
  base::Duration backoff_cap = std::chrono::seconds(5);
  // Time limit of one attempt, without server_wait; the context's deadline also applies.
  base::Duration attempt_timeout = std::chrono::seconds(10);
  std::function<bool(const HttpResponse&)> permanently_refused;
  std::function<void()> on_retry = nullptr;  // before each attempt after the first; does not block
  // An attempt needs one slot of each, taken in this order. A blocking query (server_wait) needs
  // none, because it would hold its slots for minutes.
  std::vector<std::shared_ptr<FifoSlots>> slots{};
};

// A decorator. An attempt waits for its slots until the context ends (DEADLINE_EXCEEDED or
// CANCELLED); its time limit starts when it has them. A write then calls context.CheckWrite(),
// because the permit may have ended during the wait, and its attempt is limited to
// context.WriteAttemptLimit(); a permit's error is returned unchanged. The permits know of the
// write until Send returns (runtime::PendingWrite). An attempt that exceeds its time limit is
// UNAVAILABLE. A write that timed out is not repeated, because it may have taken effect. After the
// last attempt, if the context would end during the next wait, or if the reply's Retry-After is
// more than 3 s, the last outcome is returned; the text of an error then contains the number of
// attempts. The caller repeats the work later, and meanwhile does what other objects need (rules L1
// and L2).
std::shared_ptr<HttpTransport> WithRetry(std::shared_ptr<HttpTransport> inner, RetryOptions options,
                                         std::shared_ptr<runtime::Random> random,
                                         log::Logger logger);

// What all clients of one system share.
struct System {
  std::shared_ptr<HttpTransport> transport;  // with log and metrics
  RetryOptions retry;                        // without slots
  std::shared_ptr<FifoSlots> slots;          // of all limited transports together
  std::shared_ptr<runtime::Random> random;
  log::Logger logger;

  // Its requests wait for no slot.
  std::shared_ptr<HttpTransport> Urgent() const;
  // Sends at most `limit` requests at a time.
  std::shared_ptr<HttpTransport> Limited(std::size_t limit) const;
};
// `slots`: how many requests of all limited transports are sent at a time. `sink`, which may be
// null, is told each request and each retry.
System MakeSystem(const char* name, std::shared_ptr<HttpTransport> transport, RetryOptions retry,
                  std::size_t slots, std::shared_ptr<runtime::Random> random,
                  const log::Logger& logger, const std::shared_ptr<metrics::Sink>& sink);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_RETRY_H_
