// SPDX-License-Identifier: Apache-2.0
// P3: the host must be able to parse every line. Its parser asserts types without a check and
// panics otherwise (hashicorp/go-plugin:log_entry.go parseJSON), so these tests use nlohmann's
// strict parser.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/log/sinks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/make_record.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::log {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::size_t kHostBuffer = 64 * 1024;

// Parses a line and checks all assumptions of the host.
json Checked(const Record& record) {
  const std::string line = FormatHclog(record, "harvester");
  EXPECT_LT(line.size() + 1, kHostBuffer);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const json value = json::parse(line, nullptr, false);
  EXPECT_TRUE(value.is_object()) << line.substr(0, 200);
  if (!value.is_object()) return json::object();
  for (const char* key : {"@level", "@message", "@timestamp", "@module"}) {
    EXPECT_TRUE(value.contains(key) && value[key].is_string()) << key;
  }
  for (const auto& [key, member] : value.items()) {
    EXPECT_TRUE(!member.is_structured() && !member.is_null()) << key;
  }
  return value;
}

TEST(FormatHclog, P3_is_one_object_in_hclogs_form) {
  EXPECT_EQ(
      FormatHclog(MakeRecord("Deleting VM", {{"vm", "web-1"}, {"attempt", 2}, {"late", true}}),
                  "harvester"),
      R"({"@level":"info","@message":"Deleting VM","@timestamp":"2026-11-21T02:03:04.000000Z",)"
      R"("@module":"harvester","vm":"web-1","attempt":2,"late":true})");
}

TEST(FormatHclog, P3_the_timestamp_has_exactly_six_digits) {
  Record record = MakeRecord("m");
  record.time += std::chrono::nanoseconds(1999);
  EXPECT_EQ(Checked(record)["@timestamp"], "2026-11-21T02:03:04.000001Z");
}

TEST(FormatHclog, P3_levels_have_hclogs_names) {
  const std::pair<Level, const char*> table[] = {{Level::kTrace, "trace"},
                                                 {Level::kDebug, "debug"},
                                                 {Level::kInfo, "info"},
                                                 {Level::kWarn, "warn"},
                                                 {Level::kError, "error"}};
  for (const auto& [level, name] : table) {
    Record record = MakeRecord("m");
    record.level = level;
    EXPECT_EQ(Checked(record)["@level"], name);
  }
}

TEST(FormatHclog, P3_a_field_cannot_replace_what_the_host_reads) {
  const json value = Checked(MakeRecord("m", {{"@message", 5},
                                              {"@level", false},
                                              {"@timestamp", true},
                                              {"@module", "x"},
                                              {"@", "y"},
                                              {"", "empty"}}));
  EXPECT_EQ(value["@message"], "m");
  EXPECT_EQ(value["_@message"], 5);
  EXPECT_EQ(value["_@level"], false);
  EXPECT_EQ(value["_@timestamp"], true);
  EXPECT_EQ(value["_@module"], "x");
  EXPECT_EQ(value["_@"], "y");
  EXPECT_EQ(value[""], "empty");
}

TEST(FormatHclog, P3_no_key_appears_twice) {
  const std::string line = FormatHclog(MakeRecord("m", {{"_@message", 1}, {"@message", 2}}), "h");
  const std::size_t first = line.find("_@message");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(line.find("_@message", first + 1), std::string::npos);
}

TEST(FormatHclog, P3_invalid_utf8_becomes_the_replacement_character) {
  const json value =
      Checked(MakeRecord("a\xff"
                         "b",
                         {{"k\xc3", "v\xed\xa0\x80"}, {"u", "\u00e4"}}));
  EXPECT_EQ(value["@message"], "a\ufffdb");
  EXPECT_EQ(value["k\ufffd"], "v\ufffd\ufffd\ufffd");
  EXPECT_EQ(value["u"], "\u00e4");
}

TEST(FormatHclog, P3_newlines_and_controls_are_escaped) {
  const std::string text = std::string("line\nline\r\t\x1b\"\\\0", 16);
  const json value = Checked(MakeRecord(text, {{"a\nb", text}}));
  EXPECT_EQ(value["@message"], text);
  EXPECT_EQ(value["a\nb"], text);
}

// JSON would leave them as they are, and a terminal acts on them as on ESC.
TEST(FormatHclog, P3_C1_controls_are_visible_text) {
  const json value = Checked(MakeRecord("a\u009b31mb", {{"k\u0080", "\u0085\u009f\u00a0"}}));
  EXPECT_EQ(value["@message"], "a\\x9b31mb");
  EXPECT_EQ(value["k\\x80"], "\\x85\\x9f\u00a0");
}

TEST(FormatHclog, P3_the_largest_numbers_stay_numbers) {
  const json value = Checked(MakeRecord("m", {{"max", std::numeric_limits<std::int64_t>::max()},
                                              {"min", std::numeric_limits<std::int64_t>::min()}}));
  EXPECT_EQ(value["max"], std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(value["min"], std::numeric_limits<std::int64_t>::min());
}

TEST(FormatHclog, P3_a_huge_message_is_shortened_and_marked) {
  const json value = Checked(MakeRecord("begin " + std::string(1'000'000, 'x'), {{"vm", "web-1"}}));
  const std::string message = value["@message"];
  EXPECT_THAT(message, AllOf(StartsWith("begin xxx"), EndsWith("... (1000006 bytes)")));
  EXPECT_GT(message.size(), 50'000u);  // not shortened more than necessary
  EXPECT_EQ(value["vm"], "web-1");
}

TEST(FormatHclog, P3_the_longest_strings_are_shortened_first) {
  const std::string middle(1000, 'm');
  const json value = Checked(MakeRecord(
      "m", {{"a", std::string(100'000, 'a')}, {"b", middle}, {"c", std::string(100'000, 'c')}}));
  EXPECT_EQ(value["@message"], "m");
  EXPECT_EQ(value["b"], middle);
  const std::string a = value["a"];
  const std::string c = value["c"];
  EXPECT_EQ(a.size(), c.size());
  EXPECT_GT(a.size(), 25'000u);
}

TEST(FormatHclog, P3_text_that_grows_when_escaped_still_fits) {
  for (const char* unit : {"\x01", "\"", "\xff", "\u00e4", "\n", "\U0001f600"}) {
    std::string text;
    while (text.size() < 70'000) text += unit;
    const json value = Checked(MakeRecord(text, {{"copy", text}, {unit, text}}));
    EXPECT_THAT(std::string(value["@message"]), HasSubstr(" bytes)"));
  }
}

TEST(FormatHclog, P3_shortening_cuts_no_character_in_two) {
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::string text(shift, 'x');
    while (text.size() < 100'000) text += "\U0001f600";
    EXPECT_THAT(std::string(Checked(MakeRecord(text))["@message"]), Not(HasSubstr("\ufffd")));
  }
}

TEST(FormatHclog, P3_a_short_line_is_never_changed) {
  const std::string text(50'000, 'x');
  EXPECT_EQ(Checked(MakeRecord(text))["@message"], text);
}

TEST(FormatHclog, P3_a_line_about_as_long_as_the_hosts_buffer_fits_it_with_its_end) {
  const std::string half(kHostBuffer / 2, 'x');
  for (std::size_t less = 0; less < 300; ++less) {
    const Record record = MakeRecord(half, {{"more", half.substr(less)}});
    ASSERT_LT(FormatHclog(record, "harvester").size() + 1, kHostBuffer) << less;
  }
}

TEST(FormatHclog, P3_huge_keys_and_modules_are_shortened) {
  const Record record = MakeRecord("m", {{std::string(200'000, 'k'), 1}});
  Checked(record);
  const std::string line = FormatHclog(record, std::string(200'000, 'h'));
  EXPECT_LT(line.size() + 1, kHostBuffer);
  EXPECT_TRUE(json::accept(line));
}

TEST(FormatHclog, P3_any_bytes_in_any_place_give_a_line_that_the_host_can_read) {
  std::mt19937 random(11);
  const auto bytes = [&random](std::size_t limit) {
    std::string text;
    for (auto length = random() % limit; length > 0; --length) {
      text += static_cast<char>(random() & 0xff);
    }
    return text;
  };
  for (int i = 0; i < 300; ++i) {
    std::vector<Field> fields;
    const std::size_t longest = i % 30 == 0 ? 40'000 : 50;
    for (auto count = random() % 6; count > 0; --count)
      fields.emplace_back(bytes(10), bytes(longest));
    Checked(MakeRecord(bytes(longest), std::move(fields)));
  }
}

}  // namespace
}  // namespace nomad_harvester::log
