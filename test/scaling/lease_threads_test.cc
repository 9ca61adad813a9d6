// SPDX-License-Identifier: Apache-2.0
//
// Leases whose renewals run in threads, against an API server that takes its time.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/scaling/clients.h"
#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/simulator/cluster.h"

#include "support/scripted_transport.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"
#include "support/threaded_clock.h"

namespace nomad_harvester::scaling {
namespace {

using runtime::Context;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::ScriptedTransport;
using support::ThreadedClock;

class LeaseThreads : public testing::Test {
 protected:
  LeaseThreads() {
    transport_->Otherwise([this](const Context& context,
                                 const http::HttpRequest& request) -> ScriptedTransport::Outcome {
      const int open = ++in_flight_;
      for (int most = most_in_flight_; open > most;) {
        if (most_in_flight_.compare_exchange_weak(most, open)) break;
      }
      const absl::Status slept =
          delay_.load() == base::Duration::zero() ? absl::OkStatus() : context.Sleep(delay_);
      --in_flight_;
      if (!slept.ok()) return slept;
      return server_->Send(context, request);
    });
    http::RawTransports transports;
    transports.harvester = transport_;
    transports.nomad = cluster_.NomadTransport();
    config::PluginConfig config;
    config.max_concurrency = 1;  // which renewals must not wait for
    clients_ = MakeClients(std::make_shared<const config::PluginConfig>(config), transports,
                           std::shared_ptr(support::MakeSeededRandom(1)), log::Logger());
  }
  std::unique_ptr<PoolLease> Acquired(const std::string& pool) {
    auto lease =
        std::make_unique<PoolLease>(clients_.kube_urgent, PoolKey{.ns = "default", .pool = pool},
                                    clock_, PoolLease::Options{.holder = "me"}, log::Logger());
    EXPECT_THAT(lease->Acquire(Context::Background(clock_), LeaseUser::kScale, [this] { ++lost_; }),
                IsOk());
    return lease;
  }

  ThreadedClock clock_;
  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_{clock_, *random_};
  const std::shared_ptr<http::HttpTransport> server_ = cluster_.HarvesterTransport();
  const std::shared_ptr<ScriptedTransport> transport_ = std::make_shared<ScriptedTransport>();
  std::atomic<base::Duration> delay_ = base::Duration::zero();
  std::atomic<int> in_flight_ = 0;
  std::atomic<int> most_in_flight_ = 0;
  std::atomic<int> lost_ = 0;
  Clients clients_;
};

TEST_F(LeaseThreads, L8_sixty_pools_stay_renewed_while_every_answer_takes_a_second) {
  constexpr std::size_t kPools = 60;
  std::vector<std::unique_ptr<PoolLease>> leases;
  for (std::size_t i = 0; i < kPools; ++i) {
    leases.push_back(Acquired("pool-" + std::to_string(i)));
    clock_.AdvanceWhenAllSleep(i + 1, milliseconds(50));
  }
  clock_.WaitForSleepers(kPools);
  delay_ = seconds(1);
  for (base::Duration passed{}; passed < minutes(1); passed += milliseconds(500)) {
    clock_.AdvanceWhenAllSleep(kPools, milliseconds(500));
    for (const auto& lease : leases) {
      ASSERT_TRUE(lease->held());
      ASSERT_THAT(lease->permit()->Check(), IsOk());
    }
  }
  EXPECT_EQ(lost_, 0);
  EXPECT_GE(most_in_flight_, 15) << "one after the other, sixty answers take a minute";
}

TEST_F(LeaseThreads, L9_no_end_of_a_hold_waits_for_a_renewal_in_flight) {
  using End = std::function<void(std::unique_ptr<PoolLease>&)>;
  const std::vector<End> ends = {[](std::unique_ptr<PoolLease>& lease) { lease->StopRenewal(); },
                                 [this](std::unique_ptr<PoolLease>& lease) {
                                   delay_ = base::Duration::zero();
                                   lease->Release(Context::Background(clock_));
                                 },
                                 [](std::unique_ptr<PoolLease>& lease) { lease.reset(); }};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    delay_ = base::Duration::zero();
    std::unique_ptr<PoolLease> lease = Acquired("pool-" + std::to_string(i));
    const std::shared_ptr<const runtime::WritePermit> permit = lease->permit();
    delay_ = seconds(5);
    clock_.AdvanceWhenAllSleep(1, kLeaseRenewal);
    while (in_flight_ == 0) std::this_thread::yield();
    clock_.WaitForSleepers(1);
    ends[i](lease);  // time stands still: a wait for the reply would have no end
    EXPECT_EQ(in_flight_, 0);
    EXPECT_FALSE(permit->Check().ok());
  }
  EXPECT_EQ(lost_, 0);
}

}  // namespace
}  // namespace nomad_harvester::scaling
