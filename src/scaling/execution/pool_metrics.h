// SPDX-License-Identifier: Apache-2.0
// Reports one pool to the metrics (rule T2). Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_POOL_METRICS_H_
#define NOMAD_HARVESTER_SCALING_POOL_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "nomad_harvester/metrics/sink.h"
#include "nomad_harvester/scaling/drift.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/scaling/snapshot.h"
#include "nomad_harvester/scaling/status_report.h"

#include "absl/status/status.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

// The values of errors_total's class label.
namespace error_class {
inline constexpr std::string_view kConfig = "config";      // SetConfig refused its map
inline constexpr std::string_view kPolicy = "policy";      // a policy's map was refused
inline constexpr std::string_view kFile = "missing_file";  // of user or network data; at each call
inline constexpr std::string_view kHarvester = "harvester_unreadable";
inline constexpr std::string_view kNomad = "nomad_unreadable";
inline constexpr std::string_view kLeaseLost = "lease_lost";
inline constexpr std::string_view kRefused = "step_refused";
inline constexpr std::string_view kFailed = "step_failed";
}  // namespace error_class

// Exports every class before its first error. All of these functions do nothing without a sink.
void ShowErrors(metrics::Sink* sink);
void CountError(metrics::Sink* sink, std::string_view error_class);

// A value type; the sink must outlive it. As thread-safe as the sink; does not block.
class PoolMetrics {
 public:
  PoolMetrics(metrics::Sink* sink, const PoolKey& pool)
      : sink_(sink), pool_(sink == nullptr ? std::string() : pool.ToString()) {}

  // Exports VMs by state and by protection, from an Observation of the loop or of Status.
  void Observed(const PoolSnapshot& snapshot) const;
  // Exports whether the pool has unfinished work and no policy of this agent.
  void Unclaimed(bool unclaimed) const;
  // Exports VMs that wait to be replaced, and whether their roll-out has stopped.
  void Replacements(const PoolSnapshot& snapshot, const PoolRecord& record,
                    const CurrentTemplate& current) const;
  // Exports drift, leftovers and back-off, which only Status knows.
  void Reported(const StatusReport& report, const PoolRecord& record, std::int64_t leftovers,
                base::WallTime now) const;
  // Exports for how many more VMs the hosts have room.
  void HasRoom(std::int64_t vms) const;
  // `resumed`: the VM's name was left over by an earlier action.
  void Created(bool resumed) const;
  // Counts a step done at `now`, if it is a join or a deletion.
  void Done(const Step& step, const VmView& view, base::WallTime now) const;
  // Counts a step that could not be done.
  void Troubled(Verdict verdict) const;
  // Counts a finished Scale. `plan`: nullopt if the pool was not observed.
  void Scaled(const std::optional<ScalePlan>& plan, const absl::Status& outcome,
              base::Duration duration) const;

  void SetLeaseHeld(bool held) const;

 private:
  void ObserveStart(const VmView& view, base::WallTime now) const;

  metrics::Sink* sink_;  // null: none
  std::string pool_;
};

// Exports the Lease as held during the scope of a hold.
class ShowLeaseHeld {
 public:
  explicit ShowLeaseHeld(PoolMetrics metrics) : metrics_(std::move(metrics)) {
    metrics_.SetLeaseHeld(true);
  }
  ~ShowLeaseHeld() { metrics_.SetLeaseHeld(false); }
  ShowLeaseHeld(const ShowLeaseHeld&) = delete;
  ShowLeaseHeld& operator=(const ShowLeaseHeld&) = delete;

 private:
  const PoolMetrics metrics_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_METRICS_H_
