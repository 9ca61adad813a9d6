// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/server.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <list>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Parser = beast::http::request_parser<beast::http::string_body>;

// Without free descriptors no connection can be accepted.
constexpr std::chrono::seconds kAcceptAgain(1);

std::string Text(beast::string_view view) { return {view.data(), view.size()}; }

std::optional<Method> MethodNamed(std::string_view name) {
  for (const Method method :
       {Method::kGet, Method::kPost, Method::kPut, Method::kPatch, Method::kDelete}) {
    if (MethodName(method) == name) return method;
  }
  return std::nullopt;
}

// The status of a request that cannot be read; 0: the client has gone, or is too slow.
int StatusOf(const error_code& error) {
  using Error = beast::http::error;
  if (error.category() != beast::http::make_error_code(Error::bad_method).category()) return 0;
  if (error == Error::end_of_stream || error == Error::partial_message) return 0;
  if (error == Error::body_limit) return 413;
  if (error == Error::header_limit || error == Error::buffer_overflow) return 431;
  return 400;
}

absl::StatusOr<Tcp::endpoint> EndpointOf(const std::string& text) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  // A numeric address needs no resolver; the C library's resolvers load shared objects.
  if (host == "localhost") host = "127.0.0.1";
  error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  const auto port = base::ParseInt(std::string_view(text).substr(std::min(colon + 1, text.size())));
  if (error || !port.ok()) return base::Unavailable("\"" + text + "\" is no address");
  return Tcp::endpoint(address, static_cast<std::uint16_t>(*port));
}

}  // namespace

// One thread reads and writes; it alone uses the members, except for handlers on other threads.
class Server::Impl {
 public:
  explicit Impl(ServerOptions options) : options_(std::move(options)) {
    if (options_.threads > 0) handlers_.emplace(options_.threads);
  }
  ~Impl() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
    if (!handlers_) return;
    handlers_->stop();
    handlers_->join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  absl::Status Start(const Tcp::endpoint& endpoint) {
    error_code error;
    (void)acceptor_.open(endpoint.protocol(), error);
    if (!error) (void)acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) (void)acceptor_.bind(endpoint, error);
    if (!error) (void)acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    if (error) return base::Unavailable(error.message());
    Accept();
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  int port() const { return port_; }

 private:
  class Connection;

  void Run() {
    for (;;) {
      try {
        if (!accepting_) Accept();
        io_.run();
        return;
      } catch (const std::exception&) {  // no memory: the connection that needed it is closed
      }
    }
  }

  void Accept() {
    acceptor_.async_accept([this](const error_code& error, Tcp::socket socket) {
      accepting_ = false;
      if (error) {
        accept_again_.expires_after(kAcceptAgain);
        accept_again_.async_wait([this](const error_code&) {
          accepting_ = false;
          Accept();
        });
        accepting_ = true;
        return;
      }
      Accept();
      Serve(std::move(socket));
    });
    accepting_ = true;
  }
  void Serve(Tcp::socket socket);

  const ServerOptions options_;
  std::list<Connection*> connections_;  // the one that has waited for longest is the first
  asio::io_context io_{1};
  Tcp::acceptor acceptor_{io_};
  asio::steady_timer accept_again_{io_};
  std::optional<asio::thread_pool> handlers_;
  bool accepting_ = false;  // or waiting to accept again
  int port_ = 0;
  std::thread thread_;
};

// Lives as long as an operation on it does.
class Server::Impl::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Impl& server, Tcp::socket socket)
      : server_(server),
        stream_(std::move(socket)),
        buffer_(server.options_.header_bytes),
        place_(server.connections_.insert(server.connections_.end(), this)) {}
  ~Connection() { server_.connections_.erase(place_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool handling() const { return handling_; }
  bool open() const { return stream_.socket().is_open(); }

  void Read() {
    server_.connections_.splice(server_.connections_.end(), server_.connections_, place_);
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(server_.options_.header_bytes));
    parser_->body_limit(server_.options_.body_bytes);
    stream_.expires_after(server_.options_.time_limit);
    beast::http::async_read(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](
                                const error_code& error, std::size_t) { self->Handle(error); });
  }

  // Ends what is waited for.
  void Close() {
    error_code ignored;
    (void)stream_.socket().shutdown(Tcp::socket::shutdown_both, ignored);
    (void)stream_.socket().close(ignored);
  }

 private:
  void Handle(const error_code& error) {
    if (error) return Refuse(StatusOf(error));
    if (parser_->chunked()) return Refuse(411);
    const auto message = parser_->release();
    const auto method = MethodNamed(Text(message.method_string()));
    if (!method) return Refuse(405);
    keep_alive_ = server_.options_.keep_alive && message.keep_alive();
    HttpRequest request;
    request.method = *method;
    request.target = Text(message.target());
    request.body = message.body();
    for (const auto& field : message) {
      request.headers.Add(Text(field.name_string()), Text(field.value()));
    }
    if (!server_.handlers_) return Write(Answer(request));
    handling_ = true;
    asio::post(*server_.handlers_,
               [self = this->shared_from_this(), request = std::move(request)]() mutable {
                 auto reply = self->Answer(request);
                 asio::io_context& io = self->server_.io_;
                 asio::post(io, [self = std::move(self), reply = std::move(reply)]() mutable {
                   self->handling_ = false;
                   self->Write(std::move(reply));
                 });
               });
  }

  absl::StatusOr<HttpResponse> Answer(const HttpRequest& request) const {
    try {
      return server_.options_.handler(request);
    } catch (const std::exception& e) {
      return base::Internal(e.what());
    }
  }

  void Refuse(int status) {
    keep_alive_ = false;
    if (status == 0) return Close();
    HttpResponse reply;
    reply.status = status;
    Write(std::move(reply));
  }

  void Write(absl::StatusOr<HttpResponse> reply) {
    message_ = {};
    if (reply.ok()) {
      message_.result(static_cast<unsigned>(reply->status));
      for (const auto& [name, value] : reply->headers.fields()) message_.insert(name, value);
      message_.body() = std::move(reply->body);
      message_.prepare_payload();
    } else {
      keep_alive_ = false;
      message_.content_length(1);
    }
    message_.keep_alive(keep_alive_);
    if (keep_alive_) stream_.expires_after(server_.options_.time_limit);
    beast::http::async_write(
        stream_, message_, [self = this->shared_from_this()](const error_code& error, std::size_t) {
          error || !self->keep_alive_ ? self->Close() : self->Read();
        });
  }

  Impl& server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;  // also limits what a chunk's header takes
  const std::list<Connection*>::iterator place_;
  std::optional<Parser> parser_;
  beast::http::response<beast::http::string_body> message_;
  bool handling_ = false;
  bool keep_alive_ = false;
};

void Server::Impl::Serve(Tcp::socket socket) {
  std::size_t open = 0;
  Connection* oldest = nullptr;
  for (Connection* connection : connections_) {
    if (!connection->open()) continue;
    ++open;
    if (oldest == nullptr && !connection->handling()) oldest = connection;
  }
  if (open >= options_.connections) {
    if (oldest == nullptr) return;
    oldest->Close();
  }
  error_code ignored;
  (void)socket.set_option(Tcp::no_delay(true), ignored);
  std::make_shared<Connection>(*this, std::move(socket))->Read();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Listen(const std::string& address,
                                                       ServerOptions options) {
  NH_ASSIGN_OR_RETURN(const Tcp::endpoint endpoint, EndpointOf(address));
  try {
    auto impl = std::make_unique<Impl>(std::move(options));
    NH_RETURN_IF_ERROR(impl->Start(endpoint));
    return std::unique_ptr<Server>(new Server(std::move(impl)));
  } catch (const std::exception& e) {  // no descriptor, thread or memory
    return base::Unavailable(e.what());
  }
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() = default;

int Server::port() const { return impl_->port(); }

}  // namespace nomad_harvester::http
