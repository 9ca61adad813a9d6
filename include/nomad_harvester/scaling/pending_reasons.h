// SPDX-License-Identifier: Apache-2.0
// Finds out why new VMs do not start: the scheduler's messages about their pods, and warnings of
// Kubernetes and CDI about their volumes.
#ifndef NOMAD_HARVESTER_SCALING_PENDING_REASONS_H_
#define NOMAD_HARVESTER_SCALING_PENDING_REASONS_H_

#include <functional>
#include <map>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// Most volumes and pods are ready within seconds. The plugin looks for reasons only after this
// time.
inline constexpr base::Duration kVolumesAreDueAfter = std::chrono::minutes(1);
inline constexpr base::Duration kPodsAreDueAfter = std::chrono::seconds(20);
// Intervals between reads while a VM waits, and after a refusal (both rights are optional).
inline constexpr base::Duration kVolumeWarningsEvery = std::chrono::minutes(1);
inline constexpr base::Duration kPodsEvery = std::chrono::seconds(20);
inline constexpr base::Duration kReasonsAfterRefusal = std::chrono::hours(1);

// True if no host takes the VM, and a read of its pod may tell more than the last one. A Status
// reads no pods.
bool NeedsPodMessage(const VmView& view, const Observation& observation);

// What one pool's observations have read of them. Thread-safe.
class PendingReasons {
 public:
  // Reads the pods' messages if members that have not joined wait for a host: one list, within a
  // few seconds, if a read is due; none while no member has waited for kPodsAreDueAfter. If the
  // list cannot be read, the previous messages stay.
  void ReadPods(const runtime::Context& context, const harvester::VmStore& vms,
                const log::Logger& logger, Observation* observation);
  // Sets pod_message of those members from the last read.
  void ApplyPods(Observation* observation);
  // Likewise for volume_warning of members that have not joined and whose guests do not run. At
  // most two lists.
  void ApplyVolumes(const runtime::Context& context, const harvester::VmStore& vms,
                    const log::Logger& logger, Observation* observation);

 private:
  using Texts = std::map<std::string, std::string>;
  struct Source {
    const char* what;
    base::Duration every;
    base::Mutex mutex{};
    base::MonoTime next_read NH_GUARDED_BY(mutex) = base::MonoTime::min();
    Texts texts NH_GUARDED_BY(mutex){};
  };
  // Returns the last result, after reading again if a read is due.
  static Texts Read(const runtime::Context& context,
                    const std::function<absl::StatusOr<Texts>(const runtime::Context&)>& read,
                    const log::Logger& logger, Source* source);

  Source pods_{.what = "the pods of VMs", .every = kPodsEvery};
  Source volumes_{.what = "the Events of volumes", .every = kVolumeWarningsEvery};
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_PENDING_REASONS_H_
