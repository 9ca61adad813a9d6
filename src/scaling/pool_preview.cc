// SPDX-License-Identifier: Apache-2.0
//
// Previews the loop's steps without carrying them out.

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/drain.h"

#include "pool_loop.h"

namespace nomad_harvester::scaling {

absl::Status PoolLoop::Preview(const runtime::Context& context) {
  previewing_ = true;
  NH_ASSIGN_OR_RETURN(last_snapshot_, Observe(context));
  const PoolSnapshot& snapshot = *last_snapshot_;
  if (!snapshot.nomad_readable) {
    return base::Unavailable("Nomad cannot be read: " + snapshot.nomad_problem);
  }
  for (const Work& work : WorkOf(snapshot)) {
    const VmView& view = snapshot.vms[work.vm];
    const bool waits_to_join = work.step.kind == StepKind::kWait && !view.vm.has_mark;
    if (work.step.kind == StepKind::kNothing || waits_to_join) continue;
    deps_.Notify({.vm = view.vm.name, .step = work.step});
  }
  for (const nomad::Node* node : NodesToPurge(snapshot)) {
    deps_.Notify({.kind = ReconcileEvent::Kind::kPurge,
                  .vm = nodepool::ParseDrainMark(*node)->vm,
                  .object = node->id});
  }
  return Sweep(context);
}

}  // namespace nomad_harvester::scaling
