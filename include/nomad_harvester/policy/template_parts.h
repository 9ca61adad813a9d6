// SPDX-License-Identifier: Apache-2.0
// The parts of what a VM is made of, by which `harvester` tells in what two VMs differ and `config`
// lets a policy ignore some. Thread-safe.
#ifndef NOMAD_HARVESTER_POLICY_TEMPLATE_PARTS_H_
#define NOMAD_HARVESTER_POLICY_TEMPLATE_PARTS_H_

#include <set>
#include <string>
#include <string_view>

namespace nomad_harvester::policy {

// The part that a member of the hashed document belongs to, by the name that operators know:
// "data_disks" belongs to "disks".
std::string TemplatePartOf(std::string_view member);

// All of them.
const std::set<std::string, std::less<>>& TemplatePartNames();

}  // namespace nomad_harvester::policy

#endif  // NOMAD_HARVESTER_POLICY_TEMPLATE_PARTS_H_
