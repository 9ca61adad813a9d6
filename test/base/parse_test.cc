// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/parse.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::base {
namespace {

using support::IsOkAndHolds;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ParseGoBool, Takes_exactly_the_words_of_strconv) {
  for (const char* word : {"1", "t", "T", "TRUE", "true", "True"}) {
    EXPECT_EQ(ParseGoBool(word), true) << word;
  }
  for (const char* word : {"0", "f", "F", "FALSE", "false", "False"}) {
    EXPECT_EQ(ParseGoBool(word), false) << word;
  }
}

TEST(ParseGoBool, Takes_nothing_else) {
  for (const char* text : {"maybe", "", "tRUE", " true", "yes", "on", "01", "\xff"}) {
    EXPECT_EQ(ParseGoBool(text), std::nullopt) << text;
  }
}

TEST(Quoted, Is_one_line_of_valid_text) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"maybe", R"("maybe")"},
      {"", R"("")"},
      {"a\n\t\x1b", R"("a\n\x09\x1b")"},
      {std::string("\0", 1), R"("\x00")"},
      {"\x7f", R"("\x7f")"},
      {"\xff\xfe", "\"\ufffd\ufffd\""},
      {"日本", R"("日本")"},
  };
  for (const auto& [text, quoted] : table) EXPECT_EQ(Quoted(text), quoted);
}

TEST(ParseInt, Takes_decimal_integers) {
  EXPECT_THAT(ParseInt("0"), IsOkAndHolds(0));
  EXPECT_THAT(ParseInt("-1"), IsOkAndHolds(-1));
  EXPECT_THAT(ParseInt("007"), IsOkAndHolds(7));
  EXPECT_THAT(ParseInt("9223372036854775807"),
              IsOkAndHolds(std::numeric_limits<std::int64_t>::max()));
  EXPECT_THAT(ParseInt("-9223372036854775808"),
              IsOkAndHolds(std::numeric_limits<std::int64_t>::min()));
}

TEST(ParseInt, Refuses_everything_else) {
  for (const char* text : {"", "-", "+1", "--1", "-+1", " 1", "1 ", "1.0", "1e3", "0x10", "1_000",
                           "one", "1\n", "\xff", "٣"}) {
    EXPECT_THAT(ParseInt(text), StatusIs(kInvalid, HasSubstr("is not an integer"))) << text;
  }
  EXPECT_THAT(ParseInt("9223372036854775808"),
              StatusIs(kInvalid, "\"9223372036854775808\" is out of range"));
  EXPECT_THAT(ParseInt("-9223372036854775809"), StatusIs(kInvalid, HasSubstr("out of range")));
  EXPECT_THAT(ParseInt("99999999999999999999x"), StatusIs(kInvalid, HasSubstr("not an integer")));
}

TEST(ParseInt, Reads_what_to_string_writes) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 5000; ++i) {
    const auto value = static_cast<std::int64_t>(random()) >> (random() % 64);
    ASSERT_THAT(ParseInt(std::to_string(value)), IsOkAndHolds(value));
  }
}

TEST(ParseList, Splits_and_trims) {
  EXPECT_THAT(ParseList(""), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(ParseList("  \t"), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(ParseList("a"), IsOkAndHolds(ElementsAre("a")));
  EXPECT_THAT(ParseList(" a , b\n,c c"), IsOkAndHolds(ElementsAre("a", "b", "c c")));
  EXPECT_THAT(ParseList("a,a"), IsOkAndHolds(ElementsAre("a", "a")));
}

TEST(ParseList, Refuses_an_empty_element) {
  for (const char* text : {",", "a,", ",a", "a,,b", "a, ,b"}) {
    EXPECT_THAT(ParseList(text), StatusIs(kInvalid, HasSubstr("empty element"))) << text;
  }
}

TEST(ParseMap, Splits_at_the_first_equals_sign) {
  EXPECT_THAT(ParseMap(""), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(ParseMap("k=v"), IsOkAndHolds(ElementsAre(Pair("k", "v"))));
  EXPECT_THAT(ParseMap("b = 2 , a=1=1"),
              IsOkAndHolds(ElementsAre(Pair("a", "1=1"), Pair("b", "2"))));
  EXPECT_THAT(ParseMap("k="), IsOkAndHolds(ElementsAre(Pair("k", ""))));
}

TEST(ParseMap, Refuses_what_is_not_key_and_value) {
  EXPECT_THAT(ParseMap("k"), StatusIs(kInvalid, HasSubstr("\"k\" is not of the form key=value")));
  EXPECT_THAT(ParseMap("a=1,b"), StatusIs(kInvalid, HasSubstr("\"b\"")));
  EXPECT_THAT(ParseMap("=v"), StatusIs(kInvalid, HasSubstr("empty key")));
  EXPECT_THAT(ParseMap(" =v"), StatusIs(kInvalid, HasSubstr("empty key")));
  EXPECT_THAT(ParseMap("k=1,k=1"), StatusIs(kInvalid, HasSubstr("\"k\" is given twice")));
  EXPECT_THAT(ParseMap("k=1,"), StatusIs(kInvalid, HasSubstr("empty element")));
}

TEST(Ascii, Lower_changes_only_ascii_letters) {
  EXPECT_EQ(AsciiLower("AbZ09-[`{\u00c4"), "abz09-[`{\u00c4");
  EXPECT_EQ(AsciiLower(""), "");
}

TEST(Ascii, Comparison_ignores_case) {
  EXPECT_TRUE(EqualsIgnoreCase("VM-a1", "vm-A1"));
  EXPECT_TRUE(EqualsIgnoreCase("", ""));
  EXPECT_FALSE(EqualsIgnoreCase("a", "ab"));
  EXPECT_FALSE(EqualsIgnoreCase("ab", "a"));
  EXPECT_FALSE(EqualsIgnoreCase("@", "`"));  // 32 apart, as 'A' and 'a' are
}

TEST(Ascii, Trim_takes_white_space_from_both_ends) {
  EXPECT_EQ(TrimAsciiSpace(" \t\r\n\v\fa b \n"), "a b");
  EXPECT_EQ(TrimAsciiSpace(" \n"), "");
  EXPECT_EQ(TrimAsciiSpace(""), "");
}

}  // namespace
}  // namespace nomad_harvester::base
