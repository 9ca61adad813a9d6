// SPDX-License-Identifier: Apache-2.0
#include "stop_request.h"

#include <array>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "nomad_harvester/base/file.h"

#include "support/scoped_temp_dir.h"

namespace nomad_harvester::plugin {
namespace {

TEST(StopRequest, EndsTheWaitWithTheFirstReason) {
  const auto stop = StopRequest::Create();
  ASSERT_TRUE(stop.ok());
  (*stop)->Request("first");
  (*stop)->Request("second");
  EXPECT_EQ((*stop)->Wait(std::nullopt), "first");
  EXPECT_EQ((*stop)->Wait(std::nullopt), "first");
}

TEST(StopRequest, P1_the_hosts_death_ends_the_wait) {
  const auto stop = StopRequest::Create();
  ASSERT_TRUE(stop.ok());
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t host = fork();
  if (host == 0) {
    const pid_t parent = getpid();
    if (fork() == 0) {
      std::string_view text = "ready: ";
      base::WriteAll(ends[1], &text);
      text = (*stop)->Wait(parent);
      _exit(base::WriteAll(ends[1], &text));
    }
    while (true) pause();
  }
  close(ends[1]);
  std::array<char, 64> buffer{};
  EXPECT_EQ(read(ends[0], buffer.data(), buffer.size()), 7) << "the plugin runs";
  kill(host, SIGKILL);
  waitpid(host, nullptr, 0);
  EXPECT_GT(read(ends[0], buffer.data(), buffer.size() - 1), 0);
  EXPECT_STREQ(buffer.data(), "the host is gone");
  close(ends[0]);
}

TEST(StopRequest, P1_any_other_parent_means_that_the_host_died) {
  const auto stop = StopRequest::Create();
  EXPECT_EQ((*stop)->Wait(getppid() + 1), "the host is gone");
}

TEST(StopRequest, ARequestEndsTheWaitForALivingHost) {
  const auto stop = StopRequest::Create();
  (*stop)->Request("asked");
  EXPECT_EQ((*stop)->Wait(getppid()), "asked");
}

TEST(StopRequest, ASignalIsARequestEvenIfItWasBlocked) {
  sigset_t set;
  sigset_t old;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, &old);
  {
    const auto stop = StopRequest::Create();
    (*stop)->OnSignals({SIGTERM, SIGINT});
    raise(SIGTERM);
    EXPECT_EQ((*stop)->Wait(std::nullopt), "SIGTERM");
  }
  raise(SIGTERM);  // the object no longer exists: nothing happens
  raise(SIGINT);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

// Ends the caller unless a thread cannot be made any more. Limits do not bind root.
void ForbidThreads() {
  if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(2);
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  if (setrlimit(RLIMIT_NPROC, &none) != 0) _exit(3);
  try {
    std::thread([] {}).detach();
  } catch (const std::system_error&) {
    return;
  }
  _exit(4);
}

TEST(ExitWatchdogDeathTest, P1_ends_a_process_that_hangs_where_no_thread_can_be_made) {
  const support::ScopedTempDir dir;
  chmod(dir.path().c_str(), 0777);
  const SocketPaths paths{.directory = dir.Path("d"), .socket = dir.Path("d/s")};
  const auto hang = [&] {
    ForbidThreads();
    mkdir(paths.directory.c_str(), 0700);
    close(open(paths.socket.c_str(), O_CREAT | O_RDWR, 0600));
    alarm(20);  // ends the test if nothing else does
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    ArmExitWatchdog(std::chrono::milliseconds(20), paths);
    while (true) pause();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(0), "");
  EXPECT_NE(access(paths.directory.c_str(), F_OK), 0);
}

TEST(IgnoreSignal, LetsTheProcessLive) {
  IgnoreSignal(SIGUSR1);
  raise(SIGUSR1);
  std::signal(SIGUSR1, SIG_DFL);
}

}  // namespace
}  // namespace nomad_harvester::plugin
