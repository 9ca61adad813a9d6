// SPDX-License-Identifier: Apache-2.0
// Decides how long a pool waits before it retries failed work (rule C12). Pure functions over the
// record on the pool's Lease.
#ifndef NOMAD_HARVESTER_SCALING_BACK_OFF_H_
#define NOMAD_HARVESTER_SCALING_BACK_OFF_H_

#include <string>
#include <string_view>

#include "nomad_harvester/harvester/metadata.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

// Each cause has its own back-off: failed creations do not delay a removal, and failed removals do
// not delay a creation. Cancelling removals never waits.
namespace cause {
inline constexpr std::string_view kCreate = "create";  // the API server refused a Secret or a VM
inline constexpr std::string_view kRoom = "room";      // harvester::LacksRoom
inline constexpr std::string_view kStart = "start";    // a disk or a start failed otherwise
inline constexpr std::string_view kJoin = "join";      // the VM ran but never became a node
inline constexpr std::string_view kRemove = "remove";  // no VM of a scale-in could be removed
// Like kRemove, and a removal was refused: the next action removes only one VM (rule C12).
inline constexpr std::string_view kRefused = "refused";
}  // namespace cause

// Records another consecutive failure. The wait doubles with each failure, up to the limit of the
// cause. `action`: its id, if known. Does nothing if that action failed last: the reply to the
// write of the record may have been lost, or another process may have counted it.
void RecordFailure(harvester::BackOff* back_off, std::string_view cause, base::WallTime now,
                   const std::string& action = "");
// Records that a quota or the hosts have no room for a new VM. No VM was made, so that the circuit
// below stays closed.
void RecordNoRoom(harvester::BackOff* back_off, base::WallTime now);
void RecordCreationSuccess(harvester::BackOff* back_off);
void RecordRemovalSuccess(harvester::BackOff* back_off);
// True for the causes that a removal ends.
bool IsOfRemovals(std::string_view cause);

// RESOURCE_EXHAUSTED, with cause, failures and the time of the next attempt, while creation must
// wait.
absl::Status CheckCreation(const harvester::BackOff& back_off, base::WallTime now);
absl::Status CheckRemoval(const harvester::BackOff& back_off, base::WallTime now);

// After this many consecutive VMs that never started or never joined, only one VM is created, so
// that a broken image does not create and delete a whole pool at every attempt.
inline constexpr std::int64_t kCircuitOpensAfter = 3;
// True if a removal of the last action was refused, and none succeeded.
bool RemovalsWereRefused(const harvester::BackOff& back_off);
bool CreationCircuitIsOpen(const harvester::BackOff& back_off);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_BACK_OFF_H_
