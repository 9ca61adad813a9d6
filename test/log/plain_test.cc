// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>
#include <utility>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/log/sinks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/make_record.h"

namespace nomad_harvester::log {
namespace {

using testing::EndsWith;
using testing::StartsWith;

TEST(FormatPlain, Is_hclogs_text_format) {
  Record record = MakeRecord("message", {{"key", "value"}, {"text", "two words"}});
  record.time += std::chrono::microseconds(7999);
  EXPECT_EQ(FormatPlain(record),
            "2026-11-21T02:03:04.007Z [INFO]  message: key=value text=\"two words\"");
  record.fields.clear();
  EXPECT_EQ(FormatPlain(record), "2026-11-21T02:03:04.007Z [INFO]  message");
}

TEST(FormatPlain, Levels_are_aligned) {
  const std::pair<Level, const char*> table[] = {{Level::kTrace, "[TRACE] m"},
                                                 {Level::kDebug, "[DEBUG] m"},
                                                 {Level::kInfo, "[INFO]  m"},
                                                 {Level::kWarn, "[WARN]  m"},
                                                 {Level::kError, "[ERROR] m"}};
  for (const auto& [level, text] : table) {
    Record record = MakeRecord("m");
    record.level = level;
    EXPECT_THAT(FormatPlain(record), EndsWith(text));
  }
}

TEST(FormatPlain, Values_are_quoted_where_they_would_be_ambiguous) {
  EXPECT_THAT(
      FormatPlain(MakeRecord(
          "m",
          {{"a", ""}, {"b", "x=y"}, {"c", "say \"hi\""}, {"d", "back\\slash"}, {"e", "a,b;c"}})),
      EndsWith(R"(m: a="" b="x=y" c="say \"hi\"" d="back\\slash" e=a,b;c)"));
}

TEST(FormatPlain, Numbers_and_bools_are_plain) {
  EXPECT_THAT(FormatPlain(MakeRecord("m", {{"b", 3}, {"f", -2}, {"g", false}})),
              EndsWith("m: b=3 f=-2 g=false"));
}

TEST(FormatPlain, Stays_on_one_line_and_sends_nothing_to_the_terminal) {
  const std::string line =
      FormatPlain(MakeRecord("a\nb\x1b[31m\r", {{"k\n", "v\nw\x7f"}, {"u", "\u00e4\xff"}}));
  EXPECT_THAT(line, EndsWith("a\\nb\\x1b[31m\\x0d: k\\n=\"v\\nw\\x7f\" u=\u00e4\ufffd"));
  for (const char c : line) {
    EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << line;
  }
}

// U+0080 to U+009F act on a terminal as ESC and a letter do, in UTF-8 and as single bytes.
TEST(FormatPlain, C1_controls_never_reach_a_terminal) {
  const std::string line =
      FormatPlain(MakeRecord("a\u009b31mb\x9b"
                             "31m",
                             {{"k\u0080", "\u0085"}, {"v", "\u00a0\u00e4"}}));
  EXPECT_THAT(line, EndsWith("a\\x9b31mb\ufffd31m: k\\x80=\"\\x85\" v=\u00a0\u00e4"));
}

TEST(FormatPlain, Times_before_1970_keep_three_digits) {
  Record record = MakeRecord("m");
  record.time = base::WallTime(std::chrono::milliseconds(-1));
  EXPECT_THAT(FormatPlain(record), StartsWith("1969-12-31T23:59:59.999Z "));
}

}  // namespace
}  // namespace nomad_harvester::log
