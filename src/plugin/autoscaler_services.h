// SPDX-License-Identifier: Apache-2.0
// Implements the autoscaler's two gRPC services with the target service.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_AUTOSCALER_SERVICES_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_AUTOSCALER_SERVICES_H_

#include "nomad_harvester/scaling/target_service.h"

#include "decode.h"
#include "dispatcher.h"
#include "proto/base.grpc.pb.h"
#include "proto/target.grpc.pb.h"

namespace nomad_harvester::plugin {

namespace base_proto = hashicorp::nomad_autoscaler::plugins::base::proto::v1;

// PluginInfo replies directly; all other calls go through the dispatcher.
class BaseService final : public base_proto::BasePluginService::CallbackService {
 public:
  BaseService(scaling::TargetService& service, Dispatcher& dispatcher)
      : service_(service), dispatcher_(dispatcher) {}

  grpc::ServerUnaryReactor* PluginInfo(grpc::CallbackServerContext* rpc,
                                       const base_proto::PluginInfoRequest* request,
                                       base_proto::PluginInfoResponse* response) override;
  grpc::ServerUnaryReactor* SetConfig(grpc::CallbackServerContext* rpc,
                                      const base_proto::SetConfigRequest* request,
                                      base_proto::SetConfigResponse* response) override;

 private:
  scaling::TargetService& service_;
  Dispatcher& dispatcher_;
};

class TargetPluginService final : public target_proto::TargetPluginService::CallbackService {
 public:
  TargetPluginService(scaling::TargetService& service, Dispatcher& dispatcher)
      : service_(service), dispatcher_(dispatcher) {}

  grpc::ServerUnaryReactor* Scale(grpc::CallbackServerContext* rpc,
                                  const target_proto::ScaleRequest* request,
                                  target_proto::ScaleResponse* response) override;
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* rpc,
                                   const target_proto::StatusRequest* request,
                                   target_proto::StatusResponse* response) override;

 private:
  scaling::TargetService& service_;
  Dispatcher& dispatcher_;
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_AUTOSCALER_SERVICES_H_
