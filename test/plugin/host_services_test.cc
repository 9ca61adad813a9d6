// SPDX-License-Identifier: Apache-2.0
// Health, and calls that no service serves.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autoscaler_services.h"
#include "grpcpp/generic/generic_stub.h"
#include "local_address.h"
#include "plugin/server_fixture.h"

namespace nomad_harvester::plugin {
namespace {

class HostServicesTest : public ServerFixture {
 protected:
  struct Reply {
    grpc::Status status;
    std::string bytes;
  };
  // A unary call of any method with any bytes.
  Reply Call(const std::string& method, const std::string& request) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext rpc;
    grpc::CompletionQueue queue;
    const grpc::Slice slice(request);
    const auto call = stub.PrepareUnaryCall(&rpc, method, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer bytes;
    Reply reply;
    call->Finish(&bytes, &reply.status, &queue);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    queue.Shutdown();
    std::vector<grpc::Slice> slices;
    if (reply.status.ok() && bytes.Dump(&slices).ok()) {
      for (const grpc::Slice& part : slices) {
        reply.bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
      }
    }
    return reply;
  }
};

TEST_F(HostServicesTest, TheServerAndThePluginAreHealthy) {
  constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
  const std::string serving = "\x08\x01";  // HealthCheckResponse{status: SERVING}
  EXPECT_EQ(Call(kCheck, "").bytes, serving);
  EXPECT_EQ(Call(kCheck, "\x0a\x06plugin").bytes, serving);
  EXPECT_EQ(Call(kCheck, "\x0a\x05other").status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(HostServicesTest, AMethodThatDoesNotExistIsUnimplemented) {
  for (const char* method : {"/plugin.GRPCController/Other",
                             "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    const grpc::Status status = Call(method, "").status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
    EXPECT_EQ(status.error_message(), "") << "not the caller's text (rule P4)";
  }
}

TEST_F(HostServicesTest, ARequestThatIsNoMessageIsRefusedWithoutACall) {
  const std::string service =
      "/hashicorp.nomad_autoscaler.plugins.target.proto.v1.TargetPluginService/";
  for (const char* method : {"Scale", "Status"}) {
    EXPECT_FALSE(Call(service + method, "\xff\xff").status.ok()) << method;
  }
  EXPECT_EQ(service_->scales_begun() + service_->statuses_begun(), 0);
  EXPECT_TRUE(Status({}).ok());
}

TEST(HostServices, I7_a_stream_that_ends_is_forgotten) {
  const support::ScopedTempDir directory;
  const std::unique_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  CallRegistry streams;
  const auto services = MakeHostServices([] {}, streams);
  grpc::ServerBuilder builder;
  for (const auto& service : services) builder.RegisterService(service.get());
  const std::string address = UnixAddress(directory.Path("socket"));
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = ::plugin::GRPCStdio::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  const auto open_after = [&](base::Duration limit) {
    return streams.WaitUntilNone(runtime::Context::Background(*clock).WithTimeout(limit));
  };
  grpc::ClientContext rpc;
  const auto stdio = stub->StreamStdio(&rpc, {});
  stdio->WaitForInitialMetadata();
  EXPECT_EQ(open_after(base::Duration::zero()), 1U);
  rpc.TryCancel();
  EXPECT_EQ(stdio->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(open_after(std::chrono::seconds(20)), 0U);
}

}  // namespace
}  // namespace nomad_harvester::plugin
