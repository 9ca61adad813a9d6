// SPDX-License-Identifier: Apache-2.0
// What a change of a Kubernetes object means.
#ifndef NOMAD_HARVESTER_SIMULATOR_OBJECT_EVENTS_H_
#define NOMAD_HARVESTER_SIMULATOR_OBJECT_EVENTS_H_

#include <vector>

#include "nomad_harvester/simulator/event.h"

#include "kube_store.h"

namespace nomad_harvester::simulator {

// Either object may be null: new, gone. The node of a VM is the caller's to add.
std::vector<Event> EventsOf(const ResourceDef& def, const Object& before, const Object& after);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_OBJECT_EVENTS_H_
