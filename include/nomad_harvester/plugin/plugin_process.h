// SPDX-License-Identifier: Apache-2.0
// Runs the plugin as a process: serves until the host requests the shutdown or dies, or a signal
// arrives.
#ifndef NOMAD_HARVESTER_PLUGIN_PLUGIN_PROCESS_H_
#define NOMAD_HARVESTER_PLUGIN_PLUGIN_PROCESS_H_

#include <functional>
#include <string>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/demand/service.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/target_service.h"

#include "absl/status/status.h"

namespace nomad_harvester::plugin {

// The environment variable which shows that a Nomad Autoscaler started the process
// (hashicorp/nomad-autoscaler:plugins/plugin.go).
inline constexpr char kCookieKey[] = "NOMAD_AUTOSCALER_PLUGIN_MAGIC_COOKIE";
inline constexpr char kCookieValue[] =
    "e082fa04d587a6525d683666fa253d6afda00f20c122c54a80a3ed57fec99ff3";

// Whether the environment contains the right cookie.
bool StartedByHost(const config::StringMap& environment);

// True if this process ignores the signal, such as SIGHUP under nohup.
bool IsIgnored(int signal);

struct ProcessOptions {
  config::StringMap environment;
  log::Logger logger;
  runtime::Clock* clock = nullptr;
  int handshake_fd = 1;  // where the handshake line goes
};

// Serves as a go-plugin plugin, a target or an APM, and returns the exit code: 0 after Shutdown,
// SIGTERM or the host's death, within two seconds (rule P1); 1 with one ERROR line if it cannot
// serve.
//
// Handles SIGTERM, even if it was blocked, and ignores SIGINT, SIGHUP and SIGPIPE. `service` is
// stopped before the server shuts down. The process must end within 1.8 seconds of the stop
// request, including the caller's clean-up after the return; otherwise a watchdog ends it with code
// 0.
int RunPlugin(scaling::TargetService& service, const ProcessOptions& options);
int RunPlugin(demand::DemandService& service, const ProcessOptions& options);

struct DevOptions {
  // "unix:/path" or "127.0.0.1:PORT"; PORT 0: any. Empty: a Unix socket in a new directory with
  // mode 0700, which is removed at the end.
  std::string listen;
  // Called once with the address being served ("unix:/path", "127.0.0.1:43210").
  std::function<void(const std::string&)> on_listening;
};

// INVALID_ARGUMENT, with the valid form, if RunDev does not accept `listen`. Checks only the text,
// not the machine.
absl::Status CheckDevAddress(const std::string& listen);

// Serves the same services without cookie and handshake until SIGTERM, SIGINT, SIGHUP (a closed
// terminal; unless it was ignored at the start, as by nohup) or a call of Shutdown, with the same
// time limit for stopping. 1 with one ERROR line if it cannot serve; accepts only addresses of this
// machine.
//
// On a TCP port callers are not authenticated, so SetConfig is refused there: it could send the
// token from the plugin's environment, or the content of a file that it names, to the caller's own
// server. A Scale without an action is always refused, because the agent's protocol reads it as a
// count of 0.
int RunDev(scaling::TargetService& service, const ProcessOptions& options, const DevOptions& dev);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_PLUGIN_PLUGIN_PROCESS_H_
