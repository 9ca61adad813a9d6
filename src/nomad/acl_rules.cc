// SPDX-License-Identifier: Apache-2.0
#include "acl_rules.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/json.h"

namespace nomad_harvester::nomad {
namespace {

bool HasCapability(const nlohmann::json& entry, const char* capability) {
  const auto* list = base::FindMember(entry, "Capabilities");
  if (list == nullptr || !list->is_array()) return false;
  return std::any_of(list->begin(), list->end(), [capability](const nlohmann::json& item) {
    const auto* text = item.get_ptr<const std::string*>();
    return text != nullptr && *text == capability;
  });
}

}  // namespace

bool NamespaceRules::Add(const nlohmann::json& rules_json) {
  if (!rules_json.is_object()) return false;
  const auto* list = base::FindMember(rules_json, "Namespaces");
  // A policy without namespace rules has null here.
  if (list == nullptr || list->is_null()) return true;
  if (!list->is_array()) return false;
  for (const nlohmann::json& entry : *list) {
    if (!entry.is_object()) return false;
    Rule& rule = rules_[base::GetString(entry, "Name")];
    rule.denied = rule.denied || HasCapability(entry, "deny");
    rule.read_job = rule.read_job || HasCapability(entry, "read-job");
  }
  return true;
}

bool NamespaceRules::ReadJobEverywhere() const {
  const auto reads = [](const Rule& rule) { return rule.read_job && !rule.denied; };
  return rules_.count("*") == 1 &&
         std::all_of(rules_.begin(), rules_.end(),
                     [&reads](const auto& entry) { return reads(entry.second); });
}

}  // namespace nomad_harvester::nomad
