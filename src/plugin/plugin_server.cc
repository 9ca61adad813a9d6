// SPDX-License-Identifier: Apache-2.0
#include "plugin_server.h"

#include <cerrno>
#include <chrono>
#include <stop_token>
#include <string>
#include <sys/socket.h>

#include "nomad_harvester/base/status.h"

#include "grpc/compression.h"
#include "grpc/grpc.h"
#include "grpcpp/server_builder.h"
#include "host_services.h"
#include "reflection.h"

namespace nomad_harvester::plugin {
namespace {

// The host kills the plugin 2 s after the reply to Shutdown (hashicorp/go-plugin:client.go, Kill).
// Leases are released within the first second, calls end by the second limit, and the server shuts
// down in the rest.
constexpr base::Duration kServiceStop = std::chrono::milliseconds(1000);
constexpr base::Duration kCallsEnd = std::chrono::milliseconds(1200);
constexpr base::Duration kServerStop = std::chrono::milliseconds(300);
// After a connection could not be accepted.
constexpr base::Duration kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MutualTls(const OneTimeCertificate& own,
                                                   const std::string& client_certificate_pem) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = client_certificate_pem;
  options.pem_key_cert_pairs.push_back({own.key_pem, own.certificate_pem});
  return grpc::SslServerCredentials(options);
}

PluginServer::PluginServer(scaling::TargetService& service, const ServerOptions& options)
    : service_(service),
      logger_(options.logger),
      clock_(*options.clock),
      root_(runtime::Context::Background(clock_)),
      dispatcher_(root_.context(), calls_, options.logger, options.lanes) {
  AddAutoscalerServices(service, dispatcher_, options.rules, &methods_);
  AddHostServices(options.on_shutdown, streams_, &methods_);
  AddReflection(streams_, &methods_);
}

absl::StatusOr<std::unique_ptr<PluginServer>> PluginServer::Start(scaling::TargetService& service,
                                                                  const ServerOptions& options) {
  std::unique_ptr<PluginServer> result(new PluginServer(service, options));
  NH_RETURN_IF_ERROR(result->Listen(options));
  return result;
}

absl::Status PluginServer::Listen(const ServerOptions& options) {
  grpc::ServerBuilder builder;
  // Without this, a second server on the same port would get part of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // It would measure a socket of this machine with pings and timers.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // A compressed message would be inflated before its size is limited.
  builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                             1 << GRPC_COMPRESS_NONE);
  queue_ = std::make_unique<RpcQueue>(methods_, builder);
  int port = 0;  // 1 for a Unix socket, 0 on failure
  if (options.address.empty()) {
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        options.credentials);
  } else {
    builder.AddListeningPort(options.address, options.credentials, &port);
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || (acceptor_ == nullptr && port <= 0)) {
    return base::Unavailable(acceptor_ != nullptr ? "gRPC's server does not start"
                                                  : "cannot listen on " + options.address);
  }
  port_ = port;
  queue_->Start();
  return absl::OkStatus();
}

void PluginServer::Accept(int listener) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = listener;
  connection.fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection.fd >= 0) return acceptor_->HandleNewConnection(&connection);
  // Who waits goes on waiting: what is missing, such as a descriptor, comes back with time.
  if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
    clock_.SleepUntil(clock_.Now() + kAcceptPause, std::stop_token());
  }
}

PluginServer::~PluginServer() { Stop(); }

void PluginServer::Stop() {
  if (stopped_) return;
  stopped_ = true;
  const runtime::Context background = runtime::Context::Background(clock_);
  const runtime::Context for_service = background.WithTimeout(kServiceStop);
  const runtime::Context for_calls = background.WithTimeout(kCallsEnd);

  // Must precede Server::Shutdown: gRPC 1.51 notifies a handler of it only after the grace period,
  // and if the connection closes during a call, the host gets an error text on which it restarts
  // all policies.
  calls_.Close();
  streams_.Close();
  root_.Cancel(runtime::CancelReason::kShutdown);
  service_.Stop(for_service);
  if (const std::size_t left = calls_.WaitUntilNone(for_calls); left > 0) {
    logger_.Warn("Cancelling calls that did not finish in time", {{"calls", left}});
    calls_.EndAll({grpc::StatusCode::CANCELLED, "cancelled: the process is ending"});
  }
  if (server_ != nullptr) {
    streams_.EndAll(grpc::Status::OK);
    server_->Shutdown(std::chrono::system_clock::now() + kServerStop);
    server_->Wait();
  }
  queue_->Stop();
  dispatcher_.Stop();
}

}  // namespace nomad_harvester::plugin
