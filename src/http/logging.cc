// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "nomad_harvester/http/decorators.h"

#include "redact.h"

namespace nomad_harvester::http {
namespace {

class LoggingTransport final : public HttpTransport {
 public:
  LoggingTransport(std::shared_ptr<HttpTransport> inner, log::Logger logger)
      : inner_(std::move(inner)), logger_(std::move(logger)) {}

  absl::StatusOr<HttpResponse> Send(const runtime::Context& context,
                                    const HttpRequest& request) override {
    if (!logger_.Enabled(log::Level::kDebug)) return inner_->Send(context, request);
    const base::MonoTime begin = context.clock().Now();
    absl::StatusOr<HttpResponse> outcome = inner_->Send(context, request);
    Log(request, outcome, context.clock().Now() - begin);
    return outcome;
  }

 private:
  void Log(const HttpRequest& request, const absl::StatusOr<HttpResponse>& outcome,
           base::Duration duration) const {
    std::vector<log::Field> fields = {{"method", MethodName(request.method)},
                                      {"target", RedactTarget(request.target)},
                                      {"purpose", request.purpose},
                                      {"duration", duration}};
    if (outcome.ok()) {
      fields.emplace_back("status", outcome->status);
    } else {
      fields.emplace_back("error", outcome.status());
    }
    logger_.Log(log::Level::kDebug, "HTTP request", fields);
  }

  const std::shared_ptr<HttpTransport> inner_;
  const log::Logger logger_;
};

}  // namespace

std::shared_ptr<HttpTransport> WithLogging(std::shared_ptr<HttpTransport> inner, std::string system,
                                           const log::Logger& logger) {
  return std::make_shared<LoggingTransport>(std::move(inner), logger.With({{"system", system}}));
}

}  // namespace nomad_harvester::http
