// SPDX-License-Identifier: Apache-2.0
#include "execution/own_node.h"

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::scaling {

absl::StatusOr<std::string> FindOwnNode(const runtime::Context& context,
                                        const nomad::NomadClient& nomad,
                                        const std::string& allocation) {
  if (allocation.empty()) return std::string();
  auto node = nomad.NodeOfAllocation(context, allocation);
  if (absl::IsNotFound(node.status())) {
    // A token that can read every namespace would find the allocation, so it is in another cluster.
    const auto read_job = nomad.VerifyReadJob(context);
    if (read_job.ok() && *read_job == nomad::ReadJob::kEverywhere) return std::string();
  }
  if (node.ok()) return node;
  return base::Annotate(node.status(), "the autoscaler's own node cannot be found (allocation " +
                                           allocation + "), and it must never be removed");
}

}  // namespace nomad_harvester::scaling
