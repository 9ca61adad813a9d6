// SPDX-License-Identifier: Apache-2.0
// The plugin as a process: serves until the host requests the shutdown or dies, or a signal
// arrives.
#ifndef NOMAD_HARVESTER_PLUGIN_PLUGIN_PROCESS_H_
#define NOMAD_HARVESTER_PLUGIN_PLUGIN_PROCESS_H_

#include <functional>
#include <string>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/target_service.h"

namespace nomad_harvester::plugin {

struct ProcessOptions {
  config::Environment environment;
  log::Logger logger;
  runtime::Clock* clock = nullptr;
  int handshake_fd = 1;  // where the handshake line goes
};

// Serves as a go-plugin plugin and returns the exit code: 0 after Shutdown, SIGTERM or the host's
// death, within two seconds (rule P1); 1 with one ERROR line if it cannot serve.
//
// Handles SIGTERM, even if it was blocked, and ignores SIGINT, SIGHUP and SIGPIPE. `service` is
// stopped before the server shuts down. The process must end within 1.8 seconds of the stop
// request, the caller's clean-up after the return included; then a watchdog ends it with code 0.
int RunPlugin(scaling::TargetService& service, const ProcessOptions& options);

struct DevOptions {
  std::string listen;  // "unix:/path" or "127.0.0.1:PORT"; PORT 0: any
  // Called once with the address that is served ("unix:/path", "127.0.0.1:43210").
  std::function<void(const std::string&)> on_listening;
};

// Serves the same services without cookie and handshake until SIGTERM, SIGINT or a call of
// Shutdown, with the same time limit for the stop. 1 with one ERROR line if it cannot serve; only
// addresses of this machine are accepted. SIGHUP is left alone: closing the terminal ends it.
int RunDev(scaling::TargetService& service, const ProcessOptions& options, const DevOptions& dev);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_PLUGIN_PLUGIN_PROCESS_H_
