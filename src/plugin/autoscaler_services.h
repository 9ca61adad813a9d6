// SPDX-License-Identifier: Apache-2.0
// Implements the autoscaler's two gRPC services on top of the target service, and converts
// messages.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_AUTOSCALER_SERVICES_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_AUTOSCALER_SERVICES_H_

#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/target_service.h"

#include "absl/status/statusor.h"
#include "dispatcher.h"
#include "google/protobuf/map.h"
#include "grpcpp/server_builder.h"
#include "proto/base.pb.h"
#include "proto/target.pb.h"

namespace nomad_harvester::plugin {

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

// Converts strings to valid UTF-8, because the host refuses a message with invalid UTF-8.
void EncodeStatus(const scaling::TargetStatus& status, target_proto::StatusResponse* response);

// Restrictions on callers other than the agent.
struct CallRules {
  std::string set_config_refusal;   // PERMISSION_DENIED with this text; empty: allowed
  bool scale_needs_action = false;  // false: an absent action is a count of 0, as for the agent
};

// The two services. PluginInfo replies directly; all other calls go through the dispatcher. The
// target service and the dispatcher must outlive them.
std::vector<std::unique_ptr<grpc::Service>> MakeAutoscalerServices(scaling::TargetService& service,
                                                                   Dispatcher& dispatcher,
                                                                   const CallRules& rules);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_AUTOSCALER_SERVICES_H_
