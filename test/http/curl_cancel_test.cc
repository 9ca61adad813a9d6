// SPDX-License-Identifier: Apache-2.0
// Cancellation at every stage of a request. Each test hangs, or takes longer than kHangProtection,
// if the request is not woken.
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <latch>
#include <netdb.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "nomad_harvester/base/json_fields.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/curl_fixture.h"

namespace {

constexpr const char* kSlowHost = "slow-name.test";

// A name resolver that blocks until the test releases it.
struct SlowResolver {
  std::latch asked{1};
  std::latch may_answer{1};
  std::latch answered{1};
};
std::atomic<SlowResolver*> slow_resolver = nullptr;

}  // namespace

// Overrides the C library's function: libcurl's resolver threads call this one.
extern "C" int getaddrinfo(const char* node, const char* service, const struct addrinfo* hints,
                           struct addrinfo** result) {
  if (node != nullptr && std::strcmp(node, kSlowHost) == 0) {
    if (SlowResolver* const resolver = slow_resolver.load()) {
      resolver->asked.count_down();
      resolver->may_answer.wait();
      resolver->answered.count_down();
    }
    return EAI_NONAME;
  }
  using Function = int (*)(const char*, const char*, const struct addrinfo*, struct addrinfo**);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(node, service, hints, result);
}

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::SizeIs;

// Whether a thread of this process sleeps in the kernel (man 5 proc, /proc/pid/stat).
bool IsAsleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t state = text.rfind(") ");
  return state != std::string::npos && text.at(state + 2) == 'S';
}

// Blocks until the thread waits: asleep in many consecutive checks.
void AwaitAsleep(pid_t thread) {
  for (int seen = 0; seen < 100; seen = IsAsleep(thread) ? seen + 1 : 0) std::this_thread::yield();
}

class CurlCancel : public CurlTest {
 protected:
  // Sends until `canceller` has cancelled.
  template <typename Wait>
  void ExpectCancelled(HttpTransport& transport, Wait wait_until_under_way) {
    const runtime::CancelSource source(context_);
    const pid_t sender = gettid();
    const std::jthread canceller([&] {
      wait_until_under_way();
      AwaitAsleep(sender);
      source.Cancel(runtime::CancelReason::kClient);
    });
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(transport.Send(source.context(), Get("/")), StatusIs(StatusCode::kCancelled));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kHangProtection);
  }
};

TEST_F(CurlCancel, while_the_server_is_silent) {
  LoopbackServer server(ServerReply{.silent = true});
  ExpectCancelled(*MakeFor(server.url()), [&] { server.AwaitRequests(1); });
  server.AwaitEnded(1);
}

// On a new connection libcurl has timers that would wake the request eventually. On a reused one
// only the cancellation wakes it.
TEST_F(CurlCancel, on_a_connection_that_was_used_before) {
  LoopbackServer server(
      [](const ServerRequest& request) { return ServerReply{.silent = request.target == "/"}; });
  const auto transport = Make({.base_url = server.url(), .connect_timeout = std::chrono::hours(1)});
  ASSERT_THAT(transport->Send(context_, Get("/warm-up")), IsOk());
  ExpectCancelled(*transport, [&] { server.AwaitRequests(2); });
  EXPECT_EQ(server.connections(), 1);
  server.AwaitEnded(1);
  EXPECT_THAT(transport->Send(context_, Get("/again")), IsOk());
}

TEST_F(CurlCancel, in_the_middle_of_a_reply) {
  LoopbackServer server(ServerReply{.body = "0123456789", .stall_after = 5});
  ExpectCancelled(*MakeFor(server.url()), [&] { server.AwaitRequests(1); });
  server.AwaitEnded(1);
}

// Cancels when the first element of a list has been read, and counts those that follow.
class CancelsAtFirst final : public base::JsonElements {
 public:
  explicit CancelsAtFirst(const runtime::CancelSource& source) : source_(source) {}
  void Restart() override {}
  void Begin() override {}
  void Take(int /*path*/, const base::JsonEvent& /*event*/) override {
    if (source_.context().Done()) ++taken_after;
    source_.Cancel(runtime::CancelReason::kClient);
  }
  absl::Status End() override { return absl::OkStatus(); }

  int taken_after = 0;

 private:
  const runtime::CancelSource& source_;
};

// libcurl reads on for as long as there is something to read.
TEST_F(CurlCancel, while_a_reply_arrives_without_a_pause) {
  // No piece of the reply has the ends of two elements.
  const std::string element = R"({"a":")" + std::string(std::size_t{1} << 20U, 'x') + "\"}";
  ServerReply reply{.body = "[" + element};
  for (int i = 1; i < 32; ++i) reply.body += "," + element;
  reply.body += "]";
  LoopbackServer server(reply);
  const runtime::CancelSource source(context_);
  CancelsAtFirst elements(source);
  base::JsonListReader list("", {"a"}, elements);
  HttpRequest request = Get("/");
  request.list = &list;
  EXPECT_THAT(MakeFor(server.url())->Send(source.context(), request),
              StatusIs(StatusCode::kCancelled));
  EXPECT_EQ(elements.taken_after, 0);
}

TEST_F(CurlCancel, while_the_TLS_handshake_gets_no_reply) {
  // Accepts connections and never completes a handshake.
  LoopbackServer server(ServerReply{.silent = true});
  const auto transport =
      Make({.base_url = "https://" + server.authority(), .tls = {.skip_verify = true}});
  ExpectCancelled(*transport, [&] {
    while (server.connections() == 0) std::this_thread::yield();
  });
}

// The libcurl of the static build resolves with c-ares, in which no thread blocks.
#ifndef NOMAD_HARVESTER_RESOLVES_WITH_CARES
TEST_F(CurlCancel, while_a_name_is_being_resolved) {
  SlowResolver resolver;
  slow_resolver = &resolver;
  ExpectCancelled(*MakeFor(std::string("http://") + kSlowHost), [&] { resolver.asked.wait(); });
  slow_resolver = nullptr;
  resolver.may_answer.count_down();
  resolver.answered.wait();
}
#endif

TEST_F(CurlCancel, before_anything_was_sent) {
  LoopbackServer server{ServerReply()};
  const auto transport = MakeFor(server.url());
  const runtime::CancelSource source(context_);
  source.Cancel(runtime::CancelReason::kClient);
  EXPECT_THAT(transport->Send(source.context(), Get("/")), StatusIs(StatusCode::kCancelled));
  EXPECT_THAT(server.requests(), SizeIs(0));
}

TEST_F(CurlCancel, a_request_that_won_the_race_gets_its_reply_and_the_next_one_works) {
  LoopbackServer server{ServerReply()};
  const auto transport = MakeFor(server.url());
  for (int i = 0; i < 50; ++i) {
    const runtime::CancelSource source(context_);
    const std::jthread canceller([&] { source.Cancel(runtime::CancelReason::kClient); });
    const auto outcome = transport->Send(source.context(), Get("/"));
    if (!outcome.ok()) {
      EXPECT_THAT(outcome, StatusIs(StatusCode::kCancelled));
    }
    ASSERT_THAT(transport->Send(context_, Get("/")), IsOk());
  }
}

}  // namespace
}  // namespace nomad_harvester::http
