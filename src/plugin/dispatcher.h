// SPDX-License-Identifier: Apache-2.0
// Passes calls from gRPC's threads, which must not block, to worker threads, and tracks their time.
// A shutdown may have to reply before the worker that executes an RPC has finished.
#ifndef NOMAD_HARVESTER_PLUGIN_DISPATCHER_H_
#define NOMAD_HARVESTER_PLUGIN_DISPATCHER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/workers.h"

#include "grpc/support/time.h"
#include "grpc_status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "grpcpp/support/status.h"

namespace nomad_harvester::plugin {

// Returns the time until the caller's deadline; nullopt: no deadline.
std::optional<base::Duration> TimeGiven(gpr_timespec deadline);

// Returns the part of `given` for the work. The rest is for the reply, which must arrive before the
// caller's deadline.
base::Duration TimeToWork(base::Duration given);

// An RPC that must be ended before the server shuts down.
class OpenRpc {
 public:
  virtual ~OpenRpc() = default;
  // Ends the RPC with `status`, unless it has ended already. Thread-safe.
  virtual void End(const grpc::Status& status) = 0;
};

// All RPCs in progress, which a shutdown must end. Thread-safe.
class CallRegistry {
 public:
  // False after Close: the RPC must then be ended immediately.
  bool Add(const std::shared_ptr<OpenRpc>& rpc);
  // Call it when gRPC is done with the RPC: its status was sent or the client has disconnected.
  void Remove(const std::shared_ptr<OpenRpc>& rpc);

  void Close();
  // Ends all RPCs in progress.
  void EndAll(const grpc::Status& status);
  // Waits until no RPC is in progress, at most until the context ends; returns how many are left.
  std::size_t WaitUntilNone(const runtime::Context& context);

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool closed_ NH_GUARDED_BY(mutex_) = false;
  std::set<std::shared_ptr<OpenRpc>> open_ NH_GUARDED_BY(mutex_);
};

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

#endif  // NOMAD_HARVESTER_PLUGIN_DISPATCHER_H_
