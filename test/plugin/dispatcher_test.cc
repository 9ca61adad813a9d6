// SPDX-License-Identifier: Apache-2.0
#include "dispatcher.h"

#include <chrono>
#include <memory>
#include <stdexcept>

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

class ThrowingReply final : public target_proto::TargetPluginService::CallbackService {
 public:
  explicit ThrowingReply(Dispatcher& dispatcher) : dispatcher_(dispatcher) {}
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* rpc,
                                   const target_proto::StatusRequest*,
                                   target_proto::StatusResponse*) override {
    Work work;
    work.method = "Status";
    work.run = [](const runtime::Context&) { return absl::OkStatus(); };
    work.fill_response = [] { throw std::runtime_error("no memory"); };
    return dispatcher_.Start(*rpc, std::move(work));
  }

 private:
  Dispatcher& dispatcher_;
};

TEST(Dispatcher, P2_an_exception_while_the_reply_is_filled_ends_its_call_at_once) {
  const std::unique_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  const auto sink = std::make_shared<support::RecordingSink>();
  CallRegistry registry;
  Dispatcher dispatcher(runtime::Context::Background(*clock), registry,
                        log::Logger(sink, log::Level::kTrace), {});
  ThrowingReply service(dispatcher);
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto client = target_proto::TargetPluginService::NewStub(server->InProcessChannel({}));
  grpc::ClientContext rpc;
  rpc.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  target_proto::StatusResponse response;
  const grpc::Status status = client->Status(&rpc, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("unexpected exception in Status: no memory"));
  EXPECT_THAT(sink->Text(), HasSubstr("Unexpected exception"));
  server->Shutdown();
  dispatcher.Stop();
}

}  // namespace
}  // namespace nomad_harvester::plugin
