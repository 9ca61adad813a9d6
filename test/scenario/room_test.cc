// SPDX-License-Identifier: Apache-2.0
//
// A pool grows and renews itself as far as Harvester's hosts have room (docs/behaviour.md, C2 and
// R5).

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/harvester/metadata.h"

#include "harness.h"
#include "support/hosts.h"
#include "support/status_matchers.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using support::HostWith;
using support::IsOk;
using support::StatusIs;
using ::testing::HasSubstr;

// Two hosts, each with room for one of the scenarios' VMs, whose pods ask for 3.2 GiB.
simulator::Options RoomForTwo() {
  simulator::Options options;
  options.hosts = {{.name = "h1", .memory = "4Gi"}, {.name = "h2", .memory = "4Gi"}};
  return options;
}

class Room : public testing::Test {
 protected:
  explicit Room(simulator::Options options = RoomForTwo()) : h_(std::move(options)) {}

  // The agent wants `count` at each of its ticks, until `done` or that time has passed. Returns the
  // last answer.
  absl::Status Want(
      std::int64_t count, base::Duration duration,
      const std::function<bool()>& done = [] { return false; }) {
    absl::Status last;
    for (base::Duration waited{}; waited < duration && !done(); waited += seconds(10)) {
      h_.Tick(seconds(10));
      last = h_.Accept(count);
    }
    return last;
  }
  std::size_t Placed() const {
    const std::vector<std::string> vms = h_.VmNames();
    return static_cast<std::size_t>(
        std::count_if(vms.begin(), vms.end(),
                      [&](const std::string& vm) { return !h_.cluster.HostOfVm(vm).empty(); }));
  }

  Harness h_;
};

TEST_F(Room, C2_a_wrong_forecast_costs_ten_minutes) {
  // The hosts report less than they have.
  json list = {
      {"kind", "NodeList"}, {"apiVersion", "v1"}, {"metadata", {{"resourceVersion", "1"}}}};
  for (const char* const host : {"h1", "h2"}) list["items"].push_back(HostWith(host, "3Gi"));
  h_.Inject(Fault::Answer(200, list.dump()), [&](const RequestInfo& request) {
    return request.system == System::kHarvester && request.verb == "list" &&
           request.resource == "nodes";
  });
  EXPECT_THAT(Want(2, minutes(9)), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(h_.VmNames().empty()) << h_.Transcript();
  Want(2, minutes(3), [&] { return !h_.VmNames().empty(); }).IgnoreError();
  EXPECT_EQ(h_.VmNames().size(), 1U) << h_.Transcript();
  EXPECT_EQ(h_.log->Count("Nothing but the forecast has refused new VMs", log::Level::kWarn), 1U);
  Want(2, minutes(13), [&] { return h_.VmNames().size() == 2; }).IgnoreError();
  EXPECT_EQ(h_.VmNames().size(), 2U) << "one more for each ten minutes";
  h_.Tick(seconds(30));
  EXPECT_EQ(Placed(), 2U);
}

TEST_F(Room, C2_growth_makes_what_fits_at_once_and_the_rest_within_two_minutes_of_room) {
  EXPECT_THAT(h_.Accept(5), StatusIs(absl::StatusCode::kResourceExhausted,
                                     testing::AllOf(HasSubstr("2 of 5 VMs fit now: hosts h1 and h2 "
                                                              "have "),
                                                    HasSubstr(" MiB of memory free each, a VM "
                                                              "needs 3.2 GiB"))));
  EXPECT_EQ(h_.VmNames().size(), 2U);
  EXPECT_THAT(Want(5, minutes(9)), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(h_.VmNames().size(), 2U) << h_.Transcript();
  EXPECT_EQ(Placed(), 2U) << "none waits for a host";
  EXPECT_EQ(h_.Status()->count, 2);
  EXPECT_EQ(h_.log->Count("Scale failed", log::Level::kWarn), 1U) << "the first one made VMs";
  EXPECT_LE(h_.log->Count("Scale refused", log::Level::kWarn), 2U) << h_.Transcript();
  ASSERT_TRUE(h_.cluster.PutObject(HostWith("h3", "16Gi")));
  EXPECT_THAT(Want(5, minutes(2), [&] { return h_.VmNames().size() == 5; }), IsOk());
  EXPECT_EQ(h_.VmNames().size(), 5U) << h_.Transcript();
  h_.WaitUntilReady();
  EXPECT_EQ(Placed(), 5U);
  h_.CheckAtRest(5);
}

TEST_F(Room, C12_full_hosts_open_no_circuit_so_that_room_is_used_as_soon_as_it_is_there) {
  Want(5, minutes(25))
      .IgnoreError();  // with it two VMs, made in spite of the forecast, that failed
  ASSERT_TRUE(h_.cluster.PutObject(HostWith("h3", "16Gi")));
  Want(5, minutes(4), [&] { return Placed() == 5; }).IgnoreError();
  EXPECT_EQ(Placed(), 5U) << h_.Transcript();
}

TEST_F(Room, C2_the_forecast_alone_refuses_for_ten_minutes_in_a_row_and_not_in_all) {
  ASSERT_THAT(h_.Scale(2), IsOk());
  Want(3, minutes(5)).IgnoreError();
  Want(2, minutes(30)).IgnoreError();
  EXPECT_THAT(Want(3, minutes(9)), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(h_.VmNames().size(), 2U) << h_.Transcript();
  EXPECT_EQ(h_.log->Count("Nothing but the forecast", log::Level::kWarn), 0U);
}

TEST_F(Room, T1_a_lack_of_room_is_told_while_growth_is_wanted_and_ten_minutes_longer) {
  const auto error = [&] { return AnnotationOf(h_.Leases().at(0), Key("last-error")); };
  EXPECT_FALSE(h_.Accept(5).ok());
  EXPECT_THAT(error(), HasSubstr("2 of 5 VMs fit now"));
  EXPECT_FALSE(Want(5, minutes(8)).ok());
  EXPECT_THAT(error(), HasSubstr("0 of 3 VMs fit now")) << "of another action, that made none";
  h_.Tick(minutes(8));
  EXPECT_NE(error(), "") << "the agent may ask again";
  h_.Tick(minutes(4));
  EXPECT_EQ(error(), "") << h_.Transcript();
  h_.cluster.ResetCounters();
  h_.Tick(minutes(10));
  EXPECT_EQ(h_.cluster.RequestCount(System::kHarvester, "patch", "leases"), 0) << "at rest";
}

TEST_F(Room, C2_vms_of_another_namespace_take_room_and_leave_it) {
  json pod = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"namespace", "default"}, {"name", "database"}}},
      {"spec",
       {{"nodeName", "h1"},
        {"containers",
         json::array({{{"name", "main"}, {"resources", {{"requests", {{"memory", "2Gi"}}}}}}})}}},
      {"status", {{"phase", "Running"}}}};
  ASSERT_TRUE(h_.cluster.PutObject(pod));
  EXPECT_THAT(h_.Accept(2),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1 of 2 VMs fit now: ")));
  EXPECT_EQ(h_.VmNames().size(), 1U);
  pod["status"]["phase"] = "Succeeded";
  ASSERT_TRUE(h_.cluster.PutObject(pod));
  EXPECT_THAT(Want(2, minutes(2), [&] { return h_.VmNames().size() == 2; }), IsOk());
  h_.WaitUntilReady();
  EXPECT_EQ(Placed(), 2U);
}

// One host has room for two VMs, the other for one.
class RoomForThree : public Room {
 protected:
  RoomForThree() : Room(Hosts()) {
    h_.policy["max_surge"] = "2";
    EXPECT_THAT(h_.Scale(2), IsOk());
    h_.WaitUntilReady();
    for (const std::string& vm : old_ = h_.VmNames()) {
      h_.cluster.EditAnnotation(vm, harvester::kReplaceAnnotation, "its disk is slow");
    }
  }
  static simulator::Options Hosts() {
    simulator::Options options;
    options.hosts = {{.name = "h1", .memory = "8Gi"}, {.name = "h2", .memory = "4Gi"}};
    return options;
  }

  bool StandsAnOldOne() const {
    const std::vector<std::string> vms = h_.VmNames();
    return std::any_of(vms.begin(), vms.end(), [this](const std::string& vm) {
      return std::find(old_.begin(), old_.end(), vm) != old_.end();
    });
  }

  std::vector<std::string> old_;
};

TEST_F(RoomForThree, R5_replacements_that_begin_at_once_do_not_take_the_same_room) {
  for (int i = 0; i < 30 && StandsAnOldOne(); ++i) {
    h_.Tick(seconds(10));
    ASSERT_LE(h_.VmNames().size(), 3U) << h_.Transcript();
  }
  EXPECT_FALSE(StandsAnOldOne()) << h_.Transcript();
  EXPECT_EQ(h_.VmNames().size(), 2U);
}

TEST_F(RoomForThree, C2_a_growth_leaves_the_room_of_a_replacement_that_has_just_begun) {
  h_.policy["max_surge"] = "1";
  ASSERT_THAT(h_.Status(), IsOk());
  h_.process().RunBackground();
  ASSERT_EQ(h_.VmNames().size(), 3U);
  ASSERT_EQ(Placed(), 2U) << "the new one has no host yet";
  EXPECT_THAT(h_.Accept(4), StatusIs(absl::StatusCode::kResourceExhausted,
                                     HasSubstr("kept for 1 VM that waits for a host")));
  EXPECT_EQ(h_.VmNames().size(), 3U);
}

}  // namespace
}  // namespace nomad_harvester::scenario
