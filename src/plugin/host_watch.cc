// SPDX-License-Identifier: Apache-2.0
#include "host_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nomad_harvester::plugin {

ProcessTable SystemProcessTable() {
  return {getppid,
          // Called by its number: glibc has a wrapper only since 2.36. The kernel has the call
          // since 5.3.
          [](pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }};
}

HostWatch::HostWatch(const ProcessTable& processes)
    : processes_(processes),
      host_(processes_.parent()),
      fd_(host_ > 0 ? processes_.open_descriptor(host_) : -1) {}

HostWatch::~HostWatch() {
  if (fd_ >= 0) close(fd_);
}

bool HostWatch::HostIsGone() const {
  // The parent is read again after the descriptor was opened: it may have died in between, and its
  // PID may belong to another process.
  if (processes_.parent() != host_) return true;
  pollfd host{fd_, POLLIN, 0};
  return fd_ >= 0 && poll(&host, 1, 0) > 0;
}

}  // namespace nomad_harvester::plugin
