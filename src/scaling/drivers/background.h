// SPDX-License-Identifier: Apache-2.0
// The background work of a service: which pools have some, and when it runs (rules S5 and L7).
// Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_BACKGROUND_H_
#define NOMAD_HARVESTER_SCALING_BACKGROUND_H_

#include <memory>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/scaling/service.h"

#include "drivers/session.h"

namespace nomad_harvester::scaling {

// Thread-safe; nothing blocks but the destructor.
class Background {
 public:
  // `root` cancels all work; what the other two refer to outlives this object.
  Background(const ServiceOptions& options, Pools& pools, runtime::Context root)
      : options_(options), pools_(pools), root_(std::move(root)) {}
  // Waits for the work that runs, whose context must be cancelled.
  ~Background() { tasks_->Close(); }

  // Starts a resumption, as a background task, for every pool of the namespace with unfinished
  // work, unless the pool is in use, or its next round is yet to come.
  void Wake(const std::shared_ptr<Session>& session, const PoolSnapshot& snapshot);

 private:
  // The executor may have tasks in its queue when this object is destroyed.
  class Tasks {
   public:
    // False: nothing may begin any more. After true, End must follow.
    bool Begin();
    void End();
    // No task begins from now on; waits for those that run.
    void Close();

   private:
    base::Mutex mutex_;
    base::CondVar changed_;
    bool closed_ NH_GUARDED_BY(mutex_) = false;
    int running_ NH_GUARDED_BY(mutex_) = 0;
  };

  void Start(const std::shared_ptr<Session>& session, const std::shared_ptr<Pool>& pool,
             std::string work);
  void Run(Session& session, Pool& pool, const std::string& work);
  void Resume(Session& session, Pool& pool, const runtime::Context& context,
              const std::string& work);

  const ServiceOptions& options_;
  Pools& pools_;
  const runtime::Context root_;
  const std::shared_ptr<Tasks> tasks_ = std::make_shared<Tasks>();
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_BACKGROUND_H_
