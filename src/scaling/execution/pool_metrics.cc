// SPDX-License-Identifier: Apache-2.0
#include "execution/pool_metrics.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/replacement.h"

#include "rules/back_off.h"

namespace nomad_harvester::scaling {
namespace {

using harvester::MarkReason;
using metrics::Metric;

constexpr std::array<std::string_view, 8> kErrorClasses = {
    error_class::kConfig, error_class::kPolicy,    error_class::kFile,    error_class::kHarvester,
    error_class::kNomad,  error_class::kLeaseLost, error_class::kRefused, error_class::kFailed};
constexpr std::array<std::string_view, 6> kCauses = {
    cause::kCreate, cause::kRoom, cause::kStart, cause::kJoin, cause::kRemove, cause::kRefused};
constexpr char kScaleOut[] = "scale_out";
constexpr char kResumed[] = "resumed";
constexpr char kClone[] = "clone";
constexpr char kBoot[] = "boot";
constexpr char kJoin[] = "join";
constexpr char kReady[] = "ready";
constexpr char kOut[] = "out";
constexpr char kIn[] = "in";

std::string OutcomeName(absl::StatusCode code) {
  return base::AsciiLower(absl::StatusCodeToString(code));
}

double Seconds(base::Duration duration) { return std::chrono::duration<double>(duration).count(); }

// Ignores harvester_protect of the node, because Nomad's node list has no meta.
bool HoldsVolumes(const VmView& view, const PoolSnapshot& snapshot) {
  const nomad::Node* node = LinkedNode(view, snapshot);
  return node != nullptr && HoldsKeptVolume(*node, snapshot);
}

}  // namespace

void ShowErrors(metrics::Sink* sink) {
  if (sink == nullptr) return;
  for (const std::string_view each : kErrorClasses) sink->Add(Metric::kErrors, {each}, 0);
}

void CountError(metrics::Sink* sink, std::string_view error_class) {
  if (sink != nullptr) sink->Add(Metric::kErrors, {error_class}, 1);
}

void PoolMetrics::Observed(const PoolSnapshot& snapshot) const {
  if (sink_ == nullptr) return;
  std::array<int, kVmStates> in_state{};
  int by_annotation = 0;
  int by_volumes = 0;
  for (const VmView* view : snapshot.vms()) {
    ++in_state.at(static_cast<std::size_t>(StateOf(*view, snapshot)));
    if (!view->member) continue;
    if (view->vm->protect.HoldsAt(snapshot.now())) ++by_annotation;
    if (HoldsVolumes(*view, snapshot)) ++by_volumes;
  }
  for (std::size_t i = 0; i < in_state.size(); ++i) {
    sink_->Set(Metric::kVms, {pool_, VmStateName(static_cast<VmState>(i))}, in_state[i]);
  }
  sink_->Set(Metric::kProtected, {pool_, "annotation"}, by_annotation);
  sink_->Set(Metric::kProtected, {pool_, "host_volume"}, by_volumes);
  sink_->Set(Metric::kObserved, {pool_}, Seconds(snapshot.now().time_since_epoch()));
  if (!snapshot.observation().nomad.ok()) CountError(sink_, error_class::kNomad);
}

void PoolMetrics::Unclaimed(bool unclaimed) const {
  if (sink_ != nullptr) sink_->Set(Metric::kUnclaimed, {pool_}, unclaimed ? 1 : 0);
}

void PoolMetrics::Replacements(const PoolSnapshot& snapshot, const PoolRecord& record,
                               const CurrentTemplate& current) const {
  if (sink_ == nullptr) return;
  const std::size_t waiting = VmsToReplace(snapshot, current).size();
  const bool has_stopped = waiting > 0 && HasStopped(record, current);
  sink_->Set(Metric::kToReplace, {pool_}, static_cast<double>(waiting));
  sink_->Set(Metric::kReplacementStopped, {pool_}, has_stopped ? 1 : 0);
}

void PoolMetrics::Reported(const StatusReport& report, const PoolRecord& record,
                           std::int64_t leftovers, base::WallTime now) const {
  if (sink_ == nullptr) return;
  sink_->Set(Metric::kDrifted, {pool_}, static_cast<double>(report.drifted));
  sink_->Set(Metric::kLeftovers, {pool_}, static_cast<double>(leftovers));
  Unclaimed(false);  // it has a policy
  for (const std::string_view each : kCauses) {
    const auto waits = record.back_off.find(std::string(each));
    const bool must_wait = waits != record.back_off.end() && MustWait(each, waits->second, now);
    sink_->Set(Metric::kBackOff, {pool_, each},
               must_wait ? Seconds(waits->second.retry_at - now) : 0);
  }
  // Also creates counters that are still zero, because Prometheus sees no increase from nothing.
  for (const char* reason : {kScaleOut, kResumed})
    sink_->Add(Metric::kVmCreated, {pool_, reason}, 0);
  for (const MarkReason reason :
       {MarkReason::kScaleIn, MarkReason::kBroken, MarkReason::kUnhealthy, MarkReason::kReplace}) {
    sink_->Add(Metric::kVmTerminated, {pool_, harvester::MarkReasonName(reason)}, 0);
  }
  for (const char* phase : {kClone, kBoot, kJoin, kReady})
    sink_->Expect(Metric::kVmStart, {pool_, phase});
  for (const char* direction : {kOut, kIn}) {
    for (const absl::StatusCode code :
         {absl::StatusCode::kOk, absl::StatusCode::kUnavailable,
          absl::StatusCode::kFailedPrecondition, absl::StatusCode::kResourceExhausted}) {
      sink_->Expect(Metric::kScale, {pool_, direction, OutcomeName(code)});
    }
  }
  sink_->Expect(Metric::kDrain, {pool_});
  sink_->Expect(Metric::kVmLifetime, {pool_});
}

void PoolMetrics::HasRoom(std::int64_t vms) const {
  if (sink_ != nullptr) sink_->Set(Metric::kRoom, {pool_}, static_cast<double>(vms));
}

void PoolMetrics::Created(bool resumed) const {
  if (sink_ != nullptr) sink_->Add(Metric::kVmCreated, {pool_, resumed ? kResumed : kScaleOut}, 1);
}

// Uses the phases of `status`: a VM is cloning until it has an instance, and booting until its
// guest runs.
void PoolMetrics::ObserveStart(const VmView& view, base::WallTime now) const {
  if (!view.instance.has_value()) return;
  std::optional<base::WallTime> cloned;
  std::optional<base::WallTime> booted;
  for (const auto& phase : view.instance->phases) {
    if (!phase.at.has_value()) continue;
    cloned = std::min(cloned.value_or(*phase.at), *phase.at);
    if (phase.phase == "Running") booted = phase.at;
  }
  if (!cloned.has_value() || !booted.has_value()) return;
  sink_->Observe(Metric::kVmStart, {pool_, kClone}, *cloned - view.vm->created_at);
  sink_->Observe(Metric::kVmStart, {pool_, kBoot}, *booted - *cloned);
  sink_->Observe(Metric::kVmStart, {pool_, kJoin}, now - *booted);
}

void PoolMetrics::Done(const Step& step, const VmView& view, base::WallTime now) const {
  if (sink_ == nullptr) return;
  if (step.kind == StepKind::kRecordJoin) return ObserveStart(view, now);
  if (step.kind == StepKind::kRecordReady && view.vm->joined_at.has_value()) {
    return sink_->Observe(Metric::kVmStart, {pool_, kReady}, now - *view.vm->joined_at);
  }
  if (step.kind != StepKind::kDelete || !view.vm->mark.has_value()) return;
  const harvester::Mark& mark = *view.vm->mark;
  sink_->Add(Metric::kVmTerminated, {pool_, harvester::MarkReasonName(mark.reason)}, 1);
  sink_->Observe(Metric::kVmLifetime, {pool_}, now - view.vm->created_at);
  if (step.row == Row::kMarkedIdle || step.row == Row::kMarkedLateForced) {
    sink_->Observe(Metric::kDrain, {pool_}, now - mark.marked_at);
  }
}

void PoolMetrics::Troubled(Verdict verdict) const {
  if (verdict == Verdict::kRefused) CountError(sink_, error_class::kRefused);
  if (verdict == Verdict::kFailed) CountError(sink_, error_class::kFailed);
}

void PoolMetrics::Scaled(const std::optional<ScalePlan>& plan, const absl::Status& outcome,
                         base::Duration duration) const {
  if (sink_ == nullptr) return;
  const char* direction = !plan.has_value()       ? "unknown"
                          : plan->to > plan->from ? kOut
                          : plan->to < plan->from ? kIn
                                                  : "none";
  sink_->Observe(Metric::kScale, {pool_, direction, OutcomeName(outcome.code())}, duration);
}

void PoolMetrics::SetLeaseHeld(bool held) const {
  if (sink_ != nullptr) sink_->Set(Metric::kLeaseHeld, {pool_}, held ? 1 : 0);
}

}  // namespace nomad_harvester::scaling
