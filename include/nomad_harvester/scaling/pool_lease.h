// SPDX-License-Identifier: Apache-2.0
// One writer per pool, across processes (rule C11), and the pool's record (rules C10, C12, S4).
#ifndef NOMAD_HARVESTER_SCALING_POOL_LEASE_H_
#define NOMAD_HARVESTER_SCALING_POOL_LEASE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/kube/lease.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::scaling {

inline constexpr base::Duration kLeaseDuration = std::chrono::seconds(20);
inline constexpr base::Duration kLeaseRenewal = std::chrono::seconds(3);
// A holder with a renewTime at most this old by the API server's clock is alive (MayBeAlive).
inline constexpr base::Duration kLeaseAlive = std::chrono::seconds(5);
// Time limit of one write attempt.
inline constexpr base::Duration kWriteLimit = std::chrono::seconds(10);

// The data that the Lease stores besides its holder. Unreadable annotations count as absent.
struct PoolRecord {
  std::optional<harvester::LeaseAction> action;
  harvester::BackOff back_off;
  std::optional<base::WallTime> last_event;
  std::optional<harvester::PolicyRecord> policy;  // the last one that scaled (rule L11)
  std::optional<harvester::ErrorRecord> last_error;
  std::optional<harvester::StoppedReplacement> replacement{};  // rule R5
  base::Hold paused;  // set by operators; Store does not write it (rule L10)
  // The Nomad cluster to which the pool belongs: the keys of the cluster on which the last Scale
  // acted, or to which nomad-harvester adopt gave the pool; empty: unknown (rule C15).
  std::string nomad_cluster{};
  friend bool operator==(const PoolRecord&, const PoolRecord&) = default;
};

// True if the back-off of this cause makes the pool wait (rule C12). A time that is further away
// than the wait of its failures was written by a wrong clock, and counts as over.
bool MustWait(std::string_view cause, const harvester::BackOffEntry& entry, base::WallTime now);

// True if the Lease has a holder that may have renewed it within kLeaseAlive, by the API server's
// clock (server_time). True in doubt: both times have up to a second of error. False if it is
// further in the future: the clock has gone back, and the renewal may be of any age.
bool MayBeAlive(const kube::Lease& lease);

// The outcome of a request for the pool's Lease; a 403 with the rule that the token needs (rule
// C11).
absl::Status WithLeaseRule(const absl::Status& outcome, const PoolKey& key);

// Builds a pool's Lease for its creation, held by `holder`.
nlohmann::json NewLease(const PoolKey& key, const std::string& holder, base::WallTime now);

class LeasePermit;

enum class LeaseUser { kScale, kResumption };

// The coordination.k8s.io Lease of one pool, for one holder. The object lives as long as its pool
// in this process; Acquire and Release alternate. Thread-safe; Acquire, Store and Release block for
// their requests.
//
// While the Lease is held, a thread of its own renews it: a renewal blocks for its request, and the
// renewals of many pools must not wait for each other (rule L8).
class PoolLease {
 public:
  struct Options {
    std::string holder;  // unique to this process: host, pid, random
    base::Duration write_limit = kWriteLimit;
    // Called by Acquire, at most once, when it starts waiting for a holder that no longer renews
    // the Lease. Arguments: the holder, and the latest time at which the Lease will be taken over.
    std::function<void(const std::string& holder, base::WallTime until)> on_wait{};
  };
  // The options set by the configuration.
  static Options OptionsOf(const config::PluginConfig& config, std::string holder);

  PoolLease(std::shared_ptr<const kube::KubeClient> client, PoolKey key, runtime::Clock& clock,
            Options options, log::Logger logger);
  ~PoolLease();
  PoolLease(const PoolLease&) = delete;
  PoolLease& operator=(const PoolLease&) = delete;

  // Acquires the Lease and renews it until Release, StopRenewal or the destructor. `on_lost` is
  // called by the renewal, at most once, when another process holds the Lease or it could not be
  // renewed in time; never after one of those three has returned. After it every write permit
  // refuses, and the renewal never regains the Lease. LeaseHold does this for a scope.
  //
  // ABORTED: another live process holds it. If the holder has stopped renewing, Acquire waits until
  // our own clock has seen no renewal for kLeaseDuration, and then acquires the Lease; observations
  // of the holder are kept between calls. Every other failure is returned; a 403 says which rule
  // the token needs, here and from every other request for the Lease.
  absl::Status Acquire(const runtime::Context& context, LeaseUser user,
                       std::function<void()> on_lost);

  // True if the Lease has been read since this configuration was set.
  bool is_known() const;

  bool held() const;
  // Why the last hold was lost: nobody answered, or another process has the Lease.
  std::string why_lost() const;
  // Returns the record as last read or written.
  PoolRecord record() const;

  // Writes the record and the keys of the Nomad cluster (empty: leave them unchanged). The record's
  // own keys are not written, so that a concurrent nomad-harvester adopt is not overwritten.
  // After an error the record may or may not be stored.
  absl::Status Store(const runtime::Context& context, const PoolRecord& record,
                     const std::string& nomad_cluster = "");

  // Ends the hold and releases the Lease (empty holder, by resourceVersion); the same request
  // writes the record `last`, unless it is null. A renewal under way is cancelled, not awaited; all
  // further writes are refused. While a write of the hold may still take effect, the Lease is not
  // released but left to expire (rule L9): the write is under way, or its context ended before the
  // reply came, less than kLeaseDuration ago. A failure is only logged: the Lease then expires. If
  // `last` cannot be written, the Lease is released without it. Returns false if it is not known
  // whether `last` is stored.
  bool Release(const runtime::Context& context, const PoolRecord* last = nullptr);

  // Ends the hold like Release, but without a request and within a millisecond: the Lease expires,
  // or the next Acquire of this process acquires it again. For a call that must have no further
  // effect because its client disconnected. The destructor calls it.
  void StopRenewal();

  // Permits writes while we hold the Lease: the time since the last successful renewal was *sent*,
  // plus the limit of one attempt, stays below kLeaseDuration. Outlives the PoolLease.
  std::shared_ptr<const runtime::WritePermit> permit() const;

  // Reads the record without acquiring the Lease, for callers that do not act: record() then
  // returns what Acquire would have found. A missing Lease is no error.
  absl::Status Refresh(const runtime::Context& context);

 private:
  struct ObservedHolder {  // another holder, and its last renewal seen by our clock
    std::string holder;
    std::optional<base::WallTime> renew_time;
    base::MonoTime since{};
  };

  absl::StatusOr<std::optional<kube::Lease>> Read(const runtime::Context& context) const;
  // Waits until the Lease can be acquired, and returns it; nullopt: it does not exist. Sends no
  // request if it was free when this process last refreshed or released it.
  absl::StatusOr<std::optional<kube::Lease>> WaitUntilFree(const runtime::Context& context,
                                                           LeaseUser user);
  // Waits for the Lease and acquires it. While the resourceVersion of a Lease that was free still
  // matches, no other process has held it since.
  absl::Status AcquireLease(const runtime::Context& context, LeaseUser user);
  absl::Status Create(const runtime::Context& context);
  absl::Status TakeOver(const runtime::Context& context, const kube::Lease& lease);
  // OK if the reply to an acquisition names this holder.
  absl::Status CheckIsOurs(const kube::Lease& reply) const;
  // OK: may be acquired; ABORTED: busy; UNAVAILABLE: not renewed, but not for long enough yet.
  absl::Status CheckHolder(const kube::Lease& lease, LeaseUser user, bool first_read);
  // Calls on_wait.
  void LogWait(const kube::Lease& lease) const;
  void SetHeld(const kube::Lease& lease, base::MonoTime sent);
  // Records what every reply shows while the Lease is ours: its version, others' changes, the
  // server's time.
  void RecordReply(const kube::Lease& lease) NH_REQUIRES(mutex_);
  void RecordServerTime(const kube::Lease& lease) const NH_REQUIRES(mutex_);
  // Estimates the API server's current time from its replies; other processes compare renewTime
  // with that clock. Early by up to a second plus the reply's travel time; MayBeAlive allows for
  // that.
  base::WallTime ServerNow() const NH_REQUIRES(mutex_);
  // The Lease as the write left it.
  absl::StatusOr<kube::Lease> Patch(const runtime::Context& context,
                                    const kube::LeaseChange& change) const;
  // Patches the Lease while it is ours: a conflict with another patch of ours is resolved by
  // reading it.
  absl::StatusOr<kube::Lease> PatchOurs(const runtime::Context& context,
                                        kube::LeaseChange change) const;
  void RecordReleased(const kube::Lease& lease, bool is_free, const PoolRecord* record);
  void StartRenewal(std::function<void()> on_lost);
  // Ends the renewal and refuses all further writes.
  void EndHold();
  void Renew(const runtime::Context& context);
  // True: the Lease has a newer version than the cached one but is still ours; try again.
  bool RenewOnce(const runtime::Context& context);
  void Lose(const std::string& why);
  std::string RenewalProblem() const;

  const std::shared_ptr<const kube::KubeClient> client_;
  const PoolKey key_;
  runtime::Clock& clock_;
  const Options options_;
  const log::Logger logger_;
  const std::shared_ptr<LeasePermit> permit_;

  mutable base::Mutex mutex_;
  bool held_ NH_GUARDED_BY(mutex_) = false;
  bool absent_ NH_GUARDED_BY(mutex_) = false;
  bool known_ NH_GUARDED_BY(mutex_) = false;
  std::uint64_t holds_ NH_GUARDED_BY(mutex_) = 0;  // counts holds begun, and holds ended by Release
  std::string resource_version_ NH_GUARDED_BY(mutex_);
  PoolRecord record_ NH_GUARDED_BY(mutex_);
  mutable std::optional<base::WallTime> server_time_ NH_GUARDED_BY(mutex_);
  // Our clock when server_time_ was recorded.
  mutable base::MonoTime server_time_at_ NH_GUARDED_BY(mutex_){};
  std::optional<ObservedHolder> observed_holder_ NH_GUARDED_BY(mutex_);
  // The Lease as it was without a holder.
  std::optional<kube::Lease> free_ NH_GUARDED_BY(mutex_);
  std::function<void()> on_lost_ NH_GUARDED_BY(mutex_);
  std::string why_lost_ NH_GUARDED_BY(mutex_);
  absl::Status renewal_problem_ NH_GUARDED_BY(mutex_);  // of the last attempt
  // Only touched by Acquire and by the functions that end its hold.
  std::optional<runtime::CancelSource> renewing_;  // cancels a renewal's request
  std::unique_ptr<runtime::PeriodicTask> renewal_;
};

PoolRecord ParsePoolRecord(const kube::Lease& lease, const log::Logger& logger);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_LEASE_H_
