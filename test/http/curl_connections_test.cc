// SPDX-License-Identifier: Apache-2.0
// How CurlTransport opens, reuses and closes connections.
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/curl_fixture.h"
#include "support/fake_clock.h"
#include "support/scoped_temp_dir.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::Eq;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;
using testing::SizeIs;

class CurlConnections : public CurlTest {};

TEST_F(CurlConnections, a_second_request_in_flight_gets_a_connection_of_its_own) {
  std::latch both(2);
  LoopbackServer server([&](const ServerRequest&) {
    both.arrive_and_wait();
    return ServerReply();
  });
  const auto transport = MakeFor(server.url());
  {
    const std::jthread other([&] { EXPECT_THAT(transport->Send(context_, Get("/")), IsOk()); });
    EXPECT_THAT(transport->Send(context_, Get("/")), IsOk());
  }
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(CurlConnections, L8_there_are_never_more_than_requests_in_flight_at_once) {
  LoopbackServer server{ServerReply()};
  const auto transport = MakeFor(server.url());
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) EXPECT_THAT(transport->Send(context_, Get("/")), IsOk());
    });
  }
  threads.clear();
  EXPECT_LE(server.connections(), 3);
  EXPECT_THAT(server.requests(), SizeIs(60));
}

TEST_F(CurlConnections, the_server_may_end_an_idle_connection) {
  LoopbackServer server(ServerReply{.close_after = true});
  const auto transport = MakeFor(server.url());
  for (int i = 1; i <= 3; ++i) {
    EXPECT_THAT(transport->Send(context_, Get("/")), IsOk());
    server.AwaitEnded(i - 1);
  }
  EXPECT_EQ(server.connections(), 3);
}

// Load balancers say so before they close an idle connection.
TEST_F(CurlConnections, what_a_server_says_unasked_is_no_reply) {
  LoopbackServer server{ServerReply()};
  const auto transport = MakeFor(server.url());
  ASSERT_THAT(transport->Send(context_, Get("/")), IsOk());
  server.Interject("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
  for (int i = 0; i < 2; ++i) {
    const auto response = transport->Send(context_, Get("/"));
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(response->status, 200);
  }
  EXPECT_EQ(server.connections(), 2);
}

// Sockets of this machine whose peer, at that port of the loopback, has closed (the kernel's
// include/net/tcp_states.h, TCP_CLOSE_WAIT).
int HalfClosed(int port) {
  std::array<char, 16> hex{};
  std::snprintf(hex.data(), hex.size(), ":%04X 08 ", static_cast<unsigned int>(port));
  std::ifstream sockets("/proc/net/tcp");
  int count = 0;
  for (std::string line; std::getline(sockets, line);) {
    if (line.find(hex.data()) != std::string::npos) ++count;
  }
  return count;
}

TEST_F(CurlConnections, that_nobody_needs_any_more_are_given_up_when_the_server_has_ended_them) {
  std::atomic<int> seen = 0;
  std::latch all(3);
  LoopbackServer server([&](const ServerRequest&) {
    if (++seen <= 3) all.arrive_and_wait();
    return ServerReply();
  });
  const auto transport = MakeFor(server.url());
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] { EXPECT_THAT(transport->Send(context_, Get("/")), IsOk()); });
    }
  }
  server.HangUp();
  server.AwaitEnded(3);
  EXPECT_EQ(HalfClosed(server.port()), 3);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(transport->Send(context_, Get("/")), IsOk());
  EXPECT_EQ(HalfClosed(server.port()), 0);
  EXPECT_EQ(server.connections(), 4);
}

// A connection's handle keeps the options that all requests have in common, and nothing else: each
// request, whatever came before it, is as the first one of a transport would be.
TEST_F(CurlConnections, a_request_takes_nothing_over_from_the_one_before_it) {
  LoopbackServer server{ServerReply()};
  std::vector<HttpRequest> requests;
  for (const Method method : {Method::kGet, Method::kPost, Method::kPatch, Method::kDelete}) {
    for (const char* const body : {"", "{}"}) {
      if (method == Method::kGet && *body != '\0') continue;
      HttpRequest request = Get("/x");
      request.method = method;
      request.body = body;
      if (*body != '\0') request.headers.Set("Content-Type", "application/json");
      request.headers.Set("X-Own", std::to_string(requests.size()));
      requests.push_back(request);
      requests.push_back(Once(request));
    }
  }
  const auto text_of = [](const ServerRequest& r) {
    return r.method + " " + r.headers.Find("X-Own").value_or("none") + " " +
           r.headers.Find("Content-Type").value_or("no type") + " " + r.body;
  };
  const auto kept = MakeFor(server.url());
  for (const HttpRequest& first : requests) {
    for (const HttpRequest& second : requests) {
      ASSERT_THAT(kept->Send(context_, first), IsOk());
      const int before = server.connections();
      ASSERT_THAT(kept->Send(context_, second), IsOk());
      const bool opened = server.connections() > before;
      EXPECT_EQ(opened, second.idempotency == Idempotency::kOnce);
      const std::string after_another = text_of(server.requests().back());
      ASSERT_THAT(MakeFor(server.url())->Send(context_, second), IsOk());
      EXPECT_EQ(after_another, text_of(server.requests().back()));
    }
  }
}

// The server reads the second request of a connection and closes without a reply.
ServerReply DropTheSecond(const ServerRequest& request, std::atomic<int>* seen) {
  ServerReply reply;
  if (++*seen == 2) reply.raw = "";
  reply.headers.Add("X-Connection", std::to_string(request.connection));
  return reply;
}

TEST_F(CurlConnections, what_may_be_sent_once_is_never_repeated_behind_the_callers_back) {
  std::atomic<int> seen = 0;
  LoopbackServer server([&](const ServerRequest& r) { return DropTheSecond(r, &seen); });
  const auto transport = MakeFor(server.url());
  HttpRequest request = Get("/");
  request.method = Method::kPost;
  ASSERT_THAT(transport->Send(context_, request), IsOk());
  EXPECT_THAT(transport->Send(context_, Once(request)), StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(server.requests(), SizeIs(2));
  // It used a new connection.
  EXPECT_EQ(server.requests().at(1).connection, 2);
}

TEST_F(CurlConnections, a_read_is_sent_again_if_a_reused_connection_breaks) {
  std::atomic<int> seen = 0;
  LoopbackServer server([&](const ServerRequest& r) { return DropTheSecond(r, &seen); });
  const auto transport = MakeFor(server.url());
  ASSERT_THAT(transport->Send(context_, Get("/")), IsOk());
  EXPECT_THAT(transport->Send(context_, Get("/")), IsOk());
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(CurlConnections, a_refused_connection_is_UNAVAILABLE_and_names_host_and_port) {
  const int port = ClosedPort();
  const auto transport = MakeFor("http://127.0.0.1:" + std::to_string(port));
  HttpRequest request = Get("/v1/nodes?token=hush");
  EXPECT_THAT(transport->Send(context_, request),
              StatusIs(StatusCode::kUnavailable,
                       AllOf(HasSubstr("GET /v1/nodes: cannot connect to http://127.0.0.1:" +
                                       std::to_string(port) + ": Connection refused"),
                             Not(HasSubstr("hush")), Not(HasSubstr(" ms")))));
}

// The server moves the clock past the limit and then sends what wakes the client.
TEST_F(CurlConnections, a_server_that_does_not_answer_is_named_with_the_limit) {
  support::FakeClock clock;
  clock.set_auto_advance(false);
  LoopbackServer server([&](const ServerRequest&) {
    clock.Advance(std::chrono::seconds(30));
    return ServerReply{.body = "0123456789", .stall_after = 5};
  });
  const auto transport = MakeFor(server.url());
  const auto context = runtime::Context::Background(clock).WithTimeout(std::chrono::seconds(30));
  EXPECT_THAT(transport->Send(context, Get("/v1/nodes?token=hush")),
              StatusIs(StatusCode::kDeadlineExceeded,
                       "GET /v1/nodes: timed out after 30s waiting for " + server.url()));
}

TEST_F(CurlConnections, a_server_that_takes_no_connection_is_named_with_the_limit) {
  LoopbackServer server(ServerReply{.silent = true});  // also in a handshake
  const CurlOptions options{.base_url = "https://" + server.authority(),
                            .tls = {.skip_verify = true},
                            .connect_timeout = std::chrono::milliseconds(50)};
  EXPECT_THAT(Make(options)->Send(context_, Get("/")),
              StatusIs(StatusCode::kUnavailable,
                       HasSubstr("GET /: timed out after 50ms connecting to " + options.base_url)));
}

TEST_F(CurlConnections, a_socket_that_is_not_there_is_UNAVAILABLE_and_named) {
  const support::ScopedTempDir dir;
  const auto transport = MakeFor("unix://" + dir.Path("nomad.sock"));
  EXPECT_THAT(transport->Send(context_, Get("/")),
              StatusIs(StatusCode::kUnavailable,
                       HasSubstr("cannot connect to unix://" + dir.Path("nomad.sock"))));
}

TEST_F(CurlConnections, a_socket_ignores_proxies_and_sends_a_Host_that_Nomad_takes) {
  const support::ScopedTempDir dir;
  LoopbackServer server(ServerReply(), LoopbackOptions{.unix_path = dir.Path("nomad.sock")});
  environment_.Set("http_proxy", "http://127.0.0.1:" + std::to_string(ClosedPort()));
  environment_.Set("ALL_PROXY", "http://127.0.0.1:" + std::to_string(ClosedPort()));
  EXPECT_THAT(MakeFor(server.url())->Send(context_, Get("/v1/agent/self")), IsOk());
  EXPECT_EQ(server.requests().at(0).target, "/v1/agent/self");
  EXPECT_THAT(server.requests().at(0).headers.Find("Host"), Optional(Eq("127.0.0.1")));
}

TEST_F(CurlConnections, the_prefix_of_the_address_precedes_every_target) {
  LoopbackServer server{ServerReply()};
  const auto transport = MakeFor(server.url() + "/k8s/clusters/c-1/");
  EXPECT_THAT(transport->Send(context_, Get("/apis?limit=1")), IsOk());
  EXPECT_THAT(transport->Send(context_, Get("")), IsOk());
  EXPECT_EQ(server.requests().at(0).target, "/k8s/clusters/c-1/apis?limit=1");
  EXPECT_EQ(server.requests().at(1).target, "/k8s/clusters/c-1");
  EXPECT_THAT(server.requests().at(0).headers.Find("Host"), Optional(Eq(server.authority())));
}

}  // namespace
}  // namespace nomad_harvester::http
