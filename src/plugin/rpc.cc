// SPDX-License-Identifier: Apache-2.0
#include "rpc.h"

#include <exception>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "grpc_runtime.h"
#include "grpc_status.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace nomad_harvester::plugin {
namespace {

grpc::ByteBuffer ToBytes(const std::string& message) {
  const grpc::Slice slice(message);
  return {&slice, 1};
}

std::optional<std::string> ToText(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return std::nullopt;
  std::string text;
  text.reserve(bytes.Length());
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

}  // namespace

void Rpc::OnCancel(std::function<void()> cancelled) {
  if (is_cancelled_) {
    cancelled();
  } else {
    cancelled_ = std::move(cancelled);
  }
}

// gRPC aborts the process if an operation begins after the status was sent.
void Rpc::Begin(std::function<void(bool)> then, const std::function<void(void*)>& operation) {
  queue_.Begin([self = shared_from_this(),
                then = std::move(then)](bool ok) { self->Guard([&] { then(ok); }); },
               [&](void* tag) {
                 if (status_sent_) return false;
                 operation(tag);
                 return true;
               });
}

void Rpc::Guard(const std::function<void()>& callback) {
  try {
    callback();
  } catch (const std::exception& error) {
    Finish(
        StatusToGrpc(base::Internal("unexpected exception in " + method() + ": " + error.what())));
  }
}

void Rpc::Read(OnMessage then) {
  const auto bytes = std::make_shared<grpc::ByteBuffer>();
  Begin([bytes, then = std::move(then)](bool ok) { then(ok ? ToText(*bytes) : std::nullopt); },
        [&](void* tag) { stream_.Read(bytes.get(), tag); });
}

void Rpc::SendHeaders() {
  Begin([](bool) {}, [&](void* tag) { stream_.SendInitialMetadata(tag); });
}

void Rpc::Write(const std::string& message, std::function<void()> then) {
  Begin(
      [then = std::move(then)](bool ok) {
        if (ok) then();
      },
      [&](void* tag) { stream_.Write(ToBytes(message), tag); });
}

bool Rpc::Finish(const grpc::Status& status, const std::optional<std::string>& message) {
  if (finished_.exchange(true)) return false;
  queue_.Begin([self = shared_from_this()](bool) { self->Ended(); },
               [&](void* tag) {
                 status_sent_ = true;
                 if (message.has_value()) {
                   stream_.WriteAndFinish(ToBytes(*message), grpc::WriteOptions(), status, tag);
                 } else {
                   stream_.Finish(status, tag);
                 }
                 return true;
               });
  return true;
}

void Rpc::Done() {
  is_cancelled_ = context_.IsCancelled();
  const std::function<void()> cancelled = std::exchange(cancelled_, nullptr);
  if (is_cancelled_ && cancelled) Guard(cancelled);
}

void Rpc::Ended() {
  if (const std::function<void()> ended = std::exchange(ended_, nullptr)) ended();
}

RpcQueue::RpcQueue(const Methods& methods, grpc::ServerBuilder& builder) : methods_(methods) {
  builder.RegisterAsyncGenericService(&service_);
  queue_ = builder.AddCompletionQueue();
}

RpcQueue::~RpcQueue() { Stop(); }

void RpcQueue::Start() {
  {
    base::MutexLock lock(mutex_);
    accepting_ = true;
  }
  Accept();
  thread_ = std::thread([this] { Run(); });
}

void RpcQueue::Stop() {
  {
    // An RPC that gRPC has accepted begins an operation when it is taken from the queue: the
    // server, which was shut down, must first have given the tag of the next one back.
    base::MutexLock lock(mutex_);
    changed_.Wait(mutex_, [this]() NH_REQUIRES(mutex_) { return !accepting_; });
    if (std::exchange(stopped_, true)) return;
  }
  queue_->Shutdown();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    Run();  // gRPC demands that a queue is emptied
  }
}

void RpcQueue::Begin(Tag tag, const std::function<bool(void*)>& operation) {
  auto owned = std::make_unique<Tag>(std::move(tag));
  {
    // gRPC aborts the process if an operation begins after the shutdown of its queue. It calls
    // nothing of ours from here.
    base::MutexLock lock(mutex_);
    if (!stopped_ && operation(owned.get())) {
      static_cast<void>(owned.release());  // gRPC gives it back
      return;
    }
  }
  (*owned)(false);
}

void RpcQueue::Accept() {
  const std::shared_ptr<Rpc> rpc(new Rpc(*this));
  auto done = std::make_unique<Tag>([rpc](bool) { rpc->Done(); });
  rpc->context_.AsyncNotifyWhenDone(done.get());
  Begin(
      [this, rpc, done = done.release()](bool ok) {
        if (ok) {
          Accept();
          Serve(rpc);
        } else {
          delete done;  // gRPC does not return it if no RPC has come
          base::MutexLock lock(mutex_);
          accepting_ = false;
          changed_.NotifyAll();
        }
      },
      [&](void* tag) {
        service_.RequestCall(&rpc->context_, &rpc->stream_, queue_.get(), queue_.get(), tag);
        return true;
      });
}

void RpcQueue::Serve(const std::shared_ptr<Rpc>& rpc) {
  const auto method = methods_.find(rpc->method());
  if (method == methods_.end()) {
    rpc->Finish({grpc::StatusCode::UNIMPLEMENTED, "there is no such method"});
  } else {
    rpc->Guard([&] { method->second(rpc); });
  }
}

void RpcQueue::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    const std::unique_ptr<Tag> owned(static_cast<Tag*>(tag));
    (*owned)(ok);
    RunGrpcTimers();
  }
}

}  // namespace nomad_harvester::plugin
