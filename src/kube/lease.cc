// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/lease.h"

#include <algorithm>
#include <limits>

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/kube/observed.h"

namespace nomad_harvester::kube {
namespace {

template <auto kMember>
void TakeCount(Lease& lease, const base::JsonEvent& event) {
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  lease.*kMember = static_cast<int>(std::clamp<std::int64_t>(event.integer, 0, kMax));
}
template <auto kMember>
void TakeTime(Lease& lease, const base::JsonEvent& event) {
  lease.*kMember = base::ToOptional(base::ParseRfc3339(event.text));
}

const base::JsonFields<Lease>& LeaseFields() {
  static const auto* const kFields = new base::JsonFields<Lease>({
      {"metadata.name", &base::SetText<&Lease::name>},
      {"metadata.namespace", &base::SetText<&Lease::ns>},
      {"metadata.uid", &base::SetText<&Lease::uid>},
      {"metadata.resourceVersion", &base::SetText<&Lease::resource_version>},
      {"metadata.annotations.*", &base::PutText<&Lease::annotations>},
      {"spec.holderIdentity", &base::SetText<&Lease::holder>},
      {"spec.leaseDurationSeconds", &TakeCount<&Lease::lease_duration_seconds>},
      {"spec.renewTime", &TakeTime<&Lease::renew_time>},
      {"spec.acquireTime", &TakeTime<&Lease::acquire_time>},
      {"spec.leaseTransitions", &TakeCount<&Lease::transitions>},
  });
  return *kFields;
}

void SetTime(Json& spec, const char* key, const std::optional<base::WallTime>& time) {
  if (time) spec[key] = base::FormatRfc3339Micros(*time);
}

}  // namespace

Lease ParseLease(const Observed& observed) {
  Lease lease = LeaseFields().Read(observed.object);
  lease.server_time = observed.server_time;
  return lease;
}

absl::StatusOr<Lease> ParseLeaseReply(const absl::StatusOr<Observed>& reply,
                                      const std::string& name) {
  NH_RETURN_IF_ERROR(reply);
  Lease lease = ParseLease(*reply);
  if (!lease.resource_version.empty()) return lease;
  return base::Unavailable("Lease " + name + ": the reply is no Lease; check harvester_url");
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
