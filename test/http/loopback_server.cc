// SPDX-License-Identifier: Apache-2.0
#include "http/loopback_server.h"

#include <arpa/inet.h>
#include <array>
#include <csignal>
#include <cstring>
#include <netinet/in.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::http {
namespace {

void Require(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
Bio ReadOnly(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free};
}

int Bind(const sockaddr* address, socklen_t size) {
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Require(fd >= 0, "socket");
  Require(bind(fd, address, size) == 0, "bind");
  return fd;
}

int BindLoopback(int* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const int fd = Bind(reinterpret_cast<sockaddr*>(&address), size);
  Require(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  *port = ntohs(address.sin_port);
  return fd;
}

std::string StatusLineAndHeaders(const ServerReply& reply) {
  std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " Reason\r\n";
  for (const auto& [name, value] : reply.headers.fields()) text += name + ": " + value + "\r\n";
  if (reply.chunked) {
    text += "Transfer-Encoding: chunked\r\n";
  } else {
    text += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  }
  return text + "\r\n";
}

std::string Chunk(std::string_view piece) {
  std::array<char, 24> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", piece.size());
  return size.data() + std::string(piece) + "\r\n";
}

}  // namespace

struct LoopbackServer::FreeContext {
  void operator()(void* context) const { SSL_CTX_free(static_cast<SSL_CTX*>(context)); }
};

// A connected socket, with or without TLS, and the bytes already read from it.
class LoopbackServer::Connection {
 public:
  Connection(int fd, SSL_CTX* tls) : fd_(fd), ssl_(tls == nullptr ? nullptr : SSL_new(tls)) {
    if (ssl_ != nullptr) SSL_set_fd(ssl_, fd_);
  }
  ~Connection() {
    if (ssl_ != nullptr) SSL_free(ssl_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool Handshake() { return ssl_ == nullptr || SSL_accept(ssl_) == 1; }
  std::string Sni() const {
    const char* name =
        ssl_ == nullptr ? nullptr : SSL_get_servername(ssl_, TLSEXT_NAMETYPE_host_name);
    return name == nullptr ? "" : name;
  }

  bool ReadMore() {
    std::array<char, 16384> piece;
    const auto count = ssl_ == nullptr
                           ? recv(fd_, piece.data(), piece.size(), 0)
                           : SSL_read(ssl_, piece.data(), static_cast<int>(piece.size()));
    if (count <= 0) return false;
    buffer_.append(piece.data(), static_cast<std::size_t>(count));
    return true;
  }
  // Reads up to and including the delimiter; nullopt if the peer closes first.
  std::optional<std::string> ReadUntil(std::string_view delimiter) {
    std::size_t at = 0;
    while ((at = buffer_.find(delimiter)) == std::string::npos) {
      if (!ReadMore()) return std::nullopt;
    }
    return Take(at + delimiter.size());
  }
  std::optional<std::string> ReadBytes(std::size_t count) {
    while (buffer_.size() < count) {
      if (!ReadMore()) return std::nullopt;
    }
    return Take(count);
  }
  bool Write(std::string_view text) {
    while (!text.empty()) {
      const auto count = ssl_ == nullptr
                             ? send(fd_, text.data(), text.size(), MSG_NOSIGNAL)
                             : SSL_write(ssl_, text.data(), static_cast<int>(text.size()));
      if (count <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  // Shuts down writing, then waits until the peer closes: closing with unread data would reset the
  // connection and lose data that the peer has not read yet.
  void Finish() {
    shutdown(fd_, SHUT_WR);
    std::array<char, 4096> ignored;
    while (recv(fd_, ignored.data(), ignored.size(), 0) > 0) {
    }
  }
  void WaitForPeerToLeave() {
    while (ReadMore()) {
    }
  }

 private:
  std::string Take(std::size_t count) {
    std::string text = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return text;
  }

  const int fd_;
  SSL* const ssl_;
  std::string buffer_;
};

LoopbackServer::LoopbackServer(Handler handler, const LoopbackOptions& options)
    : handler_(std::move(handler)),
      close_on_accept_(options.close_on_accept),
      greeting_(options.greeting) {
  if (options.tls) SetUpTls(options);
  Listen(options);
  acceptor_ = std::jthread([this] { AcceptLoop(); });
}

LoopbackServer::LoopbackServer(ServerReply reply, const LoopbackOptions& options)
    : LoopbackServer([reply = std::move(reply)](const ServerRequest&) { return reply; }, options) {}

LoopbackServer::~LoopbackServer() {
  {
    const base::MutexLock lock(mutex_);
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
  }
  acceptor_.join();
  threads_.clear();
  close(listener_);
}

void LoopbackServer::Listen(const LoopbackOptions& options) {
  if (options.unix_path.empty()) {
    listener_ = BindLoopback(&port_);
    url_ = (options.tls ? "https://" : "http://") + authority();
  } else {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    options.unix_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    listener_ = Bind(reinterpret_cast<sockaddr*>(&address), sizeof(address));
    url_ = "unix://" + options.unix_path;
  }
  Require(listen(listener_, 64) == 0, "listen");
}

void LoopbackServer::SetUpTls(const LoopbackOptions& options) {
  tls_ = std::shared_ptr<void>(SSL_CTX_new(TLS_server_method()), FreeContext());
  auto* const context = static_cast<SSL_CTX*>(tls_.get());
  const Bio certificate_bio = ReadOnly(options.tls->certificate);
  const Bio key_bio = ReadOnly(options.tls->key);
  X509* const certificate = PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr);
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr);
  Require(SSL_CTX_use_certificate(context, certificate) == 1, "SSL_CTX_use_certificate");
  Require(SSL_CTX_use_PrivateKey(context, key) == 1, "SSL_CTX_use_PrivateKey");
  X509_free(certificate);
  EVP_PKEY_free(key);
  if (options.highest_tls_version != 0) {
    SSL_CTX_set_max_proto_version(context, options.highest_tls_version);
    SSL_CTX_set_min_proto_version(context, 0);
    SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0");
  }
  if (!options.client_ca_pem.empty()) {
    const Bio ca_bio = ReadOnly(options.client_ca_pem);
    X509* const ca = PEM_read_bio_X509(ca_bio.get(), nullptr, nullptr, nullptr);
    Require(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca) == 1, "X509_STORE_add_cert");
    X509_free(ca);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  // OpenSSL writes without MSG_NOSIGNAL.
  std::signal(SIGPIPE, SIG_IGN);
}

std::string LoopbackServer::authority() const { return "127.0.0.1:" + std::to_string(port_); }

int LoopbackServer::connections() const {
  const base::MutexLock lock(mutex_);
  return accepted_;
}

std::vector<ServerRequest> LoopbackServer::requests() const {
  const base::MutexLock lock(mutex_);
  return requests_;
}

std::string LoopbackServer::last_sni() const {
  const base::MutexLock lock(mutex_);
  return sni_;
}

void LoopbackServer::AwaitRequests(std::size_t count) const {
  const base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, [&]() NH_NO_THREAD_SAFETY_ANALYSIS { return requests_.size() >= count; });
}

void LoopbackServer::AwaitEnded(int count) const {
  const base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, [&]() NH_NO_THREAD_SAFETY_ANALYSIS { return ended_ >= count; });
}

void LoopbackServer::Interject(const std::string& text) const {
  const base::MutexLock lock(mutex_);
  for (const int fd : open_) send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

void LoopbackServer::HangUp() const {
  const base::MutexLock lock(mutex_);
  for (const int fd : open_) shutdown(fd, SHUT_RDWR);
}

void LoopbackServer::AcceptLoop() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const base::MutexLock lock(mutex_);
    if (stopping_) {
      close(fd);
      return;
    }
    open_.insert(fd);
    const int number = ++accepted_;
    threads_.emplace_back([this, fd, number] { Serve(fd, number); });
  }
}

void LoopbackServer::Serve(int fd, int number) {
  {
    Connection connection(fd, static_cast<SSL_CTX*>(tls_.get()));
    if (!close_on_accept_) {
      if (!greeting_.empty()) {
        connection.Write(greeting_);
      } else if (connection.Handshake()) {
        {
          const base::MutexLock lock(mutex_);
          sni_ = connection.Sni();
        }
        Exchange(connection, number);
      }
      connection.Finish();
    }
    ERR_clear_error();
  }
  const base::MutexLock lock(mutex_);
  open_.erase(fd);
  close(fd);
  ++ended_;
  changed_.NotifyAll();
}

void LoopbackServer::Exchange(Connection& connection, int number) {
  for (;;) {
    const std::optional<std::string> head = connection.ReadUntil("\r\n\r\n");
    if (!head) return;
    ServerRequest request;
    request.connection = number;
    std::size_t line_end = head->find("\r\n");
    const std::string first = head->substr(0, line_end);
    request.method = first.substr(0, first.find(' '));
    request.target =
        first.substr(request.method.size() + 1, first.rfind(' ') - request.method.size() - 1);
    for (std::size_t begin = line_end + 2; (line_end = head->find("\r\n", begin)) > begin;
         begin = line_end + 2) {
      const std::string line = head->substr(begin, line_end - begin);
      const std::size_t colon = line.find(':');
      request.headers.Add(line.substr(0, colon),
                          base::TrimAsciiSpace(std::string_view(line).substr(colon + 1)));
    }
    const std::string length = request.headers.Find("Content-Length").value_or("0");
    const std::optional<std::string> body = connection.ReadBytes(std::stoul(length));
    if (!body) return;
    request.body = *body;
    {
      const base::MutexLock lock(mutex_);
      requests_.push_back(request);
      changed_.NotifyAll();
    }
    if (!Answer(connection, handler_(request))) return;
  }
}

bool LoopbackServer::Answer(Connection& connection, const ServerReply& reply) const {
  if (reply.silent) {
    connection.WaitForPeerToLeave();
    return false;
  }
  if (reply.raw) {
    connection.Write(*reply.raw);
    return false;
  }
  const std::size_t size = reply.cut_after.value_or(reply.stall_after.value_or(reply.body.size()));
  const std::string_view body = std::string_view(reply.body).substr(0, size);
  const bool whole = !reply.cut_after && !reply.stall_after;
  std::string text = StatusLineAndHeaders(reply);
  if (!reply.chunked) {
    text += body;
  } else if (!body.empty()) {
    text += Chunk(body);
  }
  if (reply.chunked && whole) text += "0\r\n\r\n";
  if (!connection.Write(text)) return false;
  if (reply.stall_after) connection.WaitForPeerToLeave();
  return whole && !reply.close_after;
}

int ClosedPort() {
  int port = 0;
  const int fd = BindLoopback(&port);
  close(fd);
  return port;
}

}  // namespace nomad_harvester::http
