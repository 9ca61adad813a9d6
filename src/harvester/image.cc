// SPDX-License-Identifier: Apache-2.0
#include "image.h"

#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

bool IsCondition(const Condition* condition, std::string_view status) {
  return condition != nullptr && condition->status == status;
}

std::string WithMessage(std::string text, const Condition* condition) {
  if (condition != nullptr && !condition->message.empty()) text += ": " + condition->message;
  return text;
}

// The conditions as set by harvester/harvester:pkg/image/common/operator.go, stateTransit: while a
// failed import is retried, only RetryLimitExceeded has the cause.
std::string ImportProblem(const json& object, const std::vector<Condition>& conditions) {
  const Condition* imported = FindCondition(conditions, "Imported");
  const Condition* initialized = FindCondition(conditions, "Initialized");
  const Condition* retry = FindCondition(conditions, "RetryLimitExceeded");
  if (IsCondition(imported, "False")) return WithMessage("its import failed", imported);
  if (IsCondition(initialized, "False")) {
    return WithMessage("its initialisation failed", initialized);
  }
  if (IsCondition(retry, "True")) return WithMessage("its import was given up", retry);
  std::string text = "it is still being imported";
  if (const json* status = base::FindMember(object, "status")) {
    text += " (" + std::to_string(base::GetInt(*status, "progress")) + " %)";
  }
  return WithMessage(std::move(text), retry);
}

std::string FindProblem(const json& object, const Image& image, bool terminating) {
  if (terminating) return "it is being deleted";
  const std::vector<Condition> conditions = ParseConditions(object);
  if (!image.imported) return ImportProblem(object, conditions);
  const Condition* missing = FindCondition(conditions, "BackingImageMissing");
  if (IsCondition(missing, "True")) return WithMessage("its backing image is missing", missing);
  if (image.storage_class.empty()) return "Harvester has not given it a storage class yet";
  return "";
}

}  // namespace

Image ParseImage(const json& object) {
  Metadata metadata = ParseMetadata(object);
  Image image;
  image.ns = std::move(metadata.ns);
  image.name = std::move(metadata.name);
  if (const json* spec = base::FindMember(object, "spec")) {
    image.display_name = base::GetString(*spec, "displayName");
  }
  if (const json* status = base::FindMember(object, "status")) {
    image.storage_class = base::GetString(*status, "storageClassName");
    image.virtual_size = base::GetInt(*status, "virtualSize");
  }
  image.imported = IsCondition(FindCondition(ParseConditions(object), "Imported"), "True");
  image.problem = FindProblem(object, image, metadata.deleted_at.has_value());
  return image;
}

}  // namespace nomad_harvester::harvester
