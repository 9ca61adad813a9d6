// SPDX-License-Identifier: Apache-2.0
#include "vm_facts.h"

#include <algorithm>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::scenario {
namespace {

using nlohmann::json;

std::string StringAt(const json& object, std::initializer_list<std::string_view> path) {
  const json* found = base::FindPath(object, path);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string Key(std::string_view name) { return std::string(kPrefix).append(name); }

std::string NameOf(const json& object) { return StringAt(object, {"metadata", "name"}); }

std::string NamespaceOf(const json& object) { return StringAt(object, {"metadata", "namespace"}); }

std::string LabelOf(const json& object, std::string_view key) {
  return StringAt(object, {"metadata", "labels", key});
}

std::string AnnotationOf(const json& object, std::string_view key) {
  return StringAt(object, {"metadata", "annotations", key});
}

std::string PoolOf(const json& object) { return LabelOf(object, Key("pool")); }

bool IsManaged(const json& object) {
  return LabelOf(object, "app.kubernetes.io/managed-by") == "nomad-harvester-autoscaler";
}

std::string VmOfLeftover(const json& object) {
  constexpr std::string_view kSecretSuffix = "-cloudinit";
  const std::string name = NameOf(object);
  if (name.ends_with(kSecretSuffix)) return name.substr(0, name.size() - kSecretSuffix.size());
  const std::size_t disk = name.rfind("-disk-");
  return disk == std::string::npos ? "" : name.substr(0, disk);
}

std::vector<std::string> RestoredClaimsOf(const json& vm) {
  std::vector<std::string> claims;
  const json* volumes = base::FindPath(vm, {"spec", "template", "spec", "volumes"});
  if (volumes == nullptr || !volumes->is_array()) return claims;
  for (const json& volume : *volumes) {
    const std::string claim = StringAt(volume, {"persistentVolumeClaim", "claimName"});
    const bool is_disk = claim.find("-disk-") != std::string::npos;
    if (claim.starts_with("restore-") && is_disk) claims.push_back(claim);
  }
  return claims;
}

bool IsTerminating(const json& object) {
  return !StringAt(object, {"metadata", "deletionTimestamp"}).empty();
}

bool IsMember(const json& vm) {
  const std::string uuid = StringAt(vm, {"spec", "template", "spec", "domain", "firmware", "uuid"});
  return !PoolOf(vm).empty() && !uuid.empty() &&
         base::EqualsIgnoreCase(AnnotationOf(vm, Key("self")), NameOf(vm) + "/" + uuid);
}

json MarkOf(const json& vm) {
  const std::string text = AnnotationOf(vm, kMarkKey);
  if (text.empty()) return json::object();
  auto parsed = base::ParseJson(text, "mark");
  return parsed.ok() && parsed->is_object() ? *std::move(parsed) : json::object();
}

bool IsMarked(const json& vm) {
  return base::FindPath(vm, {"metadata", "annotations", kMarkKey}) != nullptr;
}

std::optional<base::WallTime> JoinDeadlineOf(const json& vm) {
  const auto created = base::ParseRfc3339(StringAt(vm, {"metadata", "creationTimestamp"}));
  const auto limit = base::ParseGoDuration(AnnotationOf(vm, Key("join-timeout")));
  if (!created.ok() || !limit.ok()) return std::nullopt;
  return *created + *limit;
}

std::string PrintableStatus(const json& vm) { return StringAt(vm, {"status", "printableStatus"}); }

bool Runs(const json& vm) {
  const std::string status = PrintableStatus(vm);
  return status == "Running" || status == "Paused" || status == "Migrating";
}

bool IsPaused(const json& vm) { return PrintableStatus(vm) == "Paused"; }

bool IsLate(const json& mark, base::WallTime now) {
  const auto grace = base::ParseGoDuration(base::GetString(mark, "grace"));
  if (!grace.ok()) return false;
  const std::string deadline = base::GetString(mark, "drain_deadline");
  const auto from =
      base::ParseRfc3339(deadline == "now" ? base::GetString(mark, "marked_at") : deadline);
  return from.ok() && now >= *from + *grace;
}

std::string HolderOf(const json& lease) { return StringAt(lease, {"spec", "holderIdentity"}); }

bool IsLive(const json& lease, base::WallTime now) {
  const auto renewed = base::ParseRfc3339(StringAt(lease, {"spec", "renewTime"}));
  return renewed.ok() && now - *renewed < std::chrono::seconds(20);
}

json WithHolder(json lease, const std::string& holder, base::WallTime now) {
  lease["spec"]["holderIdentity"] = holder;
  lease["spec"]["renewTime"] = base::FormatRfc3339Micros(now);
  return lease;
}

bool IsOurDrain(const json& node) {
  return StringAt(node, {"LastDrain", "Meta", "drained_by"}) == "nomad-autoscaler" &&
         !StringAt(node, {"LastDrain", "Meta", "vm_uid"}).empty();
}

std::optional<json> DrainFor(const json& node, const std::string& uid) {
  if (!IsOurDrain(node) || StringAt(node, {"LastDrain", "Meta", "vm_uid"}) != uid) {
    return std::nullopt;
  }
  return *base::FindPath(node, {"LastDrain", "Meta"});
}

bool IsDraining(const json& node) {
  const json* drain = base::FindMember(node, "DrainStrategy");
  return drain != nullptr && drain->is_object();
}

bool IsEligible(const json& node) {
  return base::GetString(node, "SchedulingEligibility") == "eligible";
}

std::string LastDrainStatus(const json& node) { return StringAt(node, {"LastDrain", "Status"}); }

bool IsActive(const json& allocation) {
  const std::string status = base::GetString(allocation, "ClientStatus");
  if (status == "pending" || status == "running") return true;
  const json* tasks = base::FindMember(allocation, "TaskStates");
  if (tasks == nullptr || !tasks->is_object()) return false;
  return std::any_of(tasks->begin(), tasks->end(),
                     [](const json& task) { return base::GetString(task, "State") != "dead"; });
}

}  // namespace nomad_harvester::scenario
