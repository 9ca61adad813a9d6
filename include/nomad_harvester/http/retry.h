// SPDX-License-Identifier: Apache-2.0
// What is tried again, and how far apart.
#ifndef NOMAD_HARVESTER_HTTP_RETRY_H_
#define NOMAD_HARVESTER_HTTP_RETRY_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/random.h"

namespace nomad_harvester::http {

enum class RetryDecision { kDone, kRetry };

// The one table of what is retried and why. `permanently_refused` recognises a 5xx that only looks
// like a fault of the server (Harvester's quota and MAC refusals arrive as 500); null: none.
//   no answer            retried if the request is idempotent
//   429                  retried always: the server did not act on it
//   500 502 503 504      retried if idempotent and not permanently_refused
//   everything else      an answer
RetryDecision DecideRetry(const HttpRequest& request, const absl::StatusOr<HttpResponse>& outcome,
                          const std::function<bool(const HttpResponse&)>& permanently_refused);

// The wait that the server asks for: seconds or an HTTP date (measured against the reply's own Date
// header). Nothing if there is none or it cannot be read; at most 60 s.
std::optional<base::Duration> RetryAfter(const HttpResponse& response);

struct RetryOptions {
  int max_attempts = 4;
  // Full jitter: a uniform part of min(cap, base * 2^n). It is added to the reply's Retry-After.
  base::Duration backoff_base = std::chrono::milliseconds(200);
  base::Duration backoff_cap = std::chrono::seconds(5);
  // The time limit of one attempt, server_wait aside; never outlives the context.
  base::Duration attempt_timeout = std::chrono::seconds(10);
  std::function<bool(const HttpResponse&)> permanently_refused;
};

// A decorator. For a request with an effect it asks context.CheckWrite() before each attempt, and
// limits the attempt by context.WriteAttemptLimit(); a permit's refusal is returned as it is. An
// attempt that ends by its own limit is UNAVAILABLE. When the attempts are used up, or the context
// would not outlive the next wait, the last outcome is returned; an error's text then says how many
// attempts there were.
std::shared_ptr<HttpTransport> WithRetry(std::shared_ptr<HttpTransport> inner, RetryOptions options,
                                         std::shared_ptr<runtime::Random> random,
                                         log::Logger logger);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_RETRY_H_
