// SPDX-License-Identifier: Apache-2.0
#include "execution/pool_backlog.h"

#include "nomad_harvester/scaling/step_spec.h"

namespace nomad_harvester::scaling {

void AddLeftover(const std::string& vm, const std::string& what, const Retries& retries,
                 const Retries::Key& key, Leftovers* leftovers) {
  const bool in_trouble = !retries.LastOf(key).ok();
  const auto [entry, is_new] = leftovers->try_emplace(vm, Leftover{what, in_trouble});
  if (is_new) return;
  entry->second.what += ", " + what;
  entry->second.in_trouble &= in_trouble;
}

void PoolBacklog::CountRefusedRemoval(const std::string& vm, base::MonoTime now) {
  Refusals& refusals = removal_refusals[vm];
  ++refusals.count;
  refusals.last = now;
}

void PoolBacklog::CountFailure(std::string_view cause, const std::string& action) {
  const bool is_first = failed_actions[std::string(cause)].insert(action).second;
  if (is_first) unrecorded.failures.emplace(cause, action);
}

std::set<std::string> PoolBacklog::FailingZones(base::MonoTime now) const {
  std::set<std::string> failing;
  for (const auto& [zone, at] : zone_failures) {
    if (now - at < kZoneAvoidedFor) failing.insert(zone);
  }
  return failing;
}

void PoolBacklog::ForgetWhatIsGone(const Decisions& decisions, const PoolKey& pool) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  std::set<std::string> objects = {pool.pool};
  std::set<std::string> actions;
  for (const VmView& view : snapshot.observation().vms) {
    objects.insert(view.vm->uid);
    objects.insert(view.vm->name);
    actions.insert(view.vm->action_id);
    if (view.vm->mark.has_value()) actions.insert(view.vm->mark->action);
    if (view.vm->has_mark) continue;
    // Whoever removed the mark, the next removal of this VM starts anew.
    for (const StepKind kind : {StepKind::kStartDrain, StepKind::kDelete, StepKind::kRollBack}) {
      retries.Forget({StepName(kind), view.vm->uid});
    }
  }
  for (const auto& [view, step] : decisions.all()) {
    if (!IsReadable(*view, snapshot.observation())) continue;
    // Drop failures of steps that are no longer wanted.
    for (const StepKind kind : {StepKind::kPublishHost, StepKind::kUnpublishHost,
                                StepKind::kMarkBroken, StepKind::kMarkUnhealthy}) {
      if (step.kind != kind) retries.Forget({StepName(kind), view->vm->uid});
    }
    // The next time that it needs an operator is news.
    if (step.kind != StepKind::kReport) reported.erase(view->vm->uid);
  }
  for (const nomad::Node& node : snapshot.nodes()) objects.insert(node.id);
  const auto is_gone = [&](const auto& entry) { return !objects.contains(entry.first); };
  std::erase_if(reported, is_gone);
  std::erase_if(removal_refusals, is_gone);
  for (std::set<std::string>* names : {&awaited, &counted}) {
    std::erase_if(*names, [&](const std::string& vm) { return !objects.contains(vm); });
  }
  for (auto& [cause, failed] : failed_actions) {
    std::erase_if(failed, [&](const std::string& action) { return !actions.contains(action); });
  }
  // Only the sweep knows the names of claims and Secrets of gone VMs.
  retries.KeepOnly(objects, /*and_clean_up=*/!leftovers.empty());
}

}  // namespace nomad_harvester::scaling
