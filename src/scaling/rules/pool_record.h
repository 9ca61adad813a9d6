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

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

// Returns the record that must be stored before these steps run: a name leaves `create` as soon as
// its VM is observed (rule C10), a VM is named before it is marked or deleted, and a replacement
// that is marked as broken stops the roll-out (rule R5). `new_action_id` is used if the record has
// no action yet.
PoolRecord RecordBefore(PoolRecord record, const PoolSnapshot& snapshot,
                        const std::vector<Decisions::Entry>& steps,
                        const std::string& new_action_id);

// True if replacement waits for room (rule R5).
bool LacksRoom(const PoolRecord& record);
// True if the last error is that a growth lacked room, and growth has not been refused for it for
// ten minutes: none is wanted any more (rule T1).
bool IsRoomErrorOver(const PoolRecord& record, base::WallTime now);

// What the work on a pool has come to, and its Lease does not say yet.
struct Unrecorded {
  std::set<std::string> made;  // creations that took effect, even if the VM is gone by now
  bool delivered = false;      // a new VM became ready, and no VM of its action has failed
  bool replaced = false;       // a VM took the place of another one
  bool removed = false;        // a VM of a scale-in was deleted
  std::map<std::string, std::string> failures;  // causes of back_off.h, and the action that failed
  // A quota or the hosts had no room for a new VM (rule C2). Without a template's hash, it was to
  // be one more, or to replace an unhealthy VM.
  std::optional<harvester::StoppedReplacement> no_room;
  std::optional<harvester::ErrorRecord> error;  // of the last action that has failed
  bool succeeded = false;                    // a Scale was accepted: what went wrong before is over
  std::optional<base::WallTime> last_event;  // the API server's time

  // Removes secrets from the text: later they may not be known any more (rule P3).
  void AddError(const std::string& action, const std::string& text);
  // OK: the action was accepted.
  void AddOutcome(const std::string& action, const absl::Status& outcome);
  // OK: no replacement fails any more.
  void AddReplacement(const std::string& vm, const absl::Status& outcome);
};

// Adds it to the record. A later error of the same action follows the earlier ones; the last error
// goes once a Scale was accepted, or a VM has taken the place of another one (rule T1).
PoolRecord RecordAfter(PoolRecord record, const Unrecorded& news, base::WallTime now);
// Also closes the action: keeps unfinished work, and removes an action without any. No step was
// executed after `last`; `leftovers`: VMs that are gone and not cleaned up yet. A name leaves
// `cancel` once its VM is unmarked, or its node is not ready or gone (rule L6). The last error goes
// if its action has come to its count, or IsRoomErrorOver.
PoolRecord RecordAfter(PoolRecord record, const Unrecorded& news, const PoolSnapshot& last,
                       const std::set<std::string>& leftovers);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_RECORD_H_
