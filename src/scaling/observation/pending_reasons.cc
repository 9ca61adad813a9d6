// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/pending_reasons.h"

#include <utility>
#include <vector>

#include "nomad_harvester/kube/error.h"

namespace nomad_harvester::scaling {
namespace {

// The lists only explain why VMs do not start, so nothing waits long for them.
constexpr base::Duration kReadLimit = std::chrono::seconds(3);

bool IsPending(const VmView& view) {
  return view.member && !harvester::HasJoined(view.vm) && !harvester::IsTerminating(view.vm) &&
         !harvester::IsStopped(view.vm);
}

bool WaitsForVolumes(const VmView& view, const Observation& observation) {
  return IsPending(view) && !view.instance_runs.value_or(true) &&
         observation.now - view.vm->created_at >= kVolumesAreDueAfter;
}

bool WaitsForPod(const VmView& view, const Observation& observation) {
  if (!IsPending(view) || !harvester::IsUnschedulable(view.vm)) return false;
  const std::optional<harvester::StartFailure> failure = harvester::FindStartFailure(view.vm);
  return failure.has_value() &&
         observation.now - failure->since.value_or(view.vm->created_at) >= kPodsAreDueAfter;
}

std::vector<VmView*> Waiting(bool (*waits)(const VmView&, const Observation&),
                             Observation* observation) {
  std::vector<VmView*> waiting;
  for (VmView& view : observation->vms) {
    if (waits(view, *observation)) waiting.push_back(&view);
  }
  return waiting;
}

}  // namespace

bool NeedsPodMessage(const VmView& view, const Observation& observation) {
  if (!WaitsForPod(view, observation)) return false;
  if (view.pod_message.empty()) return true;
  const auto failure = harvester::FindStartFailure(view.vm, view.pod_message);
  return failure.has_value() && failure->only_at_join_timeout;
}

PendingReasons::Texts PendingReasons::Read(
    const runtime::Context& context,
    const std::function<absl::StatusOr<Texts>(const runtime::Context&)>& read,
    const log::Logger& logger, Source* source) {
  const base::MonoTime now = context.clock().Now();
  {
    const base::MutexLock lock(source->mutex);
    if (now < source->next_read) return source->texts;
    source->next_read = now + source->every;
  }
  absl::StatusOr<Texts> texts = read(context.WithTimeout(kReadLimit));
  if (!texts.ok()) {
    logger.Debug("Could not list what explains why VMs do not start",
                 {{"what", source->what}, {"error", texts.status()}});
  }
  const base::MutexLock lock(source->mutex);
  if (texts.ok()) {
    source->texts = *std::move(texts);
  } else if (kube::IsForbidden(texts.status())) {
    source->next_read = context.clock().Now() + kReasonsAfterRefusal;
  }
  return source->texts;
}

void PendingReasons::ReadPods(const runtime::Context& context, const harvester::VmStore& vms,
                              const log::Logger& logger, Observation* observation) {
  if (Waiting(&WaitsForPod, observation).empty()) return;
  Read(
      context, [&](const runtime::Context& within) { return vms.ListPodMessages(within); }, logger,
      &pods_);
}

void PendingReasons::ApplyPods(Observation* observation) {
  const base::MutexLock lock(pods_.mutex);
  if (pods_.texts.empty()) return;
  for (VmView* view : Waiting(&WaitsForPod, observation)) {
    const auto message = pods_.texts.find(view->vm->name);
    if (message != pods_.texts.end()) view->pod_message = message->second;
  }
}

void PendingReasons::ApplyVolumes(const runtime::Context& context, const harvester::VmStore& vms,
                                  const log::Logger& logger, Observation* observation) {
  const std::vector<VmView*> waiting = Waiting(&WaitsForVolumes, observation);
  if (waiting.empty()) return;
  const auto list = [&](const runtime::Context& within) { return vms.ListVolumeWarnings(within); };
  const Texts warnings = Read(context, list, logger, &volumes_);
  for (VmView* view : waiting) {
    for (const std::string& claim : view->vm->claim_names) {
      const auto warning = warnings.find(claim);
      if (warning == warnings.end()) continue;
      view->volume_warning = "volume " + claim + ": " + warning->second;
      break;
    }
  }
}

}  // namespace nomad_harvester::scaling
