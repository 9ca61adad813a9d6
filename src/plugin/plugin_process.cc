// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/plugin/plugin_process.h"

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/base/status.h"

#include "certificate.h"
#include "exit_watchdog.h"
#include "grpcpp/security/server_credentials.h"
#include "handshake.h"
#include "host_watch.h"
#include "library_logs.h"
#include "plugin_server.h"
#include "socket_dir.h"
#include "stop_request.h"

namespace nomad_harvester::plugin {
namespace {

ServerOptions MakeServerOptions(const ProcessOptions& options, StopRequest& stop) {
  ServerOptions server;
  server.logger = options.logger;
  server.clock = options.clock;
  server.credentials = grpc::InsecureServerCredentials();
  server.on_shutdown = [&stop] { stop.Request("Shutdown"); };
  return server;
}

// Sets up AutoMTLS if the host requests it: only the host's certificate is trusted; ours is sent in
// the handshake.
absl::Status SetUpTls(const config::Environment& environment, ServerOptions& server,
                      Handshake& handshake) {
  const std::optional<std::string> client = environment("PLUGIN_CLIENT_CERT");
  if (!client.has_value() || client->empty()) return absl::OkStatus();
  NH_RETURN_IF_ERROR(CheckClientCertificate(*client));
  NH_ASSIGN_OR_RETURN(const OneTimeCertificate own, MakeOneTimeCertificate());
  server.credentials = MutualTls(own, *client);
  handshake.certificate = own.handshake_field;
  return absl::OkStatus();
}

void WarnOfForeignProtocol(const ProcessOptions& options) {
  const std::string versions =
      options.environment("PLUGIN_PROTOCOL_VERSIONS").value_or(std::string());
  if (!HostKnowsOurProtocol(versions)) {
    options.logger.Warn("The host does not list our protocol version",
                        {{"host_versions", versions}, {"our_version", kPluginProtocol}});
  }
}

// Serves in `directory` from the handshake until the stop.
absl::Status Serve(scaling::TargetService& service, const ProcessOptions& options,
                   const HostWatch& host, const SocketDir& directory) {
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<StopRequest> stop, StopRequest::Create());
  stop->OnSignals({SIGTERM});
  ServerOptions server_options = MakeServerOptions(options, *stop);
  Handshake handshake;
  NH_RETURN_IF_ERROR(SetUpTls(options.environment, server_options, handshake));
  server_options.address = UnixAddress(directory.paths().socket);
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<PluginServer> server,
                      PluginServer::Start(service, server_options));
  NH_RETURN_IF_ERROR(directory.ProtectSocket());
  handshake.socket_path = directory.paths().socket;
  handshake.answer_multiplexing =
      !options.environment("PLUGIN_MULTIPLEX_GRPC").value_or(std::string()).empty();
  WarnOfForeignProtocol(options);
  NH_RETURN_IF_ERROR(WriteLine(options.handshake_fd, HandshakeLine(handshake)));

  const std::string_view reason = stop->Wait(&host);
  ArmExitWatchdog(kExitLimit, [paths = directory.paths()] { RemoveSocket(paths); });
  options.logger.Info("Stopping", {{"reason", reason}});
  server->Stop();
  return absl::OkStatus();
}

}  // namespace

int RunPlugin(scaling::TargetService& service, const ProcessOptions& options) {
  const HostWatch host(SystemProcessTable());  // created first: the host may die at any time
  // Ctrl-C is sent to the whole process group; the host then shuts the plugin down itself. So is
  // the SIGHUP with which people make the agent read its configuration again (rule L9): it reloads
  // its plugins by SetConfig. SIGPIPE must not end the process when the host no longer reads.
  IgnoreSignal(SIGINT);
  IgnoreSignal(SIGHUP);
  IgnoreSignal(SIGPIPE);
  RouteLibraryLogs(options.logger);
  absl::Status status;
  if (absl::StatusOr<SocketDir> directory = SocketDir::Create(options.environment, options.logger);
      directory.ok()) {
    status = Serve(service, options, host, *directory);
  } else {
    status = directory.status();
  }
  if (status.ok()) return 0;
  options.logger.Error("Cannot serve", {{"error", status}});
  return 1;
}

}  // namespace nomad_harvester::plugin
