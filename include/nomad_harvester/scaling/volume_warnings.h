// SPDX-License-Identifier: Apache-2.0
// Why the volumes of new VMs do not come, in the words of Kubernetes and CDI.
#ifndef NOMAD_HARVESTER_SCALING_VOLUME_WARNINGS_H_
#define NOMAD_HARVESTER_SCALING_VOLUME_WARNINGS_H_

#include <map>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// A volume is ready in seconds, or its image is being copied. Only later is it asked why.
inline constexpr base::Duration kVolumesAreDueAfter = std::chrono::minutes(1);
// While a VM waits for its volumes, they are asked about this often, and after a refusal (the right
// to list Events is optional) this seldom.
inline constexpr base::Duration kVolumeWarningsEvery = std::chrono::minutes(1);
inline constexpr base::Duration kVolumeWarningsAfterRefusal = std::chrono::hours(1);

// Of one namespace, shared by all its loops. Thread-safe.
class VolumeWarnings {
 public:
  // Sets volume_warning of members that have not joined and whose guests do not run. Reads what is
  // due: at most two lists, within a few seconds, and none while no member waits for so long. That
  // they cannot be read is no error: the warnings are those that were read before.
  void Apply(const runtime::Context& context, const harvester::VmStore& vms,
             const log::Logger& logger, Look* look);

 private:
  void Read(const runtime::Context& context, const harvester::VmStore& vms,
            const log::Logger& logger);

  base::Mutex mutex_;
  base::MonoTime next_read_ NH_GUARDED_BY(mutex_) = base::MonoTime::min();
  std::map<std::string, std::string> by_volume_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_VOLUME_WARNINGS_H_
