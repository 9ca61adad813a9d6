// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "nomad_harvester/base/parse.h"

#include "gtest/gtest.h"

namespace nomad_harvester::base {
namespace {

TEST(DnsLabel, Lower_case_digits_and_inner_hyphens) {
  for (const char* text : {"a", "0", "a-b", "pool-1", "1a", "a--b"}) {
    EXPECT_TRUE(IsDnsLabel(text)) << text;
  }
  for (const char* text : {"", "-", "-a", "a-", "A", "a.b", "a_b", "a b", "\u00e4", "a\n"}) {
    EXPECT_FALSE(IsDnsLabel(text)) << text;
  }
}

TEST(DnsLabel, Has_a_greatest_length) {
  EXPECT_TRUE(IsDnsLabel(std::string(63, 'a')));
  EXPECT_FALSE(IsDnsLabel(std::string(64, 'a')));
  EXPECT_TRUE(IsDnsLabel(std::string(40, 'a'), 40));
  EXPECT_FALSE(IsDnsLabel(std::string(41, 'a'), 40));
}

TEST(DnsSubdomain, Labels_joined_by_dots) {
  for (const char* text : {"a", "a.b", "harvesterhci.io", "a-1.b-2.c"}) {
    EXPECT_TRUE(IsDnsSubdomain(text)) << text;
  }
  for (const char* text : {"", ".", "a.", ".a", "a..b", "a.-b", "a-.b", "A.b", "a/b"}) {
    EXPECT_FALSE(IsDnsSubdomain(text)) << text;
  }
  EXPECT_TRUE(IsDnsSubdomain(std::string(253, 'a')));
  EXPECT_FALSE(IsDnsSubdomain(std::string(254, 'a')));
}

TEST(LabelKey, An_optional_prefix_and_a_name) {
  for (const char* text : {"a", "A", "app.kubernetes.io/managed-by", "a_b.C-d", "x.y/Z",
                           "nomad-harvester-autoscaler/pool"}) {
    EXPECT_TRUE(IsLabelKey(text)) << text;
  }
  for (const char* text :
       {"", "/", "a/", "/a", "a/b/c", "A.B/c", "-a", "a-", ".a", "a b", "_a", "x_y/z"}) {
    EXPECT_FALSE(IsLabelKey(text)) << text;
  }
  EXPECT_TRUE(IsLabelKey(std::string(253, 'p') + "/" + std::string(63, 'n')));
  EXPECT_FALSE(IsLabelKey(std::string(254, 'p') + "/n"));
  EXPECT_FALSE(IsLabelKey("p/" + std::string(64, 'n')));
}

TEST(LabelValue, Empty_or_a_name) {
  for (const char* text : {"", "a", "A.b_c-9", "0"}) EXPECT_TRUE(IsLabelValue(text)) << text;
  for (const char* text : {"-a", "a-", "a/b", "a b", "\u00e4", "a\n"}) {
    EXPECT_FALSE(IsLabelValue(text)) << text;
  }
  EXPECT_TRUE(IsLabelValue(std::string(63, 'a')));
  EXPECT_FALSE(IsLabelValue(std::string(64, 'a')));
}

}  // namespace
}  // namespace nomad_harvester::base
