// SPDX-License-Identifier: Apache-2.0
#include "interrupt.h"

#include <array>
#include <csignal>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace nomad_harvester::cli {

Interrupt::Interrupt() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGINT);
  sigaddset(&mask, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &mask, nullptr);
  signals_ = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  end_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

Interrupt::~Interrupt() {
  if (watcher_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(end_, &one, sizeof(one));
    watcher_.join();
  }
  if (signals_ >= 0) close(signals_);
  if (end_ >= 0) close(end_);
}

void Interrupt::Cancels(const runtime::CancelSource& work) {
  if (signals_ < 0 || end_ < 0) return;  // no file descriptor is left: not interruptible
  watcher_ = std::thread([this, &work] {
    std::array<pollfd, 2> fds{{{signals_, POLLIN, 0}, {end_, POLLIN, 0}}};
    while (poll(fds.data(), fds.size(), -1) <= 0) {
    }
    if ((fds[0].revents & POLLIN) != 0) work.Cancel(runtime::CancelReason::kShutdown);
  });
}

}  // namespace nomad_harvester::cli
