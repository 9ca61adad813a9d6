// SPDX-License-Identifier: Apache-2.0
// Builds spec.template of a VirtualMachine: the guest that KubeVirt runs.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_GUEST_TEMPLATE_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_GUEST_TEMPLATE_H_

#include <map>
#include <string>

#include "nomad_harvester/harvester/vm_spec.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

// `labels` are those of the VM. They must also be in the template, because Harvester keeps the
// instance's labels equal to the template's
// (harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go, SyncLabelsToVmi), and
// because anti-affinity selects by them.
nlohmann::json BuildGuestTemplate(const VmSpec& vm_spec, const VmIdentity& identity,
                                  const std::map<std::string, std::string>& labels);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_GUEST_TEMPLATE_H_
