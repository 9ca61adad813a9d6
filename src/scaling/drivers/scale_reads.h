// SPDX-License-Identifier: Apache-2.0
// What a Scale reads before it acts: in advance and all at once, or when it is asked for. It knows
// what was read and for how long that is good. Private to module scaling.
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

// Of one call, which is the only one that uses it. Everything blocks for its requests, unless it
// was read in advance.
class ScaleReads {
 public:
  // What was read in advance is too old if the Lease or roll-backs took longer.
  static constexpr base::Duration kGoodFor = std::chrono::seconds(5);

  // `last`: the count of the last Status; unset: not known. The references must outlive it.
  ScaleReads(const PoolDependencies& deps, const config::PoolPolicy& policy, std::int64_t count,
             std::optional<std::int64_t> last, const std::string& policy_id)
      : deps_(deps), policy_(policy), count_(count), last_(last), policy_id_(policy_id) {}

  // Reads, all at once, what will probably be needed: the pool, and what can refuse the action.
  // Errors are left to those who ask for it: they read again what is missing. If the Lease was not
  // acquired before, and another process may have acted on the pool meanwhile, what was observed
  // must be forgotten.
  void Prefetch(const runtime::Context& context);
  void ForgetObserved();
  // The part of Prefetch that does not depend on who holds the Lease: what a growth is made of.
  // What `context` did not let arrive is not read in advance again. To be forgotten if the Lease
  // has to be waited for.
  void PrefetchSources(const runtime::Context& context);
  void ForgetSources();

  // What the first observation begins with: empty, unless it was read just now.
  Observer::BlockingWait TakeObserved();
  // To be called once the pool is settled, which may have taken long: then all is read again.
  void ForgetIfLate();

  // The allocations of the region, or, if that list is refused, those of the nodes of the pool.
  absl::StatusOr<AllocationList> Allocations(const runtime::Context& context,
                                             const PoolSnapshot& snapshot);
  absl::StatusOr<nomad::ReadJob> ReadJob(const runtime::Context& context) const;
  absl::StatusOr<kube::AccessRules> Rules(const runtime::Context& context) const;
  // Empty without the right to read hosts, and if they cannot be read in 3 s.
  std::set<std::string> CordonedHosts(const runtime::Context& context) const;
  // By the sources that were read in advance, unless they have a problem, which may have passed.
  absl::StatusOr<CreationPlan> Creation(const runtime::Context& context, std::uint64_t nomad_index);
  // Whether Harvester would accept a VM of that plan.
  absl::Status Admit(const runtime::Context& context, const CreationPlan& plan) const;
  // Of the namespace; requires Creation.
  const absl::StatusOr<std::vector<harvester::ResourceQuota>>& quotas() const {
    return read_.sources->quotas;
  }

 private:
  // Unset: to be read.
  struct Read {
    base::MonoTime began{};
    Observer::BlockingWait observed{};
    std::optional<absl::StatusOr<AllocationList>> allocations{};
    std::optional<absl::StatusOr<nomad::ReadJob>> read_job{};
    std::optional<absl::StatusOr<kube::AccessRules>> rules{};
    bool sources_asked = false;
    std::optional<CreationSources> sources{};
    std::optional<absl::Status> admitted{};  // a VM that is made of them
    std::optional<std::set<std::string>> cordoned_hosts{};
  };

  // Whether the action will probably create VMs.
  bool MayGrow() const;
  void PrefetchCreation(const runtime::Context& context);
  std::set<std::string> ReadCordonedHosts(const runtime::Context& context) const;

  const PoolDependencies& deps_;
  const config::PoolPolicy& policy_;
  const std::int64_t count_;
  const std::optional<std::int64_t> last_;
  const std::string& policy_id_;
  base::MonoTime taken_at_{};
  Read read_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_SCALE_READS_H_
