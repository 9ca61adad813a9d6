// SPDX-License-Identifier: Apache-2.0
#include "template_scanner.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::harvester {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = TemplateTag::Kind;

std::vector<std::string> Texts(const std::string& source) {
  std::vector<std::string> texts;
  for (const TemplateTag& tag : ScanTemplate(source).tags) texts.push_back(tag.text);
  return texts;
}

TEST(ScanTemplate, finds_variables_however_they_are_written) {
  EXPECT_THAT(Texts("{{a}} {{ b }}{{{c}}}{{& d}}{{\n e.F_1 \t}}{{}}"),
              ElementsAre("a", "b", "c", "d", "e.F_1", ""));
  EXPECT_THAT(ScanTemplate("no tag { { } }").tags, IsEmpty());
  EXPECT_THAT(ScanTemplate("").tags, IsEmpty());
}

TEST(ScanTemplate, knows_where_a_tag_begins_and_ends) {
  const std::string source = "ab{{{c}}}d{{e}}";
  const ScannedTemplate scanned = ScanTemplate(source);
  ASSERT_THAT(scanned.tags, SizeIs(2));
  EXPECT_EQ(source.substr(scanned.tags[0].begin, scanned.tags[0].end - scanned.tags[0].begin),
            "{{{c}}}");
  EXPECT_EQ(source.substr(scanned.tags[1].begin, scanned.tags[1].end - scanned.tags[1].begin),
            "{{e}}");
}

TEST(ScanTemplate, tells_comments_and_unsupported_tags_from_variables) {
  const ScannedTemplate scanned = ScanTemplate("{{! c }}{{#a}}{{/a}}{{^b}}{{>p}}{{{=x y=}}}{{v}}");
  std::vector<Kind> kinds;
  for (const TemplateTag& tag : scanned.tags) kinds.push_back(tag.kind);
  EXPECT_THAT(
      kinds, ElementsAre(Kind::kComment, Kind::kUnsupported, Kind::kUnsupported, Kind::kUnsupported,
                         Kind::kUnsupported, Kind::kUnsupported, Kind::kVariable));
  EXPECT_THAT(scanned.problems, IsEmpty());
}

TEST(ScanTemplate, follows_changes_of_the_delimiters) {
  EXPECT_THAT(Texts("{{a}}{{=<% %>=}}{{b}}<%c%><%={{ }}=%>{{d}}{{{e}}}"),
              ElementsAre("a", "=<% %>=", "c", "={{ }}=", "d", "e"));
  EXPECT_THAT(Texts("{{= | | =}}|x|{{y}}"), ElementsAre("= | | =", "x"));
  EXPECT_THAT(Texts("{{=<%   %>=}}<% x %>"), ElementsAre("=<%   %>=", "x"));
  // {{{ }}} is only a tag with the default delimiters.
  EXPECT_THAT(Texts("{{={{ ]]=}}{{{x]]"), ElementsAre("={{ ]]=", "{x"));
}

TEST(ScanTemplate, stops_where_it_cannot_go_on) {
  for (const char* source : {"{{", "a{{b", "a{{b}", "{{{b}}", "{{!", "{{=<% %>=}}<%a"}) {
    const ScannedTemplate scanned = ScanTemplate(source);
    ASSERT_THAT(scanned.problems, SizeIs(1)) << source;
    EXPECT_THAT(scanned.problems[0].text, HasSubstr("not closed by")) << source;
  }
  for (const char* source : {"{{=}}", "{{==}}", "{{=<%=}}", "{{=<% %>}}", "{{= =}}", "{{=a b c=}}",
                             "{{=a= b=}}", "{{=a b==}}"}) {
    const ScannedTemplate scanned = ScanTemplate(source);
    ASSERT_THAT(scanned.problems, SizeIs(1)) << source;
    EXPECT_THAT(scanned.problems[0].text, HasSubstr("delimiters")) << source;
    EXPECT_THAT(scanned.tags, IsEmpty()) << source;
  }
}

struct Standalone {
  std::string source;
  std::string without;
};

TEST(WithoutStandaloneLines, removes_the_line_but_keeps_the_tag) {
  const Standalone cases[] = {
      {"{{=<% %>=}}\n#cloud-config\n", "{{=<% %>=}}#cloud-config\n"},
      {"a\n  {{! c }}\t\nb", "a\n{{! c }}b"},
      {"a\r\n{{! c }}\r\nb", "a\r\n{{! c }}b"},
      {"a\n{{! c }}", "a\n{{! c }}"},
      {"{{! a }}\n{{! b }}\n", "{{! a }}{{! b }}"},
      {"{{! over\ntwo lines }}\nx", "{{! over\ntwo lines }}x"},
      // Not the only text on its line.
      {"a {{! c }}\nb", "a {{! c }}\nb"},
      {"{{! c }} a\nb", "{{! c }} a\nb"},
      {"{{! a }} {{! b }}\n", "{{! a }} {{! b }}\n"},
      // A variable's line is kept, regardless of its value.
      {"a\n{{v}}\nb", "a\n{{v}}\nb"},
      {"", ""},
  };
  for (const Standalone& c : cases) {
    EXPECT_EQ(WithoutStandaloneLines(c.source, ScanTemplate(c.source)), c.without) << c.source;
  }
}

TEST(DescribePosition, counts_lines_and_code_points_from_1) {
  EXPECT_EQ(DescribePosition("abc", 0), "line 1, column 1");
  EXPECT_EQ(DescribePosition("abc\nd{{", 5), "line 2, column 2");
  EXPECT_EQ(DescribePosition("\n\n{{", 2), "line 3, column 1");
  EXPECT_EQ(DescribePosition("ä€{{", 5), "line 1, column 3");
}

}  // namespace
}  // namespace nomad_harvester::harvester
