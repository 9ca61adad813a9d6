// SPDX-License-Identifier: Apache-2.0
// What is read of VirtualMachines, their instances and ResourceQuotas.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_VM_FIELDS_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_VM_FIELDS_H_

#include <map>
#include <string>

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/harvester/quota.h"
#include "nomad_harvester/harvester/virtual_machine.h"

#include "absl/status/status.h"

namespace nomad_harvester::harvester {

const base::JsonFields<VirtualMachine>& VirtualMachineFields();
// Parses the annotations. Always OK: a member that cannot be read counts as absent.
absl::Status FinishVirtualMachine(VirtualMachine& vm);

const base::JsonFields<VirtualMachineInstance>& InstanceFields();

struct ResourceQuotaRecord : ResourceQuota {
  bool scoped = false;
  std::map<std::string, std::string> hard;  // by resource, as written
  std::map<std::string, std::string> used;
};
const base::JsonFields<ResourceQuotaRecord>& ResourceQuotaFields();
// Computes the lines. Always OK.
absl::Status FinishResourceQuota(ResourceQuotaRecord& record);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_VM_FIELDS_H_
