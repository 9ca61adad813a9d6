// SPDX-License-Identifier: Apache-2.0
// Converts the agent's messages to the target service's types and back.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_DECODE_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_DECODE_H_

#include <string>

#include "nomad_harvester/scaling/target_service.h"

#include "absl/status/statusor.h"
#include "google/protobuf/map.h"
#include "proto/target.pb.h"

namespace nomad_harvester::plugin {

namespace target_proto = hashicorp::nomad_autoscaler::plugins::target::proto::v1;
namespace shared_proto = hashicorp::nomad_autoscaler::plugins::shared::proto::v1;

using ProtoMap = google::protobuf::Map<std::string, std::string>;

scaling::StringMap ToStringMap(const ProtoMap& map);

// INVALID_ARGUMENT where the autoscaler's own server refuses an action: an unknown or unspecified
// direction, or meta that is not a JSON object. An absent action has count 0; an absent or null
// meta is empty (hashicorp/nomad-autoscaler:plugins/shared/util.go, ProtoToScalingAction).
absl::StatusOr<scaling::ScaleAction> DecodeAction(const target_proto::ScaleRequest& request);

// Converts strings to valid UTF-8: the host refuses a message with invalid UTF-8.
void EncodeStatus(const scaling::TargetStatus& status, target_proto::StatusResponse* response);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_DECODE_H_
