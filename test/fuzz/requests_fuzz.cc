// SPDX-License-Identifier: Apache-2.0
// The requests of the autoscaler's two services. The first byte of the input says which: "c"
// SetConfig, "s" Status, "a" Scale, "m" the meta of a Scale alone; the message follows.
#include <cmath>
#include <cstdint>
#include <string>

#include <google/protobuf/stubs/logging.h>
#include <nlohmann/json.hpp>

#include "autoscaler_services.h"
#include "fuzz/fuzz.h"

namespace {

namespace plugin = nomad_harvester::plugin;
namespace scaling = nomad_harvester::scaling;
using nomad_harvester::fuzz::Require;

// As on the wire.
template <typename Message>
Message SentAgain(const Message& message) {
  Message again;
  Require(again.ParseFromString(message.SerializeAsString()), "what was written can be read");
  return again;
}

// `Request` has a map `config`.
template <typename Request>
void CheckConfig(const Request& request) {
  const scaling::StringMap values = plugin::ToStringMap(request.config());
  Require(values.size() == request.config().size(), "no key of a map is lost");
  Request same;
  same.mutable_config()->insert(values.begin(), values.end());
  Require(plugin::ToStringMap(SentAgain(same).config()) == values,
          "a map that is sent again is the same");
}

// The agent writes an int64, which the service converts the number to.
void CheckMeta(const std::string& text) {
  if (text.empty()) return;
  const auto meta = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  Require(meta.is_object(), "meta that is accepted is a JSON object");
  const auto count = meta.find("nomad_autoscaler.dry_run.count");
  if (count == meta.end() || !count->is_number()) return;
  const auto number = count->get<double>();
  Require(std::abs(number) <= 0x1p63 && std::trunc(number) == number,
          "the count of a dry run is a number of VMs");
}

void CheckScale(const plugin::target_proto::ScaleRequest& request) {
  CheckConfig(request);
  const auto action = plugin::DecodeAction(request);
  if (!action.ok()) return;
  CheckMeta(action->meta_json);
  plugin::target_proto::ScaleRequest same;
  same.mutable_action()->set_count(action->count);
  same.mutable_action()->set_reason(action->reason);
  same.mutable_action()->set_direction(plugin::shared_proto::SCALING_DIRECTION_NONE);
  if (!action->meta_json.empty()) {
    same.mutable_action()->mutable_meta()->set_value(action->meta_json);
  }
  const auto again = plugin::DecodeAction(SentAgain(same));
  Require(again.ok(), "an action that was accepted is accepted again");
  Require(again->count == action->count && again->reason == action->reason &&
              again->meta_json == action->meta_json,
          "an action that is sent again means the same");
}

template <typename Request, typename Check>
void ParseAndCheck(std::string_view message, const Check& check) {
  Request request;
  if (request.ParseFromArray(message.data(), static_cast<int>(message.size()))) check(request);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  google::protobuf::SetLogHandler(nullptr);  // texts that are not UTF-8 are reported in the log
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view message = nomad_harvester::fuzz::Text(data, size).substr(1);
  switch (data[0]) {
    case 'c':
      ParseAndCheck<plugin::base_proto::SetConfigRequest>(
          message, [](const auto& request) { CheckConfig(request); });
      break;
    case 's':
      ParseAndCheck<plugin::target_proto::StatusRequest>(
          message, [](const auto& request) { CheckConfig(request); });
      break;
    case 'a':
      ParseAndCheck<plugin::target_proto::ScaleRequest>(message, &CheckScale);
      break;
    case 'm': {
      plugin::target_proto::ScaleRequest request;
      request.mutable_action()->set_count(-1);
      request.mutable_action()->set_direction(plugin::shared_proto::SCALING_DIRECTION_NONE);
      request.mutable_action()->mutable_meta()->set_value(std::string(message));
      CheckScale(request);
      break;
    }
    default:
      break;
  }
  return 0;
}
