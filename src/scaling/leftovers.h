// SPDX-License-Identifier: Apache-2.0
// What an interrupted action, or a removed VM, left behind: claims, Secrets, owners (rule C10).
#ifndef NOMAD_HARVESTER_SCALING_LEFTOVERS_H_
#define NOMAD_HARVESTER_SCALING_LEFTOVERS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "pool_dependencies.h"

namespace nomad_harvester::scaling {

struct SweepScope {
  // VMs whose creation is under way in this process: their Secret comes before them.
  std::set<std::string> being_created;
  // Names of the Lease's action: a Secret of theirs without a VM is garbage as soon as no Scale
  // makes them any more; other Secrets only when they are old.
  std::set<std::string> named_by_action;
  // Nothing is changed; what would be is told.
  bool dry_run = false;
  // VMs that this process deleted: claims that follow the naming pattern are theirs, label or not.
  std::set<std::string> deleted;
};

struct SweepResult {
  // VMs (existing no more) that still have a claim or Secret, for instance one that is terminating.
  std::set<std::string> unfinished;
  int removed = 0;
};

// One look: lists claims and Secrets first and VMs after them, so that a VM that appears in between
// is seen. Deletes with a uid precondition what belongs to no VM, and gives Secrets of standing VMs
// their owner. Errors: the first one, after everything was tried.
absl::StatusOr<SweepResult> SweepLeftovers(const runtime::Context& context,
                                           const PoolDependencies& deps, const SweepScope& scope);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_LEFTOVERS_H_
