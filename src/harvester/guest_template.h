// SPDX-License-Identifier: Apache-2.0
// spec.template of a VirtualMachine: the guest, as KubeVirt runs it.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_GUEST_TEMPLATE_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_GUEST_TEMPLATE_H_

#include <map>
#include <string>

#include "nomad_harvester/harvester/vm_spec.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

// `labels` are the VM's: Harvester keeps those of the instance equal to the template's, so that
// they must stand here as well (harvester/harvester:pkg/controller/master/virtualmachine/
// vm_controller.go, SyncLabelsToVmi), and anti-affinity selects by them.
nlohmann::json BuildGuestTemplate(const VmSpec& vm_spec, const VmIdentity& identity,
                                  const std::map<std::string, std::string>& labels);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_GUEST_TEMPLATE_H_
