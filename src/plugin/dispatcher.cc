// SPDX-License-Identifier: Apache-2.0
#include "dispatcher.h"

#include <exception>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::plugin {
namespace {

class CallReactor final : public grpc::ServerUnaryReactor {
 public:
  CallReactor(std::shared_ptr<Call> call, CallRegistry& registry)
      : call_(std::move(call)), registry_(registry) {}

  void OnCancel() override { call_->Cancel(runtime::CancelReason::kClient); }
  // Must not join or wait: the worker may still hold the call.
  void OnDone() override {
    registry_.Remove(call_);
    delete this;
  }

 private:
  const std::shared_ptr<Call> call_;
  CallRegistry& registry_;
};

// A stopped lane drops tasks that have not begun; this still ends their RPCs.
class AnswerIfDropped {
 public:
  explicit AnswerIfDropped(std::shared_ptr<Call> call) : call_(std::move(call)) {}
  ~AnswerIfDropped() {
    call_->Finish({grpc::StatusCode::CANCELLED, "cancelled: the process is ending"});
  }
  AnswerIfDropped(const AnswerIfDropped&) = delete;
  AnswerIfDropped& operator=(const AnswerIfDropped&) = delete;

  Call& call() const { return *call_; }

 private:
  const std::shared_ptr<Call> call_;
};

runtime::WorkerPool::Options PoolOptions(std::size_t threads, std::size_t queue,
                                         const log::Logger& logger) {
  runtime::WorkerPool::Options options;
  options.threads = threads;
  options.queue_limit = queue;
  options.on_exception = [logger](const std::string& text) {
    logger.Error("A worker thread failed", {{"error", text}});
  };
  return options;
}

}  // namespace

Dispatcher::Dispatcher(const runtime::Context& root, CallRegistry& registry, log::Logger logger,
                       const LaneSizes& sizes)
    : root_(root),
      registry_(registry),
      logger_(std::move(logger)),
      quick_(PoolOptions(sizes.quick_threads, sizes.quick_queue, logger_)),
      scale_(PoolOptions(sizes.scale_threads, sizes.scale_queue, logger_)) {}

grpc::ServerUnaryReactor* Dispatcher::Start(const grpc::CallbackServerContext& rpc, Work work) {
  runtime::Context parent = root_;
  if (const std::optional<base::Duration> given = TimeGiven(rpc)) {
    parent = parent.WithTimeout(TimeToWork(*given));
  }
  const auto call = std::make_shared<Call>(parent);
  auto* const reactor = new CallReactor(call, registry_);  // OnDone deletes it
  call->set_reactor(reactor);
  // Held until the task has run or was dropped, and at least until this function returns.
  const auto guard = std::make_shared<AnswerIfDropped>(call);
  if (!registry_.Add(call)) return reactor;

  runtime::WorkerPool& pool = work.lane == Lane::kScale ? scale_ : quick_;
  const absl::Status submitted =
      pool.Submit([this, guard, work = std::move(work)] { RunAndAnswer(work, guard->call()); });
  if (!submitted.ok()) {
    call->Finish(StatusToGrpc(base::Annotate(submitted, "too many calls at once")));
  }
  return reactor;
}

absl::Status Dispatcher::Run(const Work& work, const runtime::Context& context) const {
  // While the call was queued, the caller may have cancelled it or its deadline may have passed.
  NH_RETURN_IF_ERROR(context.Check());
  try {
    return work.run(context);
  } catch (const std::exception& error) {
    logger_.Error("Unexpected exception", {{"method", work.method}, {"error", error.what()}});
    return base::Internal("unexpected exception in " + work.method + ": " + error.what());
  } catch (...) {
    logger_.Error("Unexpected exception", {{"method", work.method}, {"error", "of unknown type"}});
    return base::Internal("unexpected exception of unknown type in " + work.method);
  }
}

void Dispatcher::RunAndAnswer(const Work& work, Call& call) const {
  const base::MonoTime begin = call.context().clock().Now();
  const absl::Status status = Run(work, call.context());
  if (MakeErrorText(base::ToStd(status.message())).shortened) {
    logger_.Warn("The reply carries only a part of this error",
                 {{"method", work.method}, {"error", status}});
  }
  logger_.Debug("Call ended", {{"method", work.method},
                               {"status", absl::StatusCodeToString(status.code())},
                               {"duration", call.context().clock().Now() - begin}});
  call.Finish(StatusToGrpc(status, work.aborted), status.ok() ? work.fill : nullptr);
}

void Dispatcher::Stop() {
  quick_.Stop();
  scale_.Stop();
}

}  // namespace nomad_harvester::plugin
