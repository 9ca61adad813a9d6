// SPDX-License-Identifier: Apache-2.0
// Why new VMs do not start: what the scheduler says of their pods, and what Kubernetes and CDI say
// of their volumes.
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

// Most volumes and pods come within seconds. Only later is it asked why one does not.
inline constexpr base::Duration kVolumesAreDueAfter = std::chrono::minutes(1);
inline constexpr base::Duration kPodsAreDueAfter = std::chrono::seconds(20);
// How often is asked while a VM waits, and after a refusal (both rights are optional).
inline constexpr base::Duration kVolumeWarningsEvery = std::chrono::minutes(1);
inline constexpr base::Duration kPodsEvery = std::chrono::seconds(20);
inline constexpr base::Duration kReasonsAfterRefusal = std::chrono::hours(1);

// Of one namespace, shared by all its loops. Thread-safe.
class PendingReasons {
 public:
  // Reads what pods say if members that have not joined wait for one: one list if it is due, within
  // a few seconds, and none while no member has waited for so long. That it cannot be read is no
  // error: the messages stay those that were read before.
  void ReadPods(const runtime::Context& context, const harvester::VmStore& vms,
                const log::Logger& logger, Look* look);
  // Sets pod_message of those members from what was read last.
  void ApplyPods(Look* look);
  // Reads and sets volume_warning likewise of members that have not joined and whose guests do not
  // run; at most two lists.
  void ApplyVolumes(const runtime::Context& context, const harvester::VmStore& vms,
                    const log::Logger& logger, Look* look);

 private:
  using Texts = std::map<std::string, std::string>;
  struct Source {
    const char* what;
    base::Duration every;
    base::Mutex mutex{};
    base::MonoTime next_read NH_GUARDED_BY(mutex) = base::MonoTime::min();
    Texts texts NH_GUARDED_BY(mutex){};
  };
  // What was read last; reads it first if it is due.
  static Texts Read(const runtime::Context& context,
                    const std::function<absl::StatusOr<Texts>(const runtime::Context&)>& read,
                    const log::Logger& logger, Source* source);

  Source pods_{.what = "the pods of VMs", .every = kPodsEvery};
  Source volumes_{.what = "the Events of volumes", .every = kVolumeWarningsEvery};
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_PENDING_REASONS_H_
