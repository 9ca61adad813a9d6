// SPDX-License-Identifier: Apache-2.0
#include "stop_request.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <system_error>
#include <unistd.h>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::plugin {
namespace {

// With kExitLimit 2 s (rule P1).
constexpr int kHostCheckMilliseconds = 200;

std::atomic<StopRequest*> on_signal{nullptr};  // the target of the signal handler

void HandleSignal(int signal) {
  const int saved = errno;
  if (StopRequest* const request = on_signal.load()) {
    request->Request(signal == SIGINT ? "SIGINT" : signal == SIGHUP ? "SIGHUP" : "SIGTERM");
  }
  errno = saved;
}

std::atomic<const SocketPaths*> at_exit{nullptr};  // what the end of the process removes

void EndProcess(int) {
  RemoveSocket(*at_exit.load());  // unlink and rmdir, which are async-signal-safe
  _exit(0);
}

// For the calling thread.
void Unblock(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StopRequest>> StopRequest::Create() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) {
    return base::MakeStatus(absl::StatusCode::kResourceExhausted,
                            "eventfd: " + std::generic_category().message(errno));
  }
  return std::unique_ptr<StopRequest>(new StopRequest(fd));
}

StopRequest::~StopRequest() {
  StopRequest* mine = this;
  on_signal.compare_exchange_strong(mine, nullptr);
  close(fd_);
}

void StopRequest::Request(const char* reason) noexcept {
  const char* none = nullptr;
  reason_.compare_exchange_strong(none, reason);
  const std::uint64_t one = 1;
  // Fails only when the counter is full; the descriptor is then readable already.
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
}

void StopRequest::OnSignals(std::initializer_list<int> signals) {
  on_signal = this;
  struct sigaction action {};
  action.sa_handler = HandleSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : signals) sigaction(signal, &action, nullptr);
  Unblock(signals);
}

std::string_view StopRequest::Wait(std::optional<pid_t> host) const {
  const int timeout = host ? kHostCheckMilliseconds : -1;
  while (true) {
    pollfd request{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&request, 1, timeout) > 0) return reason_.load();
    if (host && getppid() != *host) return "the host is gone";
  }
}

void IgnoreSignal(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

void ArmExitWatchdog(base::Duration limit, const SocketPaths& paths) {
  // Never freed: the signal may come while the process exits.
  at_exit = new SocketPaths(paths);
  struct sigaction action {};
  action.sa_handler = EndProcess;
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  Unblock({SIGALRM});
  const auto micros = std::chrono::ceil<std::chrono::microseconds>(limit).count();
  itimerval timer{};
  timer.it_value.tv_sec = micros / 1'000'000;
  timer.it_value.tv_usec = micros % 1'000'000;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace nomad_harvester::plugin
