// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/quota.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

constexpr std::int64_t kThousand = 1000;
constexpr std::int64_t kLargestWhole = std::numeric_limits<std::int64_t>::max() / kThousand;

// The API server writes quantities in canonical form: fractions are whole thousandths, "m"
// (kubernetes/apimachinery:pkg/api/resource/quantity.go).
std::optional<std::int64_t> Thousandths(std::string_view text) {
  if (!text.empty() && text.back() == 'm') {
    const auto value = base::ParseInt(text.substr(0, text.size() - 1));
    return value.ok() ? std::optional(*value) : std::nullopt;
  }
  const auto value = base::ParseQuantity(text);
  if (!value.ok() || *value > kLargestWhole || *value < -kLargestWhole) return std::nullopt;
  return *value * kThousand;
}

bool HasScopes(const json& object) {
  const json* scopes = base::FindPath(object, {"spec", "scopes"});
  const json* selector = base::FindPath(object, {"spec", "scopeSelector"});
  return (scopes != nullptr && !scopes->empty()) || (selector != nullptr && !selector->empty());
}

// The resources that one VM needs, in thousandths.
std::map<std::string, std::int64_t> NeedsOf(const VmSpec& vm_spec) {
  const std::int64_t disk = std::min(vm_spec.disk_bytes, kLargestWhole) * kThousand;
  const std::string by_class = vm_spec.image.storage_class + ".storageclass.storage.k8s.io/";
  std::map<std::string, std::int64_t> needs = {
      {"limits.cpu", vm_spec.cpu_cores * kThousand},
      {"limits.memory", std::min(vm_spec.memory_bytes, kLargestWhole) * kThousand},
      {"requests.storage", disk},
      {by_class + "requests.storage", disk}};
  for (const char* const one :
       {"pods", "count/pods", "persistentvolumeclaims", "count/persistentvolumeclaims", "secrets",
        "count/secrets", "count/virtualmachines.kubevirt.io",
        "count/virtualmachineinstances.kubevirt.io"}) {
    needs[one] = kThousand;
  }
  needs[by_class + "persistentvolumeclaims"] = kThousand;
  return needs;
}

}  // namespace

ResourceQuota ParseResourceQuota(const json& object) {
  ResourceQuota quota{.name = ParseMetadata(object).name, .lines = {}};
  const json* hard = base::FindPath(object, {"status", "hard"});
  const json* used = base::FindPath(object, {"status", "used"});
  if (HasScopes(object) || hard == nullptr || !hard->is_object() || used == nullptr) return quota;
  for (const auto& [resource, value] : hard->items()) {
    if (!value.is_string()) continue;
    QuotaLine line{.hard_text = value.get<std::string>(),
                   .used_text = base::GetString(*used, resource)};
    const std::optional<std::int64_t> most = Thousandths(line.hard_text);
    const std::optional<std::int64_t> taken = Thousandths(line.used_text);
    if (!most.has_value() || !taken.has_value()) continue;
    line.hard = *most;
    line.used = *taken;
    quota.lines.emplace(resource, std::move(line));
  }
  return quota;
}

std::optional<QuotaRoom> FindQuotaRoom(const std::vector<ResourceQuota>& quotas,
                                       const VmSpec& vm_spec) {
  std::optional<QuotaRoom> least;
  for (const auto& [resource, need] : NeedsOf(vm_spec)) {
    if (need <= 0) continue;
    for (const ResourceQuota& quota : quotas) {
      const auto line = quota.lines.find(resource);
      if (line == quota.lines.end()) continue;
      const std::int64_t room =
          std::max<std::int64_t>(0, line->second.hard - line->second.used) / need;
      if (least.has_value() && least->vms <= room) continue;
      least = QuotaRoom{.vms = room,
                        .limit = "ResourceQuota " + quota.name + ": " + line->second.used_text +
                                 " of " + line->second.hard_text + " " + resource + " are used"};
    }
  }
  return least;
}

}  // namespace nomad_harvester::harvester
