// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/http/retry.h"

namespace nomad_harvester::http {
namespace {

constexpr base::Duration kLongestRetryAfter = std::chrono::seconds(60);

bool IsFaultOfTheServer(int status) {
  return status == 500 || status == 502 || status == 503 || status == 504;
}

}  // namespace

RetryDecision DecideRetry(const HttpRequest& request, const absl::StatusOr<HttpResponse>& outcome,
                          const std::function<bool(const HttpResponse&)>& permanently_refused) {
  const RetryDecision if_idempotent = request.idempotency == Idempotency::kIdempotent
                                          ? RetryDecision::kRetry
                                          : RetryDecision::kDone;
  if (!outcome.ok()) {
    // Only UNAVAILABLE may succeed on a retry: the other codes are the caller's cancellation or
    // deadline, or permanent.
    return absl::IsUnavailable(outcome.status()) ? if_idempotent : RetryDecision::kDone;
  }
  if (outcome->status == 429) return RetryDecision::kRetry;
  if (!IsFaultOfTheServer(outcome->status)) return RetryDecision::kDone;
  if (permanently_refused && permanently_refused(*outcome)) return RetryDecision::kDone;
  return if_idempotent;
}

std::optional<base::Duration> RetryAfter(const HttpResponse& response) {
  const std::optional<std::string> field = response.headers.Find("Retry-After");
  if (!field) return std::nullopt;
  const std::string_view text = base::TrimAsciiSpace(*field);
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  if (digits) {
    // A number that overflows ParseInt also means a long wait.
    const absl::StatusOr<std::int64_t> seconds = base::ParseInt(text);
    if (!seconds.ok() || *seconds > 60) return kLongestRetryAfter;
    return std::chrono::seconds(*seconds);
  }
  const absl::StatusOr<base::WallTime> date = base::ParseHttpDate(text);
  const std::optional<base::WallTime> now = ServerDate(response);
  if (!date.ok() || !now) return std::nullopt;
  if (*date <= *now) return base::Duration::zero();
  return std::min<base::Duration>(*date - *now, kLongestRetryAfter);
}

}  // namespace nomad_harvester::http
