// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/metrics/endpoint.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <httplib.h>
#include <netdb.h>
#include <poll.h>
#include <stop_token>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace nomad_harvester::metrics {
namespace {

// Of one connection, which serves one request: a client that says less in more time, or more, is
// cut off, because the next one waits. Prometheus' request has some 300 bytes.
constexpr base::Duration kConnectionLimit = std::chrono::seconds(2);
constexpr std::size_t kRequestLimit = 4096;
// And of one that has not sent its request yet, as soon as another waits: a scraper sends it at
// once, and connections that say nothing must not delay one.
constexpr base::Duration kSilentLimit = std::chrono::milliseconds(250);

struct Address {
  std::string host;
  int port = 0;
};

// The configuration has checked the form.
Address ParseAddress(const std::string& text) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  Address address{.host = text.substr(0, colon)};
  if (colon < text.size()) {
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), address.port);
  }
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  // A numeric address asks no resolver: those of the C library load shared objects.
  if (address.host == "localhost") address.host = "127.0.0.1";
  return address;
}

// A connection with limits, and with an end when the server stops. For one thread.
class BoundedStream final : public httplib::Stream {
 public:
  // `wake` becomes readable when the server stops, and `others` while another client waits.
  BoundedStream(socket_t socket, int wake, int others, runtime::Clock& clock)
      : socket_(socket), wake_(wake), others_(others), clock_(clock), since_(clock.Now()) {}

  bool is_readable() const override { return taken_ < filled_ || Await(POLLIN); }
  bool is_writable() const override { return Await(POLLOUT); }

  // The request is taken from a buffer of its greatest length; when that has been used up, the
  // connection counts as broken. The library asks for one byte after the other.
  ssize_t read(char* to, std::size_t size) override {
    if (taken_ == filled_) {
      if (filled_ == buffer_.size() || !Await(POLLIN)) return -1;
      const ssize_t got = recv(socket_, buffer_.data() + filled_, buffer_.size() - filled_, 0);
      if (got <= 0) return got;
      filled_ += static_cast<std::size_t>(got);
    }
    const std::size_t count = std::min(size, filled_ - taken_);
    std::memcpy(to, buffer_.data() + taken_, count);
    taken_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* from, std::size_t size) override {
    if (!Await(POLLOUT)) return -1;
    return send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // Nobody is told who asks.
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool Await(short what) const {
    for (;;) {
      const base::MonoTime now = clock_.Now();
      const bool may_be_silent = what != POLLIN || now - since_ < kSilentLimit;
      const base::Duration limit =
          what == POLLIN && may_be_silent ? kSilentLimit : kConnectionLimit;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(since_ + limit - now);
      if (left <= left.zero()) return false;
      std::array<pollfd, 3> wanted = {
          {{.fd = socket_, .events = what, .revents = 0},
           {.fd = wake_, .events = POLLIN, .revents = 0},
           {.fd = may_be_silent ? -1 : others_, .events = POLLIN, .revents = 0}}};
      const int ready = poll(wanted.data(), wanted.size(), static_cast<int>(left.count()));
      if (ready < 0 && errno != EINTR) return false;
      if (wanted[1].revents != 0) return false;
      if (wanted[0].revents != 0) return true;
      if (wanted[2].revents != 0) return false;
    }
  }

  const socket_t socket_;
  const int wake_;
  const int others_;
  runtime::Clock& clock_;
  const base::MonoTime since_;
  std::array<char, kRequestLimit> buffer_{};
  std::size_t filled_ = 0;
  std::size_t taken_ = 0;
};

// Serves in the thread that accepts. What comes meanwhile waits in the kernel.
class InAcceptingThread final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> serve) override { serve(); }
  void shutdown() override {}
};

}  // namespace

class Listener final : public httplib::Server {
 public:
  Listener(const Registry& registry, int wake, runtime::Clock& clock) : wake_(wake), clock_(clock) {
    new_task_queue = [] { return new InAcceptingThread; };
    set_payload_max_length(0);
    // Replaces the library's default, SO_REUSEPORT: two processes would share the port.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    Get("/metrics", [&registry](const httplib::Request&, httplib::Response& response) {
      response.set_content(registry.Text(), "text/plain; version=0.0.4; charset=utf-8");
    });
    // The library would tell the client what was thrown.
    set_exception_handler([](const httplib::Request&, httplib::Response& response,
                             const std::exception_ptr&) { response.status = 500; });
  }

  // OK, or why it cannot listen.
  std::error_code Bind(const Address& address) {
    errno = 0;
    if (bind_to_port(address.host, address.port, AI_NUMERICHOST)) return {};
    return {errno == 0 ? EADDRNOTAVAIL : errno, std::generic_category()};
  }

  int Port() const {
    sockaddr_storage bound{};
    socklen_t size = sizeof(bound);
    std::array<char, NI_MAXSERV> port{};
    if (getsockname(svr_sock_, reinterpret_cast<sockaddr*>(&bound), &size) != 0 ||
        getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, port.data(), port.size(),
                    NI_NUMERICSERV) != 0) {
      return 0;
    }
    int number = 0;
    std::from_chars(port.data(), port.data() + std::strlen(port.data()), number);
    return number;
  }

  // Of a listener that was bound and never listened.
  void Close() { close(svr_sock_.exchange(INVALID_SOCKET)); }

 private:
  bool process_and_close_socket(socket_t socket) override {
    bool closed = false;
    bool served = false;
    try {
      BoundedStream stream(socket, wake_, svr_sock_, clock_);
      served = process_request(stream, /*close_connection=*/true, closed,
                               // A part of the text would be no text of Prometheus.
                               [](httplib::Request& request) { request.ranges.clear(); });
    } catch (...) {
      // Nothing that a client says ends the process.
    }
    ::shutdown(socket, SHUT_RDWR);
    close(socket);
    return served;
  }

  const int wake_;
  runtime::Clock& clock_;
};

// Listens in a thread of its own until it is destroyed.
class Endpoint::Server {
 public:
  Server(const Options& options, std::string address, std::shared_ptr<const Registry> registry)
      : options_(options),
        address_(std::move(address)),
        registry_(std::move(registry)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        listener_(*registry_, wake_, *options.clock),
        thread_([this](const std::stop_token& stop) {
          Run(stop);
          ended_ = true;
        }) {}

  ~Server() {
    thread_.request_stop();
    const std::uint64_t one = 1;
    (void)!write(wake_, &one, sizeof(one));
    // The library's stop() has no effect before its loop has begun, and must be called once.
    for (bool told = false; !ended_; std::this_thread::yield()) {
      if (told || !listener_.is_running()) continue;
      listener_.stop();
      told = true;
    }
    thread_.join();
    close(wake_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }

 private:
  void Run(const std::stop_token& stop) {
    const Address address = ParseAddress(address_);
    bool warned = false;
    while (!stop.stop_requested()) {
      const std::error_code error = listener_.Bind(address);
      if (error) {
        if (!std::exchange(warned, true)) {
          options_.logger.Warn(
              "Metrics cannot be served at metrics_address; trying again until they can",
              {{"metrics_address", address_}, {"error", error.message()}});
        }
        if (!options_.clock->SleepUntil(options_.clock->Now() + options_.retry, stop)) return;
        continue;
      }
      if (stop.stop_requested()) return listener_.Close();
      port_ = listener_.Port();
      options_.logger.Info("Serving metrics", {{"metrics_address", address_}});
      warned = false;
      // Returns when it is stopped, or when accept fails: then it begins anew.
      listener_.listen_after_bind();
      port_ = 0;
    }
  }

  const Options& options_;
  const std::string address_;
  const std::shared_ptr<const Registry> registry_;
  const int wake_;
  Listener listener_;
  std::atomic<int> port_ = 0;
  std::atomic<bool> ended_ = false;
  std::jthread thread_;  // the last member: it uses the others
};

Endpoint::Endpoint(Options options) : options_(std::move(options)) {}

Endpoint::~Endpoint() = default;

std::shared_ptr<Sink> Endpoint::Serve(const std::string& address) {
  // Held while a server ends: two calls must not serve at two addresses.
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
