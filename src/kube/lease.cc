// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/lease.h"

#include <algorithm>
#include <limits>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/kube/object.h"

namespace nomad_harvester::kube {
namespace {

int ReadInt(const Json& spec, std::string_view key) {
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp<std::int64_t>(base::GetInt(spec, key), 0, kMax));
}

std::optional<base::WallTime> ReadTime(const Json& spec, std::string_view key) {
  const absl::StatusOr<base::WallTime> time = base::ParseRfc3339(base::GetString(spec, key));
  if (!time.ok()) return std::nullopt;
  return *time;
}

void SetTime(Json& spec, const char* key, const std::optional<base::WallTime>& time) {
  if (time) spec[key] = base::FormatRfc3339Micros(*time);
}

}  // namespace

Lease ParseLease(const Observed& observed) {
  Lease lease;
  lease.server_time = observed.server_time;
  if (const Json* metadata = base::FindMember(observed.object, "metadata")) {
    lease.name = base::GetString(*metadata, "name");
    lease.ns = base::GetString(*metadata, "namespace");
    lease.uid = base::GetString(*metadata, "uid");
    lease.resource_version = base::GetString(*metadata, "resourceVersion");
    lease.annotations = base::GetStringMap(*metadata, "annotations");
  }
  if (const Json* spec = base::FindMember(observed.object, "spec")) {
    lease.holder = base::GetString(*spec, "holderIdentity");
    lease.lease_duration_seconds = ReadInt(*spec, "leaseDurationSeconds");
    lease.renew_time = ReadTime(*spec, "renewTime");
    lease.acquire_time = ReadTime(*spec, "acquireTime");
    lease.transitions = ReadInt(*spec, "leaseTransitions");
  }
  return lease;
}

Json LeaseObject(const Lease& lease, const std::map<std::string, std::string>& labels) {
  Json metadata = {{"name", lease.name}, {"namespace", lease.ns}};
  if (!labels.empty()) metadata["labels"] = labels;
  if (!lease.annotations.empty()) metadata["annotations"] = lease.annotations;
  Json spec = {{"leaseTransitions", lease.transitions}};
  if (!lease.holder.empty()) spec["holderIdentity"] = lease.holder;
  if (lease.lease_duration_seconds > 0) {
    spec["leaseDurationSeconds"] = lease.lease_duration_seconds;
  }
  SetTime(spec, "acquireTime", lease.acquire_time);
  SetTime(spec, "renewTime", lease.renew_time);
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

Json LeasePatch(const LeaseChange& change) {
  Json metadata = Json::object();
  if (!change.resource_version.empty()) metadata["resourceVersion"] = change.resource_version;
  for (const auto& [key, value] : change.annotations) {
    metadata["annotations"][key] = value ? Json(*value) : Json(nullptr);
  }
  Json spec = Json::object();
  if (change.holder) spec["holderIdentity"] = *change.holder;
  if (change.lease_duration_seconds) spec["leaseDurationSeconds"] = *change.lease_duration_seconds;
  if (change.transitions) spec["leaseTransitions"] = *change.transitions;
  SetTime(spec, "acquireTime", change.acquire_time);
  SetTime(spec, "renewTime", change.renew_time);

  Json patch = Json::object();
  if (!metadata.empty()) patch["metadata"] = std::move(metadata);
  if (!spec.empty()) patch["spec"] = std::move(spec);
  return patch;
}

}  // namespace nomad_harvester::kube
