// SPDX-License-Identifier: Apache-2.0
// Begins the replacement of one VM (rules R1 to R8). Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_REPLACE_CALL_H_
#define NOMAD_HARVESTER_SCALING_REPLACE_CALL_H_

#include "nomad_harvester/scaling/replacement.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/intent.h"
#include "drivers/preflight.h"
#include "execution/pool_dependencies.h"
#include "execution/reconciler.h"

namespace nomad_harvester::scaling {

// One attempt. Used by one thread. The policy, the snapshot and `old` must outlive this object.
class ReplaceCall {
 public:
  ReplaceCall(const PoolDependencies& deps, const config::PoolPolicy& policy,
              const PoolSnapshot& snapshot, const Replaceable& old);

  // OK if nothing keeps the old VM, including facts that lists do not show, such as dynamic host
  // volumes. FAILED_PRECONDITION: something does. Blocks for the read of its node.
  absl::Status CheckOld(const runtime::Context& context) const;
  // Plans the creation of the new VM, and checks it. Only reads, including its trial creation.
  absl::StatusOr<ScalePlan> Plan(const runtime::Context& context);
  // Creates the new VM, without waiting for its node. Requires the pool's Lease, and a snapshot
  // without a ReplacementBlockedReason.
  absl::Status Run(const runtime::Context& context);

  // The intent was stored: the background continues it.
  bool acted() const { return acted_; }
  // Run refused it for want of room.
  bool lacks_room() const { return !preflight_.lacks_room().ok(); }

 private:
  const PoolDependencies deps_;
  const config::PoolPolicy& policy_;
  const PoolSnapshot& snapshot_;
  const Replaceable& old_;
  const ActionTerms terms_;
  Reconciler reconciler_;
  Preflight preflight_;
  bool acted_ = false;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_REPLACE_CALL_H_
