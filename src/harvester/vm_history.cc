// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/vm_history.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/metadata.h"

#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

// In bytes.
constexpr std::size_t kMaxWord = 128;
constexpr std::size_t kMaxWhy = 512;
constexpr std::size_t kMaxParts = 2048;

json TimeJson(const std::optional<base::WallTime>& time) {
  return time.value_or(base::WallTime{}) != base::WallTime{} ? json(base::FormatRfc3339(*time))
                                                             : json();
}

std::optional<base::WallTime> TimeIn(const json& object, const char* key) {
  return base::ToOptional(base::ParseRfc3339(base::GetString(object, key)));
}

// Whether `one` was removed after `other`.
bool IsNewer(const RemovedVm& one, const RemovedVm& other) {
  return std::pair(other.removed_at, one.name) < std::pair(one.removed_at, other.name);
}

}  // namespace

RemovedVm DescribeRemoval(const VirtualMachine& vm, const std::string& why, base::WallTime now) {
  RemovedVm removed{.name = vm.name};
  removed.template_hash = base::ToShortUtf8(vm.template_hash, kMaxWord);
  removed.template_parts = vm.template_parts;
  if (removed.template_parts.size() > kMaxParts) removed.template_parts.clear();
  removed.made_by = base::ToShortUtf8(vm.action_id, kMaxWord);
  removed.action = base::ToShortUtf8(vm.mark->action, kMaxWord);
  removed.why = base::ToShortUtf8(base::WithoutSecrets(why), kMaxWhy);
  removed.made_at = vm.created_at;
  removed.joined_at = vm.joined_at;
  removed.ready_at = vm.ready_at;
  removed.removed_at = now;
  return removed;
}

json ToJson(const RemovedVm& vm) {
  const auto parts = base::ParseJson(vm.template_parts, "template-parts");
  return {{"template", vm.template_hash},
          {"parts", parts.ok() && parts->is_object() ? *parts : json()},
          {"made_by", vm.made_by},
          {"action", vm.action},
          {"made", TimeJson(vm.made_at)},
          {"joined", TimeJson(vm.joined_at)},
          {"ready", TimeJson(vm.ready_at)},
          {"removed", TimeJson(vm.removed_at)},
          {"why", vm.why}};
}

json BuildHistory(const std::string& ns, const std::string& pool,
                  const std::vector<RemovedVm>& vms) {
  std::vector<RemovedVm> newest = vms;
  std::sort(newest.begin(), newest.end(), &IsNewer);
  if (newest.size() > kMaxHistory) newest.resize(kMaxHistory);
  json data = json::object();
  for (const RemovedVm& vm : newest) data[vm.name] = base::DumpJson(ToJson(vm));
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata",
           {{"name", LeaseName(pool)},
            {"namespace", ns},
            {"labels", {{kManagedByLabel, kManagedByValue}, {kPoolLabel, pool}}}}},
          {"data", std::move(data)}};
}

std::vector<RemovedVm> ParseHistory(const json& config_map) {
  std::vector<RemovedVm> vms;
  const json* const data = base::FindMember(config_map, "data");
  if (data == nullptr || !data->is_object()) return vms;
  for (const auto& line : data->items()) {
    const std::string text = base::GetString(*data, line.key());
    const json entry = base::ParseJson(text, line.key()).value_or(json());
    const json* const parts = base::FindMember(entry, "parts");
    RemovedVm vm{.name = line.key()};
    vm.template_hash = base::GetString(entry, "template");
    if (parts != nullptr && parts->is_object()) vm.template_parts = base::DumpJson(*parts);
    vm.made_by = base::GetString(entry, "made_by");
    vm.action = base::GetString(entry, "action");
    vm.why = base::GetString(entry, "why");
    vm.made_at = TimeIn(entry, "made").value_or(base::WallTime{});
    vm.joined_at = TimeIn(entry, "joined");
    vm.ready_at = TimeIn(entry, "ready");
    vm.removed_at = TimeIn(entry, "removed").value_or(base::WallTime{});
    vms.push_back(std::move(vm));
  }
  std::sort(vms.begin(), vms.end(), &IsNewer);
  return vms;
}

}  // namespace nomad_harvester::harvester
