// SPDX-License-Identifier: Apache-2.0
// Publishes on which Harvester host a VM runs (publish_host). Private to module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_PUBLICATION_H_
#define NOMAD_HARVESTER_SRC_SCALING_PUBLICATION_H_

#include <memory>
#include <set>
#include <vector>

#include "nomad_harvester/scaling/rules.h"

#include "execution/deferred_tasks.h"
#include "execution/pool_dependencies.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

// Carries out kPublishHost or kUnpublishHost: sets or unsets the metadata of the step's node, and
// then, with the resourceVersion of `view`, the annotation published-host. After a kill between the
// two, both are done again (docs/adr/0024). Blocks for a few seconds at most, if the node's client
// hangs. `asking` is for requests that may be cancelled at any time, `writing` for the PATCH.
Effect Publish(const runtime::Context& asking, const runtime::Context& writing,
               const PoolDependencies& deps, const VmView& view, const Step& step);

// The publications of one run of the loop, whose passes do not wait for them. Used by one thread.
class Publications {
 public:
  // `deps` must outlive this object.
  explicit Publications(const PoolDependencies& deps) : deps_(deps) {}

  // Starts those publications of `due`, entries of decisions on `seen`, that do not run yet and may
  // be tried now.
  void Start(const runtime::Context& context, const std::vector<const Decisions::Entry*>& due,
             const std::shared_ptr<const Snapshot>& seen, base::MonoTime now);
  // The effects of publications that ended since the last call. By then they are in the pool's
  // retries, metrics and log. None counts as an action: they neither end the agent's cooldown nor
  // keep a Scale from ending (rule L1).
  std::vector<Effect> TakeEnded();
  // True if a publication runs, or waits for its turn.
  bool any() const { return wait_ || tasks_.any(); }
  // See DeferredTasks.
  void Await() { tasks_.Await(); }
  void End() { tasks_.End(); }

 private:
  void Log(const DeferredTasks::Ended& ended) const;

  const PoolDependencies& deps_;
  std::set<Retries::Key> begun_;
  bool wait_ = false;    // some could not be started yet
  DeferredTasks tasks_;  // the last member: its tasks use the others
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_PUBLICATION_H_
