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

}  // namespace
}  // namespace nomad_harvester::cli
