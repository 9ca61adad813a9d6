// SPDX-License-Identifier: Apache-2.0
//
// What is counted of a pool (T2). For a new metric copy the case of its kind: a gauge, a counter or
// a histogram. In a whole Scale: test/scenario/metrics_test.cc.
#include "execution/pool_metrics.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/metrics/registry.h"

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Counted {
  std::string Text() const { return registry->Text(); }

  const std::shared_ptr<metrics::Registry> registry = metrics::MakeRegistry({});
  const PoolMetrics metrics{registry.get(), {.ns = "default", .pool = "web"}};
};

TEST(PoolMetrics, T2_a_gauge_has_its_last_value) {
  const Counted pool;
  pool.metrics.HasRoom(7);
  pool.metrics.HasRoom(3);
  EXPECT_THAT(pool.Text(), HasSubstr("nomad_harvester_room{pool=\"default/web\"} 3\n"));
}

TEST(PoolMetrics, T2_a_counter_is_0_after_the_first_status_and_then_counts) {
  const Counted pool;
  const std::string series =
      "nomad_harvester_vm_created_total{pool=\"default/web\",reason=\"scale_out\"} ";
  pool.metrics.Reported({}, {}, 0, kNow);
  EXPECT_THAT(pool.Text(), HasSubstr(series + "0\n"));
  pool.metrics.Created(/*resumed=*/false);
  pool.metrics.Created(/*resumed=*/false);
  EXPECT_THAT(pool.Text(), HasSubstr(series + "2\n"));
}

TEST(PoolMetrics, T2_a_vm_with_a_name_that_was_left_over_counts_as_resumed) {
  const Counted pool;
  pool.metrics.Created(/*resumed=*/true);
  EXPECT_THAT(pool.Text(), HasSubstr("nomad_harvester_vm_created_total{pool=\"default/web\","
                                     "reason=\"resumed\"} 1\n"));
  EXPECT_THAT(pool.Text(), Not(HasSubstr("reason=\"scale_out\"")));
}

TEST(PoolMetrics, T2_a_histogram_adds_up_what_it_observed) {
  const Counted pool;
  Step deletion;
  deletion.kind = StepKind::kDelete;
  deletion.row = Row::kMarkedIdle;
  pool.metrics.Done(deletion, Vm("a").Joined().Marked().View(), kNow);  // marked a minute ago
  EXPECT_THAT(pool.Text(),
              HasSubstr("nomad_harvester_drain_seconds_sum{pool=\"default/web\"} 60\n"));
  EXPECT_THAT(pool.Text(),
              HasSubstr("nomad_harvester_drain_seconds_count{pool=\"default/web\"} 1\n"));
}

TEST(PoolMetrics, T2_a_deletion_without_a_drain_counts_as_none) {
  const Counted pool;
  Step deletion;
  deletion.kind = StepKind::kDelete;
  deletion.row = Row::kMarkedNeverJoined;
  pool.metrics.Done(deletion, Vm("a").Marked().ForBeingBroken().View(), kNow);
  EXPECT_THAT(pool.Text(), HasSubstr("reason=\"broken\"} 1\n"));
  EXPECT_THAT(pool.Text(), Not(HasSubstr("nomad_harvester_drain_seconds_count")));
}

}  // namespace
}  // namespace nomad_harvester::scaling
