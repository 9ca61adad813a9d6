// SPDX-License-Identifier: Apache-2.0
// The gRPC server, with all services that a go-plugin host expects.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_PLUGIN_SERVER_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_PLUGIN_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"
#include "autoscaler_services.h"
#include "dispatcher.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "handshake.h"

namespace nomad_harvester::plugin {

// TLS that accepts only clients with the key of `client_certificate_pem`.
std::shared_ptr<grpc::ServerCredentials> MutualTls(const OneTimeCertificate& own,
                                                   const std::string& client_certificate_pem);

struct ServerOptions {
  std::string address;  // UnixAddress() or "127.0.0.1:0"
  std::shared_ptr<grpc::ServerCredentials> credentials;
  log::Logger logger;
  runtime::Clock* clock = nullptr;
  LaneSizes lanes;
  CallRules rules;
  // Serve gRPC's reflection.
  bool reflection = false;
  // Called after the reply to the host's Shutdown. Must not block.
  std::function<void()> on_shutdown;
};

// Serves from Start to Stop. Destroying it stops it.
class PluginServer {
 public:
  // Returns once the server accepts connections and the health service reports SERVING for "" and
  // "plugin" (hashicorp/go-plugin:grpc_server.go, GRPCServiceName).
  static absl::StatusOr<std::unique_ptr<PluginServer>> Start(Plugin plugin,
                                                             const ServerOptions& options);
  ~PluginServer();

  // The chosen port if the address has port 0.
  int port() const { return port_; }

  // In this order: refuses new calls; cancels work; stops the service; ends calls in flight
  // while the connection is still open; ends streams; shuts the server down. Takes at most about
  // 1.5 s, unless the service or its work ignores the cancellation. Idempotent.
  void Stop();

 private:
  PluginServer(Plugin plugin, const ServerOptions& options);
  absl::Status Listen(const ServerOptions& options);

  const Plugin plugin_;
  const log::Logger logger_;
  runtime::Clock& clock_;
  const runtime::CancelSource root_;
  CallRegistry calls_;
  CallRegistry streams_;
  Dispatcher dispatcher_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  int port_ = 0;
  bool stopped_ = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_PLUGIN_SERVER_H_
