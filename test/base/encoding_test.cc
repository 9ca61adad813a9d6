// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/encoding.h"

#include <random>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::base {
namespace {

using support::IsOkAndHolds;
using support::StatusIs;
using testing::HasSubstr;
using testing::Not;

// RFC 4648, section 10.
TEST(Base64, The_vectors_of_the_rfc) {
  const std::pair<const char*, const char*> table[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [plain, encoded] : table) {
    EXPECT_EQ(Base64Encode(plain), encoded);
    EXPECT_THAT(Base64Decode(encoded), IsOkAndHolds(plain));
  }
  EXPECT_EQ(Base64Encode("\xfb\xff\xbf"), "+/+/");
}

TEST(Base64, Padding_may_be_left_out_and_white_space_does_not_count) {
  EXPECT_THAT(Base64Decode("Zg"), IsOkAndHolds("f"));
  EXPECT_THAT(Base64Decode("Zm8"), IsOkAndHolds("fo"));
  EXPECT_THAT(Base64Decode(" Zm9v\r\n\tYmFy\n"), IsOkAndHolds("foobar"));
  EXPECT_THAT(Base64Decode("Zm8 ="), IsOkAndHolds("fo"));
}

TEST(Base64, Refuses_what_is_not_base64_without_quoting_it) {
  for (const char* text : {"Z", "Zg=", "Zg===", "Zm9v=", "=", "Zm=9", "Zg==Zg==", "Zm-_", "Zm9v!",
                           "Zm9vZ", "\xff\xff\xff\xff"}) {
    EXPECT_THAT(Base64Decode(text),
                StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr(text))))
        << text;
  }
}

TEST(Base64, What_is_encoded_decodes_to_the_same_bytes) {
  std::mt19937 random(8);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (auto length = random() % 70; length > 0; --length) {
      bytes += static_cast<char>(random() & 0xff);
    }
    const std::string encoded = Base64Encode(bytes);
    ASSERT_EQ(encoded.size() % 4, 0u);
    ASSERT_THAT(Base64Decode(encoded), IsOkAndHolds(bytes));
  }
}

TEST(UrlEscape, Leaves_only_the_unreserved_characters) {
  EXPECT_EQ(UrlEscape("AZaz09-._~"), "AZaz09-._~");
  EXPECT_EQ(UrlEscape("a b/c?d=e&f#g%h+i"), "a%20b%2Fc%3Fd%3De%26f%23g%25h%2Bi");
  EXPECT_EQ(UrlEscape(":@!$'()*,;[]\""), "%3A%40%21%24%27%28%29%2A%2C%3B%5B%5D%22");
  EXPECT_EQ(UrlEscape("\u00e4"), "%C3%A4");
  EXPECT_EQ(UrlEscape(std::string("\0\r\n\x7f\xff", 5)), "%00%0D%0A%7F%FF");
}

// The vectors of the authors of FNV (draft-eastlake-fnv).
TEST(StableHash, Is_fnv_1a) {
  EXPECT_EQ(StableHash(""), "cbf29ce484222325");
  EXPECT_EQ(StableHash("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(StableHash("foobar"), "85944171f73967e8");
}

TEST(StableHash, Differs_for_small_changes) {
  std::set<std::string> seen;
  for (int i = 0; i < 10000; ++i) {
    const std::string digest = StableHash("template " + std::to_string(i));
    ASSERT_EQ(digest.size(), 16u);
    ASSERT_TRUE(seen.insert(digest).second) << i;
  }
}

TEST(QueryString, leaves_empty_values_out_and_escapes_the_others) {
  EXPECT_EQ(QueryString({}), "");
  EXPECT_EQ(QueryString({{"a", ""}}), "");
  EXPECT_EQ(QueryString({{"a", ""}, {"b", "x=y&z"}, {"c", ""}, {"d", "ä"}}),
            "?b=x%3Dy%26z&d=%C3%A4");
  EXPECT_EQ(QueryString({{"all", "*"}, {"some", "a*"}}), "?all=*&some=a%2A");
}

}  // namespace
}  // namespace nomad_harvester::base
