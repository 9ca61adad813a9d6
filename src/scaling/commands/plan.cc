// SPDX-License-Identifier: Apache-2.0
//
// Shows what a Scale would do, at an operator's request.

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/maintenance.h"
#include "nomad_harvester/scaling/status_report.h"

#include "commands/check_parts.h"
#include "commands/command_run.h"
#include "drivers/scale_call.h"
#include "execution/read_only.h"

namespace nomad_harvester::scaling {

absl::StatusOr<Proposal> Maintenance::Plan(const runtime::Context& caller,
                                           const config::PoolPolicy& policy,
                                           std::int64_t count) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  CommandRun run(options_, clients_, {.ns = policy.ns, .pool = policy.pool});
  const LeaseView lease = ReadLease(context, clients_, run.key, options_.logger);
  NH_RETURN_IF_ERROR(CheckAnswered(context, lease));
  if (absl::Status read = run.lease.Refresh(context); !read.ok()) {
    return base::Annotate(read, "Harvester cannot be read");
  }
  run.memory.SetOwnNode(FindOwnNode(context, *clients_.nomad, clients_.config->own_allocation_id));
  ScaleCall call(run.Deps(options_), policy, {.count = count});
  NH_ASSIGN_OR_RETURN(Proposal proposal, call.Propose(context));
  if (proposal.plan.direction == Direction::kIn && clients_.config->own_allocation_id.empty()) {
    proposal.notes.emplace_back(
        "NOMAD_ALLOC_ID is not set here: if the autoscaler runs on a node of this pool, protect "
        "that VM");
  }
  if (!lease.misread_pause.empty()) {
    proposal.notes.push_back("the pool's Lease: " + lease.misread_pause);
  }
  std::set<std::string> same_nodes;
  for (const VmView& view : proposal.snapshot.observation().vms) {
    if (SharesNodes(view.vm, policy)) same_nodes.insert(view.vm->pool);
  }
  if (!same_nodes.empty()) {
    proposal.notes.push_back("its nodes are " + SameNodesText(same_nodes));
  }
  StatusInputs inputs;
  inputs.paused = lease.record.paused;
  const StatusReport report = ReportStatus(proposal.snapshot, inputs);
  if (proposal.refusal.ok() && !report.status.ready) {
    proposal.notes.push_back("the pool is not ready, so that the agent does not scale it: " +
                             report.reason);
  }
  proposal.agents_policy = lease.record.policy;
  if (lease.live) {
    // This refusal overrides all others, because a Scale would not even observe a busy pool.
    proposal.refusal =
        base::MakeStatus(absl::StatusCode::kAborted, "another process acts on pool " +
                                                         run.key.ToString() + ": " + lease.holder);
  }
  return proposal;
}

}  // namespace nomad_harvester::scaling
