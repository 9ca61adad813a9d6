// SPDX-License-Identifier: Apache-2.0
#include "execution/pool_history.h"

#include <chrono>
#include <cstddef>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/harvester/vm_history.h"
#include "nomad_harvester/kube/observed.h"

#include "execution/pool_dependencies.h"
#include "execution/rights.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {
namespace {

constexpr base::Duration kLimit = std::chrono::seconds(3);

// "scale-in", "broken: ErrorUnschedulable: …", "replace: drifted: image".
std::string WhyRemoved(const VmView& view, const PoolSnapshot& snapshot) {
  std::string why(harvester::MarkReasonName(view.vm->mark->reason));
  if (view.start_failure.has_value()) why += ": " + view.start_failure->reason;
  for (const VmView* other : snapshot.vms()) {
    const std::optional<harvester::Replaces>& replaces = other->vm->replaces;
    if (!replaces.has_value() || replaces->uid != view.vm->uid) continue;
    why += ": " + Describe(replaces->reason) + ", by " + other->vm->name;
  }
  return why;
}

}  // namespace

void PoolHistory::SetRights(const kube::AccessRules& rules) {
  is_allowed_.reset();
  if (rules.incomplete) return;
  is_allowed_ = true;
  for (const Right& right : HistoryRights()) {
    if (!rules.Allows(right.verb, right.group, right.resource)) is_allowed_ = false;
  }
}

void PoolHistory::Write(const runtime::Context& context, const PoolDependencies& deps,
                        const PoolSnapshot& snapshot, const std::vector<const VmView*>& deleted) {
  std::erase_if(written_,
                [&](const std::string& uid) { return snapshot.seen->FindVmByUid(uid) == nullptr; });
  if (!is_allowed_.value_or(true)) return;
  std::vector<harvester::RemovedVm> removed;
  std::vector<std::string> names;
  for (const VmView* view : deleted) {
    if (!view->vm->mark.has_value() || !written_.insert(view->vm->uid).second) continue;
    removed.push_back(
        harvester::DescribeRemoval(view->vm, WhyRemoved(*view, snapshot), snapshot.now()));
    names.push_back(view->vm->name);
  }
  const kube::Json history = harvester::BuildHistory(deps.key.ns, deps.key.pool, removed);
  kube::Json data = history.at("data");
  for (const VmView* view : snapshot.vms()) {
    if (view->vm->has_mark || written_.erase(view->vm->uid) == 0) continue;
    data[view->vm->name] = nullptr;
    names.push_back(view->vm->name);
  }
  if (data.empty()) return;
  const absl::Status outcome = Send(context.WithTimeout(kLimit), deps, history, data);
  if (context.Done()) written_.clear();  // the next pass writes those that it deletes
  if (outcome.ok() || context.Done()) return;
  if (kube::IsForbidden(outcome)) is_allowed_ = false;
  deps.logger.Info("Could not write VMs into the pool's history",
                   {{"vm", base::FirstFew(names)}, {"error", outcome}});
}

absl::Status PoolHistory::Send(const runtime::Context& context, const PoolDependencies& deps,
                               const kube::Json& history, const kube::Json& data) {
  const kube::KubeClient& kube = *deps.clients.kube_events;
  const std::string& ns = deps.key.ns;
  if (!is_allowed_.has_value()) {
    NH_ASSIGN_OR_RETURN(const kube::AccessRules rules, kube::FetchAccessRules(context, kube, ns));
    NH_ASSIGN_OR_RETURN(const std::vector<Right> missing,
                        MissingRights(context, kube, rules, ns, HistoryRights()));
    is_allowed_ = missing.empty();
  }
  if (!*is_allowed_) return absl::OkStatus();
  const std::string name = harvester::LeaseName(deps.key.pool);
  // Changes single keys, so that no other write is overwritten.
  auto written = kube.MergePatch(context, kube::kConfigMaps, ns, name, {{"data", data}});
  if (kube::IsNotFound(written.status())) {
    if (history.at("data").empty()) return absl::OkStatus();  // there is nothing to take out
    written = kube.Create(context, kube::kConfigMaps, ns, history);
  }
  NH_RETURN_IF_ERROR(written);
  const std::vector<harvester::RemovedVm> all = harvester::ParseHistory(written->object);
  kube::Json surplus = kube::Json::object();
  for (std::size_t i = harvester::kMaxHistory; i < all.size(); ++i) surplus[all[i].name] = nullptr;
  if (surplus.empty()) return absl::OkStatus();
  return base::GetStatus(
      kube.MergePatch(context, kube::kConfigMaps, ns, name, {{"data", std::move(surplus)}}));
}

}  // namespace nomad_harvester::scaling
