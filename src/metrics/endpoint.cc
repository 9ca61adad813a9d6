// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/metrics/endpoint.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <exception>
#include <httplib.h>
#include <netdb.h>
#include <stop_token>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <utility>

namespace nomad_harvester::metrics {
namespace {

// Connections served concurrently; others wait. A scraper uses one.
constexpr std::size_t kThreads = 4;
// A scraper sends its request immediately; a client that is silent for longer is disconnected.
constexpr std::chrono::seconds kSilence(1);

struct Address {
  std::string host;
  int port = 0;
};

// The configuration has already checked the form.
Address ParseAddress(const std::string& text) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  Address address{.host = text.substr(0, colon)};
  if (colon < text.size()) {
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), address.port);
  }
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  // A numeric address needs no resolver; the C library's resolvers load shared objects.
  if (address.host == "localhost") address.host = "127.0.0.1";
  return address;
}

void Configure(httplib::Server& server, const Registry& registry) {
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(kSilence.count());
  server.set_read_timeout(kSilence);
  server.set_write_timeout(kSilence);
  server.set_payload_max_length(0);
  // Replaces the library's default, SO_REUSEPORT: two processes would share the port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.Get("/metrics", [&registry](const httplib::Request&, httplib::Response& response) {
    response.set_content(registry.Text(), "text/plain; version=0.0.4; charset=utf-8");
  });
  // The library would send the exception's text to the client.
  server.set_exception_handler([](const httplib::Request&, httplib::Response& response,
                                  const std::exception_ptr&) { response.status = 500; });
}

// The port, or the reason why it cannot listen.
struct Bound {
  int port = 0;
  std::error_code error{};
};

Bound Bind(httplib::Server& server, const Address& address) {
  errno = 0;
  const int port = address.port == 0 ? server.bind_to_any_port(address.host, AI_NUMERICHOST)
                   : server.bind_to_port(address.host, address.port, AI_NUMERICHOST) ? address.port
                                                                                     : -1;
  if (port > 0) return {.port = port};
  return {.error = {errno == 0 ? EADDRNOTAVAIL : errno, std::generic_category()}};
}

}  // namespace

// Listens on its own thread until destroyed.
class Endpoint::Server {
 public:
  Server(const Options& options, std::string address, std::shared_ptr<const Registry> registry)
      : options_(options),
        address_(std::move(address)),
        registry_(std::move(registry)),
        thread_([this](const std::stop_token& stop) {
          Run(stop);
          ended_ = true;
        }) {}

  ~Server() {
    thread_.request_stop();
    // The library's stop() has no effect before its loop has started, and must be called once.
    for (bool told = false; !ended_; std::this_thread::yield()) {
      const base::MutexLock lock(mutex_);
      if (told || listening_ == nullptr || !listening_->is_running()) continue;
      listening_->stop();
      told = true;
    }
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }

 private:
  void Run(const std::stop_token& stop) {
    const Address address = ParseAddress(address_);
    bool warned = false;
    while (!stop.stop_requested()) {
      httplib::Server server;  // not used again: one whose accept has failed may refuse to bind
      Configure(server, *registry_);
      const Bound bound = Bind(server, address);
      if (bound.error) {
        if (!std::exchange(warned, true)) {
          options_.logger.Warn(
              "Metrics cannot be served at metrics_address; trying again until they can",
              {{"metrics_address", address_}, {"error", bound.error.message()}});
        }
        if (!options_.clock->SleepUntil(options_.clock->Now() + options_.retry, stop)) return;
        continue;
      }
      options_.logger.Info("Serving metrics", {{"metrics_address", address_}});
      warned = false;
      SetListening(&server, bound.port);
      server.listen_after_bind();  // returns when stopped, or when accept fails
      SetListening(nullptr, 0);
    }
  }

  void SetListening(httplib::Server* server, int port) {
    const base::MutexLock lock(mutex_);
    listening_ = server;
    port_ = port;
  }

  const Options& options_;
  const std::string address_;
  const std::shared_ptr<const Registry> registry_;
  base::Mutex mutex_;
  httplib::Server* listening_ NH_GUARDED_BY(mutex_) = nullptr;
  std::atomic<int> port_ = 0;
  std::atomic<bool> ended_ = false;
  std::jthread thread_;  // last member: it uses the others
};

Endpoint::Endpoint(Options options) : options_(std::move(options)) {}

Endpoint::~Endpoint() = default;

std::shared_ptr<Sink> Endpoint::Serve(const std::string& address) {
  // Held while a server stops, so that two calls cannot serve at two addresses.
  const base::MutexLock lock(mutex_);
  if (address != address_) server_.reset();
  address_ = address;
  if (address.empty()) {
    registry_.reset();
    return nullptr;
  }
  if (registry_ == nullptr) registry_ = MakeRegistry(options_.build);
  if (server_ == nullptr) server_ = std::make_unique<Server>(options_, address, registry_);
  return registry_;
}

int Endpoint::port() const {
  const base::MutexLock lock(mutex_);
  return server_ == nullptr ? 0 : server_->port();
}

}  // namespace nomad_harvester::metrics
