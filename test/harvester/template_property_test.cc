// SPDX-License-Identifier: Apache-2.0
// Our checks and the library's renderer must agree on every template: what we let pass is rendered
// as the library alone would, and what it refuses is refused by us, with a position.
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kainjow/mustache.hpp>

#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/runtime/random.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using support::IsOkAndHolds;

const TemplateVariables& KnownVariables() {
  static const TemplateVariables* variables =
      new TemplateVariables{{"a", "1"}, {"b.c", "{{a}}\n"}, {"d", ""}};
  return *variables;
}

// Looks names up unchanged and counts those that it does not know. The library's own context would
// split "b.c" at its dot.
class FlatContext final : public kainjow::mustache::basic_context<std::string> {
 public:
  FlatContext() {
    for (const auto& [name, value] : KnownVariables()) values_.emplace(name, value);
  }
  void push(const kainjow::mustache::data*) override {}
  void pop() override {}
  const kainjow::mustache::data* get(const std::string& name) const override {
    const auto found = values_.find(name);
    if (found == values_.end()) ++unknown;
    return found == values_.end() ? nullptr : &found->second;
  }
  const kainjow::mustache::data* get_partial(const std::string&) const override { return nullptr; }

  mutable int unknown = 0;

 private:
  std::map<std::string, kainjow::mustache::data> values_;
};

// What the library alone renders; nullopt if it refuses the template or a name is unknown.
std::optional<std::string> Expected(const std::string& source) {
  try {
    kainjow::mustache::mustache renderer(source);
    if (!renderer.is_valid()) return std::nullopt;
    renderer.set_custom_escape([](const std::string& text) { return text; });
    FlatContext context;
    std::string rendered = renderer.render(context);
    if (!renderer.is_valid() || context.unknown > 0) return std::nullopt;
    return rendered;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string AnyTemplate(runtime::Random& random) {
  static const std::vector<std::string> parts = {"{{a}}",       "{{ b.c }}",
                                                 "{{{d}}}",     "{{& a }}",
                                                 "{{! x\ny }}", "{{=<% %>=}}",
                                                 "<%a%>",       "<%={{ }}=%>",
                                                 "{{=| |=}}",   "|a|",
                                                 "|={{ }}=|",   "{{",
                                                 "}}",          "{",
                                                 "}",           "<%",
                                                 "%>",          "=",
                                                 "|",           "a",
                                                 "d",           " ",
                                                 "\t",          "ä",
                                                 "\x80",        "{{= <% %> =}}",
                                                 "<%! c %>",    "{{ a\n}}"};
  // No tag is alone on its line: the library keeps such a line, see template_tags_test.
  std::string source = "begin";
  for (std::uint64_t i = random.Next() % 14; i > 0; --i)
    source += parts[random.Next() % parts.size()];
  return source + "end";
}

TEST(TemplateProperty, the_library_alone_renders_the_same_or_both_refuse) {
  const auto random = runtime::MakeSeededRandom(7);
  int rendered = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string source = AnyTemplate(*random);
    const std::optional<std::string> expected = Expected(source);
    const auto result = RenderTemplate(source, KnownVariables());
    // The library takes {{{=…}}} for a change of delimiters; we refuse it.
    if (testing::Matches(testing::HasSubstr("not supported: \"="))(result.status().ToString())) {
      continue;
    }
    ASSERT_EQ(result.ok(), expected.has_value())
        << testing::PrintToString(source) << result.status();
    if (!expected.has_value()) {
      ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ++rendered;
    ASSERT_THAT(result, IsOkAndHolds(*expected)) << testing::PrintToString(source);
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
