// SPDX-License-Identifier: Apache-2.0
#include "library_logs.h"

#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/log/sinks.h"

#include "grpc/grpc.h"
#include "grpc/support/log.h"
#include "proto/target.pb.h"
#include "support/recording_sink.h"

namespace nomad_harvester::plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace target_proto = hashicorp::nomad_autoscaler::plugins::target::proto::v1;

class LibraryLogs : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc_init();  // it sets gRPC's log level
    RouteLibraryLogs(log::Logger(sink_, log::Level::kTrace));
  }
  void TearDown() override {
    RouteLibraryLogs(log::Logger());
    grpc_shutdown();
  }
  std::shared_ptr<support::RecordingSink> sink_ = std::make_shared<support::RecordingSink>();
};

TEST_F(LibraryLogs, P5_a_missing_source_of_random_bytes_is_one_warning) {
  const log::Logger logger(sink_, log::Level::kTrace);
  WarnWithoutRandomDevice(logger, kRandomDevice);
  EXPECT_EQ(sink_->Text(), "");
  WarnWithoutRandomDevice(logger, "/nowhere/urandom");
  EXPECT_EQ(sink_->records().size(), 1U);
  EXPECT_EQ(sink_->Count("The ids of DNS queries can be guessed", log::Level::kWarn), 1U);
}

TEST_F(LibraryLogs, P3_lines_of_grpc_are_ours) {
  gpr_log(GPR_ERROR, "number %d", 7);
  ASSERT_EQ(sink_->records().size(), 1U);
  EXPECT_EQ(sink_->records()[0].level, log::Level::kWarn);
  EXPECT_EQ(sink_->records()[0].message, "number 7");
  EXPECT_THAT(sink_->Text(), AllOf(HasSubstr("library=grpc"), HasSubstr("file=")));
}

TEST_F(LibraryLogs, P3_lines_of_protobuf_are_ours) {
  target_proto::StatusRequest request;
  EXPECT_FALSE(request.ParseFromString(std::string("\x0a\x05\x0a\x01\xff\x12\x00", 7)));
  ASSERT_FALSE(sink_->records().empty());
  EXPECT_THAT(sink_->Text(), AllOf(HasSubstr("library=protobuf"), HasSubstr("UTF-8")));
}

TEST_F(LibraryLogs, ALaterLoggerReplacesTheFirst) {
  const auto second = std::make_shared<support::RecordingSink>();
  RouteLibraryLogs(log::Logger(second, log::Level::kTrace));
  gpr_log(GPR_ERROR, "x");
  EXPECT_TRUE(sink_->records().empty());
  EXPECT_EQ(second->records().size(), 1U);
}

// gRPC calls back from threads and from code that no exception may pass through.
TEST_F(LibraryLogs, P2_memory_that_runs_out_in_a_library_s_log_line_throws_nothing_into_it) {
  class FullSink final : public log::Sink {
   public:
    void Write(const log::Record&) override { throw std::bad_alloc(); }
  };
  RouteLibraryLogs(log::Logger(std::make_shared<FullSink>(), log::Level::kTrace));
  EXPECT_NO_THROW(gpr_log(GPR_ERROR, "x"));
  target_proto::StatusRequest request;
  EXPECT_NO_THROW(request.ParseFromString(std::string("\x0a\x05\x0a\x01\xff\x12\x00", 7)));
}

using LibraryLogsDeathTest = LibraryLogs;

TEST_F(LibraryLogsDeathTest, P3_the_final_error_is_one_line_of_the_log) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto die = [](bool with_exception) {
    RouteLibraryLogs(log::Logger(log::MakeHclogSink("test"), log::Level::kTrace));
    if (!with_exception) std::terminate();
    std::thread([] { throw std::runtime_error("the reason"); }).join();
  };
  EXPECT_DEATH(die(true), "\"@level\":\"error\".*ends abnormally.*the reason");
  EXPECT_DEATH(die(false), "ends abnormally.*no exception");
}

}  // namespace
}  // namespace nomad_harvester::plugin
