// SPDX-License-Identifier: Apache-2.0
// Writes what the removed VMs of a pool were made of (rule T3). Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_POOL_HISTORY_H_
#define NOMAD_HARVESTER_SCALING_POOL_HISTORY_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/kube/access.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

struct PoolDependencies;

// Kept in this process. Not thread-safe: the pool's gate lets one loop use it at a time.
class PoolHistory {
 public:
  // The token's rights in the pool's namespace, as a Scale has read them.
  void SetRights(const kube::AccessRules& rules);

  // Writes the VMs that are about to be deleted, which the snapshot has with their marks, and takes
  // out those that stay after all. Each is written once. Blocks for 3 s at most: for a review of
  // the rights if they are not known; with the right for one write of all these VMs, and one more
  // for the pool's first VM or once the history is full. A failure is logged, and is not repeated
  // for these VMs.
  void Write(const runtime::Context& context, const PoolDependencies& deps,
             const PoolSnapshot& snapshot, const std::vector<const VmView*>& deleted);

 private:
  // `history` is the ConfigMap to create if there is none, `data` what to change in it.
  absl::Status Send(const runtime::Context& context, const PoolDependencies& deps,
                    const kube::Json& history, const kube::Json& data);

  std::optional<bool> is_allowed_;  // unset: not known
  std::set<std::string> written_;   // uids of VMs that still exist
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_HISTORY_H_
