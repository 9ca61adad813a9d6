// SPDX-License-Identifier: Apache-2.0
// A policy on the base of a template: what the policy says counts, and else what the template says.
#ifndef NOMAD_HARVESTER_SCALING_TEMPLATE_BASE_H_
#define NOMAD_HARVESTER_SCALING_TEMPLATE_BASE_H_

#include <string>
#include <vector>

#include "nomad_harvester/config/pool_policy.h"
#include "nomad_harvester/harvester/vm_template.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

// The policy with the template's values for the keys that it does not give; those of its VMs that
// are no key's are in the template's base. FAILED_PRECONDITION names the keys that neither has.
absl::Status FillFrom(const harvester::VmTemplate& base, config::PoolPolicy* policy);

// The base without what `policy`, as it was given, overrides.
harvester::VmBase BaseFor(const harvester::VmTemplate& base, const config::PoolPolicy& policy);

// What is not as in the template, or has a consequence, each in a few words.
std::vector<std::string> NotesOn(const harvester::VmTemplate& base,
                                 const config::PoolPolicy& policy);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_TEMPLATE_BASE_H_
