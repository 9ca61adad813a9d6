// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/log/logger.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/log/sinks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/recording_sink.h"

namespace nomad_harvester::log {
namespace {

using namespace std::chrono_literals;
using support::RecordingSink;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::vector<std::string> Messages(const RecordingSink& sink) {
  std::vector<std::string> messages;
  for (const Record& record : sink.records()) messages.push_back(record.message);
  return messages;
}

// "key=value" of each field, as text.
std::vector<std::string> Fields(const RecordingSink& sink) {
  Record record = sink.records().back();
  record.message.clear();
  const std::string line = FormatPlain(record);
  std::vector<std::string> fields;
  std::size_t start = line.find(": ");
  while (start != std::string::npos) {
    const std::size_t begin = line.find_first_not_of(": ", start);
    start = line.find(' ', begin);
    fields.push_back(line.substr(begin, start - begin));
  }
  return fields;
}

class LoggerTest : public testing::Test {
 protected:
  const std::shared_ptr<RecordingSink> sink_ = std::make_shared<RecordingSink>();
};
using FieldTest = LoggerTest;

TEST(Level, Names_and_their_parsing) {
  for (const auto& [text, want] :
       std::vector<std::pair<std::string, Level>>{{"trace", Level::kTrace},
                                                  {"DEBUG", Level::kDebug},
                                                  {"Info", Level::kInfo},
                                                  {"warn", Level::kWarn},
                                                  {"ERROR", Level::kError}}) {
    EXPECT_EQ(ParseLevel(text), want) << text;
  }
  for (const char* text : {"", "warning", "inf", "info ", "off", "2"}) {
    EXPECT_EQ(ParseLevel(text), std::nullopt) << text;
  }
  EXPECT_EQ(LevelName(Level::kTrace), "trace");
  EXPECT_EQ(LevelName(Level::kError), "error");
}

TEST_F(LoggerTest, The_threshold_decides) {
  const Logger logger(sink_, Level::kInfo);
  logger.Log(Level::kTrace, "t");
  logger.Debug("d");
  logger.Info("i");
  logger.Warn("w");
  logger.Error("e");
  EXPECT_THAT(Messages(*sink_), ElementsAre("i", "w", "e"));
  EXPECT_FALSE(logger.Enabled(Level::kDebug));
  EXPECT_TRUE(logger.Enabled(Level::kInfo));
}

TEST_F(LoggerTest, The_threshold_moves_for_every_copy) {
  const Logger logger(sink_, Level::kInfo);
  const Logger copy = logger.With({{"who", "copy"}});
  EXPECT_FALSE(copy.Enabled(Level::kDebug));
  logger.SetThreshold(Level::kTrace);
  EXPECT_TRUE(copy.Enabled(Level::kTrace));
  copy.Debug("d");
  EXPECT_THAT(Messages(*sink_), ElementsAre("d"));
}

TEST_F(LoggerTest, Without_a_sink_it_discards) {
  const Logger logger;
  EXPECT_FALSE(logger.Enabled(Level::kError));
  logger.Error("nowhere", {{"key", 1}});
  logger.With({{"key", 1}}).Error("nowhere");
}

TEST_F(LoggerTest, A_record_carries_level_time_message_and_fields) {
  const base::WallTime before = std::chrono::system_clock::now();
  Logger(sink_, Level::kInfo).Warn("Deleting VM", {{"vm", "web-1"}, {"attempt", 2}});
  ASSERT_THAT(sink_->records(), SizeIs(1));
  const Record record = sink_->records()[0];
  EXPECT_EQ(record.level, Level::kWarn);
  EXPECT_EQ(record.message, "Deleting VM");
  EXPECT_GE(record.time, before);
  EXPECT_LE(record.time, std::chrono::system_clock::now());
  EXPECT_THAT(Fields(*sink_), ElementsAre("vm=web-1", "attempt=2"));
}

TEST_F(LoggerTest, With_adds_fields_to_every_line_of_the_copy_only) {
  const Logger logger(sink_, Level::kInfo);
  const Logger pool = logger.With({{"pool", "web"}}).With({{"action_id", "a1"}});
  pool.Info("x", {{"vm", "v"}});
  EXPECT_THAT(Fields(*sink_), ElementsAre("pool=web", "action_id=a1", "vm=v"));
  logger.Info("y");
  EXPECT_THAT(Fields(*sink_), IsEmpty());
}

TEST_F(LoggerTest, A_later_field_replaces_an_earlier_one_of_the_same_key) {
  const Logger logger = Logger(sink_, Level::kInfo).With({{"a", 1}, {"b", 2}}).With({{"a", 3}});
  logger.Info("x");
  EXPECT_THAT(Fields(*sink_), ElementsAre("a=3", "b=2"));
  logger.Info("x", {{"b", "four"}, {"b", 5}});
  EXPECT_THAT(Fields(*sink_), ElementsAre("a=3", "b=5"));
  logger.Info("x");
  EXPECT_THAT(Fields(*sink_), ElementsAre("a=3", "b=2"));
}

TEST_F(LoggerTest, Takes_fields_that_were_collected) {
  std::vector<Field> fields;
  for (int i = 0; i < 3; ++i) fields.emplace_back("f" + std::to_string(i), i);
  Logger(sink_, Level::kInfo).Log(Level::kInfo, "x", fields);
  EXPECT_THAT(Fields(*sink_), ElementsAre("f0=0", "f1=1", "f2=2"));
}

TEST_F(FieldTest, Values_of_every_type) {
  const std::string text = "string";
  Logger(sink_, Level::kInfo)
      .Info("x", {{"s", text},
                  {"v", std::string_view("view")},
                  {"c", "literal"},
                  {"b", true},
                  {"i", std::int64_t{-5}},
                  {"u", 7u},
                  {"z", std::size_t{8}},
                  {"t", base::Duration(90s)},
                  {"e", base::NotFound("gone")},
                  {"o", absl::OkStatus()}});
  EXPECT_THAT(sink_->Text(), HasSubstr("s=string v=view c=literal b=true i=-5 u=7 z=8 t=1m30s "
                                       "e=\"NOT_FOUND: gone\" o=OK"));
}

TEST_F(LoggerTest, P3_no_record_holds_a_secret_in_force_wherever_the_text_came_from) {
  const Logger logger = Logger(sink_, Level::kInfo).With({{"url", "https://h/?t=sesame-street"}});
  const base::Secret token("sesame-street");
  logger.Info("unknown token sesame-street",
              {{"error", base::NotFound("no such token: sesame-street")}});
  EXPECT_THAT(
      sink_->Text(),
      testing::AllOf(HasSubstr("unknown token REDACTED"), HasSubstr("https://h/?t=REDACTED"),
                     HasSubstr("no such token: REDACTED"), Not(HasSubstr("sesame"))));
}

TEST_F(FieldTest, P3_a_secret_is_redacted) {
  Logger(sink_, Level::kInfo).Info("x", {{"token", base::Secret("hunter2")}});
  EXPECT_THAT(sink_->Text(),
              testing::AllOf(HasSubstr("token=REDACTED"), Not(HasSubstr("hunter2"))));
}

TEST(RecordingSink, Text_has_one_line_per_record) {
  const auto sink = std::make_shared<RecordingSink>();
  const Logger logger(sink, Level::kInfo);
  logger.Info("one\ntwo");
  logger.Info("three");
  const std::string text = sink->Text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST_F(LoggerTest, Threads_may_share_one) {
  const Logger logger = Logger(sink_, Level::kInfo).With({{"pool", "web"}});
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&logger, t] {
        for (int i = 0; i < 100; ++i) logger.With({{"thread", t}}).Info("x", {{"i", i}});
      });
    }
  }
  EXPECT_THAT(sink_->records(), SizeIs(400));
}

}  // namespace
}  // namespace nomad_harvester::log
