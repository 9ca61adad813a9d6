// SPDX-License-Identifier: Apache-2.0
// Status finds the same lists at almost every tick, and links them alike. Private to module
// scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_LAST_LINKS_H_
#define NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_LAST_LINKS_H_

#include <memory>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// What Link made of the last two lists of a namespace, for as long as others have them: it keeps
// neither. Thread-safe; blocks for nothing.
class LastLinks {
 public:
  // As Link, of a look whose VMs are SetVms(vms) and whose instances were not read: their addresses
  // are identity hints, too. Lists are the same if they are the same object.
  void Link(const VmList& vms, Look* look);

 private:
  struct Linked;
  base::Mutex mutex_;
  std::shared_ptr<const Linked> last_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_LAST_LINKS_H_
