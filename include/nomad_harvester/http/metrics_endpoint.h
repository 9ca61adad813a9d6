// SPDX-License-Identifier: Apache-2.0
// Serves the metrics to Prometheus.
#ifndef NOMAD_HARVESTER_HTTP_METRICS_ENDPOINT_H_
#define NOMAD_HARVESTER_HTTP_METRICS_ENDPOINT_H_

#include <memory>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/metrics/registry.h"
#include "nomad_harvester/runtime/clock.h"

namespace nomad_harvester::http {

// GET /metrics, one request per connection, within the limits of ServerOptions. Thread-safe.
class MetricsEndpoint {
 public:
  struct Options {
    runtime::Clock* clock = nullptr;  // the system clock; outlives the endpoint
    log::Logger logger;
    metrics::BuildInfo build;
    // The interval between attempts to listen, because another process may hold the port for a
    // while.
    base::Duration retry = std::chrono::seconds(5);
  };
  // Does not start the server; Serve does.
  explicit MetricsEndpoint(Options options);
  // Stops the server.
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  // Serves at `address` from now on, and stops serving at an earlier one: "IP:PORT", "[IPv6]:PORT"
  // or "localhost:PORT"; PORT 0: any. If only the address changes, counters keep their values. An
  // empty address stops the server, drops all counters and returns null. Does not wait until the
  // server listens. An unusable address is logged as one WARN and retried until it works.
  std::shared_ptr<metrics::Sink> Serve(const std::string& address);

  // The port on which the server listens; 0: not listening.
  int port() const;

 private:
  class Listener;
  const Options options_;
  mutable base::Mutex mutex_;
  std::string address_ NH_GUARDED_BY(mutex_);
  std::shared_ptr<metrics::Registry> registry_ NH_GUARDED_BY(mutex_);
  std::unique_ptr<Listener> listener_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_METRICS_ENDPOINT_H_
