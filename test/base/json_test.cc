// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/json.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "base/nested_arrays.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "support/status_matchers.h"

namespace nomad_harvester::base {
namespace {

using nlohmann::json;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

json Parsed(const char* text) {
  auto value = ParseJson(text, "the test");
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *value : json();
}

TEST(ParseJson, Reads_a_whole_document) {
  EXPECT_EQ(Parsed(R"({"a":[1,-2,3.5,true,null,"\u00e4\n"]})").dump(),
            "{\"a\":[1,-2,3.5,true,null,\"\u00e4\\n\"]}");
  EXPECT_EQ(Parsed(" 1 "), json(1));
  EXPECT_EQ(Parsed(R"({"a":1,"a":2})"), json({{"a", 2}}));
}

TEST(ParseJson, Says_where_a_document_is_wrong_and_never_quotes_it) {
  EXPECT_THAT(ParseJson(R"({"token": hunter2})", "the reply"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("the reply is not JSON"), HasSubstr("byte 11"),
                             Not(HasSubstr("hunter2")), Not(HasSubstr("token")))));
  EXPECT_THAT(ParseJson("<html>Bad Gateway</html>", "the reply"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("byte 1"), Not(HasSubstr("Gateway")))));
}

TEST(ParseJson, Refuses_what_is_not_one_document) {
  for (const char* text : {"", " ", "{", "[1,", "\"open", "{}{}", "1 2", "nul", "{'a':1}", "[1,]",
                           "\"\xff\"", "\"\n\"", "\"\\x\"", "01", "1e999", "NaN", "[1]x"}) {
    EXPECT_THAT(ParseJson(text, "it"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("it is not JSON")))
        << text;
  }
  EXPECT_THAT(ParseJson("{\"a\":", "it"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("unexpected end of input")));
}

TEST(ParseJson, Tells_a_wrong_last_byte_and_a_number_out_of_range_from_a_document_that_was_cut) {
  EXPECT_THAT(ParseJson("[1]x", "it"), StatusIs(absl::StatusCode::kInvalidArgument,
                                                "it is not JSON: syntax error at byte 4"));
  EXPECT_THAT(ParseJson("1e999", "it"), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 "it is not JSON: a number is out of range"));
}

TEST(ParseJson, P2_depth_is_limited) {
  EXPECT_TRUE(ParseJson(NestedArrays(200), "it").ok());
  EXPECT_THAT(ParseJson(NestedArrays(201), "it"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested deeper than 200")));
  EXPECT_THAT(ParseJson(std::string(1'000'000, '['), "it"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  std::string objects;
  for (int i = 0; i < 201; ++i) objects += "{\"a\":";
  EXPECT_THAT(ParseJson(objects, "it"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested deeper")));
}

TEST(ParseJson, Brackets_inside_strings_and_in_sequence_are_no_depth) {
  EXPECT_TRUE(ParseJson("[\"" + std::string(500, '[') + "\\\"[\", 1]", "it").ok());
  EXPECT_TRUE(ParseJson("[\"\\\"" + std::string(500, '[') + "\"]", "it").ok());
  EXPECT_THAT(ParseJson("[\"\\\\\"," + NestedArrays(200) + "]", "it"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested deeper")));
  std::string wide = "[[]";
  for (int i = 0; i < 1000; ++i) wide += ",[]";
  EXPECT_TRUE(ParseJson(wide + "]", "it").ok());
}

TEST(ParseJson, P2_no_bytes_crash_it) {
  std::mt19937 random(9);
  const std::string alphabet = "{}[]\",:\\u0dE+-.12tfn \xff\xc3\xa4";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto length = random() % 24; length > 0; --length) {
      text += alphabet[random() % alphabet.size()];
    }
    const auto value = ParseJson(text, "it");
    if (value.ok()) {
      ASSERT_THAT(ParseJson(DumpJson(*value), "it"), IsOkAndHolds(*value)) << text;
    }
  }
}

TEST(DumpJson, Is_compact_and_replaces_invalid_utf8) {
  EXPECT_EQ(DumpJson(json({{"b", 1}, {"a", {1, 2}}})), R"({"a":[1,2],"b":1})");
  EXPECT_EQ(DumpJson(json("a\xff"
                          "b")),
            "\"a\ufffdb\"");
  EXPECT_EQ(DumpJson(json(std::numeric_limits<double>::quiet_NaN())), "null");
}

TEST(Members, Are_found_or_null) {
  const json value = Parsed(R"({"a":{"b":{"c":7}},"n":null})");
  ASSERT_NE(FindMember(value, "a"), nullptr);
  EXPECT_EQ(FindMember(value, "x"), nullptr);
  EXPECT_EQ(FindMember(json::array({1}), "a"), nullptr);
  EXPECT_EQ(FindMember(json("text"), "a"), nullptr);
  EXPECT_EQ(FindMember(json(), "a"), nullptr);
  ASSERT_NE(FindMember(value, "n"), nullptr);
  EXPECT_TRUE(FindMember(value, "n")->is_null());

  ASSERT_NE(FindPath(value, {"a", "b", "c"}), nullptr);
  EXPECT_EQ(*FindPath(value, {"a", "b", "c"}), json(7));
  EXPECT_EQ(FindPath(value, {}), &value);
  EXPECT_EQ(FindPath(value, {"a", "x", "c"}), nullptr);
  EXPECT_EQ(FindPath(value, {"a", "b", "c", "d"}), nullptr);
  EXPECT_EQ(FindPath(value, {"n", "b"}), nullptr);
}

TEST(Members, A_text_at_a_path_is_empty_if_there_is_none) {
  const json value = Parsed(R"({"a":{"b":"x","c":7},"n":null})");
  EXPECT_EQ(TextAt(value, {"a", "b"}), "x");
  EXPECT_EQ(TextAt(value, {"a", "c"}), "");
  EXPECT_EQ(TextAt(value, {"a", "b", "c"}), "");
  EXPECT_EQ(TextAt(value, {"n", "b"}), "");
}

TEST(Members, Typed_reads_fall_back_on_other_types) {
  const json value = Parsed(
      R"({"s":"x","i":-5,"u":18446744073709551615,"m":9223372036854775807,"f":1.0,"b":true,"n":null})");
  EXPECT_EQ(GetString(value, "s"), "x");
  EXPECT_EQ(GetString(value, "i"), "");
  EXPECT_EQ(GetString(value, "n", "fallback"), "fallback");
  EXPECT_EQ(GetString(value, "missing", "fallback"), "fallback");
  EXPECT_EQ(FindString(value, "s"), "x");
  EXPECT_EQ(FindString(value, "b"), std::nullopt);

  EXPECT_EQ(GetInt(value, "i"), -5);
  EXPECT_EQ(GetInt(value, "m"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(GetInt(value, "u", 3), 3);  // does not fit
  EXPECT_EQ(GetInt(value, "f", 3), 3);
  EXPECT_EQ(GetInt(value, "s", 3), 3);
  EXPECT_EQ(GetInt(value, "missing"), 0);

  EXPECT_TRUE(GetBool(value, "b"));
  EXPECT_TRUE(GetBool(value, "i", true));
  EXPECT_FALSE(GetBool(value, "s"));
}

TEST(ToValidUtf8, Leaves_valid_text_alone) {
  const std::string valid =
      std::string("\0a", 2) + "\u0080\u07ff\u0800\ud7ff\ue000\uffff" + "\U00010000\U0010ffff";
  EXPECT_EQ(ToValidUtf8(valid), valid);
  EXPECT_EQ(ToValidUtf8(""), "");
}

TEST(ToValidUtf8, Replaces_each_invalid_byte) {
  const std::string r = "\ufffd";
  EXPECT_EQ(ToValidUtf8("a\xff"
                        "b"),
            "a" + r + "b");
  EXPECT_EQ(ToValidUtf8("\x80"), r);          // a continuation byte alone
  EXPECT_EQ(ToValidUtf8("\xc3"), r);          // cut off
  EXPECT_EQ(ToValidUtf8("\xe2\x82"), r + r);  // cut off
  EXPECT_EQ(ToValidUtf8("\xe2\x82z"), r + r + "z");
  EXPECT_EQ(ToValidUtf8("\xc0\xaf"), r + r);          // overlong
  EXPECT_EQ(ToValidUtf8("\xe0\x80\xaf"), r + r + r);  // overlong
  EXPECT_EQ(ToValidUtf8("\xed\xa0\x80"), r + r + r);  // a surrogate
  EXPECT_EQ(ToValidUtf8("\xf0\x80\x80\x80"), r + r + r + r);
  EXPECT_EQ(ToValidUtf8("\xf4\x90\x80\x80"), r + r + r + r);  // past U+10FFFF
  EXPECT_EQ(ToValidUtf8("\xf5\x80\x80\x80"), r + r + r + r);
}

TEST(Utf8, what_reorders_or_hides_text_is_escaped_and_the_rest_is_kept) {
  EXPECT_EQ(EscapeUnseen("vm\u202egpj.exe\u2066x\u2069\u061c\u200b\ufeff\u2028"),
            "vm\\u202egpj.exe\\u2066x\\u2069\\u061c\\u200b\\ufeff\\u2028");
  EXPECT_EQ(EscapeUnseen("\u0085\u009b"), "\\x85\\x9b");
  const std::string plain = "Größe → 12 µs, 日本, 😀, \u00a0\u2010\u2030\u2070";
  EXPECT_EQ(EscapeUnseen(plain), plain);
}

TEST(ToValidUtf8, Gives_what_a_strict_reader_takes_and_is_stable) {
  std::mt19937 random(10);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes;
    for (auto length = random() % 20; length > 0; --length) {
      bytes += static_cast<char>(random() % 3 == 0 ? random() & 0xff : 0x80 | (random() & 0x7f));
    }
    const std::string valid = ToValidUtf8(bytes);
    ASSERT_EQ(ToValidUtf8(valid), valid);
    ASSERT_NO_THROW(json(valid).dump());  // nlohmann's strict mode
  }
}

TEST(GetStrings, takes_the_texts_of_a_list_and_nothing_else) {
  const auto object = nlohmann::json::parse(R"({"a":["x",1,null,"y"],"b":"x","c":{}})");
  EXPECT_EQ(GetStrings(object, "a"), (std::vector<std::string>{"x", "y"}));
  for (const char* key : {"b", "c", "missing"}) EXPECT_TRUE(GetStrings(object, key).empty()) << key;
  EXPECT_TRUE(GetStrings(7, "a").empty());
}

}  // namespace
}  // namespace nomad_harvester::base
