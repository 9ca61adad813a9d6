// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/lease.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {

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
    return true;
  }
  if (!text.has_value()) return false;
  kube::Lease lease{.name = name, .ns = key.ns};
  lease.annotations[harvester::kLeasePausedAnnotation] = *text;
  NH_RETURN_IF_ERROR(clients_.kube->Create(
      context, kube::kLeases, key.ns,
      kube::LeaseObject(lease, {{harvester::kManagedByLabel, harvester::kManagedByValue},
                                {harvester::kPoolLabel, key.pool}})));
  return false;
}

}  // namespace nomad_harvester::scaling
