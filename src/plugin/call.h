// SPDX-License-Identifier: Apache-2.0
// One RPC whose work is done by a worker thread, between three parties: gRPC, which calls the
// handler and reports a cancellation; the worker; and the shutdown, which may have to answer in a
// worker's place.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_CALL_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_CALL_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/runtime/context.h"

#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"

namespace nomad_harvester::plugin {

// How much time the caller gives, by its own deadline; nothing: no deadline.
std::optional<base::Duration> TimeGiven(const grpc::CallbackServerContext& rpc);

// The part of it that the work may use: the reply needs some of it to arrive before the caller
// gives up.
base::Duration TimeToWork(base::Duration given);

// What has to be ended before the server goes down.
class OpenRpc {
 public:
  virtual ~OpenRpc() = default;
  // Answers the RPC, unless it has been answered. Thread-safe.
  virtual void End(const grpc::Status& status) = 0;
};

// Owned by the worker, the reactor and the registry together: a worker that comes too late finds a
// call that is answered, not freed memory. The messages belong to gRPC and live until the answer.
class Call final : public OpenRpc {
 public:
  // `fill` writes the response message; it is called once at most, and only while the message is
  // there.
  using Fill = std::function<void()>;

  explicit Call(const runtime::Context& parent) : cancel_(parent) {}

  const runtime::Context& context() const { return cancel_.context(); }
  void Cancel(runtime::CancelReason reason) const { cancel_.Cancel(reason); }

  // Before the reactor is given to gRPC.
  void set_reactor(grpc::ServerUnaryReactor* reactor) { reactor_ = reactor; }

  // The first answer counts; false: there was one already. Thread-safe.
  bool Finish(const grpc::Status& status, const Fill& fill = nullptr);
  void End(const grpc::Status& status) override { Finish(status); }

 private:
  const runtime::CancelSource cancel_;
  std::atomic<grpc::ServerUnaryReactor*> reactor_{nullptr};
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_CALL_H_
