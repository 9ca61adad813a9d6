// SPDX-License-Identifier: Apache-2.0
// Builds Kubernetes Events about VMs, which operators see in Harvester's UI (rule T1). Pure.
#ifndef NOMAD_HARVESTER_HARVESTER_VM_EVENT_H_
#define NOMAD_HARVESTER_HARVESTER_VM_EVENT_H_

#include <cstdint>
#include <string>

#include "nomad_harvester/base/time.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

struct VmEvent {
  std::string vm;
  std::string uid;
  std::string reason;  // "DrainStarted": one word, for programs and columns
  std::string action;  // what the plugin did or tried: "Drain"
  std::string note;    // for people
  bool warning = false;
};

// How often an event of a series was observed, and when last.
struct EventSeries {
  int count = 1;
  base::WallTime last{};
};

// An Event of any controller, as the API server returns it.
struct SeenEvent {
  std::string type{};  // "Normal" or "Warning"
  std::string reason{};
  std::string note{};
  std::int64_t count = 1;
  base::WallTime last{};  // when it was last observed
};

// Builds the events.k8s.io/v1 Event to POST. `name` is unique in the namespace. `instance`
// identifies this process. Texts are truncated to the API server's limits, at a whole character,
// and active secrets are removed from the note (base::WithoutSecrets). A count above 1 makes it a
// series.
nlohmann::json BuildVmEvent(const VmEvent& event, const std::string& ns, const std::string& name,
                            const std::string& instance, base::WallTime at,
                            const EventSeries& series);
// Builds the merge patch that updates an Event's series; all its other fields are immutable.
nlohmann::json BuildEventSeriesPatch(const EventSeries& series);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_VM_EVENT_H_
