// SPDX-License-Identifier: Apache-2.0
#include "runtime_parts.h"

#include <array>
#include <memory>
#include <string>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/recording_sink.h"
#include "support/status_matchers.h"

namespace nomad_harvester::cli {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> Messages(const support::RecordingSink& sink) {
  std::vector<std::string> messages;
  for (const log::Record& record : sink.records()) messages.push_back(record.message);
  return messages;
}

std::string HostOfThisMachine() {
  std::array<char, 256> name{};
  EXPECT_EQ(gethostname(name.data(), name.size() - 1), 0);
  return name.data();
}

TEST(ProcessOf, is_no_process_that_is_not_another_one_of_this_program) {
  const std::string host = HostOfThisMachine();
  EXPECT_EQ(ProcessOf(host + "_" + std::to_string(getpid()) + "_abcd1234"), std::nullopt);
  EXPECT_EQ(ProcessOf(host + "_" + std::to_string(getppid()) + "_abcd1234"), std::nullopt);
  EXPECT_EQ(ProcessOf(host + "_1_abcd1234"), std::nullopt);
  EXPECT_EQ(ProcessOf(host + "_x_abcd1234"), std::nullopt);
  EXPECT_EQ(ProcessOf("of-another-machine_4711_abcd1234"), std::nullopt);
  EXPECT_EQ(ProcessOf(""), std::nullopt);
}

TEST(AdjustableSink, a_logger_makes_no_record_that_it_would_drop) {
  const auto inner = std::make_shared<support::RecordingSink>();
  const auto sink = std::make_shared<AdjustableSink>(inner, log::Level::kInfo);
  const log::Logger logger(sink, log::Level::kTrace);
  EXPECT_FALSE(logger.Enabled(log::Level::kDebug));
  EXPECT_TRUE(logger.Enabled(log::Level::kInfo));
  sink->SetThreshold(log::Level::kTrace);
  EXPECT_TRUE(logger.Enabled(log::Level::kTrace));
}

TEST(AdjustableSink, forwards_records_at_or_above_the_threshold) {
  const auto inner = std::make_shared<support::RecordingSink>();
  AdjustableSink sink(inner, log::Level::kInfo);
  const auto write = [&sink](log::Level level, const std::string& message) {
    log::Record record;
    record.level = level;
    record.message = message;
    sink.Write(record);
  };
  write(log::Level::kDebug, "too low");
  write(log::Level::kInfo, "info");
  write(log::Level::kError, "error");
  sink.SetThreshold(log::Level::kDebug);
  write(log::Level::kTrace, "still too low");
  write(log::Level::kDebug, "debug");
  sink.SetThreshold(log::Level::kError);
  write(log::Level::kWarn, "too low again");
  EXPECT_THAT(Messages(*inner), ElementsAre("info", "error", "debug"));
}

const config::StringMap kConfig = {
    {"harvester_url", "http://127.0.0.1:1"}, {"auth_token", "sesame"}, {"nomad_token", "sesame"}};

class RuntimePartsTest : public testing::Test {
 protected:
  static config::StringMap With(config::StringMap map, const std::string& key,
                                const std::string& value) {
    map[key] = value;
    return map;
  }
  const std::shared_ptr<support::RecordingSink> sink_ = std::make_shared<support::RecordingSink>();
};

TEST_F(RuntimePartsTest, log_level_of_the_configuration_moves_the_threshold_of_every_logger) {
  RuntimeParts parts(sink_, log::Level::kInfo, {});
  const log::Logger early = parts.logger().With({{"who", "early"}});
  const auto service = parts.MakeService();
  early.Debug("before");
  ASSERT_THAT(service->SetConfig(With(kConfig, "log_level", "debug")), IsOk());
  early.Debug("after");
  early.Log(log::Level::kTrace, "too low");
  ASSERT_THAT(service->SetConfig(With(kConfig, "log_level", "error")), IsOk());
  early.Warn("quiet again");
  const auto messages = Messages(*sink_);
  EXPECT_THAT(messages,
              AllOf(testing::Contains("after"), Not(testing::Contains("before")),
                    Not(testing::Contains("too low")), Not(testing::Contains("quiet again"))));
  ASSERT_THAT(service->SetConfig(kConfig), IsOk());
  early.Info("as at the start");
  early.Debug("below the start's level");
  EXPECT_THAT(Messages(*sink_), AllOf(testing::Contains("as at the start"),
                                      Not(testing::Contains("below the start's level"))));
}

TEST_F(RuntimePartsTest, the_environment_configures_the_service) {
  RuntimeParts parts(sink_, log::Level::kTrace,
                     {{"HARVESTER_URL", "http://127.0.0.1:1"}, {"HARVESTER_TOKEN", "sesame"}});
  const auto service = parts.MakeService();
  EXPECT_THAT(service->SetConfig({}), IsOk());
  EXPECT_THAT(sink_->Text(), Not(HasSubstr("sesame")));
  EXPECT_EQ(parts.Process().environment.at("HARVESTER_URL"), "http://127.0.0.1:1");
}

TEST_F(RuntimePartsTest, without_one_the_service_reports_what_is_missing) {
  RuntimeParts parts(sink_, log::Level::kTrace, {});
  EXPECT_THAT(parts.MakeService()->SetConfig({}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("harvester_url")));
}

TEST_F(RuntimePartsTest, a_service_may_end_without_having_been_used_or_stopped) {
  RuntimeParts parts(sink_, log::Level::kTrace, {});
  for (int i = 0; i < 3; ++i) {
    const auto service = parts.MakeService();
    ASSERT_THAT(service->SetConfig(kConfig), IsOk());
  }
}

TEST_F(RuntimePartsTest, the_process_gets_clock_log_and_environment) {
  RuntimeParts parts(sink_, log::Level::kInfo, {{"A", "1"}});
  const plugin::ProcessOptions process = parts.Process();
  EXPECT_EQ(process.clock, &parts.clock());
  EXPECT_EQ(process.environment.at("A"), "1");
  EXPECT_EQ(process.handshake_fd, 1);
  process.logger.Info("through the process");
  EXPECT_THAT(Messages(*sink_), ElementsAre("through the process"));
}

TEST_F(RuntimePartsTest, names_are_random) {
  RuntimeParts parts(sink_, log::Level::kInfo, {});
  EXPECT_NE(parts.random()->NextName(20), parts.random()->NextName(20));
}

}  // namespace
}  // namespace nomad_harvester::cli
