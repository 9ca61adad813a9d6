// SPDX-License-Identifier: Apache-2.0
// Unusual replies: compressed, too large, redirects, malformed.
#include <string>

#include "nomad_harvester/base/json_fields.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/curl_fixture.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;
using testing::Optional;
using testing::SizeIs;

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// gzip of "hello gzip".
std::string HelloGzip() {
  return FromHex("1f8b08000000000002ffcb48cdc9c95748afca2c0000196ad2df0a000000");
}
// gzip of 100000 times 'a', in 133 bytes.
std::string GzipBomb() {
  return FromHex("1f8b08000000000002ffedc13101000000c2a0aceb5fc21a1e4001" + std::string(192, '0') +
                 "af0687fae21ba0860100");
}

class CurlReply : public CurlTest {
 protected:
  // With a transport of its own.
  void Serve(const ServerReply& reply, std::size_t cap = 1 << 20) {
    server_ = std::make_unique<LoopbackServer>(reply);
    transport_ = Make({.base_url = server_->url(), .max_response_bytes = cap});
  }
  absl::StatusOr<HttpResponse> Exchange(const ServerReply& reply, std::size_t cap = 1 << 20) {
    Serve(reply, cap);
    return transport_->Send(context_, Get("/"));
  }
  static ServerReply Gzip(std::string body) {
    return ServerReply{.headers = {{"Content-Encoding", "gzip"}}, .body = std::move(body)};
  }
  static ServerReply Plain(std::size_t size) {
    ServerReply reply;
    reply.body.assign(size, 'x');
    return reply;
  }
  static ServerReply Raw(std::string text) { return ServerReply{.raw = std::move(text)}; }

  std::unique_ptr<LoopbackServer> server_;
  std::shared_ptr<HttpTransport> transport_;
};

TEST_F(CurlReply, gzip_is_decoded) {
  const auto response = Exchange(Gzip(HelloGzip()));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->body, "hello gzip");
}

TEST_F(CurlReply, what_is_not_gzip_after_all_is_UNAVAILABLE) {
  EXPECT_THAT(Exchange(Gzip("this is not gzip")), StatusIs(StatusCode::kUnavailable));
}

TEST_F(CurlReply, the_cap_holds_for_what_is_announced) {
  EXPECT_THAT(Exchange(Plain(1001), 1000), StatusIs(StatusCode::kResourceExhausted));
}

TEST_F(CurlReply, the_cap_holds_for_what_is_not_announced) {
  ServerReply reply = Plain(1001);
  reply.chunked = true;
  EXPECT_THAT(Exchange(reply, 1000), StatusIs(StatusCode::kResourceExhausted, HasSubstr("1000")));
}

TEST_F(CurlReply, the_cap_holds_for_what_comes_out_of_gzip) {
  const auto whole = Exchange(Gzip(GzipBomb()), 100'000);
  ASSERT_THAT(whole, IsOk());
  EXPECT_EQ(whole->body, std::string(100'000, 'a'));
  EXPECT_THAT(Exchange(Gzip(GzipBomb()), 99'999), StatusIs(StatusCode::kResourceExhausted));
}

TEST_F(CurlReply, the_cap_itself_is_allowed) {
  const auto response = Exchange(Plain(1000), 1000);
  ASSERT_THAT(response, IsOk());
  EXPECT_THAT(response->body, SizeIs(1000));
}

// Keeps the texts of a list, and counts how often one begins.
class Texts final : public base::JsonElements {
 public:
  void Restart() override {
    ++begun;
    text.clear();
  }
  void Begin() override {}
  void Take(int /*path*/, const base::JsonEvent& event) override { text += event.text; }
  absl::Status End() override { return absl::OkStatus(); }

  int begun = 0;
  std::string text;
};

class CurlReader : public CurlReply {
 protected:
  // A list of elements that have ten bytes, one of which is a text.
  static ServerReply ListOf(std::size_t count) {
    ServerReply reply;
    for (std::size_t i = 0; i < count; ++i) reply.body += R"(,{"a":"x"})";
    reply.body.front() = '[';
    reply.body += "]";
    return reply;
  }
  absl::StatusOr<HttpResponse> Read(const ServerReply& reply) {
    Serve(reply);
    return ReadAgain();
  }
  absl::StatusOr<HttpResponse> ReadAgain() {
    HttpRequest request = Get("/");
    request.list = &list_;
    return transport_->Send(context_, request);
  }

  Texts texts_;
  base::JsonListReader list_{"", {"a"}, texts_};  // begins once by itself
};

TEST_F(CurlReader, forgets_an_earlier_attempt_with_the_first_piece_of_each_reply) {
  list_.Write(R"([{"a":"of an earlier attempt"})");
  const auto response = Read(ListOf(40'000));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->body, "");
  EXPECT_EQ(texts_.text, std::string(40'000, 'x'));
  EXPECT_EQ(texts_.begun, 2) << "once for all pieces";
  ASSERT_THAT(ReadAgain(), IsOk());
  EXPECT_THAT(texts_.text, SizeIs(40'000));
  EXPECT_EQ(texts_.begun, 3);
}

TEST_F(CurlReader, P2_is_given_no_more_than_the_cap_of_what_is_not_announced) {
  ServerReply reply = ListOf(40'000);
  reply.chunked = true;
  Serve(reply, 300'000);
  EXPECT_THAT(ReadAgain(), StatusIs(StatusCode::kResourceExhausted, HasSubstr("300000")));
  EXPECT_LE(texts_.text.size(), 30'000U);
}

TEST_F(CurlReader, L1_a_name_that_could_not_be_resolved_is_looked_up_again_by_the_next_request) {
  transport_ = MakeFor("http://" + std::string(64, 'a') + ".example");  // no label is that long
  for (int request = 0; request < 3; ++request) {
    EXPECT_THAT(ReadAgain(), StatusIs(StatusCode::kUnavailable, HasSubstr("resolve"))) << request;
  }
}

TEST_F(CurlReader, P3_is_not_given_the_text_of_an_error) {
  const auto response = Read({.status = 403, .body = "nodes is forbidden"});
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->body, "nodes is forbidden");
  EXPECT_EQ(texts_.begun, 1);
}

TEST_F(CurlReply, P2_endless_headers_are_refused) {
  std::string text = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 400; ++i) text += "X-Filler: " + std::string(1000, 'x') + "\r\n";
  EXPECT_THAT(Exchange(Raw(text + "\r\n")), StatusIs(StatusCode::kResourceExhausted));
}

TEST_F(CurlReply, redirects_are_answers_and_not_followed) {
  const LoopbackServer elsewhere{ServerReply()};
  for (const int status : {301, 302, 303, 307, 308}) {
    const auto response =
        Exchange({.status = status, .headers = {{"Location", elsewhere.url() + "/"}}});
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(response->status, status);
    EXPECT_THAT(response->headers.Find("Location"), Optional(Eq(elsewhere.url() + "/")));
    EXPECT_THAT(server_->requests(), SizeIs(1));
  }
  EXPECT_EQ(elsewhere.connections(), 0);
}

TEST_F(CurlReply, informational_replies_leave_no_headers_behind) {
  const auto response =
      Exchange(Raw("HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
                   "HTTP/1.1 200 OK\r\nX-Late: 2\r\nContent-Length: 2\r\n\r\nok"));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->headers.Find("X-Early"), std::nullopt);
  EXPECT_THAT(response->headers.Find("X-Late"), Optional(Eq("2")));
  EXPECT_EQ(response->body, "ok");
}

TEST_F(CurlReply, trailers_are_not_headers) {
  const auto response = Exchange(
      Raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->body, "ok");
  EXPECT_EQ(response->headers.Find("X-T"), std::nullopt);
}

TEST_F(CurlReply, a_reply_without_a_length_ends_with_the_connection) {
  const auto response = Exchange(Raw("HTTP/1.1 200 OK\r\n\r\nall of it"));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->body, "all of it");
}

TEST_F(CurlReply, a_204_has_no_body) {
  const auto response = Exchange(Raw("HTTP/1.1 204 No Content\r\n\r\n"));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->status, 204);
  EXPECT_EQ(response->body, "");
}

TEST_F(CurlReply, P2_what_is_not_HTTP_is_UNAVAILABLE) {
  for (const std::string text :
       {"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "\x15\x03\x01\x02\x02\x16", "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    EXPECT_THAT(Exchange(Raw(text)), StatusIs(StatusCode::kUnavailable)) << text;
  }
}

TEST_F(CurlReply, a_failed_exchange_does_not_spoil_the_next) {
  server_ = std::make_unique<LoopbackServer>([](const ServerRequest& request) {
    ServerReply reply{.body = "0123456789"};
    if (request.target == "/cut") reply.cut_after = 3;
    if (request.target == "/large") reply.body.assign(5000, 'x');
    return reply;
  });
  const auto transport = Make({.base_url = server_->url(), .max_response_bytes = 1000});
  for (const std::string bad : {"/cut", "/large", "/bad target"}) {
    EXPECT_FALSE(transport->Send(context_, Get(bad)).ok()) << bad;
    const auto response = transport->Send(context_, Get("/fine"));
    ASSERT_THAT(response, IsOk()) << bad;
    EXPECT_EQ(response->body, "0123456789");
  }
}

}  // namespace
}  // namespace nomad_harvester::http
