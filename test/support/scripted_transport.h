// A transport that answers from a script and keeps what it was asked. In one thread.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_SCRIPTED_TRANSPORT_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_SCRIPTED_TRANSPORT_H_

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/http/transport.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::support {

// Answers in the order of Reply and Fail; a request too many is an error that no test expects.
class ScriptedTransport final : public http::HttpTransport {
 public:
  void Reply(int status, std::string body, http::Headers headers = {}) {
    script_.push_back(http::HttpResponse{status, std::move(headers), std::move(body)});
  }
  void Fail(absl::Status status) { script_.push_back(std::move(status)); }
  // Answers every request that the script has no reply for.
  using Function = std::function<absl::StatusOr<http::HttpResponse>(const http::HttpRequest&)>;
  void Otherwise(Function function) { otherwise_ = std::move(function); }
  // Called with each request, before it is answered.
  void OnSend(std::function<void()> hook) { hook_ = std::move(hook); }

  absl::StatusOr<http::HttpResponse> Send(const runtime::Context& context,
                                          const http::HttpRequest& request) override {
    if (absl::Status status = context.Check(); !status.ok()) return status;
    requests_.push_back(request);
    if (hook_) hook_();
    if (script_.empty() && otherwise_) return otherwise_(request);
    if (script_.empty()) return absl::DataLossError("the script has no reply for this request");
    auto reply = std::move(script_.front());
    script_.pop_front();
    return reply;
  }

  const std::vector<http::HttpRequest>& requests() const { return requests_; }
  std::vector<std::string> targets() const {
    std::vector<std::string> targets;
    for (const auto& request : requests_) targets.push_back(request.target);
    return targets;
  }
  bool done() const { return script_.empty(); }

 private:
  std::deque<absl::StatusOr<http::HttpResponse>> script_;
  Function otherwise_;
  std::vector<http::HttpRequest> requests_;
  std::function<void()> hook_;
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_SCRIPTED_TRANSPORT_H_
