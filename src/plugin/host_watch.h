// SPDX-License-Identifier: Apache-2.0
// Detects the death of the parent process. Otherwise nobody would stop the plugin.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_HOST_WATCH_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_HOST_WATCH_H_

#include <functional>
#include <sys/types.h>

namespace nomad_harvester::plugin {

// Process-related system calls; tests replace them.
struct ProcessTable {
  std::function<pid_t()> parent;              // getppid
  std::function<int(pid_t)> open_descriptor;  // pidfd_open; negative: not possible
};
ProcessTable SystemProcessTable();

// Watches the process that is the parent at construction. PR_SET_PDEATHSIG is not used: it reacts
// to the end of the thread that forked the plugin, and Go's runtime ends threads while the host
// continues to run (prctl(2)).
//
// Only a change of the parent's PID has a meaning, not its value: 1 may be an init that adopted the
// plugin or the agent in its container, and 0 is a parent in an outer PID namespace.
class HostWatch {
 public:
  explicit HostWatch(const ProcessTable& processes);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  // Becomes readable when the host dies. Negative if the kernel or seccomp does not allow pidfds:
  // then call HostIsGone every poll_milliseconds().
  int fd() const { return fd_; }
  // The timeout for poll(2): negative if fd() is valid.
  int poll_milliseconds() const { return fd_ >= 0 ? -1 : 250; }
  bool HostIsGone() const;

 private:
  const ProcessTable processes_;
  const pid_t host_;
  const int fd_;
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_HOST_WATCH_H_
