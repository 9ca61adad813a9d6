// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/retry.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/decorators.h"
#include "nomad_harvester/runtime/wait.h"

#include "request_text.h"

namespace nomad_harvester::http {
namespace {

constexpr char kFinal[] = "nomad-harvester/final";
constexpr base::Duration kMaxRetryAfter = std::chrono::seconds(60);
// Four attempts then take about as long as a write without a reply.
constexpr base::Duration kLongestWaitHere = std::chrono::seconds(3);

// True if the server wants a wait during which the caller can do other work (rule L1).
bool WantsLongWait(const absl::StatusOr<HttpResponse>& outcome) {
  return outcome.ok() && RetryAfter(*outcome).value_or(base::Duration::zero()) > kLongestWaitHere;
}

bool IsFaultOfTheServer(int status) {
  return status == 500 || status == 502 || status == 503 || status == 504;
}

base::Duration SaturatingAdd(base::Duration a, base::Duration b) {
  return a > base::Duration::max() - b ? base::Duration::max() : a + b;
}

std::string Attempts(int count) {
  return count == 1 ? "1 attempt" : std::to_string(count) + " attempts";
}

// True if an attempt that was sent may still take effect, because no reply was seen.
bool IsUnanswered(const absl::Status& outcome) {
  return absl::IsCancelled(outcome) || absl::IsDeadlineExceeded(outcome) ||
         absl::IsUnavailable(outcome);
}

// Describes for people why the attempt is repeated.
std::string Cause(const absl::StatusOr<HttpResponse>& outcome) {
  return outcome.ok() ? "HTTP " + std::to_string(outcome->status) : base::Message(outcome.status());
}

// Releases a slot at the end of its attempt.
struct ReleaseSlot {
  void operator()(FifoSlots* slots) const { slots->Release(); }
};
using HeldSlots = std::vector<std::unique_ptr<FifoSlots, ReleaseSlot>>;

class RetryTransport final : public HttpTransport {
 public:
  RetryTransport(std::shared_ptr<HttpTransport> inner, RetryOptions options,
                 std::shared_ptr<runtime::Random> random, log::Logger logger)
      : inner_(std::move(inner)),
        options_(std::move(options)),
        random_(std::move(random)),
        logger_(std::move(logger)) {}

  absl::StatusOr<HttpResponse> Send(const runtime::Context& context,
                                    const HttpRequest& request) override {
    const bool writes = request.effect == Effect::kWrite;
    std::optional<runtime::PendingWrite> write;
    if (writes && !request.late_is_harmless) write.emplace(context);
    absl::Status last;  // status of the previous attempt, which had its full time limit
    for (int attempt = 1;; ++attempt) {
      HeldSlots slots;
      NH_RETURN_IF_ERROR(AwaitTurn(context, request, &slots));
      NH_RETURN_IF_ERROR(writes ? context.CheckWrite() : context.Check());
      absl::StatusOr<HttpResponse> outcome = SendOnce(context, request);
      const bool timed_out = absl::IsDeadlineExceeded(outcome.status()) && context.Check().ok();
      // The attempt's own limit has passed, not the caller's. The transport's text names host and
      // limit.
      if (timed_out) outcome = base::Unavailable(base::Message(outcome.status()));
      // The reply to a later attempt settles the earlier ones, which were the same request.
      if (write) write->SetAbandoned(IsUnanswered(outcome.status()));
      slots.clear();
      // A write that timed out is not repeated: its caller reads the result, and the pool must not
      // wait longer for one object (rule L1).
      if (writes && timed_out) return WithAttempts(std::move(outcome), attempt);
      if (!ShouldRetry(request, outcome, options_.permanently_refused)) {
        // The context's deadline ended this attempt early; the previous error is more informative.
        if (!absl::IsDeadlineExceeded(outcome.status()) || last.ok()) return outcome;
        return WithAttempts(base::MakeStatus(outcome.status().code(), base::Message(last)),
                            attempt);
      }
      const base::Duration wait = WaitAfter(attempt, outcome);
      // A wait beyond the context's end would only replace the real reason by "deadline".
      if (attempt >= options_.max_attempts || wait >= context.Remaining() ||
          WantsLongWait(outcome)) {
        return WithAttempts(std::move(outcome), attempt);
      }
      LogRetry(request, outcome, attempt, wait);
      if (absl::Status slept = context.Sleep(wait); !slept.ok()) {
        return EndedWhileWaiting(slept, request, outcome);
      }
      last = outcome.status();
      if (options_.on_retry) options_.on_retry();
    }
  }

 private:
  absl::Status AwaitTurn(const runtime::Context& context, const HttpRequest& request,
                         HeldSlots* held) const {
    if (request.server_wait > base::Duration::zero()) return absl::OkStatus();
    const base::Duration limit = context.Remaining();
    held->reserve(options_.slots.size());
    for (const std::shared_ptr<FifoSlots>& slots : options_.slots) {
      if (const absl::Status ended = slots->Acquire(context); !ended.ok()) {
        return base::Annotate(TimedOut(ended, limit, "waiting for other requests"),
                              RequestText(request));
      }
      held->emplace_back(slots.get());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<HttpResponse> SendOnce(const runtime::Context& context,
                                        const HttpRequest& request) {
    base::Duration limit = options_.attempt_timeout;
    if (request.effect == Effect::kWrite) limit = std::min(limit, context.WriteAttemptLimit());
    limit = SaturatingAdd(limit, request.server_wait);
    return inner_->Send(context.WithTimeout(limit), request);
  }

  // Full jitter spreads concurrent retries (AWS Architecture Blog, "Exponential Backoff And
  // Jitter"). It is added to the wait that the server requests.
  base::Duration WaitAfter(int attempt, const absl::StatusOr<HttpResponse>& outcome) const {
    base::Duration ceiling = options_.backoff_base;
    for (int i = 1; i < attempt && ceiling < options_.backoff_cap; ++i) ceiling *= 2;
    ceiling = std::min(ceiling, options_.backoff_cap);
    const auto jitter = std::chrono::duration_cast<base::Duration>(
        std::chrono::duration<double, std::nano>(ceiling) * random_->NextFraction());
    if (!outcome.ok()) return jitter;
    return RetryAfter(*outcome).value_or(base::Duration::zero()) + jitter;
  }

  static absl::StatusOr<HttpResponse> WithAttempts(absl::StatusOr<HttpResponse> outcome,
                                                   int attempts) {
    if (outcome.ok()) return outcome;
    return base::MakeStatus(outcome.status().code(),
                            base::Message(outcome.status()) + " (" + Attempts(attempts) + ")");
  }

  static absl::Status EndedWhileWaiting(const absl::Status& ended, const HttpRequest& request,
                                        const absl::StatusOr<HttpResponse>& outcome) {
    return base::MakeStatus(ended.code(),
                            RequestText(request) + ": " + base::Message(ended) +
                                ", while waiting to retry; the last attempt: " + Cause(outcome));
  }

  void LogRetry(const HttpRequest& request, const absl::StatusOr<HttpResponse>& outcome,
                int attempt, base::Duration wait) const {
    logger_.Debug("Retrying a request", {{"method", MethodName(request.method)},
                                         {"purpose", RequestText(request)},
                                         {"attempt", attempt},
                                         {"cause", Cause(outcome)},
                                         {"wait", wait}});
  }

  const std::shared_ptr<HttpTransport> inner_;
  const RetryOptions options_;
  const std::shared_ptr<runtime::Random> random_;
  const log::Logger logger_;
};

}  // namespace

bool ShouldRetry(const HttpRequest& request, const absl::StatusOr<HttpResponse>& outcome,
                 const std::function<bool(const HttpResponse&)>& permanently_refused) {
  const bool idempotent = request.idempotency == Idempotency::kIdempotent;
  // Only UNAVAILABLE may succeed on a retry; other codes are the caller's cancellation or deadline,
  // or permanent.
  if (!outcome.ok()) {
    return idempotent && absl::IsUnavailable(outcome.status()) &&
           !outcome.status().GetPayload(kFinal).has_value();
  }
  const bool asks_for_later = outcome->status == 429;
  if (!asks_for_later && !(idempotent && IsFaultOfTheServer(outcome->status))) return false;
  return !permanently_refused || !permanently_refused(*outcome);
}

void MarkFinal(absl::Status* status) { base::SetPayload(kFinal, "", status); }

std::optional<base::Duration> RetryAfter(const HttpResponse& response) {
  const std::optional<std::string> field = response.headers.Find("Retry-After");
  if (!field) return std::nullopt;
  const std::string_view text = base::TrimAsciiSpace(*field);
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return std::nullopt;
  // A number that overflows ParseInt also means a long wait.
  const absl::StatusOr<std::int64_t> seconds = base::ParseInt(text);
  if (!seconds.ok() || *seconds > 60) return kMaxRetryAfter;
  return std::chrono::seconds(*seconds);
}

std::shared_ptr<HttpTransport> WithRetry(std::shared_ptr<HttpTransport> inner, RetryOptions options,
                                         std::shared_ptr<runtime::Random> random,
                                         log::Logger logger) {
  return std::make_shared<RetryTransport>(std::move(inner), std::move(options), std::move(random),
                                          std::move(logger));
}

std::shared_ptr<HttpTransport> System::Urgent() const {
  return WithRetry(transport, retry, random, logger);
}

std::shared_ptr<HttpTransport> System::Limited(std::size_t limit) const {
  RetryOptions limited = retry;
  // Takes its own slot first: a request that waits for it then holds none of the shared slots.
  limited.slots = {std::make_shared<FifoSlots>(limit), slots};
  return WithRetry(transport, std::move(limited), random, logger);
}

System MakeSystem(const char* name, std::shared_ptr<HttpTransport> transport, RetryOptions retry,
                  std::size_t slots, std::shared_ptr<runtime::Random> random,
                  const log::Logger& logger, const std::shared_ptr<metrics::Sink>& sink) {
  if (sink != nullptr) {
    sink->Add(metrics::Metric::kApiRetries, {name}, 0);
    retry.on_retry = [sink, name] { sink->Add(metrics::Metric::kApiRetries, {name}, 1); };
  }
  return {.transport = WithLogAndMetrics(std::move(transport), name, logger, sink),
          .retry = std::move(retry),
          .slots = std::make_shared<FifoSlots>(slots),
          .random = std::move(random),
          .logger = logger};
}

FifoSlots::FifoSlots(std::size_t count) : free_(std::max<std::size_t>(count, 1)) {}

absl::Status FifoSlots::Acquire(const runtime::Context& context) {
  const base::MutexLock lock(mutex_);
  // Release() hands a slot to the first waiter directly, so a free slot means that no caller waits.
  if (free_ > 0) {
    --free_;
    return absl::OkStatus();
  }
  waiters_.emplace_back();
  const auto self = std::prev(waiters_.end());
  // A slot that is assigned at the moment of cancellation is kept: the caller's next check detects
  // the cancellation.
  const bool served =
      runtime::WaitFor(context, self->changed, mutex_, [&] { return self->served; });
  waiters_.erase(self);
  return served ? absl::OkStatus() : context.Check();
}

void FifoSlots::Release() {
  const base::MutexLock lock(mutex_);
  for (Waiter& waiter : waiters_) {
    if (waiter.served) continue;
    waiter.served = true;
    waiter.changed.NotifyOne();
    return;
  }
  ++free_;
}

std::size_t FifoSlots::waiting() const {
  const base::MutexLock lock(mutex_);
  return waiters_.size();
}

}  // namespace nomad_harvester::http
