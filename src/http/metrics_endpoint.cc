// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/metrics_endpoint.h"

#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/server.h"

namespace nomad_harvester::http {
namespace {

HttpResponse Answer(const HttpRequest& request, const metrics::Registry& registry) {
  HttpResponse reply;
  const std::string_view target = request.target;
  if (target.substr(0, target.find('?')) != "/metrics") {
    reply.status = 404;
  } else if (request.method != Method::kGet) {
    reply.status = 405;
  } else {
    reply.status = 200;
    reply.headers.Add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    reply.body = registry.Text();
  }
  return reply;
}

}  // namespace

// Listens from its construction until it is destroyed; tries again until it can.
class MetricsEndpoint::Listener {
 public:
  Listener(const Options& options, std::string address,
           std::shared_ptr<const metrics::Registry> registry)
      : options_(options),
        address_(std::move(address)),
        registry_(std::move(registry)),
        thread_([this](const std::stop_token& stop) { Listen(stop); }) {}

  int port() const {
    const base::MutexLock lock(mutex_);
    return server_ == nullptr ? 0 : server_->port();
  }

 private:
  void Listen(const std::stop_token& stop) {
    for (bool warned = false; !stop.stop_requested(); warned = true) {
      ServerOptions options;
      options.handler = [this](const HttpRequest& request) { return Answer(request, *registry_); };
      auto server = Server::Listen(address_, std::move(options));
      if (server.ok()) {
        options_.logger.Info("Serving metrics", {{"metrics_address", address_}});
        const base::MutexLock lock(mutex_);
        server_ = *std::move(server);
        return;
      }
      if (!warned) {
        options_.logger.Warn(
            "Metrics cannot be served at metrics_address; trying again until they can",
            {{"metrics_address", address_}, {"error", base::Message(server.status())}});
      }
      if (!options_.clock->SleepUntil(options_.clock->Now() + options_.retry, stop)) return;
    }
  }

  const Options& options_;
  const std::string address_;
  const std::shared_ptr<const metrics::Registry> registry_;
  mutable base::Mutex mutex_;
  std::unique_ptr<Server> server_ NH_GUARDED_BY(mutex_);
  std::jthread thread_;  // last member: it uses the others
};

MetricsEndpoint::MetricsEndpoint(Options options) : options_(std::move(options)) {}

MetricsEndpoint::~MetricsEndpoint() = default;

std::shared_ptr<metrics::Sink> MetricsEndpoint::Serve(const std::string& address) {
  // Held while a server stops, so that two calls cannot serve at two addresses.
  const base::MutexLock lock(mutex_);
  if (address != address_) listener_.reset();
  address_ = address;
  if (address.empty()) {
    registry_.reset();
    return nullptr;
  }
  if (registry_ == nullptr) registry_ = metrics::MakeRegistry(options_.build);
  if (listener_ == nullptr) listener_ = std::make_unique<Listener>(options_, address, registry_);
  return registry_;
}

int MetricsEndpoint::port() const {
  const base::MutexLock lock(mutex_);
  return listener_ == nullptr ? 0 : listener_->port();
}

}  // namespace nomad_harvester::http
