// SPDX-License-Identifier: Apache-2.0
// Health, reflection, and what no method serves.

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grpcpp/generic/generic_stub.h"
#include "plugin/server_fixture.h"
#include "proto/descriptors.pb.h"
#include "proto/health.grpc.pb.h"
#include "proto/reflection.grpc.pb.h"

namespace nomad_harvester::plugin {
namespace {

namespace health = ::grpc::health::v1;
namespace reflection = ::grpc::reflection::v1alpha;
using ::testing::AnyOf;

class HostServicesTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    health_ = health::Health::NewStub(channel_);
    reflection_ = reflection::ServerReflection::NewStub(channel_);
  }
  static health::HealthCheckRequest For(const std::string& service) {
    health::HealthCheckRequest request;
    request.set_service(service);
    return request;
  }
  // A unary call of any method with any bytes.
  grpc::Status Call(const std::string& method, const std::string& bytes) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext rpc;
    grpc::CompletionQueue queue;
    const grpc::Slice slice(bytes);
    const auto call = stub.PrepareUnaryCall(&rpc, method, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, &queue);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    queue.Shutdown();
    return status;
  }
  reflection::ServerReflectionResponse Ask(const reflection::ServerReflectionRequest& request) {
    grpc::ClientContext rpc;
    const auto stream = reflection_->ServerReflectionInfo(&rpc);
    EXPECT_TRUE(stream->Write(request));
    EXPECT_TRUE(stream->WritesDone());
    reflection::ServerReflectionResponse response;
    EXPECT_TRUE(stream->Read(&response));
    EXPECT_TRUE(stream->Finish().ok());
    return response;
  }
  // The names of the files of a reply.
  static std::set<std::string> Files(const reflection::ServerReflectionResponse& response) {
    std::set<std::string> names;
    for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
      proto::FileDescriptor file;
      EXPECT_TRUE(file.ParseFromString(bytes));
      names.insert(file.name());
    }
    return names;
  }
  std::unique_ptr<health::Health::Stub> health_;
  std::unique_ptr<reflection::ServerReflection::Stub> reflection_;
};

TEST_F(HostServicesTest, TheServerAndThePluginAreServed) {
  for (const char* service : {"", "plugin"}) {
    grpc::ClientContext rpc;
    health::HealthCheckResponse response;
    ASSERT_TRUE(health_->Check(&rpc, For(service), &response).ok()) << service;
    EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVING);
  }
  grpc::ClientContext rpc;
  health::HealthCheckResponse response;
  EXPECT_EQ(health_->Check(&rpc, For("other"), &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(HostServicesTest, AWatchOfTheHealthSaysSoAtOnceAndEndsWithTheServer) {
  grpc::ClientContext rpc;
  const auto known = health_->Watch(&rpc, For("plugin"));
  health::HealthCheckResponse response;
  ASSERT_TRUE(known->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVING);
  grpc::ClientContext other_rpc;
  const auto unknown = health_->Watch(&other_rpc, For("other"));
  ASSERT_TRUE(unknown->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVICE_UNKNOWN);
  server_->Stop();
  EXPECT_FALSE(known->Read(&response));
  EXPECT_TRUE(known->Finish().ok());
  EXPECT_FALSE(unknown->Read(&response));
  EXPECT_TRUE(unknown->Finish().ok());
}

TEST_F(HostServicesTest, StreamsThatAreCancelledAtAnyMomentAreForgotten) {
  for (int i = 0; i < 50; ++i) {
    grpc::ClientContext watching;
    const auto watch = health_->Watch(&watching, For("plugin"));
    grpc::ClientContext asking;
    const auto stream = reflection_->ServerReflectionInfo(&asking);
    reflection::ServerReflectionRequest request;
    request.set_list_services("");
    for (int question = 0; question < i % 4; ++question) stream->Write(request);
    watching.TryCancel();
    asking.TryCancel();
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(Status({}).ok());
}

TEST_F(HostServicesTest, AServerThatStopsWhileItIsAskedEndsTheStreams) {
  for (int round = 0; round < 10; ++round) {
    grpc::ClientContext rpc;
    const auto stream = reflection_->ServerReflectionInfo(&rpc);
    reflection::ServerReflectionRequest request;
    request.set_list_services("");
    std::thread asker([&] {
      reflection::ServerReflectionResponse response;
      while (stream->Write(request) && stream->Read(&response)) {
      }
    });
    server_->Stop();
    asker.join();
    // One that arrives at the server too late is gRPC's to end.
    EXPECT_THAT(
        stream->Finish().error_code(),
        AnyOf(grpc::StatusCode::OK, grpc::StatusCode::CANCELLED, grpc::StatusCode::UNAVAILABLE));
    Restart({});
    reflection_ = reflection::ServerReflection::NewStub(channel_);
  }
}

TEST_F(HostServicesTest, AMethodThatDoesNotExistIsUnimplemented) {
  const grpc::Status status = Call("/plugin.GRPCController/Other", "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(), "there is no such method") << "not the caller's text (rule P4)";
}

TEST_F(HostServicesTest, ARequestThatIsNoMessageIsRefusedWithoutACall) {
  const std::string service =
      "/hashicorp.nomad_autoscaler.plugins.target.proto.v1.TargetPluginService/";
  for (const char* method : {"Scale", "Status"}) {
    EXPECT_EQ(Call(service + method, "\xff\xff").error_code(), grpc::StatusCode::INTERNAL);
  }
  EXPECT_EQ(service_->scales_begun() + service_->statuses_begun(), 0);
  EXPECT_TRUE(Status({}).ok());
}

TEST_F(HostServicesTest, ASymbolIsDescribedWithAllThatItsFileImports) {
  reflection::ServerReflectionRequest request;
  request.set_host("here");
  request.set_file_containing_symbol(
      "hashicorp.nomad_autoscaler.plugins.target.proto.v1.TargetPluginService");
  const auto response = Ask(request);
  EXPECT_EQ(response.valid_host(), "here");
  EXPECT_EQ(response.original_request().file_containing_symbol(), request.file_containing_symbol());
  EXPECT_EQ(Files(response), (std::set<std::string>{"proto/target.proto", "proto/shared.proto",
                                                    "google/protobuf/any.proto"}));
  request.set_file_by_filename("proto/base.proto");
  EXPECT_EQ(Files(Ask(request)), (std::set<std::string>{"proto/base.proto"}));
}

TEST_F(HostServicesTest, MethodsAndNestedTypesAreSymbolsToo) {
  for (const auto& [symbol, file] :
       {std::pair("plugin.GRPCController.Shutdown", "proto/plugin.proto"),
        std::pair("plugin.ConnInfo.Knock", "proto/plugin.proto"),
        std::pair("plugin.StdioData.Channel", "proto/plugin.proto")}) {
    reflection::ServerReflectionRequest request;
    request.set_file_containing_symbol(symbol);
    EXPECT_TRUE(Files(Ask(request)).contains(file)) << symbol;
  }
}

// As grpcurl does: it lists the services, and then asks for each.
TEST_F(HostServicesTest, EachQuestionOfAStreamIsAnswered) {
  grpc::ClientContext rpc;
  const auto stream = reflection_->ServerReflectionInfo(&rpc);
  reflection::ServerReflectionRequest request;
  request.set_list_services("");
  reflection::ServerReflectionResponse response;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(stream->Write(request)) << i;
    ASSERT_TRUE(stream->Read(&response)) << i;
    EXPECT_GT(response.list_services_response().service_size(), 0);
  }
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(HostServicesTest, WhatReflectionDoesNotKnowIsAnErrorOfThatQuestionAlone) {
  reflection::ServerReflectionRequest request;
  request.set_file_containing_symbol("no.such.Symbol");
  EXPECT_EQ(Ask(request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Ask(reflection::ServerReflectionRequest()).error_response().error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace nomad_harvester::plugin
