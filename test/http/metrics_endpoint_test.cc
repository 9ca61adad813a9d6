// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/metrics_endpoint.h"

#include <arpa/inet.h>
#include <array>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"

#include "support/recording_sink.h"

namespace nomad_harvester::http {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kAnyPort[] = "127.0.0.1:0";

class Connection {
 public:
  explicit Connection(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  ~Connection() { close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool connected() const { return connected_; }
  void Say(const std::string& text) {
    (void)!send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  void SayNoMore() { shutdown(socket_, SHUT_WR); }
  // Until the server closes.
  std::string Hear() {
    std::string heard;
    std::array<char, 4096> part{};
    for (;;) {
      const ssize_t got = recv(socket_, part.data(), part.size(), 0);
      if (got <= 0) return heard;
      heard.append(part.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  const int socket_;
  bool connected_ = false;
};

std::string Ask(int port, const std::string& request) {
  Connection connection(port);
  connection.Say(request);
  return connection.Hear();
}
std::string Scrape(int port) { return Ask(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); }

std::size_t Threads() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

class MetricsEndpointTest : public testing::Test {
 protected:
  std::unique_ptr<MetricsEndpoint> Make() {
    return std::make_unique<MetricsEndpoint>(
        MetricsEndpoint::Options{.clock = clock_.get(),
                                 .logger = log::Logger(log_, log::Level::kInfo),
                                 .build = {.version = "1.2.3", .commit = "abc"},
                                 .retry = std::chrono::milliseconds(5)});
  }
  // Waits until it listens.
  static int PortOf(const MetricsEndpoint& endpoint) {
    while (endpoint.port() == 0) std::this_thread::yield();
    return endpoint.port();
  }
  // The port of endpoint_.
  int Serve() {
    endpoint_->Serve(kAnyPort);
    return PortOf(*endpoint_);
  }
  std::size_t Warnings() const { return log_->Count("", log::Level::kWarn); }

  const std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  const std::shared_ptr<support::RecordingSink> log_ = std::make_shared<support::RecordingSink>();
  std::unique_ptr<MetricsEndpoint> endpoint_ = Make();
};

TEST_F(MetricsEndpointTest, T2_serves_what_was_told) {
  const std::shared_ptr<metrics::Sink> sink = endpoint_->Serve(kAnyPort);
  sink->Set(metrics::Metric::kDrifted, {"default/web"}, 7);
  const std::string reply = Scrape(PortOf(*endpoint_));
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(reply, HasSubstr("nomad_harvester_drifted{pool=\"default/web\"} 7\n"));
}

TEST_F(MetricsEndpointTest, T2_without_an_address_nothing_is_started) {
  const std::size_t before = Threads();
  const auto endpoint = Make();
  EXPECT_EQ(endpoint->Serve(""), nullptr);
  EXPECT_EQ(Threads(), before);
  EXPECT_EQ(endpoint->port(), 0);
  EXPECT_THAT(log_->records(), IsEmpty());
}

TEST_F(MetricsEndpointTest, T2_the_threads_end_with_the_address) {
  const std::size_t before = Threads();
  const int port = Serve();
  EXPECT_THAT(Scrape(port), HasSubstr("200 OK"));
  EXPECT_GT(Threads(), before);
  endpoint_->Serve("");
  EXPECT_EQ(Threads(), before);
  EXPECT_FALSE(Connection(port).connected());
}

TEST_F(MetricsEndpointTest, T2_a_reload_keeps_the_counts_and_the_port) {
  const std::shared_ptr<metrics::Sink> sink = endpoint_->Serve(kAnyPort);
  const int port = PortOf(*endpoint_);
  sink->Add(metrics::Metric::kErrors, {"config"}, 1);
  EXPECT_EQ(endpoint_->Serve(kAnyPort), sink);
  EXPECT_EQ(endpoint_->port(), port);
  EXPECT_EQ(endpoint_->Serve("localhost:0"), sink);
  EXPECT_THAT(Scrape(PortOf(*endpoint_)), HasSubstr("errors_total{class=\"config\"} 1\n"));
}

TEST_F(MetricsEndpointTest, T2_a_port_in_use_is_one_warning_and_is_served_once_it_is_free) {
  const int port = Serve();
  const std::string address = "127.0.0.1:" + std::to_string(port);
  const auto second = Make();
  const std::shared_ptr<metrics::Sink> sink = second->Serve(address);
  sink->Set(metrics::Metric::kDrifted, {"default/second"}, 1);
  while (Warnings() == 0) std::this_thread::yield();
  EXPECT_EQ(second->port(), 0);
  EXPECT_THAT(Scrape(port), Not(HasSubstr("default/second"))) << "the port is not shared";
  // Attempts go on meanwhile.
  for (int i = 0; i < 20; ++i) Scrape(port);
  endpoint_.reset();
  EXPECT_EQ(PortOf(*second), port);
  EXPECT_THAT(Scrape(port), HasSubstr("default/second"));
  EXPECT_EQ(Warnings(), 1U) << log_->Text();
  EXPECT_THAT(log_->Text(), HasSubstr("Address already in use"));
}

// What its ended connections leave for a minute.
TEST_F(MetricsEndpointTest,
       T2_the_port_of_a_server_that_has_just_ended_is_served_without_a_warning) {
  const int port = Serve();
  EXPECT_THAT(Scrape(port), HasSubstr("200 OK"));
  endpoint_.reset();
  const auto second = Make();
  second->Serve("127.0.0.1:" + std::to_string(port));
  while (second->port() == 0 && Warnings() == 0) std::this_thread::yield();
  EXPECT_EQ(Warnings(), 0U) << log_->Text();
}

TEST_F(MetricsEndpointTest, T2_an_address_of_another_machine_is_a_warning_too) {
  EXPECT_NE(endpoint_->Serve("192.0.2.1:9464"), nullptr);
  while (Warnings() == 0) std::this_thread::yield();
  EXPECT_EQ(endpoint_->port(), 0);
}

TEST_F(MetricsEndpointTest, T2_serves_ipv6_in_brackets) {
  endpoint_->Serve("[::1]:0");
  while (endpoint_->port() == 0 && Warnings() == 0) std::this_thread::yield();
  // A machine without IPv6 says so.
  EXPECT_TRUE(endpoint_->port() != 0 || log_->Text().find("Cannot assign") != std::string::npos ||
              log_->Text().find("not supported") != std::string::npos)
      << log_->Text();
}

TEST_F(MetricsEndpointTest, T2_other_paths_and_methods_have_nothing) {
  const int port = Serve();
  for (const char* line : {"GET / ", "GET /metrics/x ", "GET /../etc/passwd ", "POST /metrics ",
                           "DELETE /metrics ", "OPTIONS /metrics "}) {
    const std::string reply =
        Ask(port, std::string(line) + "HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    EXPECT_THAT(reply, AnyOf(StartsWith("HTTP/1.1 404"), StartsWith("HTTP/1.1 405"))) << line;
    EXPECT_THAT(reply, Not(HasSubstr("nomad_harvester"))) << line;
  }
}

TEST_F(MetricsEndpointTest, T2_garbage_ends_its_own_connection_only) {
  const int port = Serve();
  std::string ranges = "bytes=0-1";
  while (ranges.size() < 3500) ranges += ",0-1";
  const std::vector<std::string> garbage = {
      "",
      std::string("\0\1\2\xff\r\n\r\n", 8),
      "GET\r\n\r\n",
      "GET /metrics HTTP/9.9\r\n\r\n",
      std::string(100000, 'x'),
      "GET /" + std::string(100000, 'x') + " HTTP/1.1\r\n\r\n",
      "GET /metrics HTTP/1.1\r\n" + std::string(200000, 'a'),
      "GET /metrics HTTP/1.1\r\nRange: " + ranges + "\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nRange: bytes=99999999999999999999-\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
      "POST /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\nxx",
      "POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
      "GET /metrics HTTP/1.1\r\nExpect: 100-continue\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  };
  for (const std::string& text : garbage) {
    Connection connection(port);
    connection.Say(text);
    connection.SayNoMore();
    (void)connection.Hear();
    EXPECT_THAT(Scrape(port), HasSubstr("200 OK")) << text.substr(0, 60);
  }
  // A header without end is cut off where the limit is.
  Connection endless(port);
  for (int i = 0; i < 3; ++i) endless.Say("GET /metrics HTTP/1.1\r\n" + std::string(4096, 'a'));
  EXPECT_THAT(endless.Hear(), Not(HasSubstr("200 OK")));
}

TEST_F(MetricsEndpointTest, T2_whoever_says_nothing_is_cut_off_and_the_next_is_served) {
  const int port = Serve();
  Connection silent(port);
  Connection slow(port);
  slow.Say("GET /metr");
  EXPECT_THAT(Scrape(port), HasSubstr("200 OK"));
  EXPECT_THAT(silent.Hear(), Not(HasSubstr("200 OK")));
}

TEST_F(MetricsEndpointTest, T2_clients_that_say_nothing_do_not_use_up_the_time_of_a_scrape) {
  const int port = Serve();
  std::deque<Connection> silent;
  for (int i = 0; i < 6; ++i) silent.emplace_back(port);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(Scrape(port), HasSubstr("200 OK"));
  // Less than what Prometheus waits for.
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(8));
}

// CVE-2025-53628 and CVE-2025-46728 of cpp-httplib, which served this before, and their kind.
TEST_F(MetricsEndpointTest, T2_a_request_of_more_than_8_KiB_is_refused) {
  const int port = Serve();
  const std::string start = "GET /metrics HTTP/1.1\r\n";
  std::string many;
  while (many.size() < 9000) many += "a: b\r\n";
  for (const std::string& request :
       {"GET /" + std::string(9000, 'x'), start + "a: " + std::string(9000, 'x'), start + many}) {
    EXPECT_THAT(Ask(port, request), AnyOf(StartsWith("HTTP/1.1 431"), IsEmpty()));
  }
  EXPECT_THAT(Ask(port, start + many.substr(0, 7800) + "\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST_F(MetricsEndpointTest, T2_ranges_are_ignored) {
  const int port = Serve();
  std::string ranges = "bytes=0-";
  while (ranges.size() < 8000) ranges += ",0-";
  const std::string reply = Ask(port, "GET /metrics HTTP/1.1\r\nRange: " + ranges + "\r\n\r\n");
  EXPECT_EQ(reply, Scrape(port));
}

TEST_F(MetricsEndpointTest, T2_a_request_with_a_body_is_refused) {
  const int port = Serve();
  const std::string start = "GET /metrics HTTP/1.1\r\n";
  EXPECT_THAT(Ask(port, start + "Content-Length: 1\r\n\r\nx"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Ask(port, start + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 411"));
  EXPECT_THAT(Ask(port, start + "Transfer-Encoding: chunked\r\n\r\nffffff\r\n"),
              StartsWith("HTTP/1.1 413"));
  // A chunk's extension without end.
  EXPECT_THAT(Ask(port, start + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(20000, 'x')),
              Not(StartsWith("HTTP/1.1 2")));
}

TEST_F(MetricsEndpointTest, T2_what_is_no_HTTP_1_request_is_refused) {
  const int port = Serve();
  for (const std::string& request :
       {std::string("GET /metrics\r\n\r\n"), std::string("GET /metrics HTTP/0.9\r\n\r\n"),
        std::string("GET /met\0rics HTTP/1.1\r\n\r\n", 27), std::string(64, '\0'),
        std::string("GET /metrics HTTP/1.1\r\na\0b: c\r\n\r\n", 32)}) {
    EXPECT_THAT(Ask(port, request), StartsWith("HTTP/1.1 400")) << request;
  }
}

TEST_F(MetricsEndpointTest, T2_a_connection_has_one_request) {
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string reply = Ask(Serve(), request + request + request);
  EXPECT_THAT(reply, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(reply.find("HTTP/1.1"), reply.rfind("HTTP/1.1"));
}

std::size_t Descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST_F(MetricsEndpointTest, T2_hundreds_of_clients_take_32_descriptors_and_delay_no_scrape) {
  const int port = Serve();
  const std::size_t before = Descriptors();
  constexpr std::size_t kClients = 300;
  std::deque<Connection> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.emplace_back(port).Say(i % 2 == 0 ? "" : "GET /metrics HTTP/1.1\r\nslow: ");
  }
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(Scrape(port), StartsWith("HTTP/1.1 200"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(3));
  EXPECT_LE(Descriptors(), before + kClients + 32);
  EXPECT_THAT(clients.front().Hear(), IsEmpty()) << "the oldest is closed";
}

TEST_F(MetricsEndpointTest, T2_ends_while_a_client_says_nothing) {
  const int port = Serve();
  EXPECT_THAT(Scrape(port), HasSubstr("200 OK"));
  Connection silent(port);
  silent.Say("GET /metr");
  endpoint_.reset();
  EXPECT_FALSE(Connection(port).connected());
}

TEST_F(MetricsEndpointTest, P3_no_secret_is_served) {
  const base::Secret token("hunter2-hunter2");
  endpoint_->Serve(kAnyPort)->Set(metrics::Metric::kDrifted, {"default/hunter2-hunter2"}, 1);
  const int port = PortOf(*endpoint_);
  EXPECT_THAT(Scrape(port), Not(HasSubstr("hunter2")));
  EXPECT_THAT(Ask(port, "GET /hunter2-hunter2 HTTP/1.1\r\n\r\n"), Not(HasSubstr("hunter2")));
}

TEST_F(MetricsEndpointTest, T2_telling_and_reading_at_once_is_safe) {
  const std::shared_ptr<metrics::Sink> sink = endpoint_->Serve(kAnyPort);
  const int port = PortOf(*endpoint_);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&sink] {
        for (int n = 0; n < 500; ++n) {
          sink->Add(metrics::Metric::kErrors, {"config"}, 1);
          sink->Observe(metrics::Metric::kApiRequest, {"nomad", "get", "200"},
                        std::chrono::milliseconds(n));
        }
      });
    }
    for (int i = 0; i < 5; ++i) Scrape(port);
  }
  EXPECT_THAT(Scrape(port), HasSubstr("errors_total{class=\"config\"} 2000\n"));
}

}  // namespace
}  // namespace nomad_harvester::http
