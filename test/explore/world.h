// SPDX-License-Identifier: Apache-2.0
// Effects of requests on the model, and its own events.
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
  kDeletedNeverDrained,  // I1: never ready, and with an allocation
  kTakenForBroken,       // a VM whose guest is a node, or one that is ready, was marked as broken
  kTakenForUnhealthy,    // C17
  kTooManyRemoved,       // I2
  kTooManyCreated,       // I3
  kForeignDrainTouched,  // an operator's drain was cancelled or replaced
  kCancelIgnored,        // a drain that an operator cancelled begins again
  kCordonLifted,         // an operator's ineligible node was enabled
  kPurgedInUse,          // a node was purged although its VM exists
  kLeftIneligible,       // I4
  kMarkLeft,             // I5
  kDrainLeft,            // I5
  kNodeLeft,             // I5
  kRestless,             // I5
  kRecordLeft,           // I5: rolled-back is not written
  kJoinLeft,             // a join is not recorded
  kReadyLeft,            // C17: that a node is ready is not recorded
  kReadyTooEarly,        // C17: it is, and the node never was
  kReadyChosen,          // C8: a ready VM is a victim before one that is not
  kBrokenLeft,           // I5: a VM that should have been removed exists
  kDrainGoesOn,          // a node drains for a VM that stays, and its tasks are stopped
  kDrainNotBegun,        // the node of a marked VM is not drained
  kHealthyDrained,       // a VM was marked for being broken or unhealthy; its node, now ready, is
                         // drained
  kDrainedForNothing,    // C17: a node that was never ready and has no allocation
  kMaintenanceIgnored,   // a VM stays marked although an operator drains its node
  kNotCancelled,         // a VM is removed although the Lease's action takes it back
  kRefusalIgnored,       // a removal goes on that was refused for a minute
  kDrainTooLate,         // a drain begins after its deadline
  kDeletedByOldMark,     // I1: the mark was that of the VM before it
  kDeletedByMassLoss,    // C15: undrained, because its node is down
  kTakenForAnothers,     // C15: a VM is left alone for belonging to another Nomad, and does not
  kGivesWayTooEarly,     // R3, R8: a VM is marked although the other one is not there yet
  kStartsTooEarly,       // R8: two VMs of one place run
  kCountMoves,           // R1: a place is counted twice, or not at all
  kReplacedTwice,        // R1: two VMs are to take one place
  kPlaceLeft,            // R3, R8: two VMs keep one place, or a VM waits for ever for one
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
  kActRefused,
  kLateApplied,
  kLateLost,
  kTimeout,
  kCrash,
  kTakeover,
  // Of the world.
  kJoins,
  kBecomesReady,
  kFallsBack,
  kDriverComes,
  kDisconnects,
  kTimeEnds,
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
  kPlacedLate,
  kDeadline,
  kDeadlineAndGrace,
  kOverdue,
  kStartFails,
  kPolicyMoves,
  kAddressMoves,
  kCutOff,
  kGuestHeld,
  kGuestGoesOn,
  kOperatorCancels,
  kOperatorDrains,
  kOperatorToggles,
  kOperatorUnmarks,
  kOperatorSpoils,
  kOperatorDeletes,
  kOperatorStops,
  kOperatorStarts,
  kOperatorClones,
  kOperatorRestores,
  kOperatorWishes,
  kWaitEnds,
};
struct Event {
  EventKind kind{};
  std::uint8_t process = 0;
  std::uint8_t slot = 0;
  std::uint8_t node = 0;
  std::uint8_t detail = 0;  // depends on the kind
  Act act{};                // of kAct… and kLate…
};

struct Successor {
  State state;
  Event event;
  Violation violation = Violation::kNone;
};

// Applies a request that arrives now. A failed precondition changes nothing.
Violation Apply(const Configuration& configuration, int slot, const Act& act, State* state);

// What a process knew of a VM and of the node of its act when it sent the request.
struct Known {
  const Vm& vm;
  const Node& node;
  bool removal_cancelled = false;
  bool refused = false;
};
// Whether that forbids the request, while Nomad hears the node.
Violation CheckKnown(const Act& act, const Known& known);

// Whether a VM is marked because another one takes its place, and that one is not there yet.
Violation CheckSuccessor(const Configuration& configuration, const View& view, std::size_t slot,
                         const Act& act);

// All possible next events of the systems, machines and operators in this state.
void ExpandWorld(const Configuration& configuration, const State& state,
                 std::vector<Successor>* successors);

// A node as a reader of one of the two Nomads gets it: without the fields that only the invariants
// use, and without allocations.
Node Visible(const Node& node, bool asks_other);
// What runs on the node, by the word of that Nomad.
Work WorkOn(const Node& node, bool asks_other);
// A slot's VM as a reader gets it.
Vm VisibleVm(const Vm& vm);
// The keys of one of the two Nomads; kNone unless the configuration has two.
Keys KeysOf(const Configuration& configuration, const State& state, bool other);
// Everything at one moment, with the details that an observation adds.
View WorldView(const Configuration& configuration, const State& state, bool asks_other);
// The allocations that an observation reads: those of nodes whose drain, for a marked VM,
// completed.
void AddDetails(const Slot& slot, bool asks_other, Vm* vm, std::array<Node, kNodesPerVm>* nodes);

// Time passes and no operator acts. False: nothing more happens.
bool LetTimePass(const Configuration& configuration, State* state);
// The nodes of guests that run and were ready are ready again. False: none was lost.
bool EndOutage(State* state);

// The guest's present node: it may have registered anew.
inline const Node& NodeNow(const Slot& slot) { return slot.nodes[slot.nodes[1].present]; }

// Whether more than one, and more than a fifth, of the VMs that run and were ready, and are not
// marked or whose drain has begun, have no node or one that is not ready (rule C15).
bool IsMassLoss(const State& state);

// True for a VM that another one is to replace because its node has not been ready for long.
bool AwaitsSuccessor(const Configuration& configuration, const Slot& slot);

// A state that must not last once our process has done all that it can for now, unless the removals
// wait because too many nodes are lost.
Violation LeftForNow(const State& state, bool removals_wait);

// Leftovers in a world in which nothing more happens.
Violation LeftAtRest(const Configuration& configuration, const State& state);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_WORLD_H_
