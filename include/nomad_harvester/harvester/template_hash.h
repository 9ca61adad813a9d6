// SPDX-License-Identifier: Apache-2.0
// A hash of a VM's sources, which shows whether the VM was created from the present policy.
#ifndef NOMAD_HARVESTER_HARVESTER_TEMPLATE_HASH_H_
#define NOMAD_HARVESTER_HARVESTER_TEMPLATE_HASH_H_

#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"

namespace nomad_harvester::harvester {

// The sources that VMs of one pool share. Nothing specific to a single VM and no variable's value
// is included, so that all VMs of one configuration have the same hash.
struct TemplateSources {
  std::string user_data;         // unrendered
  std::string network_data;      // unrendered
  Image image;                   // resolved; hashed: its names and its storage class
  std::string template_version;  // "NS/NAME" of the VirtualMachineTemplateVersion; empty: none
  std::vector<Network> networks;
  std::vector<std::string> public_keys;
};

// The value of the annotation template-hash: identical on every platform and in every process.
std::string TemplateHash(const TemplateSources& sources);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_TEMPLATE_HASH_H_
