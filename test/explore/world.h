// SPDX-License-Identifier: Apache-2.0
// What requests do to the modelled world, and what happens in it by itself.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_WORLD_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_WORLD_H_

#include <string>
#include <vector>

#include "configuration.h"
#include "decision_cache.h"
#include "model.h"

namespace nomad_harvester::explore {

enum class Violation : std::uint8_t {
  kNone,
  kDeletedUnmarked,      // I1
  kDeletedWithWork,      // I1
  kUnmanagedTouched,     // I1
  kTakenForBroken,       // a VM was marked as broken whose guest is a node
  kTooManyRemoved,       // I2
  kTooManyCreated,       // I3
  kForeignDrainTouched,  // an operator's drain was cancelled or taken over
  kCancelIgnored,        // a drain begins again that an operator had cancelled
  kCordonLifted,         // an operator's ineligible node was enabled
  kPurgedInUse,          // a node was purged whose VM stands
  kLeftIneligible,       // I4
  kMarkLeft,             // I5
  kDrainLeft,            // I5
  kNodeLeft,             // I5
  kRestless,             // I5
  kRecordLeft,           // I5: rolled-back is not written
  kJoinLeft,             // a join is not recorded
  kBrokenLeft,           // I5: a VM that should have been removed stands
  kDrainGoesOn,          // a node drains for a VM that stays, and its tasks are stopped
  kDrainNotBegun,        // a marked VM whose node nobody drains
  kMaintenanceIgnored,   // a mark stays on a VM whose node an operator drains
};
std::string Describe(Violation violation);

enum class EventKind : std::uint8_t {
  // Of a process.
  kScale,
  kResume,
  kReadNodes,
  kNomadSilent,
  kReadVms,
  kPlan,
  kActReads,
  kActApplied,
  kActLost,
  kActGivenUp,
  kLateApplied,
  kLateLost,
  kTimeout,
  kCrash,
  kTakeover,
  // Of the world.
  kJoins,
  kJoinsMisnamed,
  kVmGone,
  kNodeDown,
  kTwoMinutesDown,
  kNodeReturns,
  kNodeAgain,
  kNodePurged,
  kTaskStarts,
  kTasksStop,
  kTasksStopped,
  kDrainCompletes,
  kDrainCutShort,
  kDeadline,
  kOverdue,
  kStartFails,
  kPolicyMoves,
  kOperatorCancels,
  kOperatorDrains,
  kOperatorToggles,
  kOperatorUnmarks,
  kOperatorSpoils,
  kOperatorDeletes,
  kOperatorStops,
  kOperatorStarts,
  kOperatorClones,
};
struct Event {
  EventKind kind{};
  std::uint8_t process = 0;
  std::uint8_t slot = 0;
  std::uint8_t node = 0;
  std::uint8_t detail = 0;  // what it means depends on the kind
  Act act{};                // of kAct… and kLate…
};

struct Successor {
  State state;
  Event event;
  Violation violation = Violation::kNone;
};

// Carries out a request that arrives now. Preconditions that fail leave no trace.
Violation Apply(const Configuration& configuration, int slot, const Act& act, State* state);

// Everything that the world, its machines and its operators may do in this state.
void ExpandWorld(const Configuration& configuration, const State& state,
                 std::vector<Successor>* successors);

// What a reader gets of a node: no ghosts, and no allocations.
Node Visible(const Node& node);
// What a reader gets of a slot's VM.
Vm VisibleVm(const Vm& vm);
// Everything, read at once, with the details that an observation adds.
View WorldView(const State& state);
// The allocations that an observation reads: of nodes that we drained to the end for a marked VM.
void AddDetails(const Slot& slot, Vm* vm, std::array<Node, kNodesPerVm>* nodes);

// Time passes and nobody's hand moves. False: nothing is left to happen.
bool LetTimePass(const Configuration& configuration, State* state);

// What must not last, once our process has done all that it can for now.
Violation LeftForNow(const State& state);

// What stands in the world at rest although it should not.
Violation LeftAtRest(const Configuration& configuration, const State& state);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_WORLD_H_
