// SPDX-License-Identifier: Apache-2.0
#include "execution/pool_backlog.h"

#include "nomad_harvester/scaling/step_spec.h"

namespace nomad_harvester::scaling {

void PoolBacklog::ForgetWhatIsGone(const Decisions& decisions, const PoolKey& pool,
                                   std::set<std::string> of_scale) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  std::set<std::string> objects = std::move(of_scale);
  objects.insert(pool.pool);
  for (const VmView& view : snapshot.look().vms) {
    objects.insert(view.vm->uid);
    objects.insert(view.vm->name);
    if (view.vm->has_mark) continue;
    // Whoever removed the mark, the next removal of this VM starts anew.
    for (const StepKind kind : {StepKind::kStartDrain, StepKind::kDelete, StepKind::kRollBack}) {
      retries.Forget({StepName(kind), view.vm->uid});
    }
  }
  for (const auto& [view, step] : decisions.all()) {
    if (!IsReadable(*view, snapshot.look())) continue;
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
  std::erase_if(counted, [&](const std::string& vm) { return !objects.contains(vm); });
  // Only the sweep knows the names of claims and Secrets of gone VMs.
  retries.KeepOnly(objects, /*and_clean_up=*/!leftovers.empty());
}

}  // namespace nomad_harvester::scaling
