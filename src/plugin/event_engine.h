// SPDX-License-Identifier: Apache-2.0
// Where gRPC runs its closures and timers. Its own engine keeps four threads, one of which wakes up
// each second, although a server of version 1.51 that nobody calls runs nothing there.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_EVENT_ENGINE_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_EVENT_ENGINE_H_

#include <memory>

#include "grpc/event_engine/event_engine.h"

namespace nomad_harvester::plugin {

// Closures and timers of one thread, which starts with the first and sleeps while there is none. No
// sockets and no names: gRPC 1.51 has those of its own (grpc/grpc:src/core/lib/iomgr/port.h,
// GRPC_USE_EVENT_ENGINE). If no thread can be started, closures wait for the next attempt.
std::unique_ptr<grpc_event_engine::experimental::EventEngine> MakeEventEngine();

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_EVENT_ENGINE_H_
