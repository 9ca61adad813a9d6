// SPDX-License-Identifier: Apache-2.0
// One RPC that a worker thread executes. Three parties share it: gRPC, which calls the handler and
// reports a cancellation; the worker; and the shutdown, which may have to reply before the worker
// has finished.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_CALL_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_CALL_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/runtime/context.h"

#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "grpcpp/support/status.h"

namespace nomad_harvester::plugin {

// The time until the caller's deadline; nullopt: no deadline.
std::optional<base::Duration> TimeGiven(const grpc::CallbackServerContext& rpc);

// The part of that time that the work may use: the reply must arrive before the caller's deadline.
base::Duration TimeToWork(base::Duration given);

// An RPC that must be ended before the server shuts down.
class OpenRpc {
 public:
  virtual ~OpenRpc() = default;
  // Ends the RPC with `status`, unless it has ended already. Thread-safe.
  virtual void End(const grpc::Status& status) = 0;
};

// Owned by worker, reactor and registry together: a worker that finishes late finds an answered
// call, not freed memory. The messages belong to gRPC and are valid until the reply.
class Call final : public OpenRpc {
 public:
  // `fill` writes the response message. It is called at most once, and only while the message is
  // valid.
  using Fill = std::function<void()>;

  explicit Call(const runtime::Context& parent) : cancel_(parent) {}

  const runtime::Context& context() const { return cancel_.context(); }
  void Cancel(runtime::CancelReason reason) const { cancel_.Cancel(reason); }

  // Must be called before the reactor is passed to gRPC.
  void set_reactor(grpc::ServerUnaryReactor* reactor) { reactor_ = reactor; }

  // Only the first reply is sent; returns false if there was one already. Thread-safe.
  bool Finish(const grpc::Status& status, const Fill& fill = nullptr);
  void End(const grpc::Status& status) override { Finish(status); }

 private:
  const runtime::CancelSource cancel_;
  std::atomic<grpc::ServerUnaryReactor*> reactor_{nullptr};
};

// All open RPCs, which a shutdown must end. Thread-safe.
class CallRegistry {
 public:
  // False after Close: the RPC must then be ended immediately.
  bool Add(const std::shared_ptr<OpenRpc>& rpc);
  // To be called when gRPC is done with the RPC: its status was sent or the client has
  // disconnected.
  void Remove(const std::shared_ptr<OpenRpc>& rpc);

  void Close();
  // Ends all open RPCs.
  void EndAll(const grpc::Status& status);
  // Waits until no RPC is open, at most until the context ends; returns how many are left.
  std::size_t WaitUntilNone(const runtime::Context& context);

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool closed_ NH_GUARDED_BY(mutex_) = false;
  std::set<std::shared_ptr<OpenRpc>> open_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_CALL_H_
