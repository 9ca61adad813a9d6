// SPDX-License-Identifier: Apache-2.0
// Computes the Lease's record before the loop acts and after a run. Pure functions.
#ifndef NOMAD_HARVESTER_SCALING_POOL_RECORD_H_
#define NOMAD_HARVESTER_SCALING_POOL_RECORD_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/scaling/rules.h"

namespace nomad_harvester::scaling {

// A step that is about to be executed on one VM.
struct Intent {
  const VmView* view = nullptr;
  StepKind kind = StepKind::kNothing;
  std::string why{};
};

// Returns the record that must be stored before these steps run. A name leaves `create` as soon as
// its VM is observed, even during the Scale that makes the VM: that Scale may end before it can
// close its record, and the name must not be used twice (rule C10). A VM is named before it is
// marked or deleted: a mark that the Lease does not name is rolled back, and a VM's leftovers are
// found by its name. Nothing more is replaced after a replacement is marked as broken (rule R5).
// `new_action_id` is used if the record has no action yet.
PoolRecord RecordBefore(PoolRecord record, const PoolSnapshot& snapshot,
                        const std::vector<Intent>& intents, const std::string& new_action_id);

// The observations and results of a successful run.
struct RunSummary {
  const PoolSnapshot& last;        // no step was executed after it
  std::set<std::string> seen;      // creations that took effect, even if the VM is gone by now
  bool created = false;            // at least one VM was delivered
  bool removed = false;            // at least one VM of a scale-in was removed
  std::set<std::string> failures;  // causes of back_off.h
  std::optional<base::WallTime> last_event;
  std::set<std::string> leftovers;  // VMs that are gone and not cleaned up yet
};
// Closes the action: keeps unfinished work, and removes an action without any. A name leaves `back`
// once its VM is unmarked, or its node is not ready or gone (rule L6). The last error goes once the
// background has brought its action to its count, or a new VM has become ready (rule T1).
PoolRecord RecordAfter(PoolRecord record, const RunSummary& run);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_RECORD_H_
