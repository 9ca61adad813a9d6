// SPDX-License-Identifier: Apache-2.0
#include "plugin/server_fixture.h"

#include <chrono>
#include <utility>

#include "local_address.h"

namespace nomad_harvester::plugin {
namespace {

void Fill(const scaling::StringMap& from, ProtoMap* to) {
  for (const auto& [key, value] : from) (*to)[key] = value;
}

target_proto::ScaleRequest ScaleRequest(const scaling::StringMap& script) {
  target_proto::ScaleRequest request;
  request.mutable_action()->set_count(1);
  request.mutable_action()->set_direction(shared_proto::SCALING_DIRECTION_UP);
  Fill(script, request.mutable_config());
  return request;
}

}  // namespace

void ServerFixture::SetUp() { Restart({}); }

void ServerFixture::Restart(const LaneSizes& lanes, const CallRules& rules) {
  server_.reset();
  service_ = std::make_unique<FakeService>(log::Logger(sink_, log::Level::kTrace));
  ServerOptions options;
  options.address = UnixAddress(directory_.Path("socket"));
  options.credentials = grpc::InsecureServerCredentials();
  options.logger = log::Logger(sink_, log::Level::kTrace);
  options.clock = clock_.get();
  options.lanes = lanes;
  options.rules = rules;
  options.on_shutdown = [this] {
    on_shutdown_();
    ++shutdowns_;
  };
  absl::StatusOr<std::unique_ptr<PluginServer>> server =
      PluginServer::Start(TargetOf(*service_), options);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  channel_ = grpc::CreateChannel(options.address, grpc::InsecureChannelCredentials());
  base_ = base_proto::BasePluginService::NewStub(channel_);
  target_ = target_proto::TargetPluginService::NewStub(channel_);
}

void ServerFixture::TearDown() {
  if (service_ != nullptr) service_->Release();
  if (server_ != nullptr) server_->Stop();
  for (const auto& call : background_) call->thread.join();
  server_.reset();
}

grpc::Status ServerFixture::Scale(const scaling::StringMap& script, grpc::ClientContext& rpc) {
  target_proto::ScaleResponse response;
  return target_->Scale(&rpc, ScaleRequest(script), &response);
}

grpc::Status ServerFixture::Scale(const scaling::StringMap& script) {
  grpc::ClientContext rpc;
  return Scale(script, rpc);
}

grpc::Status ServerFixture::Status(const scaling::StringMap& script,
                                   target_proto::StatusResponse* response,
                                   base::Duration deadline) {
  grpc::ClientContext rpc;
  rpc.set_deadline(std::chrono::system_clock::now() +
                   std::chrono::duration_cast<std::chrono::system_clock::duration>(deadline));
  target_proto::StatusRequest request;
  Fill(script, request.mutable_config());
  target_proto::StatusResponse ignored;
  return target_->Status(&rpc, request, response != nullptr ? response : &ignored);
}

grpc::Status ServerFixture::SetConfig(const scaling::StringMap& config) {
  grpc::ClientContext rpc;
  base_proto::SetConfigRequest request;
  Fill(config, request.mutable_config());
  base_proto::SetConfigResponse response;
  return base_->SetConfig(&rpc, request, &response);
}

ServerFixture::Background& ServerFixture::StartScale(const scaling::StringMap& script) {
  Background& call = *background_.emplace_back(std::make_unique<Background>());
  call.thread = std::thread([this, script, &call] {
    call.status = Scale(script, call.rpc);
    call.done = true;
  });
  return call;
}

ServerFixture::Background& ServerFixture::StartStatus(const scaling::StringMap& script,
                                                      base::Duration deadline) {
  Background& call = *background_.emplace_back(std::make_unique<Background>());
  call.thread = std::thread([this, script, deadline, &call] {
    call.status = Status(script, nullptr, deadline);
    call.done = true;
  });
  return call;
}

void ServerFixture::WaitUntil(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), limit) << "it never came true";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace nomad_harvester::plugin
