// SPDX-License-Identifier: Apache-2.0
// Publishes the Harvester host on which a VM runs (publish_host). Private to module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_PUBLICATION_H_
#define NOMAD_HARVESTER_SRC_SCALING_PUBLICATION_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/rules.h"

#include "execution/pool_dependencies.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

// Executes kPublishHost or kUnpublishHost: sets or unsets the metadata of the step's node, and
// then, with the resourceVersion of `view`, the annotation published-host. If the process dies
// between the two, both are repeated (docs/adr/0024). Blocks for a few seconds at most, if the
// node's client hangs. `reading` is for requests that may be cancelled at any time, `writing` for
// the PATCH.
Effect Publish(const runtime::Context& reading, const runtime::Context& writing,
               const PoolDependencies& deps, const VmView& view, const Step& step);

// The publications of one run of the loop, whose passes do not wait for them. Used by one thread;
// the publications run on the executor.
class Publications {
 public:
  // `deps` must outlive this object.
  explicit Publications(const PoolDependencies& deps) : deps_(deps) {}
  ~Publications() { End(); }
  Publications(const Publications&) = delete;
  Publications& operator=(const Publications&) = delete;

  // Starts those publications of `due`, entries of decisions on `seen`, that do not run yet and may
  // be tried now. `context` must be the same in all calls until End.
  void Start(const runtime::Context& context, const std::vector<const Decisions::Entry*>& due,
             const std::shared_ptr<const Snapshot>& seen, base::MonoTime now);
  // Returns the effects of publications that ended since the last call; they are already in the
  // pool's retries, metrics and log. None counts as an action: they neither end the agent's
  // cooldown nor keep a Scale from ending (rule L1).
  std::vector<Effect> TakeEnded();
  // True if a publication runs, or waits for its turn.
  bool any() const;
  // Blocks until all have ended. Runs those that have not begun in the calling thread.
  void Await();
  // Cancels what may be cancelled of those that run, and waits for their end. Others never begin.
  // Idempotent. Start may be called again after it, for the next run of the loop.
  void End();

 private:
  struct Ended {
    Retries::Key key;
    std::string vm;
    Step step;
    Effect effect;
  };
  using Task = std::function<Ended(const runtime::Context& reading)>;
  struct State {
    base::Mutex mutex;
    base::CondVar changed;
    std::deque<Task> waiting NH_GUARDED_BY(mutex);
    int running NH_GUARDED_BY(mutex) = 0;
    std::vector<Ended> ended NH_GUARDED_BY(mutex);
  };
  // False: none is waiting.
  static bool RunNext(State& state, const runtime::Context& reading);
  // False: the executor has no room, and the task is dropped.
  bool Submit(Task task);
  void AwaitRunning();
  void Log(const Ended& ended) const;

  const PoolDependencies& deps_;
  std::set<Retries::Key> begun_;
  bool wait_ = false;  // some could not be started yet
  // Shared, because the executor may call after this object is destroyed. It then finds no task.
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::optional<runtime::CancelSource> reading_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_PUBLICATION_H_
