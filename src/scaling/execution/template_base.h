// SPDX-License-Identifier: Apache-2.0
// Combines a policy with its template: the policy's values take precedence.
#ifndef NOMAD_HARVESTER_SCALING_TEMPLATE_BASE_H_
#define NOMAD_HARVESTER_SCALING_TEMPLATE_BASE_H_

#include <string>
#include <vector>

#include "nomad_harvester/config/pool_policy.h"
#include "nomad_harvester/harvester/vm_template.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

// Fills keys that the policy does not set from the template. Template values that have no key are
// in the template's base. FAILED_PRECONDITION names the keys that neither sets.
absl::Status FillFrom(const harvester::VmTemplate& base, config::PoolPolicy* policy);

// Returns the base without the parts that `policy`, as given, overrides.
harvester::VmBase BaseFor(const harvester::VmTemplate& base, const config::PoolPolicy& policy);

// Returns notes of a few words on differences from the template and on their consequences.
std::vector<std::string> NotesOn(const harvester::VmTemplate& base,
                                 const config::PoolPolicy& policy);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_TEMPLATE_BASE_H_
