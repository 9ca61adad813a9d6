// SPDX-License-Identifier: Apache-2.0
// The contract of HttpTransport, for every kind of address that CurlTransport supports.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/curl_fixture.h"
#include "support/scoped_temp_dir.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::Eq;
using testing::HasSubstr;
using testing::Optional;

struct Tcp {
  static LoopbackOptions Server() { return {}; }
  static CurlOptions Client(const LoopbackServer& server) {
    return CurlOptions{.base_url = server.url()};
  }
};

struct Unix {
  static LoopbackOptions Server() {
    static const support::ScopedTempDir dir;
    static int count = 0;
    return LoopbackOptions{.unix_path = dir.Path("s" + std::to_string(++count))};
  }
  static CurlOptions Client(const LoopbackServer& server) { return Tcp::Client(server); }
};

struct Tls {
  static const TestCa& Ca() {
    static const TestCa ca;
    return ca;
  }
  static LoopbackOptions Server() { return LoopbackOptions{.tls = Ca().Issue("IP:127.0.0.1")}; }
  static CurlOptions Client(const LoopbackServer& server) {
    CurlOptions options = Tcp::Client(server);
    options.tls.ca_pem = Ca().pem();
    return options;
  }
};

template <typename Address>
class TransportConformance : public CurlTest {
 protected:
  template <typename Answer>  // a reply or a handler
  void Serve(Answer answer) {
    server_ = std::make_unique<LoopbackServer>(std::move(answer), Address::Server());
    transport_ = Make(Address::Client(*server_));
  }
  absl::StatusOr<HttpResponse> Send(const HttpRequest& request) {
    return transport_->Send(context_, request);
  }

  std::unique_ptr<LoopbackServer> server_;
  std::shared_ptr<HttpTransport> transport_;
};

using Addresses = testing::Types<Tcp, Unix, Tls>;
TYPED_TEST_SUITE(TransportConformance, Addresses);

TYPED_TEST(TransportConformance, a_request_arrives_as_it_was_given) {
  this->Serve(ServerReply());
  HttpRequest request;
  request.method = Method::kPatch;
  request.target = "/apis/a%2Fb/../c?labelSelector=x%3Dy&watch";
  request.headers = {{"Content-Type", "application/merge-patch+json"}, {"X-Empty", ""}};
  request.body = std::string("{\"a\":\0}", 7);
  ASSERT_THAT(this->Send(request), IsOk());
  const ServerRequest got = this->server_->requests().at(0);
  EXPECT_EQ(got.method, "PATCH");
  EXPECT_EQ(got.target, request.target);
  EXPECT_EQ(got.body, request.body);
  EXPECT_THAT(got.headers.Find("Content-Type"), Optional(Eq("application/merge-patch+json")));
  EXPECT_THAT(got.headers.Find("X-Empty"), Optional(Eq("")));
  EXPECT_THAT(got.headers.Find("User-Agent"), Optional(Eq("nomad-harvester-autoscaler")));
  EXPECT_THAT(got.headers.Find("Accept-Encoding"), Optional(HasSubstr("gzip")));
  EXPECT_EQ(got.headers.Find("Expect"), std::nullopt);
}

TYPED_TEST(TransportConformance, every_method_with_and_without_a_body) {
  this->Serve(ServerReply());
  for (const Method method :
       {Method::kGet, Method::kPost, Method::kPut, Method::kPatch, Method::kDelete}) {
    for (const std::string body : {"", "{}"}) {
      if (method == Method::kGet && !body.empty()) continue;
      HttpRequest request;
      request.method = method;
      request.target = "/x";
      request.body = body;
      ASSERT_THAT(this->Send(request), IsOk());
      const ServerRequest got = this->server_->requests().back();
      EXPECT_EQ(got.method, MethodName(method));
      EXPECT_EQ(got.body, body);
      // No Content-Type unless the caller sets one.
      EXPECT_EQ(got.headers.Find("Content-Type"), std::nullopt);
    }
  }
}

TYPED_TEST(TransportConformance, a_reply_comes_back_whole) {
  const ServerReply reply{.status = 201,
                          .headers = {{"X-Nomad-Index", "42"}, {"Warning", "a"}, {"Warning", "b"}},
                          .body = std::string(300'000, 'x') + std::string("\0end", 4)};
  this->Serve(reply);
  const auto response = this->Send(this->Get("/"));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, reply.body);
  EXPECT_THAT(response->headers.Find("x-nomad-index"), Optional(Eq("42")));
  int warnings = 0;
  for (const auto& field : response->headers.fields()) warnings += field.first == "Warning";
  EXPECT_EQ(warnings, 2);
}

TYPED_TEST(TransportConformance, a_chunked_reply_comes_back_whole) {
  const ServerReply reply{.body = std::string(100'000, 'y'), .chunked = true};
  this->Serve(reply);
  const auto response = this->Send(this->Get("/"));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->body, reply.body);
}

TYPED_TEST(TransportConformance, refusals_and_faults_are_responses) {
  this->Serve([](const ServerRequest& request) {
    return ServerReply{.status = std::stoi(request.target.substr(1)), .body = "why"};
  });
  for (const int status : {301, 400, 401, 403, 404, 409, 429, 500, 503}) {
    const auto response = this->Send(this->Get("/" + std::to_string(status)));
    ASSERT_THAT(response, IsOk()) << status;
    EXPECT_EQ(response->status, status);
    EXPECT_EQ(response->body, "why");
  }
}

TYPED_TEST(TransportConformance, a_reply_that_is_cut_short_is_UNAVAILABLE) {
  for (const bool chunked : {false, true}) {
    this->Serve(ServerReply{.body = "0123456789", .chunked = chunked, .cut_after = 4});
    HttpRequest request = this->Get("/");
    request.purpose = "list nodes";
    EXPECT_THAT(this->Send(request), StatusIs(StatusCode::kUnavailable, HasSubstr("list nodes: ")))
        << chunked;
  }
}

TYPED_TEST(TransportConformance, a_connection_that_ends_without_a_reply_is_UNAVAILABLE) {
  this->Serve(ServerReply{.raw = ""});
  EXPECT_THAT(this->Send(this->Get("/")), StatusIs(StatusCode::kUnavailable));
}

TYPED_TEST(TransportConformance, the_contexts_deadline_ends_a_silent_request) {
  this->Serve(ServerReply{.silent = true});
  EXPECT_THAT(this->transport_->Send(this->context_.WithTimeout(std::chrono::milliseconds(100)),
                                     this->Get("/")),
              StatusIs(StatusCode::kDeadlineExceeded));
}

TYPED_TEST(TransportConformance, a_context_that_has_ended_sends_nothing) {
  this->Serve(ServerReply());
  const runtime::CancelSource source(this->context_);
  source.Cancel(runtime::CancelReason::kShutdown);
  EXPECT_THAT(this->transport_->Send(source.context(), this->Get("/")),
              StatusIs(StatusCode::kCancelled));
  EXPECT_THAT(
      this->transport_->Send(this->context_.WithTimeout(base::Duration::zero()), this->Get("/")),
      StatusIs(StatusCode::kDeadlineExceeded));
  EXPECT_EQ(this->server_->connections(), 0);
}

TYPED_TEST(TransportConformance, cancelling_ends_a_silent_request_and_its_connection) {
  this->Serve(ServerReply{.silent = true});
  const runtime::CancelSource source(this->context_);
  const std::jthread canceller([&] {
    this->server_->AwaitRequests(1);
    source.Cancel(runtime::CancelReason::kClient);
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(this->transport_->Send(source.context(), this->Get("/")),
              StatusIs(StatusCode::kCancelled));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kHangProtection);
  this->server_->AwaitEnded(1);
}

TYPED_TEST(TransportConformance, requests_in_turn_share_a_connection) {
  this->Serve(ServerReply());
  for (int i = 0; i < 5; ++i) ASSERT_THAT(this->Send(this->Get("/")), IsOk());
  EXPECT_EQ(this->server_->connections(), 1);
}

TYPED_TEST(TransportConformance, many_threads_are_served_at_once) {
  this->Serve([](const ServerRequest& request) { return ServerReply{.body = request.target}; });
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string target = "/" + std::to_string(t) + "/" + std::to_string(i);
        const auto response = this->Send(this->Get(target));
        ASSERT_THAT(response, IsOk());
        EXPECT_EQ(response->body, target);
      }
    });
  }
  threads.clear();
  EXPECT_LE(this->server_->connections(), 8);
}

}  // namespace
}  // namespace nomad_harvester::http
