// SPDX-License-Identifier: Apache-2.0
// Reads the data that a Scale needs before it acts, in advance and in parallel, or on demand. Knows
// what has been read and how long it may be used. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_SCALE_READS_H_
#define NOMAD_HARVESTER_SCALING_SCALE_READS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "nomad_harvester/kube/access.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/creation.h"
#include "execution/pool_dependencies.h"

namespace nomad_harvester::scaling {

// Belongs to one call; not thread-safe. Functions block for their requests unless the data was read
// in advance.
class ScaleReads {
 public:
  // `last`: ScaleRequest::last_count. The references must outlive this object.
  ScaleReads(const PoolDependencies& deps, const config::PoolPolicy& policy, std::int64_t count,
             std::int64_t last, const std::string& policy_id)
      : deps_(deps), policy_(policy), count_(count), last_(last), policy_id_(policy_id) {}

  // Reads what new VMs are made of, if the action will probably create some. Does not depend on the
  // pool, and may thus be called while its Lease is acquired. Prefetch drops it if that took long.
  void PrefetchSources(const runtime::Context& context);
  // Reads, all at once, what else will probably be needed: the pool, and what can refuse the
  // action. Reports no errors: whoever asks for something that is missing reads it again. Requires
  // the pool's Lease, so that no other process acts on the pool meanwhile.
  void Prefetch(const runtime::Context& context);

  // Returns the lists for the first observation; empty unless they were just read.
  Observer::BlockingWait TakeObserved();
  // Call it once the pool is settled. If that took long, everything is read again.
  void ForgetIfLate();

  // Returns the region's allocations or, if that list is refused, those of the pool's nodes.
  absl::StatusOr<AllocationList> Allocations(const runtime::Context& context,
                                             const PoolSnapshot& snapshot);
  absl::StatusOr<nomad::ReadJob> ReadJob(const runtime::Context& context) const;
  absl::StatusOr<kube::AccessRules> Rules(const runtime::Context& context) const;
  // Empty without the right to read hosts, or if they cannot be read within 3 s.
  std::set<std::string> CordonedHosts(const runtime::Context& context) const;
  // Uses the sources that were read in advance, unless one of them failed: the problem may have
  // passed.
  absl::StatusOr<CreationPlan> Creation(const runtime::Context& context, std::uint64_t nomad_index);
  // Returns the keys of the Nomad cluster, read with the first observation's nodes.
  absl::StatusOr<std::string> ClusterKeys(const runtime::Context& context) const;
  // OK if Harvester would accept a VM of this plan.
  absl::Status Admit(const runtime::Context& context, const CreationPlan& plan) const;
  // The quotas of the namespace. Requires Creation.
  const absl::StatusOr<std::vector<harvester::ResourceQuota>>& quotas() const {
    return read_.sources->quotas;
  }

 private:
  // Unset: to be read.
  struct Read {
    base::MonoTime sources_at{};
    base::MonoTime began{};  // of Prefetch
    Observer::BlockingWait observed{};
    std::optional<std::string> cluster_keys{};
    std::optional<absl::StatusOr<AllocationList>> allocations{};
    std::optional<absl::StatusOr<nomad::ReadJob>> read_job{};
    std::optional<absl::StatusOr<kube::AccessRules>> rules{};
    std::optional<CreationSources> sources{};
    std::optional<absl::Status> admitted{};  // for a VM made from these sources
    std::optional<std::set<std::string>> cordoned_hosts{};
  };

  // True if the action will probably create VMs.
  bool MayGrow() const;
  void TryCreation(const runtime::Context& context);
  std::set<std::string> ReadCordonedHosts(const runtime::Context& context) const;

  const PoolDependencies& deps_;
  const config::PoolPolicy& policy_;
  const std::int64_t count_;
  const std::int64_t last_;
  const std::string& policy_id_;
  base::MonoTime taken_at_{};
  Read read_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_SCALE_READS_H_
