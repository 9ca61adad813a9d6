// SPDX-License-Identifier: Apache-2.0
// What a run of the loop leaves on the pool's Lease, and what has to stand there before it acts.
// Pure functions.
#ifndef NOMAD_HARVESTER_SCALING_POOL_RECORD_H_
#define NOMAD_HARVESTER_SCALING_POOL_RECORD_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/next_step.h"
#include "nomad_harvester/scaling/pool_lease.h"

namespace nomad_harvester::scaling {

// What is about to be done to one VM.
struct Intent {
  const VmView* view = nullptr;
  StepKind kind = StepKind::kNothing;
};

// The record as it must be stored before these steps are carried out. A name leaves `create` before
// its VM is removed, or it could be used twice (rule C10); `resumed`: as soon as its VM is seen. A
// VM that is marked for being unhealthy is named first, because marks that nobody names are rolled
// back. `new_action_id` is used if the record has no action yet.
PoolRecord RecordBefore(PoolRecord record, const PoolSnapshot& snapshot,
                        const std::vector<Intent>& intents, bool resumed,
                        const std::string& new_action_id);

// What a run that ended well has seen and done.
struct RunSummary {
  const PoolSnapshot& last;        // nothing has been done since
  std::set<std::string> seen;      // creations whose VM was seen, standing or gone by now
  bool created = false;            // at least one VM was delivered
  bool removed = false;            // at least one VM of a scale-in is gone
  std::set<std::string> failures;  // causes of back_off.h
  std::optional<base::WallTime> last_event;
  bool remembered = true;  // a Lease keeps the record
};
// Closes the action: what is unfinished stays, an action with nothing unfinished leaves.
PoolRecord RecordAfter(PoolRecord record, const RunSummary& run);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_RECORD_H_
