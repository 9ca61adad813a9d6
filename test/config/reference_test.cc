// SPDX-License-Identifier: Apache-2.0
// docs/configuration.md is the output of RenderReference(). To update it, run this executable with
// NOMAD_HARVESTER_UPDATE_DOCS=1 in its environment.
#include <cstdlib>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_test_support.h"
#include "options.h"
#include "support/source_tree.h"

namespace nomad_harvester::config {
namespace {

using ::testing::HasSubstr;

TEST(Reference, docs_configuration_md_is_exactly_this_text) {
  const std::string text = RenderReference();
  const std::string page = support::SourcePath("docs/configuration.md");
  if (std::getenv("NOMAD_HARVESTER_UPDATE_DOCS") != nullptr) {
    std::ofstream(page, std::ios::binary) << text;
  }
  EXPECT_TRUE(ReadWholeFile(page) == text)
      << "docs/configuration.md is out of date: run config_test with "
         "NOMAD_HARVESTER_UPDATE_DOCS=1 in its environment, and commit the page";
}

TEST(Reference, every_option_has_a_row_with_its_key) {
  const std::string text = RenderReference();
  for (const Option& option : OptionTable()) {
    EXPECT_THAT(text, HasSubstr("\n| `" + std::string(option.key) + "` | "));
    EXPECT_THAT(text, HasSubstr(std::string(option.documentation)));
  }
}

TEST(Reference, rows_state_type_default_and_environment) {
  const std::string text = RenderReference();
  EXPECT_THAT(text, HasSubstr("| `auth_token` | secret | – | `HARVESTER_TOKEN` | "));
  EXPECT_THAT(text, HasSubstr("| `nomad_address` | URL | `http://127.0.0.1:4646` | `NOMAD_ADDR`, "
                              "`NOMAD_UNIX_ADDR` (if the key is absent) | "));
  EXPECT_THAT(text, HasSubstr("| `node_group_name` | string | **required** | "));
  EXPECT_THAT(text, HasSubstr("| `wait_for` | `created`, `running`, `nomad` | `nomad` | "));
  EXPECT_THAT(text, HasSubstr("| `node_drain_deadline` | duration, any sign | `15m` | "));
  EXPECT_THAT(text, HasSubstr("| `max_scale_out` | whole number | no limit | "));
}

// Renderers cut or break a row whose number of cells differs from its header.
TEST(Reference, every_row_of_a_table_has_the_cells_of_its_head) {
  const std::string text = RenderReference();
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
  const std::string text = RenderReference();
  for (const char* const subject :
       {"## Templates", "## On the objects", "{{vm_name}}", "{{vm_uuid}}", "{{short_id}}",
        "HARVESTER_TEMPLATE_", "{{=<% %>=}}", "`scale-in`", "`rolled-back`", "`delete-first`",
        "nomad-harvester-autoscaler/", "SSL_CERT_FILE", "NOMAD_ALLOC_ID"}) {
    EXPECT_THAT(text, HasSubstr(subject));
  }
}

}  // namespace
}  // namespace nomad_harvester::config
