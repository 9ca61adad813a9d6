// SPDX-License-Identifier: Apache-2.0
// The table of rows in ARCHITECTURE.md is rendered from kRules. To update it, run this executable
// with NOMAD_HARVESTER_UPDATE_DOCS=1 in its environment.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/rules.h"

#include "support/source_tree.h"

namespace nomad_harvester::scaling {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kBegin = "<!-- rules: begin -->\n";
constexpr std::string_view kEnd = "<!-- rules: end -->\n";

std::string RenderRules() {
  std::string text = "| VM | Nomad node | Step | Row |\n|---|---|---|---|\n";
  for (const Rule& rule : kRules) {
    for (const std::string_view cell : {rule.vm, rule.node, rule.step}) {
      text.append("| ").append(cell).append(" ");
    }
    text.append("| `").append(rule.name).append("` |\n");
  }
  return text;
}

std::string ReadPage(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(RulesTable, the_table_of_ARCHITECTURE_md_is_exactly_kRules) {
  const std::string path = support::SourcePath("ARCHITECTURE.md");
  std::string page = ReadPage(path);
  const std::size_t mark = page.find(kBegin);
  ASSERT_NE(mark, std::string::npos) << "ARCHITECTURE.md lacks the line " << kBegin;
  const std::size_t begin = mark + kBegin.size();
  const std::size_t end = page.find(kEnd, begin);
  ASSERT_NE(end, std::string::npos) << "ARCHITECTURE.md lacks the line " << kEnd;
  const std::string expected = RenderRules();
  const std::string found = page.substr(begin, end - begin);
  if (std::getenv("NOMAD_HARVESTER_UPDATE_DOCS") != nullptr) {
    std::ofstream(path, std::ios::binary) << page.replace(begin, end - begin, expected);
  }
  EXPECT_TRUE(found == expected)
      << "ARCHITECTURE.md is out of date: run scaling_test with NOMAD_HARVESTER_UPDATE_DOCS=1 in "
         "its environment, and commit the page. The table must be:\n"
      << expected;
}

// A table in Markdown splits a row at each bar, and ends at an empty line.
TEST(RulesTable, every_cell_has_a_text_that_fits_a_table) {
  std::set<std::string_view> names;
  for (const Rule& rule : kRules) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " names two rows";
    for (const std::string_view cell : {rule.name, rule.vm, rule.node, rule.step}) {
      EXPECT_FALSE(cell.empty()) << rule.name;
      EXPECT_THAT(std::string(cell), Not(HasSubstr("|"))) << rule.name;
      EXPECT_THAT(std::string(cell), Not(HasSubstr("\n"))) << rule.name;
    }
  }
}

}  // namespace
}  // namespace nomad_harvester::scaling
