// SPDX-License-Identifier: Apache-2.0
// Removes the leftovers of an interrupted action or a removed VM: claims, Secrets, owners (rule
// C10).
#ifndef NOMAD_HARVESTER_SCALING_LEFTOVERS_H_
#define NOMAD_HARVESTER_SCALING_LEFTOVERS_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "execution/pool_dependencies.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

struct SweepScope {
  // Names of the Lease's action. A Secret with such a name but no VM is garbage as soon as no Scale
  // is creating the VM; other Secrets only after ten minutes.
  std::set<std::string> named_by_action;
  // Only report what would be changed.
  bool dry_run = false;
  // VMs that this process deleted, or that the Lease names and that are gone.
  std::set<std::string> deleted;
  // VMs whose creation was not answered a moment ago: a late request may still need their Secrets.
  std::set<std::string> unanswered{};
  // The VM of each claim that this process saw in the spec of a marked VM. Claims of CDI images
  // have no label.
  std::map<std::string, std::string> seen_claims{};
};

struct SweepResult {
  // VMs that no longer exist but still have a claim or Secret, for example a terminating one.
  Leftovers left;
  absl::Status unowned{};  // why a Secret could not be given its VM as owner
};

// Sweeps once. Lists claims and Secrets first and VMs after them, so that a VM created in between
// is observed. Deletes, with a uid precondition, objects that belong to no VM, and sets the owner
// of Secrets whose VM exists. An object that is refused or fails waits for its own next attempt and
// delays nothing else. An error: a list could not be read, and nothing was done.
absl::StatusOr<SweepResult> SweepLeftovers(const runtime::Context& context,
                                           const PoolDependencies& deps, const SweepScope& scope);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_LEFTOVERS_H_
