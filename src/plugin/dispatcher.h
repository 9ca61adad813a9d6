// SPDX-License-Identifier: Apache-2.0
// Passes calls from gRPC's threads, which must not block, to worker threads.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_DISPATCHER_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_DISPATCHER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/workers.h"

#include "call.h"
#include "grpc_status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"

namespace nomad_harvester::plugin {

// A Status never queues behind a Scale, which may take an hour (rule S3): each lane has its own
// threads and queue. A full lane returns RESOURCE_EXHAUSTED.
enum class Lane { kQuick, kScale };

struct LaneSizes {
  // Upper limits; threads are started when needed. The limits are high because a Scale or a Status
  // that waits for a thread would be late (rule L8). By default, the agent evaluates at most 10
  // cluster and 10 horizontal policies at a time
  // (hashicorp/nomad-autoscaler:agent/config/config.go, policy_eval).
  std::size_t scale_threads = 64;
  std::size_t scale_queue = 40;
  // One Status per policy and tick, each bounded by its deadline.
  std::size_t quick_threads = 64;
  std::size_t quick_queue = 256;
};

struct Work {
  std::string method;  // for the log
  Lane lane = Lane::kQuick;
  Aborted aborted = Aborted::kIsInternal;
  // Runs on a worker thread and may throw.
  std::function<absl::Status(const runtime::Context&)> run;
  // Runs after `run` has succeeded, and only if the call has not ended, because gRPC owns the
  // response. May throw.
  std::function<void()> fill_response = [] {};
};

class Dispatcher {
 public:
  Dispatcher(const runtime::Context& root, CallRegistry& registry, log::Logger logger,
             const LaneSizes& sizes);

  // Returns the reactor that finishes the call when the work is done. The work's context ends with
  // the call's deadline, its cancellation by the client, or the root context.
  grpc::ServerUnaryReactor* Start(const grpc::CallbackServerContext& rpc, Work work);

  // Waits for running work. Cancel the root context first.
  void Stop();

 private:
  class Call;

  // An exception becomes an error (rule P2).
  absl::Status Catch(const std::string& method, const std::function<absl::Status()>& act) const;
  void RunAndAnswer(const Work& work, Call& call) const;

  const runtime::Context root_;
  CallRegistry& registry_;
  const log::Logger logger_;
  runtime::WorkerPool quick_;
  runtime::WorkerPool scale_;
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_DISPATCHER_H_
