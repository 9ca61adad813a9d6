// SPDX-License-Identifier: Apache-2.0
#include "dispatcher.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/wait.h"

namespace nomad_harvester::plugin {
namespace {

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

// One call, shared by gRPC, the registry and the worker. The first answer counts; a worker may
// still be running when gRPC is done with the call.
class Dispatcher::Call final : public grpc::ServerUnaryReactor, public OpenRpc {
 public:
  Call(CallRegistry& registry, const runtime::Context& parent)
      : registry_(registry), cancel_(parent) {}

  static std::shared_ptr<Call> Make(CallRegistry& registry, const runtime::Context& parent) {
    auto call = std::make_shared<Call>(registry, parent);
    call->self_ = call;
    return call;
  }

  runtime::Context context() const { return cancel_.context(); }

  // `conclude` must not throw.
  void Answer(const std::function<grpc::Status()>& conclude) {
    if (answered_.exchange(true)) return;
    Finish(conclude());
  }
  void End(const grpc::Status& status) override {
    Answer([&] { return status; });
  }

  void OnCancel() override { cancel_.Cancel(runtime::CancelReason::kClient); }
  void OnDone() override {
    const std::shared_ptr<Call> self = std::move(self_);
    registry_.Remove(self);
  }

 private:
  CallRegistry& registry_;
  const runtime::CancelSource cancel_;
  std::atomic<bool> answered_{false};
  std::shared_ptr<Call> self_;  // keeps this object until gRPC is done
};

Dispatcher::Dispatcher(const runtime::Context& root, CallRegistry& registry, log::Logger logger,
                       const LaneSizes& sizes)
    : root_(root),
      registry_(registry),
      logger_(std::move(logger)),
      quick_(PoolOptions(sizes.quick_threads, sizes.quick_queue, logger_)),
      scale_(PoolOptions(sizes.scale_threads, sizes.scale_queue, logger_)) {}

grpc::ServerUnaryReactor* Dispatcher::Start(const grpc::CallbackServerContext& rpc, Work work) {
  runtime::Context parent = root_;
  if (const std::optional<base::Duration> given = TimeGiven(rpc.raw_deadline())) {
    parent = parent.WithTimeout(TimeToWork(*given));
  }
  const std::shared_ptr<Call> call = Call::Make(registry_, parent);
  grpc::ServerUnaryReactor* const reactor = call.get();
  const grpc::Status ending(grpc::StatusCode::CANCELLED, "cancelled: the process is ending");
  if (!registry_.Add(call)) {
    call->End(ending);
    return reactor;
  }
  // A stopped lane drops tasks that have not begun. The deleter ends their calls.
  const std::shared_ptr<Call> task(call.get(), [call, ending](Call*) { call->End(ending); });
  runtime::WorkerPool& pool = work.lane == Lane::kScale ? scale_ : quick_;
  const absl::Status submitted =
      pool.Submit([this, task, work = std::move(work)] { RunAndAnswer(work, *task); });
  if (!submitted.ok()) {
    call->End(StatusToGrpc(base::Annotate(submitted, "too many calls at once")));
  }
  return reactor;
}

absl::Status Dispatcher::Catch(const std::string& method,
                               const std::function<absl::Status()>& act) const {
  try {
    return act();
  } catch (const std::exception& error) {
    logger_.Error("Unexpected exception", {{"method", method}, {"error", error.what()}});
    return base::Internal("unexpected exception in " + method + ": " + error.what());
  } catch (...) {
    logger_.Error("Unexpected exception", {{"method", method}, {"error", "of unknown type"}});
    return base::Internal("unexpected exception of unknown type in " + method);
  }
}

void Dispatcher::RunAndAnswer(const Work& work, Call& call) const {
  const runtime::Context context = call.context();
  const base::MonoTime begin = context.clock().Now();
  const absl::Status status = Catch(work.method, [&] {
    // While the call was queued, the caller may have cancelled it or its deadline may have passed.
    NH_RETURN_IF_ERROR(context.Check());
    return work.run(context);
  });
  if (MakeErrorText(base::ToStd(status.message())).shortened) {
    logger_.Warn("The reply carries only a part of this error",
                 {{"method", work.method}, {"error", status}});
  }
  logger_.Debug("Call ended", {{"method", work.method},
                               {"status", absl::StatusCodeToString(status.code())},
                               {"duration", context.clock().Now() - begin}});
  call.Answer([&] {
    if (!status.ok()) return StatusToGrpc(status, work.aborted);
    return StatusToGrpc(Catch(work.method, [&] {
      work.fill_response();
      return absl::OkStatus();
    }));
  });
}

void Dispatcher::Stop() {
  quick_.Stop();
  scale_.Stop();
}

std::optional<base::Duration> TimeGiven(gpr_timespec deadline) {
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return std::nullopt;
  // Uses gRPC's monotonic clock, so that changes of the wall clock have no effect.
  const gpr_timespec left = gpr_time_sub(gpr_convert_clock_type(deadline, GPR_CLOCK_MONOTONIC),
                                         gpr_now(GPR_CLOCK_MONOTONIC));
  if (gpr_time_cmp(left, gpr_inf_future(GPR_TIMESPAN)) == 0) return std::nullopt;
  // A caller's deadline may exceed the range of nanoseconds.
  constexpr std::int64_t kYear = 365LL * 24 * 3600;
  if (left.tv_sec > kYear) return std::nullopt;
  return std::max(
      base::Duration::zero(),
      std::chrono::seconds(left.tv_sec) + base::Duration(std::chrono::nanoseconds(left.tv_nsec)));
}

base::Duration TimeToWork(base::Duration given) {
  constexpr base::Duration kMaxForTheReply = std::chrono::milliseconds(250);
  return given - std::min(given / 10, kMaxForTheReply);
}

bool CallRegistry::Add(const std::shared_ptr<OpenRpc>& rpc) {
  base::MutexLock lock(mutex_);
  if (closed_) return false;
  open_.insert(rpc);
  return true;
}

void CallRegistry::Remove(const std::shared_ptr<OpenRpc>& rpc) {
  base::MutexLock lock(mutex_);
  open_.erase(rpc);
  if (open_.empty()) changed_.NotifyAll();
}

void CallRegistry::Close() {
  base::MutexLock lock(mutex_);
  closed_ = true;
}

void CallRegistry::EndAll(const grpc::Status& status) {
  std::vector<std::shared_ptr<OpenRpc>> open;
  {
    base::MutexLock lock(mutex_);
    open.assign(open_.begin(), open_.end());
  }
  // Without the lock, because End may lead to Remove.
  for (const std::shared_ptr<OpenRpc>& rpc : open) rpc->End(status);
}

std::size_t CallRegistry::WaitUntilNone(const runtime::Context& context) {
  base::MutexLock lock(mutex_);
  runtime::WaitFor(context, changed_, mutex_,
                   [this]() NH_REQUIRES(mutex_) { return open_.empty(); });
  return open_.size();
}

}  // namespace nomad_harvester::plugin
