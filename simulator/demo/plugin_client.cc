// SPDX-License-Identifier: Apache-2.0
#include "plugin_client.h"

#include <chrono>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::demo {
namespace {

namespace proto = hashicorp::nomad_autoscaler::plugins::target::proto::v1;
namespace shared = hashicorp::nomad_autoscaler::plugins::shared::proto::v1;

constexpr auto kStartLimit = std::chrono::seconds(15);
// A Status needs one read of both systems.
constexpr auto kStatusLimit = std::chrono::seconds(7);

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// absl's codes have the same values as gRPC's.
absl::Status ToAbsl(const grpc::Status& status) {
  return base::MakeStatus(static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message());
}

}  // namespace

PluginClient::PluginClient(const std::string& address, Policy policy)
    : policy_(std::move(policy)),
      channel_(Connect(address)),
      target_(proto::TargetPluginService::NewStub(channel_)) {}

absl::Status PluginClient::WaitUntilServing() {
  if (channel_->WaitForConnected(std::chrono::system_clock::now() + kStartLimit)) {
    return absl::OkStatus();
  }
  return base::Unavailable("the plugin does not answer");
}

absl::StatusOr<PluginClient::Answer> PluginClient::Status() {
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + kStatusLimit);
  proto::StatusRequest request;
  for (const auto& [key, value] : policy_) (*request.mutable_config())[key] = value;
  proto::StatusResponse response;
  const grpc::Status status = target_->Status(&call, request, &response);
  if (!status.ok()) return ToAbsl(status);
  return Answer{response.ready(), response.count()};
}

absl::Status PluginClient::Scale(grpc::ClientContext& call, std::int64_t from, std::int64_t count,
                                 bool dry_run) {
  proto::ScaleRequest request;
  for (const auto& [key, value] : policy_) (*request.mutable_config())[key] = value;
  request.mutable_action()->set_reason("demo");
  request.mutable_action()->set_count(dry_run ? -1 : count);
  request.mutable_action()->set_direction(count > from ? shared::SCALING_DIRECTION_UP
                                                       : shared::SCALING_DIRECTION_DOWN);
  if (dry_run) {
    request.mutable_action()->mutable_meta()->set_value(
        R"({"nomad_autoscaler.dry_run": true, "nomad_autoscaler.dry_run.count": )" +
        std::to_string(count) + "}");
  }
  proto::ScaleResponse response;
  return ToAbsl(target_->Scale(&call, request, &response));
}

}  // namespace nomad_harvester::demo
