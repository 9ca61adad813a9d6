// SPDX-License-Identifier: Apache-2.0
#include "child.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::demo {
namespace {

// The plugin needs less than two seconds to terminate.
constexpr auto kEndLimit = std::chrono::seconds(5);
constexpr auto kEndStep = std::chrono::milliseconds(20);

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  // posix_spawn takes pointers to non-const but does not change the strings.
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::Status Child::Start(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return base::Internal("no pipe can be had");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  // The child must not inherit the demo's mask, which blocks signals.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int error = posix_spawn(&pid_, arguments.front().c_str(), &actions, &attributes,
                                Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error != 0) {
    pid_ = -1;
    close(ends[0]);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the demo starts one program, from one thread.
    return base::NotFound(arguments.front() + " cannot be started: " + std::strerror(error));
  }
  read_fd_ = ends[0];
  reader_ = std::thread([this] { ReadLines(); });
  return absl::OkStatus();
}

Child::~Child() { End(); }

int Child::End() {
  if (pid_ == -1) return wait_status_;
  kill(pid_, SIGTERM);
  const auto limit = std::chrono::steady_clock::now() + kEndLimit;
  while (waitpid(pid_, &wait_status_, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > limit) kill(pid_, SIGKILL);
    std::this_thread::sleep_for(kEndStep);
  }
  pid_ = -1;
  reader_.join();  // the pipe ended with the process
  close(read_fd_);
  return wait_status_;
}

std::vector<std::string> Child::TakeLines() {
  base::MutexLock lock(mutex_);
  return std::exchange(lines_, {});
}

void Child::ReadLines() {
  std::array<char, 4096> buffer{};
  std::string rest;
  for (;;) {
    const ssize_t got = read(read_fd_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    rest.append(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
      base::MutexLock lock(mutex_);
      lines_.push_back(rest.substr(0, end));
      rest.erase(0, end + 1);
    }
  }
}

}  // namespace nomad_harvester::demo
