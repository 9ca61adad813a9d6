// SPDX-License-Identifier: Apache-2.0
// Reads of one Nomad what decides how many nodes its pools need.
#ifndef NOMAD_HARVESTER_DEMAND_READER_H_
#define NOMAD_HARVESTER_DEMAND_READER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/demand/work.h"
#include "nomad_harvester/nodepool/identity.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/nomad/shared_list.h"
#include "nomad_harvester/nomad/types.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/workers.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::demand {

// Queries that follow one another within this time share a reading: an agent evaluates its policies
// at about the same time, every 10 s by default.
inline constexpr base::Duration kReadingIsKept = std::chrono::seconds(5);

// What the token needs.
inline constexpr char kTokenNeeds[] =
    "node { policy = \"read\" } and namespace \"*\" { capabilities = [\"read-job\", \"list-jobs\"] "
    "}";

// Why Nomad blocked an evaluation: it refused its plans because of others that it placed side by
// side, and tries it again within a minute (hashicorp/nomad:nomad/structs/structs.go,
// EvalTriggerMaxPlans).
inline constexpr char kPlansRefused[] = "max-plan-attempts";

// What was read for all pools. Immutable.
struct Reading {
  std::vector<nomad::Node> nodes{};                   // of the region, as stubs
  std::map<std::string, std::vector<Placed>> work{};  // by the ID of the node
  std::vector<nomad::BlockedEvaluation> blocked{};
  // By namespace and ID, those not dead: their JobModifyIndex.
  std::map<std::pair<std::string, std::string>, std::uint64_t> jobs{};
  std::vector<Pending> pending{};
  std::vector<std::shared_ptr<const Group>> system{};
  base::MonoTime begun{};
  base::WallTime at{};  // when the newest list was read
};

// Objects of Nomad, which have a `modify_index`, each read once for each of its versions.
// Thread-safe.
template <typename Key, typename Object>
class VersionCache {
 public:
  using Pointer = std::shared_ptr<const Object>;
  using Versions = std::vector<std::pair<Key, std::uint64_t>>;

  // In the order of `listed`: each at least in this version, or else from `read`, which returns
  // null for one that is gone.
  absl::StatusOr<std::vector<Pointer>> Get(
      const runtime::Context& context, runtime::Executor& executor, const Versions& listed,
      const std::function<absl::StatusOr<Pointer>(const Key& key)>& read) {
    constexpr std::size_t kSideBySide = 20;  // the client has slots besides
    std::vector<Pointer> all(listed.size());
    std::vector<std::size_t> to_read;
    {
      const base::MutexLock lock(mutex_);
      for (std::size_t i = 0; i < listed.size(); ++i) {
        const auto known = known_.find(listed[i].first);
        const bool is_known = known != known_.end();
        if (is_known && known->second->modify_index >= listed[i].second) {
          all[i] = known->second;
        } else {
          to_read.push_back(i);
        }
      }
    }
    const auto results = runtime::ForEachBounded(context, executor, to_read.size(), kSideBySide,
                                                 [&](std::size_t i) -> absl::Status {
                                                   const Key& key = listed[to_read[i]].first;
                                                   Pointer& object = all[to_read[i]];
                                                   NH_ASSIGN_OR_RETURN(object, read(key));
                                                   if (object == nullptr) return absl::OkStatus();
                                                   // At once: another one may fail, and the next
                                                   // call then continues.
                                                   const base::MutexLock lock(mutex_);
                                                   known_.insert_or_assign(key, object);
                                                   return absl::OkStatus();
                                                 });
    for (const absl::Status& result : results) NH_RETURN_IF_ERROR(result);
    return all;
  }
  template <typename Keys>
  void KeepOnly(const Keys& keys) {
    const base::MutexLock lock(mutex_);
    std::erase_if(known_, [&](const auto& entry) { return !keys.contains(entry.first); });
  }

 private:
  base::Mutex mutex_;
  std::map<Key, Pointer> known_ NH_GUARDED_BY(mutex_);
};

// Thread-safe; calls block for requests.
class Reader {
 public:
  static constexpr std::size_t kAllPlaces = std::numeric_limits<std::size_t>::max();

  // The executor must outlive the reader.
  Reader(std::shared_ptr<const nomad::NomadClient> client, runtime::Executor& executor);

  // A reading that was begun at most kReadingIsKept ago, or one of another caller that is under
  // way, or a new one. PERMISSION_DENIED: the token is not proven to have read-job and list-jobs in
  // every namespace, without which Nomad leaves work out of its lists and says nothing (rule C9).
  // `from_now_on`: only one that is begun after this call.
  absl::StatusOr<std::shared_ptr<const Reading>> Read(const runtime::Context& context,
                                                      bool from_now_on = false);
  // The job of an evaluation that Nomad has not finished; empty: there is none. Of its plan that
  // was accepted in part, what ends is in no list, and what it places instead is not yet
  // (hashicorp/nomad:nomad/plan_apply.go, evaluatePlanPlacements).
  absl::StatusOr<std::string> JobBeingPlaced(const runtime::Context& context) const;
  // The pool's nodes with their attributes, and the work of all pools. A node is read once for each
  // of its versions; one that is gone by then is left out. `emptied`: nodes, of the pool or not,
  // that are read, too, with the jobs of what a drain moves from them, each job once for each of
  // its versions; likewise those of other pools that Nomad drains, or that are not eligible: they
  // are no places, and what leaves them may come to the pool. `most_places`: of the pool's other
  // nodes, so many with the least work.
  absl::StatusOr<World> WorldOf(const runtime::Context& context, const Reading& reading,
                                const nodepool::PoolIdentity& pool,
                                const std::set<std::string>& emptied = {},
                                std::size_t most_places = kAllPlaces);

 private:
  using JobKey = std::pair<std::string, std::string>;  // namespace, ID
  // A job as long as it is not changed.
  struct KnownJob {
    std::uint64_t modify_index = 0;
    std::map<std::string, std::shared_ptr<const Group>> groups{};
  };
  using Jobs = std::map<JobKey, std::shared_ptr<const KnownJob>>;
  // By job, group, and whether Nomad refused its plans: as long as any of it waits, whatever its
  // evaluation is.
  using PendingSince = std::map<std::tuple<JobKey, std::string, bool>, base::MonoTime>;
  struct Lists;

  absl::StatusOr<Reading> ReadAll(const runtime::Context& context);
  absl::StatusOr<Lists> ReadLists(const runtime::Context& context);
  absl::Status Verify(const runtime::Context& context) const;
  // The jobs to read in full.
  static std::set<JobKey> WantedOf(const Lists& lists);
  // Null: it is gone.
  absl::StatusOr<std::shared_ptr<const KnownJob>> ReadJob(const runtime::Context& context,
                                                          const JobKey& key) const;
  // One that is gone is left out.
  absl::StatusOr<Jobs> ReadJobs(const runtime::Context& context, const Reading& reading,
                                const std::set<JobKey>& wanted);
  // Completes the failures of blocked evaluations, too.
  void AddPending(Lists& lists, const Jobs& jobs, Reading* reading);

  const std::shared_ptr<const nomad::NomadClient> client_;
  runtime::Executor& executor_;
  nomad::SharedList<Reading> shared_;
  VersionCache<JobKey, KnownJob> jobs_;
  VersionCache<std::string, nomad::Node> nodes_;  // by their IDs
  base::Mutex mutex_;
  std::shared_ptr<const Reading> held_ NH_GUARDED_BY(mutex_);
  PendingSince pending_since_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_DEMAND_READER_H_
