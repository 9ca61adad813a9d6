// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/plugin/plugin_process.h"

#include "exit_watchdog.h"
#include "grpcpp/security/server_credentials.h"
#include "library_logs.h"
#include "plugin_server.h"
#include "stop_request.h"

namespace nomad_harvester::plugin {
namespace {

absl::Status ServeDev(scaling::TargetService& service, const ProcessOptions& options,
                      const DevOptions& dev) {
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<StopRequest> stop, StopRequest::Create());
  stop->OnSignals({SIGTERM, SIGINT});
  ServerOptions server_options;
  server_options.logger = options.logger;
  server_options.clock = options.clock;
  server_options.credentials = grpc::InsecureServerCredentials();
  server_options.on_shutdown = [&stop] { stop->Request("Shutdown"); };
  NH_ASSIGN_OR_RETURN(server_options.address, ParseLocalAddress(dev.listen));
  const mode_t old_mask = umask(0177);  // only this user may connect to the socket
  absl::StatusOr<std::unique_ptr<PluginServer>> started =
      PluginServer::Start(service, server_options);
  umask(old_mask);
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<PluginServer> server, std::move(started));
  if (dev.on_listening) {
    const bool is_unix = dev.listen.rfind("unix:", 0) == 0;
    dev.on_listening(is_unix ? dev.listen
                             : dev.listen.substr(0, dev.listen.rfind(':') + 1) +
                                   std::to_string(server->port()));
  }
  const std::string_view reason = stop->Wait(nullptr);
  // gRPC removes the socket that it created.
  ArmExitWatchdog(kExitLimit, [] {});
  options.logger.Info("Stopping", {{"reason", reason}});
  server->Stop();
  return absl::OkStatus();
}

}  // namespace

int RunDev(scaling::TargetService& service, const ProcessOptions& options, const DevOptions& dev) {
  IgnoreSignal(SIGPIPE);
  RouteLibraryLogs(options.logger);
  const absl::Status status = ServeDev(service, options, dev);
  if (status.ok()) return 0;
  options.logger.Error("Cannot serve", {{"error", status}});
  return 1;
}

}  // namespace nomad_harvester::plugin
