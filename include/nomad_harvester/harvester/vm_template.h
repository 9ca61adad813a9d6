// SPDX-License-Identifier: Apache-2.0
// Reads the VM defined by a version of Harvester's VirtualMachineTemplate.
//
// The object is never changed: Harvester refuses updates of a version
// (harvester/harvester:pkg/webhook/resources/templateversion/validator.go). It holds metadata and
// spec of a VirtualMachine (pkg/apis/harvesterhci.io/v1beta1/template.go), with the templates of
// its claims in an annotation.
#ifndef NOMAD_HARVESTER_HARVESTER_VM_TEMPLATE_H_
#define NOMAD_HARVESTER_HARVESTER_VM_TEMPLATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/policy/machine_fields.h"
#include "nomad_harvester/policy/strategies.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

// A version of a template, without data of a single VM and of cloud-init.
struct VmTemplate {
  std::string id;  // "NAMESPACE/NAME (UID)" of the version
  // In the form of the policy's keys. Empty, 0 or nullopt: the template does not define it.
  std::int64_t cpu_cores = 0;
  std::int64_t memory_bytes = 0;
  std::vector<Network> networks;
  std::vector<policy::DeviceRequest> host_devices;
  std::vector<policy::DeviceRequest> gpus;
  std::map<std::string, std::string> node_selector;
  policy::MachineValues machine;  // the fields with taken_from_template
  std::optional<policy::RunStrategy> run_strategy;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  VmBase base;  // everything else
  // CPU and memory can be changed while the VM runs; their sizes are limits.
  bool hotplug = false;
  // Key pairs that Harvester's UI merges into the template's user data, as "NAMESPACE/KEYPAIR".
  std::vector<std::string> ssh_keys;
  // Parts of the template that are ignored, or that have a consequence for the operator.
  std::vector<std::string> notes;
};

// `version`: a VirtualMachineTemplateVersion; `ns`: the VMs' namespace. FAILED_PRECONDITION lists
// everything in it that a pool's VMs cannot have.
absl::StatusOr<VmTemplate> ReadVmTemplate(const nlohmann::json& version, const std::string& ns);

// The keys of a policy that take precedence over a template.
struct TemplateOverrides {
  bool cpu = false;
  bool memory = false;
  bool networks = false;
  bool data_disks = false;  // replace all further hard disks
  bool firmware = false;
  policy::MachineValues machine = {};
};
// Returns `base` without the parts that the policy overrides.
VmBase Override(const VmBase& base, const TemplateOverrides& overrides);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_VM_TEMPLATE_H_
