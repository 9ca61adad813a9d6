// SPDX-License-Identifier: Apache-2.0
// Translates changes of Kubernetes objects to events.
#ifndef NOMAD_HARVESTER_SIMULATOR_OBJECT_EVENTS_H_
#define NOMAD_HARVESTER_SIMULATOR_OBJECT_EVENTS_H_

#include <vector>

#include "nomad_harvester/simulator/event.h"

#include "kube_store.h"

namespace nomad_harvester::simulator {

// `before` is null for a new object, `after` for a removed one. The caller adds the VM's node.
std::vector<Event> EventsOf(const ResourceDef& def, const Object& before, const Object& after);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_OBJECT_EVENTS_H_
