// SPDX-License-Identifier: Apache-2.0
//
// What Prometheus sees of a pool that grows and shrinks (T2).

#include <map>
#include <memory>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/metrics/registry.h"

#include "harness.h"
#include "support/client_behaviours.h"
#include "support/hosts.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;
using ::testing::Pair;

constexpr char kPrefix[] = "nomad_harvester_";

// A harness whose process tells a registry.
struct Watched {
  Watched() {
    h.metrics_sink = registry;
    h.Restart();
  }
  // "vms{pool=\"…\",state=\"…\"}" and its value, without the common prefix.
  std::map<std::string, double> Samples() const {
    std::map<std::string, double> samples;
    std::istringstream lines(registry->Text());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('#')) continue;
      EXPECT_TRUE(line.starts_with(kPrefix)) << line;
      const std::size_t space = line.rfind(' ');
      samples[line.substr(sizeof(kPrefix) - 1, space - sizeof(kPrefix) + 1)] =
          std::stod(line.substr(space + 1));
    }
    return samples;
  }
  double Sum(const std::string& name) const {
    double sum = 0;
    for (const auto& [series, value] : Samples()) {
      if (series.starts_with(name + "{")) sum += value;
    }
    return sum;
  }

  const std::shared_ptr<metrics::Registry> registry =
      metrics::MakeRegistry({.version = "1.2.3", .commit = "abc"});
  Harness h;
};

TEST(Metrics, S3_count_the_calls_whose_policy_names_a_file_that_is_missing) {
  Watched w;
  w.h.policy.erase("user_data");
  w.h.policy["user_data_file"] = "/nonexistent/user-data";
  ASSERT_TRUE(w.h.Status().ok());
  ASSERT_TRUE(w.h.Status().ok());
  EXPECT_THAT(w.Samples(), Contains(Pair(R"(errors_total{class="missing_file"})", 2)));
}

TEST(Metrics, T2_tell_of_a_pool_that_grows_and_shrinks) {
  Watched w;
  w.h.Reach(2);
  w.h.RunJob(2);
  w.h.Reach(1);
  const auto samples = w.Samples();
  const std::map<std::string, double> expected = {
      {R"(build_info{commit="abc",version="1.2.3"})", 1},
      {R"(vms{pool="nomad/web",state="ready"})", 1},
      {R"(vms{pool="nomad/web",state="draining"})", 0},
      {R"(vms{pool="nomad/web",state="broken"})", 0},
      {R"(vm_created_total{pool="nomad/web",reason="scale_out"})", 2},
      {R"(vm_created_total{pool="nomad/web",reason="resumed"})", 0},
      {R"(vm_terminated_total{pool="nomad/web",reason="scale-in"})", 1},
      {R"(vm_terminated_total{pool="nomad/web",reason="broken"})", 0},
      {R"(vm_start_seconds_count{phase="clone",pool="nomad/web"})", 2},
      {R"(vm_start_seconds_count{phase="boot",pool="nomad/web"})", 2},
      {R"(vm_start_seconds_count{phase="join",pool="nomad/web"})", 2},
      {R"(drain_seconds_count{pool="nomad/web"})", 1},
      {R"(vm_lifetime_seconds_count{pool="nomad/web"})", 1},
      {R"(scale_seconds_count{direction="out",outcome="ok",pool="nomad/web"})", 1},
      {R"(scale_seconds_count{direction="in",outcome="ok",pool="nomad/web"})", 1},
      {R"(backoff_seconds{cause="create",pool="nomad/web"})", 0},
      {R"(backoff_seconds{cause="join",pool="nomad/web"})", 0},
      {R"(drifted{pool="nomad/web"})", 0},
      {R"(leftovers{pool="nomad/web"})", 0},
      {R"(protected{by="annotation",pool="nomad/web"})", 0},
      {R"(protected{by="host_volume",pool="nomad/web"})", 0},
      {R"(lease_held{pool="nomad/web"})", 0},
      {R"(api_retries_total{api="harvester"})", 0},
      {R"(api_retries_total{api="nomad"})", 0},
      {R"(errors_total{class="step_failed"})", 0},
  };
  for (const auto& [series, value] : expected) EXPECT_THAT(samples, Contains(Pair(series, value)));
  EXPECT_THAT(samples, Contains(Pair(R"(drain_seconds_sum{pool="nomad/web"})", Gt(0))));
  EXPECT_THAT(samples, Contains(Pair(R"(vm_lifetime_seconds_sum{pool="nomad/web"})", Gt(10))));
  EXPECT_THAT(samples, Contains(::testing::Key(HasSubstr(
                           R"(api_request_seconds_count{api="nomad",code="200",verb="watch")"))));
  for (const metrics::MetricRow& row : metrics::MetricTable()) {
    if (row.metric >= metrics::Metric::kNodesNeeded) break;  // the APM's
    EXPECT_THAT(w.registry->Text(), HasSubstr("# TYPE " + std::string(row.name) + " "));
  }
}

TEST(Metrics, T2_tell_the_vm_of_a_name_that_was_left_over_from_one_of_a_new_name) {
  Watched w;
  w.h.ScaleAndDieAt(1, "create", "secrets", false);
  w.h.Restart();
  w.h.Converge(2);
  for (const char* const reason : {"resumed", "scale_out"}) {
    EXPECT_THAT(w.Samples(), Contains(Pair("vm_created_total{pool=\"nomad/web\",reason=\"" +
                                               std::string(reason) + "\"}",
                                           1)));
  }
}

// By the simulated cluster's own times: the phases of a start add up to it.
TEST(Metrics, T2_the_phases_of_a_start_are_those_of_the_cluster) {
  Watched w;
  const base::MonoTime begin = w.h.clock.Now();
  ASSERT_TRUE(w.h.Scale(1).ok());
  const std::chrono::duration<double> took = w.h.clock.Now() - begin;
  const double phases = w.Sum("vm_start_seconds_sum");
  EXPECT_GT(phases, 0);
  EXPECT_LE(phases, took.count() + 1) << "times in Kubernetes have whole seconds";
  EXPECT_THAT(w.Samples(),
              Contains(Pair(R"(vm_start_seconds_sum{phase="boot",pool="nomad/web"})", Gt(0))));
}

TEST(Metrics, T2_a_node_that_is_ready_late_is_a_phase_of_its_own) {
  Watched w;
  w.h.RequireDocker();
  w.h.cluster.SetNextClients(1, support::DockerAfter(minutes(4)));
  ASSERT_TRUE(w.h.Accept(1).ok());
  w.h.WaitUntilReady();
  const auto samples = w.Samples();
  EXPECT_THAT(samples,
              Contains(Pair(R"(vm_start_seconds_count{phase="ready",pool="nomad/web"})", 1)));
  EXPECT_THAT(samples, Contains(Pair(R"(vm_start_seconds_sum{phase="ready",pool="nomad/web"})",
                                     AllOf(Gt(180), Lt(300)))));
}

TEST(Metrics, T2_each_attempt_of_a_request_counts_and_none_is_made_for_them_but_that_of_the_room) {
  const auto counts = [](const Harness& h) {
    std::map<std::string, int> requests = h.cluster.RequestCounts();
    requests.erase("harvester list nodes");
    requests.erase("harvester list pods");
    return requests;
  };
  Harness without;
  ASSERT_TRUE(without.Scale(2).ok());
  without.Tick(minutes(1));
  Watched w;
  ASSERT_TRUE(w.h.Scale(2).ok());
  w.h.Tick(minutes(1));
  EXPECT_EQ(w.Sum("api_request_seconds_count"), w.h.cluster.RequestCount());
  EXPECT_EQ(counts(w.h), counts(without));
}

// A VM of the pool asks for 3.1 GiB, and the two VMs that others run there for 0.9 GiB.
TEST(Metrics, T2_the_room_on_the_hosts_is_listed_once_a_minute_for_all_pools) {
  Watched w;
  ASSERT_TRUE(w.h.cluster.PutObject(support::HostWith("harvester-1", "17Gi")));
  ASSERT_TRUE(w.h.Scale(2).ok());
  w.h.Tick(minutes(1));
  EXPECT_THAT(w.Samples(), Contains(Pair(R"(room{pool="nomad/web"})", 3)));
  w.h.cluster.ResetCounters();
  for (int tick = 0; tick < 60; ++tick) {
    w.h.clock.Advance(seconds(10));
    ASSERT_TRUE(w.h.Status().ok());
    ASSERT_TRUE(w.h.process().Status(PolicyFor("other")).ok());
  }
  for (const char* const list : {"nodes", "pods"}) {
    const int lists = w.h.cluster.RequestCount(System::kHarvester, "list", list);
    EXPECT_GE(lists, 9) << list;
    EXPECT_LE(lists, 11) << list;
  }
  ASSERT_TRUE(w.h.cluster.PutObject(support::HostWith("harvester-1", "64Gi")));
  w.h.Tick(minutes(2));
  EXPECT_THAT(w.Samples(), Contains(Pair(R"(room{pool="nomad/web"})", Gt(10))));
}

TEST(Metrics, T2_a_new_process_learns_from_the_newest_vm_what_one_asks_of_its_host) {
  Watched w;
  ASSERT_TRUE(w.h.cluster.PutObject(support::HostWith("harvester-1", "17Gi")));
  ASSERT_TRUE(w.h.Scale(2).ok());
  const auto registry = metrics::MakeRegistry({.version = "1.2.3", .commit = "abc"});
  w.h.metrics_sink = registry;
  w.h.Restart();
  w.h.Tick(minutes(1));
  EXPECT_THAT(registry->Text(), HasSubstr("nomad_harvester_room{pool=\"nomad/web\"} 3"));
}

TEST(Metrics, T2_without_the_right_the_room_is_unknown_and_asked_for_once_in_ten_minutes) {
  Watched w;
  w.h.cluster.Forbid("list", "pods", /*cluster_wide=*/true);
  ASSERT_TRUE(w.h.Scale(1).ok());
  w.h.cluster.ResetCounters();
  w.h.Tick(minutes(9));
  EXPECT_EQ(w.h.cluster.RequestCount(System::kHarvester, "list", "nodes"), 0);
  EXPECT_THAT(w.registry->Text(), Not(HasSubstr("nomad_harvester_room{")));
}

TEST(Metrics, T2_the_lease_is_held_while_a_scale_acts_and_its_new_vm_is_seen) {
  Watched w;
  double held = 0;
  w.h.OnEachRequest([&](const RequestInfo& request) {
    if (request.verb == "create" && request.resource == "virtualmachines") {
      held = w.Sum("lease_held");
    }
  });
  ASSERT_TRUE(w.h.Scale(1).ok());
  w.h.cluster.SetFaultHook(nullptr);
  EXPECT_EQ(held, 1);
  EXPECT_EQ(w.Sum("lease_held"), 0);
}

TEST(Metrics, T2_a_vm_that_never_joins_is_broken_and_waited_for) {
  Watched w;
  w.h.cluster.NeverJoin(1);
  EXPECT_FALSE(w.h.Scale(1).ok());
  w.h.WaitUntilReady();
  const auto samples = w.Samples();
  EXPECT_THAT(samples,
              Contains(Pair(R"(vm_terminated_total{pool="nomad/web",reason="broken"})", 1)));
  EXPECT_THAT(samples, Contains(Pair(R"(backoff_seconds{cause="join",pool="nomad/web"})",
                                     AllOf(Gt(0), Lt(3600)))));
  EXPECT_THAT(samples,
              Contains(Pair(HasSubstr(R"(scale_seconds_count{direction="out",outcome="ok")"), 1)))
      << "its Scale was accepted";
  EXPECT_EQ(w.Sum("drain_seconds_count"), 0);
  w.h.clock.Advance(hours(3));
  EXPECT_TRUE(w.h.Status().ok());
  EXPECT_EQ(w.Sum("backoff_seconds"), 0) << "it has passed";
}

TEST(Metrics, T2_a_drain_that_is_ended_by_force_has_lasted_too) {
  Watched w;
  w.h.policy["node_drain_deadline"] = "1m";
  w.h.policy["drain_grace"] = "1m";
  ASSERT_TRUE(w.h.Scale(1).ok());
  w.h.cluster.RunJob({.id = "api", .type = "service", .count = 1});
  w.h.clock.Advance(seconds(5));
  w.h.HangDrains();
  ASSERT_TRUE(w.h.Scale(0).ok());
  EXPECT_EQ(w.Sum("drain_seconds_count"), 1);
  EXPECT_GE(w.Sum("drain_seconds_sum"), 60);
}

TEST(Metrics, T2_a_scale_to_the_present_count_has_no_direction) {
  Watched w;
  ASSERT_TRUE(w.h.Scale(1).ok());
  ASSERT_TRUE(w.h.Scale(1).ok());
  EXPECT_THAT(
      w.Samples(),
      Contains(Pair(R"(scale_seconds_count{direction="none",outcome="ok",pool="nomad/web"})", 1)));
}

TEST(Metrics, T2_a_system_that_cannot_be_read_is_an_error_of_its_class) {
  Watched w;
  ASSERT_TRUE(w.h.Scale(1).ok());
  w.h.Inject(Fault::Answer(500, "down"),
             [](const RequestInfo& request) { return request.system == System::kNomad; });
  EXPECT_TRUE(w.h.Status().ok());
  w.h.cluster.SetFaultHook(nullptr);
  EXPECT_GE(w.Samples().at(R"(errors_total{class="nomad_unreadable"})"), 1);
  EXPECT_GE(w.Samples().at(R"(api_retries_total{api="nomad"})"), 1);
  EXPECT_EQ(w.Samples().at(R"(vms{pool="nomad/web",state="ready"})"), 1) << "it is not lost";
}

// Prometheus sees no increase in a series that begins with its first event.
TEST(Metrics, T2_what_has_not_happened_yet_is_there_from_the_first_status_on) {
  Watched w;
  ASSERT_TRUE(w.h.Status().ok());
  const auto samples = w.Samples();
  for (const char* const series :
       {R"(scale_seconds_count{direction="out",outcome="ok",pool="nomad/web"})",
        R"(scale_seconds_count{direction="in",outcome="unavailable",pool="nomad/web"})",
        R"(vm_start_seconds_count{phase="join",pool="nomad/web"})",
        R"(drain_seconds_count{pool="nomad/web"})",
        R"(vm_lifetime_seconds_count{pool="nomad/web"})"}) {
    EXPECT_THAT(samples, Contains(Pair(series, 0)));
  }
}

TEST(Metrics, T2_a_policy_that_is_wrong_is_an_error_and_a_dry_run_is_no_scale) {
  Watched w;
  w.h.policy["dry-run"] = "true";
  EXPECT_TRUE(w.h.Scale(2).ok());
  EXPECT_EQ(w.Sum("scale_seconds_count"), 0);
  w.h.policy["image"] = "";
  EXPECT_FALSE(w.h.Status().ok());
  EXPECT_EQ(w.Samples().at(R"(errors_total{class="policy"})"), 1);
}

TEST(Metrics, R5_vms_that_wait_to_be_replaced_and_a_roll_out_that_has_stopped) {
  Watched w;
  w.h.policy["replace_drifted"] = "rolling";
  w.h.policy["join_timeout"] = "5m";
  ASSERT_TRUE(w.h.Scale(2).ok());
  w.h.Tick(minutes(11));
  const std::string waiting = R"(to_replace{pool="nomad/web"})";
  const std::string stopped = R"(replacement_stopped{pool="nomad/web"})";
  EXPECT_THAT(w.Samples(), AllOf(Contains(Pair(waiting, 0)), Contains(Pair(stopped, 0))));
  w.h.policy["memory_request"] = "24Gi";
  w.h.policy["replacement_window"] = "0 1 * * * 4h";
  w.h.Tick(minutes(20));
  EXPECT_THAT(w.Samples(), AllOf(Contains(Pair(waiting, 2)), Contains(Pair(stopped, 0))));
  w.h.policy.erase("replacement_window");
  w.h.cluster.NeverJoin(1);
  w.h.Tick(minutes(20));
  EXPECT_THAT(w.Samples(), AllOf(Contains(Pair(waiting, 2)), Contains(Pair(stopped, 1))));
  w.h.policy["memory_request"] = "28Gi";
  w.h.Tick(minutes(60));
  EXPECT_THAT(w.Samples(), AllOf(Contains(Pair(waiting, 0)), Contains(Pair(stopped, 0))));
}

TEST(Metrics, C7_a_host_volume_protects_its_vm_unless_the_policy_ignores_it) {
  Watched w;
  ASSERT_TRUE(w.h.Scale(1).ok());
  ASSERT_TRUE(
      w.h.cluster.ReRegister(w.h.NodeOf(w.h.VmNames().at(0)),
                             [](simulator::NodeSpec& node) { node.host_volumes["data"] = "id"; }));
  w.h.WaitUntilReady();
  EXPECT_THAT(w.Samples(), Contains(Pair(R"(protected{by="host_volume",pool="nomad/web"})", 1)));
  w.h.policy["host_volumes"] = "ignore";
  w.h.WaitUntilReady();
  EXPECT_THAT(w.Samples(), Contains(Pair(R"(protected{by="host_volume",pool="nomad/web"})", 0)));
}

TEST(Metrics, P3_the_token_is_in_none) {
  Watched w;
  ASSERT_TRUE(w.h.Scale(1).ok());
  // The pool's name is the one text that comes from outside.
  w.h.policy["node_group_name"] = "hunter2-hunter2";
  const base::Secret token("hunter2-hunter2");
  EXPECT_TRUE(w.h.Status().ok());
  EXPECT_THAT(w.registry->Text(), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace nomad_harvester::scenario
