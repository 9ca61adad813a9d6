// SPDX-License-Identifier: Apache-2.0
#include "plugin_server.h"

#include <chrono>
#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"

#include "autoscaler_services.h"
#include "grpc/compression.h"
#include "grpc/grpc.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"
#include "proto/base.grpc.pb.h"  // grpc::Service

namespace nomad_harvester::plugin {
namespace {

// The host kills the plugin 2 s after the reply to Shutdown (hashicorp/go-plugin:client.go, Kill).
// Leases are released within the first second, calls end by the second limit, and the server shuts
// down in the rest.
constexpr base::Duration kServiceStop = std::chrono::milliseconds(1000);
constexpr base::Duration kCallsEnd = std::chrono::milliseconds(1200);
constexpr base::Duration kServerStop = std::chrono::milliseconds(300);

// Leaves out gRPC's reflection, which linking adds to every server of the executable.
class WithoutServerPlugins final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->clear();
  }
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MutualTls(const OneTimeCertificate& own,
                                                   const std::string& client_certificate_pem) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = client_certificate_pem;
  options.pem_key_cert_pairs.push_back({own.key_pem, own.certificate_pem});
  return grpc::SslServerCredentials(options);
}

PluginServer::PluginServer(Plugin plugin, const ServerOptions& options)
    : plugin_(std::move(plugin)),
      logger_(options.logger),
      clock_(*options.clock),
      root_(runtime::Context::Background(clock_)),
      dispatcher_(root_.context(), calls_, options.logger, options.lanes) {
  services_ = MakeAutoscalerServices(plugin_, dispatcher_, options.rules);
  for (auto& host_service : MakeHostServices(options.on_shutdown, streams_)) {
    services_.push_back(std::move(host_service));
  }
}

absl::StatusOr<std::unique_ptr<PluginServer>> PluginServer::Start(Plugin plugin,
                                                                  const ServerOptions& options) {
  std::unique_ptr<PluginServer> result(new PluginServer(std::move(plugin), options));
  NH_RETURN_IF_ERROR(result->Listen(options));
  return result;
}

absl::Status PluginServer::Listen(const ServerOptions& options) {
  grpc::ServerBuilder builder;
  // Without this, a second server on the same port would get part of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A compressed message would be inflated before its size is limited.
  builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                             1 << GRPC_COMPRESS_NONE);
  if (options.reflection) {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  } else {
    builder.SetOption(std::make_unique<WithoutServerPlugins>());
  }
  for (const auto& service : services_) builder.RegisterService(service.get());
  int port = 0;  // 1 for a Unix socket, 0 on failure
  builder.AddListeningPort(options.address, options.credentials, &port);
  grpc::EnableDefaultHealthCheckService(true);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port <= 0) {
    return base::Unavailable(
        "cannot listen on " + options.address +
        ": does its directory exist, and does nothing else listen there? A warning of "
        "gRPC above says more");
  }
  server_->GetHealthCheckService()->SetServingStatus("plugin", true);
  port_ = port;
  return absl::OkStatus();
}

PluginServer::~PluginServer() { Stop(); }

void PluginServer::Stop() {
  if (stopped_) return;
  stopped_ = true;
  const runtime::Context background = runtime::Context::Background(clock_);
  const runtime::Context for_service = background.WithTimeout(kServiceStop);
  const runtime::Context for_calls = background.WithTimeout(kCallsEnd);

  // Must precede Server::Shutdown: gRPC cancels a call only after the grace period, and if the
  // connection closes during a call, the host gets an error text on which it restarts all policies.
  calls_.Close();
  streams_.Close();
  root_.Cancel(runtime::CancelReason::kShutdown);
  plugin_.stop(for_service);
  if (const std::size_t left = calls_.WaitUntilNone(for_calls); left > 0) {
    logger_.Warn("Cancelling calls that did not finish in time", {{"calls", left}});
    calls_.EndAll({grpc::StatusCode::CANCELLED, "cancelled: the process is ending"});
  }
  if (server_ != nullptr) {
    streams_.EndAll(grpc::Status::OK);
    server_->Shutdown(std::chrono::system_clock::now() + kServerStop);
    server_->Wait();
  }
  dispatcher_.Stop();
}

}  // namespace nomad_harvester::plugin
