// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::kube {
namespace {

absl::Status Undecodable(std::string_view purpose, std::string_view why) {
  return base::Internal(std::string(purpose) +
                        ": the reply cannot be decoded: " + std::string(why));
}

}  // namespace

absl::StatusOr<Observed> DecodeObject(const http::HttpResponse& response,
                                      std::string_view purpose) {
  absl::StatusOr<Json> object = base::ParseJson(response.body, "the body");
  if (!object.ok()) return Undecodable(purpose, base::Message(object.status()));
  if (!object->is_object()) return Undecodable(purpose, "it is not a JSON object");
  return Observed{*std::move(object), http::ServerDate(response)};
}

std::string NameOf(const Json& object) {
  const Json* name = base::FindPath(object, {"metadata", "name"});
  return name != nullptr && name->is_string() ? name->get<std::string>() : std::string();
}

std::string ResourceVersionOf(const Json& object) {
  const Json* version = base::FindPath(object, {"metadata", "resourceVersion"});
  return version != nullptr && version->is_string() ? version->get<std::string>() : std::string();
}

}  // namespace nomad_harvester::kube
