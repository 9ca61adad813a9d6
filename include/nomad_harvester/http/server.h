// SPDX-License-Identifier: Apache-2.0
// A plain HTTP/1.1 server with limits: for the metrics and the simulator.
#ifndef NOMAD_HARVESTER_HTTP_SERVER_H_
#define NOMAD_HARVESTER_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/http/message.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::http {

struct ServerOptions {
  // Answers a request. After an error the reply ends too early, as that of a server that dies.
  std::function<absl::StatusOr<HttpResponse>(const HttpRequest&)> handler;
  // The threads that call it; 0: the server's only thread, for a handler that does not block.
  std::size_t threads = 0;
  // If one more connects, the oldest is closed whose request is not being handled.
  std::size_t connections = 32;
  // Request line and header, without the body.
  std::size_t header_bytes = 8192;
  std::size_t body_bytes = 0;
  // For a request with its reply; with keep_alive for each of them, and for the pause before it.
  base::Duration time_limit = std::chrono::seconds(5);
  bool keep_alive = false;
};

// Refuses what is larger, and chunked bodies. Thread-safe.
class Server {
 public:
  // `address`: "IP:PORT", "[IPv6]:PORT" or "localhost:PORT"; PORT 0: any. UNAVAILABLE with the
  // system's reason if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<Server>> Listen(const std::string& address,
                                                        ServerOptions options);
  // Closes all connections; waits for handlers.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_SERVER_H_
