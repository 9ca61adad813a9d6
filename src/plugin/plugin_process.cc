// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/plugin/plugin_process.h"

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"

#include "autoscaler_services.h"
#include "grpcpp/security/server_credentials.h"
#include "handshake.h"
#include "library_logs.h"
#include "local_address.h"
#include "plugin_server.h"
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

// AutoMTLS, if the host requests it. The server trusts only the host's certificate; the handshake
// contains the server's own.
struct AutoMtls {
  std::string client;  // empty: not requested
  OneTimeCertificate own;
};

absl::StatusOr<AutoMtls> PrepareTls(const config::StringMap& environment) {
  AutoMtls tls{.client = base::ValueOf(environment, "PLUGIN_CLIENT_CERT"), .own = {}};
  if (tls.client.empty()) return tls;
  NH_RETURN_IF_ERROR(CheckClientCertificate(tls.client));
  NH_ASSIGN_OR_RETURN(tls.own, MakeOneTimeCertificate());
  return tls;
}

// Serves in `directory` until the stop. The host connects as soon as it has read the handshake.
absl::Status Serve(const Plugin& plugin, const ProcessOptions& options, pid_t host,
                   const SocketDir& directory) {
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<StopRequest> stop, StopRequest::Create());
  stop->OnSignals({SIGTERM});
  NH_ASSIGN_OR_RETURN(const AutoMtls tls, PrepareTls(options.environment));
  ServerOptions server_options = MakeServerOptions(options, *stop);
  server_options.address = UnixAddress(directory.paths().socket);
  if (!tls.client.empty()) server_options.credentials = MutualTls(tls.own, tls.client);
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<PluginServer> server,
                      PluginServer::Start(plugin, server_options));
  NH_RETURN_IF_ERROR(directory.ProtectSocket());
  const Handshake handshake{
      .socket_path = directory.paths().socket,
      .certificate = tls.own.handshake_field,
      .answer_multiplexing = !base::ValueOf(options.environment, "PLUGIN_MULTIPLEX_GRPC").empty()};
  NH_RETURN_IF_ERROR(WriteLine(options.handshake_fd, HandshakeLine(handshake)));

  const std::string_view reason = stop->Wait(host);
  ArmExitWatchdog(kExitLimit, directory.paths());
  options.logger.Info("Stopping", {{"reason", reason}});
  server->Stop();
  return absl::OkStatus();
}

// The address of `nomad-harvester dev`. By default a socket in a private directory, because any
// user of this machine may call a TCP port.
struct DevAddress {
  std::string listen;  // "unix:/path" or "127.0.0.1:PORT"
  std::optional<SocketDir> directory;
};

absl::StatusOr<DevAddress> ChooseDevAddress(const ProcessOptions& options, const DevOptions& dev) {
  if (!dev.listen.empty()) return DevAddress{dev.listen, std::nullopt};
  NH_ASSIGN_OR_RETURN(SocketDir directory, SocketDir::Create(options.environment, options.logger));
  std::string listen = "unix:" + directory.paths().socket;
  return DevAddress{std::move(listen), std::move(directory)};
}

CallRules DevRules(bool is_unix, const ProcessOptions& options) {
  CallRules rules;
  rules.scale_needs_action = true;
  if (is_unix) return rules;
  options.logger.Warn(
      "Any user of this machine may call this port, with policies that name any file of this user "
      "as user_data_file, and with the credentials of this process: listen on a Unix socket to "
      "prevent that");
  // With SetConfig a caller could redirect the plugin and receive the token of its environment, or
  // the content of any file that SetConfig names as a token file.
  rules.set_config_refusal =
      "SetConfig is refused on TCP, where any user of this machine may call it: configure by the "
      "environment and --set, or listen on a Unix socket, as without --listen";
  return rules;
}

absl::Status ServeDev(const Plugin& plugin, const ProcessOptions& options, const DevOptions& dev) {
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<StopRequest> stop, StopRequest::Create());
  stop->OnSignals({SIGTERM, SIGINT});
  if (!IsIgnored(SIGHUP)) stop->OnSignals({SIGHUP});
  ServerOptions server_options = MakeServerOptions(options, *stop);
  NH_ASSIGN_OR_RETURN(const DevAddress address, ChooseDevAddress(options, dev));
  NH_ASSIGN_OR_RETURN(server_options.address, ParseLocalAddress(address.listen));
  NH_RETURN_IF_ERROR(CheckNotServed(address.listen));
  const bool is_unix = IsUnixAddress(address.listen);
  server_options.rules = DevRules(is_unix, options);
  server_options.reflection = true;
  const mode_t old_mask = umask(0177);  // only this user may connect to the socket
  absl::StatusOr<std::unique_ptr<PluginServer>> started =
      PluginServer::Start(plugin, server_options);
  umask(old_mask);
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<PluginServer> server, std::move(started));
  if (dev.on_listening) {
    dev.on_listening(is_unix ? address.listen
                             : address.listen.substr(0, address.listen.rfind(':') + 1) +
                                   std::to_string(server->port()));
  }
  const std::string_view reason = stop->Wait(std::nullopt);
  // gRPC removes the socket that it created.
  ArmExitWatchdog(kExitLimit, address.directory ? address.directory->paths() : SocketPaths());
  options.logger.Info("Stopping", {{"reason", reason}});
  server->Stop();
  return absl::OkStatus();
}

int ExitCode(const absl::Status& served, const ProcessOptions& options) {
  if (served.ok()) return 0;
  options.logger.Error("Cannot serve", {{"error", served}});
  return 1;
}

int Run(const Plugin& plugin, const ProcessOptions& options) {
  const pid_t host = getppid();  // read first: the host may die at any time
  // Ctrl-C is sent to the whole process group, and the host then shuts the plugin down itself. The
  // SIGHUP by which operators reload the agent's configuration is sent to the group, too (rule L9);
  // the agent then calls SetConfig. SIGPIPE must not end the process when the host no longer reads.
  IgnoreSignal(SIGINT);
  IgnoreSignal(SIGHUP);
  IgnoreSignal(SIGPIPE);
  RouteLibraryLogs(options.logger);
  WarnWithoutRandomDevice(options.logger, kRandomDevice);
  const absl::StatusOr<SocketDir> directory =
      SocketDir::Create(options.environment, options.logger);
  return ExitCode(directory.ok() ? Serve(plugin, options, host, *directory) : directory.status(),
                  options);
}

}  // namespace

bool StartedByHost(const config::StringMap& environment) {
  return base::ValueOf(environment, kCookieKey) == kCookieValue;
}

bool IsIgnored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

int RunPlugin(scaling::TargetService& service, const ProcessOptions& options) {
  return Run(TargetOf(service), options);
}

int RunPlugin(demand::DemandService& service, const ProcessOptions& options) {
  return Run(ApmOf(service), options);
}

absl::Status CheckDevAddress(const std::string& listen) {
  return listen.empty() ? absl::OkStatus() : ParseLocalAddress(listen).status();
}

int RunDev(scaling::TargetService& service, const ProcessOptions& options, const DevOptions& dev) {
  IgnoreSignal(SIGPIPE);
  RouteLibraryLogs(options.logger);
  WarnWithoutRandomDevice(options.logger, kRandomDevice);
  return ExitCode(ServeDev(TargetOf(service), options, dev), options);
}

}  // namespace nomad_harvester::plugin
