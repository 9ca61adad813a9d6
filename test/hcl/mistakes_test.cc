// SPDX-License-Identifier: Apache-2.0
// Nothing that cannot be read is skipped: each mistake is an error with its place.
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/hcl/document.h"

namespace nomad_harvester::hcl {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string MistakeIn(const std::string& text, const std::string& name = "a.hcl") {
  const auto body = ReadDocument(Source(name, text), {{"target", 1}});
  return body.ok() ? "none" : base::Message(body.status());
}

std::string Nested(int levels, const std::string& open, const std::string& close) {
  std::string text = "a = ";
  for (int i = 0; i < levels; ++i) text += open;
  text += "1";
  for (int i = 0; i < levels; ++i) text += close;
  return text + "\n";
}

TEST(Mistakes, are_shown_like_a_compilers) {
  EXPECT_EQ(MistakeIn("a = 1\n\tkey = é \"x\n"),
            "a.hcl:2:8: expected a value\n"
            "  2 |  key = é \"x\n"
            "    |        ^");
  EXPECT_EQ(MistakeIn("a = \"é\" é\r\nb = 1"),
            "a.hcl:1:9: an argument or a block ends with its line; a text is written in double "
            "quotes\n"
            "  1 | a = \"é\" é\n"
            "    |         ^");
}

TEST(Mistakes, of_the_native_syntax_are_found_where_they_are) {
  const std::pair<const char*, const char*> kCases[] = {
      {"target \"a\" {\n  driver = 1\n", "a.hcl:1:12: this block is not closed"},
      {"}\n", "a.hcl:1:1: expected an argument"},
      {"a\n", "a.hcl:1:2: expected \"=\""},
      {"a =\n1\n", "a.hcl:1:4: expected a value"},
      {"a = 1, b = 2\n", "a.hcl:1:6: arguments are separated by line ends"},
      {"a = 5m\n", "a.hcl:1:6: an argument or a block ends with its line"},
      {"a = 1\nb = 2\na = 3\n", "a.hcl:3:1: a is set twice"},
      {"\"a\" = 1\n", "a.hcl:1:1: the name of an argument"},
      {"a { b = 1, c = 2 }\n", "a.hcl:1:10: a block on one line has a single argument"},
      {"a { b {} }\n", "a.hcl:1:5: a block on one line has a single argument"},
      {"a \"b${1}\" {}\n", "a.hcl:1:5: a label is a text"},
      {"a = \"b\nc = 1\n", "a.hcl:1:5: missing closing quote (use <<EOF for several lines)"},
      {"a = \"b", "a.hcl:1:5: this text is not closed"},
      {"a = 'b'\n", "a.hcl:1:5: a text is written in double quotes"},
      {"a = \"\\$\"\n", "a.hcl:1:6: unknown escape"},
      {"a = \"\\ud800\"\n", "a.hcl:1:6: there is no such character"},
      {"a = \"\\u12\"\n", "a.hcl:1:10: expected 4 hexadecimal digits"},
      {"a = \"\xff\"\n", "a.hcl:1:6: this is not valid UTF-8"},
      {"a = \"e\u0301\"\n", "a.hcl:1:5: this text has a combining character"},
      {"a = <<EOF\nb\nEOF", "a.hcl:1:5: this text is not closed: EOF must stand alone"},
      {"a = << EOF\n", "a.hcl:1:5: a text of several lines begins with"},
      {"a = <<EOF\nb ${HOME}\nEOF\n", "a.hcl:2:3: the agent knows no variables"},
      {"a = \"${HOME}\"\n", "a.hcl:1:6: the agent knows no variables"},
      {"a = \"%{ if true }\"\n", "a.hcl:1:6: a template directive is not read here"},
      {"a = \"${~ 1 }\"\n", "a.hcl:1:8: the trim mark"},
      {"a = \"${1\"\n", "a.hcl:1:6: this ${ is not closed"},
      {"a = \"b${[1]}\"\n", "a.hcl:1:7: this value is no part of a text"},
      {"a = \"b${null}\"\n", "a.hcl:1:7: this value is no part of a text"},
      {"a = jsonencode(1)\n", "a.hcl:1:5: the agent knows no variables"},
      {"a = 1 + 2\n", "a.hcl:1:7: an expression that would have to be computed"},
      {"a = b ? 1 : 2\n", "a.hcl:1:5: the agent knows no variables"},
      {"a = [1][0]\n", "a.hcl:1:8: an expression that would have to be computed"},
      {"a = !true\n", "a.hcl:1:5: an expression that would have to be computed"},
      {"a = {\n  for = 1\n}\n", "a.hcl:2:3: an expression that would have to be computed"},
      {"a = 1.2.3\n", "a.hcl:1:5: this is no number"},
      {"a = 1e101\n", "a.hcl:1:5: this is no number"},
      {"a = [1 2]\n", "a.hcl:1:8: the items of a list are separated by commas"},
      {"a = [1,\n", "a.hcl:1:5: this list is not closed"},
      {"a = { b = 1 c = 2 }\n", "a.hcl:1:13: expected a comma or the line's end"},
      {"a = { b = 1\n", "a.hcl:1:5: this map is not closed"},
      {"a = { b.c = 1 }\n", "a.hcl:1:8: expected \"=\" and a value"},
      {"a = { null }\n", "a.hcl:1:12: expected \"=\" and a value"},
      {"a = { [1] = 1 }\n", "a.hcl:1:7: this is no name of an entry"},
      {"a = (1\n", "a.hcl:1:5: this parenthesis is not closed"},
      {"a = 1 /* b\n", "a.hcl:1:7: this comment is not closed"},
  };
  for (const auto& [text, mistake] : kCases) {
    EXPECT_THAT(MistakeIn(text), StartsWith(mistake)) << text;
  }
}

TEST(Mistakes, of_the_json_syntax_are_found_where_they_are) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "a.json:1:1: expected a JSON value"},
      {"\"a\"", "a.json:1:1: expected an object"},
      {"null", "a.json:1:1: expected an object"},
      {"[1]", "a.json:1:1: expected an object"},
      {"{} // a", "a.json:1:4: the file goes on"},
      {"{\"a\": 1,}", "a.json:1:9: expected a name"},
      {"{\"a\" = 1}", "a.json:1:6: expected a colon"},
      {"{\"a\": 1 \"b\": 2}", "a.json:1:9: expected a comma"},
      {"{\"a\": [1,]}", "a.json:1:10: expected a JSON value"},
      {"{\"a\": truex}", "a.json:1:7: expected a JSON value"},
      {"{\"a\": 01}", "a.json:1:7: this is no number"},
      {"{\"a\": 1.}", "a.json:1:7: this is no number"},
      {"{\"a\": +1}", "a.json:1:7: expected a JSON value"},
      {"{\"a\": \"b\nc\"}", "a.json:1:7: this text has an unknown escape, or a character"},
      {"{\"a\": \"\\x\"}", "a.json:1:7: this text has an unknown escape, or a character"},
      {"{\"a\": \"\\ud800\"}", "a.json:1:7: this text has an unknown escape, or a character"},
      {"{\"a\": \"\\ud800\\u0041\"}", "a.json:1:7: this text has an unknown escape"},
      {"{\"a\": \"\xff\"}", "a.json:1:7: this text has an unknown escape, or a character"},
      {"{\"a\": \"\\", "a.json:1:7: this text is not closed"},
      {"{\"a\": \"b", "a.json:1:7: this text is not closed"},
      {"{\"a\": 1, \"a\": 2}", "a.json:1:10: a is set twice"},
      {"{\"a\": {\"b\": 1, \"b\": 2}}", "a.json:1:16: b is set twice"},
      {"{\"target\": null}", "a.json:1:12: block target needs a label"},
      {"{\"target\": {\"a\": 1}}", "a.json:1:18: expected an object"},
  };
  for (const auto& [text, mistake] : kCases) {
    EXPECT_THAT(MistakeIn(text, "a.json"), StartsWith(mistake)) << text;
  }
}

TEST(Mistakes, show_no_secret) {
  for (const char* text : {"auth_token = \"hunter2\\q\"\n",
                           "auth_token \"hunter2\"\n",
                           "a = { auth_token = hunter2 }\n",
                           "nomad_http-auth = \"a:hunter2\n",
                           "Password: hunter2\n",
                           "a { token = \"hunter2\" b\n",
                           "auth_token = <<EOF\nhunter2 ${x}\nEOF\n",
                           "auth_token = [\n hunter2\n]\n",
                           "private_key = \"hunter2\" b\n",
                           "aws_credentials = hunter2\n",
                           "header_X-Api = \"hunter2\" b\n",
                           "user_data = \"hunter2\" b\n",
                           "network_data = <<EOF\nhunter2 ${x}\nEOF\n",
                           "passphrase = hunter2\n",
                           "pass = hunter2\n",
                           "db_pass = hunter2\n",
                           "passwd = hunter2\n",
                           "address = \"https://hunter2:hunter2@10.0.0.1\" b\n",
                           "a = \"http://b/\", address = \"https://hunter2@10.0.0.1\"\n",
                           "address = \"https://a:hunter2/Pw@10.0.0.1\" b\n"}) {
    EXPECT_THAT(MistakeIn(text), AllOf(StartsWith("a.hcl:"), Not(HasSubstr("hunter2")))) << text;
  }
  EXPECT_THAT(MistakeIn("{\"auth_token\": \"hunter2\" 1}", "a.json"),
              AllOf(StartsWith("a.json:"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(MistakeIn("{\"auth_token\"\n\"hunter2\"}", "a.json"),
              AllOf(StartsWith("a.json:2:1: expected a colon"), Not(HasSubstr("hunter2"))));
  for (const char* text : {"auth_token_file = shown\n", "user_data_file = shown\n",
                           "strategy \"pass-through\" shown\n", "bypass = shown b\n",
                           "address = \"https://shown/a\" b@c\n"}) {
    EXPECT_THAT(MistakeIn(text), HasSubstr("shown")) << text;
  }
}

TEST(Mistakes, far_behind_in_a_long_line_show_no_line) {
  EXPECT_EQ(MistakeIn("a = \"" + std::string(500, 'b') + "\" c\n"),
            "a.hcl:1:508: an argument or a block ends with its line; a text is written in double "
            "quotes");
}

TEST(Mistakes, in_a_long_line_are_cut_between_characters) {
  // The limit, 160 bytes, is in the middle of an é.
  const std::string shown = "a = b c" + std::string(152, 'b');
  EXPECT_THAT(MistakeIn(shown + "é\n"), EndsWith(" | " + shown + "\n    |     ^"));
}

TEST(Mistakes, in_a_long_line_show_no_secret) {
  const std::string mistake =
      MistakeIn("auth_token = \"" + std::string(200, 'x') + "hunter2\" c\n");
  EXPECT_THAT(mistake, AllOf(StartsWith("a.hcl:1:224: "), Not(HasSubstr("hunter2"))));
}

TEST(Mistakes, in_a_long_line_that_is_not_utf8_show_a_part_of_it) {
  EXPECT_LT(MistakeIn("a = " + std::string(5000, '\xb3') + "\n").size(), 1000U);
}

TEST(Mistakes, nesting_is_limited) {
  for (const auto& [open, close] :
       {std::pair("(", ")"), std::pair("[", "]"), std::pair("{ a = ", "}"),
        std::pair("\"${", "}\""), std::pair("-", "")}) {
    EXPECT_EQ(MistakeIn(Nested(10, open, close)), "none") << open;
    EXPECT_THAT(MistakeIn(Nested(100000, open, close)), HasSubstr("nested more than 50")) << open;
  }
  std::string blocks;
  for (int i = 0; i < 100000; ++i) blocks += "a {\n";
  EXPECT_THAT(MistakeIn(blocks), HasSubstr("nested more than 50"));
  EXPECT_THAT(MistakeIn(std::string(100000, '['), "a.json"), HasSubstr("nested more than 50"));
}

TEST(Mistakes, the_names_of_a_body_are_limited) {
  std::string text;
  for (int i = 0; i <= 1000; ++i) text += "a" + std::to_string(i) + " = 1\n";
  EXPECT_THAT(MistakeIn(text), HasSubstr("more than 1000 names"));
}

}  // namespace
}  // namespace nomad_harvester::hcl
