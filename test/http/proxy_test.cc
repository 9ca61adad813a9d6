// SPDX-License-Identifier: Apache-2.0
#include "proxy.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::Eq;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

BaseUrl Url(const std::string& text) { return *ParseBaseUrl(text); }

TEST(NoProxy, matches_a_domain_and_what_is_below_it) {
  EXPECT_TRUE(NoProxyMatches("example.test", "example.test"));
  EXPECT_TRUE(NoProxyMatches("example.test", "api.Example.Test"));
  EXPECT_TRUE(NoProxyMatches(".example.test", "api.example.test"));
  EXPECT_FALSE(NoProxyMatches("example.test", "notexample.test"));
  EXPECT_FALSE(NoProxyMatches("api.example.test", "example.test"));
}

TEST(NoProxy, matches_addresses_and_networks) {
  EXPECT_TRUE(NoProxyMatches("10.0.0.5", "10.0.0.5"));
  EXPECT_FALSE(NoProxyMatches("10.0.0.5", "10.0.0.50"));
  EXPECT_TRUE(NoProxyMatches("10.0.0.0/8", "10.200.3.4"));
  EXPECT_FALSE(NoProxyMatches("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(NoProxyMatches("192.168.4.0/22", "192.168.7.255"));
  EXPECT_FALSE(NoProxyMatches("192.168.4.0/22", "192.168.8.0"));
  EXPECT_TRUE(NoProxyMatches("fd00::/8", "fd12::1"));
  EXPECT_FALSE(NoProxyMatches("fd00::/8", "fe80::1"));
  EXPECT_TRUE(NoProxyMatches("0.0.0.0/0", "8.8.8.8"));
  EXPECT_FALSE(NoProxyMatches("0.0.0.0/0", "2001:db8::1"));
}

TEST(NoProxy, bad_networks_match_nothing) {
  for (const std::string list : {"10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/x", "10.0.0.0/", "/8"}) {
    EXPECT_FALSE(NoProxyMatches(list, "10.0.0.1")) << list;
  }
}

TEST(NoProxy, is_a_list_with_a_word_for_everything) {
  EXPECT_TRUE(NoProxyMatches("a.test, b.test ,c.test", "b.test"));
  EXPECT_TRUE(NoProxyMatches("*", "anything"));
  EXPECT_FALSE(NoProxyMatches("", "anything"));
  EXPECT_FALSE(NoProxyMatches(",,", "anything"));
}

TEST(ChooseProxy, leaves_the_environment_to_libcurl) {
  const auto choice = ChooseProxy(Url("https://vip"), "", "other.test");
  ASSERT_THAT(choice, IsOk());
  EXPECT_EQ(choice->url, std::nullopt);
}

TEST(ChooseProxy, NO_PROXY_and_this_machine_bypass_the_environments_proxy) {
  EXPECT_THAT(ChooseProxy(Url("https://10.0.0.5"), "", "10.0.0.0/8")->url, Optional(Eq("")));
  EXPECT_THAT(ChooseProxy(Url("http://127.0.0.1:4646"), "", "")->url, Optional(Eq("")));
  EXPECT_THAT(ChooseProxy(Url("http://localhost:4646"), "", "")->url, Optional(Eq("")));
}

TEST(ChooseProxy, a_socket_never_has_a_proxy) {
  EXPECT_THAT(ChooseProxy(Url("unix:///run/nomad.sock"), "http://proxy:3128", "")->url,
              Optional(Eq("")));
}

TEST(ChooseProxy, an_explicit_proxy_overrules_NO_PROXY) {
  EXPECT_THAT(ChooseProxy(Url("https://vip"), "http://u:p@proxy:3128", "*")->url,
              Optional(Eq("http://u:p@proxy:3128")));
}

TEST(ChooseProxy, a_SOCKS_proxy_resolves_the_names) {
  EXPECT_THAT(ChooseProxy(Url("https://vip"), "socks5://proxy:1080", "")->url,
              Optional(Eq("socks5h://proxy:1080")));
  EXPECT_THAT(ChooseProxy(Url("https://vip"), "socks5h://proxy:1080", "")->url,
              Optional(Eq("socks5h://proxy:1080")));
}

TEST(ChooseProxy, P3_a_bad_address_is_refused_and_not_repeated) {
  for (const std::string text : {"ftp://u:hush@proxy", "://hush", "http://u:hush@", "hush"}) {
    EXPECT_THAT(ChooseProxy(Url("https://vip"), text, ""),
                StatusIs(StatusCode::kInvalidArgument, Not(HasSubstr("hush"))))
        << text;
  }
}

}  // namespace
}  // namespace nomad_harvester::http
