// SPDX-License-Identifier: Apache-2.0
// Hashes a VM's sources, to detect whether the VM was created from the current policy.
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
  std::string template_version;  // VmTemplate's id; empty: none
  std::vector<std::string> public_keys;
};

// The value of the annotation template-hash: "v2:" and a hash of everything in the policy that
// shapes a VM: the sources, and from the specification the image (its names and its storage class),
// networks, CPU, memory, disks, devices, firmware, placement, run strategy, labels, annotations and
// tags. Nothing specific to a single VM and no variable's value is included, so that all VMs of one
// configuration have the same hash, on every platform and in every process.
std::string TemplateHash(const TemplateSources& sources, const VmSpec& vm_spec);

// The value of the annotation template-parts: a JSON object with a short hash for each part of the
// same data: {"cpu": "1f0e…", "image": …}. A part that the policy leaves at its default may be
// absent.
std::string TemplateParts(const TemplateSources& sources, const VmSpec& vm_spec);

// The parts that differ between two such values, sorted. Empty if either is absent or unreadable,
// so that the parts are unknown. Does not compare versions.
std::vector<std::string> DriftedParts(std::string_view stored, std::string_view wanted);

// True if a VM with the annotation `stored` was created from another template than `wanted`, a
// result of TemplateHash. False if either is empty, or if their versions differ, because then they
// hash different data. The version is the text before the first colon; the first version has none.
bool IsDrift(std::string_view stored, std::string_view wanted);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_TEMPLATE_HASH_H_
