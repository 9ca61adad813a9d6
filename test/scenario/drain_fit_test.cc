// SPDX-License-Identifier: Apache-2.0
//
// Scale-ins of pools with work, in the simulator: what scale_in_fit promises of blocked
// evaluations.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/context.h"

#include "harness.h"
#include "support/seeded_random.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSubsetOf;

constexpr std::uint64_t kFirstSeed = 1;
constexpr int kScaleIns = 200;
constexpr int kPerPool = 4;

// The jobs of which something waits.
std::set<std::string> WaitingJobs(Harness& h) {
  const nomad::NomadClient client(h.cluster.NomadTransport("observer"), {});
  const auto blocked = client.ListBlockedEvaluations(runtime::Context::Background(h.clock));
  EXPECT_TRUE(blocked.ok()) << blocked.status();
  std::set<std::string> jobs;
  if (!blocked.ok()) return jobs;
  for (const nomad::BlockedEvaluation& each : blocked->value) jobs.insert(each.job);
  return jobs;
}

// A pool whose nodes have 4000 MHz and 4096 MiB, and random work on it, of which some may wait.
void Fill(Harness& h, runtime::Random& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.Next() % n); };
  ASSERT_TRUE(h.Scale(4 + below(5)).ok());
  h.WaitUntilReady();
  const std::int64_t jobs = 2 + below(6);
  for (std::int64_t i = 0; i < jobs; ++i) {
    simulator::JobSpec job;
    job.id = "job-" + std::to_string(i);
    job.node_class = "web";
    job.count = static_cast<int>(1 + below(5));
    job.cpu = 100 * (1 + below(20));
    job.memory_mb = 128 * (1 + below(12));
    h.cluster.RunJob(job);
  }
  h.clock.Advance(seconds(10));
}

TEST(DrainFit, C19_no_scale_in_that_requires_a_place_leaves_a_blocked_evaluation) {
  int tried = 0;
  int accepted = 0;
  for (std::uint64_t seed = kFirstSeed; tried < kScaleIns; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto random = support::MakeSeededRandom(seed);
    Harness h;
    h.policy["scale_in_fit"] = "require";
    if (seed % 3 == 0) h.policy["node_selector_strategy"] = "oldest_create_index";
    Fill(h, *random);
    for (int i = 0; i < kPerPool; ++i, ++tried) {
      const std::set<std::string> before = WaitingJobs(h);
      const auto status = h.Status();
      ASSERT_TRUE(status.ok()) << status.status();
      const std::int64_t count = status->count;
      if (count == 0) continue;
      const std::int64_t wanted = 1 + static_cast<std::int64_t>(random->Next() % 2);
      const absl::Status scaled = h.Accept(std::max<std::int64_t>(0, count - wanted));
      if (scaled.ok()) {
        ++accepted;
      } else {
        EXPECT_EQ(scaled.code(), absl::StatusCode::kFailedPrecondition) << scaled;
        EXPECT_THAT(scaled.ToString(), HasSubstr("its work has no other place: default/job-"));
      }
      h.Settle();
      ASSERT_THAT(WaitingJobs(h), IsSubsetOf(before)) << h.Transcript();
      const auto rest = h.Status();
      ASSERT_TRUE(rest.ok()) << rest.status();
      EXPECT_EQ(rest->count < count, scaled.ok());
    }
  }
  std::printf("[ fit      ] %d scale-ins from seed %d: %d accepted\n", tried,
              static_cast<int>(kFirstSeed), accepted);
  EXPECT_GE(accepted, kScaleIns / 4);
  EXPECT_LE(accepted, kScaleIns * 19 / 20) << "some pools are full";
}

TEST(DrainFit, C19_by_default_a_full_pool_shrinks_and_the_log_says_what_may_wait) {
  Harness h;
  h.Reach(2);
  simulator::JobSpec job;
  job.id = "api";
  job.count = 2;
  job.cpu = 3000;
  h.cluster.RunJob(job);
  h.clock.Advance(seconds(10));
  ASSERT_TRUE(WaitingJobs(h).empty());
  EXPECT_TRUE(h.Scale(1).ok());
  EXPECT_THAT(h.log->Text(),
              HasSubstr("may wait: default/api.group: 1 allocation (3000 MHz, 128 MiB)"));
  EXPECT_EQ(WaitingJobs(h), std::set<std::string>{"api"});
}

}  // namespace
}  // namespace nomad_harvester::scenario
