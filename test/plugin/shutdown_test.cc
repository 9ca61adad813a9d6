// SPDX-License-Identifier: Apache-2.0
// Open calls and streams during a shutdown.

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/server_fixture.h"
#include "proto/plugin.grpc.pb.h"

namespace nomad_harvester::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace host_proto = ::plugin;

class ShutdownTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    controller_ = host_proto::GRPCController::NewStub(channel_);
    stdio_ = host_proto::GRPCStdio::NewStub(channel_);
    broker_ = host_proto::GRPCBroker::NewStub(channel_);
  }
  std::unique_ptr<host_proto::GRPCController::Stub> controller_;
  std::unique_ptr<host_proto::GRPCStdio::Stub> stdio_;
  std::unique_ptr<host_proto::GRPCBroker::Stub> broker_;
};

TEST_F(ShutdownTest, P1_the_host_has_its_answer_although_the_process_ends_at_once) {
  std::thread process;
  on_shutdown_ = [&] { process = std::thread([this] { server_->Stop(); }); };
  grpc::ClientContext rpc;
  host_proto::Empty response;
  const grpc::Status status = controller_->Shutdown(&rpc, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  WaitUntil([&] { return shutdowns_ == 1; });
  process.join();
  EXPECT_EQ(service_->stops(), 1);
}

TEST_F(ShutdownTest, P1_calls_in_flight_get_their_own_status) {
  Background& scale = StartScale({{"do", "block"}});
  Background& status = StartStatus({{"do", "block"}}, std::chrono::minutes(10));
  WaitUntil([&] { return service_->scales_begun() == 1 && service_->statuses_begun() == 1; });
  server_->Stop();
  WaitUntil([&] { return scale.done && status.done; });
  for (const Background* call : {&scale, &status}) {
    EXPECT_EQ(call->status.error_code(), grpc::StatusCode::CANCELLED);
    EXPECT_EQ(call->status.error_message(), "cancelled: the process is ending");
  }
  EXPECT_EQ(service_->last_cancel(), runtime::CancelReason::kShutdown);
  EXPECT_EQ(service_->stops(), 1);
  EXPECT_THAT(sink_->Text(), Not(HasSubstr("did not finish in time")));
}

TEST_F(ShutdownTest, P1_work_that_ignores_its_cancellation_is_answered_for) {
  LaneSizes lanes;
  lanes.scale_threads = 1;
  lanes.scale_queue = 1;
  Restart(lanes);
  Background& running = StartScale({{"do", "stubborn"}});
  WaitUntil([&] { return service_->scales_begun() == 1; });
  Background& first = StartScale({});
  Background& second = StartScale({});
  WaitUntil([&] { return first.done || second.done; });
  // The queue is full for one of them, so the other is in it.
  Background& queued = first.done ? second : first;
  // Stop returns only when the worker does: release it after the replies have arrived.
  std::thread releaser([&] {
    WaitUntil([&] { return running.done && queued.done; });
    service_->Release();
  });
  server_->Stop();
  releaser.join();
  EXPECT_EQ(running.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(queued.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_THAT(sink_->Text(), HasSubstr("did not finish in time"));
  EXPECT_EQ(service_->scales_begun(), 1) << "what was queued never began";
}

TEST_F(ShutdownTest, StreamsStayOpenAndEndWell) {
  grpc::ClientContext stdio_rpc;
  const auto stdio = stdio_->StreamStdio(&stdio_rpc, {});
  stdio->WaitForInitialMetadata();
  grpc::ClientContext broker_rpc;
  const auto broker = broker_->StartStream(&broker_rpc);
  for (int i = 0; i < 3; ++i) {
    host_proto::ConnInfo info;
    info.set_address("ignored");
    ASSERT_TRUE(broker->Write(info));
  }
  EXPECT_TRUE(Status({}).ok());
  server_->Stop();
  host_proto::StdioData data;
  EXPECT_FALSE(stdio->Read(&data));
  EXPECT_TRUE(stdio->Finish().ok());
  host_proto::ConnInfo info;
  EXPECT_FALSE(broker->Read(&info));
  EXPECT_TRUE(broker->Finish().ok());
}

TEST_F(ShutdownTest, ABrokerStreamThatTheHostEndsEnds) {
  grpc::ClientContext rpc;
  const auto stream = broker_->StartStream(&rpc);
  ASSERT_TRUE(stream->WritesDone());
  host_proto::ConnInfo info;
  EXPECT_FALSE(stream->Read(&info));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ShutdownTest, StreamsThatTheHostCancelsAreForgotten) {
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext stdio_rpc;
    const auto stdio = stdio_->StreamStdio(&stdio_rpc, {});
    grpc::ClientContext broker_rpc;
    const auto broker = broker_->StartStream(&broker_rpc);
    stdio_rpc.TryCancel();
    broker_rpc.TryCancel();
    EXPECT_EQ(stdio->Finish().error_code(), grpc::StatusCode::CANCELLED);
    EXPECT_EQ(broker->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(Status({}).ok());
}

TEST_F(ShutdownTest, StoppingTwiceIsHarmless) {
  server_->Stop();
  server_->Stop();
  EXPECT_EQ(service_->stops(), 1);
  EXPECT_EQ(Status({}, nullptr, std::chrono::seconds(5)).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ShutdownTest, AStopBetweenAnyTwoCallsAnswersThemAll) {
  for (int round = 0; round < 10; ++round) {
    std::atomic<bool> begun{false};
    std::vector<std::thread> callers;
    std::atomic<int> odd{0};
    for (int i = 0; i < 4; ++i) {
      callers.emplace_back([&] {
        while (true) {
          const grpc::Status status = Status({}, nullptr, std::chrono::seconds(30));
          begun = true;
          if (status.ok()) continue;
          // Ended by the server, or refused because it no longer listens.
          if (status.error_code() != grpc::StatusCode::CANCELLED &&
              status.error_code() != grpc::StatusCode::UNAVAILABLE) {
            ++odd;
          }
          return;
        }
      });
    }
    WaitUntil([&] { return begun.load(); });
    server_->Stop();
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(odd, 0);
    Restart({});
  }
}

}  // namespace
}  // namespace nomad_harvester::plugin
