// SPDX-License-Identifier: Apache-2.0
// A transport that sends scripted replies and records the requests.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_SCRIPTED_TRANSPORT_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_SCRIPTED_TRANSPORT_H_

#include <deque>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/http/transport.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::support {

inline http::HttpResponse Reply(int status, http::Headers headers = {}, std::string body = "") {
  return http::HttpResponse{status, std::move(headers), std::move(body)};
}

// Replies in the order of Reply and Fail, then with the function; an unexpected request is an error
// that no test expects. Thread-safe; neither the function nor the hook is called under the lock.
class ScriptedTransport final : public http::HttpTransport {
 public:
  using Outcome = absl::StatusOr<http::HttpResponse>;
  using Function = std::function<Outcome(const runtime::Context&, const http::HttpRequest&)>;

  ScriptedTransport() = default;
  explicit ScriptedTransport(Function function) : otherwise_(std::move(function)) {}
  // The outcomes in order; the last one repeats.
  ScriptedTransport(std::initializer_list<Outcome> outcomes)
      : script_(outcomes.begin(), outcomes.end()), repeats_last_(true) {}

  void Reply(int status, std::string body, http::Headers headers = {}) {
    const base::MutexLock lock(mutex_);
    script_.push_back(support::Reply(status, std::move(headers), std::move(body)));
  }
  void Fail(absl::Status status) {
    const base::MutexLock lock(mutex_);
    script_.push_back(std::move(status));
  }
  // Handles every request that the script has no reply for.
  void Otherwise(Function function) { otherwise_ = std::move(function); }
  // Called for each request, before the reply.
  void OnSend(std::function<void()> hook) { hook_ = std::move(hook); }

  Outcome Send(const runtime::Context& context, const http::HttpRequest& request) override {
    if (absl::Status status = context.Check(); !status.ok()) return status;
    {
      const base::MutexLock lock(mutex_);
      requests_.push_back(request);
      remaining_.push_back(context.Remaining());
    }
    if (hook_) hook_();
    {
      const base::MutexLock lock(mutex_);
      if (!script_.empty()) {
        Outcome outcome = script_.front();
        if (!repeats_last_ || script_.size() > 1) script_.pop_front();
        return outcome;
      }
    }
    if (otherwise_) return otherwise_(context, request);
    return absl::DataLossError("the script has no reply for this request");
  }

  std::vector<http::HttpRequest> requests() const {
    const base::MutexLock lock(mutex_);
    return requests_;
  }
  std::vector<std::string> targets() const {
    std::vector<std::string> targets;
    for (const auto& request : requests()) targets.push_back(request.target);
    return targets;
  }
  // The remaining time of each request's context.
  std::vector<base::Duration> remaining() const {
    const base::MutexLock lock(mutex_);
    return remaining_;
  }
  bool done() const {
    const base::MutexLock lock(mutex_);
    return script_.empty();
  }

 private:
  Function otherwise_;
  std::function<void()> hook_;
  mutable base::Mutex mutex_;
  std::deque<Outcome> script_ NH_GUARDED_BY(mutex_);
  const bool repeats_last_ = false;
  std::vector<http::HttpRequest> requests_ NH_GUARDED_BY(mutex_);
  std::vector<base::Duration> remaining_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_SCRIPTED_TRANSPORT_H_
