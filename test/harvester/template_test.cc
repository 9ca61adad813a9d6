// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "nomad_harvester/harvester/vm_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using support::IsOk;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const TemplateVariables& Variables() {
  static const TemplateVariables* variables = new TemplateVariables{
      {"vm_name", "web-x"},
      {"pool", "web"},
      {"zone", ""},
      {"env.html", "<a href=\"x\">&'</a>"},
      {"env.braces", "{{vm_name}}"},
      {"env.HARVESTER_TEMPLATE_TOKEN", "s3cret"},
      {"env.HARVESTER_TEMPLATE_WITH.DOT", "dotted"},
  };
  return *variables;
}

TEST(RenderTemplate, replaces_variables_however_they_are_written) {
  EXPECT_THAT(RenderTemplate("{{vm_name}}/{{ pool }}/{{{pool}}}/{{&pool}}/{{zone}}.", Variables()),
              IsOkAndHolds("web-x/web/web/web/."));
}

TEST(RenderTemplate, escapes_nothing) {
  EXPECT_THAT(RenderTemplate("{{env.html}}", Variables()), IsOkAndHolds("<a href=\"x\">&'</a>"));
}

TEST(RenderTemplate, does_not_render_tags_in_a_value) {
  EXPECT_THAT(RenderTemplate("{{env.braces}}", Variables()), IsOkAndHolds("{{vm_name}}"));
}

// A line break ends a YAML value, a quotation mark a text of YAML or HCL, a backquote or "$("
// begins a command of a shell, and " #" a comment.
TEST(RenderTemplate, C3_a_value_that_could_change_the_text_around_it_is_refused) {
  for (const std::string& value : std::vector<std::string>{"dc1\nruncmd: [reboot]",
                                                           "dc1\r",
                                                           "a\tb",
                                                           std::string("a\0b", 3),
                                                           "a\x7f",
                                                           "a\xC2\x85z",
                                                           "a\xE2\x80\xA8z",
                                                           "\"x",
                                                           "it's",
                                                           "a\\",
                                                           "`id`",
                                                           "$(id)",
                                                           "${x}",
                                                           "a #b",
                                                           "{a",
                                                           "[a",
                                                           "a]",
                                                           "a;b",
                                                           "a|b",
                                                           "a&b",
                                                           "<a",
                                                           ">a",
                                                           "*a",
                                                           "!a",
                                                           "%a",
                                                           "a?"}) {
    const auto rendered = RenderTemplate("dc: {{datacenter}}", {{"datacenter", value}});
    EXPECT_THAT(rendered,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("line 1, column 5"), HasSubstr("{{datacenter}}"),
                               HasSubstr("change it where it is set"), Not(HasSubstr("runcmd")))))
        << value;
    EXPECT_THAT(RenderTemplate("no tag", {{"datacenter", value}}), IsOkAndHolds("no tag"));
  }
}

TEST(RenderTemplate, C3_a_value_of_words_and_the_operators_own_environment_are_kept) {
  for (const std::string value :
       {"", "web-x", "Rack 3 (east), row_2", "z\xC3\xBCrich", "10.0.0.1:4646", "a/b@c+d=e~f",
        "3f3c6a4e-0a51-8f4e-a5a4-0d6ff0a8c2de", "eyJhbGci.eyJhdWQi-_.c2ln"}) {
    EXPECT_THAT(RenderTemplate("{{datacenter}}", {{"datacenter", value}}), IsOkAndHolds(value));
  }
  EXPECT_THAT(RenderTemplate("{{env.X}}", {{"env.X", "a: \"b\"\nc: d"}}),
              IsOkAndHolds("a: \"b\"\nc: d"));
}

TEST(RenderTemplate, takes_names_with_dots_as_they_are) {
  EXPECT_THAT(RenderTemplate("{{env.HARVESTER_TEMPLATE_TOKEN}} {{env.HARVESTER_TEMPLATE_WITH.DOT}}",
                             Variables()),
              IsOkAndHolds("s3cret dotted"));
}

TEST(RenderTemplate, changes_no_byte_of_a_text_without_tags) {
  for (const std::string& source :
       {std::string(), std::string("a\r\n\tb  \n\n"), std::string("\x00\xff{ {", 5)}) {
    EXPECT_THAT(RenderTemplate(source, Variables()), IsOkAndHolds(source));
  }
}

TEST(RenderTemplate, keeps_white_space_and_every_byte_around_tags) {
  const std::string bytes("\x00\xff\r\n \t\r", 7);
  EXPECT_THAT(RenderTemplate(bytes + "{{pool}}" + bytes, Variables()),
              IsOkAndHolds(bytes + "web" + bytes));
  EXPECT_THAT(RenderTemplate("a\n  {{zone}}  \nb\n", Variables()), IsOkAndHolds("a\n    \nb\n"));
}

TEST(RenderTemplate, drops_comments_with_their_line) {
  EXPECT_THAT(RenderTemplate("a\n  {{! not seen }}\nb{{! nor this }}c\n", Variables()),
              IsOkAndHolds("a\nbc\n"));
}

TEST(RenderTemplate, keeps_foreign_braces_after_a_change_of_delimiters) {
  EXPECT_THAT(RenderTemplate("{{=<% %>=}}\n#cloud-config\n# {{ env `X` }} <%vm_name%> {{{a}}}\n",
                             Variables()),
              IsOkAndHolds("#cloud-config\n# {{ env `X` }} web-x {{{a}}}\n"));
  EXPECT_THAT(RenderTemplate("{{pool}}{{=<% %>=}}{{a}}<%={{ }}=%>{{pool}}", Variables()),
              IsOkAndHolds("web{{a}}web"));
}

TEST(RenderTemplate, reports_the_position_and_nearest_name_of_an_unknown_variable) {
  EXPECT_THAT(
      RenderTemplate("a\nä {{vm_nam}}", Variables()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("line 2, column 3"), HasSubstr("unknown variable \"vm_nam\""),
                     HasSubstr("did you mean \"vm_name\"?"), HasSubstr("{{=<% %>=}}"))));
}

TEST(RenderTemplate, says_where_to_set_a_variable_of_the_environment) {
  EXPECT_THAT(RenderTemplate("{{env.HARVESTER_TEMPLATE_NOMAD_CA}}", Variables()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"env.HARVESTER_TEMPLATE_NOMAD_CA\": set it in the "
                                       "environment of the agent"),
                             Not(HasSubstr("known variables")))));
}

TEST(RenderTemplate, lists_the_known_variables_if_none_is_similar) {
  EXPECT_THAT(RenderTemplate("{{ with secret \"kv/db\" }}", Variables()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("known variables: env.HARVESTER_TEMPLATE_TOKEN"),
                             HasSubstr("vm_name"), Not(HasSubstr("s3cret")))));
}

TEST(RenderTemplate, reports_every_problem_at_once) {
  EXPECT_THAT(
      RenderTemplate("{{a}}\n{{#pool}}x{{/pool}}\n{{>part}}\n{{^b}}\n{{vm_name", Variables()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("line 1, column 1: unknown variable \"a\""),
                     HasSubstr("line 2, column 1: sections and partials"), HasSubstr("\"#pool\""),
                     HasSubstr("line 3, column 1"), HasSubstr("line 4, column 1"),
                     HasSubstr("line 5, column 1: the tag that begins here is not closed"))));
}

TEST(RenderTemplate, shortens_what_it_quotes) {
  std::string source;
  for (int i = 0; i < 50; ++i) source += "{{ nothing of ours }}\n";
  source += "{{" + std::string(5000, 'x') + "}}";
  const auto result = RenderTemplate(source, Variables());
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("and 41 more")));
  EXPECT_LT(result.status().message().size(), 5000U);
}

TEST(RenderTemplate, quotes_a_name_of_any_bytes) {
  EXPECT_THAT(RenderTemplate("{{a\\\xff\n}}", Variables()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"a\\\\\xEF\xBF\xBD\"")));
}

TEST(RenderTemplate, P3_shows_no_literal_of_another_programs_tag) {
  for (const char* tag : {"{{ 'hunter2' | hash }}", "{{ x = hunter2 }}", "{{#if \"hunter2\"}}",
                          "{{ vm_nam `hunter2` }}"}) {
    EXPECT_THAT(RenderTemplate(tag, Variables()),
                StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("hunter2"))))
        << tag;
  }
}

TEST(RenderTemplate, P2_refuses_what_cannot_fit_into_a_Secret) {
  EXPECT_THAT(RenderTemplate(std::string(1024 * 1024 + 1, 'x'), Variables()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 MiB")));
  EXPECT_THAT(RenderTemplate(std::string(1024 * 1024, 'x'), Variables()), IsOk());
  EXPECT_THAT(RenderTemplate("{{a}}{{a}}", {{"a", std::string(600 * 1024, 'x')}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 MiB")));
}

}  // namespace
}  // namespace nomad_harvester::harvester
