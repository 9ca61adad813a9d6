// SPDX-License-Identifier: Apache-2.0
// Which of the wanted VMs fit on the hosts, and why the others do not.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/harvester/host_room.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::harvester {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// One VM, in any zone.
std::vector<std::string> Any() { return {""}; }

// 10 CPUs, 32 GiB and 110 pods.
HostRoom Room(const std::string& name, Amounts used = {}) {
  HostRoom room;
  room.host.name = name;
  room.host.allocatable = {{"cpu", "10"}, {"memory", "32Gi"}, {"pods", "110"}};
  room.used = std::move(used);
  return room;
}

VmNeed Need(Amounts amounts = {{kCpu, 200}, {kMemory, 8 * kGiB}, {kPods, 1}}) {
  VmNeed need;
  need.least = amounts;
  need.amounts = std::move(amounts);
  need.pool = "batch";
  return need;
}

std::size_t Fitting(const std::vector<HostRoom>& hosts, const VmNeed& need, std::size_t wanted) {
  std::size_t count = 0;
  for (const bool fits : ForecastRoom(hosts, need, std::vector<std::string>(wanted)).fits) {
    if (fits) ++count;
  }
  return count;
}

TEST(RoomForecast, C2_as_many_fit_as_each_host_holds) {
  const std::vector<HostRoom> hosts = {Room("h1", {{kMemory, 16 * kGiB}}), Room("h2")};
  const RoomForecast forecast = ForecastRoom(hosts, Need(), std::vector<std::string>(7));
  EXPECT_THAT(forecast.fits, ElementsAre(true, true, true, true, true, true, false));
  EXPECT_FALSE(forecast.never);
  EXPECT_EQ(forecast.why, "hosts h1 and h2 have 0 MiB of memory free each, a VM needs 8 GiB");
  EXPECT_THAT(ForecastRoom(hosts, Need(), std::vector<std::string>(6)).why, IsEmpty());
}

TEST(RoomForecast, C2_exactly_what_is_free_fits_and_a_byte_more_does_not) {
  struct Row {
    const char* resource;
    Amounts used;
    Amounts fits;
    Amounts too_much;
  };
  for (const Row& row : std::vector<Row>{
           {"memory", {{kMemory, 2 * kGiB}}, {{kMemory, 30 * kGiB}}, {{kMemory, 30 * kGiB + 1}}},
           {"cpu", {{kCpu, 9999}}, {{kCpu, 1}}, {{kCpu, 2}}},
           {"pods", {{kPods, 109}}, {{kPods, 1}}, {{kPods, 2}}},
           {"x.io/a", {{"x.io/a", 3}}, {{"x.io/a", 1}}, {{"x.io/a", 2}}}}) {
    HostRoom room = Room("h1", row.used);
    room.host.allocatable["x.io/a"] = "4";
    EXPECT_EQ(Fitting({room}, Need(row.fits), 2), 1U) << row.resource;
    EXPECT_EQ(Fitting({room}, Need(row.too_much), 2), 0U) << row.resource;
    EXPECT_FALSE(ForecastRoom({room}, Need(row.too_much), Any()).never) << row.resource;
  }
}

TEST(RoomForecast, C2_a_device_that_a_host_lacks_is_none_and_other_resources_are_unlimited) {
  HostRoom room;
  room.host.name = "h1";
  EXPECT_EQ(Fitting({room}, Need(), 9), 9U);
  room.host.allocatable = {{"cpu", "a lot"}, {"memory", "?"}, {"x.io/b", "?"}};
  EXPECT_EQ(Fitting({room}, Need(), 9), 9U) << "what cannot be read";
  EXPECT_EQ(Fitting({room}, Need({{"x.io/b", 1}}), 1), 1U);
  const RoomForecast forecast = ForecastRoom({room}, Need({{"x.io/a", 1}}), Any());
  EXPECT_TRUE(forecast.never);
  EXPECT_EQ(forecast.why, "host h1 has 0 x.io/a, a VM needs 1");
}

TEST(RoomForecast, C2_never_is_a_vm_that_no_empty_host_holds) {
  VmNeed need = Need();
  need.least[kMemory] = 32 * kGiB;
  need.amounts[kMemory] = 33 * kGiB;
  RoomForecast forecast = ForecastRoom({Room("h1"), Room("h2")}, need, Any());
  EXPECT_FALSE(forecast.never) << "the launcher's overhead is an estimate";
  EXPECT_THAT(forecast.fits, ElementsAre(false));
  ++need.least[kMemory];
  forecast = ForecastRoom({Room("h1"), Room("h2", {{kMemory, kGiB}})}, need, {"", ""});
  EXPECT_TRUE(forecast.never);
  EXPECT_THAT(forecast.fits, ElementsAre(false, false));
  EXPECT_EQ(forecast.why, "hosts h1 and h2 have 32 GiB of memory each, a VM needs 32.1 GiB");
  EXPECT_TRUE(ForecastRoom({Room("h1")}, need, {}).never) << "also if none is wanted now";
  HostRoom larger = Room("h3", {{kMemory, 60 * kGiB}});
  larger.host.allocatable["memory"] = "64Gi";
  EXPECT_FALSE(ForecastRoom({Room("h1"), larger}, need, Any()).never);
}

TEST(RoomForecast, C2_a_host_that_is_cordoned_or_not_ready_takes_none_now) {
  HostRoom cordoned = Room("h1");
  cordoned.host.cordoned = true;
  HostRoom down = Room("h2");
  down.host.ready = false;
  HostRoom silent = Room("h3");
  silent.host.labels["kubevirt.io/schedulable"] = "false";
  const RoomForecast forecast = ForecastRoom({cordoned, down, silent}, Need(), Any());
  EXPECT_THAT(forecast.fits, ElementsAre(false));
  EXPECT_FALSE(forecast.never);
  EXPECT_EQ(forecast.why, "host h1 is cordoned; hosts h2 and h3 are not ready");
  EXPECT_EQ(Fitting({cordoned, down, silent, Room("h4")}, Need(), 9), 4U);
}

TEST(RoomForecast, C2_a_vm_that_tolerates_the_cordon_is_not_kept_away) {
  HostRoom room = Room("h1");
  room.host.cordoned = true;
  room.host.taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
  VmNeed need = Need();
  EXPECT_EQ(Fitting({room}, need, 1), 0U);
  EXPECT_FALSE(ForecastRoom({room}, need, Any()).never);
  need.tolerations = {{.key = "node.kubernetes.io/unschedulable", .op = "Exists"}};
  EXPECT_EQ(Fitting({room}, need, 1), 1U);
}

TEST(RoomForecast, C2_a_taint_keeps_a_vm_away_that_does_not_tolerate_it) {
  const Taint gpu{"gpu", "yes", "NoSchedule"};
  struct Row {
    Taint taint;
    std::vector<Toleration> tolerations;
    bool fits;
  };
  for (const Row& row :
       std::vector<Row>{{gpu, {}, false},
                        {{"gpu", "yes", "NoExecute"}, {}, false},
                        {{"gpu", "yes", "PreferNoSchedule"}, {}, true},
                        {gpu, {{.key = "gpu", .value = "yes"}}, true},
                        {gpu, {{.key = "gpu", .op = "Equal", .value = "no"}}, false},
                        {gpu, {{.key = "gpu", .op = "Exists"}}, true},
                        {gpu, {{.key = "other", .op = "Exists"}}, false},
                        {gpu, {{.op = "Exists"}}, true},
                        {gpu, {{.op = "Exists", .effect = "NoExecute"}}, false},
                        {gpu, {{.key = "x"}, {.op = "Exists", .effect = "NoSchedule"}}, true}}) {
    HostRoom room = Room("h1");
    room.host.taints = {row.taint};
    VmNeed need = Need();
    need.tolerations = row.tolerations;
    const RoomForecast forecast = ForecastRoom({room}, need, Any());
    EXPECT_THAT(forecast.fits, ElementsAre(row.fits)) << forecast.why;
    EXPECT_EQ(forecast.never, !row.fits);
  }
  HostRoom room = Room("h1");
  room.host.taints = {gpu};
  EXPECT_EQ(ForecastRoom({room}, Need(), Any()).why,
            "host h1 has the taint gpu=yes:NoSchedule, and a VM has no toleration for it");
}

TEST(RoomForecast, C2_a_taint_that_passes_is_no_reason_for_never) {
  for (const char* const key :
       {"node.kubernetes.io/not-ready", "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/out-of-service", "kubevirt.io/drain"}) {
    HostRoom room = Room("h1");
    room.host.taints = {{key, "", "NoSchedule"}};
    const RoomForecast forecast = ForecastRoom({room}, Need(), Any());
    EXPECT_THAT(forecast.fits, ElementsAre(false)) << key;
    EXPECT_FALSE(forecast.never) << key;
  }
}

TEST(RoomForecast, C2_a_host_must_have_every_label_of_the_node_selector) {
  VmNeed need = Need();
  need.node_selector = {{"disk", "nvme"}, {"rack", "a"}};
  HostRoom room = Room("h1");
  room.host.labels = {{"disk", "nvme"}};
  const RoomForecast forecast = ForecastRoom({room}, need, Any());
  EXPECT_TRUE(forecast.never);
  EXPECT_EQ(forecast.why, "host h1 lacks labels that a VM requires");
  room.host.labels["rack"] = "a";
  EXPECT_EQ(Fitting({room}, need, 1), 1U);
}

TEST(RoomForecast, C2_required_affinity_is_met_by_all_expressions_of_one_term) {
  HostRoom room = Room("h1");
  room.host.labels = {{"rack", "a"}, {"cores", "16"}, {"fast", ""}};
  struct Row {
    HostExpression expression;
    bool met;
  };
  for (const Row& row : std::vector<Row>{
           {{.key = "rack", .op = "In", .values = {"b", "a"}}, true},
           {{.key = "rack", .op = "In", .values = {"b"}}, false},
           {{.key = "none", .op = "In", .values = {""}}, false},
           {{.key = "rack", .op = "NotIn", .values = {"a"}}, false},
           {{.key = "none", .op = "NotIn", .values = {"a"}}, true},
           {{.key = "fast", .op = "Exists"}, true},
           {{.key = "none", .op = "Exists"}, false},
           {{.key = "fast", .op = "DoesNotExist"}, false},
           {{.key = "none", .op = "DoesNotExist"}, true},
           {{.key = "cores", .op = "Gt", .values = {"15"}}, true},
           {{.key = "cores", .op = "Gt", .values = {"16"}}, false},
           {{.key = "cores", .op = "Lt", .values = {"17"}}, true},
           {{.key = "cores", .op = "Lt", .values = {"16"}}, false},
           {{.key = "rack", .op = "Gt", .values = {"1"}}, false},
           {{.key = "none", .op = "Lt", .values = {"1"}}, false},
           {{.key = "metadata.name", .op = "In", .values = {"h1"}, .is_field = true}, true},
           {{.key = "metadata.name", .op = "NotIn", .values = {"h1"}, .is_field = true}, false},
           {{.key = "rack", .op = "Resembles", .values = {"x"}}, true}}) {
    VmNeed need = Need();
    need.terms = {{row.expression}};
    EXPECT_EQ(Fitting({room}, need, 1), row.met ? 1U : 0U)
        << row.expression.key << " " << row.expression.op;
    const HostExpression met{.key = "fast", .op = "Exists"};
    need.terms = {{met, row.expression}};
    EXPECT_EQ(Fitting({room}, need, 1), row.met ? 1U : 0U) << "all of a term";
    need.terms = {{row.expression}, {met}};
    EXPECT_EQ(Fitting({room}, need, 1), 1U) << "one of the terms";
  }
}

TEST(RoomForecast, C8_a_vm_of_a_zone_fits_only_there) {
  HostRoom a = Room("h1");
  a.host.zone = "a";
  HostRoom b = Room("h2", {{kMemory, 24 * kGiB}});
  b.host.zone = "b";
  const RoomForecast forecast = ForecastRoom({a, b}, Need(), {"b", "b", "a", "", "c"});
  EXPECT_THAT(forecast.fits, ElementsAre(true, false, true, true, false));
  EXPECT_FALSE(forecast.never);
  EXPECT_THAT(forecast.why, HasSubstr("host h1 is not in zone b"));
  EXPECT_THAT(forecast.why, HasSubstr("host h2 has 0 MiB of memory free, a VM needs 8 GiB"));
}

TEST(RoomForecast, C2_with_required_anti_affinity_a_host_takes_one_vm_of_the_pool) {
  VmNeed need = Need();
  need.one_per_host = true;
  HostRoom taken = Room("h1", {{kMemory, 8 * kGiB}});
  taken.vms[{need.ns, need.pool}] = {"a"};
  HostRoom of_others = Room("h2");
  of_others.vms = {{{need.ns, "other"}, {"b"}}, {{"elsewhere", need.pool}, {"c"}}};
  const std::vector<HostRoom> hosts = {taken, of_others, Room("h3")};
  EXPECT_EQ(Fitting(hosts, need, 5), 2U);
  const RoomForecast forecast = ForecastRoom({taken}, need, Any());
  EXPECT_FALSE(forecast.never) << "its VM may go";
  EXPECT_EQ(forecast.why, "host h1 has a VM of the pool, and host_spread allows one");
}

TEST(RoomForecast, C2_vms_go_where_the_pool_has_fewest) {
  HostRoom busy = Room("h1");
  busy.vms[{Need().ns, Need().pool}] = {"a", "b"};
  HostRoom small = Room("h2", {{kMemory, 24 * kGiB}});
  small.host.zone = "z";
  const RoomForecast forecast = ForecastRoom({busy, small}, Need(), {"", "z"});
  EXPECT_THAT(forecast.fits, ElementsAre(true, false)) << "the first one took the place on h2";
}

TEST(RoomForecast, C2_vms_that_wait_for_a_host_get_one_first) {
  HostRoom a = Room("h1", {{kMemory, 16 * kGiB}});
  a.host.zone = "a";
  HostRoom b = Room("h2", {{kMemory, 24 * kGiB}});
  b.host.zone = "b";
  const auto fits = [&](const std::vector<std::string>& zones,
                        const std::vector<std::string>& waiting) {
    return ForecastRoom({a, b}, Need(), zones, waiting).fits;
  };
  EXPECT_THAT(fits({"", "", ""}, {"", ""}), ElementsAre(true, false, false));
  EXPECT_THAT(fits({"b", "a", "a"}, {"a"}), ElementsAre(true, true, false)) << "in its zone";
  EXPECT_THAT(fits({"a", "a"}, {"b", "b", "b"}), ElementsAre(true, true)) << "only what fits";
  EXPECT_EQ(FindRoom({a, b}, Need(), {"", ""}).vms, 1);
}

TEST(RoomForecast, C2_the_text_says_that_room_is_kept_for_vms_that_wait_for_a_host) {
  const auto why = [](std::size_t waiting) {
    const std::vector<HostRoom> hosts = {Room("h1", {{kMemory, 16 * kGiB}})};
    return ForecastRoom(hosts, Need(), {"", ""}, std::vector<std::string>(waiting)).why;
  };
  EXPECT_EQ(why(0), "");
  EXPECT_EQ(why(1),
            "host h1 has 0 MiB of memory free, a VM needs 8 GiB, besides what is kept for 1 VM "
            "that waits for a host");
  EXPECT_THAT(why(2), HasSubstr("kept for 2 VMs that wait for a host"));
}

TEST(RoomForecast, C2_the_text_says_what_lacks_and_where) {
  const auto why = [](const std::vector<HostRoom>& hosts, const VmNeed& need) {
    return ForecastRoom(hosts, need, Any()).why;
  };
  const auto with = [](const std::string& name, std::int64_t used) {
    return Room(name, {{kMemory, used}});
  };
  VmNeed need = Need({{kCpu, 205}, {kMemory, 8 * kGiB + 1}, {kPods, 1}});
  EXPECT_EQ(why({with("h1", 26 * kGiB), with("h2", 26 * kGiB), with("h3", 26 * kGiB)}, need),
            "hosts h1, h2 and h3 have 6 GiB of memory free each, a VM needs 8.1 GiB");
  EXPECT_EQ(why({with("h1", 30 * kGiB), with("h2", 26 * kGiB)}, need),
            "hosts h1 and h2 have at most 6 GiB of memory free each, a VM needs 8.1 GiB");
  EXPECT_EQ(why({with("h1", 24 * kGiB + 1)}, need),
            "host h1 has 7.9 GiB of memory free, a VM needs 8.1 GiB");
  EXPECT_EQ(why({with("h1", 32 * kGiB - 1536 * 1024)}, need),
            "host h1 has 1.5 MiB of memory free, a VM needs 8.1 GiB");
  EXPECT_EQ(why({with("h1", 40 * kGiB)}, need),
            "host h1 has 0 MiB of memory free, a VM needs 8.1 GiB");
  EXPECT_EQ(why({Room("h1", {{kCpu, 9810}})}, need),
            "host h1 has 0.19 CPUs free, a VM needs 0.205");
  EXPECT_EQ(why({Room("h1", {{kPods, 110}})}, need), "host h1 has 0 pods free, a VM needs 1");
  std::vector<HostRoom> many;
  for (int i = 1; i <= 9; ++i) many.push_back(with("h" + std::to_string(i), 32 * kGiB));
  EXPECT_THAT(why(many, need), HasSubstr("hosts h1, h2, h3 and 6 more have 0 MiB"));
}

TEST(RoomForecast, C2_without_hosts_nothing_fits_and_nothing_is_refused_for_ever) {
  const RoomForecast forecast = ForecastRoom({}, Need(), Any());
  EXPECT_THAT(forecast.fits, ElementsAre(false));
  EXPECT_FALSE(forecast.never);
  EXPECT_THAT(forecast.why, Not(IsEmpty()));
  EXPECT_THAT(ForecastRoom({Room("h1")}, Need(), {}).fits, IsEmpty());
}

TEST(RoomForecast, P2_survives_amounts_at_the_limit) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  HostRoom full = Room("h1", {{kCpu, kMost}, {kMemory, kMost}, {kPods, kMost}});
  EXPECT_EQ(Fitting({full}, Need(), 2), 0U);
  full.host.allocatable = {{"cpu", "-9223372036854775808m"}};
  EXPECT_EQ(Fitting({full}, Need(), 2), 0U);
  full.host.allocatable.clear();
  EXPECT_EQ(Fitting({full}, Need({{kCpu, kMost}, {kMemory, kMost}, {kPods, 1}}), 2), 2U);
}

}  // namespace
}  // namespace nomad_harvester::harvester
