// SPDX-License-Identifier: Apache-2.0
// Sends Kubernetes Events beside the loop, which neither waits for them nor learns of their
// failures (rule T1). Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_VM_EVENTS_H_
#define NOMAD_HARVESTER_SCALING_VM_EVENTS_H_

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/harvester/vm_event.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// Belongs to one configuration and serves all its pools. Thread-safe. While events are pending, one
// task sends them one by one, taking the pools in turn.
//
// An event that equals one of the same VM in the last ten minutes increases its count instead. A
// failed request is not repeated: its event is lost, with a debug line. After a 403 or 404 the
// pool's events are dropped, with one WARN, as long as this object lives, which is until the next
// SetConfig.
class VmEvents : public std::enable_shared_from_this<VmEvents> {
 public:
  // Limit per pool. When more events are pending, the oldest are dropped.
  static constexpr std::size_t kMaxPending = 256;
  // A pool may send this many events at once, and after that this many per second.
  static constexpr double kBurst = 20;
  static constexpr double kPerSecond = 5;
  static constexpr base::Duration kSeries = std::chrono::minutes(10);

  struct Options {
    std::shared_ptr<const kube::KubeClient> kube;
    runtime::Executor* executor = nullptr;  // like the context's clock, outlives this object
    std::string instance;                   // identifies this process
    log::Logger logger;
  };
  // When `context` ends, pending events are dropped and no more are sent.
  VmEvents(const runtime::Context& context, Options options)
      : context_(context), options_(std::move(options)) {}

  // Does not block. `call`: the call to which the event belongs, for Drop.
  void Post(const PoolKey& pool, harvester::VmEvent event, const std::string& call = "");
  // Drops a call's pending events, because a call whose client has disconnected has no further
  // effect (rule C16).
  void Drop(const PoolKey& pool, const std::string& call);
  // Waits until every event is sent or lost; false: `context` ended first.
  bool WaitUntilSent(const runtime::Context& context);

 private:
  // The history of equal events. Does not keep their texts, because it lives for a while.
  struct Series {
    std::string name;  // of the object
    harvester::EventSeries seen;
    base::MonoTime last{};
    bool sent = false;
    bool pending = false;
  };
  struct Pending {
    std::string key;  // of its series
    harvester::VmEvent event;
    base::WallTime at{};
    std::string call;
  };
  struct PoolEvents {
    std::map<std::string, Series> series;
    std::deque<Pending> pending;
    double tokens = kBurst;
    base::MonoTime counted_at{};  // the tokens
    int dropped = 0;              // since the last line about it
    bool refused = false;         // by the API server
  };
  struct Next {
    PoolKey pool;
    Pending pending;
    Series series;
  };

  void Run();
  // Returns the next event to send. If there is none, `wake` is the time at which the next one may
  // be sent; if `wake` is unset, nothing is pending and the task must end.
  std::optional<Next> Take(base::MonoTime now, std::optional<base::MonoTime>* wake);
  absl::Status Write(const Next& next) const;
  void RecordSent(const Next& next, const absl::Status& outcome);
  void DropAll();
  static void Forget(base::MonoTime now, PoolEvents* pool);

  const runtime::Context context_;
  const Options options_;
  base::Mutex mutex_;
  base::CondVar idle_;
  std::map<PoolKey, PoolEvents> pools_ NH_GUARDED_BY(mutex_);
  PoolKey last_ NH_GUARDED_BY(mutex_);  // the pool of the last sent event
  bool running_ NH_GUARDED_BY(mutex_) = false;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_VM_EVENTS_H_
