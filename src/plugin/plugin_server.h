// SPDX-License-Identifier: Apache-2.0
// The gRPC server with everything that a go-plugin host expects of it.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_PLUGIN_SERVER_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_PLUGIN_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/target_service.h"

#include "absl/status/statusor.h"
#include "autoscaler_services.h"
#include "call_registry.h"
#include "certificate.h"
#include "dispatcher.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "host_services.h"

namespace nomad_harvester::plugin {

// gRPC's name of a Unix socket. Its URI parser decodes percent escapes and ends a path at '?' and
// '#' (grpc/grpc:src/core/lib/uri/uri_parser.cc), so that other characters than RFC 3986's are
// escaped.
std::string UnixAddress(const std::string& path);

// gRPC's name of an address that a person wrote: "unix:/path", or "host:port" whose host is this
// machine's own, as the server asks nobody who he is. INVALID_ARGUMENT for any other.
absl::StatusOr<std::string> ParseLocalAddress(const std::string& text);

// TLS that only the owner of the key of `client_certificate_pem` passes.
std::shared_ptr<grpc::ServerCredentials> MutualTls(const OneTimeCertificate& own,
                                                   const std::string& client_certificate_pem);

struct ServerOptions {
  std::string address;  // UnixAddress() or "127.0.0.1:0"
  std::shared_ptr<grpc::ServerCredentials> credentials;
  log::Logger logger;
  runtime::Clock* clock = nullptr;
  LaneSizes lanes;
  // The host asked for the end, and has its reply. Must not block.
  std::function<void()> on_shutdown;
};

// Serves from Start to Stop. Destroying it stops it.
class PluginServer {
 public:
  // Returns once connections are accepted and health says SERVING for "" and "plugin"
  // (hashicorp/go-plugin:grpc_server.go, GRPCServiceName). The service must outlive the server.
  static absl::StatusOr<std::unique_ptr<PluginServer>> Start(scaling::TargetService& service,
                                                             const ServerOptions& options);
  ~PluginServer();

  // Of an address with port 0 the one that was chosen.
  int port() const { return port_; }

  // In this order: no new calls; work is cancelled; the target service stops; calls in flight
  // are answered, while the connection still stands; streams end; the server goes down. Takes at
  // most about 1.5 s, unless the service or its work ignores its cancellation. Idempotent.
  void Stop();

 private:
  PluginServer(scaling::TargetService& service, const ServerOptions& options);
  absl::Status Listen(const ServerOptions& options);

  scaling::TargetService& service_;
  const log::Logger logger_;
  runtime::Clock& clock_;
  const runtime::CancelSource root_;
  CallRegistry calls_;
  CallRegistry streams_;
  Dispatcher dispatcher_;
  BaseService base_service_;
  TargetPluginService target_service_;
  ControllerService controller_;
  StdioService stdio_;
  BrokerService broker_;
  int port_ = 0;
  bool stopped_ = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_PLUGIN_SERVER_H_
