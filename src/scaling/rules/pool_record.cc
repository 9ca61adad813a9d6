// SPDX-License-Identifier: Apache-2.0
#include "rules/pool_record.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/drift.h"
#include "nomad_harvester/scaling/replacement.h"

#include "absl/strings/str_split.h"
#include "rules/back_off.h"

namespace nomad_harvester::scaling {
namespace {

bool LeadsToRemoval(StepKind kind) {
  return kind == StepKind::kMarkBroken || kind == StepKind::kMarkUnhealthy ||
         kind == StepKind::kMarkReplaced || kind == StepKind::kDelete;
}

void CloseAction(harvester::LeaseAction* action, const PoolSnapshot& last,
                 const std::set<std::string>& leftovers) {
  std::set<std::string> unfinished = leftovers;
  for (const VmView& view : last.observation().vms) action->create.erase(view.vm->name);
  // A mark that no action has named must be rolled back, and must not become valid here.
  for (const VmView* view : last.vms()) {
    const std::string& name = view->vm->name;
    if (view->vm->has_mark && action->names.contains(name)) unfinished.insert(name);
  }
  for (const auto& [name, id] : action->create) unfinished.insert(name);
  std::erase_if(action->cancel, [&](const std::string& name) {
    const VmView* view = last.seen->FindVm(name);
    if (view == nullptr || !view->vm->has_mark) return true;
    // Only the VM's own Nomad knows whether its node is ready.
    if (!last.observation().nomad.ok() || IsOtherNomad(view->vm, last.observation())) return false;
    const nomad::Node* node = LinkedNode(*view, last);
    return node == nullptr || node->status != nomad::NodeStatus::kReady;
  });
  action->names = std::move(unfinished);
}

// Records why replacement does not go on. What lacks room neither ends a stop, nor begins anew.
void StopReplacement(harvester::StoppedReplacement next,
                     std::optional<harvester::StoppedReplacement>* stopped) {
  const bool is_known =
      stopped->has_value() && IsSameTemplate((*stopped)->template_hash, next.template_hash);
  if (is_known && next.lacks_room) {
    if (!(*stopped)->lacks_room) return;
    next.at = (*stopped)->at;
  }
  *stopped = std::move(next);
}

// An annotation has at most kMaxError of it. The first cause matters most (rule T1).
constexpr std::size_t kMaxError = 2048;
constexpr std::size_t kMaxFirstCause = 1024;

// Growth that is wanted is asked for again at each tick, and is refused for its lack of room at
// least after each back-off (rule C12).
constexpr base::Duration kGrowthAsksWithin = std::chrono::minutes(10);

// One action may fail in several passes. Adds the lines that are not there yet.
void AppendError(const std::string& error, std::string* text) {
  if (text->empty()) {
    *text = base::ToShortUtf8(error, kMaxError);
    return;
  }
  const std::vector<std::string> lines = absl::StrSplit(error, '\n');
  for (const std::string& line : lines) {
    if (("\n" + *text + "\n").find("\n" + line + "\n") != std::string::npos) continue;
    const std::string next = "\n" + base::ToShortUtf8(line, kMaxError - kMaxFirstCause - 1);
    if (text->size() + next.size() > kMaxError) *text = base::ToShortUtf8(*text, kMaxFirstCause);
    *text += next;
  }
}

void AddError(const harvester::ErrorRecord& error, base::WallTime now, PoolRecord* record) {
  harvester::ErrorRecord& last =
      record->last_error.has_value() ? *record->last_error : record->last_error.emplace();
  std::string text = !error.action.empty() && last.action == error.action ? last.text : "";
  AppendError(error.text, &text);
  if (last.action == error.action && last.text == text && !error.action.empty()) return;
  last.text = std::move(text);
  last.action = error.action;
  last.vm = error.vm;
  last.at = now;
}

}  // namespace

PoolRecord RecordBefore(PoolRecord record, const PoolSnapshot& snapshot,
                        const std::vector<Decisions::Entry>& steps,
                        const std::string& new_action_id) {
  if (record.action.has_value()) {
    for (const VmView& view : snapshot.observation().vms)
      record.action->create.erase(view.vm->name);
  }
  for (const auto& [view, step] : steps) {
    const harvester::VirtualMachine& vm = view->vm;
    const auto& replaces = vm.replaces;
    const bool rolls = replaces.has_value() && replaces->reason.kind != ReplaceKind::kUnhealthy;
    const bool fails =
        step.kind == StepKind::kMarkBroken ||
        (step.kind == StepKind::kMarkUnhealthy && IsPendingReplacement(*view, snapshot));
    if (fails && rolls) {
      StopReplacement({.at = snapshot.now(),
                       .vm = vm.name,
                       .template_hash = vm.template_hash,
                       .why = step.reason,
                       .lacks_room = harvester::LacksRoom(vm)},
                      &record.replacement);
    }
    if (!LeadsToRemoval(step.kind)) continue;
    if (!record.action.has_value()) {
      const std::int64_t standing = CountOf(snapshot);
      record.action = harvester::LeaseAction{.id = new_action_id, .from = standing, .to = standing};
    }
    record.action->names.insert(vm.name);
  }
  return record;
}

void Unrecorded::AddReplacement(const std::string& vm, const absl::Status& outcome) {
  AddOutcome("", outcome);
  if (error.has_value()) error->vm = vm;
}

void Unrecorded::AddOutcome(const std::string& action, const absl::Status& outcome) {
  succeeded |= outcome.ok();
  if (outcome.ok()) {
    error.reset();
  } else {
    AddError(action, base::Message(outcome));
  }
}

void Unrecorded::AddError(const std::string& action, const std::string& text) {
  if (!error.has_value() || action.empty() || error->action != action)
    error = harvester::ErrorRecord{.action = action};
  AppendError(base::WithoutSecrets(text), &error->text);
}

bool LacksRoom(const PoolRecord& record) {
  return record.replacement.has_value() && record.replacement->lacks_room;
}

bool IsRoomErrorOver(const PoolRecord& record, base::WallTime now) {
  const std::optional<harvester::ErrorRecord>& error = record.last_error;
  return error.has_value() && error->action.empty() && error->vm.empty() &&
         !IsWithin(error->at, kGrowthAsksWithin, now);
}

PoolRecord RecordAfter(PoolRecord record, const Unrecorded& news, base::WallTime now) {
  if (record.action.has_value()) {
    for (const std::string& name : news.made) record.action->create.erase(name);
  }
  if (news.succeeded || (news.replaced && news.failures.empty())) record.last_error.reset();
  if (news.error.has_value()) AddError(*news.error, now, &record);
  if (news.delivered) {
    RecordCreationSuccess(&record.back_off);
    if (LacksRoom(record)) record.replacement.reset();
  }
  if (news.removed) RecordRemovalSuccess(&record.back_off);
  for (const auto& [cause, action] : news.failures) {
    // What else of the action fails is no failure of removals (rule C12).
    if (!news.removed || !IsOfRemovals(cause)) RecordFailure(&record.back_off, cause, now, action);
  }
  if (news.no_room.has_value()) {
    RecordNoRoom(&record.back_off, now);
    harvester::StoppedReplacement waits = *news.no_room;
    waits.at = now;
    if (!waits.template_hash.empty()) StopReplacement(std::move(waits), &record.replacement);
  }
  record.last_event = std::max(record.last_event, news.last_event);
  return record;
}

PoolRecord RecordAfter(PoolRecord record, const Unrecorded& news, const PoolSnapshot& last,
                       const std::set<std::string>& leftovers) {
  std::optional<harvester::LeaseAction>& action = record.action;
  if (action.has_value()) {
    const bool is_over = last.observation().nomad.ok() && !last.mass_loss().alarming;
    if (is_over) action->despite_mass_loss = false;
    for (const std::string& name : news.made) action->create.erase(name);
    CloseAction(&*action, last, leftovers);
    const bool is_settled = action->names.empty() && record.last_error.has_value() &&
                            record.last_error->action == action->id && action->to == CountOf(last);
    if (is_settled) record.last_error.reset();
    if (action->names.empty()) action.reset();
  }
  if (IsRoomErrorOver(record, last.now())) record.last_error.reset();
  return RecordAfter(std::move(record), news, last.now());
}

}  // namespace nomad_harvester::scaling
