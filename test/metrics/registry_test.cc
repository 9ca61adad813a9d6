// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/metrics/registry.h"

#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"

namespace nomad_harvester::metrics {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricTable, each_metric_has_its_row_at_its_place_and_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < MetricTable().size(); ++i) {
    const MetricRow& row = MetricTable()[i];
    EXPECT_EQ(static_cast<std::size_t>(row.metric), i) << row.name;
    EXPECT_TRUE(row.name.starts_with("nomad_harvester_")) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.help.ends_with('.')) << row.name;
    EXPECT_EQ(row.type == Type::kHistogram, !row.buckets.empty()) << row.name;
    EXPECT_EQ(row.type == Type::kCounter, row.name.ends_with("_total")) << row.name;
  }
}

TEST(Registry, shows_what_it_was_told_in_the_format_of_prometheus) {
  const std::shared_ptr<Registry> registry = MakeRegistry({.version = "1.2.3", .commit = "abc"});
  registry->Set(Metric::kVms, {"default/web", "joined"}, 3);
  registry->Add(Metric::kVmCreated, {"default/web", "scale_out"}, 2);
  registry->Add(Metric::kVmCreated, {"default/web", "scale_out"}, 1);
  registry->Observe(Metric::kApiRequest, {"nomad", "get", "200"}, milliseconds(30));
  const std::string text = registry->Text();
  EXPECT_THAT(text, HasSubstr("# TYPE nomad_harvester_vms gauge\n"));
  EXPECT_THAT(text, HasSubstr("nomad_harvester_vms{pool=\"default/web\",state=\"joined\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE nomad_harvester_vm_created_total counter\n"));
  EXPECT_THAT(text, HasSubstr("nomad_harvester_vm_created_total{pool=\"default/web\",reason="
                              "\"scale_out\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("nomad_harvester_build_info{commit=\"abc\",version=\"1.2.3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{api=\"nomad\",code=\"200\",verb=\"get\",le=\"0.025\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("{api=\"nomad\",code=\"200\",verb=\"get\",le=\"0.05\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("nomad_harvester_api_request_seconds_sum{api=\"nomad\","
                              "code=\"200\",verb=\"get\"} 0.03"));
}

TEST(Registry, what_was_set_last_counts) {
  const std::shared_ptr<Registry> registry = MakeRegistry({});
  registry->Set(Metric::kDrifted, {"default/web"}, 3);
  registry->Set(Metric::kDrifted, {"default/web"}, 1);
  EXPECT_THAT(registry->Text(), HasSubstr("nomad_harvester_drifted{pool=\"default/web\"} 1\n"));
}

TEST(Registry, what_has_not_happened_is_there_once_it_was_shown) {
  const std::shared_ptr<Registry> registry = MakeRegistry({});
  EXPECT_THAT(registry->Text(), Not(HasSubstr("errors_total")));
  registry->Add(Metric::kErrors, {"config"}, 0);
  EXPECT_THAT(registry->Text(), HasSubstr("nomad_harvester_errors_total{class=\"config\"} 0\n"));
}

TEST(Registry, a_clock_that_goes_back_makes_no_negative_duration) {
  const std::shared_ptr<Registry> registry = MakeRegistry({});
  registry->Observe(Metric::kDrain, {"default/web"}, -milliseconds(1500));
  EXPECT_THAT(registry->Text(), HasSubstr("drain_seconds_sum{pool=\"default/web\"} 0\n"));
}

TEST(Registry, P3_no_secret_leaves_it) {
  const std::shared_ptr<Registry> registry = MakeRegistry({});
  const base::Secret token("hunter2-hunter2");
  registry->Set(Metric::kDrifted, {"default/hunter2-hunter2"}, 1);
  EXPECT_THAT(registry->Text(), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace nomad_harvester::metrics
