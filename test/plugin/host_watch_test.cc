// SPDX-License-Identifier: Apache-2.0
#include "host_watch.h"

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "stop_request.h"

namespace nomad_harvester::plugin {
namespace {

// A process that waits to be killed.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) pause();
    }
  }
  ~Child() { Kill(); }
  pid_t pid() const { return pid_; }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

// A table in which `parent` is the parent process.
ProcessTable TableWith(const pid_t& parent) {
  ProcessTable table = SystemProcessTable();
  table.parent = [&parent] { return parent; };
  return table;
}

ProcessTable WithoutDescriptors(const pid_t& parent) {
  ProcessTable table = TableWith(parent);
  table.open_descriptor = [](pid_t) {
    errno = EPERM;
    return -1;
  };
  return table;
}

TEST(HostWatch, P1_the_descriptor_becomes_readable_when_the_host_dies) {
  Child host;
  const pid_t parent = host.pid();
  const HostWatch watch(TableWith(parent));
  ASSERT_GE(watch.fd(), 0);
  EXPECT_EQ(watch.poll_milliseconds(), -1);
  EXPECT_FALSE(watch.HostIsGone());
  host.Kill();
  EXPECT_TRUE(watch.HostIsGone());
}

TEST(HostWatch, P1_without_a_descriptor_a_changed_parent_means_that_the_host_died) {
  pid_t parent = 4242;
  const HostWatch watch(WithoutDescriptors(parent));
  EXPECT_LT(watch.fd(), 0);
  EXPECT_EQ(watch.poll_milliseconds(), 250);
  EXPECT_FALSE(watch.HostIsGone());
  parent = 1;
  EXPECT_TRUE(watch.HostIsGone());
}

TEST(HostWatch, AHostThatDiedBeforeTheDescriptorWasOpenIsGone) {
  pid_t parent = getpid();
  ProcessTable table = TableWith(parent);
  table.open_descriptor = [&parent, open = table.open_descriptor](pid_t pid) {
    parent = 1;  // dies here; its PID now belongs to another process
    return open(pid);
  };
  const HostWatch watch(table);
  EXPECT_TRUE(watch.HostIsGone());
}

TEST(HostWatch, AnAgentThatIsProcessOneOrOutsideOfTheNamespaceLives) {
  for (pid_t parent : {1, 0}) {
    const HostWatch watch(WithoutDescriptors(parent));
    EXPECT_FALSE(watch.HostIsGone()) << parent;
  }
}

TEST(HostWatch, TheSystemsTableKnowsOurParent) {
  EXPECT_EQ(SystemProcessTable().parent(), getppid());
  const HostWatch watch(SystemProcessTable());
  EXPECT_FALSE(watch.HostIsGone());
}

TEST(StopRequest, EndsTheWaitWithTheFirstReason) {
  const auto stop = StopRequest::Create();
  ASSERT_TRUE(stop.ok());
  (*stop)->Request("first");
  (*stop)->Request("second");
  EXPECT_EQ((*stop)->Wait(nullptr), "first");
  EXPECT_EQ((*stop)->Wait(nullptr), "first");
}

TEST(StopRequest, TheHostsDeathEndsTheWait) {
  const auto stop = StopRequest::Create();
  Child host;
  const pid_t parent = host.pid();
  const HostWatch watch(TableWith(parent));
  host.Kill();
  EXPECT_EQ((*stop)->Wait(&watch), "the host is gone");
}

TEST(StopRequest, TheHostsDeathEndsTheWaitWithoutADescriptor) {
  const auto stop = StopRequest::Create();
  int calls = 0;
  ProcessTable table;
  // Alive at construction and at the first check.
  table.parent = [&calls] { return ++calls <= 2 ? 4242 : 1; };
  table.open_descriptor = [](pid_t) { return -1; };
  const HostWatch watch(table);
  EXPECT_EQ((*stop)->Wait(&watch), "the host is gone");
  EXPECT_EQ(calls, 3);
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
    EXPECT_EQ((*stop)->Wait(nullptr), "SIGTERM");
  }
  raise(SIGTERM);  // the object no longer exists: nothing happens
  raise(SIGINT);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

TEST(IgnoreSignal, LetsTheProcessLive) {
  IgnoreSignal(SIGUSR1);
  raise(SIGUSR1);
  std::signal(SIGUSR1, SIG_DFL);
}

}  // namespace
}  // namespace nomad_harvester::plugin
