// SPDX-License-Identifier: Apache-2.0
#include "stop_request.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <poll.h>
#include <stop_token>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/clock.h"

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
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    sigaction(signal, &action, nullptr);
    sigaddset(&set, signal);
  }
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
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

void ArmExitWatchdog(base::Duration limit, std::function<void()> clean_up) {
  // A separate clock: the thread outlives its caller's objects.
  std::shared_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  const base::MonoTime until = clock->Now() + limit;
  try {
    std::thread([clock, until, clean_up = std::move(clean_up)] {
      clock->SleepUntil(until, std::stop_token());
      clean_up();
      _exit(0);
    }).detach();
  } catch (const std::system_error&) {
    // If no thread can be created, only the graceful stop remains; the host kills a process that
    // hangs.
  }
}

}  // namespace nomad_harvester::plugin
