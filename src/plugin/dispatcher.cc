// SPDX-License-Identifier: Apache-2.0
#include "dispatcher.h"

#include <exception>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::plugin {
namespace {

// A stopped lane drops tasks that have not begun; this still ends their RPCs.
class AnswerIfDropped {
 public:
  explicit AnswerIfDropped(std::shared_ptr<Rpc> rpc) : rpc_(std::move(rpc)) {}
  ~AnswerIfDropped() {
    rpc_->Finish({grpc::StatusCode::CANCELLED, "cancelled: the process is ending"});
  }
  AnswerIfDropped(const AnswerIfDropped&) = delete;
  AnswerIfDropped& operator=(const AnswerIfDropped&) = delete;

  Rpc& rpc() const { return *rpc_; }

 private:
  const std::shared_ptr<Rpc> rpc_;
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

void Dispatcher::Start(const std::shared_ptr<Rpc>& rpc, Work work) {
  runtime::Context parent = root_;
  if (const std::optional<base::Duration> given = TimeGiven(rpc->deadline())) {
    parent = parent.WithTimeout(TimeToWork(*given));
  }
  const runtime::CancelSource cancel(parent);
  rpc->OnCancel([cancel] { cancel.Cancel(runtime::CancelReason::kClient); });
  rpc->OnEnd([this, rpc] { registry_.Remove(rpc); });
  // Held until the task has run or was dropped, and at least until this function returns.
  const auto guard = std::make_shared<AnswerIfDropped>(rpc);
  if (!registry_.Add(rpc)) return;

  runtime::WorkerPool& pool = work.lane == Lane::kScale ? scale_ : quick_;
  const absl::Status submitted =
      pool.Submit([this, guard, context = cancel.context(), work = std::move(work)] {
        RunAndAnswer(work, context, guard->rpc());
      });
  if (!submitted.ok()) {
    rpc->Finish(StatusToGrpc(base::Annotate(submitted, "too many calls at once")));
  }
}

absl::Status Dispatcher::Run(const Work& work, const runtime::Context& context,
                             std::string* reply) const {
  // While the call was queued, the caller may have cancelled it or its deadline may have passed.
  NH_RETURN_IF_ERROR(context.Check());
  try {
    return work.run(context, reply);
  } catch (const std::exception& error) {
    logger_.Error("Unexpected exception", {{"method", work.method}, {"error", error.what()}});
    return base::Internal("unexpected exception in " + work.method + ": " + error.what());
  } catch (...) {
    logger_.Error("Unexpected exception", {{"method", work.method}, {"error", "of unknown type"}});
    return base::Internal("unexpected exception of unknown type in " + work.method);
  }
}

void Dispatcher::RunAndAnswer(const Work& work, const runtime::Context& context, Rpc& rpc) const {
  const base::MonoTime begin = context.clock().Now();
  std::string reply;
  const absl::Status status = Run(work, context, &reply);
  if (MakeErrorText(base::ToStd(status.message())).shortened) {
    logger_.Warn("The reply carries only a part of this error",
                 {{"method", work.method}, {"error", status}});
  }
  logger_.Debug("Call ended", {{"method", work.method},
                               {"status", absl::StatusCodeToString(status.code())},
                               {"duration", context.clock().Now() - begin}});
  if (status.ok()) {
    rpc.Finish(grpc::Status::OK, reply);
  } else {
    rpc.Finish(StatusToGrpc(status, work.aborted));
  }
}

void Dispatcher::Stop() {
  quick_.Stop();
  scale_.Stop();
}

}  // namespace nomad_harvester::plugin
