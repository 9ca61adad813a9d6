// SPDX-License-Identifier: Apache-2.0
//
// Previews the loop's steps without carrying them out.

#include <utility>

#include "nomad_harvester/base/status.h"

#include "pool_loop.h"

namespace nomad_harvester::scaling {

absl::Status PoolLoop::Preview(const runtime::Context& context) {
  previewing_ = true;
  NH_ASSIGN_OR_RETURN(PoolSnapshot snapshot, Observe(context));
  if (!snapshot.look().nomad_readable) {
    return base::Unavailable("Nomad cannot be read: " + snapshot.look().nomad_problem);
  }
  const Decisions decisions(std::move(snapshot));
  for (const Work& work : WorkOf(decisions)) {
    const VmView& view = *work.view;
    const bool waits_to_join = work.step.kind == StepKind::kWait && !view.vm.has_mark;
    if (work.step.kind == StepKind::kNothing || waits_to_join) continue;
    deps_.Notify({.vm = view.vm.name, .step = work.step});
  }
  for (const NodeOfGoneVm& gone : decisions.to_purge()) {
    deps_.Notify(
        {.kind = ReconcileEvent::Kind::kPurge, .vm = gone.mark->vm, .object = gone.node->id});
  }
  return Sweep(context);
}

}  // namespace nomad_harvester::scaling
