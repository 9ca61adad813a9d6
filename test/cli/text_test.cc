// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <gtest/gtest.h>

namespace nomad_harvester::cli {
namespace {

TEST(Table, aligns_by_characters_and_pads_no_last_column) {
  EXPECT_EQ(Table({{"NAME", "FROM", "X"}, {"web", "2 → 4", "y"}, {"a-longer-name", "", "z"}}),
            "NAME           FROM   X\n"
            "web            2 → 4  y\n"
            "a-longer-name  -      z\n");
}

TEST(Printable, keeps_text_on_one_line_and_control_sequences_from_the_terminal) {
  EXPECT_EQ(Printable("2 → 4"), "2 → 4");
  EXPECT_EQ(Printable("a\nb"), "a\\nb");
  EXPECT_EQ(Printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(Printable("broken \xff utf-8").find('\xff'), std::string::npos);
}

}  // namespace
}  // namespace nomad_harvester::cli
