// SPDX-License-Identifier: Apache-2.0
// The plugin as a process: serves until the host says stop, dies, or a signal comes.
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
// death, within two seconds of it (rule P1); 1 with one ERROR line if it cannot serve.
//
// Takes SIGTERM, blocked or not, and ignores SIGINT and SIGPIPE. `service` is asked to stop before
// the server goes down. From the wish to stop on the process has 1.8 seconds, the caller's own
// clean-up after the return included: then it ends with code 0, wherever it is.
int RunPlugin(scaling::TargetService& service, const ProcessOptions& options);

struct DevOptions {
  std::string listen;  // "unix:/path" or "127.0.0.1:PORT"; PORT 0: any
  // Called once with the address that is served ("unix:/path", "127.0.0.1:43210").
  std::function<void(const std::string&)> on_listening;
};

// Serves the same services without cookie and handshake until SIGTERM, SIGINT or a call of
// Shutdown, with the same limit for the end. 1 with one ERROR line if it cannot serve: another
// address than this machine's own is refused.
int RunDev(scaling::TargetService& service, const ProcessOptions& options, const DevOptions& dev);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_PLUGIN_PLUGIN_PROCESS_H_
