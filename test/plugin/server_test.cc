// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/status.h"

#include "local_address.h"
#include "plugin/server_fixture.h"
#include "plugin_server.h"
#include "support/status_matchers.h"

namespace nomad_harvester::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ServerTest : public ServerFixture {};

TEST_F(ServerTest, PluginInfoIsTheDriversNameAndATarget) {
  grpc::ClientContext rpc;
  base_proto::PluginInfoResponse response;
  ASSERT_TRUE(base_->PluginInfo(&rpc, {}, &response).ok());
  EXPECT_EQ(response.name(), "harvester");
  EXPECT_EQ(response.type(), base_proto::PLUGIN_TYPE_TARGET);
}

TEST_F(ServerTest, CallsReachTheServiceAndItsAnswersTheClient) {
  ASSERT_TRUE(SetConfig({{"echo", "the config"}}).ok());
  ASSERT_TRUE(Scale({}).ok());
  target_proto::StatusResponse response;
  ASSERT_TRUE(Status({{"do", "echo"}, {"key", "value"}}, &response).ok());
  EXPECT_TRUE(response.ready());
  EXPECT_EQ(response.count(), 1);
  EXPECT_EQ(response.meta().at("config"), "the config");
  EXPECT_EQ(response.meta().at("key"), "value");
}

// gRPC's own threads may be late, and only they: a Lease is renewed in time.
TEST_F(ServerTest, AFailedStatusHasNoContent) {
  target_proto::StatusResponse response;
  EXPECT_EQ(Status({{"do", "fail"}, {"code", "9"}}, &response).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_FALSE(response.ready());
  EXPECT_TRUE(response.meta().empty());
}

TEST_F(ServerTest, P2_an_exception_is_the_error_of_its_call_alone) {
  for (const char* what : {"throw", "throw-other"}) {
    for (const grpc::Status& status :
         {Scale({{"do", what}, {"message", "EOF"}}), Status({{"do", what}, {"message", "EOF"}}),
          SetConfig({{"do", what}, {"message", "EOF"}})}) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
      EXPECT_THAT(status.error_message(), HasSubstr("unexpected exception"));
      EXPECT_THAT(status.error_message(), Not(HasSubstr("EOF")));
    }
  }
  EXPECT_THAT(sink_->Text(), HasSubstr("Unexpected exception"));
  EXPECT_TRUE(Status({}).ok());
}

TEST_F(ServerTest, AClientThatCancelsCancelsItsWorkOnly) {
  Background& other = StartScale({{"do", "block"}});
  Background& call = StartScale({{"do", "block"}});
  WaitUntil([&] { return service_->scales_begun() == 2; });
  call.rpc.TryCancel();
  WaitUntil([&] { return service_->last_cancel() == runtime::CancelReason::kClient; });
  WaitUntil([&] { return call.done.load(); });
  EXPECT_EQ(call.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_FALSE(other.done);
}

TEST_F(ServerTest, ACallThatWasCancelledInTheQueueNeverBegins) {
  LaneSizes lanes;
  lanes.scale_threads = 1;
  Restart(lanes);
  Background& running = StartScale({{"do", "stubborn"}});
  WaitUntil([&] { return service_->scales_begun() == 1; });
  Background& queued = StartScale({});
  queued.rpc.TryCancel();
  WaitUntil([&] { return queued.done.load(); });
  service_->Release();
  WaitUntil([&] { return running.done.load(); });
  EXPECT_TRUE(Status({}).ok());
  EXPECT_EQ(service_->scales_begun(), 1);
}

TEST_F(ServerTest, TheDeadlineOfTheCallIsTheContexts) {
  target_proto::StatusResponse response;
  ASSERT_TRUE(Status({}, &response, std::chrono::hours(1)).ok());
  const int left = std::stoi(response.meta().at("remaining_ms"));
  EXPECT_GT(left, 0);
  EXPECT_LT(left, 3600 * 1000 * 1.01) << "gRPC sends three digits and rounds up";
}

TEST_F(ServerTest, ACallEndsBeforeItsDeadlineSoThatItsAnswerArrives) {
  target_proto::StatusResponse response;
  ASSERT_TRUE(Status({}, &response, std::chrono::seconds(5)).ok());
  EXPECT_LT(std::stoi(response.meta().at("remaining_ms")), 5 * 1000 - 200)
      << "gRPC rounds up by ten milliseconds at most";
}

TEST_F(ServerTest, DeadlinesBeyondTheRangeOfTheClockAreNone) {
  target_proto::StatusResponse response;
  ASSERT_TRUE(Status({}, &response, std::chrono::hours(24 * 365 * 50)).ok());
  EXPECT_EQ(response.meta().count("remaining_ms"), 0U);
}

TEST_F(ServerTest, S3_a_status_answers_while_every_scale_thread_is_busy) {
  LaneSizes lanes;
  lanes.scale_threads = 2;
  Restart(lanes);
  for (int i = 0; i < 6; ++i) StartScale({{"do", "stubborn"}});
  WaitUntil([&] { return service_->scales_begun() == 2; });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Status({}).ok());
  EXPECT_TRUE(SetConfig({}).ok());
}

TEST_F(ServerTest, AFullLaneRefusesAtOnceAndRecovers) {
  LaneSizes lanes;
  lanes.scale_threads = 1;
  lanes.scale_queue = 2;
  Restart(lanes);
  Background& running = StartScale({{"do", "stubborn"}});
  WaitUntil([&] { return service_->scales_begun() == 1; });
  // Two are queued; of four more at least two exceed the limit, in any order of arrival.
  for (int i = 0; i < 4; ++i) StartScale({});
  WaitUntil([&] {
    return std::count_if(background_.begin(), background_.end(),
                         [](const auto& call) { return call->done.load(); }) == 2;
  });
  for (const auto& call : background_) {
    if (!call->done) continue;
    EXPECT_EQ(call->status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(call->status.error_message(), HasSubstr("too many calls at once"));
  }
  service_->Release();
  WaitUntil([&] { return running.done && service_->scales_begun() == 3; });
  EXPECT_TRUE(Scale({}).ok());
}

TEST_F(ServerTest, ManyCallsAtOnceAllEnd) {
  for (int i = 0; i < 24; ++i) {
    StartScale(i % 2 == 0 ? scaling::StringMap{} : scaling::StringMap{{"do", "throw"}});
    StartStatus({}, std::chrono::minutes(1));
  }
  WaitUntil([&] {
    return std::all_of(background_.begin(), background_.end(),
                       [](const auto& call) { return call->done.load(); });
  });
  EXPECT_EQ(service_->scales_begun(), 24);
}

TEST_F(ServerTest, AnErrorThatDoesNotFitIsLoggedWhole) {
  EXPECT_EQ(Scale({{"do", "fail"}, {"message", "0123456789"}, {"repeat", "2000"}}).error_code(),
            grpc::StatusCode::INTERNAL);
  EXPECT_THAT(sink_->Text(), HasSubstr("only a part of this error"));
  EXPECT_GE(sink_->Text().size(), 20'000U);
}

TEST_F(ServerTest, AnAddressInUseIsAnError) {
  FakeService service{log::Logger()};
  ServerOptions options;
  options.address = "127.0.0.1:0";
  options.credentials = grpc::InsecureServerCredentials();
  options.clock = clock_.get();
  options.on_shutdown = [] {};
  const auto first = PluginServer::Start(TargetOf(service), options);
  ASSERT_TRUE(first.ok()) << first.status();
  options.address = "127.0.0.1:" + std::to_string((*first)->port());
  const auto second = PluginServer::Start(TargetOf(service), options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(base::Message(second.status()),
              HasSubstr(options.address + ": does its directory exist"));

  const std::string file = directory_.WriteFile("file", "what is no socket stays");
  options.address = UnixAddress(file);
  EXPECT_EQ(PluginServer::Start(TargetOf(service), options).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_THAT(base::ReadFile(file), support::IsOkAndHolds("what is no socket stays"));
}

TEST_F(ServerTest, P2_a_compressed_message_is_refused_and_not_inflated) {
  grpc::ClientContext rpc;
  rpc.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const grpc::Status status = Scale({{"echo", std::string(100'000, 'x')}}, rpc);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  EXPECT_TRUE(SetConfig({}).ok());
}

TEST_F(ServerTest, SetConfigIsRefusedWithItsReasonWhereNobodyKnowsTheCaller) {
  Restart({}, {.set_config_refusal = "not here", .scale_needs_action = false});
  const grpc::Status status = SetConfig({{"echo", "the config"}});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(status.error_message(), "not here");
  EXPECT_TRUE(Status({}).ok()) << "other calls are served";
}

TEST_F(ServerTest, AScaleWithoutAnActionIsRefusedOnlyForPeople) {
  const auto scale = [this] {
    grpc::ClientContext rpc;
    target_proto::ScaleResponse response;
    return target_->Scale(&rpc, target_proto::ScaleRequest(), &response);
  };
  EXPECT_TRUE(scale().ok()) << "the agent's own server takes it as a count of 0";
  Restart({}, {.set_config_refusal = "", .scale_needs_action = true});
  EXPECT_EQ(scale().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(Scale({}).ok());
}

}  // namespace
}  // namespace nomad_harvester::plugin
