// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/runtime/context.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::runtime {
namespace {

using base::Duration;
using base::MonoTime;

// now + duration; MonoTime::max() instead of an overflow.
MonoTime Later(MonoTime now, Duration duration) {
  if (duration > Duration::zero() && now > MonoTime::max() - duration) return MonoTime::max();
  return now + duration;
}

std::string_view Describe(CancelReason reason) {
  constexpr std::array<std::string_view, 5> kTexts = {
      "cancelled", "cancelled: the caller cancelled the call or disconnected",
      "cancelled: the process is ending", "cancelled: another action took over",
      "cancelled: the pool's Lease was lost"};
  return kTexts[static_cast<std::size_t>(reason)];
}

}  // namespace

struct Context::CancelState {
  // Links the new state to `outer`. Not a constructor, because the callback needs a weak_ptr.
  static std::shared_ptr<CancelState> Make(std::shared_ptr<CancelState> outer) {
    auto state = std::make_shared<CancelState>();
    if (outer == nullptr) return state;
    state->parent = std::move(outer);
    // The callback owns the state while it runs. Therefore a thread that drops the last context,
    // including one woken by this cancellation, neither frees the state under the callback nor
    // waits for the callback. If the callback itself is the last owner, it destroys its own
    // stop_callback, which does not wait in that case.
    state->link.emplace(state->parent->source.get_token(),
                        Follow{std::weak_ptr<CancelState>(state)});
    return state;
  }

  void Cancel(CancelReason why) {
    CancelReason none = CancelReason::kNone;
    // Before the stop request, so that a woken thread finds the reason.
    reason.compare_exchange_strong(none, why);
    source.request_stop();
  }

  struct Follow {
    std::weak_ptr<CancelState> child;
    void operator()() const {
      const std::shared_ptr<CancelState> state = child.lock();
      if (state != nullptr) state->Cancel(state->parent->reason.load());
    }
  };

  std::stop_source source;
  std::atomic<CancelReason> reason{CancelReason::kNone};
  std::shared_ptr<CancelState> parent;
  std::optional<std::stop_callback<Follow>> link;  // destroyed first
};

struct Context::PermitChain {
  std::shared_ptr<const WritePermit> permit;
  std::shared_ptr<const PermitChain> outer;

  absl::Status Check() const {
    if (outer != nullptr) NH_RETURN_IF_ERROR(outer->Check());
    return permit->Check();
  }
};

Context Context::Background(Clock& clock) {
  Context context;
  context.clock_ = &clock;
  return context;
}

Context Context::WithTimeout(Duration timeout) const {
  if (timeout == Duration::max()) return *this;
  return WithDeadline(Later(clock_->Now(), timeout));
}

Context Context::WithDeadline(MonoTime deadline) const {
  Context child = *this;
  child.deadline_ = deadline_ ? std::min(*deadline_, deadline) : deadline;
  return child;
}

Context Context::WithWritePermit(std::shared_ptr<const WritePermit> permit) const {
  Context child = *this;
  child.permits_ = std::make_shared<const PermitChain>(PermitChain{std::move(permit), permits_});
  return child;
}

std::stop_token Context::stop_token() const {
  return cancel_ == nullptr ? std::stop_token() : cancel_->source.get_token();
}

Duration Context::Remaining() const {
  if (!deadline_) return Duration::max();
  const MonoTime now = clock_->Now();
  return *deadline_ <= now ? Duration::zero() : *deadline_ - now;
}

CancelReason Context::cancel_reason() const {
  return cancel_ == nullptr ? CancelReason::kNone : cancel_->reason.load();
}

absl::Status Context::Check() const {
  // The reason is set just before the stop request; a Cancel(kNone) makes only the stop request.
  const CancelReason reason = cancel_reason();
  if (reason != CancelReason::kNone || stop_token().stop_requested()) {
    return base::MakeStatus(absl::StatusCode::kCancelled, Describe(reason));
  }
  if (deadline_ && clock_->Now() >= *deadline_) {
    return base::MakeStatus(absl::StatusCode::kDeadlineExceeded, "the deadline has passed");
  }
  return absl::OkStatus();
}

absl::Status Context::Sleep(Duration duration) const {
  NH_RETURN_IF_ERROR(Check());
  MonoTime until = Later(clock_->Now(), duration);
  if (deadline_) until = std::min(until, *deadline_);
  clock_->SleepUntil(until, stop_token());
  return Check();
}

absl::Status Context::CheckWrite() const {
  NH_RETURN_IF_ERROR(Check());
  return permits_ == nullptr ? absl::OkStatus() : permits_->Check();
}

Duration Context::WriteAttemptLimit() const {
  Duration limit = Duration::max();
  for (const PermitChain* link = permits_.get(); link != nullptr; link = link->outer.get()) {
    limit = std::min(limit, link->permit->AttemptLimit());
  }
  return limit;
}

PendingWrite::PendingWrite(const Context& context) : permits_(context.permits_) {
  for (const auto* link = permits_.get(); link != nullptr; link = link->outer.get()) {
    link->permit->WriteBegan();
  }
}

PendingWrite::~PendingWrite() {
  for (const auto* link = permits_.get(); link != nullptr; link = link->outer.get()) {
    link->permit->WriteEnded(abandoned_);
  }
}

CancelSource::CancelSource(const Context& parent) : context_(parent) {
  context_.cancel_ = Context::CancelState::Make(parent.cancel_);
}

void CancelSource::Cancel(CancelReason reason) const { context_.cancel_->Cancel(reason); }

}  // namespace nomad_harvester::runtime
