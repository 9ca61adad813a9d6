// SPDX-License-Identifier: Apache-2.0
// What is a tag in a template, and where it begins and ends.
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/runtime/random.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

absl::StatusOr<std::string> RenderLetters(const std::string& source) {
  return RenderTemplate(source, {{"", "0"},
                                 {"a", "1"},
                                 {"b", "2"},
                                 {"c", "3"},
                                 {"d", "4"},
                                 {"e.F_1", "5"},
                                 {"x", "6"},
                                 {"{x", "7"}});
}

TEST(TemplateTags, are_variables_however_they_are_written) {
  EXPECT_THAT(RenderLetters("{{a}} {{ b }}{{{c}}}{{& d}}{{\n e.F_1 \t}}{{}}"),
              IsOkAndHolds("1 23450"));
  EXPECT_THAT(RenderLetters("no tag { { } }"), IsOkAndHolds("no tag { { } }"));
}

TEST(TemplateTags, take_nothing_of_the_text_around_them) {
  EXPECT_THAT(RenderLetters("ab{{{c}}}d{{a}}"), IsOkAndHolds("ab3d1"));
}

TEST(TemplateTags, comments_render_nothing_and_sections_are_refused) {
  EXPECT_THAT(RenderLetters("x{{! c }}{{x}}"), IsOkAndHolds("x6"));
  for (const char* tag : {"{{#a}}", "{{/a}}", "{{^b}}", "{{>p}}", "{{{=x y=}}}"}) {
    EXPECT_THAT(RenderLetters(tag),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sections and partials")))
        << tag;
  }
}

TEST(TemplateTags, follow_changes_of_the_delimiters) {
  EXPECT_THAT(RenderLetters("{{a}}{{=<% %>=}}{{b}}<%c%><%={{ }}=%>{{d}}{{{e.F_1}}}"),
              IsOkAndHolds("1{{b}}345"));
  EXPECT_THAT(RenderLetters("y{{= | | =}}|x|{{y}}"), IsOkAndHolds("y6{{y}}"));
  EXPECT_THAT(RenderLetters("{{=<%   %>=}}<% x %>"), IsOkAndHolds("6"));
  // {{{ }}} is only a tag with the default delimiters.
  EXPECT_THAT(RenderLetters("{{={{ ]]=}}{{{x]]"), IsOkAndHolds("7"));
}

TEST(TemplateTags, that_cannot_be_read_are_the_last_problem) {
  for (const char* source : {"{{", "a{{b", "a{{b}", "{{{b}}", "{{!", "{{=<% %>=}}<%a"}) {
    EXPECT_THAT(RenderLetters(source),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not closed by")))
        << source;
  }
  for (const char* source : {"{{=}}", "{{==}}", "{{=<%=}}", "{{=<% %>}}", "{{= =}}", "{{=a b c=}}",
                             "{{=a= b=}}", "{{=a b==}}"}) {
    EXPECT_THAT(RenderLetters(source + std::string("{{nothing}}")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("this change of delimiters cannot be read"),
                               Not(HasSubstr("nothing")))))
        << source;
  }
}

TEST(TemplateTags, that_render_nothing_and_are_alone_on_their_line_go_with_it) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{{=<% %>=}}\n#cloud-config\n", "#cloud-config\n"},
      {"a\n  {{! c }}\t\nb", "a\nb"},
      {"a\r\n{{! c }}\r\nb", "a\r\nb"},
      {"a\r{{! c }}\rb", "a\rb"},
      {"a\n{{! c }}", "a\n"},
      {"{{! a }}\n{{! b }}\n", ""},
      {"{{! over\ntwo lines }}\nx", "x"},
      // Not the only text on its line.
      {"a {{! c }}\nb", "a \nb"},
      {"{{! c }} a\nb", " a\nb"},
      {"{{! a }} {{! b }}\n", " \n"},
      // A variable's line is kept, regardless of its value.
      {"a\n{{x}}\nb", "a\n6\nb"},
      {"", ""},
  };
  for (const auto& [source, rendered] : cases) {
    EXPECT_THAT(RenderLetters(source), IsOkAndHolds(rendered)) << source;
  }
}

TEST(TemplateTags, have_positions_in_lines_and_code_points_from_1) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{{", "line 1, column 1: "},
      {"abc\nd{{", "line 2, column 2: "},
      {"\n\n{{", "line 3, column 1: "},
      {"ä€{{", "line 1, column 3: "},
  };
  for (const auto& [source, position] : cases) {
    EXPECT_THAT(RenderLetters(source),
                StatusIs(absl::StatusCode::kInvalidArgument, testing::StartsWith(position)));
  }
}

TEST(TemplateTags, in_any_bytes_are_rendered_or_refused) {
  const auto random = support::MakeSeededRandom(8);
  for (int i = 0; i < 5000; ++i) {
    std::string source;
    for (std::uint64_t length = random->Next() % 60; length > 0; --length) {
      const std::uint64_t draw = random->Next();
      source.push_back(draw % 3 == 0 ? static_cast<char>(draw >> 8U)
                                     : "{}{}=<%>|!#a \n"[(draw >> 8U) % 14]);
    }
    const auto result = RenderLetters(source);
    if (!result.ok()) {
      ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    }
  }
}

}  // namespace
}  // namespace nomad_harvester::harvester
