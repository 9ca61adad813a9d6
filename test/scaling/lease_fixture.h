// SPDX-License-Identifier: Apache-2.0
// Processes that compete for the Lease of pool default/web, with one API server and one clock.
#ifndef NOMAD_HARVESTER_TEST_SCALING_LEASE_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_SCALING_LEASE_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/http/retry.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/simulator/cluster.h"

#include "nlohmann/json.hpp"
#include "simulator/request_script.h"
#include "support/fake_clock.h"
#include "support/forwarding_clock.h"
#include "support/recording_sink.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::scaling {

using simulator::Fault;

// The API server's clock: it advances with the processes', but is never set wrong.
class ServerClock final : public support::ForwardingClock {
 public:
  explicit ServerClock(support::FakeClock& clock)
      : ForwardingClock(clock), epoch_(clock.WallNow() - clock.Now().time_since_epoch()) {}
  base::WallTime WallNow() const override { return epoch_ + Now().time_since_epoch(); }

 private:
  const base::WallTime epoch_;
};

class LeaseFixture : public testing::Test {
 protected:
  // A process, including the retries of its real transport.
  std::unique_ptr<PoolLease> Process(const std::string& holder = "me") {
    const http::RetryOptions retry{.max_attempts = 2, .backoff_base = std::chrono::milliseconds(1)};
    auto client = std::make_shared<const kube::KubeClient>(http::WithRetry(
        cluster_.HarvesterTransport(holder), retry, support::MakeSeededRandom(1), log::Logger()));
    return std::make_unique<PoolLease>(client, PoolKey{.ns = "default", .pool = "web"}, clock_,
                                       PoolLease::Options{.holder = holder},
                                       log::Logger(sink_, log::Level::kDebug));
  }
  absl::Status Acquire(PoolLease& lease, LeaseUser user = LeaseUser::kScale) {
    return lease.Acquire(context_, user, [this] { ++lost_; });
  }
  // The duration of a call by the clock, rounded to a tenth of a second: retries wait for
  // milliseconds.
  template <typename Call>
  base::Duration Taken(Call call) {
    const base::MonoTime start = clock_.Now();
    call();
    return std::chrono::floor<std::chrono::duration<std::int64_t, std::deci>>(clock_.Now() - start);
  }
  std::size_t Warnings() const { return sink_->Count("", log::Level::kWarn); }

  base::WallTime ServerNow() const { return server_clock_.WallNow(); }
  // The pool's Lease as stored; null if there is none.
  nlohmann::json Object() const {
    const std::vector<nlohmann::json> leases = cluster_.Leases();
    return leases.empty() ? nlohmann::json() : leases.front();
  }
  kube::Lease Lease() const {
    return kube::ParseLease({.object = Object(), .server_time = ServerNow()});
  }
  // Writes the Lease as another process would.
  void Hold(const std::string& holder, base::WallTime renewed) {
    Change({{"spec",
             {{"holderIdentity", holder}, {"renewTime", base::FormatRfc3339Micros(renewed)}}}});
  }
  void Annotate(const std::string& key, const std::string& value) {
    Change({{"metadata", {{"annotations", {{key, value}}}}}});
  }
  void Change(const nlohmann::json& patch) {
    nlohmann::json object = Object();
    if (object.is_null()) {
      object = {{"apiVersion", "coordination.k8s.io/v1"},
                {"kind", "Lease"},
                {"metadata", {{"namespace", "default"}, {"name", harvester::LeaseName("web")}}}};
    }
    object.merge_patch(patch);
    EXPECT_TRUE(cluster_.PutObject(object));
  }
  void Remove() { EXPECT_TRUE(cluster_.DeleteObject(Object())); }

  support::FakeClock clock_;
  ServerClock server_clock_{clock_};
  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_{server_clock_, *random_};
  simulator::RequestScript script_{cluster_};
  const std::shared_ptr<support::RecordingSink> sink_ = std::make_shared<support::RecordingSink>();
  const runtime::Context context_ = runtime::Context::Background(clock_);
  int lost_ = 0;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_TEST_SCALING_LEASE_FIXTURE_H_
