// SPDX-License-Identifier: Apache-2.0
// Proxies from the options and the environment. The proxy is a server that replies itself.
#include <string>

#include "nomad_harvester/base/encoding.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/curl_fixture.h"

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

class CurlProxy : public CurlTest {
 protected:
  static std::string Credentials() { return "user:hush@"; }
  std::string ProxyUrl(const std::string& credentials = "") const {
    return "http://" + credentials + proxy_.authority();
  }

  LoopbackServer proxy_{[](const ServerRequest& request) {
    return ServerReply{.status = request.method == "CONNECT" ? 403 : 200, .body = "from the proxy"};
  }};
};

TEST_F(CurlProxy, of_the_options_is_used) {
  const auto response =
      Make({.base_url = "http://nomad.invalid:4646", .proxy_url = ProxyUrl(Credentials())})
          ->Send(context_, Get("/v1/nodes"));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->body, "from the proxy");
  EXPECT_EQ(proxy_.requests().at(0).target, "http://nomad.invalid:4646/v1/nodes");
  EXPECT_TRUE(proxy_.requests().at(0).headers.Find("Proxy-Authorization").has_value());
}

TEST_F(CurlProxy, of_the_environment_is_used) {
  environment_.Set("http_proxy", ProxyUrl());
  EXPECT_THAT(MakeFor("http://nomad.invalid:4646")->Send(context_, Get("/v1/nodes")), IsOk());
  EXPECT_EQ(proxy_.requests().at(0).target, "http://nomad.invalid:4646/v1/nodes");
}

TEST_F(CurlProxy, of_the_environment_is_bypassed_for_NO_PROXY) {
  environment_.Set("http_proxy", ProxyUrl());
  environment_.Set("NO_PROXY", "example.test,nomad.invalid");
  EXPECT_THAT(MakeFor("http://nomad.invalid:4646")->Send(context_, Get("/")),
              StatusIs(StatusCode::kUnavailable, HasSubstr("nomad.invalid:4646")));
  EXPECT_EQ(proxy_.connections(), 0);
}

TEST_F(CurlProxy, of_the_environment_is_bypassed_for_this_machine) {
  LoopbackServer nomad{ServerReply()};
  environment_.Set("http_proxy", ProxyUrl());
  EXPECT_THAT(MakeFor(nomad.url())->Send(context_, Get("/")), IsOk());
  EXPECT_THAT(nomad.requests(), SizeIs(1));
  EXPECT_EQ(proxy_.connections(), 0);
}

TEST_F(CurlProxy, of_the_options_is_used_even_for_this_machine_and_in_spite_of_NO_PROXY) {
  environment_.Set("NO_PROXY", "*");
  EXPECT_THAT(
      Make({.base_url = "http://127.0.0.1:1", .proxy_url = ProxyUrl()})->Send(context_, Get("/")),
      IsOk());
  EXPECT_EQ(proxy_.requests().at(0).target, "http://127.0.0.1:1/");
}

TEST_F(CurlProxy, that_refuses_the_tunnel_is_UNAVAILABLE_and_sees_no_token) {
  HttpRequest request = Get("/");
  request.headers.Add("Authorization", "Bearer hush");
  EXPECT_THAT(Make({.base_url = "https://vip.invalid:6443",
                    .tls = {.skip_verify = true},
                    .proxy_url = ProxyUrl(Credentials())})
                  ->Send(context_, request),
              StatusIs(StatusCode::kUnavailable,
                       AllOf(HasSubstr("cannot connect to https://vip.invalid:6443"),
                             Not(HasSubstr("hush")))));
  EXPECT_EQ(proxy_.requests().at(0).method, "CONNECT");
  EXPECT_EQ(proxy_.requests().at(0).target, "vip.invalid:6443");
  EXPECT_EQ(proxy_.requests().at(0).headers.Find("Authorization"), std::nullopt);
}

TEST_F(CurlProxy, tunnels_to_the_real_host_and_not_to_the_server_name) {
  environment_.Set("https_proxy", ProxyUrl());
  EXPECT_THAT(Make({.base_url = "https://10.255.255.1:6443",
                    .tls = {.server_name = "vip.test", .skip_verify = true}})
                  ->Send(context_, Get("/")),
              StatusIs(StatusCode::kUnavailable));
  EXPECT_EQ(proxy_.requests().at(0).target, "10.255.255.1:6443");
}

TEST_F(CurlProxy, NO_PROXY_names_the_real_host_and_not_the_server_name) {
  environment_.Set("https_proxy", ProxyUrl());
  environment_.Set("NO_PROXY", "real.invalid");
  EXPECT_THAT(Make({.base_url = "https://real.invalid:6443",
                    .tls = {.server_name = "vip.test", .skip_verify = true}})
                  ->Send(context_, Get("/")),
              StatusIs(StatusCode::kUnavailable));
  EXPECT_EQ(proxy_.connections(), 0);
}

TEST_F(CurlProxy, P3_that_cannot_be_reached_is_named_without_its_password) {
  const std::string closed = "127.0.0.1:" + std::to_string(ClosedPort());
  for (const std::string& address : {closed, std::string("proxy.invalid:3128")}) {
    environment_.Set("http_proxy", "http://user:h%75sh%40w0rd@" + address);
    EXPECT_THAT(MakeFor("http://nomad.invalid")->Send(context_, Get("/")),
                StatusIs(StatusCode::kUnavailable,
                         AllOf(HasSubstr("cannot connect to http://nomad.invalid:80: "),
                               HasSubstr("the proxy http://" + address), Not(HasSubstr("h%75sh")),
                               Not(HasSubstr("hush")), Not(HasSubstr("w0rd")))))
        << address;
  }
}

TEST_F(CurlProxy, P3_of_the_environment_that_cannot_be_parsed_is_refused_with_its_name) {
  for (const std::string proxy : {"bogus://user:hush@proxy:1", "http://user:hush@ho st"}) {
    environment_.Set("http_proxy", proxy);
    EXPECT_THAT(MakeCurlTransport({.base_url = "http://nomad.invalid"}),
                StatusIs(StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("http_proxy: "), Not(HasSubstr("hush")))))
        << proxy;
  }
}

TEST_F(CurlProxy, gets_the_decoded_user_name_and_password) {
  environment_.Set("http_proxy", ProxyUrl("us%40r:p%2Fss%23@"));
  EXPECT_THAT(MakeFor("http://nomad.invalid:4646")->Send(context_, Get("/")), IsOk());
  EXPECT_THAT(proxy_.requests().at(0).headers.Find("Proxy-Authorization"),
              Optional(Eq("Basic " + base::Base64Encode("us@r:p/ss#"))));
}

TEST_F(CurlProxy, gets_a_password_without_a_user_name) {
  environment_.Set("http_proxy", ProxyUrl(":hush@"));
  EXPECT_THAT(MakeFor("http://nomad.invalid:4646")->Send(context_, Get("/")), IsOk());
  EXPECT_THAT(proxy_.requests().at(0).headers.Find("Proxy-Authorization"),
              Optional(Eq("Basic " + base::Base64Encode(":hush"))));
}

TEST_F(CurlProxy, that_wants_another_password_says_so) {
  LoopbackServer strict{[](const ServerRequest&) { return ServerReply{.status = 407}; }};
  EXPECT_THAT(Make({.base_url = "https://vip.invalid:6443",
                    .tls = {.skip_verify = true},
                    .proxy_url = "http://user:wrong@" + strict.authority()})
                  ->Send(context_, Get("/")),
              StatusIs(StatusCode::kUnavailable,
                       HasSubstr("the proxy http://" + strict.authority() +
                                 " replied HTTP 407: check the user name and password")));
}

}  // namespace
}  // namespace nomad_harvester::http
