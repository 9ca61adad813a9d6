// SPDX-License-Identifier: Apache-2.0
#include "event_engine.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::plugin {
namespace {

using grpc_event_engine::experimental::EndpointConfig;
using grpc_event_engine::experimental::EventEngine;
using grpc_event_engine::experimental::MemoryAllocator;
using grpc_event_engine::experimental::MemoryAllocatorFactory;
using Clock = std::chrono::steady_clock;
using Task = absl::AnyInvocable<void()>;

constexpr char kNoSockets[] = "this event engine has no sockets";

// Outlives the engine while its thread runs a task that releases the engine.
class Tasks : public std::enable_shared_from_this<Tasks> {
 public:
  // Returns the task's number.
  std::intptr_t Add(Clock::time_point at, Task task) {
    std::intptr_t number = 0;
    {
      base::MutexLock lock(mutex_);
      number = ++last_;
      tasks_.emplace(Key{at, number}, std::move(task));
      times_[number] = at;
      StartThread();
    }
    changed_.NotifyOne();
    return number;
  }

  bool Cancel(std::intptr_t number) {
    Task cancelled;  // destroyed outside of the lock
    base::MutexLock lock(mutex_);
    const auto time = times_.find(number);
    if (time == times_.end()) return false;
    const auto task = tasks_.find({time->second, number});
    cancelled = std::move(task->second);
    tasks_.erase(task);
    times_.erase(time);
    return true;
  }

  // Waits for the task that runs, unless that is the caller. The others are dropped.
  void Stop() {
    std::map<Key, Task> dropped;
    std::jthread thread;
    {
      base::MutexLock lock(mutex_);
      stopping_ = true;
      dropped.swap(tasks_);
      times_.clear();
      thread.swap(thread_);
    }
    changed_.NotifyOne();
    if (thread.get_id() == std::this_thread::get_id()) thread.detach();
  }

  bool OnThread() const {
    base::MutexLock lock(mutex_);
    return thread_.get_id() == std::this_thread::get_id();
  }

 private:
  using Key = std::pair<Clock::time_point, std::intptr_t>;

  void StartThread() NH_REQUIRES(mutex_) {
    if (thread_.joinable()) return;
    try {
      thread_ = std::jthread([self = shared_from_this()] { self->Work(); });
    } catch (const std::system_error&) {
      // The process may have reached its limit of threads.
    }
  }

  void Work() {
    while (Task task = Next()) task();
  }

  // Waits for it; none: the engine has stopped.
  Task Next() {
    base::MutexLock lock(mutex_);
    while (!stopping_) {
      if (tasks_.empty()) {
        changed_.Wait(mutex_,
                      [this]() NH_REQUIRES(mutex_) { return stopping_ || !tasks_.empty(); });
        continue;
      }
      const auto first = tasks_.begin();
      const auto [at, number] = first->first;
      if (at > Clock::now()) {
        changed_.WaitUntil(mutex_, {}, at, [this, number = number]() NH_REQUIRES(mutex_) {
          return stopping_ || tasks_.empty() || tasks_.begin()->first.second != number;
        });
        continue;
      }
      Task task = std::move(first->second);
      times_.erase(number);
      tasks_.erase(first);
      return task;
    }
    return nullptr;
  }

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::map<Key, Task> tasks_ NH_GUARDED_BY(mutex_);
  std::map<std::intptr_t, Clock::time_point> times_ NH_GUARDED_BY(mutex_);  // of the tasks
  std::intptr_t last_ NH_GUARDED_BY(mutex_) = 0;
  bool stopping_ NH_GUARDED_BY(mutex_) = false;
  std::jthread thread_ NH_GUARDED_BY(mutex_);
};

class OwnEventEngine final : public EventEngine {
 public:
  ~OwnEventEngine() override { tasks_->Stop(); }

  void Run(Closure* closure) override { RunAfter(Duration::zero(), closure); }
  void Run(Task closure) override { RunAfter(Duration::zero(), std::move(closure)); }
  TaskHandle RunAfter(Duration when, Closure* closure) override {
    return RunAfter(when, [closure] { closure->Run(); });
  }
  TaskHandle RunAfter(Duration when, Task closure) override {
    const auto at = Clock::now() + std::chrono::duration_cast<Clock::duration>(when);
    return {{tasks_->Add(at, std::move(closure)), 0}};
  }
  bool Cancel(TaskHandle handle) override { return tasks_->Cancel(handle.keys[0]); }
  bool IsWorkerThread() override { return tasks_->OnThread(); }

  absl::StatusOr<std::unique_ptr<Listener>> CreateListener(
      Listener::AcceptCallback, absl::AnyInvocable<void(absl::Status)>, const EndpointConfig&,
      std::unique_ptr<MemoryAllocatorFactory>) override {
    return base::MakeStatus(absl::StatusCode::kUnimplemented, kNoSockets);
  }
  ConnectionHandle Connect(OnConnectCallback on_connect, const ResolvedAddress&,
                           const EndpointConfig&, MemoryAllocator, Duration) override {
    Run([on_connect = std::move(on_connect)]() mutable {
      on_connect(base::MakeStatus(absl::StatusCode::kUnimplemented, kNoSockets));
    });
    return {{0, 0}};
  }
  bool CancelConnect(ConnectionHandle) override { return false; }
  std::unique_ptr<DNSResolver> GetDNSResolver(const DNSResolver::ResolverOptions&) override {
    return nullptr;
  }

 private:
  const std::shared_ptr<Tasks> tasks_ = std::make_shared<Tasks>();
};

}  // namespace

std::unique_ptr<EventEngine> MakeEventEngine() { return std::make_unique<OwnEventEngine>(); }

}  // namespace nomad_harvester::plugin
