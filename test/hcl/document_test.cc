// SPDX-License-Identifier: Apache-2.0
// What is read. That it is what the agent reads is the matter of test/contract/agent_files_test.go.
#include "nomad_harvester/hcl/document.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nomad_harvester::hcl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Body Read(const std::string& text, const std::string& name = "a.hcl",
          const std::vector<BlockSchema>& blocks = {}) {
  auto body = ReadDocument(Source(name, text), blocks);
  EXPECT_TRUE(body.ok()) << text << "\n" << body.status();
  return body.ok() ? *std::move(body) : Body{};
}

// The text of the only argument.
std::string TextOfValue(const std::string& value) {
  const Body body = Read("a = " + value + "\n");
  if (body.arguments.size() != 1) return "no argument";
  return TextOf(body.arguments.front().value).value_or("no text");
}

TEST(Document, jsonencode_of_a_policy_is_the_text_that_go_writes) {
  const std::string text =
      "a = jsonencode({\n  b = [1, true, null, 1e3]\n  a = \"x<y\"\n})\n"
      "c = \"<${jsonencode([])}>\"\n";
  std::vector<std::size_t> calls;
  const auto body = ReadDocument(Source("a.hcl", text), {}, &calls);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(TextOf(body->arguments[0].value), R"({"a":"x\u003cy","b":[1,true,null,1000]})");
  EXPECT_EQ(TextOf(body->arguments[1].value), "<[]>");
  EXPECT_THAT(calls, ElementsAre(4, text.find("jsonencode([])")));
}

TEST(Document, blocks_have_labels_arguments_and_blocks) {
  const Body body = Read(
      "# a comment\n"
      "plugin_dir = \"/opt\" // another\n"
      "scaling web \"two words\" { /* and\n"
      " another */\n"
      "  policy {\n"
      "    check \"a\" {}\n"
      "    schedule { start = \"0 8 * * *\" }\n"
      "  }\n"
      "}");
  ASSERT_EQ(body.arguments.size(), 1U);
  EXPECT_EQ(body.arguments[0].name, "plugin_dir");
  ASSERT_EQ(body.blocks.size(), 1U);
  EXPECT_EQ(body.blocks[0].type, "scaling");
  EXPECT_THAT(body.blocks[0].labels, ElementsAre("web", "two words"));
  ASSERT_EQ(body.blocks[0].body.blocks.size(), 1U);
  const Body& policy = body.blocks[0].body.blocks[0].body;
  ASSERT_EQ(policy.blocks.size(), 2U);
  EXPECT_EQ(policy.blocks[0].type, "check");
  const Argument* const start = FindArgument(policy.blocks[1].body, "start");
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->value.text, "0 8 * * *");
}

TEST(Document, values_become_the_texts_that_the_agent_makes_of_them) {
  const std::pair<const char*, const char*> kCases[] = {
      {"5", "5"},
      {"1.50", "1.5"},
      {"1e3", "1000"},
      {"1.5e-3", "0.0015"},
      {"007", "7"},
      {"0.0", "0"},
      {"12345678901234567890.0120", "12345678901234567890.012"},
      {"-5", "-5"},
      {"-0", "-0"},
      {"--5", "5"},
      {"true", "true"},
      {"( false )", "false"},
      {"\"a\\tb\\n\\\"\\\\\"", "a\tb\n\"\\"},
      {R"("\u00e9\U0001F600")", "é😀"},
      {"\"100%, $5, $$, %%\"", "100%, $5, $$, %%"},
      {"\"$${HOME} $$${HOME} %%{if}\"", "${HOME} $${HOME} %{if}"},
      {"\"${5}${true}${\"x\"}\"", "5truex"},
      {"\"${ 1.0 }\"", "1"},
      {"\"${\n\"a\" # the line's end is white space\n}\"", "a"},
  };
  for (const auto& [value, text] : kCases) EXPECT_EQ(TextOfValue(value), text) << value;
}

TEST(Document, texts_of_several_lines_keep_what_is_not_indentation) {
  const std::pair<const char*, const char*> kCases[] = {
      {"<<EOF\nEOF", ""},
      {"<<EOF\n  a\n\\n \"$\nEOF", "  a\n\\n \"$\n"},
      {"<<EOF\nEOF2\n EOF", "EOF2\n"},
      {"<<-EOF\n    a\n\n \tb\n  EOF", "  a\n\nb\n"},
      {"<<-EOF\n  a\n \n  b\nEOF", "a\n \nb\n"},
      {"<<-EOF\n\u00a0 a\n  b\nEOF", "a\nb\n"},
      {"<<-EOF\n  ${1}\n    a ${2}\n    EOF", "1\n  a 2\n"},
      {"<<-EOF\n${1}\n  a\nEOF", "1\n  a\n"},
      {"<<EOF\n$${x} %%{y}\nEOF", "${x} %{y}\n"},
      {"<<EOF\r\na\r\nEOF\r", "a\r\n"},
  };
  for (const auto& [value, text] : kCases) EXPECT_EQ(TextOfValue(value), text) << value;
}

TEST(Document, lists_and_maps_have_no_text) {
  const Body body =
      Read("a = [1, \"b\",]\nc = {\n  d = 1, e : [2]\n  \"f g\" = null\n  d = 3\n}\n");
  ASSERT_EQ(body.arguments.size(), 2U);
  EXPECT_EQ(body.arguments[0].value.items.size(), 2U);
  EXPECT_EQ(TextOf(body.arguments[0].value), std::nullopt);
  const auto& members = body.arguments[1].value.members;
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[0].name, "e");
  EXPECT_EQ(members[1].name, "f g");
  EXPECT_EQ(members[1].value.kind, Value::Kind::kNull);
  EXPECT_EQ(members[2].value.text, "3") << "the last one of a name counts";
}

TEST(Document, json_needs_the_schema_to_tell_blocks_from_arguments) {
  const std::string text =
      R"({"//": "comment", "target": {"web": {"driver": "x", "n": 1.50, "t": "${y}\ud83d\ude00\/"}},
          "apm": {"a": {}}})";
  const Body body = Read(text, "a.json", {{"target", 1}});
  ASSERT_EQ(body.blocks.size(), 1U);
  EXPECT_THAT(body.blocks[0].labels, ElementsAre("web"));
  const auto& arguments = body.blocks[0].body.arguments;
  ASSERT_EQ(arguments.size(), 3U);
  EXPECT_EQ(arguments[1].value.text, "1.5");
  EXPECT_EQ(arguments[2].value.text, "${y}😀/") << "JSON has no templates";
  ASSERT_EQ(body.arguments.size(), 1U);
  EXPECT_EQ(body.arguments[0].name, "apm");
}

TEST(Document, json_lists_are_several_blocks) {
  const Body body = Read(R"([{"target": [{"a": {}}, {"b": [{}, {}]}]}, {"target": {"c": null}}])",
                         "A.JSON", {{"target", 1}});
  ASSERT_EQ(body.blocks.size(), 3U);
  EXPECT_THAT(body.blocks[2].labels, ElementsAre("b"));
}

TEST(Document, a_byte_order_mark_is_no_text) {
  EXPECT_EQ(Read("\xef\xbb\xbf"
                 "a = 1")
                .arguments.size(),
            1U);
}

TEST(Document, an_empty_file_is_an_empty_body) {
  EXPECT_THAT(Read("").arguments, IsEmpty());
  EXPECT_THAT(Read("# nothing").blocks, IsEmpty());
}

TEST(Document, other_files_are_not_read) {
  const auto body = ReadDocument(Source("a.conf", ""), {});
  EXPECT_FALSE(body.ok());
  EXPECT_THAT(std::string(body.status().message()), HasSubstr(".hcl or .json"));
}

}  // namespace
}  // namespace nomad_harvester::hcl
