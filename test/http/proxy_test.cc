// SPDX-License-Identifier: Apache-2.0
#include "proxy.h"

#include <map>
#include <string>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/secret.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

BaseUrl Url(const std::string& text) { return *ParseBaseUrl(text); }

TEST(NoProxy, matches_a_domain_and_what_is_below_it) {
  EXPECT_TRUE(NoProxyMatches("example.test", "example.test", 443));
  EXPECT_TRUE(NoProxyMatches("example.test", "api.Example.Test", 443));
  EXPECT_TRUE(NoProxyMatches(".example.test", "api.example.test", 443));
  EXPECT_FALSE(NoProxyMatches("example.test", "notexample.test", 443));
  EXPECT_FALSE(NoProxyMatches("api.example.test", "example.test", 443));
}

TEST(NoProxy, matches_addresses_and_networks) {
  EXPECT_TRUE(NoProxyMatches("10.0.0.5", "10.0.0.5", 443));
  EXPECT_FALSE(NoProxyMatches("10.0.0.5", "10.0.0.50", 443));
  EXPECT_TRUE(NoProxyMatches("10.0.0.0/8", "10.200.3.4", 443));
  EXPECT_FALSE(NoProxyMatches("10.0.0.0/8", "11.0.0.1", 443));
  EXPECT_TRUE(NoProxyMatches("192.168.4.0/22", "192.168.7.255", 443));
  EXPECT_FALSE(NoProxyMatches("192.168.4.0/22", "192.168.8.0", 443));
  EXPECT_TRUE(NoProxyMatches("fd00::/8", "fd12::1", 443));
  EXPECT_FALSE(NoProxyMatches("fd00::/8", "fe80::1", 443));
  EXPECT_TRUE(NoProxyMatches("0.0.0.0/0", "8.8.8.8", 443));
  EXPECT_FALSE(NoProxyMatches("0.0.0.0/0", "2001:db8::1", 443));
}

TEST(NoProxy, bad_networks_match_nothing) {
  for (const std::string list : {"10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/x", "10.0.0.0/", "/8"}) {
    EXPECT_FALSE(NoProxyMatches(list, "10.0.0.1", 443)) << list;
  }
}

TEST(NoProxy, is_a_list_with_a_word_for_everything) {
  EXPECT_TRUE(NoProxyMatches("a.test, b.test ,c.test", "b.test", 443));
  EXPECT_TRUE(NoProxyMatches("*", "anything", 443));
  EXPECT_FALSE(NoProxyMatches("", "anything", 443));
  EXPECT_FALSE(NoProxyMatches(",,", "anything", 443));
}

// As Go's clients read them (golang/net:http/httpproxy/proxy.go), the agent's own among them.
TEST(NoProxy, of_a_domain_with_a_dot_or_a_star_only_what_is_below_it) {
  for (const std::string list : {".example.test", "*.example.test"}) {
    EXPECT_TRUE(NoProxyMatches(list, "api.example.test", 443)) << list;
    EXPECT_TRUE(NoProxyMatches(list, "a.b.Example.test", 443)) << list;
    EXPECT_FALSE(NoProxyMatches(list, "example.test", 443)) << list;
    EXPECT_FALSE(NoProxyMatches(list, "notexample.test", 443)) << list;
  }
}

TEST(NoProxy, an_entry_with_a_port_matches_that_port_alone) {
  EXPECT_TRUE(NoProxyMatches("vip.test:6443", "vip.test", 6443));
  EXPECT_FALSE(NoProxyMatches("vip.test:6443", "vip.test", 443));
  EXPECT_TRUE(NoProxyMatches("*.test:6443", "vip.test", 6443));
  EXPECT_TRUE(NoProxyMatches("10.0.0.5:6443", "10.0.0.5", 6443));
  EXPECT_FALSE(NoProxyMatches("10.0.0.5:6443", "10.0.0.5", 443));
  EXPECT_TRUE(NoProxyMatches("[fd00::1]:6443", "fd00::1", 6443));
  EXPECT_FALSE(NoProxyMatches("[fd00::1]:6443", "fd00::1", 443));
  EXPECT_TRUE(NoProxyMatches("fd00::1", "fd00::1", 443)) << "no port";
  for (const std::string list : {"vip.test:", "vip.test:x", ":443", "vip.test:443x"}) {
    EXPECT_FALSE(NoProxyMatches(list, "vip.test", 443)) << list;
  }
}

// An environment of these variables.
ProxyEnvironment Variables(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
}
const ProxyEnvironment kNone = Variables({});

std::string UrlOf(const absl::StatusOr<Proxy>& proxy) {
  return proxy.ok() ? proxy->url : proxy.status().ToString();
}

TEST(ChooseProxy, the_scheme_chooses_the_variable) {
  const ProxyEnvironment environment =
      Variables({{"http_proxy", "http://plain:1"}, {"HTTPS_PROXY", "http://tls:2"}});
  EXPECT_EQ(UrlOf(ChooseProxy(Url("https://vip"), "", environment)), "http://tls:2");
  EXPECT_EQ(UrlOf(ChooseProxy(Url("http://vip"), "", environment)), "http://plain:1");
  EXPECT_EQ(UrlOf(ChooseProxy(Url("http://vip"), "", Variables({{"ALL_PROXY", "http://all:3"}}))),
            "http://all:3");
  EXPECT_EQ(UrlOf(ChooseProxy(Url("http://vip"), "", Variables({{"HTTP_PROXY", "http://cgi:4"}}))),
            "");
  EXPECT_EQ(UrlOf(ChooseProxy(Url("https://vip"), "", kNone)), "");
}

TEST(ChooseProxy, the_environments_address_may_lack_scheme_and_port) {
  const auto choose = [](const std::string& text) {
    return UrlOf(ChooseProxy(Url("https://vip"), "", Variables({{"https_proxy", text}})));
  };
  EXPECT_EQ(choose("proxy:3128"), "http://proxy:3128");
  EXPECT_EQ(choose("http://proxy"), "http://proxy:80");
  EXPECT_EQ(choose("HTTPS://proxy"), "https://proxy:443");
  EXPECT_EQ(choose("http://[fd00::1]:3128/"), "http://[fd00::1]:3128");
}

TEST(ChooseProxy, NO_PROXY_and_this_machine_bypass_the_environments_proxy) {
  const ProxyEnvironment environment = Variables({{"https_proxy", "http://proxy:3128"},
                                                  {"http_proxy", "http://proxy:3128"},
                                                  {"NO_PROXY", "10.0.0.0/8,vip.test:6443"}});
  EXPECT_EQ(UrlOf(ChooseProxy(Url("https://10.0.0.5"), "", environment)), "");
  EXPECT_EQ(UrlOf(ChooseProxy(Url("https://vip.test:6443"), "", environment)), "");
  EXPECT_EQ(UrlOf(ChooseProxy(Url("https://vip.test"), "", environment)), "http://proxy:3128");
  EXPECT_EQ(UrlOf(ChooseProxy(Url("http://127.0.0.1:4646"), "", environment)), "");
  EXPECT_EQ(UrlOf(ChooseProxy(Url("http://localhost:4646"), "", environment)), "");
}

TEST(ChooseProxy, a_socket_never_has_a_proxy) {
  EXPECT_EQ(UrlOf(ChooseProxy(Url("unix:///run/nomad.sock"), "http://proxy:3128", kNone)), "");
}

TEST(ChooseProxy, an_explicit_proxy_overrules_NO_PROXY) {
  EXPECT_EQ(
      UrlOf(ChooseProxy(Url("https://vip"), "http://proxy:3128", Variables({{"NO_PROXY", "*"}}))),
      "http://proxy:3128");
}

TEST(ChooseProxy, a_SOCKS_proxy_resolves_the_names) {
  for (const std::string text : {"socks5://proxy", "SOCKS5://proxy:1080", "socks5h://proxy:1080"}) {
    EXPECT_EQ(UrlOf(ChooseProxy(Url("https://vip"), text, kNone)), "socks5h://proxy:1080") << text;
  }
}

TEST(ChooseProxy, P3_user_and_password_are_decoded_and_not_in_the_address) {
  const auto proxy =
      ChooseProxy(Url("https://vip"), "http://us%40r:p%2Fss%23w%20rd@proxy:3128", kNone);
  ASSERT_THAT(proxy, IsOk());
  EXPECT_EQ(proxy->url, "http://proxy:3128");
  EXPECT_EQ(proxy->user, "us@r");
  EXPECT_EQ(proxy->password.Reveal(), "p/ss#w rd");
}

TEST(ChooseProxy, P3_while_it_is_held_its_password_is_known_in_every_spelling) {
  const std::string basic = base::Base64Encode("user:p/ss#word");
  const std::string text = "p/ss#word p%2Fss%23word " + basic;
  {
    const auto proxy = ChooseProxy(Url("https://vip"), "http://user:p%2Fss%23word@proxy", kNone);
    EXPECT_EQ(base::WithoutSecrets(text), "REDACTED REDACTED REDACTED");
  }
  EXPECT_EQ(base::WithoutSecrets(text), text);
}

TEST(ChooseProxy, P3_a_user_name_without_a_password_is_a_secret) {
  for (const std::string at : {"@", ":@"}) {
    const std::string text = "token-for-the-proxy " + base::Base64Encode("token-for-the-proxy") +
                             " " + base::Base64Encode("token-for-the-proxy:");
    const auto proxy =
        ChooseProxy(Url("https://vip"), "http://token-for-the-proxy" + at + "proxy", kNone);
    ASSERT_THAT(proxy, IsOk());
    EXPECT_EQ(proxy->user, "token-for-the-proxy");
    EXPECT_EQ(base::WithoutSecrets(text), "REDACTED REDACTED REDACTED") << at;
  }
}

TEST(ChooseProxy, P3_a_bad_address_is_refused_and_not_repeated) {
  for (const std::string text :
       {"ftp://u:hush@proxy", "://hush", "http://u:hush@", "hush", "http://u:hush@ho st",
        "http://u:hush/hush@proxy:3128", "http://u:1#hush@proxy", "http://u:1?hush@proxy",
        "http://u:p@hush/hush@proxy", "http://u:hush%0a@proxy", "http://u:hush@proxy:hush",
        "http:/u:hush@proxy", "http:///u:hush@proxy", "http:///hush", "http:/proxy?hush://u"}) {
    EXPECT_THAT(
        ChooseProxy(Url("https://vip"), text, kNone),
        StatusIs(StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("proxy-url: the proxy's address"), Not(HasSubstr("hush")))))
        << text;
  }
}

TEST(ChooseProxy, an_address_with_a_zone_is_refused) {
  EXPECT_THAT(ChooseProxy(Url("https://vip"), "http://[fe80::1%25eth0]:3128", kNone),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("IPv6 zone")));
}

TEST(ChooseProxy, an_address_with_an_escape_in_its_host_is_refused) {
  for (const std::string text : {"http://pro%78y", "http://user:word@pro%99y:3128"}) {
    EXPECT_THAT(ChooseProxy(Url("https://vip"), text, kNone),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("host with an escape")))
        << text;
  }
}

TEST(ChooseProxy, what_follows_a_NUL_is_not_lost) {
  EXPECT_THAT(ChooseProxy(Url("https://vip"), std::string("http://proxy\0.test", 18), kNone),
              StatusIs(StatusCode::kInvalidArgument));
}

TEST(ChooseProxy, a_bad_address_names_its_variable) {
  EXPECT_THAT(ChooseProxy(Url("https://vip"), "", Variables({{"all_proxy", "ftp://proxy"}})),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("all_proxy: ")));
}

TEST(Login, P3_a_name_without_a_password_is_recognised_as_it_travels_and_is_no_secret_word) {
  const base::Secret login = LoginOf("nomad", "");
  EXPECT_EQ(base::WithoutSecrets("list nomad: " + base::Base64Encode("nomad:")),
            "list nomad: REDACTED");
  EXPECT_TRUE(LoginOf("", "").empty());
}

}  // namespace
}  // namespace nomad_harvester::http
