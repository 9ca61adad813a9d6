// SPDX-License-Identifier: Apache-2.0
// The background work of a service: which pools need it, and when it runs (rules S5 and L7).
// Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_BACKGROUND_H_
#define NOMAD_HARVESTER_SCALING_BACKGROUND_H_

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/scaling/service.h"

#include "drivers/session.h"

namespace nomad_harvester::scaling {

// Thread-safe. Only the destructor blocks.
class Background {
 public:
  // Returns the current configuration; null: there is none, or the process is ending. Must not
  // block.
  using CurrentSession = std::function<std::shared_ptr<Session>()>;

  // `root` cancels all work. Objects referred to by the other arguments must outlive this object.
  Background(const ServiceOptions& options, Pools& pools, runtime::Context root,
             CurrentSession session)
      : options_(options), pools_(pools), root_(std::move(root)), session_(std::move(session)) {}
  // Waits for running work; what is queued will find this object gone. Cancel `root` first.
  ~Background();

  // If the snapshot's pool has unfinished work, starts a resumption as a background task, unless
  // the pool is in use or its next round is not due yet.
  void Wake(const std::shared_ptr<Session>& session, const PoolSnapshot& snapshot);
  // Starts a resumption of a pool whose Scale has acted, because an agent may send no Status during
  // its cooldown. Any resumption that ends with unfinished work is followed by another one at the
  // intervals of Rounds, without a Status, as long as the pool has been asked for within half an
  // hour.
  void Continue(const std::shared_ptr<Pool>& pool);
  // Reports, by one WARN each and by the metrics, the pools of the namespace in which a removal has
  // been unfinished for ten minutes and for which this process has seen no policy. Does not work on
  // them, because they may belong to an agent of another Nomad cluster with nodes that this Nomad
  // does not know (rule S5). O(VMs + nodes).
  void ReportUnclaimed(const Session& session, const PoolSnapshot& snapshot);

 private:
  struct UnclaimedWork {
    base::MonoTime since{};
    bool told = false;
  };

  // False: the queue is full.
  bool Start(const std::shared_ptr<Pool>& pool, std::string work);
  void Run(const std::shared_ptr<Pool>& pool, std::string work);
  // Returns when to try the pool again; nullopt if no work is left, or if a Status will tell.
  std::optional<base::MonoTime> Resume(Session& session, Pool& pool,
                                       const runtime::Context& context, std::string work);
  // Replaces the pool's alarm; nullopt removes it. Must not be called by an alarm.
  void SetAlarm(const std::shared_ptr<Pool>& pool, std::optional<base::MonoTime> at);
  // Starts the work for which the alarm was set. If that fails, the alarm rings again after the
  // same time.
  void OnAlarm(const std::shared_ptr<Pool>& pool);

  const ServiceOptions& options_;
  Pools& pools_;
  const runtime::Context root_;
  const CurrentSession session_;
  base::Mutex mutex_;
  std::map<PoolKey, UnclaimedWork> unclaimed_ NH_GUARDED_BY(mutex_);
  const std::shared_ptr<std::promise<void>> ended_ = std::make_shared<std::promise<void>>();
  // Shared with running tasks, and owns nothing: its last user ends the wait of the destructor.
  std::shared_ptr<Background> self_{this, [ended = ended_](Background*) { ended->set_value(); }};
  const std::weak_ptr<Background> while_it_exists_{self_};
  base::Mutex alarms_mutex_;
  // Only for pools with unfinished work. The last member, because an alarm uses the others.
  std::map<PoolKey, std::unique_ptr<runtime::PeriodicTask>> alarms_ NH_GUARDED_BY(alarms_mutex_);
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_BACKGROUND_H_
