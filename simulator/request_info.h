// SPDX-License-Identifier: Apache-2.0
// What a request asks for: for faults, refusals and counters.
#ifndef NOMAD_HARVESTER_SIMULATOR_REQUEST_INFO_H_
#define NOMAD_HARVESTER_SIMULATOR_REQUEST_INFO_H_

#include "nomad_harvester/http/message.h"
#include "nomad_harvester/simulator/fault.h"

namespace nomad_harvester::simulator {

// Without the client and the sequence numbers, which its caller knows.
RequestInfo Describe(System system, const http::HttpRequest& request);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_REQUEST_INFO_H_
