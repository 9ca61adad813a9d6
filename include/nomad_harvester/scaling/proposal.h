// SPDX-License-Identifier: Apache-2.0
// What a Scale would do now, for commands that show it without acting.
#ifndef NOMAD_HARVESTER_SCALING_PROPOSAL_H_
#define NOMAD_HARVESTER_SCALING_PROPOSAL_H_

#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

struct Proposal {
  // After the roll-backs.
  PoolSnapshot snapshot;
  // The plan within all its limits. If no plan can be made, only its numbers and its direction are
  // set, and `refusal` says why.
  ScalePlan plan;
  // VMs that are rolled back before planning (rule C14), and why. The plan assumes that this is
  // done.
  std::vector<SkippedVm> roll_backs;
  // VMs that a Scale in either direction also removes, because they are broken or unhealthy.
  std::vector<SkippedVm> replaced;
  // VMs that the background work replaces whatever the Scale does, the next one first (rule R1);
  // and why it does not do so now (rule R2) or why that is unknown, or empty.
  std::vector<SkippedVm> to_replace;
  std::string replacement_blocked_reason;
  // The error that would refuse the Scale; OK: none. ABORTED: another live process acts on the
  // pool.
  absl::Status refusal;
  // Why some or all new VMs would not be made although the Scale is accepted; OK: all would.
  absl::Status left_out;
  // The agent's policy that last scaled the pool, according to its Lease (rule L11); unset:
  // unknown.
  std::optional<harvester::PolicyRecord> agents_policy;
  // Remarks for the operator about the VMs to create.
  std::vector<std::string> notes;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_PROPOSAL_H_
