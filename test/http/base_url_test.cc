// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/base_url.h"

#include <string>

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

struct Good {
  std::string text;
  bool https;
  std::string host;
  int port;
  std::string authority;
  std::string path;
};

class GoodAddress : public testing::TestWithParam<Good> {};

TEST_P(GoodAddress, is_taken_apart) {
  const Good& want = GetParam();
  const auto url = ParseBaseUrl(want.text);
  ASSERT_THAT(url, IsOk()) << want.text;
  EXPECT_EQ(url->https, want.https);
  EXPECT_EQ(url->host, want.host);
  EXPECT_EQ(url->port, want.port);
  EXPECT_EQ(url->authority, want.authority);
  EXPECT_EQ(url->path, want.path);
  EXPECT_FALSE(url->is_socket());
}

INSTANTIATE_TEST_SUITE_P(
    Addresses, GoodAddress,
    testing::Values(Good{"https://vip", true, "vip", 443, "vip", ""},
                    Good{"https://vip/", true, "vip", 443, "vip", ""},
                    Good{"https://vip:443", true, "vip", 443, "vip", ""},
                    Good{"https://vip:6443", true, "vip", 6443, "vip:6443", ""},
                    Good{"http://10.0.0.1:80/", false, "10.0.0.1", 80, "10.0.0.1", ""},
                    Good{"http://127.0.0.1:4646", false, "127.0.0.1", 4646, "127.0.0.1:4646", ""},
                    Good{"HTTPS://Vip", true, "Vip", 443, "Vip", ""},
                    Good{"https://rancher.example/k8s/clusters/c-1//", true, "rancher.example", 443,
                         "rancher.example", "/k8s/clusters/c-1"},
                    Good{"https://h/a%20b", true, "h", 443, "h", "/a%20b"},
                    Good{"https://[2001:db8::1]:6443/x", true, "2001:db8::1", 6443,
                         "[2001:db8::1]:6443", "/x"}));

class BadAddress : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(BadAddress, is_refused_with_the_reason) {
  EXPECT_THAT(ParseBaseUrl(GetParam().first),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr(GetParam().second)));
}

INSTANTIATE_TEST_SUITE_P(
    Addresses, BadAddress,
    testing::Values(
        std::pair("", "empty"), std::pair("vip:6443", "http://"),
        std::pair("nomad.example", "must begin with http://"),
        std::pair("ftp://h", "http://, https:// or unix://"),
        std::pair("file:///etc/passwd", "http://, https:// or unix://"),
        std::pair("https://", "no host"), std::pair("https:/h", "must begin with"),
        std::pair("https://:443", "form https://host"), std::pair("https:///path", "no host"),
        std::pair("https://h:0", "port"), std::pair("https://h:65536", "port"),
        std::pair("https://h:x", "form https://host"), std::pair("https://h?region=eu", "query"),
        std::pair("https://h/#top", "fragment"), std::pair("https://h/a b", "a space"),
        std::pair("https://h\n", "a space"), std::pair("https://h\xc3\xb6st", "ASCII"),
        std::pair("https://h%2Eb", "an escape"), std::pair("https://h%ed/x", "an escape"),
        std::pair("https://[fe80::1%25eth0]:6443", "IPv6 zone"),
        std::pair("https://[fe80::1%eth0]", "IPv6 zone"), std::pair("unix://", "absolute path"),
        std::pair("unix:///", "absolute path"), std::pair("unix://nomad.sock", "absolute path")));

TEST(BaseUrl, P3_credentials_are_refused_and_not_repeated) {
  for (const std::string text : {"https://user:hush@h", "https://hush@h", "https://:hush@h",
                                 "ftp://u:hush@h", "https://u:hush@h:x", "https://u:hush@h?a",
                                 "https://h?token=hush", "https://h:hush", "https://h/ hush"}) {
    EXPECT_THAT(ParseBaseUrl(text), StatusIs(StatusCode::kInvalidArgument, Not(HasSubstr("hush"))))
        << text;
  }
  EXPECT_THAT(ParseBaseUrl("https://user:hush@h"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("user name or password")));
}

TEST(BaseUrl, a_socket_is_named_by_its_absolute_path) {
  const auto url = ParseBaseUrl("unix:///run/nomad/api.sock");
  ASSERT_THAT(url, IsOk());
  EXPECT_TRUE(url->is_socket());
  EXPECT_EQ(url->socket, "/run/nomad/api.sock");
  EXPECT_EQ(url->Text(), "unix:///run/nomad/api.sock");
  EXPECT_EQ(url->Url(), "unix:///run/nomad/api.sock");
}

TEST(BaseUrl, a_socket_path_fits_a_socket_address) {
  EXPECT_THAT(ParseBaseUrl("unix:///" + std::string(106, 'a')), IsOk());
  EXPECT_THAT(ParseBaseUrl("unix:///" + std::string(107, 'a')),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("107")));
}

TEST(BaseUrl, two_spellings_of_one_server_are_the_same) {
  const BaseUrl url = *ParseBaseUrl("https://vip");
  for (const char* same : {"https://VIP", "https://vip:443", "https://vip/k8s", "https://vip."}) {
    EXPECT_TRUE(url.SameServer(*ParseBaseUrl(same))) << same;
  }
  for (const char* other : {"https://vip2", "https://vip:6443", "http://vip", "https://vi",
                            "https://vip.example.org"}) {
    EXPECT_FALSE(url.SameServer(*ParseBaseUrl(other))) << other;
  }
  EXPECT_TRUE(
      ParseBaseUrl("https://[FD00::1]")->SameServer(*ParseBaseUrl("https://[fd00::1]:443")));
}

TEST(BaseUrl, one_port_for_http_and_https_is_not_the_same_server) {
  EXPECT_FALSE(ParseBaseUrl("https://vip:443")->SameServer(*ParseBaseUrl("http://vip:443")));
}

// RFC 3986 3.1; Go's url.Parse, with which Nomad's and Kubernetes' clients read theirs.
TEST(BaseUrl, a_scheme_may_be_in_upper_case) {
  EXPECT_TRUE(ParseBaseUrl("HTTPS://vip")->https);
  EXPECT_EQ(ParseBaseUrl("HTTPS://vip")->Text(), "https://vip:443");
  EXPECT_EQ(ParseBaseUrl("Http://vip")->Text(), "http://vip:80");
  EXPECT_EQ(ParseBaseUrl("UNIX:///run/nomad.sock")->socket, "/run/nomad.sock");
}

TEST(BaseUrl, the_address_keeps_its_path_without_a_final_slash) {
  EXPECT_EQ(ParseBaseUrl("https://rancher/k8s/clusters/c-m-1//")->Url(),
            "https://rancher/k8s/clusters/c-m-1");
  EXPECT_EQ(ParseBaseUrl("HTTPS://vip:6443/")->Url(), "https://vip:6443");
  EXPECT_EQ(ParseBaseUrl("http://[fd00::1]:80")->Url(), "http://[fd00::1]");
}

TEST(BaseUrl, errors_name_host_and_port) {
  EXPECT_EQ(ParseBaseUrl("https://h/p")->Text(), "https://h:443");
  EXPECT_EQ(ParseBaseUrl("http://[::1]:4646")->Text(), "http://[::1]:4646");
}

TEST(IsLoopback, recognizes_names_and_both_families) {
  for (const std::string host : {"localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "::1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const std::string host :
       {"localhost.example", "128.0.0.1", "10.0.0.1", "::2", "", "nomad"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace nomad_harvester::http
