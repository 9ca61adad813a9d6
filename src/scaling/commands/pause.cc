// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/lease.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {

namespace {

// A success proves nothing unless the reply is the Lease with the written text: a proxy may have
// answered.
absl::Status CheckStored(const kube::Observed& reply, const std::string& name,
                         const std::optional<std::string>& text) {
  const kube::Lease lease = kube::ParseLease(reply);
  const auto stored = lease.annotations.find(harvester::kLeasePausedAnnotation);
  const bool is_as_wanted = text.has_value()
                                ? stored != lease.annotations.end() && stored->second == *text
                                : stored == lease.annotations.end();
  if (!lease.resource_version.empty() && is_as_wanted) return absl::OkStatus();
  return base::Unavailable("Lease " + name +
                           ": the reply is not the Lease with what was written: whether the pool "
                           "is paused is not known; repeat it, and check harvester_url");
}

}  // namespace

absl::StatusOr<bool> Maintenance::Pause(const runtime::Context& context, const PoolKey& key,
                                        const std::optional<harvester::Hold>& hold) const {
  if (!clients_.config->pool_lease) {
    return base::FailedPrecondition(
        "pool_lease is \"false\": a pool without a Lease cannot be "
        "paused");
  }
  const std::string name = harvester::LeaseName(key.pool);
  std::optional<std::string> text;
  if (hold.has_value()) text = harvester::FormatHold(*hold);
  const kube::LeaseChange change{.annotations = {{harvester::kLeasePausedAnnotation, text}}};
  const auto patched =
      clients_.kube->MergePatch(context, kube::kLeases, key.ns, name, kube::LeasePatch(change));
  if (!kube::IsNotFound(patched.status())) {
    NH_RETURN_IF_ERROR(patched);
    NH_RETURN_IF_ERROR(CheckStored(*patched, name, text));
    return true;
  }
  if (!text.has_value()) return false;
  kube::Lease lease{.name = name, .ns = key.ns};
  lease.annotations[harvester::kLeasePausedAnnotation] = *text;
  NH_ASSIGN_OR_RETURN(
      const kube::Observed created,
      clients_.kube->Create(
          context, kube::kLeases, key.ns,
          kube::LeaseObject(lease, {{harvester::kManagedByLabel, harvester::kManagedByValue},
                                    {harvester::kPoolLabel, key.pool}})));
  NH_RETURN_IF_ERROR(CheckStored(created, name, text));
  return false;
}

}  // namespace nomad_harvester::scaling
