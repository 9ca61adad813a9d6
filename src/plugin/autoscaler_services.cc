// SPDX-License-Identifier: Apache-2.0
#include "autoscaler_services.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"

#include "grpcpp/support/server_callback.h"
#include "nlohmann/json.hpp"
#include "proto/apm.grpc.pb.h"
#include "proto/base.grpc.pb.h"
#include "proto/target.grpc.pb.h"

namespace nomad_harvester::plugin {
namespace {

bool IsKnown(shared_proto::ScalingDirection direction) {
  return direction == shared_proto::SCALING_DIRECTION_NONE ||
         direction == shared_proto::SCALING_DIRECTION_DOWN ||
         direction == shared_proto::SCALING_DIRECTION_UP;
}

// The agent writes an int64 (hashicorp/nomad-autoscaler:sdk/strategy.go, SetDryRun). Any other
// number could not be read as a count of VMs.
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

class BasePlugin final : public base_proto::BasePluginService::CallbackService {
 public:
  BasePlugin(const Plugin& plugin, Dispatcher& dispatcher, const CallRules& rules)
      : plugin_(plugin), dispatcher_(dispatcher), refusal_(rules.set_config_refusal) {}

 private:
  grpc::ServerUnaryReactor* PluginInfo(grpc::CallbackServerContext* rpc,
                                       const base_proto::PluginInfoRequest*,
                                       base_proto::PluginInfoResponse* response) override {
    response->set_name(NOMAD_HARVESTER_PLUGIN_NAME);
    response->set_type(plugin_.type);
    grpc::ServerUnaryReactor* const reactor = rpc->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerUnaryReactor* SetConfig(grpc::CallbackServerContext* rpc,
                                      const base_proto::SetConfigRequest* request,
                                      base_proto::SetConfigResponse*) override {
    Work work;
    work.method = "SetConfig";
    work.run = [this, config = ToStringMap(request->config())](const runtime::Context&) {
      if (refusal_.empty()) return plugin_.set_config(config);
      return base::MakeStatus(absl::StatusCode::kPermissionDenied, refusal_);
    };
    return dispatcher_.Start(*rpc, std::move(work));
  }

  const Plugin& plugin_;
  Dispatcher& dispatcher_;
  const std::string refusal_;
};

class TargetPlugin final : public target_proto::TargetPluginService::CallbackService {
 public:
  TargetPlugin(scaling::TargetService& service, Dispatcher& dispatcher, const CallRules& rules)
      : service_(service), dispatcher_(dispatcher), needs_action_(rules.scale_needs_action) {}

 private:
  grpc::ServerUnaryReactor* Scale(grpc::CallbackServerContext* rpc,
                                  const target_proto::ScaleRequest* request,
                                  target_proto::ScaleResponse*) override {
    Work work;
    work.method = "Scale";
    work.lane = Lane::kScale;
    work.aborted = Aborted::kPasses;
    work.run = [this, action = DecodeAction(*request),
                no_action = needs_action_ && !request->has_action(),
                policy = ToStringMap(request->config())](const runtime::Context& context) {
      NH_RETURN_IF_ERROR(action);
      if (no_action) {
        return base::InvalidArgument(
            "the request has no action: it would mean a count of 0 and remove every VM of the "
            "pool");
      }
      return service_.Scale(context, *action, policy);
    };
    return dispatcher_.Start(*rpc, std::move(work));
  }

  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* rpc,
                                   const target_proto::StatusRequest* request,
                                   target_proto::StatusResponse* response) override {
    const auto status = std::make_shared<scaling::TargetStatus>();
    Work work;
    work.method = "Status";
    work.run = [this, status,
                policy = ToStringMap(request->config())](const runtime::Context& context) {
      NH_ASSIGN_OR_RETURN(*status, service_.Status(context, policy));
      return absl::OkStatus();
    };
    work.fill_response = [status, response] { EncodeStatus(*status, response); };
    return dispatcher_.Start(*rpc, std::move(work));
  }

  scaling::TargetService& service_;
  Dispatcher& dispatcher_;
  const bool needs_action_;
};

class ApmPlugin final : public apm_proto::APMPluginService::CallbackService {
 public:
  ApmPlugin(demand::DemandService& service, Dispatcher& dispatcher)
      : service_(service), dispatcher_(dispatcher) {}

 private:
  // The time range is not used: the answer is about now.
  grpc::ServerUnaryReactor* Query(grpc::CallbackServerContext* rpc,
                                  const apm_proto::QueryRequest* request,
                                  apm_proto::QueryResponse* response) override {
    const auto answer = std::make_shared<demand::Answer>();
    Work work;
    work.method = "Query";
    work.run = [this, answer, query = request->query()](const runtime::Context& context) {
      absl::StatusOr<demand::Answer> answered = service_.Query(context, query);
      if (!answered.ok()) {
        // The agent logs it at each evaluation.
        return base::MakeStatus(answered.status().code(),
                                base::OneLine(base::Message(answered.status())));
      }
      *answer = *answered;
      return absl::OkStatus();
    };
    work.fill_response = [answer, response] { EncodeAnswer(*answer, response); };
    return dispatcher_.Start(*rpc, std::move(work));
  }

  grpc::ServerUnaryReactor* QueryMultiple(grpc::CallbackServerContext* rpc,
                                          const apm_proto::QueryRequest*,
                                          apm_proto::QueryMultipleResponse*) override {
    grpc::ServerUnaryReactor* const reactor = rpc->DefaultReactor();
    reactor->Finish({grpc::StatusCode::UNIMPLEMENTED,
                     "this APM answers single queries of policies, and no queries of Dynamic "
                     "Application Sizing"});
    return reactor;
  }

  demand::DemandService& service_;
  Dispatcher& dispatcher_;
};

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

void EncodeAnswer(const demand::Answer& answer, apm_proto::QueryResponse* response) {
  shared_proto::TimestampedMetric* const metric = response->add_timestamped_metric();
  const auto since_epoch = answer.at.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  metric->mutable_timestamp()->set_seconds(seconds.count());
  metric->mutable_timestamp()->set_nanos(
      static_cast<std::int32_t>((since_epoch - seconds).count()));
  metric->set_value(static_cast<double>(answer.count));
}

Plugin TargetOf(scaling::TargetService& service) {
  return {.type = base_proto::PLUGIN_TYPE_TARGET,
          .set_config = [&service](const auto& values) { return service.SetConfig(values); },
          .stop = [&service](const runtime::Context& context) { service.Stop(context); },
          .make_service =
              [&service](Dispatcher& dispatcher, const CallRules& rules) {
                return std::make_unique<TargetPlugin>(service, dispatcher, rules);
              }};
}

Plugin ApmOf(demand::DemandService& service) {
  return {.type = base_proto::PLUGIN_TYPE_APM,
          .set_config = [&service](const auto& values) { return service.SetConfig(values); },
          .stop = [&service](const runtime::Context&) { service.Stop(); },
          .make_service =
              [&service](Dispatcher& dispatcher, const CallRules&) {
                return std::make_unique<ApmPlugin>(service, dispatcher);
              }};
}

std::vector<std::unique_ptr<grpc::Service>> MakeAutoscalerServices(const Plugin& plugin,
                                                                   Dispatcher& dispatcher,
                                                                   const CallRules& rules) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<BasePlugin>(plugin, dispatcher, rules));
  services.push_back(plugin.make_service(dispatcher, rules));
  return services;
}

}  // namespace nomad_harvester::plugin
