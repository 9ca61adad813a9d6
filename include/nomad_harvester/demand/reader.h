// SPDX-License-Identifier: Apache-2.0
// Reads of one Nomad what decides how many nodes its pools need.
#ifndef NOMAD_HARVESTER_DEMAND_READER_H_
#define NOMAD_HARVESTER_DEMAND_READER_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "nomad_harvester/base/mutex.h"
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

// Thread-safe; calls block for requests.
class Reader {
 public:
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
  // are no places, and what leaves them may come to the pool.
  absl::StatusOr<World> WorldOf(const runtime::Context& context, const Reading& reading,
                                const nodepool::PoolIdentity& pool,
                                const std::set<std::string>& emptied = {});

 private:
  using JobKey = std::pair<std::string, std::string>;  // namespace, ID
  // A job as long as it is not changed.
  struct KnownJob {
    std::uint64_t index = 0;
    std::map<std::string, std::shared_ptr<const Group>> groups{};
  };
  using Jobs = std::map<JobKey, std::shared_ptr<const KnownJob>>;
  using Nodes = std::vector<std::shared_ptr<const nomad::Node>>;
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
  // From the cache, if it has what `reading` lists, or from Nomad. One that is gone is left out.
  absl::StatusOr<Jobs> ReadJobs(const runtime::Context& context, const Reading& reading,
                                const std::set<JobKey>& wanted);
  // Likewise, in the order of `stubs`, which are of `reading`. Null: it is gone.
  absl::StatusOr<Nodes> ReadNodes(const runtime::Context& context, const Reading& reading,
                                  const std::vector<const nomad::Node*>& stubs);
  // Completes the failures of blocked evaluations, too.
  void AddPending(Lists& lists, const Jobs& jobs, Reading* reading);
  // Bounds the caches: drops nodes that are gone, and jobs that are gone or dead.
  void ForgetOthers(const std::vector<nomad::Node>& listed) NH_REQUIRES(mutex_);
  void ForgetOtherJobs(const Reading& reading);

  const std::shared_ptr<const nomad::NomadClient> client_;
  runtime::Executor& executor_;
  nomad::SharedList<Reading> shared_;
  base::Mutex mutex_;
  std::shared_ptr<const Reading> held_ NH_GUARDED_BY(mutex_);
  Jobs jobs_ NH_GUARDED_BY(mutex_);
  PendingSince pending_since_ NH_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<const nomad::Node>> nodes_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_DEMAND_READER_H_
