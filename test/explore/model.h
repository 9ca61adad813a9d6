// SPDX-License-Identifier: Apache-2.0
// The modelled world, small enough to be visited state by state: a few VMs with the nodes that
// their guests register, the pool's Lease, and one or two processes with what they saw and have
// sent.
//
// Everything is packed into words without padding, so that a state is compared and hashed as
// memory.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_MODEL_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_MODEL_H_

#include <array>
#include <cstdint>
#include <cstring>

namespace nomad_harvester::explore {

inline constexpr int kMaxVms = 3;
inline constexpr int kMaxProcesses = 2;
// A guest registers a second time at most, as a new node.
inline constexpr int kNodesPerVm = 2;
inline constexpr std::uint32_t kNoNode = 3;

// The words below hold small numbers; enumerations have this type so that they pack.
using Bits = std::uint32_t;

enum class Power : Bits { kInitializing, kReady, kDown, kDownForLong };
enum class Work : Bits { kIdle, kRunning, kStopping, kUnread };
// Who last made a node ineligible. Nobody can read that from Nomad: it serves the invariants.
// kUnclear: in one of the gaps that ARCHITECTURE.md accepts; whatever becomes of it is right.
enum class Cordon : Bits { kNone, kOurs, kOperators, kUnclear };
enum class DrainState : Bits { kNone, kDraining, kComplete, kCanceled };

// A Nomad node and its LastDrain. A drain is the node's own number and never comes again, as
// StartedAt in Nomad.
struct Node {
  Bits present : 1;
  Power power : 2;
  Bits eligible : 1;
  Work work : 2;
  Bits misnamed : 1;  // it registered under a name that is not a VM's
  Cordon cordon : 2;
  DrainState drain : 2;
  Bits ours : 1;  // LastDrain.Meta is ours, of the fields that follow
  Bits action : 3;
  Bits uid : 1;
  Bits was : 1;  // "was=ineligible"
  Bits number : 3;
  Bits by_hand : 1;  // an operator cancelled it: for the invariants, as `cordon`
  Bits spare : 11;

  bool Draining() const { return drain == DrainState::kDraining; }
};

enum class Phase : Bits { kAbsent, kStanding, kTerminating, kGone };
enum class MarkKind : Bits { kNone, kOurs, kUnreadable };
enum class Reason : Bits { kScaleIn, kBroken, kUnhealthy };
enum class Answer : Bits { kUnknown, kNo, kYes };

struct Vm {
  Phase phase : 2;
  Bits uid : 1;
  Bits unmanaged : 1;  // a copy made in Harvester's UI
  MarkKind mark : 2;
  Bits mark_action : 3;
  Reason mark_reason : 2;
  Bits mark_node : 2;  // an incarnation, or kNoNode
  Bits late : 1;       // past the mark's deadline and grace
  Bits joined : 1;
  Bits joined_node : 1;  // the annotation nomad-node-id, once it has joined
  Bits overdue : 1;      // past its join deadline
  Bits failing : 1;      // its start has failed for a minute
  Bits running : 1;      // its instance runs
  Bits recorded : 1;     // the annotation rolled-back is there, of the fields that follow
  Bits recorded_node : 1;
  Bits recorded_action : 3;
  Bits recorded_number : 3;
  // Only in what a process saw: it was written since, so that its resourceVersion is another one;
  // the mark's node is 404; whether the instance runs.
  Bits stale : 1;
  Bits node_gone : 1;
  Answer runs : 2;
  Bits spare : 1;

  bool Stands() const { return phase == Phase::kStanding; }
  bool Exists() const { return phase == Phase::kStanding || phase == Phase::kTerminating; }
};

enum class ActKind : Bits {
  kNone,
  kCancelDrain,
  kEnable,
  kStartDrain,
  kDelete,
  kPurge,
  kRemoveMark,
  kMark,
  kMarkBroken,
  kMarkUnhealthy,
  kRecordRolledBack,
  kRecordJoin,
  kCreate,
};
// Reads that an act makes just before its request, then the request under way.
enum class ActPhase : Bits { kReadNode, kReadWork, kReadVm, kReadInstance, kSent };

// What a process does about one VM.
struct Act {
  ActKind kind : 4;
  ActPhase phase : 3;
  Bits row : 7;
  Bits node : 2;    // an incarnation, or kNoNode
  Bits flag : 1;    // kCancelDrain: enable; kStartDrain: was ineligible; kMark: drain at once
  Bits action : 3;  // kMark, kStartDrain: of the mark; kRecordRolledBack: of the drain
  Bits number : 3;  // kRecordRolledBack
  Bits uid : 1;
  Bits stale : 1;  // the VM was written after it was read: a precondition will fail
  // Since its first read, something outside of our hands changed the VM's node: what no order of
  // requests can close, because Nomad's writes have no precondition.
  Bits excused : 1;
  Bits spare : 6;

  bool Busy() const { return kind != ActKind::kNone; }
};

// A VM's name in the Lease's action.
struct Naming {
  Bits named : 1;
  Bits create : 1;  // in its `create`
  Bits spare : 30;
};

// A VM's name in a process: its copy of the Lease's action, and the VMs whose removal its Scale
// cancels, has yet to create, and has created or tried to.
struct Intent {
  Bits named : 1;
  Bits create : 1;
  Bits cancels_removal : 1;
  Bits to_create : 1;
  Bits created : 1;
  Bits victim : 1;
  Bits looked : 1;  // the process has read the nodes
  Bits missed : 1;  // and something outside of our hands changed the VM's since
  Bits spare : 24;
};

// One VM as one process saw it, and what it does about it.
struct Observation {
  Vm vm;
  std::array<Node, kNodesPerVm> nodes;
  Act act;
  Intent intent;
};

// Everything about one VM name: permuted as a whole, because names mean nothing.
struct Slot {
  Vm vm;
  std::array<Node, kNodesPerVm> nodes;
  Act late;  // the request of a process that died or gave up, still under way
  Naming naming;
  std::array<Observation, kMaxProcesses> observations;
};

// kSuperseded: frozen until its Lease was another's; only what it has sent is left of it.
// Which name each slot's VM has.
using Labels = std::array<int, kMaxVms>;
inline constexpr Labels kOwnNames = {0, 1, 2};

enum class Mode : std::uint8_t {
  kIdle,
  kResume,
  kFinishRollBacks,
  kCancelRemovals,
  kScale,
  kSuperseded
};
enum class Stage : std::uint8_t { kNodes, kVms, kActs };

struct Process {
  Mode mode = Mode::kIdle;
  Stage stage = Stage::kNodes;
  std::uint8_t wanted = 0;
  std::uint8_t action = 0;
  std::uint8_t readable = 0;
  std::uint8_t spare[3] = {};
};

// What may still happen, and how often. A configuration says so at the start.
struct Budgets {
  std::uint8_t scales = 0;       // calls of Scale
  std::uint8_t crashes = 0;      // kill -9, with a restart
  std::uint8_t takeovers = 0;    // a process is frozen so long that another takes the Lease over
  std::uint8_t late = 0;         // requests that outlive their process or its timeout
  std::uint8_t lost = 0;         // requests that never arrive
  std::uint8_t timeouts = 0;     // a Scale ends early: its client left, or scale_timeout
  std::uint8_t unreadable = 0;   // Nomad does not answer a list
  std::uint8_t deadlines = 0;    // deadlines of marks that pass
  std::uint8_t op_cancel = 0;    // operators: cancel a drain, with or without enabling the node
  std::uint8_t op_drain = 0;     // begin one
  std::uint8_t op_toggle = 0;    // change the eligibility
  std::uint8_t op_unmark = 0;    // remove or spoil a mark
  std::uint8_t op_vm = 0;        // delete or stop a VM
  std::uint8_t op_clone = 0;     // copy a VM
  std::uint8_t node_down = 0;    // nodes go down
  std::uint8_t node_return = 0;  // and come back
  std::uint8_t node_again = 0;   // or register under a new ID
  std::uint8_t node_purged = 0;  // an operator or Nomad's garbage collection removes a node
  std::uint8_t misnamed = 0;     // a guest registers under a wrong name
  std::uint8_t overdue = 0;      // join deadlines that pass, starts that fail
  std::uint8_t elsewhere = 0;    // the policy points to other nodes
  std::uint8_t tasks = 0;        // tasks that start on an eligible node
  std::uint8_t stopping = 0;     // drains that end while tasks still stop
  std::uint8_t spare[5] = {};
};

enum class Holder : std::uint8_t { kNobody, kFirst, kSecond, kDead };

struct State {
  std::array<Slot, kMaxVms> slots;
  std::array<Process, kMaxProcesses> processes;
  Budgets budgets;
  Holder holder = Holder::kNobody;
  std::uint8_t next_action = 1;
  std::uint8_t elsewhere = 0;      // the policy names another node class
  std::uint8_t removals_left = 0;  // what the last action that was stored may remove (I2)
  std::uint8_t ceiling = 0;        // as many VMs as some action asked for (I3)
  std::uint8_t spare[3] = {};
};

static_assert(sizeof(Node) == 4 && sizeof(Vm) == 4 && sizeof(Act) == 4 && sizeof(Intent) == 4);
static_assert(sizeof(Slot) == 60 && sizeof(Process) == 8 && sizeof(Budgets) == 28);
static_assert(sizeof(State) == kMaxVms * sizeof(Slot) + 16 + 28 + 8);

inline State EmptyState() {
  State state;
  std::memset(static_cast<void*>(&state), 0, sizeof state);
  state.next_action = 1;
  return state;
}

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_MODEL_H_
