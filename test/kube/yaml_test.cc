// SPDX-License-Identifier: Apache-2.0
#include "yaml.h"

#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/observed.h"

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
using testing::StartsWith;

void ExpectParsed(const std::string& text, const std::string& wanted) {
  const auto value = ParseYaml(text);
  ASSERT_THAT(value, IsOk()) << text;
  EXPECT_EQ(*value, Json::parse(wanted)) << text;
}

void ExpectRefused(const std::string& text, const std::string& why) {
  EXPECT_THAT(ParseYaml(text), StatusIs(StatusCode::kInvalidArgument,
                                        AllOf(HasSubstr(why), Not(HasSubstr("sesame")))))
      << text;
}

TEST(Yaml, maps_and_sequences_become_objects_and_arrays) {
  ExpectParsed("a:\n  - b: c\n    d: [e, {f: g}]\n  - []\nh: {}\n",
               R"({"a":[{"b":"c","d":["e",{"f":"g"}]},[]],"h":{}})");
}

TEST(Yaml, scalars_are_text_whatever_they_look_like) {
  ExpectParsed("[1, 1.5, true, yes, 0x1F, 1e3, 2026-01-01, '', \"\\u00e4\\n\", 'null', \"~\"]",
               R"(["1","1.5","true","yes","0x1F","1e3","2026-01-01","","ä\n","null","~"])");
}

TEST(Yaml, the_plain_null_is_null) {
  ExpectParsed("[null, ~, Null, NULL]", "[null,null,null,null]");
  ExpectParsed("a:\nb: ~\n", R"({"a":null,"b":null})");
}

TEST(Yaml, blocks_of_text_keep_their_lines) {
  ExpectParsed("a: |\n  one\n  two\nb: >-\n  three\n  four\n",
               R"({"a":"one\ntwo\n","b":"three four"})");
}

TEST(Yaml, comments_a_marker_and_a_byte_order_mark_are_not_content) {
  ExpectParsed("\xEF\xBB\xBF# a kubeconfig\n---\na: b # c\n...\n", R"({"a":"b"})");
}

TEST(Yaml, a_text_that_begins_with_a_brace_is_JSON_first) {
  ExpectParsed(" \n{\"a\":\t[1,\n\ttrue, \"x\"]}", R"({"a":[1,true,"x"]})");
}

TEST(Yaml, a_flow_map_that_is_not_JSON_is_YAML) {
  ExpectParsed("{a: b, c: [d]}", R"({"a":"b","c":["d"]})");
}

TEST(Yaml, an_alias_is_what_its_anchor_was) {
  ExpectParsed("a: &x {b: [c]}\nd: *x\ne: [*x, &y f, *y]\n",
               R"({"a":{"b":["c"]},"d":{"b":["c"]},"e":[{"b":["c"]},"f","f"]})");
}

TEST(Yaml, an_anchor_that_is_given_again_counts_from_there_on) {
  ExpectParsed("[&x a, *x, &x b, *x]", R"(["a","a","b","b"])");
}

TEST(Yaml, bad_syntax_names_the_line_and_not_the_content) {
  for (const char* text :
       {"a: [sesame", "a: 'sesame", "a: b: sesame", "a\nsesame: x", "*sesame", "a: !<sesame",
        "%YAML sesame\n---\na", "a: \"\\sesame\"", "{sesame", "\tsesame: a"}) {
    ExpectRefused(text, "it is not YAML");
    EXPECT_THAT(ParseYaml(text), StatusIs(StatusCode::kInvalidArgument, StartsWith("line ")));
  }
  EXPECT_THAT(ParseYaml("a: b\nc: [d\n"),
              StatusIs(StatusCode::kInvalidArgument, testing::MatchesRegex("line [23]: .*")));
}

TEST(Yaml, nothing_is_nothing) {
  for (const char* text : {"", " \n", "# sesame\n"}) ExpectRefused(text, "it is empty");
}

TEST(Yaml, several_documents_are_refused) {
  ExpectRefused("a: b\n---\nsesame: d\n", "it holds several documents");
}

TEST(Yaml, a_key_given_twice_is_refused_with_its_line) {
  ExpectRefused("sesame: a\nb: c\nsesame: d\n", "line 3: a key is given twice");
}

TEST(Yaml, a_key_that_is_not_text_is_refused) {
  for (const char* text : {"? [sesame]\n: b", "? {a: sesame}\n: b", "~: sesame", "[a]: sesame"}) {
    ExpectRefused(text, "a key is not a string");
  }
}

// As an ordinary key, it would silently leave out the merged members.
TEST(Yaml, a_merge_key_is_refused) {
  ExpectRefused("a: &x {token: sesame}\nb:\n  <<: *x\n", "line 3: merge keys are not supported");
}

TEST(Yaml, an_anchor_inside_of_itself_is_refused) {
  ExpectRefused("a: &x [sesame, *x]", "an alias refers to itself");
  ExpectRefused("&x {a: *x}", "an alias refers to itself");
}

TEST(Yaml, fifty_levels_are_read_and_no_more) {
  EXPECT_THAT(ParseYaml(std::string(50, '[') + std::string(50, ']')), IsOk());
  ExpectRefused(std::string(51, '[') + std::string(51, ']'), "nested deeper than 50 levels");
}

TEST(Yaml, P2_a_text_of_brackets_or_dashes_alone_is_refused) {
  for (const char* piece : {"[", "{", "- ", "? ", "a: ", "&a ", "!a ", "*a ", "[a: "}) {
    std::string text;
    while (text.size() < 100'000) text += piece;
    EXPECT_FALSE(ParseYaml(text).ok()) << piece;
  }
}

TEST(Yaml, P2_aliases_to_aliases_are_counted_before_they_are_copied) {
  std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 1; j < 9; ++j) text += "," + before;
    text += "]\n";
  }
  ExpectRefused(text, "it expands to more than 20000 values");
}

TEST(Yaml, P2_aliases_to_a_long_text_are_counted_by_its_length) {
  std::string text = "a: &a " + std::string(500'000, 'x') + "\nb: [*a";
  for (int i = 0; i < 10'000; ++i) text += ",*a";
  ExpectRefused(text + "]\n", "it expands to more than 8388608 bytes");
}

TEST(Yaml, P2_anchors_around_anchors_are_counted) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "[&a" + std::to_string(i) + " ";
  text += std::string(500'000, 'x') + std::string(40, ']');
  ExpectRefused(text, "it expands to more than 8388608 bytes");
}

TEST(Yaml, many_values_are_refused_even_without_aliases) {
  std::string text = "[a";
  for (int i = 0; i < 20'000; ++i) text += ",a";
  ExpectRefused(text + "]", "it expands to more than 20000 values");
}

constexpr char kSample[] =
    "a: &x {b: 'c', d: [e, \"f\"]}\n# note\ng:\n  - *x\n  - h: |\n      i\n  - ~\nj: !!str 1\n";

TEST(Yaml, P2_any_cut_of_a_text_is_read_or_refused) {
  const std::string text = kSample;
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const auto value = ParseYaml(text.substr(0, length));
    if (!value.ok()) {
      EXPECT_THAT(value, StatusIs(StatusCode::kInvalidArgument)) << length;
    }
  }
  EXPECT_THAT(ParseYaml(text), IsOk());
}

TEST(Yaml, P2_a_text_changed_at_any_byte_is_read_or_refused) {
  for (std::size_t at = 0; at < sizeof(kSample) - 1; ++at) {
    for (const char c : {'\0', '\n', '\t', ' ', ':', '-', '[', ']', '{', '}',    '&',    '*',   '!',
                         '|',  '\'', '"',  '%', '@', '#', '?', ',', 'z', '\x7f', '\x80', '\xff'}) {
      std::string text = kSample;
      text[at] = c;
      const auto value = ParseYaml(text);
      if (!value.ok()) {
        EXPECT_THAT(value, StatusIs(StatusCode::kInvalidArgument)) << text;
      }
    }
  }
}

}  // namespace
}  // namespace nomad_harvester::kube
