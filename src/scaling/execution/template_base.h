// SPDX-License-Identifier: Apache-2.0
// Combines a policy with its template: the policy's values count, and the template's where the
// policy has none.
#ifndef NOMAD_HARVESTER_SCALING_TEMPLATE_BASE_H_
#define NOMAD_HARVESTER_SCALING_TEMPLATE_BASE_H_

#include <string>
#include <vector>

#include "nomad_harvester/config/pool_policy.h"
#include "nomad_harvester/harvester/vm_template.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

// Fills the keys that the policy does not give from the template. Template values that have no key
// are in the template's base. FAILED_PRECONDITION names the keys that neither has.
absl::Status FillFrom(const harvester::VmTemplate& base, config::PoolPolicy* policy);

// The base without what `policy`, as it was given, overrides.
harvester::VmBase BaseFor(const harvester::VmTemplate& base, const config::PoolPolicy& policy);

// What differs from the template, or has a consequence; each note has a few words.
std::vector<std::string> NotesOn(const harvester::VmTemplate& base,
                                 const config::PoolPolicy& policy);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_TEMPLATE_BASE_H_
