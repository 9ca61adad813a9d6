// SPDX-License-Identifier: Apache-2.0
//
// Sixty pools in one process (rule L8), with the executable's threads: all of them drain.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/simulator/server.h"

#include "nlohmann/json.hpp"
#include "process.h"
#include "support/recording_sink.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"
#include "support/threaded_clock.h"
#include "threaded_process.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::IsOk;

constexpr std::size_t kPools = 60;
constexpr base::Duration kTick = seconds(10);
// hashicorp/nomad:nomad/structs/config/limits.go, http_max_conns_per_client.
constexpr int kNomadConnections = 100;

// Requests of one kind in flight.
class InFlight {
 public:
  void Begin() {
    const base::MutexLock lock(mutex_);
    most_ = std::max(most_, ++now_);
  }
  void End() {
    const base::MutexLock lock(mutex_);
    --now_;
  }
  int most() {
    const base::MutexLock lock(mutex_);
    return most_;
  }

 private:
  base::Mutex mutex_;
  int now_ NH_GUARDED_BY(mutex_) = 0;
  int most_ NH_GUARDED_BY(mutex_) = 0;
};

struct NomadLists {
  InFlight blocking_nodes;
  InFlight allocations;
};

class CountingLists final : public http::HttpTransport {
 public:
  CountingLists(NomadLists& lists, std::shared_ptr<http::HttpTransport> inner)
      : lists_(lists), inner_(std::move(inner)) {}
  absl::StatusOr<http::HttpResponse> Send(const runtime::Context& context,
                                          const http::HttpRequest& request) override {
    InFlight* kind = nullptr;
    if (request.target.starts_with("/v1/nodes") &&
        request.target.find("index=") != std::string::npos) {
      kind = &lists_.blocking_nodes;
    }
    if (request.target.starts_with("/v1/allocations")) kind = &lists_.allocations;
    if (kind == nullptr) return inner_->Send(context, request);
    kind->Begin();
    auto reply = inner_->Send(context, request);
    kind->End();
    return reply;
  }

 private:
  NomadLists& lists_;
  const std::shared_ptr<http::HttpTransport> inner_;
};

std::string PoolName(std::size_t i) { return "pool-" + std::to_string(i); }

// Six pools share one.
std::string NamespaceOfPool(std::size_t i) { return "ns-" + std::to_string(i % 10); }
void MakeNamespaces(simulator::Cluster& cluster) {
  for (std::size_t i = 0; i < 10; ++i) {
    cluster.PutObject({{"apiVersion", "v1"},
                       {"kind", "Namespace"},
                       {"metadata", {{"name", NamespaceOfPool(i)}}},
                       {"status", {{"phase", "Active"}}}});
  }
}

scaling::StringMap Policy(std::size_t i) {
  scaling::StringMap policy = PolicyFor(PoolName(i));
  policy["namespace"] = NamespaceOfPool(i);
  return policy;
}

// fn(i) for each i < count, in a thread of its own.
std::vector<std::jthread> InThreads(std::size_t count, const std::function<void(std::size_t)>& fn) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([fn, i] { fn(i); });
  return threads;
}

class Capacity : public testing::Test {
 protected:
  Capacity() { MakeNamespaces(cluster_); }
  ~Capacity() override { calls_.Cancel(runtime::CancelReason::kClient); }

  static simulator::Options Latency() {
    simulator::Options options;
    options.request_latency = milliseconds(50);
    return options;
  }
  absl::Status Scale(std::size_t pool, std::int64_t count) {
    return process_.Scale(calls_.context(), count, Policy(pool));
  }
  // Every pool has one VM too many, whose drain does not end.
  void BeginDrains() {
    InThreads(kPools, [this](std::size_t i) { EXPECT_THAT(Scale(i, 2), IsOk()); });
    for (const json& node : cluster_.Nodes()) cluster_.HangDrain(base::GetString(node, "ID"));
    InThreads(kPools, [this](std::size_t i) { EXPECT_THAT(Scale(i, 1), IsOk()) << PoolName(i); });
  }
  // As the agent does, for `duration`.
  void CallStatuses(base::Duration duration) {
    const base::MonoTime until = clock_.Now() + duration;
    InThreads(kPools, [this, until](std::size_t i) {
      while (clock_.Now() < until) {
        const base::MonoTime begun = clock_.Now();
        const auto status = process_.Status(Policy(i));
        EXPECT_THAT(status, IsOk()) << PoolName(i);
        if (!status.ok()) return;
        EXPECT_TRUE(status->meta.contains("harvester.lost")) << PoolName(i) << " was not read";
        EXPECT_LE(clock_.Now() - begun, seconds(1)) << PoolName(i);
        calls_.context().Sleep(kTick).IgnoreError();
      }
    });
  }
  // Leases that are held, and the age of the oldest renewal.
  std::pair<std::size_t, base::Duration> HeldLeases() const {
    std::size_t held = 0;
    base::Duration oldest{};
    for (const json& lease : cluster_.Leases()) {
      if (HolderOf(lease).empty()) continue;
      ++held;
      const auto renewed = base::ParseRfc3339(lease["spec"]["renewTime"].get<std::string>());
      if (renewed.ok()) oldest = std::max(oldest, clock_.WallNow() - *renewed);
    }
    return {held, oldest};
  }

  support::ThreadedClock clock_;
  support::PassingTime passing_{clock_, milliseconds(50)};  // until the process has ended, too
  const runtime::CancelSource calls_{runtime::Context::Background(clock_)};
  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_{clock_, *random_, Latency()};
  NomadLists lists_;
  const std::shared_ptr<support::RecordingSink> log_ = std::make_shared<support::RecordingSink>();
  ThreadedProcess process_{clock_,
                           {.name = "test_1",
                            .transports =
                                [this](const auto&) {
                                  http::RawTransports transports = cluster_.Transports();
                                  transports.nomad =
                                      std::make_shared<CountingLists>(lists_, transports.nomad);
                                  return transports;
                                },
                            .sink = log_}};
};

TEST_F(Capacity, L8_sixty_pools_that_drain_leave_room_for_every_status_lease_and_new_scale) {
  BeginDrains();
  // The background takes up the drains.
  CallStatuses(kTick);
  std::jthread statuses([&] { CallStatuses(seconds(30)); });
  for (int observation = 0; observation < 10; ++observation) {
    calls_.context().Sleep(seconds(2)).IgnoreError();
    const auto [held, oldest] = HeldLeases();
    EXPECT_EQ(held, 0U) << "none is held while a drain is only waited for (S5)";
    EXPECT_LE(oldest, seconds(5));
  }
  const base::MonoTime begun = clock_.Now();
  std::optional<base::Duration> began_after;
  base::Mutex mutex;
  cluster_.SetObserver([&](const simulator::Event& event) {
    if (event.kind != simulator::EventKind::kVmCreated) return;
    const base::MutexLock lock(mutex);
    began_after = clock_.Now() - begun;
  });
  EXPECT_THAT(Scale(kPools, 1), IsOk()) << "a pool that does not drain";
  ASSERT_TRUE(began_after.has_value());
  EXPECT_LE(*began_after, seconds(1)) << "preflight included";
  cluster_.SetObserver(nullptr);
  statuses.join();
  EXPECT_EQ(lists_.blocking_nodes.most(), 1);
  EXPECT_LE(lists_.allocations.most(), 1);
  EXPECT_EQ(log_->Count("Lost the pool's Lease"), 0U);
}

// On sockets, in real time.
class CapacityOnSockets : public testing::Test {
 protected:
  static simulator::Options Fast() {
    simulator::Options options;
    options.boot_time = options.join_time = options.shutdown_time = milliseconds(5);
    options.reaction_time = milliseconds(1);
    return options;
  }
  void SetUp() override {
    MakeNamespaces(cluster_);
    ASSERT_THAT(server_.Start(), IsOk());
    process_ = std::make_unique<ThreadedProcess>(
        *clock_, ThreadedProcess::Options{.name = "test_1",
                                          .transports = scaling::MakeCurlTransports,
                                          .sink = std::make_shared<support::RecordingSink>(),
                                          .config = {{"harvester_url", server_.harvester_url()},
                                                     {"nomad_address", server_.nomad_url()}}});
  }
  // What becomes of each one depends on the machine: in real time a Lease may be lost.
  std::vector<std::jthread> ScaleAll(std::int64_t count) {
    return InThreads(kPools, [this, count](std::size_t i) {
      process_->Scale(context_, count, Policy(i)).IgnoreError();
    });
  }
  // The agent's calls in all its threads; each pool once.
  void CallStatuses() {
    InThreads(kPools, [this](std::size_t i) {
      EXPECT_THAT(process_->Status(Policy(i)), IsOk()) << PoolName(i);
    });
  }

  const std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  const runtime::Context context_ = runtime::Context::Background(*clock_);
  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_{*clock_, *random_, Fast()};
  simulator::SimulatorServer server_{cluster_, *clock_};
  std::unique_ptr<ThreadedProcess> process_;
};

TEST_F(CapacityOnSockets, L8_sixty_pools_stay_below_nomads_limit_of_connections) {
  while (cluster_.Nodes().size() < kPools) ScaleAll(1);
  for (const json& node : cluster_.Nodes()) cluster_.HangDrain(base::GetString(node, "ID"));
  const auto draining = [this] {
    std::size_t count = 0;
    for (const json& node : cluster_.Nodes()) count += IsDraining(node) ? 1 : 0;
    return count;
  };
  // Those that did not come through are called again; a pool with an open Scale refuses at once.
  std::vector<std::vector<std::jthread>> removals;
  while (draining() < kPools) {
    removals.push_back(ScaleAll(0));
    for (int i = 0; i < 200 && draining() < kPools; ++i) {
      ASSERT_THAT(context_.Sleep(milliseconds(50)), IsOk());
    }
  }
  for (int tick = 0; tick < 3; ++tick) CallStatuses();
  for (const json& node : cluster_.Nodes()) cluster_.HangDrain(base::GetString(node, "ID"), false);
  while (!cluster_.Vms().empty()) {
    CallStatuses();
    ASSERT_THAT(context_.Sleep(seconds(1)), IsOk());
  }
  EXPECT_LT(server_.MostRequests(simulator::System::kNomad), kNomadConnections);
  EXPECT_GT(server_.MostRequests(simulator::System::kNomad), 1);
}

}  // namespace
}  // namespace nomad_harvester::scenario
