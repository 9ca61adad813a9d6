// SPDX-License-Identifier: Apache-2.0
// Tracks the time of an RPC and the RPCs in progress: a shutdown may have to reply before the
// worker that executes an RPC has finished.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_CALL_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_CALL_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <set>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/runtime/context.h"

#include "grpc/support/time.h"
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

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_CALL_H_
