// SPDX-License-Identifier: Apache-2.0
// Reuses links: Status finds the same lists at almost every tick. Private to module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_LAST_LINKS_H_
#define NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_LAST_LINKS_H_

#include <memory>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// The result of Link for the last lists of VMs and nodes of a namespace, as long as others hold
// these lists: this object does not. Thread-safe; does not block.
class LastLinks {
 public:
  // Does what scaling::Link does. The look's VMs must be SetVms(vms), and its instances must not
  // have been read, because their addresses are identity hints, too. Lists are the same if they are
  // the same object.
  void Link(const VmList& vms, Look* look);

 private:
  struct Linked;
  base::Mutex mutex_;
  std::shared_ptr<const Linked> last_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_LAST_LINKS_H_
