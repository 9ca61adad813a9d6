// SPDX-License-Identifier: Apache-2.0
// State that a service keeps between calls: each pool's state, and the clients of the current
// configuration. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_SESSION_H_
#define NOMAD_HARVESTER_SCALING_SESSION_H_

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/scaling/pool_gate.h"
#include "nomad_harvester/scaling/service.h"

#include "execution/pool_dependencies.h"
#include "observation/held_list.h"
#include "observation/hosts.h"

namespace nomad_harvester::scaling {

// Decides when the background retries unfinished work: at most once a minute, and once in ten
// minutes after an hour (rule L7). New work does not wait.
class Rounds {
 public:
  static constexpr base::Duration kShortest = std::chrono::minutes(1);
  static constexpr base::Duration kLongest = std::chrono::minutes(10);

  // True if a round may begin for this work.
  bool MayBegin(const std::string& work, base::MonoTime now) const {
    return work != work_ || IsDue(now);
  }
  // True if a round may begin for the previous work, if there was any.
  bool IsDue(base::MonoTime now) const { return !next_.has_value() || now >= *next_; }
  const std::string& work() const { return work_; }
  // The time of the next round, if none begins now.
  base::MonoTime NextAfter(base::MonoTime now) const {
    return next_.has_value() && *next_ > now ? *next_ : now + kShortest;
  }
  void Unfinished(std::string work, base::MonoTime now) {
    // New work starts with the shortest interval, regardless of earlier trouble.
    if (!next_.has_value() || work != work_ || now >= *next_ + kLongest) since_ = now;
    work_ = std::move(work);
    next_ = now + std::clamp<base::Duration>((now - since_) / 6, kShortest, kLongest);
  }
  void Finished() { next_.reset(); }
  // Keeps the interval: Status reads less than the loop, and may report finished work once more.
  void Done(std::string work, base::MonoTime now) {
    if (work.empty()) return Finished();
    Unfinished(std::move(work), now);
  }

 private:
  std::string work_;
  base::MonoTime since_{};
  std::optional<base::MonoTime> next_;
};

// When the agent asks for a Status. One that is no leader any more stops asking.
class Asks {
 public:
  void Add(base::MonoTime now) {
    if (last_.has_value()) {
      interval_ = std::clamp<base::Duration>(now - *last_, kShortest, kLongest);
    }
    last_ = now;
  }
  // True if the last two Status that were due have not both failed to come (rule R2).
  bool AreCurrent(base::MonoTime now) const {
    return last_.has_value() && now - *last_ <= 2 * interval_;
  }

 private:
  static constexpr base::Duration kShortest = std::chrono::seconds(30);
  static constexpr base::Duration kLongest = std::chrono::minutes(10);
  std::optional<base::MonoTime> last_;
  base::Duration interval_ = kShortest;
};

// The values of a pool's policy, as the agent sends them.
class PolicyValues {
 public:
  // True: they have changed, so that the background begins anew. Two policies that take turns (rule
  // L11) leave it a minute, in which it ends something.
  bool Changes(const StringMap& values, base::MonoTime now) {
    if (values != values_) {
      const bool is_back = values == former_;
      former_ = std::exchange(values_, values);
      due_ = is_back ? std::max(now, began_ + kTurn) : now;
    }
    if (!due_.has_value() || now < *due_) return false;
    due_.reset();
    began_ = now;
    return true;
  }

 private:
  static constexpr base::Duration kTurn = std::chrono::minutes(1);
  StringMap values_;
  StringMap former_;  // the other ones that came last
  base::MonoTime began_{};
  std::optional<base::MonoTime> due_;
};

// State shared by a pool's calls and its background work.
struct PoolState {
  SharedPolicy policy;
  PolicyValues values;        // of `policy`
  base::MonoTime asked_at{};  // the last Status or Scale
  KnownTemplate new_vms;
  Asks asks;
  // True if a resumption has finished since the process started and since the last Scale that
  // acted.
  bool inspected = false;
  std::int64_t last_count = 0;  // of the last Status
  // The last Scale, if it was a scale-in that was refused (rule C12).
  struct Refusal {
    std::int64_t count = 0;  // that was asked for
    absl::Status why;
    base::MonoTime until{};  // it is not tried again
  };
  std::optional<Refusal> refused_scale_in;
  std::string last_reason;
  std::string last_warning;
  std::string last_drift;
  std::set<std::string> warned;
  std::optional<base::MonoTime> mass_loss_since;
  bool mass_loss_over = false;  // at the last Status: a new Scale removes (rule C15)
  std::optional<base::WallTime> last_event;
  std::set<std::string> just_ready;  // at the last Status, by uid (rule S4)
  // True if a resumption is queued but has not begun.
  bool queued = false;
  Rounds rounds;
  std::optional<harvester::VmNeed> need;  // what a VM asks of its host
  base::MonoTime room_of{};               // when the hosts were listed whose room was shown last
  std::int64_t leftovers = 0;             // number of VMs that are gone but left something
  std::set<std::string> reported;         // uids of VMs that need an operator, and were reported
};

// One pool, kept for the life of the process.
struct Pool {
  Pool(PoolKey k, const ServiceOptions& options)
      : key(std::move(k)),
        logger(options.logger.With({{"pool", key.ToString()}})),
        backlog(*options.random) {}
  const PoolKey key;
  const log::Logger logger;
  PoolGate gate;
  ObserverMemory memory;
  PoolBacklog backlog;  // used by the loop that is inside the gate
  base::Mutex mutex;
  PoolState state NH_GUARDED_BY(mutex);

  // Copies into the state what Status reads of the work. Called inside the gate after a run.
  void Publish(const PoolLease& lease);
  // Ends the background's run, which has an old policy or session; the next Status begins another.
  void BeginAnew();
  void WarnOnce(const std::vector<std::string>& warnings);
};

// Thread-safe.
class Pools {
 public:
  explicit Pools(const ServiceOptions& options) : options_(options) {}

  std::shared_ptr<Pool> Find(const PoolKey& key);
  // Returns the pool of a policy, and makes it the policy for the pool's background work, also of
  // what runs. Logs its warnings once. `values`: of which the policy was parsed.
  std::shared_ptr<Pool> Find(const SharedPolicy& policy, const StringMap& values);
  std::vector<std::shared_ptr<Pool>> All() const;

 private:
  const ServiceOptions& options_;
  mutable base::Mutex mutex_;
  std::map<PoolKey, std::shared_ptr<Pool>> pools_ NH_GUARDED_BY(mutex_);
};

// One configuration's access to one pool.
struct PoolAccess {
  PoolAccess(Clients c, const PoolKey& key, std::unique_ptr<PoolLease> l)
      : clients(std::move(c)), vms(clients.kube, key.ns), lease(std::move(l)) {}
  const Clients clients;  // with their own max_concurrency
  const harvester::VmStore vms;
  const std::unique_ptr<PoolLease> lease;
};

// One configuration. Thread-safe. A call keeps the configuration it started with.
class Session {
 public:
  using Vms = std::vector<harvester::VirtualMachine>;
  // `root` ends with the service.
  Session(const ServiceOptions& options, Clients clients, const runtime::Context& root);
  ~Session() { ending_.Cancel(runtime::CancelReason::kShutdown); }

  // Waits, within `context`, until the posted Events are sent or lost.
  void FlushEvents(const runtime::Context& context) {
    if (vm_events_ != nullptr) vm_events_->WaitUntilSent(context);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Clients& clients() const { return clients_; }
  NomadReads& nomad() { return nomad_; }
  Hosts& hosts() { return hosts_; }
  // Null: no Events are written.
  VmEvents* vm_events() const { return vm_events_.get(); }
  std::shared_ptr<PoolAccess> AccessTo(const Pool& pool);
  // For Status: the managed VMs of a namespace, and the API server's clock. Returns the held list
  // if the VMs' versions prove that it is current. Blocks for up to two requests.
  absl::StatusOr<harvester::Timestamped<std::shared_ptr<const Vms>>> VmsForStatus(
      const runtime::Context& context, const std::string& ns);
  std::unique_ptr<PoolLease> MakeLease(const Pool& pool) const;
  // Caches FindOwnNode. The allocation may be unknown right after the start, so reads are repeated
  // until it is found.
  absl::StatusOr<std::string> OwnNode(const runtime::Context& context);
  // All arguments must outlive the result. `backlog` replaces the pool's own, for a call outside
  // its gate.
  PoolDependencies DependenciesFor(Pool& pool, const PoolAccess& access, PoolLease& lease,
                                   PoolBacklog* backlog = nullptr);

 private:
  const ServiceOptions& options_;
  const Clients clients_;
  NomadReads nomad_;
  demand::Reader work_;
  Hosts hosts_;
  const runtime::CancelSource ending_;
  const std::shared_ptr<VmEvents> vm_events_;
  base::Mutex mutex_;
  std::optional<std::string> own_node_ NH_GUARDED_BY(mutex_);
  std::map<PoolKey, std::shared_ptr<PoolAccess>> pools_ NH_GUARDED_BY(mutex_);
  std::map<std::string, HeldList<Vms>> held_vms_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_SESSION_H_
