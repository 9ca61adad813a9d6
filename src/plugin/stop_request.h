// SPDX-License-Identifier: Apache-2.0
// A request to stop the process, from any source, and a limit on the time it takes.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_STOP_REQUEST_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_STOP_REQUEST_H_

#include <atomic>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <sys/types.h>

#include "nomad_harvester/base/time.h"

#include "absl/status/statusor.h"
#include "local_address.h"

namespace nomad_harvester::plugin {

// A flag that threads can wait for. Thread-safe.
class StopRequest {
 public:
  // RESOURCE_EXHAUSTED if the process has reached its limit of file descriptors.
  static absl::StatusOr<std::unique_ptr<StopRequest>> Create();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Also async-signal-safe. The first reason is kept; it must be a literal.
  void Request(const char* reason) noexcept;
  // While this object exists, each of the signals requests the stop. Uses a handler, because that
  // works with threads that already exist. The calling thread unblocks the signals, even if all
  // threads had blocked them. Only one object at a time can do this.
  void OnSignals(std::initializer_list<int> signals);

  // Blocks until a stop is requested or, if `host` is given, until the process `host` is no longer
  // the parent, which means that the host died. Returns the reason, for the log.
  //
  // The parent's PID is asked for every 200 ms. PR_SET_PDEATHSIG is not used: it reacts to the end
  // of the thread that forked the plugin, and Go's runtime ends threads while the host continues to
  // run (prctl(2)). Only a change of the PID has a meaning, not its value: 1 may be an init that
  // adopted the plugin or the agent in its container, and 0 is a parent in an outer PID namespace.
  std::string_view Wait(std::optional<pid_t> host) const;

 private:
  explicit StopRequest(int fd) : fd_(fd) {}

  const int fd_;  // an eventfd: readable after the first request
  std::atomic<const char*> reason_{nullptr};
};

void IgnoreSignal(int signal);

// The host allows 2 s (rule P1); a graceful stop takes up to 1.5 s.
inline constexpr base::Duration kExitLimit = std::chrono::milliseconds(1800);

// Removes `paths` and ends the process with code 0 after `limit`, even if a destructor of main
// hangs. Uses a timer and SIGALRM, because a thread could not be started at the limit of processes.
// It cannot be disarmed, so it must be armed only when the process is stopping. It does not log at
// the end: that would block if the host does not read our stderr.
void ArmExitWatchdog(base::Duration limit, const SocketPaths& paths);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_STOP_REQUEST_H_
