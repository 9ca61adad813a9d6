// SPDX-License-Identifier: Apache-2.0
// The gRPC services: the autoscaler's, on top of what the plugin does, with the conversion of
// messages; and go-plugin's own.
#ifndef NOMAD_HARVESTER_PLUGIN_AUTOSCALER_SERVICES_H_
#define NOMAD_HARVESTER_PLUGIN_AUTOSCALER_SERVICES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/demand/service.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/target_service.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatcher.h"
#include "google/protobuf/map.h"
#include "grpcpp/server_builder.h"
#include "proto/apm.pb.h"
#include "proto/base.pb.h"
#include "proto/target.pb.h"

namespace nomad_harvester::plugin {

namespace apm_proto = hashicorp::nomad_autoscaler::plugins::apm::proto::v1;
namespace target_proto = hashicorp::nomad_autoscaler::plugins::target::proto::v1;
namespace shared_proto = hashicorp::nomad_autoscaler::plugins::shared::proto::v1;
namespace base_proto = hashicorp::nomad_autoscaler::plugins::base::proto::v1;

using ProtoMap = google::protobuf::Map<std::string, std::string>;

scaling::StringMap ToStringMap(const ProtoMap& map);

// INVALID_ARGUMENT where the autoscaler's own server refuses an action: an unknown or unspecified
// direction, or meta that is not a JSON object; also if the count of a dry run is not an int64. An
// absent action has count 0; an absent or null meta is empty
// (hashicorp/nomad-autoscaler:plugins/shared/util.go, ProtoToScalingAction).
absl::StatusOr<scaling::ScaleAction> DecodeAction(const target_proto::ScaleRequest& request);

// One value, with the time at which Nomad was read.
void EncodeAnswer(const demand::Answer& answer, apm_proto::QueryResponse* response);

// Converts strings to valid UTF-8, because the host refuses a message with invalid UTF-8.
void EncodeStatus(const scaling::TargetStatus& status, target_proto::StatusResponse* response);

// Restrictions on callers other than the agent.
struct CallRules {
  std::string set_config_refusal;   // PERMISSION_DENIED with this text; empty: allowed
  bool scale_needs_action = false;  // false: an absent action is a count of 0, as for the agent
};

// What the process serves: the agent starts one for each of its blocks, of one type. The service
// behind it must outlive it.
struct Plugin {
  base_proto::PluginType type{};
  std::function<absl::Status(const config::StringMap& values)> set_config;
  std::function<void(const runtime::Context& context)> stop;
  std::function<std::unique_ptr<grpc::Service>(Dispatcher& dispatcher, const CallRules& rules)>
      make_service;
};
Plugin TargetOf(scaling::TargetService& service);
Plugin ApmOf(demand::DemandService& service);

// The service of every plugin and that of its type. PluginInfo replies directly; all other calls go
// through the dispatcher. The plugin and the dispatcher must outlive them.
std::vector<std::unique_ptr<grpc::Service>> MakeAutoscalerServices(const Plugin& plugin,
                                                                   Dispatcher& dispatcher,
                                                                   const CallRules& rules);

// GRPCController calls `on_shutdown`, which must not block, after the reply has been sent.
// GRPCStdio is a stream without messages: the plugin prints only the handshake line to stdout, and
// the host itself reads stderr, which has the log. GRPCBroker reads messages and ignores them,
// because the autoscaler opens the stream and never uses it. Open streams are registered in
// `streams`, which must outlive the services.
std::vector<std::unique_ptr<grpc::Service>> MakeHostServices(std::function<void()> on_shutdown,
                                                             CallRegistry& streams);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_PLUGIN_AUTOSCALER_SERVICES_H_
