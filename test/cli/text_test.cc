// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::cli {
namespace {

TEST(Table, aligns_by_characters_and_pads_no_last_column) {
  EXPECT_EQ(Table({{"NAME", "FROM", "X"}, {"web", "2 → 4", "y"}, {"a-longer-name", "", "z"}}),
            "NAME           FROM   X\n"
            "web            2 → 4  y\n"
            "a-longer-name  -      z\n");
}

TEST(Table, that_is_too_wide_is_a_block_for_each_row) {
  const std::vector<std::vector<std::string>> rows = {
      {"VM", "HOST", "WHY"}, {"web-a", "", "it was → 2 first"}, {"web-b", "h1", "next"}};
  EXPECT_EQ(Table(rows, 29), Table(rows)) << "it fits";
  EXPECT_EQ(Table(rows, 28),
            "VM:    web-a\n"
            "WHY:   it was → 2 first\n"
            "\n"
            "VM:    web-b\n"
            "HOST:  h1\n"
            "WHY:   next\n");
}

TEST(FirstFew, are_five_and_the_number_of_the_others) {
  EXPECT_EQ(FirstFew({}), "");
  EXPECT_EQ(FirstFew({"a", "b", "c", "d", "e"}), "a, b, c, d, e");
  EXPECT_EQ(FirstFew({"a", "b", "c", "d", "e", "f", "g"}), "a, b, c, d, e and 2 more");
}

TEST(PrintableJson, P3_holds_no_secret_that_JSON_would_escape) {
  const base::Secret password("p\"ssw\u00f6rd");
  EXPECT_EQ(PrintableJson({{"text", {"it is p\"ssw\u00f6rd", 7}}, {"ok", true}}),
            "{\n  \"text\": [\n    \"it is REDACTED\",\n    7\n  ],\n  \"ok\": true\n}\n");
}

TEST(PrintableJson, keeps_its_names_whatever_is_secret) {
  const base::Secret variable("passed_over");
  EXPECT_EQ(PrintableJson({{"passed_over", "passed_over"}}),
            "{\n  \"passed_over\": \"REDACTED\"\n}\n");
}

TEST(Printable, keeps_text_on_one_line_and_control_sequences_from_the_terminal) {
  EXPECT_EQ(Printable("2 → 4"), "2 → 4");
  EXPECT_EQ(Printable("a\nb"), "a\\nb");
  EXPECT_EQ(Printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(Printable("broken \xff utf-8").find('\xff'), std::string::npos);
}

TEST(Printable, C1_controls_never_reach_a_terminal) {
  EXPECT_EQ(Printable("a\u009b31mred\u0080\u009f"), "a\\x9b31mred\\x80\\x9f");
  EXPECT_EQ(Printable("a\x9b"
                      "31m")
                .find('\x9b'),
            std::string::npos);
  EXPECT_EQ(Printable("\u00a0\u00e4"), "\u00a0\u00e4");
}

TEST(Printable, P3_shows_no_secret_in_force) {
  const base::Secret token("sesame-street");
  EXPECT_EQ(Printable("unknown token sesame-street"), "unknown token REDACTED");
}

}  // namespace
}  // namespace nomad_harvester::cli
