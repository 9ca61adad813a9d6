// SPDX-License-Identifier: Apache-2.0
#include "support/threaded_clock.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace nomad_harvester::support {
namespace {

// Looking costs time that the threads need which are looked at.
constexpr base::Duration kBetweenLooks = std::chrono::microseconds(200);

// How often each thread has waited and was interrupted; nullopt if one of them does not wait. See
// proc_pid_status(5).
std::optional<std::map<std::string, std::string>> SwitchesOfWaitingThreads() {
  std::map<std::string, std::string> switches;
  const std::string own = std::to_string(gettid());
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const std::string id = entry.path().filename();
    if (id == own) continue;
    std::ifstream file(entry.path() / "status");
    std::string& counts = switches[id];
    bool waits = false;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("State:")) waits = line.find("S (sleeping)") != std::string::npos;
      if (line.find("ctxt_switches:") != std::string::npos) counts += line;
    }
    if (!waits) return std::nullopt;
  }
  if (error) return std::nullopt;
  return switches;
}

}  // namespace

ThreadedClock::ThreadedClock() {
  clock_.set_auto_advance(false);
  offset_ = std::chrono::steady_clock::now() - clock_.Now();
}

bool ThreadedClock::SleepUntil(base::MonoTime until, std::stop_token stop) {
  const bool never = until == base::MonoTime::max();
  return clock_.SleepUntil(never ? until : until - offset_, std::move(stop));
}

// A thread that was found waiting may run again while the others are looked at. One that waits at
// the second observation, too, and has not been switched to in between, has not run in between: so
// there was a moment at which all of them waited, and then nobody was left to wake one.
bool OtherThreadsWait() {
  const auto first = SwitchesOfWaitingThreads();
  return first.has_value() && first == SwitchesOfWaitingThreads();
}

PassingTime::PassingTime(ThreadedClock& clock, base::Duration step)
    : thread_([&clock, step](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          if (OtherThreadsWait()) {
            clock.AdvanceToNextWake(step);
          } else {
            std::this_thread::sleep_for(kBetweenLooks);
          }
        }
      }) {}

}  // namespace nomad_harvester::support
