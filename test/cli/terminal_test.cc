// SPDX-License-Identifier: Apache-2.0
#include "terminal.h"

#include <gtest/gtest.h>

namespace nomad_harvester::cli {
namespace {

TEST(Terminal, what_is_none_has_no_limit_and_no_colour) {
  const Terminal pipe = DescribeTerminal(false, 60, {{"COLUMNS", "40"}, {"TERM", "xterm"}});
  EXPECT_EQ(pipe.width, 0U);
  EXPECT_FALSE(pipe.colour);
  EXPECT_FALSE(pipe.redraws);
}

TEST(Terminal, its_width_is_the_kernels_then_that_of_COLUMNS_then_80) {
  EXPECT_EQ(DescribeTerminal(true, 60, {{"COLUMNS", "40"}}).width, 60U);
  EXPECT_EQ(DescribeTerminal(true, 0, {{"COLUMNS", "40"}}).width, 40U);
  for (const char* columns : {"", "0", "-3", "wide"}) {
    EXPECT_EQ(DescribeTerminal(true, 0, {{"COLUMNS", columns}}).width, 80U) << columns;
  }
  EXPECT_EQ(DescribeTerminal(true, 0, {}).width, 80U);
}

TEST(Terminal, NO_COLOR_ends_colour_unless_it_is_empty_and_a_dumb_terminal_redraws_nothing) {
  EXPECT_TRUE(DescribeTerminal(true, 80, {{"TERM", "xterm"}}).colour);
  EXPECT_TRUE(DescribeTerminal(true, 80, {{"TERM", "xterm"}, {"NO_COLOR", ""}}).colour);
  const Terminal plain = DescribeTerminal(true, 80, {{"TERM", "xterm"}, {"NO_COLOR", "1"}});
  EXPECT_FALSE(plain.colour);
  EXPECT_TRUE(plain.redraws);
  for (const config::StringMap& environment : {config::StringMap{{"TERM", "dumb"}}, {}}) {
    const Terminal dumb = DescribeTerminal(true, 80, environment);
    EXPECT_FALSE(dumb.colour);
    EXPECT_FALSE(dumb.redraws);
  }
}

TEST(DisplayWidth, counts_characters_and_no_combining_accents) {
  EXPECT_EQ(DisplayWidth(""), 0U);
  EXPECT_EQ(DisplayWidth("2 → 4"), 5U);
  EXPECT_EQ(DisplayWidth("e\u0301\u036f\u0370"), 2U);
}

TEST(Fold, breaks_at_spaces_and_indents_what_follows) {
  EXPECT_EQ(Fold("one two three four", 9, 2), "one two\n  three\n  four");
  EXPECT_EQ(Fold("one two", 7, 2), "one two");
  EXPECT_EQ(Fold("ä→ ö→ ü→", 5, 0), "ä→ ö→\nü→");
}

TEST(Fold, without_a_limit_changes_nothing) {
  EXPECT_EQ(Fold("one  two\n three ", 0, 2), "one  two\n three ");
}

TEST(Fold, keeps_long_words_lines_and_the_spaces_inside_a_line) {
  EXPECT_EQ(Fold("a https://10.0.0.1:6443/very/long b", 10, 2),
            "a\n  https://10.0.0.1:6443/very/long\n  b");
  EXPECT_EQ(Fold("  --set     one two\nnext\n", 15, 12), "  --set     one\n       two\nnext\n");
  EXPECT_EQ(Fold("     endless", 4, 9), "     endless");
}

TEST(Fold, every_line_fits_unless_it_is_one_word) {
  const std::string text =
      "nomad-harvester status: list Nomad nodes: timed out after 10s waiting for "
      "http://127.0.0.1:4646";
  for (std::size_t width = 20; width < 100; ++width) {
    const std::string folded = Fold(text, width, 2);
    for (std::size_t begin = 0; begin < folded.size();) {
      const std::size_t end = std::min(folded.find('\n', begin), folded.size());
      const std::string line = folded.substr(begin, end - begin);
      EXPECT_TRUE(line.size() <= width || line.find(' ', 2) == std::string::npos) << line;
      begin = end + 1;
    }
  }
}

TEST(Paint, colours_whole_words_at_the_beginning_of_lines_on_a_terminal_with_colours) {
  const std::string text = "FAIL     one\nFAILURE\n  FAIL\nwarn";
  const auto paint = [&](bool colour) {
    return Paint(text, {{"FAIL", Colour::kRed}, {"warn", Colour::kYellow}}, {.colour = colour});
  };
  EXPECT_EQ(paint(true), "\x1b[31mFAIL\x1b[0m     one\nFAILURE\n  FAIL\n\x1b[33mwarn\x1b[0m");
  EXPECT_EQ(paint(false), text);
  EXPECT_EQ(Paint("", {{"FAIL", Colour::kRed}}, {.colour = true}), "");
}

}  // namespace
}  // namespace nomad_harvester::cli
