// SPDX-License-Identifier: Apache-2.0
#include "dispatcher.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/runtime/clock.h"

#include "autoscaler_services.h"
#include "grpcpp/grpcpp.h"
#include "proto/target.grpc.pb.h"
#include "support/recording_sink.h"

namespace nomad_harvester::plugin {
namespace {

using ::testing::HasSubstr;

class OneAnswer final : public target_proto::TargetPluginService::CallbackService {
 public:
  OneAnswer(Dispatcher& dispatcher, Work work) : dispatcher_(dispatcher), work_(std::move(work)) {}
  grpc::ServerUnaryReactor* Scale(grpc::CallbackServerContext* rpc,
                                  const target_proto::ScaleRequest*,
                                  target_proto::ScaleResponse*) override {
    return dispatcher_.Start(*rpc, work_);
  }

 private:
  Dispatcher& dispatcher_;
  const Work work_;
};

// Returns what the call of a plugin with this root context ends with.
grpc::Status AnswerTo(const runtime::Context& root, Work work, const log::Logger& logger = {}) {
  CallRegistry registry;
  Dispatcher dispatcher(root, registry, logger, {});
  OneAnswer service(dispatcher, std::move(work));
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto client = target_proto::TargetPluginService::NewStub(server->InProcessChannel({}));
  grpc::ClientContext rpc;
  rpc.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  target_proto::ScaleResponse response;
  const grpc::Status status = client->Scale(&rpc, {}, &response);
  server->Shutdown();
  dispatcher.Stop();
  return status;
}

TEST(Dispatcher, S2_a_busy_pool_is_aborted_for_a_scale_and_for_nothing_else) {
  const std::unique_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  const auto root = runtime::Context::Background(*clock);
  Work work;
  work.method = "Scale";
  work.run = [](const runtime::Context&) { return absl::AbortedError("busy"); };
  EXPECT_EQ(AnswerTo(root, work).error_code(), grpc::StatusCode::INTERNAL);
  work.aborted = Aborted::kPasses;
  EXPECT_EQ(AnswerTo(root, work).error_code(), grpc::StatusCode::ABORTED);
}

TEST(Dispatcher, P1_a_call_that_was_cancelled_before_it_began_does_nothing) {
  const std::unique_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  const runtime::CancelSource ending(runtime::Context::Background(*clock));
  ending.Cancel(runtime::CancelReason::kShutdown);
  std::atomic<bool> begun = false;
  Work work;
  work.method = "Scale";
  work.run = [&begun](const runtime::Context&) {
    begun = true;
    return absl::OkStatus();
  };
  EXPECT_EQ(AnswerTo(ending.context(), work).error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_FALSE(begun);
}

TEST(Dispatcher, P2_an_exception_while_the_reply_is_filled_ends_its_call_at_once) {
  const std::unique_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  const auto sink = std::make_shared<support::RecordingSink>();
  Work work;
  work.method = "Status";
  work.run = [](const runtime::Context&) { return absl::OkStatus(); };
  work.fill_response = [] { throw std::runtime_error("no memory"); };
  const grpc::Status status =
      AnswerTo(runtime::Context::Background(*clock), work, log::Logger(sink, log::Level::kTrace));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("unexpected exception in Status: no memory"));
  EXPECT_THAT(sink->Text(), HasSubstr("Unexpected exception"));
}

}  // namespace
}  // namespace nomad_harvester::plugin
