// SPDX-License-Identifier: Apache-2.0
#include "autoscaler_services.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"

#include "nlohmann/json.hpp"
#include "resident_pages.h"

namespace nomad_harvester::plugin {
namespace {

bool IsKnown(shared_proto::ScalingDirection direction) {
  return direction == shared_proto::SCALING_DIRECTION_NONE ||
         direction == shared_proto::SCALING_DIRECTION_DOWN ||
         direction == shared_proto::SCALING_DIRECTION_UP;
}

// The agent writes an int64 (hashicorp/nomad-autoscaler:sdk/strategy.go, SetDryRun); another number
// could not be converted to one.
absl::Status CheckDryRunCount(const nlohmann::json& meta) {
  constexpr std::string_view kKey = "nomad_autoscaler.dry_run.count";
  const nlohmann::json* const count = base::FindMember(meta, kKey);
  if (count == nullptr || !count->is_number()) return absl::OkStatus();
  // 2^63 is the first double that is too large; -2^63 itself fits.
  constexpr double kTooLarge = 9223372036854775808.0;
  bool fits = true;
  if (count->is_number_float()) {
    const auto value = count->get<double>();
    fits = std::trunc(value) == value && value >= -kTooLarge && value < kTooLarge;
  } else if (count->is_number_unsigned()) {
    fits = count->get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max();
  }
  if (fits) return absl::OkStatus();
  return base::InvalidArgument("the action's meta: " + std::string(kKey) +
                               " must be a whole number of VMs, got " + count->dump());
}

// The value is plain JSON and type_url has no meaning, so UnpackTo cannot be used.
absl::StatusOr<std::string> DecodeMeta(const std::string& value) {
  NH_ASSIGN_OR_RETURN(const nlohmann::json meta, base::ParseJson(value, "the action's meta"));
  if (meta.is_null()) return std::string();
  if (!meta.is_object()) return base::InvalidArgument("the action's meta is not a JSON object");
  NH_RETURN_IF_ERROR(CheckDryRunCount(meta));
  return value;
}

Work SetConfigWork(scaling::TargetService& service, const CallRules& rules,
                   const base_proto::SetConfigRequest& request) {
  Work work;
  work.method = "SetConfig";
  work.run = [&service, refusal = rules.set_config_refusal, config = ToStringMap(request.config())](
                 const runtime::Context&, std::string*) {
    if (!refusal.empty()) return base::MakeStatus(absl::StatusCode::kPermissionDenied, refusal);
    absl::Status outcome = service.SetConfig(config);
    DropCodePages();  // the start is over
    return outcome;
  };
  return work;
}

Work ScaleWork(scaling::TargetService& service, const CallRules& rules,
               const target_proto::ScaleRequest& request) {
  Work work;
  work.method = "Scale";
  work.lane = Lane::kScale;
  work.aborted = Aborted::kPasses;
  work.run = [&service, action = DecodeAction(request),
              no_action = rules.scale_needs_action && !request.has_action(),
              policy = ToStringMap(request.config())](const runtime::Context& context,
                                                      std::string*) {
    NH_RETURN_IF_ERROR(action);
    if (no_action) {
      return base::InvalidArgument(
          "the request has no action: it would mean a count of 0 and remove every VM of the pool");
    }
    return service.Scale(context, *action, policy);
  };
  return work;
}

Work StatusWork(scaling::TargetService& service, const target_proto::StatusRequest& request) {
  Work work;
  work.method = "Status";
  work.run = [&service, policy = ToStringMap(request.config())](const runtime::Context& context,
                                                                std::string* reply) {
    NH_ASSIGN_OR_RETURN(const scaling::TargetStatus status, service.Status(context, policy));
    target_proto::StatusResponse response;
    EncodeStatus(status, &response);
    response.SerializeToString(reply);
    return absl::OkStatus();
  };
  return work;
}

// A method whose requests become work of the dispatcher.
template <typename Request>
Methods::mapped_type Dispatched(Dispatcher& dispatcher,
                                std::function<Work(const Request&)> work_of) {
  return [&dispatcher, work_of = std::move(work_of)](const std::shared_ptr<Rpc>& rpc) {
    ReadRequest<Request>(rpc, [&dispatcher, work_of, rpc](const Request& request) {
      dispatcher.Start(rpc, work_of(request));
    });
  };
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
    (*response->mutable_meta())[base::ToValidUtf8(key)] =
        base::EscapeUnseen(base::WithoutSecrets(value));
  }
}

void AddAutoscalerServices(scaling::TargetService& service, Dispatcher& dispatcher,
                           const CallRules& rules, Methods* methods) {
  const std::string base = "/hashicorp.nomad_autoscaler.plugins.base.proto.v1.BasePluginService/";
  (*methods)[base + "PluginInfo"] = [](const std::shared_ptr<Rpc>& rpc) {
    ReadRequest<base_proto::PluginInfoRequest>(rpc, [rpc](const auto&) {
      base_proto::PluginInfoResponse response;
      response.set_name(NOMAD_HARVESTER_PLUGIN_NAME);
      response.set_type(base_proto::PLUGIN_TYPE_TARGET);
      rpc->Finish(grpc::Status::OK, response.SerializeAsString());
    });
  };
  (*methods)[base + "SetConfig"] = Dispatched<base_proto::SetConfigRequest>(
      dispatcher,
      [&service, rules](const auto& request) { return SetConfigWork(service, rules, request); });
  const std::string target =
      "/hashicorp.nomad_autoscaler.plugins.target.proto.v1.TargetPluginService/";
  (*methods)[target + "Scale"] = Dispatched<target_proto::ScaleRequest>(
      dispatcher,
      [&service, rules](const auto& request) { return ScaleWork(service, rules, request); });
  (*methods)[target + "Status"] = Dispatched<target_proto::StatusRequest>(
      dispatcher, [&service](const auto& request) { return StatusWork(service, request); });
}

}  // namespace nomad_harvester::plugin
