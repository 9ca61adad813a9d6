// SPDX-License-Identifier: Apache-2.0
// The tables of docs/configuration.md say what the option table says.
#include <algorithm>
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

using ::testing::ElementsAreArray;
using ::testing::EndsWith;
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

// True if the cell is the default. A default that is not constant is described in words.
bool IsDefault(const std::string& cell, const Option& option) {
  if (option.required) return cell == "**required**";
  if (!option.default_text.empty()) return cell == Code(option.default_text);
  return !cell.empty() && cell != "**required**";
}

// Of a key of the plugin's block; a policy's have none.
std::string EnvironmentText(const Option& option) {
  if (option.environment.empty()) return "–";
  return CodeList(option.environment) + (option.environment_wins ? "" : " (if the key is absent)");
}

std::string Page() { return base::ReadFile(support::SourcePath("docs/configuration.md")).value(); }

TEST(Reference, has_a_row_for_each_option_in_the_order_of_the_table) {
  std::vector<std::string> keys;
  for (const Option& option : OptionTable()) keys.push_back(KeyCell(option.key));
  std::vector<std::string> rows;
  for (const std::vector<std::string>& row : ReferenceRows()) rows.push_back(row.front());
  EXPECT_THAT(rows, ElementsAreArray(keys));
}

TEST(Reference, each_row_says_what_the_option_table_does) {
  for (const Option& option : OptionTable()) {
    const std::vector<std::string> row = ReferenceRow(option.key);
    const bool of_plugin = option.section == Section::kPlugin;
    ASSERT_EQ(row.size(), of_plugin ? 6U : 5U) << option.key;
    EXPECT_EQ(row[1], TypeText(option)) << option.key;
    EXPECT_TRUE(IsDefault(row[2], option)) << option.key << ": " << row[2];
    if (of_plugin) {
      EXPECT_EQ(row[4], EnvironmentText(option)) << option.key;
    }
    EXPECT_THAT(row.back(), EndsWith(".")) << option.key;
    const std::string needs = " Needs " + Code(option.needs) + ".";
    EXPECT_EQ(row.back().ends_with(needs), !option.needs.empty()) << option.key;
    EXPECT_EQ(row.back().find(" Needs `") != std::string::npos, !option.needs.empty())
        << option.key;
  }
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
