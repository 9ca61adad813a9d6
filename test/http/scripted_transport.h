// A transport that answers as the test says and keeps what it was sent.
#ifndef NOMAD_HARVESTER_TEST_HTTP_SCRIPTED_TRANSPORT_H_
#define NOMAD_HARVESTER_TEST_HTTP_SCRIPTED_TRANSPORT_H_

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/transport.h"

namespace nomad_harvester::http {

inline HttpResponse Reply(int status, Headers headers = {}, std::string body = "") {
  HttpResponse response;
  response.status = status;
  response.headers = std::move(headers);
  response.body = std::move(body);
  return response;
}

// Thread-safe.
class ScriptedTransport final : public HttpTransport {
 public:
  using Outcome = absl::StatusOr<HttpResponse>;
  using Function = std::function<Outcome(const runtime::Context&, const HttpRequest&)>;

  explicit ScriptedTransport(Function function) : function_(std::move(function)) {}
  // The outcomes in order; the last one again and again.
  ScriptedTransport(std::initializer_list<Outcome> outcomes)
      : outcomes_(outcomes.begin(), outcomes.end()) {}

  Outcome Send(const runtime::Context& context, const HttpRequest& request) override {
    {
      const base::MutexLock lock(mutex_);
      requests_.push_back(request);
      remaining_.push_back(context.Remaining());
    }
    if (function_) return function_(context, request);
    const base::MutexLock lock(mutex_);
    Outcome outcome = outcomes_.front();
    if (outcomes_.size() > 1) outcomes_.pop_front();
    return outcome;
  }

  std::vector<HttpRequest> requests() const {
    const base::MutexLock lock(mutex_);
    return requests_;
  }
  // The time that each request was given.
  std::vector<base::Duration> remaining() const {
    const base::MutexLock lock(mutex_);
    return remaining_;
  }

 private:
  const Function function_;
  mutable base::Mutex mutex_;
  std::deque<Outcome> outcomes_ NH_GUARDED_BY(mutex_);
  std::vector<HttpRequest> requests_ NH_GUARDED_BY(mutex_);
  std::vector<base::Duration> remaining_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_TEST_HTTP_SCRIPTED_TRANSPORT_H_
