// SPDX-License-Identifier: Apache-2.0
// Names the parts of a VM's template: `harvester` reports the parts in which two VMs differ, and
// `config` lets a policy ignore some. Thread-safe.
#ifndef NOMAD_HARVESTER_POLICY_TEMPLATE_PARTS_H_
#define NOMAD_HARVESTER_POLICY_TEMPLATE_PARTS_H_

#include <set>
#include <string>
#include <string_view>

namespace nomad_harvester::policy {

// Returns the part to which a member of the hashed document belongs, by the name that operators
// know: "data_disks" belongs to "disks".
std::string TemplatePartOf(std::string_view member);

// Returns all of them.
const std::set<std::string, std::less<>>& TemplatePartNames();

}  // namespace nomad_harvester::policy

#endif  // NOMAD_HARVESTER_POLICY_TEMPLATE_PARTS_H_
