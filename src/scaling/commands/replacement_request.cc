// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/kube/lease.h"
#include "nomad_harvester/scaling/maintenance.h"

namespace nomad_harvester::scaling {

absl::StatusOr<bool> Maintenance::ResumeReplacement(const runtime::Context& context,
                                                    const PoolKey& key) const {
  const kube::LeaseChange change{
      .annotations = {{harvester::kLeaseReplacementAnnotation, std::nullopt}}};
  const absl::Status patched =
      clients_.kube
          ->MergePatch(context, kube::kLeases, key.ns, harvester::LeaseName(key.pool),
                       kube::LeasePatch(change))
          .status();
  if (kube::IsNotFound(patched)) return false;
  NH_RETURN_IF_ERROR(patched);
  return true;
}

absl::Status Maintenance::RequestReplacement(const runtime::Context& context,
                                             const harvester::VirtualMachine& vm,
                                             const std::optional<std::string>& reason) const {
  const harvester::VmStore vms(clients_.kube, vm.ns);
  return vms
      .Annotate(context, vm.name, vm.resource_version, {{harvester::kReplaceAnnotation, reason}})
      .status();
}

}  // namespace nomad_harvester::scaling
