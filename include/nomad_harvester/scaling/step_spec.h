// SPDX-License-Identifier: Apache-2.0
// How each step is executed: the reads before its write, in order, and the conditions rechecked
// after them. The executor and the exploration share the specs, so that the exploration covers the
// code that runs.
#ifndef NOMAD_HARVESTER_SCALING_STEP_SPEC_H_
#define NOMAD_HARVESTER_SCALING_STEP_SPEC_H_

#include <string_view>
#include <vector>

#include "nomad_harvester/scaling/rules.h"

namespace nomad_harvester::scaling {

enum class StepCategory {
  kNone,     // changes nothing
  kRepair,   // must be done before a plan is made (rule C14)
  kRemoval,  // leads to a VM's deletion: waits while too many VMs have lost their nodes (C15)
  kRecord,   // records what has happened
  kUpkeep,   // serves healthy VMs: waits while the pool is paused (L10)
  kCleanUp,  // cleans up after a VM that is gone
};

// Reads before a step's write, always without `stale`.
enum class Read {
  kNodes,        // the whole list: a guest may have registered under a new ID
  kNode,         // the step's node, in full
  kCluster,      // Nomad's keys: the conclusion rests on what this Nomad does not know
  kMarksNode,    // the mark's node by ID: whether it is gone
  kAllocations,  // of the step's node
  kVm,           // by name; the write then carries its resourceVersion
  kInstance,     // after the VM: a start changes the VM, so that a later start is a conflict
  kVmGone,       // GET by name: 404, or a VM with another uid
};

// The condition that the re-read objects must still meet before the write.
enum class Recheck {
  kNone,      // the write carries its own precondition
  kSameRow,   // the same row matches, for the same node
  kSameKind,  // the same step, for the same node
};

struct StepSpec {
  StepKind kind;
  std::string_view name;        // "start-drain"
  std::string_view infinitive;  // in logs: "start the drain of its node"
  std::string_view past;        // "started the drain of its node"
  StepCategory category;
  Recheck recheck;
  // The step is deferred: the loop's passes do not wait for it, because it must not delay or fail
  // anything else (rule L1).
  bool aside = false;
};
const StepSpec& SpecOf(StepKind kind);

// The reads before the write of this step, in order (rule C5 for deletions).
std::vector<Read> ReadsOf(const Step& step);

std::string_view StepName(StepKind kind);
// True for steps that change a VM or its node; purges are not among them.
bool IsAct(StepKind kind);
bool IsDeferred(StepKind kind);
// True for a step that records that a new VM's node has registered or is ready.
bool IsJoin(StepKind kind);
bool IsRepair(StepKind kind);
bool IsRemoval(StepKind kind);
bool IsUpkeep(StepKind kind);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_STEP_SPEC_H_
