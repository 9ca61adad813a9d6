// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/scaling/maintenance.h"

namespace nomad_harvester::scaling {

absl::Status Maintenance::RequestReplacement(const runtime::Context& context,
                                             const harvester::VirtualMachine& vm,
                                             const std::optional<std::string>& reason) const {
  const harvester::VmStore vms(clients_.kube, vm.ns);
  return vms
      .Annotate(context, vm.name, vm.resource_version, {{harvester::kReplaceAnnotation, reason}})
      .status();
}

}  // namespace nomad_harvester::scaling
