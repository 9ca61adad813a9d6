// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_test_support.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ListenAddress, an_address_of_either_kind_with_a_port_is_accepted) {
  for (const char* const good :
       {"127.0.0.1:9464", "0.0.0.0:1", "[::1]:65535", "[::]:9464", "localhost:9464"}) {
    EXPECT_EQ(ValueOf(ListenAddress(good)), good);
  }
}

// A name would be looked up by the C library, which a static executable must not ask.
TEST(ListenAddress, a_name_a_url_or_half_of_one_is_refused) {
  for (const char* const bad :
       {"", ":9464", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
        "127.0.0.1:http", "host.example.org:9464", "http://127.0.0.1:9464", "::1:9464", "[::1]",
        "[127.0.0.1]:9464", "[]:9464", "127.0.0.1:9464/metrics", "1.2.3.4.5:9464",
        " 127.0.0.1:1"}) {
    EXPECT_EQ(FaultOf(ListenAddress(bad)),
              "must be an IP address of this machine, or localhost, and a port")
        << bad;
  }
}

TEST(HttpUrl, the_forms_that_operators_use_are_accepted) {
  for (const char* const good :
       {"https://10.0.0.10", "https://10.0.0.10:6443", "http://harvester.example.org:80",
        "https://rancher.example.org/k8s/clusters/c-m-abcdef", "HTTPS://host", "https://[fd00::1]",
        "https://[fd00::1]:6443/path", "https://host_1/a%20b"}) {
    EXPECT_EQ(ValueOf(HttpUrl(good)), good);
  }
}

TEST(HttpUrl, slashes_at_the_end_are_dropped) {
  EXPECT_EQ(ValueOf(HttpUrl("https://host/")), "https://host");
  EXPECT_EQ(ValueOf(HttpUrl("https://host/k8s/clusters/local//")),
            "https://host/k8s/clusters/local");
}

TEST(HttpUrl, another_scheme_or_none_is_refused) {
  for (const char* const bad :
       {"10.0.0.10:6443", "ftp://host", "https:/host", "//host", "unix:///a"}) {
    EXPECT_THAT(FaultOf(HttpUrl(bad)), HasSubstr("must begin with http")) << bad;
  }
}

TEST(HttpUrl, what_is_no_address_is_refused) {
  for (const char* const bad :
       {"", "https://", "https:///path", "https://:6443", "https://host:0", "https://host:65536",
        "https://host:abc", "https://ho st", "https://[fd00::1", "https://[]", "https://[fd00::1]x",
        "https://host:1:2", "https://h\xc3\xb6st", "https://host/a b", "https://host/a\r\nb"}) {
    EXPECT_THAT(FaultOf(HttpUrl(bad)), StartsWith("the address ")) << bad;
  }
}

TEST(HttpUrl, credentials_are_refused_and_not_shown) {
  const ValueOr<std::string> parsed = HttpUrl("https://admin:hunter2@host/path");
  EXPECT_THAT(FaultOf(parsed), HasSubstr("must not hold a user name or password"));
  EXPECT_FALSE(std::get<Fault>(parsed).show_value);
}

TEST(HttpUrl, what_may_be_credentials_is_not_shown_even_if_something_else_is_wrong) {
  for (const char* const bad : {"admin:hunter2@host", "ftp://u:p@h", "https://ho st?token=x"}) {
    EXPECT_FALSE(std::get<Fault>(HttpUrl(bad)).show_value) << bad;
  }
}

TEST(HttpUrl, an_at_sign_in_the_path_is_not_a_user) {
  EXPECT_EQ(ValueOf(HttpUrl("https://host/a@b")), "https://host/a@b");
}

TEST(HttpUrl, a_query_or_fragment_is_refused) {
  for (const char* const bad : {"https://host/?a=b", "https://host?a=b", "https://host/#x"}) {
    EXPECT_EQ(FaultOf(HttpUrl(bad)), "the address must not have a query or a fragment") << bad;
  }
}

TEST(NomadAddress, takes_http_and_sockets) {
  EXPECT_EQ(ValueOf(NomadAddress("http://127.0.0.1:4646")), "http://127.0.0.1:4646");
  EXPECT_EQ(ValueOf(NomadAddress("https://nomad.example.org/prefix/")),
            "https://nomad.example.org/prefix");
  EXPECT_EQ(ValueOf(NomadAddress("unix:///secrets/api.sock")), "unix:///secrets/api.sock");
  EXPECT_EQ(ValueOf(NomadAddress("UNIX:///secrets/api.sock")), "UNIX:///secrets/api.sock");
  EXPECT_EQ(ValueOf(NomadAddress("HTTPS://nomad:4646")), "HTTPS://nomad:4646");
}

TEST(NomadAddress, a_socket_needs_an_absolute_path) {
  for (const char* const bad : {"unix://", "unix:///", "unix://api.sock", "unix:///a\nb"}) {
    EXPECT_THAT(FaultOf(NomadAddress(bad)), StartsWith("the address ")) << bad;
  }
}

TEST(NomadAddress, the_rules_of_urls_hold) {
  EXPECT_EQ(FaultOf(NomadAddress("127.0.0.1:4646")),
            "the address must begin with http://, https:// or unix://");
  EXPECT_THAT(FaultOf(NomadAddress("http://u:p@host")), HasSubstr("user name or password"));
}

TEST(HostName, takes_names_and_addresses_without_port) {
  for (const char* const good : {"server.global.nomad", "10.0.0.1", "fd00::1", "Host-1"}) {
    EXPECT_EQ(ValueOf(HostName(good)), good);
  }
  for (const char* const bad : {"", "https://host", "host:443", "cafe:443", "a b", "host/"}) {
    EXPECT_EQ(FaultOf(HostName(bad)), "must be a host name or an IP address") << bad;
  }
}

}  // namespace
}  // namespace nomad_harvester::config
