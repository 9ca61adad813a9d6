// SPDX-License-Identifier: Apache-2.0
// gRPC's library in a process that mostly waits.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_GRPC_RUNTIME_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_GRPC_RUNTIME_H_

namespace nomad_harvester::plugin {

// gRPC without threads that wake up while nobody calls: closures run on an engine of our own, and
// the timers' thread, which wakes up each second, is stopped. Timers then run by RunGrpcTimers
// alone. What a server of 1.51 uses them for may come late, with the first event after its time:
// the end of a connection that never finishes its handshake
// (grpc/grpc:src/core/ext/transport/chttp2/server/chttp2_server.cc), keepalive pings, delayed pings
// and the 20 s of a graceful GOAWAY. Deadlines of calls are kept by runtime::Context, too, and a
// shutdown waits by deadlines of poll.
//
// For the whole life of a process that serves, and before its server. Not for gRPC's clients, whose
// deadlines need the thread.
class GrpcRuntime {
 public:
  GrpcRuntime();
  ~GrpcRuntime();
  GrpcRuntime(const GrpcRuntime&) = delete;
  GrpcRuntime& operator=(const GrpcRuntime&) = delete;
};

// Runs the timers that are due. Cheap if there are none. gRPC must be initialized.
void RunGrpcTimers();

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_GRPC_RUNTIME_H_
