// SPDX-License-Identifier: Apache-2.0
// The tables of docs/configuration.md are rendered from the option table. To update them, run this
// executable with NOMAD_HARVESTER_UPDATE_DOCS=1 in its environment.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/config/option_table.h"

#include "config_test_support.h"
#include "support/source_tree.h"

namespace nomad_harvester::config {
namespace {

using ::testing::HasSubstr;

std::string Code(std::string_view text) { return "`" + std::string(text) + "`"; }

// "a,b" as "`a`, `b`".
std::string CodeList(std::string_view list) {
  std::string result;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    result += (result.empty() ? "" : ", ") + Code(list.substr(0, comma));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return result;
}

std::string TypeText(const Option& option) {
  switch (option.type) {
    case OptionType::kString:
      return "string";
    case OptionType::kSecret:
      return "secret";
    case OptionType::kBool:
      return "boolean";
    case OptionType::kDuration:
      return "duration";
    case OptionType::kSignedDuration:
      return "duration, any sign";
    case OptionType::kCount:
      return "whole number";
    case OptionType::kShare:
      return "whole number or percentage";
    case OptionType::kQuantity:
      return "quantity";
    case OptionType::kList:
      return "list";
    case OptionType::kMap:
      return "map";
    case OptionType::kEnum:
      return CodeList(option.enum_values);
    case OptionType::kPath:
      return "path";
    case OptionType::kUrl:
      return "URL";
  }
  return "";
}

std::string DefaultText(const Option& option) {
  if (option.required) return "**required**";
  if (!option.default_text.empty()) return Code(option.default_text);
  return option.default_note.empty() ? "–" : std::string(option.default_note);
}

// The column of variables appears only if the section has any; a policy has none.
std::string Row(const Option& option, bool with_environment) {
  const std::string key(option.key);
  std::string row = "| <a id=\"" + key + "\"></a>" + Code(key) + " | " + TypeText(option) + " | " +
                    DefaultText(option) + " | " + Code("\"" + ExampleOf(option) + "\"") + " | ";
  if (with_environment) {
    row += option.environment.empty() ? "–" : CodeList(option.environment);
    if (!option.environment.empty() && !option.environment_wins) row += " (if the key is absent)";
    row += " | ";
  }
  row += std::string(option.documentation);
  if (!option.needs.empty()) row += " Needs " + Code(option.needs) + ".";
  return row + " |\n";
}

// Heading and table of each group, in the order of the page.
std::vector<std::string> RenderGroups() {
  std::vector<std::string> groups;
  std::string_view group;
  for (const Option& option : OptionTable()) {
    const bool with_environment = option.section == Section::kPlugin;
    if (option.group != group) {
      group = option.group;
      groups.push_back("\n### " + std::string(group) + "\n\n");
      groups.back() += with_environment
                           ? "| Key | Type | Default | Example | Environment | Meaning |\n"
                             "|---|---|---|---|---|---|\n"
                           : "| Key | Type | Default | Example | Meaning |\n"
                             "|---|---|---|---|---|\n";
    }
    groups.back() += Row(option, with_environment);
  }
  return groups;
}

std::string Page() { return base::ReadFile(support::SourcePath("docs/configuration.md")).value(); }

// The page with the tables as they are rendered. A group's table ends with the first line that is
// no row.
std::string WithTables(std::string page, const std::vector<std::string>& groups) {
  for (const std::string& group : groups) {
    const std::string heading = group.substr(0, group.find('|'));
    const std::size_t begin = page.find(heading);
    if (begin == std::string::npos) {
      ADD_FAILURE() << "the page lacks" << heading;
      continue;
    }
    std::size_t end = begin + heading.size();
    while (page[end] == '|') end = page.find('\n', end) + 1;
    page.replace(begin, end - begin, group);
  }
  return page;
}

TEST(Reference, the_tables_of_docs_configuration_md_are_those_of_the_option_table) {
  const std::string page = Page();
  const std::string wanted = WithTables(page, RenderGroups());
  if (std::getenv("NOMAD_HARVESTER_UPDATE_DOCS") != nullptr) {
    std::ofstream(support::SourcePath("docs/configuration.md"), std::ios::binary) << wanted;
  }
  EXPECT_TRUE(Page() == wanted) << "docs/configuration.md is out of date: run config_test with "
                                   "NOMAD_HARVESTER_UPDATE_DOCS=1 in its environment, and commit "
                                   "the page";
}

TEST(Reference, every_option_has_a_row_and_no_other_table_has_keys) {
  const std::string page = Page();
  std::size_t rows = 0;
  for (const std::string& group : RenderGroups()) {
    rows += static_cast<std::size_t>(std::count(group.begin(), group.end(), '\n')) - 5;
  }
  EXPECT_EQ(rows, OptionTable().size());
  std::size_t tables = 0;
  for (std::size_t at = page.find("\n| Key | Type |"); at != std::string::npos;
       at = page.find("\n| Key | Type |", at + 1)) {
    ++tables;
  }
  EXPECT_EQ(tables, RenderGroups().size());
}

TEST(Reference, rows_state_type_default_example_and_environment) {
  const std::string text = Page();
  EXPECT_THAT(text, HasSubstr("`auth_token` | secret | – | `\"token-abcde:SECRET\"` | "
                              "`HARVESTER_TOKEN` | "));
  EXPECT_THAT(text, HasSubstr("`nomad_address` | URL | `http://127.0.0.1:4646` | "
                              "`\"http://127.0.0.1:4646\"` | `NOMAD_ADDR`, "
                              "`NOMAD_UNIX_ADDR` (if the key is absent) | "));
  EXPECT_THAT(text, HasSubstr("<a id=\"node_group_name\"></a>`node_group_name` | string | "
                              "**required** | `\"batch\"` | "));
  EXPECT_THAT(text, HasSubstr("`on_join_timeout` | `delete`, `keep` | `delete` | `\"keep\"` | "));
  EXPECT_THAT(text, HasSubstr("`node_drain_deadline` | duration, any sign | `15m` | `\"15m\"` | "));
  EXPECT_THAT(text, HasSubstr("`max_scale_out` | whole number | no limit | `\"5\"` | "));
}

// Renderers cut or break a row whose number of cells differs from its header.
TEST(Reference, every_row_of_a_table_has_the_cells_of_its_head) {
  const std::string text = Page();
  std::size_t cells = 0;
  std::size_t rows = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty() || line.front() != '|') {
      cells = 0;
      continue;
    }
    const auto here = static_cast<std::size_t>(std::count(line.begin(), line.end(), '|'));
    if (cells == 0) cells = here;
    EXPECT_EQ(here, cells) << line;
    ++rows;
  }
  EXPECT_GT(rows, 100U);
}

TEST(Reference, contains_the_sections_that_are_not_tables) {
  const std::string text = Page();
  for (const char* const subject :
       {"## Templates", "## On the objects", "{{vm_name}}", "{{vm_uuid}}", "{{short_id}}",
        "HARVESTER_TEMPLATE_", "{{=<% %>=}}", "`scale-in`", "`rolled-back`", "`delete-first`",
        "nomad-harvester-autoscaler/", "SSL_CERT_FILE", "NOMAD_ALLOC_ID"}) {
    EXPECT_THAT(text, HasSubstr(subject));
  }
}

}  // namespace
}  // namespace nomad_harvester::config
