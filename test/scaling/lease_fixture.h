// Processes that want the Lease of pool default/web, one API server and one clock.
#ifndef NOMAD_HARVESTER_TEST_SCALING_LEASE_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_SCALING_LEASE_FIXTURE_H_

#include <algorithm>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "nomad_harvester/http/retry.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/scaling/pool_lease.h"

#include "lease_api.h"
#include "support/fake_clock.h"
#include "support/recording_sink.h"
#include "support/status_matchers.h"

namespace nomad_harvester::scaling {

class LeaseFixture : public testing::Test {
 protected:
  // A process, the retries of its real transport included.
  std::unique_ptr<PoolLease> Process(const std::string& holder = "me", bool enabled = true) {
    const http::RetryOptions retry{.max_attempts = 2, .backoff_base = std::chrono::milliseconds(1)};
    auto client = std::make_shared<const kube::KubeClient>(
        http::WithRetry(api_, retry, runtime::MakeSeededRandom(1), log::Logger()));
    return std::make_unique<PoolLease>(client, PoolKey{.ns = "default", .pool = "web"}, clock_,
                                       PoolLease::Options{.enabled = enabled, .holder = holder},
                                       log::Logger(sink_, log::Level::kDebug));
  }
  absl::Status Acquire(PoolLease& lease, LeaseUser user = LeaseUser::kScale) {
    return lease.Acquire(context_, user, [this] { ++lost_; });
  }
  // What a call takes by the clock, to a tenth of a second: retries wait for milliseconds.
  template <typename Call>
  base::Duration Taken(Call call) {
    const base::MonoTime start = clock_.Now();
    call();
    return std::chrono::floor<std::chrono::duration<std::int64_t, std::deci>>(clock_.Now() - start);
  }
  std::size_t Warnings() const {
    const auto records = sink_->records();
    return static_cast<std::size_t>(
        std::count_if(records.begin(), records.end(),
                      [](const log::Record& record) { return record.level == log::Level::kWarn; }));
  }

  support::FakeClock clock_;
  const std::shared_ptr<LeaseApi> api_ = std::make_shared<LeaseApi>(clock_);
  const std::shared_ptr<support::RecordingSink> sink_ = std::make_shared<support::RecordingSink>();
  const runtime::Context context_ = runtime::Context::Background(clock_);
  int lost_ = 0;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_TEST_SCALING_LEASE_FIXTURE_H_
