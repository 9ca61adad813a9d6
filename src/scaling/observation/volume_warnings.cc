// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/volume_warnings.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/kube/error.h"

namespace nomad_harvester::scaling {
namespace {

// What is asked explains; nothing waits for it for long.
constexpr base::Duration kReadLimit = std::chrono::seconds(3);

bool WaitsForVolumes(const VmView& view, const Look& look) {
  return view.member && !harvester::HasJoined(view.vm) && !harvester::IsTerminating(view.vm) &&
         !harvester::IsStopped(view.vm) && !view.instance_runs.value_or(true) &&
         look.now - view.vm->created_at >= kVolumesAreDueAfter;
}

}  // namespace

void VolumeWarnings::Read(const runtime::Context& context, const harvester::VmStore& vms,
                          const log::Logger& logger) {
  auto warnings = vms.ListVolumeWarnings(context.WithTimeout(kReadLimit));
  if (!warnings.ok()) {
    logger.Debug("Could not list the Events of volumes", {{"error", warnings.status()}});
  }
  base::MutexLock lock(mutex_);
  if (warnings.ok()) {
    by_volume_ = *std::move(warnings);
  } else if (kube::IsForbidden(warnings.status())) {
    next_read_ = context.clock().Now() + kVolumeWarningsAfterRefusal;
  }
}

void VolumeWarnings::Apply(const runtime::Context& context, const harvester::VmStore& vms,
                           const log::Logger& logger, Look* look) {
  const bool waits = std::any_of(look->vms.begin(), look->vms.end(),
                                 [&](const VmView& view) { return WaitsForVolumes(view, *look); });
  if (!waits) return;
  const base::MonoTime now = context.clock().Now();
  bool is_due = false;
  {
    base::MutexLock lock(mutex_);
    is_due = now >= next_read_;
    if (is_due) next_read_ = now + kVolumeWarningsEvery;
  }
  if (is_due) Read(context, vms, logger);
  base::MutexLock lock(mutex_);
  for (VmView& view : look->vms) {
    if (!WaitsForVolumes(view, *look)) continue;
    for (const std::string& claim : view.vm->claim_names) {
      const auto warning = by_volume_.find(claim);
      if (warning == by_volume_.end()) continue;
      view.volume_warning = "volume " + claim + ": " + warning->second;
      break;
    }
  }
}

}  // namespace nomad_harvester::scaling
