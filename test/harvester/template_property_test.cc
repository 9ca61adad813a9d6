// SPDX-License-Identifier: Apache-2.0
// Our scanner and the template library must parse every template in the same way.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/runtime/random.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"
#include "template_scanner.h"

namespace nomad_harvester::harvester {
namespace {

using support::IsOkAndHolds;

const TemplateVariables& KnownVariables() {
  static const TemplateVariables* variables =
      new TemplateVariables{{"a", "1"}, {"b.c", "{{a}}\n"}, {"d", ""}};
  return *variables;
}

bool IsAccepted(const ScannedTemplate& scanned) {
  return scanned.problems.empty() &&
         std::all_of(scanned.tags.begin(), scanned.tags.end(), [](const TemplateTag& tag) {
           if (tag.kind == TemplateTag::Kind::kVariable) return KnownVariables().contains(tag.text);
           return tag.kind != TemplateTag::Kind::kUnsupported;
         });
}

// The expected result, according to the scanner's positions.
std::string Expected(const std::string& source) {
  const std::string prepared = WithoutStandaloneLines(source, ScanTemplate(source));
  std::string result;
  std::size_t copied = 0;
  for (const TemplateTag& tag : ScanTemplate(prepared).tags) {
    result += prepared.substr(copied, tag.begin - copied);
    if (tag.kind == TemplateTag::Kind::kVariable) result += KnownVariables().at(tag.text);
    copied = tag.end;
  }
  return result + prepared.substr(copied);
}

std::string AnyTemplate(runtime::Random& random) {
  static const std::vector<std::string> parts = {"{{a}}",
                                                 "{{ b.c }}",
                                                 "{{{d}}}",
                                                 "{{& a }}",
                                                 "{{! x\ny }}",
                                                 "{{=<% %>=}}",
                                                 "<%a%>",
                                                 "<%={{ }}=%>",
                                                 "{{=| |=}}",
                                                 "|a|",
                                                 "|={{ }}=|",
                                                 "{{",
                                                 "}}",
                                                 "{",
                                                 "}",
                                                 "<%",
                                                 "%>",
                                                 "=",
                                                 "|",
                                                 "a",
                                                 "d",
                                                 " ",
                                                 "\t",
                                                 "\n",
                                                 "\r\n",
                                                 "\r",
                                                 "ä",
                                                 "\x80",
                                                 "{{= <% %> =}}",
                                                 "<%! c %>",
                                                 "{{ a\n}}"};
  std::string source;
  for (std::uint64_t i = random.Next() % 14; i > 0; --i)
    source += parts[random.Next() % parts.size()];
  return source;
}

TEST(TemplateProperty, the_renderer_does_what_the_scanner_says_or_both_refuse) {
  const auto random = runtime::MakeSeededRandom(7);
  int rendered = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string source = AnyTemplate(*random);
    const bool fine = IsAccepted(ScanTemplate(source));
    const auto result = RenderTemplate(source, KnownVariables());
    ASSERT_EQ(result.ok(), fine) << testing::PrintToString(source) << result.status();
    if (!fine) {
      ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ++rendered;
    ASSERT_THAT(result, IsOkAndHolds(Expected(source))) << testing::PrintToString(source);
  }
  EXPECT_GT(rendered, 2500);
}

TEST(TemplateProperty, any_bytes_are_rendered_or_refused) {
  const auto random = runtime::MakeSeededRandom(8);
  for (int i = 0; i < 5000; ++i) {
    std::string source;
    for (std::uint64_t length = random->Next() % 60; length > 0; --length) {
      const std::uint64_t draw = random->Next();
      source.push_back(draw % 3 == 0 ? static_cast<char>(draw >> 8U)
                                     : "{}{}=<%>|!#a \n"[(draw >> 8U) % 14]);
    }
    const auto result = RenderTemplate(source, KnownVariables());
    if (!result.ok()) {
      ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    }
  }
}

}  // namespace
}  // namespace nomad_harvester::harvester
