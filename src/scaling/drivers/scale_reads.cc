// SPDX-License-Identifier: Apache-2.0
#include "drivers/scale_reads.h"

#include <functional>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/host.h"
#include "nomad_harvester/nodepool/selector.h"

#include "rules/back_off.h"

namespace nomad_harvester::scaling {
namespace {

// What was read in advance is too old after this time, which slow reads or roll-backs may take.
constexpr base::Duration kGoodFor = std::chrono::seconds(5);
// The limit for reading the sources of a growth in advance: it may turn out that no VM is made.
constexpr base::Duration kSourcesLimit = std::chrono::seconds(20);
// How long to wait for the list of cordoned hosts, which is optional.
constexpr base::Duration kCordonedLimit = std::chrono::seconds(3);

}  // namespace

bool ScaleReads::MayGrow() const {
  const PoolRecord record = deps_.lease.record();
  const base::WallTime now = deps_.clock.WallNow();
  return count_ > last_ && !record.paused.HoldsAt(now) && CheckCreation(record.back_off, now).ok();
}

// If the context ended, the sources are dropped: they may not be needed, and are read again if they
// are.
void ScaleReads::PrefetchSources(const runtime::Context& caller) {
  if (!MayGrow()) return;
  const runtime::Context context = caller.WithTimeout(kSourcesLimit);
  CreationSources sources = ReadSources(context, deps_, policy_);
  read_.sources_at = deps_.clock.Now();
  if (!context.Done()) read_.sources = std::move(sources);
}

void ScaleReads::Prefetch(const runtime::Context& context) {
  read_.began = deps_.clock.Now();
  if (read_.began - read_.sources_at > kGoodFor) read_.sources.reset();
  const bool shrinks = count_ < last_;
  const bool needs_allocations = shrinks && nodepool::NeedsAllocations(policy_.selector);
  // Start the longest lists first.
  std::vector<std::function<void()>> reads = {[&] {
    auto lists = deps_.observer().ReadVmsAndInstances(context, /*with_instances=*/true);
    if (lists.ok()) read_.observed.lists = *std::move(lists);
  }};
  if (needs_allocations) {
    reads.emplace_back(
        [&] { read_.allocations.emplace(deps_.observer().ReadAllocations(context)); });
  }
  reads.emplace_back([&] {
    const auto nodes = deps_.nodes.ListNodes(context);
    if (nodes.ok()) read_.observed.nodes = *nodes;
  });
  if (shrinks) {
    reads.emplace_back([&] { read_.cordoned_hosts = ReadCordonedHosts(context); });
  }
  if (count_ != last_) {
    reads.emplace_back([&] {
      read_.rules.emplace(kube::FetchAccessRules(context, *deps_.clients.kube, deps_.key.ns));
    });
  }
  if (read_.sources.has_value()) {
    reads.emplace_back([&] { TryCreation(context); });
    reads.emplace_back(
        [&] { read_.cluster_keys = base::ToOptional(deps_.nodes.ReadCluster(context)); });
  }
  if (needs_allocations) {
    reads.emplace_back([&] { read_.read_job.emplace(deps_.nomad().VerifyReadJob(context)); });
  }
  runtime::ForEachBounded(context, deps_.executor, reads.size(), reads.size(), [&](std::size_t i) {
    reads[i]();
    return absl::OkStatus();
  });
}

void ScaleReads::TryCreation(const runtime::Context& context) {
  const auto plan = PlanCreation(deps_, policy_, *read_.sources, 0, policy_id_);
  if (!plan.ok()) return;
  absl::Status admitted = DryRunCreation(context.WithTimeout(kSourcesLimit), deps_, policy_, *plan);
  // Any other failure may have passed by then, so the trial is repeated.
  if (admitted.ok() || kube::IsRefused(admitted)) read_.admitted = std::move(admitted);
}

Observer::BlockingWait ScaleReads::TakeObserved() {
  taken_at_ = deps_.clock.Now();
  // What can refuse the action was read during this call; what it acts on must be recent.
  if (taken_at_ - read_.began > kGoodFor) {
    read_.observed = {};
    read_.cluster_keys.reset();
    read_.allocations.reset();
  }
  return std::exchange(read_.observed, {});
}

void ScaleReads::ForgetIfLate() {
  if (deps_.clock.Now() - taken_at_ > kGoodFor) read_ = {};
}

// If the region's list fails, it may be too large while the lists of single nodes are not.
absl::StatusOr<AllocationList> ScaleReads::Allocations(const runtime::Context& context,
                                                       const PoolSnapshot& snapshot) {
  auto all = read_.allocations.has_value() ? std::move(*read_.allocations)
                                           : deps_.observer().ReadAllocations(context);
  if (all.ok() || IsRetryable(all.status())) return all;
  deps_.logger.Warn("Could not list all allocations; asking for those of each node of the pool",
                    {{"action_id", deps_.call}, {"error", all.status()}});
  std::vector<std::string> nodes;
  for (const VmView* view : snapshot.vms()) {
    const nomad::Node* node = LinkedNode(*view, snapshot);
    if (view->member && node != nullptr) nodes.push_back(node->id);
  }
  auto read = ReadAllocationsOf(context, deps_.executor, deps_.nomad(), nodes, deps_.parallelism());
  AllocationList list;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    NH_ASSIGN_OR_RETURN(list.by_node[nodes[i]], std::move(read[i]));
  }
  return list;
}

absl::StatusOr<nomad::ReadJob> ScaleReads::ReadJob(const runtime::Context& context) const {
  return read_.read_job.has_value() ? *read_.read_job : deps_.nomad().VerifyReadJob(context);
}

absl::StatusOr<kube::AccessRules> ScaleReads::Rules(const runtime::Context& context) const {
  return read_.rules.has_value()
             ? *read_.rules
             : kube::FetchAccessRules(context, *deps_.clients.kube, deps_.key.ns);
}

std::set<std::string> ScaleReads::CordonedHosts(const runtime::Context& context) const {
  return read_.cordoned_hosts.has_value() ? *read_.cordoned_hosts : ReadCordonedHosts(context);
}

// A refused list changes nothing, because the right is optional.
std::set<std::string> ScaleReads::ReadCordonedHosts(const runtime::Context& context) const {
  std::set<std::string> cordoned;
  const auto hosts =
      harvester::ListHosts(context.WithTimeout(kCordonedLimit), *deps_.clients.kube_urgent);
  if (!hosts.ok()) {
    deps_.logger.Debug("Could not list cordoned hosts", {{"error", hosts.status()}});
    return cordoned;
  }
  for (const harvester::Host& host : *hosts) {
    if (host.cordoned) cordoned.insert(host.name);
  }
  return cordoned;
}

absl::StatusOr<CreationPlan> ScaleReads::Creation(const runtime::Context& context,
                                                  std::uint64_t nomad_index) {
  if (read_.sources.has_value()) {
    auto plan = PlanCreation(deps_, policy_, *read_.sources, nomad_index, policy_id_);
    if (plan.ok()) return plan;
  }
  read_.sources = ReadSources(context, deps_, policy_);
  NH_RETURN_IF_ERROR(context.Check());
  return PlanCreation(deps_, policy_, *read_.sources, nomad_index, policy_id_);
}

absl::StatusOr<std::string> ScaleReads::ClusterKeys(const runtime::Context& context) const {
  return read_.cluster_keys.has_value() ? *read_.cluster_keys : deps_.nodes.ReadCluster(context);
}

absl::Status ScaleReads::Admit(const runtime::Context& context, const CreationPlan& plan) const {
  return read_.admitted.has_value() ? *read_.admitted
                                    : DryRunCreation(context, deps_, policy_, plan);
}

}  // namespace nomad_harvester::scaling
