// SPDX-License-Identifier: Apache-2.0
// RPCs of every method, served by one thread with one completion queue of gRPC. Its callback API
// keeps several threads that wake up each second, and its synchronous one starts threads for every
// server: this plugin is started often and mostly waits.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_RPC_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_RPC_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "nomad_harvester/base/mutex.h"

#include "call.h"
#include "grpc/support/time.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/status.h"

namespace nomad_harvester::plugin {

class RpcQueue;

// One RPC. Messages are serialized protobuf messages. Callbacks run on the queue's thread and must
// not block; all methods but Finish and End are for that thread. What begins after Finish ends at
// once, as if the client were gone. gRPC and whoever answers share it: one that is answered late is
// still there.
class Rpc final : public OpenRpc, public std::enable_shared_from_this<Rpc> {
 public:
  // nullopt: the client sends no more, or is gone.
  using OnMessage = std::function<void(std::optional<std::string> message)>;

  // "/package.Service/Method".
  const std::string& method() const { return context_.method(); }
  gpr_timespec deadline() const { return context_.raw_deadline(); }

  // Called once if the client cancels or disconnects before the RPC has ended; immediately if it
  // has done so.
  void OnCancel(std::function<void()> cancelled);
  // Called once when the status has been sent, or cannot be sent any more.
  void OnEnd(std::function<void()> ended) { ended_ = std::move(ended); }

  // One at a time.
  void Read(OnMessage then);
  // So that the client sees that a stream is open before its first message.
  void SendHeaders();
  // One at a time. `then` is not called if the client is gone.
  void Write(const std::string& message, std::function<void()> then);

  // Sends the status, after the message if there is one. Only the first one is sent; returns false
  // for the others. Thread-safe.
  bool Finish(const grpc::Status& status, const std::optional<std::string>& message = std::nullopt);
  void End(const grpc::Status& status) override { Finish(status); }

 private:
  friend class RpcQueue;
  explicit Rpc(RpcQueue& queue) : queue_(queue), stream_(&context_) {}
  void Begin(std::function<void(bool ok)> then, const std::function<void(void* tag)>& operation);
  // An exception is the error of this RPC alone (rule P2).
  void Guard(const std::function<void()>& callback);
  void Done();
  void Ended();

  RpcQueue& queue_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  std::function<void()> cancelled_;
  std::function<void()> ended_;
  bool is_cancelled_ = false;
  std::atomic<bool> finished_{false};
  bool status_sent_ = false;  // guarded by the queue's mutex
};

// By the name of the method. A handler must Finish the RPC, now or later.
using Methods = std::map<std::string, std::function<void(const std::shared_ptr<Rpc>&)>>;

// Reads the only request of a unary RPC or of a stream that only the server writes to. One that
// does not come, or cannot be decoded, is answered here.
template <typename Request>
void ReadRequest(const std::shared_ptr<Rpc>& rpc, std::function<void(const Request&)> then) {
  rpc->Read([rpc, then = std::move(then)](const std::optional<std::string>& message) {
    Request request;
    if (message.has_value() && request.ParseFromString(*message)) {
      then(request);
    } else {
      rpc->Finish({grpc::StatusCode::INTERNAL, "the request message cannot be decoded"});
    }
  });
}

// Accepts RPCs and passes each to its method's handler; others get UNIMPLEMENTED.
class RpcQueue {
 public:
  // Adds itself to the server that `builder` makes. The methods must outlive the queue.
  RpcQueue(const Methods& methods, grpc::ServerBuilder& builder);
  // Calls Stop.
  ~RpcQueue();

  // After the server was started.
  void Start();
  // After the server was shut down: waits until all RPCs are over and the thread has ended.
  // Whoever answers one later is too late. Idempotent.
  void Stop();

 private:
  friend class Rpc;
  // What gRPC gives back when an operation is over; `ok` as in grpc::CompletionQueue::Next.
  using Tag = std::function<void(bool ok)>;

  // Begins an operation; if the queue is stopped, or `operation` returns false because it has begun
  // nothing, `tag` is called with false here. Operations run one at a time.
  void Begin(Tag tag, const std::function<bool(void*)>& operation);
  void Accept();
  void Serve(const std::shared_ptr<Rpc>& rpc);
  void Run();

  const Methods& methods_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  base::Mutex mutex_;
  base::CondVar changed_;
  bool accepting_ NH_GUARDED_BY(mutex_) = false;  // gRPC has the tag of the next RPC
  bool stopped_ NH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_RPC_H_
