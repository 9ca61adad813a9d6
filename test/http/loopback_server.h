// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server on the loopback with scripted replies and faults.
#ifndef NOMAD_HARVESTER_TEST_HTTP_LOOPBACK_SERVER_H_
#define NOMAD_HARVESTER_TEST_HTTP_LOOPBACK_SERVER_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/http/message.h"

#include "http/test_certificates.h"

namespace nomad_harvester::http {

struct ServerRequest {
  std::string method;
  std::string target;
  Headers headers;
  std::string body;
  int connection = 0;  // 1 is the first accepted one
};

struct ServerReply {
  int status = 200;
  Headers headers{};
  std::string body{};
  bool chunked = false;
  // Closes the connection after this many bytes of the body; Content-Length has the full length.
  std::optional<std::size_t> cut_after{};
  // Sends only this many bytes of the body and keeps the connection open.
  std::optional<std::size_t> stall_after{};
  bool close_after = false;
  // Sent instead of all of the above; then the connection is closed.
  std::optional<std::string> raw{};
  // Never sends anything.
  bool silent = false;
};

struct LoopbackOptions {
  std::string unix_path{};  // empty: TCP on 127.0.0.1
  std::optional<PemPair> tls{};
  std::string client_ca_pem{};  // not empty: a client certificate of this CA is required
  int highest_tls_version = 0;  // of OpenSSL's constants; 0: any
  bool close_on_accept = false;
  std::string greeting{};  // sent to every client on connect; then the connection is closed
};

// Serves from construction to destruction, one thread per connection. Thread-safe.
class LoopbackServer {
 public:
  // May block (a slow server), but must return before the server is destroyed.
  using Handler = std::function<ServerReply(const ServerRequest&)>;

  explicit LoopbackServer(Handler handler, const LoopbackOptions& options = {});
  explicit LoopbackServer(ServerReply reply, const LoopbackOptions& options = {});
  ~LoopbackServer();
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  // "http://127.0.0.1:1234", "https://…" or "unix:///…".
  const std::string& url() const { return url_; }
  // "127.0.0.1:1234".
  std::string authority() const;
  int port() const { return port_; }

  int connections() const;  // accepted so far
  std::vector<ServerRequest> requests() const;
  std::string last_sni() const;
  // Block until `count` requests have been read, or `count` connections have ended.
  void AwaitRequests(std::size_t count) const;
  void AwaitEnded(int count) const;
  // Says this on every open connection, unasked. Not with TLS.
  void Interject(const std::string& text) const;
  // Ends every open connection.
  void HangUp() const;

 private:
  class Connection;
  struct FreeContext;

  void Listen(const LoopbackOptions& options);
  void SetUpTls(const LoopbackOptions& options);
  void AcceptLoop();
  void Serve(int fd, int number);
  void Exchange(Connection& connection, int number);
  bool Answer(Connection& connection, const ServerReply& reply) const;

  const Handler handler_;
  const bool close_on_accept_;
  const std::string greeting_;
  std::shared_ptr<void> tls_;  // SSL_CTX
  int listener_ = -1;
  int port_ = 0;
  std::string url_;

  mutable base::Mutex mutex_;
  mutable base::CondVar changed_;
  bool stopping_ NH_GUARDED_BY(mutex_) = false;
  int accepted_ NH_GUARDED_BY(mutex_) = 0;
  int ended_ NH_GUARDED_BY(mutex_) = 0;
  std::set<int> open_ NH_GUARDED_BY(mutex_);
  std::vector<ServerRequest> requests_ NH_GUARDED_BY(mutex_);
  std::string sni_ NH_GUARDED_BY(mutex_);
  std::list<std::jthread> threads_;  // of the accepting thread
  std::jthread acceptor_;
};

// A port on the loopback without a listener.
int ClosedPort();

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_TEST_HTTP_LOOPBACK_SERVER_H_
