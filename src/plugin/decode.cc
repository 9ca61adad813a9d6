// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <string>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::plugin {
namespace {

bool IsKnown(shared_proto::ScalingDirection direction) {
  return direction == shared_proto::SCALING_DIRECTION_NONE ||
         direction == shared_proto::SCALING_DIRECTION_DOWN ||
         direction == shared_proto::SCALING_DIRECTION_UP;
}

// The value is plain JSON and type_url has no meaning, so UnpackTo cannot be used.
absl::StatusOr<std::string> DecodeMeta(const std::string& value) {
  NH_ASSIGN_OR_RETURN(const nlohmann::json meta, base::ParseJson(value, "the action's meta"));
  if (meta.is_null()) return std::string();
  if (!meta.is_object()) return base::InvalidArgument("the action's meta is not a JSON object");
  return value;
}

}  // namespace

scaling::StringMap ToStringMap(const ProtoMap& map) { return {map.begin(), map.end()}; }

absl::StatusOr<scaling::ScaleAction> DecodeAction(const target_proto::ScaleRequest& request) {
  scaling::ScaleAction result;
  if (!request.has_action()) return result;
  const shared_proto::ScalingAction& action = request.action();
  if (!IsKnown(action.direction())) {
    return base::InvalidArgument("scale direction is unknown: " +
                                 std::to_string(static_cast<int>(action.direction())));
  }
  if (action.has_meta()) {
    NH_ASSIGN_OR_RETURN(result.meta_json, DecodeMeta(action.meta().value()));
  }
  result.count = action.count();
  result.reason = action.reason();
  return result;
}

void EncodeStatus(const scaling::TargetStatus& status, target_proto::StatusResponse* response) {
  response->set_ready(status.ready);
  response->set_count(status.count);
  for (const auto& [key, value] : status.meta) {
    (*response->mutable_meta())[base::ToValidUtf8(key)] = base::ToValidUtf8(value);
  }
}

}  // namespace nomad_harvester::plugin
