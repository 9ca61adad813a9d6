// SPDX-License-Identifier: Apache-2.0
// RPCs whose handlers are the test's own.
#include "rpc.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/runtime/clock.h"

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "host_services.h"
#include "local_address.h"
#include "plugin_server.h"
#include "proto/health.grpc.pb.h"
#include "proto/plugin.grpc.pb.h"
#include "support/scoped_temp_dir.h"

namespace nomad_harvester::plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RpcTest : public ::testing::Test {
 protected:
  // Once all methods are there.
  void Serve() {
    const std::string address = UnixAddress(directory_.Path("socket"));
    grpc::ServerBuilder builder;
    queue_ = std::make_unique<RpcQueue>(methods_, builder);
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    queue_->Start();
    channel_ = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    streams_.Close();
    streams_.EndAll(grpc::Status::OK);
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
    server_->Wait();
    queue_->Stop();
  }
  // `begun` is called once the request was sent.
  grpc::Status Call(
      const std::string& method,
      const std::function<void(grpc::ClientContext&)>& begun = [](grpc::ClientContext&) {}) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext rpc;
    grpc::CompletionQueue queue;
    const grpc::Slice slice("");
    const auto call = stub.PrepareUnaryCall(&rpc, method, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, &queue);  // sends the request, too
    begun(rpc);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    queue.Shutdown();
    return status;
  }
  // The limit is far longer than needed.
  static bool Becomes(const std::atomic<bool>& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return condition;
  }
  std::size_t StreamsAfter(base::Duration limit) {
    return streams_.WaitUntilNone(runtime::Context::Background(*clock_).WithTimeout(limit));
  }

  const support::ScopedTempDir directory_;
  const std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  CallRegistry streams_;
  Methods methods_;
  std::unique_ptr<RpcQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(RpcTest, P2_an_exception_of_a_handler_or_a_callback_is_the_error_of_its_rpc_alone) {
  methods_["/test/Now"] = [](const std::shared_ptr<Rpc>&) { throw std::runtime_error("EOF"); };
  methods_["/test/Later"] = [](const std::shared_ptr<Rpc>& rpc) {
    rpc->Read([](const std::optional<std::string>&) { throw std::runtime_error("EOF"); });
  };
  methods_["/test/Good"] = [](const std::shared_ptr<Rpc>& rpc) {
    rpc->Finish(grpc::Status::OK, std::string());
  };
  Serve();
  for (const std::string method : {"/test/Now", "/test/Later"}) {
    const grpc::Status status = Call(method);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
    EXPECT_THAT(status.error_message(),
                AllOf(HasSubstr("unexpected exception in " + method), Not(HasSubstr("EOF"))));
  }
  EXPECT_TRUE(Call("/test/Good").ok());
}

// gRPC would abort the process.
TEST_F(RpcTest, P2_what_begins_after_the_status_ends_at_once_as_if_the_client_were_gone) {
  std::atomic<bool> gone{false};
  methods_["/test/Late"] = [&](const std::shared_ptr<Rpc>& rpc) {
    EXPECT_TRUE(rpc->Finish(grpc::Status::OK, std::string()));
    rpc->Read([&](const std::optional<std::string>& message) { gone = !message.has_value(); });
    rpc->Write("more", [] { ADD_FAILURE() << "nothing is written"; });
    EXPECT_FALSE(rpc->Finish(grpc::Status::CANCELLED)) << "the first status counts";
  };
  Serve();
  EXPECT_TRUE(Call("/test/Late").ok());
  EXPECT_TRUE(Becomes(gone));
}

TEST_F(RpcTest, C16_work_that_begins_when_its_client_has_gone_is_cancelled_at_once) {
  std::atomic<bool> begun{false};
  std::atomic<bool> cancelled{false};
  methods_["/test/Wait"] = [&](const std::shared_ptr<Rpc>& rpc) {
    rpc->OnCancel([&, rpc] {
      // Now the client has gone.
      rpc->OnCancel([&] { cancelled = true; });
      rpc->Finish(grpc::Status::CANCELLED);
    });
    begun = true;
  };
  Serve();
  EXPECT_EQ(Call("/test/Wait",
                 [&](grpc::ClientContext& rpc) {
                   EXPECT_TRUE(Becomes(begun));
                   rpc.TryCancel();
                 })
                .error_code(),
            grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Becomes(cancelled));
}

TEST_F(RpcTest, I7_a_stream_that_ends_is_forgotten) {
  AddHostServices([] {}, streams_, &methods_);
  Serve();
  const auto health = ::grpc::health::v1::Health::NewStub(channel_);
  grpc::ClientContext rpc;
  const auto watch = health->Watch(&rpc, {});
  ::grpc::health::v1::HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(StreamsAfter(base::Duration::zero()), 1U);
  rpc.TryCancel();
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(StreamsAfter(std::chrono::seconds(20)), 0U);
}

TEST_F(RpcTest, P1_the_host_has_its_answer_before_the_process_begins_to_end) {
  std::atomic<bool> answered{false};
  std::atomic<bool> told{false};
  bool was_answered = false;
  AddHostServices(
      [&] {
        was_answered = Becomes(answered);
        told = true;
      },
      streams_, &methods_);
  Serve();
  const auto controller = ::plugin::GRPCController::NewStub(channel_);
  grpc::ClientContext rpc;
  ::plugin::Empty response;
  ASSERT_TRUE(controller->Shutdown(&rpc, {}, &response).ok());
  answered = true;
  ASSERT_TRUE(Becomes(told));
  EXPECT_TRUE(was_answered);
}

}  // namespace
}  // namespace nomad_harvester::plugin
