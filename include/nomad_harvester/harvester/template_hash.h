// SPDX-License-Identifier: Apache-2.0
// A hash of a VM's sources, which shows whether the VM was created from the present policy.
#ifndef NOMAD_HARVESTER_HARVESTER_TEMPLATE_HASH_H_
#define NOMAD_HARVESTER_HARVESTER_TEMPLATE_HASH_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"

namespace nomad_harvester::harvester {

// The sources of the cloud-init Secret that VMs of one pool share.
struct TemplateSources {
  std::string user_data;         // unrendered
  std::string network_data;      // unrendered
  std::string template_version;  // "NS/NAME" of the VirtualMachineTemplateVersion; empty: none
  std::vector<std::string> public_keys;
};

// The value of the annotation template-hash: "v2:" and a hash of everything of the policy that
// shapes a VM: the sources, and of the specification the image (its names and its storage class),
// networks, CPU, memory, disk, run strategy, labels, annotations and tags. Nothing specific to a
// single VM and no variable's value is included, so that all VMs of one configuration have the same
// hash, on every platform and in every process.
std::string TemplateHash(const TemplateSources& sources, const VmSpec& vm_spec);

// Whether a VM with the annotation `stored` was created from something else than what `wanted`, a
// result of TemplateHash, describes. False if either is empty, or if `stored` has another version:
// then it hashes other things, and their difference means nothing. The version is the text before
// the first colon; the first version has none.
bool IsDrift(std::string_view stored, std::string_view wanted);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_TEMPLATE_HASH_H_
