// SPDX-License-Identifier: Apache-2.0
#include "rules/pool_record.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "nomad_harvester/scaling/drift.h"
#include "nomad_harvester/scaling/replacement.h"

#include "rules/back_off.h"

namespace nomad_harvester::scaling {
namespace {

bool LeadsToRemoval(StepKind kind) {
  return kind == StepKind::kMarkBroken || kind == StepKind::kMarkUnhealthy ||
         kind == StepKind::kMarkReplaced || kind == StepKind::kDelete;
}

void CloseAction(harvester::LeaseAction* action, const RunSummary& run) {
  for (const std::string& name : run.seen) action->create.erase(name);
  std::set<std::string> unfinished;
  for (const VmView& view : run.last.look().vms) action->create.erase(view.vm->name);
  // A mark that no action has named must be rolled back, and must not become valid here.
  for (const VmView* view : run.last.vms()) {
    const std::string& name = view->vm->name;
    if (view->vm->has_mark && action->names.contains(name)) unfinished.insert(name);
  }
  for (const auto& [name, id] : action->create) unfinished.insert(name);
  unfinished.insert(run.leftovers.begin(), run.leftovers.end());
  std::erase_if(action->back, [&](const std::string& name) {
    const VmView* view = run.last.seen->FindVm(name);
    if (view == nullptr || !view->vm->has_mark) return true;
    // Only the VM's own Nomad knows whether its node is ready.
    if (IsOtherNomad(view->vm, run.last.look())) return false;
    const nomad::Node* node = LinkedNode(*view, run.last);
    return node == nullptr || node->status != nomad::NodeStatus::kReady;
  });
  action->names = std::move(unfinished);
}

harvester::StoppedReplacement StopOf(const Intent& intent, base::WallTime now) {
  const harvester::VirtualMachine& vm = intent.view->vm;
  return {.at = now, .vm = vm.name, .template_hash = TemplateHashOf(vm), .why = intent.why};
}

}  // namespace

PoolRecord RecordBefore(PoolRecord record, const PoolSnapshot& snapshot,
                        const std::vector<Intent>& intents, const std::string& new_action_id) {
  if (record.action.has_value()) {
    for (const VmView& view : snapshot.look().vms) record.action->create.erase(view.vm->name);
  }
  for (const Intent& intent : intents) {
    const auto& replaces = intent.view->vm->replaces;
    const bool rolls = replaces.has_value() && replaces->reason != kUnhealthy;
    const bool fails =
        intent.kind == StepKind::kMarkBroken ||
        (intent.kind == StepKind::kMarkUnhealthy && IsPendingReplacement(*intent.view, snapshot));
    if (fails && rolls) {
      record.replacement = StopOf(intent, snapshot.now());
    }
    if (!LeadsToRemoval(intent.kind)) continue;
    if (!record.action.has_value()) {
      const std::int64_t standing = CountOf(snapshot);
      record.action = harvester::LeaseAction{.id = new_action_id, .from = standing, .to = standing};
    }
    record.action->names.insert(intent.view->vm->name);
  }
  return record;
}

namespace {

// True if the action that failed has reached its count after all, or another one has succeeded.
bool IsSettled(const harvester::ErrorRecord& error,
               const std::optional<harvester::LeaseAction>& finished, const RunSummary& run) {
  if (run.created && run.failures.empty()) return true;
  return finished.has_value() && finished->id == error.action && finished->to == CountOf(run.last);
}

}  // namespace

PoolRecord RecordAfter(PoolRecord record, const RunSummary& run) {
  std::optional<harvester::LeaseAction> finished;
  if (record.action.has_value()) {
    CloseAction(&*record.action, run);
    if (record.action->names.empty()) finished = std::exchange(record.action, std::nullopt);
  }
  if (record.last_error.has_value() && IsSettled(*record.last_error, finished, run)) {
    record.last_error.reset();
  }
  if (run.created) RecordCreationSuccess(&record.back_off);
  if (run.removed) RecordRemovalSuccess(&record.back_off);
  for (const std::string& cause : run.failures) {
    RecordFailure(&record.back_off, cause, run.last.now());
  }
  if (run.last_event.has_value() || run.created) {
    record.last_event = std::max(record.last_event.value_or(base::WallTime{}),
                                 run.last_event.value_or(run.last.earlier_now()));
  }
  return record;
}

}  // namespace nomad_harvester::scaling
