// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "commands/command_run.h"

namespace nomad_harvester::scaling {

absl::Status Maintenance::RequestReplacement(const runtime::Context& context,
                                             const harvester::VirtualMachine& vm,
                                             const std::optional<std::string>& reason) const {
  return AnnotateVm(context, harvester::VmStore(clients_.kube, vm.ns), vm,
                    {{harvester::kReplaceAnnotation, reason}},
                    [&](const harvester::VirtualMachine& now) {
                      return now.replace_request == reason.value_or("");
                    });
}

}  // namespace nomad_harvester::scaling
