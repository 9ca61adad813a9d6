// SPDX-License-Identifier: Apache-2.0
// Notices that the process that started us has died: nobody else would ever end us.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_HOST_WATCH_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_HOST_WATCH_H_

#include <functional>
#include <sys/types.h>

namespace nomad_harvester::plugin {

// The kernel's view of processes: injected, so that tests can take a call away.
struct ProcessTable {
  std::function<pid_t()> parent;              // getppid
  std::function<int(pid_t)> open_descriptor;  // pidfd_open; negative: not possible
};
ProcessTable SystemProcessTable();

// Watches the parent at the time of construction. No PR_SET_PDEATHSIG: it follows the thread that
// forked us, and threads of Go's runtime end while the host lives on (prctl(2)).
//
// The parent's number alone says little: 1 may be an init that adopted us or the agent itself in
// its container, and 0 is a parent in an outer PID namespace. What counts is that it changes.
class HostWatch {
 public:
  explicit HostWatch(const ProcessTable& processes);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  // Becomes readable when the host dies; negative where the kernel or seccomp offers none: then
  // HostIsGone is to be asked every poll_milliseconds().
  int fd() const { return fd_; }
  // For poll(2): negative if fd() needs no help.
  int poll_milliseconds() const { return fd_ >= 0 ? -1 : 250; }
  bool HostIsGone() const;

 private:
  const ProcessTable processes_;
  const pid_t host_;
  const int fd_;
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_HOST_WATCH_H_
