// SPDX-License-Identifier: Apache-2.0
// The model, small enough to visit every state: a few VMs with the nodes that their guests
// register, the pool's Lease, and one or two processes with their observations and requests.
//
// Everything is packed into words without padding, so that a state is compared and hashed as raw
// memory.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_MODEL_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nomad_harvester::explore {

inline constexpr int kMaxVms = 3;
inline constexpr int kMaxProcesses = 2;
// A guest registers at most a second time, as a new node.
inline constexpr int kNodesPerVm = 2;
inline constexpr std::uint32_t kNoNode = 3;

// The structs below are bit fields; enumerations have this type so that they pack, too.
using Bits = std::uint32_t;

// … for long: for longer than every limit.
enum class Power : Bits {
  kInitializing,
  kReady,
  kDown,
  kDownForLong,
  kDisconnected,
  kDisconnectedForLong,
  kInitializingForLong,
};
constexpr bool IsInitializing(Power power) {
  return power == Power::kInitializing || power == Power::kInitializingForLong;
}
constexpr bool IsDisconnected(Power power) {
  return power == Power::kDisconnected || power == Power::kDisconnectedForLong;
}
constexpr bool IsDown(Power power) { return power == Power::kDown || power == Power::kDownForLong; }
// Nomad hears its client.
constexpr bool IsUp(Power power) { return power == Power::kReady || IsInitializing(power); }
constexpr bool IsSilentForLong(Power power) {
  return power == Power::kDownForLong || power == Power::kDisconnectedForLong;
}

enum class Work : Bits { kIdle, kRunning, kStopping, kUnread };
// Who last made a node ineligible. Nomad does not show it; only the invariants use it. kUnclear:
// set by one of the race conditions that docs/exploration.md accepts, so that any outcome is
// correct.
enum class Cordon : Bits { kNone, kOurs, kOperators, kUnclear };
enum class DrainState : Bits { kNone, kDraining, kComplete, kCanceled };

// A Nomad node and its LastDrain. `number` identifies a drain of the node and is not reused, like
// StartedAt in Nomad.
struct Node {
  Bits present : 1;
  Power power : 3;
  Bits eligible : 1;
  Work work : 2;
  Bits misnamed : 1;  // its name is not that of a VM
  Cordon cordon : 2;
  DrainState drain : 2;
  Bits ours : 1;  // LastDrain.Meta is ours, with the fields that follow
  Bits action : 3;
  Bits uid : 1;
  Bits was : 1;  // "was=ineligible"
  Bits number : 3;
  Bits by_hand : 1;    // cancelled by an operator; for the invariants only, as `cordon`
  Bits other : 1;      // it registered with the other Nomad
  Bits sick : 1;       // one of ready_drivers is not healthy
  Bits was_ready : 1;  // IsReady at some time; for the invariants only
  Bits spare : 7;

  bool Draining() const { return drain == DrainState::kDraining; }
  // By rule C17.
  bool IsReady() const {
    const bool was_drained = drain != DrainState::kNone && (ours == 0 || was == 0);
    return present != 0 && power == Power::kReady && sick == 0 && (eligible != 0 || was_drained);
  }
  void NoteReady() {
    if (IsReady()) was_ready = 1;
  }
};

enum class Phase : Bits { kAbsent, kStanding, kTerminating, kGone };
enum class MarkKind : Bits { kNone, kOurs, kUnreadable };
enum class Reason : Bits { kScaleIn, kBroken, kUnhealthy, kReplace };
// The VM works: its removal may be given up.
constexpr bool IsElective(Reason reason) {
  return reason == Reason::kScaleIn || reason == Reason::kReplace;
}
enum class Answer : Bits { kUnknown, kNo, kYes };
// The keys of a Nomad cluster. The pool's own makes a new one each month and forgets the oldest:
// two neighbours have one in common. The other cluster shares none.
enum class Keys : Bits { kNone, kFirst, kSecond, kThird, kOther };

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
  Bits overdue : 1;      // past its join deadline, and not ready by then
  Bits failing : 1;      // its start has been failing for a minute
  Bits running : 1;      // its instance runs
  Bits recorded : 1;     // has the annotation rolled-back, with the fields that follow
  Bits recorded_node : 1;
  Bits recorded_action : 3;
  Bits recorded_number : 3;
  // Only in observations: the VM was written since, so that its resourceVersion has changed; the
  // mark's node is 404; whether the instance runs.
  Bits stale : 1;
  Bits node_gone : 1;
  Answer runs : 2;
  Bits due : 1;        // past the mark's deadline: a drain that has not begun never will
  Bits mark_uid : 1;   // the VM for which the mark was written: another one before it was restored
  Bits held : 1;       // its guest is paused, or migrates
  Keys keys : 3;       // the annotation nomad-cluster
  Bits other : 1;      // its guest registers with the other Nomad; for the invariants only
  Bits was_ready : 1;  // the annotation ready-at has a time
  Bits old : 1;        // of all VMs the one that may be replaced
  Bits wished : 1;     // the annotation `replace`
  Bits undone : 1;     // the annotation removal-undone; it is younger than every VM
  Bits replaces : 1;   // the annotation `replaces`, which names the one that is `old`
  Bits waits : 1;      // Halted until that one is gone
  Bits for_dead : 1;   // … which was unhealthy
  // It has been unhealthy for a minute, and nothing was missing but the one that takes its place.
  Bits waited : 1;
  Bits spare : 18;

  bool Stands() const { return phase == Phase::kStanding; }
  bool Exists() const { return phase == Phase::kStanding || phase == Phase::kTerminating; }
  Bits JoinedNode() const { return joined != 0 ? joined_node : kNoNode; }
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
  kMarkReplaced,
  kKeepReplaced,
  kEndReplacement,
  kStart,
  kRecordRolledBack,
  kRecordJoin,
  kRecordReady,
  kRecordCluster,
  kCreate,
};
// Reads that an act makes immediately before its request, then the request in transit.
enum class ActPhase : Bits { kReadNode, kReadWork, kReadVm, kReadInstance, kReadKeys, kSent };

// A process's current action on one VM.
struct Act {
  ActKind kind : 5;
  ActPhase phase : 3;
  Bits row : 7;
  Bits node : 2;  // an incarnation, or kNoNode
  // kCancelDrain: enable; kStartDrain: was ineligible; kMark: drain at once; kRecordJoin: is ready;
  // kCreate: the VM takes the place of the one that is `old`; kEndReplacement: it is a victim.
  Bits flag : 1;
  Bits action : 3;  // kMark, kStartDrain: of the mark; kRecordRolledBack: of the drain
  Bits number : 3;  // kRecordRolledBack
  Bits uid : 1;
  Bits stale : 1;  // the VM was written after it was read: a precondition will fail
  // Since its first read, something other than the plugin changed the VM's node: a race condition
  // that remains because Nomad's writes have no precondition.
  Bits excused : 1;
  Bits other : 1;  // sent to the other Nomad
  Keys keys : 3;   // that it records in the VM; kNone: none
  Bits spare : 1;

  bool Busy() const { return kind != ActKind::kNone; }
};

// The VM name's entries in the action on the Lease.
struct Naming {
  Bits named : 1;
  Bits create : 1;  // in its `create`
  Bits cancel : 1;  // in its `cancel`
  Bits first : 1;   // of the names in `create` the one that a replacement uses
  Bits spare : 28;
};

// The VM name's entries in a process: its copy of the Lease's action, and whether its Scale waits
// for the VM's removal its removal to be cancelled, has yet to create the VM, or has created it or
// tried to.
struct Intent {
  Bits named : 1;
  Bits create : 1;
  Bits cancel : 1;
  Bits cancels : 1;
  Bits to_create : 1;
  Bits created : 1;
  Bits victim : 1;
  Bits looked : 1;  // the process has read the nodes
  Bits missed : 1;  // something other than the plugin has changed the VM's since
  // The VM's drain or its deletion has been refused for a minute: the process remembers it from one
  // Scale or resumption to the next.
  Bits refused : 1;
  Bits spare : 22;
};

// One process's observation of one VM, and its action on it.
struct Observation {
  Vm vm;
  std::array<Node, kNodesPerVm> nodes;
  Act act;
  Intent intent;
};

// Everything about one VM name. Slots are interchangeable and are permuted as a whole.
struct Slot {
  Vm vm;
  std::array<Node, kNodesPerVm> nodes;
  Act late;  // request in transit of a process that died or gave up
  Naming naming;
  std::array<Observation, kMaxProcesses> observations;
};

// The name of each slot's VM.
using Labels = std::array<int, kMaxVms>;
inline constexpr Labels kOwnNames = {0, 1, 2};

// kSuperseded: suspended until another process acquired its Lease; only its sent requests remain.
enum class Mode : std::uint8_t {
  kIdle,
  kResume,
  kFinishRollBacks,
  kCancelRemoval,
  kScale,
  kSuperseded
};
enum class Stage : std::uint8_t { kNodes, kVms, kActs };

enum class KeysHeld : std::uint8_t { kNone, kOwn, kOther };

struct Process {
  Mode mode = Mode::kIdle;
  Stage stage = Stage::kNodes;
  std::uint8_t wanted = 0;
  std::uint8_t action = 0;
  std::uint8_t readable = 0;
  // Whose keys it has read last, and may take for those of the Nomad that answers.
  KeysHeld keys = KeysHeld::kNone;
  std::uint8_t spare[2] = {};
};

// How often each event may still happen. A configuration sets the initial values.
struct Budgets {
  std::uint8_t scales = 0;       // calls of Scale
  std::uint8_t crashes = 0;      // kill -9, with a restart
  std::uint8_t takeovers = 0;    // another process acquires the Lease of a suspended one
  std::uint8_t late = 0;         // requests that outlive their process or its timeout
  std::uint8_t lost = 0;         // requests that never arrive
  std::uint8_t timeouts = 0;     // a Scale ends early: its client left, or its minute is over
  std::uint8_t unreadable = 0;   // Nomad does not reply to a list
  std::uint8_t due = 0;          // marks whose deadline passes, but not yet the grace
  std::uint8_t deadlines = 0;    // marks whose deadline and grace pass
  std::uint8_t refused = 0;      // drains and deletions that have been refused for a minute
  std::uint8_t op_cancel = 0;    // operators: cancel a drain, with or without enabling the node
  std::uint8_t op_drain = 0;     // begin one
  std::uint8_t op_toggle = 0;    // change the eligibility
  std::uint8_t op_unmark = 0;    // remove or corrupt a mark
  std::uint8_t op_vm = 0;        // delete or stop a VM
  std::uint8_t op_clone = 0;     // copy a VM
  std::uint8_t op_wish = 0;      // ask for a replacement, or do not any more
  std::uint8_t node_down = 0;    // nodes go down
  std::uint8_t node_return = 0;  // and become ready again
  std::uint8_t node_again = 0;   // or register under a new ID
  std::uint8_t node_purged = 0;  // an operator or Nomad's garbage collection removes a node
  std::uint8_t misnamed = 0;     // a guest registers under a wrong name
  std::uint8_t overdue = 0;      // join deadlines that pass, failed starts
  std::uint8_t elsewhere = 0;    // the policy selects other nodes
  std::uint8_t tasks = 0;        // tasks that start on an eligible node
  std::uint8_t stopping = 0;     // drains that complete while tasks still stop, or run
  std::uint8_t address = 0;      // a process's address leads to the other Nomad, or back
  std::uint8_t held = 0;         // guests that are paused, or migrate
  std::uint8_t restored = 0;     // an operator restores a VM, or replaces it, with its annotations
  std::uint8_t cut_off = 0;      // all nodes go down at once, while their guests run
  std::uint8_t unready = 0;      // guests that register and are not ready yet
  std::uint8_t falls = 0;        // nodes that were ready and initialize again
  std::uint8_t silent = 0;       // nodes that are disconnected
};

enum class Holder : std::uint8_t { kNobody, kFirst, kSecond, kDead };

struct State {
  std::array<Slot, kMaxVms> slots;
  std::array<Process, kMaxProcesses> processes;
  Budgets budgets;
  Holder holder = Holder::kNobody;
  std::uint8_t next_action = 1;
  std::uint8_t elsewhere = 0;      // the policy names another node class
  std::uint8_t removals_left = 0;  // removals that the last stored action allows (I2)
  std::uint8_t ceiling = 0;        // largest count that an action requested (I3)
  std::uint8_t asks_other = 0;     // bit per process: its address leads to the other Nomad
  std::uint8_t month = 0;          // how many keys the pool's Nomad has made
  std::uint8_t lease_keys = 0;     // Keys of the cluster that the pool is of by its Lease
  std::uint8_t stopped = 0;        // the Lease's annotation `replacement`: a new VM was never ready
  std::uint8_t spare[6] = {};

  bool AsksOther(std::size_t process) const { return ((asks_other >> process) & 1U) != 0; }
};

static_assert(sizeof(Node) == 4 && sizeof(Vm) == 8 && sizeof(Act) == 4 && sizeof(Intent) == 4);
static_assert(sizeof(Slot) == 72 && sizeof(Process) == 8 && sizeof(Budgets) == 33);
static_assert(sizeof(State) == kMaxVms * sizeof(Slot) + 16 + 33 + 15 && sizeof(State) % 8 == 0);

inline State EmptyState() {
  State state;
  std::memset(static_cast<void*>(&state), 0, sizeof state);
  state.next_action = 1;
  return state;
}

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_MODEL_H_
