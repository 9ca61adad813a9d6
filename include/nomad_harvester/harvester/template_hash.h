// SPDX-License-Identifier: Apache-2.0
// Whether a VM was made from what the policy says today.
#ifndef NOMAD_HARVESTER_HARVESTER_TEMPLATE_HASH_H_
#define NOMAD_HARVESTER_HARVESTER_TEMPLATE_HASH_H_

#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"

namespace nomad_harvester::harvester {

// What makes VMs of one pool differ from those made before: nothing of a single VM, no value of a
// variable, so that all VMs of one configuration share the hash.
struct TemplateSources {
  std::string user_data;         // unrendered
  std::string network_data;      // unrendered
  Image image;                   // resolved; its names and its storage class count
  std::string template_version;  // "NS/NAME" of the VirtualMachineTemplateVersion; empty: none
  std::vector<Network> networks;
  std::vector<std::string> public_keys;
};

// The value of the annotation template-hash: the same on every platform and in every process.
std::string TemplateHash(const TemplateSources& sources);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_TEMPLATE_HASH_H_
