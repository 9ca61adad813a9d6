// SPDX-License-Identifier: Apache-2.0
// The services of an APM, as the agent calls them.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/demand/service.h"
#include "nomad_harvester/runtime/clock.h"

#include "grpcpp/grpcpp.h"
#include "local_address.h"
#include "plugin_server.h"
#include "proto/apm.grpc.pb.h"
#include "proto/base.grpc.pb.h"
#include "proto/target.grpc.pb.h"
#include "support/recording_sink.h"
#include "support/scoped_temp_dir.h"

namespace nomad_harvester::plugin {
namespace {

using ::testing::HasSubstr;

// The answer is the length of the query; "fail" fails.
class FakeDemand final : public demand::DemandService {
 public:
  absl::Status SetConfig(const config::StringMap& settings) override {
    config = settings;
    return absl::OkStatus();
  }
  absl::StatusOr<demand::Answer> Query(const runtime::Context&, const std::string& query) override {
    if (query == "fail") {
      return base::Unavailable("two problems:\nread EOF\nconnection refused by the server");
    }
    using std::chrono::milliseconds;
    return demand::Answer{.count = static_cast<std::int64_t>(query.size()),
                          .at = base::WallTime(milliseconds(1'700'000'000'250))};
  }
  void Stop() override { stopped = true; }

  config::StringMap config;
  bool stopped = false;
};

class ApmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.address = UnixAddress(directory_.Path("socket"));
    options.credentials = grpc::InsecureServerCredentials();
    options.logger = log::Logger(sink_, log::Level::kTrace);
    options.clock = clock_.get();
    options.on_shutdown = [] {};
    auto server = PluginServer::Start(ApmOf(service_), options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(options.address, grpc::InsecureChannelCredentials());
    base_ = base_proto::BasePluginService::NewStub(channel_);
    apm_ = apm_proto::APMPluginService::NewStub(channel_);
  }

  grpc::Status Query(const std::string& query, apm_proto::QueryResponse* response) {
    grpc::ClientContext rpc;
    apm_proto::QueryRequest request;
    request.set_query(query);
    request.mutable_time_range()->mutable_to()->set_seconds(1);
    return apm_->Query(&rpc, request, response);
  }

  FakeDemand service_;
  const support::ScopedTempDir directory_;
  std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  std::shared_ptr<support::RecordingSink> sink_ = std::make_shared<support::RecordingSink>();
  std::unique_ptr<PluginServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<base_proto::BasePluginService::Stub> base_;
  std::unique_ptr<apm_proto::APMPluginService::Stub> apm_;
};

TEST_F(ApmTest, PluginInfoIsTheDriversNameAndAnApm) {
  grpc::ClientContext rpc;
  base_proto::PluginInfoResponse response;
  ASSERT_TRUE(base_->PluginInfo(&rpc, {}, &response).ok());
  EXPECT_EQ(response.name(), "harvester");
  EXPECT_EQ(response.type(), base_proto::PLUGIN_TYPE_APM);
}

TEST_F(ApmTest, TheConfigurationReachesTheService) {
  grpc::ClientContext rpc;
  base_proto::SetConfigRequest request;
  (*request.mutable_config())["nomad_address"] = "http://nomad:4646";
  base_proto::SetConfigResponse response;
  ASSERT_TRUE(base_->SetConfig(&rpc, request, &response).ok());
  EXPECT_EQ(service_.config.at("nomad_address"), "http://nomad:4646");
}

TEST_F(ApmTest, AQueryHasOneValueWithTheTimeOfItsReading) {
  apm_proto::QueryResponse response;
  ASSERT_TRUE(Query("12345", &response).ok());
  ASSERT_EQ(response.timestamped_metric_size(), 1);
  EXPECT_EQ(response.timestamped_metric(0).value(), 5);
  EXPECT_EQ(response.timestamped_metric(0).timestamp().seconds(), 1'700'000'000);
  EXPECT_EQ(response.timestamped_metric(0).timestamp().nanos(), 250'000'000);
}

TEST_F(ApmTest, P4_an_error_is_one_line_and_restarts_no_policy) {
  apm_proto::QueryResponse response;
  const grpc::Status status = Query("fail", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(),
            "two problems: read end of file; connection was refused by the server");
  EXPECT_EQ(response.timestamped_metric_size(), 0);
}

TEST_F(ApmTest, QueriesOfDynamicApplicationSizingAreNotImplemented) {
  grpc::ClientContext rpc;
  apm_proto::QueryMultipleResponse response;
  const grpc::Status status = apm_->QueryMultiple(&rpc, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("Dynamic Application Sizing"));
}

TEST_F(ApmTest, AnApmScalesNothing) {
  const auto target = target_proto::TargetPluginService::NewStub(channel_);
  grpc::ClientContext rpc;
  target_proto::ScaleResponse response;
  EXPECT_EQ(target->Scale(&rpc, {}, &response).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ApmTest, TheServiceIsStoppedWithTheServer) {
  server_->Stop();
  EXPECT_TRUE(service_.stopped);
}

}  // namespace
}  // namespace nomad_harvester::plugin
