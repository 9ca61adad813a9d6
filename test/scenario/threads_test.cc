// SPDX-License-Identifier: Apache-2.0
//
// Ten pools at once in the threads of one process: every call of the agent, a reload, a client that
// disconnects, and the end of the process with work under way. Also under ThreadSanitizer. Time
// passes only while every thread waits, so nothing here depends on the machine.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/runtime/random.h"

#include "invariants.h"
#include "ledger.h"
#include "nlohmann/json.hpp"
#include "process.h"
#include "support/recording_sink.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"
#include "support/threaded_clock.h"
#include "threaded_process.h"

namespace nomad_harvester::scenario {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;

constexpr std::size_t kPools = 10;
#ifdef NOMAD_HARVESTER_SANITIZED
constexpr std::int64_t kVms = 5;  // as many threads, but not the time for longer lists
#else
constexpr std::int64_t kVms = 50;
#endif
constexpr std::size_t kWorkers = 16;       // of each of the process' two executors
constexpr std::size_t kStatusCallers = 4;  // beside one thread for each pool
constexpr base::Duration kTick = seconds(10);

// The calls of one pool's agent.
class Agent {
 public:
  // What becomes of the action that begins next, when it has changed its first VM.
  enum class Fate { kGoesOn, kClientLeaves, kProcessStops };

  // Two pools share a namespace: each one's Status wakes the other's background work.
  Agent(std::size_t number, const runtime::Context& context)
      : pool_("pool-" + std::to_string(number)),
        ns_("ns-" + std::to_string(number / 2)),
        context_(context),
        client_(context) {
    policy_["namespace"] = ns_;
  }

  const std::string& pool() const { return pool_; }
  const std::string& ns() const { return ns_; }
  const scaling::StringMap& policy() const { return policy_; }

  // A Status is answered at once, and from what it has read.
  scaling::TargetStatus Status(ThreadedProcess& process) const {
    const base::MonoTime begun = context_.clock().Now();
    const auto status = process.Status(policy_);
    EXPECT_THAT(status, IsOk()) << pool_;
    EXPECT_LE(context_.clock().Now() - begun, seconds(1)) << pool_;
    if (!status.ok()) return {};
    EXPECT_TRUE(status->meta.contains("harvester.lost")) << pool_ << " was not read";
    return *status;
  }
  absl::Status Scale(ThreadedProcess& process, std::int64_t count, Fate fate) {
    const runtime::CancelSource client(context_);
    {
      const base::MutexLock lock(mutex_);
      client_ = client;
      fate_ = fate;
    }
    return process.Scale(client.context(), count, policy_);
  }
  Fate fate() {
    const base::MutexLock lock(mutex_);
    return fate_;
  }
  void Leave() {
    const runtime::CancelSource client = [this] {
      const base::MutexLock lock(mutex_);
      return client_;
    }();
    client.Cancel(runtime::CancelReason::kClient);
  }
  // Calls Scale when the pool is ready, until it has that count.
  bool Reach(ThreadedProcess& process, std::int64_t count) {
    for (int tick = 0; tick < 60; ++tick) {
      const scaling::TargetStatus status = Status(process);
      if (status.ready && status.count == count) return true;
      if (status.ready) {
        EXPECT_THAT(Scale(process, count, Fate::kGoesOn), IsOk()) << pool_;
      }
      if (!context_.Sleep(kTick).ok()) return false;
    }
    return false;
  }

 private:
  const std::string pool_;
  const std::string ns_;
  scaling::StringMap policy_ = PolicyFor(pool_);
  const runtime::Context context_;
  base::Mutex mutex_;
  runtime::CancelSource client_ NH_GUARDED_BY(mutex_);  // of the open Scale
  Fate fate_ NH_GUARDED_BY(mutex_) = Fate::kGoesOn;
};

class Threads : public testing::Test {
 protected:
  Threads() {
    for (std::size_t i = 0; i < kPools; ++i) {
      agents_.push_back(std::make_unique<Agent>(i, context_));
      cluster_.PutObject({{"apiVersion", "v1"},
                          {"kind", "Namespace"},
                          {"metadata", {{"name", agents_.back()->ns()}}},
                          {"status", {{"phase", "Active"}}}});
    }
    simulator::JobSpec job;
    job.id = "api";
    job.count = static_cast<int>(kPools);
    cluster_.RunJob(job);
  }

  std::unique_ptr<ThreadedProcess> StartProcess(const std::string& name) {
    return std::make_unique<ThreadedProcess>(
        clock_, ThreadedProcess::Options{
                    .name = name,
                    .transports = [this, name](const auto&) { return cluster_.Transports(name); },
                    .sink = log_,
                    .foreground = kWorkers,
                    .background = kWorkers,
                    .config = {{"events", "true"}}});
  }

  // In a thread for each pool; returns once all have ended.
  void ForEachAgent(const std::function<void(Agent&)>& fn) {
    std::vector<std::jthread> threads;
    for (const auto& agent : agents_) threads.emplace_back([&fn, &agent] { fn(*agent); });
  }

  // Another Scale of the same pool, once each action has begun, and then the action's fate.
  void Interfere(ThreadedProcess& process) {
    std::size_t last = 0;
    while (const auto pool = ledger_.AwaitAction()) {
      const auto agent = std::find_if(agents_.begin(), agents_.end(),
                                      [&](const auto& a) { return a->pool() == *pool; });
      const absl::Status second = process.Scale(context_, 0, (*agent)->policy());
      EXPECT_TRUE(absl::IsAborted(second)) << *pool << ": " << second;
      const Agent::Fate fate = (*agent)->fate();
      if (fate == Agent::Fate::kClientLeaves) (*agent)->Leave();
      if (fate == Agent::Fate::kProcessStops && ++last == kPools) {
        const base::MonoTime begun = clock_.Now();
        process.Stop(minutes(1));
        EXPECT_LE(clock_.Now() - begun, seconds(1)) << "L9";
        return;
      }
    }
  }

  support::ThreadedClock clock_;
  support::PassingTime passing_{clock_, milliseconds(100)};
  const runtime::Context context_ = runtime::Context::Background(clock_);
  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_{clock_, *random_};
  Ledger ledger_{cluster_};
  const std::shared_ptr<support::RecordingSink> log_ = std::make_shared<support::RecordingSink>();
  std::vector<std::unique_ptr<Agent>> agents_;
};

TEST_F(Threads, C11_S3_ten_pools_of_fifty_vms_share_a_process) {
  std::unique_ptr<ThreadedProcess> process = StartProcess("test_1");
  std::jthread interference([&] { Interfere(*process); });
  {
    const runtime::CancelSource meanwhile(context_);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kStatusCallers; ++i) {
      threads.emplace_back([&, i] {
        do {
          for (std::size_t pool = i; pool < kPools; pool += kStatusCallers) {
            agents_[pool]->Status(*process);
          }
        } while (meanwhile.context().Sleep(kTick).ok());
      });
    }
    threads.emplace_back([&] {
      for (int reload = 0; meanwhile.context().Sleep(seconds(7)).ok(); ++reload) {
        process->Configure({{"max_concurrency", reload % 2 == 0 ? "5" : "12"}});
      }
    });
    ForEachAgent([&](Agent& agent) {
      EXPECT_TRUE(agent.Reach(*process, kVms)) << agent.pool();
      const absl::Status left = agent.Scale(*process, kVms / 5, Agent::Fate::kClientLeaves);
      EXPECT_TRUE(left.ok() || absl::IsCancelled(left)) << agent.pool() << ": " << left;
      EXPECT_TRUE(agent.Reach(*process, kVms / 2)) << agent.pool();
    });
    meanwhile.Cancel(runtime::CancelReason::kClient);
  }
  ForEachAgent([&](Agent& agent) {
    const absl::Status left = agent.Scale(*process, kVms, Agent::Fate::kProcessStops);
    EXPECT_TRUE(left.ok() || absl::IsCancelled(left)) << agent.pool() << ": " << left;
  });
  ledger_.Close();
  interference.join();
  EXPECT_TRUE(absl::IsCancelled(process->Status(agents_[0]->policy()).status()));
  process = StartProcess("test_2");
  ForEachAgent([&](Agent& agent) {
    EXPECT_TRUE(agent.Reach(*process, kVms / 5)) << agent.pool();
    // The background cleans up.
    for (int tick = 0; tick < 6; ++tick) {
      agent.Status(*process);
      context_.Sleep(kTick).IgnoreError();
    }
  });
  EXPECT_THAT(ledger_.Violations(), testing::IsEmpty());
  // The one that a client left may have marked as many as the next one wants.
  EXPECT_GE(ledger_.actions(), 4 * static_cast<int>(kPools));
  EXPECT_THAT(cluster_.Events(), testing::Not(testing::IsEmpty()));
  const Invariants rest(clock_, cluster_);
  for (const auto& agent : agents_) {
    const std::string pool = agent->ns() + "/" + agent->pool();
    EXPECT_THAT(rest.AtRest({.pool = pool, .count = kVms / 5}), testing::IsEmpty());
  }
  if (HasFailure()) ADD_FAILURE() << log_->Text();
}

}  // namespace
}  // namespace nomad_harvester::scenario
