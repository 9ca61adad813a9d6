// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_test_support.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

using ::testing::HasSubstr;

using Parse = ValueOr<std::string> (*)(const std::string& text);

TEST(Addresses, in_the_forms_that_operators_use_are_accepted) {
  const std::vector<std::pair<Parse, std::vector<std::string>>> rows = {
      {&HttpUrl,
       {"https://10.0.0.10", "https://10.0.0.10:6443", "http://harvester.example.org:80",
        "https://rancher.example.org/k8s/clusters/c-m-abcdef", "HTTPS://host", "https://[fd00::1]",
        "https://[fd00::1]:6443/path", "https://host_1/a%20b", "https://host/a@b"}},
      {&NomadAddress,
       {"http://127.0.0.1:4646", "unix:///secrets/api.sock", "UNIX:///secrets/api.sock",
        "HTTPS://nomad:4646"}},
      {&HostName, {"server.global.nomad", "10.0.0.1", "fd00::1", "Host-1"}},
      {&ListenAddress,
       {"127.0.0.1:9464", "0.0.0.0:1", "[::1]:65535", "[::]:9464", "localhost:9464"}},
  };
  for (const auto& [parse, values] : rows) {
    for (const std::string& value : values) EXPECT_EQ(ValueOf(parse(value)), value);
  }
}

TEST(Addresses, lose_the_slashes_at_their_end) {
  EXPECT_EQ(ValueOf(HttpUrl("https://host/")), "https://host");
  EXPECT_EQ(ValueOf(HttpUrl("https://host/k8s/clusters/local//")),
            "https://host/k8s/clusters/local");
  EXPECT_EQ(ValueOf(NomadAddress("https://nomad.example.org/prefix/")),
            "https://nomad.example.org/prefix");
}

TEST(Addresses, that_are_none_are_refused_with_the_reason) {
  const struct {
    Parse parse;
    const char* fault;
    std::vector<std::string> values;
  } rows[] = {
      {&HttpUrl,
       "must begin with http",
       {"10.0.0.10:6443", "ftp://host", "https:/host", "//host", "unix:///a"}},
      {&HttpUrl,
       "the address ",
       {"", "https://", "https:///path", "https://:6443", "https://host:0", "https://host:65536",
        "https://host:abc", "https://ho st", "https://[fd00::1", "https://[]", "https://[fd00::1]x",
        "https://host:1:2", "https://h\xc3\xb6st", "https://host/a b", "https://host/a\r\nb"}},
      {&HttpUrl,
       "the address must not have a query or a fragment",
       {"https://host/?a=b", "https://host?a=b", "https://host/#x"}},
      {&HttpUrl, "must not hold a user name or password", {"https://admin:hunter2@host/path"}},
      {&NomadAddress,
       "the address must begin with http://, https:// or unix://",
       {"127.0.0.1:4646"}},
      {&NomadAddress, "must not hold a user name or password", {"http://u:p@host"}},
      {&NomadAddress, "the address ", {"unix://", "unix:///", "unix://api.sock", "unix:///a\nb"}},
      {&HostName,
       "must be a host name or an IP address",
       {"", "https://host", "host:443", "cafe:443", "a b", "host/"}},
      // A name would be looked up by the C library, which a static executable must not ask.
      {&ListenAddress,
       "must be an IP address of this machine, or localhost, and a port",
       {"", ":9464", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
        "127.0.0.1:http", "host.example.org:9464", "http://127.0.0.1:9464", "::1:9464", "[::1]",
        "[127.0.0.1]:9464", "[]:9464", "127.0.0.1:9464/metrics", "1.2.3.4.5:9464", " 127.0.0.1:1"}},
  };
  for (const auto& row : rows) {
    for (const std::string& value : row.values) {
      EXPECT_THAT(FaultOf(row.parse(value)), HasSubstr(row.fault)) << value;
    }
  }
}

TEST(Addresses, P3_that_may_hold_credentials_are_not_shown_whatever_is_wrong) {
  for (const char* const bad : {"https://admin:hunter2@host/path", "admin:hunter2@host",
                                "ftp://u:p@h", "https://ho st?token=x"}) {
    EXPECT_FALSE(std::get<Fault>(HttpUrl(bad)).show_value) << bad;
  }
}

}  // namespace
}  // namespace nomad_harvester::config
