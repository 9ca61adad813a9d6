// SPDX-License-Identifier: Apache-2.0
// Stores the metrics, and serves them to Prometheus.
#ifndef NOMAD_HARVESTER_METRICS_ENDPOINT_H_
#define NOMAD_HARVESTER_METRICS_ENDPOINT_H_

#include <memory>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/metrics/sink.h"
#include "nomad_harvester/runtime/clock.h"

namespace nomad_harvester::metrics {

struct BuildInfo {
  std::string version;
  std::string commit;
};

// A sink with readable content. Thread-safe.
class Registry : public Sink {
 public:
  // Returns Prometheus' text format 0.0.4, without secrets (rule P3).
  virtual std::string Text() const = 0;
};
std::shared_ptr<Registry> MakeRegistry(const BuildInfo& build);

// The HTTP server: GET /metrics, one request per connection, a few concurrent connections. A client
// that is silent for a second is disconnected. Thread-safe.
class Endpoint {
 public:
  struct Options {
    runtime::Clock* clock = nullptr;  // the system clock; outlives the endpoint
    log::Logger logger;
    BuildInfo build;
    // The interval between attempts to listen, because another process may hold the port for a
    // while.
    base::Duration retry = std::chrono::seconds(5);
  };
  // Does not start the server; Serve does.
  explicit Endpoint(Options options);
  // Stops the server after its current requests.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Serves at `address` from now on, and stops serving at an earlier one: "IP:PORT", "[IPv6]:PORT"
  // or "localhost:PORT"; PORT 0: any. If only the address changes, counters keep their values. An
  // empty address stops the server, drops all counters and returns null. Does not wait until the
  // server listens. An unusable address is logged as one WARN and retried until it works.
  std::shared_ptr<Sink> Serve(const std::string& address);

  // The port on which the server listens; 0: not listening.
  int port() const;

 private:
  class Server;
  const Options options_;
  mutable base::Mutex mutex_;
  std::string address_ NH_GUARDED_BY(mutex_);
  std::shared_ptr<Registry> registry_ NH_GUARDED_BY(mutex_);
  std::unique_ptr<Server> server_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::metrics

#endif  // NOMAD_HARVESTER_METRICS_ENDPOINT_H_
