// SPDX-License-Identifier: Apache-2.0
#include "server_url.h"

#include <string>

#include "nomad_harvester/base/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ServerUrl Parsed(const std::string& text) {
  const auto url = ParseServerUrl(text);
  EXPECT_THAT(url, IsOk()) << text;
  return url.ok() ? *url : ServerUrl{};
}

TEST(ServerUrl, host_port_and_scheme_are_understood) {
  struct Row {
    const char* text;
    bool https;
    const char* host;
    int port;
  };
  for (const Row& row : {
           Row{"https://10.0.0.1", true, "10.0.0.1", 443},
           Row{"http://vip", false, "vip", 80},
           Row{"https://VIP.Example.org:6443", true, "vip.example.org", 6443},
           Row{"HTTPS://vip", true, "vip", 443},
           Row{"https://vip.", true, "vip", 443},
           Row{"https://[2001:DB8::1]", true, "2001:db8::1", 443},
           Row{"https://[::1]:6443/x", true, "::1", 6443},
           Row{"https://a_b-c.d:1", true, "a_b-c.d", 1},
           Row{"https://vip:65535", true, "vip", 65535},
           Row{" https://vip\n", true, "vip", 443},
       }) {
    const ServerUrl url = Parsed(row.text);
    EXPECT_EQ(url.https, row.https) << row.text;
    EXPECT_EQ(url.host, row.host) << row.text;
    EXPECT_EQ(url.port, row.port) << row.text;
  }
}

// "https://RANCHER/k8s/clusters/ID": without the path, requests would go to another cluster.
TEST(ServerUrl, a_path_is_kept_and_slashes_at_the_end_are_not) {
  EXPECT_EQ(Parsed("https://rancher/k8s/clusters/c-m-1").text,
            "https://rancher/k8s/clusters/c-m-1");
  EXPECT_EQ(Parsed("https://rancher/k8s/clusters/c-m-1//").text,
            "https://rancher/k8s/clusters/c-m-1");
  EXPECT_EQ(Parsed("https://vip/").text, "https://vip");
  EXPECT_EQ(Parsed("https://vip:6443").text, "https://vip:6443");
}

TEST(ServerUrl, mistakes_are_named_and_the_text_is_never_repeated) {
  struct Row {
    const char* text;
    const char* why;
  };
  for (const Row& row : {
           Row{"", "must begin with https:// or http://"},
           Row{"sesame", "must begin with"},
           Row{"sesame:6443", "must begin with"},
           Row{"10.0.0.1:6443", "must begin with"},
           Row{"ftp://sesame", "must begin with"},
           Row{"unix:///sesame.sock", "must begin with"},
           Row{"://sesame", "must begin with"},
           Row{"https:/sesame", "must begin with"},
           Row{"https://", "names no host"},
           Row{"https:///sesame", "names no host"},
           Row{"https://:6443", "names no host"},
           Row{"https://.", "names no host"},
           Row{"https://[]", "names no host"},
           Row{"https://user:sesame@vip", "no user name or password"},
           Row{"https://sesame@vip", "no user name or password"},
           Row{"https://vip?token=sesame", "no query"},
           Row{"https://vip#sesame", "no fragment"},
           Row{"https://vip/a b", "white space"},
           Row{"https://vip\r\nsesame: x", "white space, control"},
           Row{"https://v\xC3\xA4", "non-ASCII"},
           Row{"https://vip:", "port"},
           Row{"https://vip:0", "port"},
           Row{"https://vip:65536", "port"},
           Row{"https://vip:64x43", "port"},
           Row{"https://vip:-1", "port"},
           Row{"https://vip:99999999999999999999", "port"},
           Row{"https://fd00::1", "port"},
           Row{"https://[fd00::1", "\"[\" has no \"]\""},
           Row{"https://[fd00::1]6443", "host cannot be read"},
           Row{"https://[vip]", "host cannot be read"},
           Row{"https://[fe80::1%25eth0]", "host cannot be read"},
           Row{"https://v%61p", "host cannot be read"},
           Row{"https://vip\\.sesame", "host cannot be read"},
           Row{"https://vip,other", "host cannot be read"},
       }) {
    EXPECT_THAT(
        ParseServerUrl(row.text),
        StatusIs(StatusCode::kInvalidArgument, AllOf(HasSubstr(row.why), Not(HasSubstr("sesame")))))
        << row.text;
  }
}

TEST(ServerUrl, an_at_sign_in_the_path_is_not_a_password) {
  EXPECT_EQ(Parsed("https://vip/a@b").host, "vip");
}

TEST(ServerUrl, two_spellings_of_one_server_are_the_same) {
  const ServerUrl url = Parsed("https://vip");
  for (const char* same : {"https://VIP", "https://vip:443", "https://vip/k8s", "https://vip."}) {
    EXPECT_TRUE(url.SameServer(Parsed(same))) << same;
  }
  for (const char* other : {"https://vip2", "https://vip:6443", "http://vip", "https://vi",
                            "https://vip.example.org"}) {
    EXPECT_FALSE(url.SameServer(Parsed(other))) << other;
  }
  EXPECT_TRUE(Parsed("https://[FD00::1]").SameServer(Parsed("https://[fd00::1]:443")));
}

TEST(ServerUrl, the_loopback_is_this_machine_and_no_name_that_looks_like_it) {
  for (const char* loopback : {"http://localhost", "http://LOCALHOST:1", "http://127.0.0.1",
                               "http://127.1.2.3:80", "http://[::1]:1"}) {
    EXPECT_TRUE(Parsed(loopback).IsLoopback()) << loopback;
  }
  for (const char* other : {"http://127.example.org", "http://127.0.0.1.example.org", "http://vip",
                            "http://10.127.0.1", "http://[::2]", "http://localhost.example.org"}) {
    EXPECT_FALSE(Parsed(other).IsLoopback()) << other;
  }
}

}  // namespace
}  // namespace nomad_harvester::kube
