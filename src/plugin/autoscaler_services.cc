// SPDX-License-Identifier: Apache-2.0
#include "autoscaler_services.h"

#include <memory>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::plugin {

grpc::ServerUnaryReactor* BaseService::PluginInfo(grpc::CallbackServerContext* rpc,
                                                  const base_proto::PluginInfoRequest*,
                                                  base_proto::PluginInfoResponse* response) {
  response->set_name(NOMAD_HARVESTER_PLUGIN_NAME);
  response->set_type(base_proto::PLUGIN_TYPE_TARGET);
  grpc::ServerUnaryReactor* const reactor = rpc->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* BaseService::SetConfig(grpc::CallbackServerContext* rpc,
                                                 const base_proto::SetConfigRequest* request,
                                                 base_proto::SetConfigResponse*) {
  Work work;
  work.method = "SetConfig";
  work.run = [this, config = ToStringMap(request->config())](const runtime::Context&) {
    return service_.SetConfig(config);
  };
  return dispatcher_.Start(*rpc, std::move(work));
}

grpc::ServerUnaryReactor* TargetPluginService::Scale(grpc::CallbackServerContext* rpc,
                                                     const target_proto::ScaleRequest* request,
                                                     target_proto::ScaleResponse*) {
  Work work;
  work.method = "Scale";
  work.lane = Lane::kScale;
  work.aborted = Aborted::kPasses;
  // The request message is freed when the RPC ends, which a shutdown may do while the worker runs.
  work.run = [this, action = DecodeAction(*request),
              policy = ToStringMap(request->config())](const runtime::Context& context) {
    NH_RETURN_IF_ERROR(action);
    return service_.Scale(context, *action, policy);
  };
  return dispatcher_.Start(*rpc, std::move(work));
}

grpc::ServerUnaryReactor* TargetPluginService::Status(grpc::CallbackServerContext* rpc,
                                                      const target_proto::StatusRequest* request,
                                                      target_proto::StatusResponse* response) {
  const auto status = std::make_shared<scaling::TargetStatus>();
  Work work;
  work.method = "Status";
  work.run = [this, status,
              policy = ToStringMap(request->config())](const runtime::Context& context) {
    NH_ASSIGN_OR_RETURN(*status, service_.Status(context, policy));
    return absl::OkStatus();
  };
  work.fill = [status, response] { EncodeStatus(*status, response); };
  return dispatcher_.Start(*rpc, std::move(work));
}

}  // namespace nomad_harvester::plugin
