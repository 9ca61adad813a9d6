// SPDX-License-Identifier: Apache-2.0
#include "grpc_runtime.h"

#include "event_engine.h"
#include "grpc/grpc.h"

// Of the library, not of its API (grpc/grpc:src/core/lib/iomgr/timer_manager.h, 1.51).
void grpc_timer_manager_set_threading(bool enabled);  // NOLINT(readability-identifier-naming)
void grpc_timer_manager_tick();                       // NOLINT(readability-identifier-naming)

namespace nomad_harvester::plugin {

GrpcRuntime::GrpcRuntime() {
  grpc_event_engine::experimental::SetEventEngineFactory(&MakeEventEngine);
  grpc_init();
  grpc_timer_manager_set_threading(false);
}

GrpcRuntime::~GrpcRuntime() { grpc_shutdown(); }

void RunGrpcTimers() { grpc_timer_manager_tick(); }

}  // namespace nomad_harvester::plugin
