// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/object.h"

#include <string_view>

#include "nomad_harvester/base/json.h"

namespace nomad_harvester::kube {
namespace {

std::string MetadataText(const Json& object, std::string_view key) {
  const Json* metadata = base::FindMember(object, "metadata");
  return metadata == nullptr ? "" : base::GetString(*metadata, key);
}

}  // namespace

std::string NameOf(const Json& object) { return MetadataText(object, "name"); }

std::string ResourceVersionOf(const Json& object) {
  return MetadataText(object, "resourceVersion");
}

}  // namespace nomad_harvester::kube
