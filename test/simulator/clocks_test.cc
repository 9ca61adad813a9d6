// SPDX-License-Identifier: Apache-2.0
// API servers whose clocks differ, and resourceVersions that stay.
#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

TEST_F(SimulatorTest, Api_servers_take_turns_and_their_dates_differ) {
  cluster().SetClockSkews({seconds(0), seconds(4), -seconds(2)});
  const auto now = clock_.WallNow();
  const auto date = [&] {
    return kube::ListNames(kube(), context_, kube::kSecrets, "nomad")->server_time;
  };
  EXPECT_EQ(date(), now);
  EXPECT_EQ(date(), now + seconds(4));
  EXPECT_EQ(date(), now - seconds(2));
  EXPECT_EQ(date(), now);
  cluster().SetClockSkews({});
  EXPECT_EQ(date(), now);
}

TEST_F(SimulatorTest, A_refusal_has_the_date_of_the_server_that_refuses) {
  cluster().SetClockSkews({seconds(7)});
  cluster().Refuse({.verb = "list"});
  const auto target = "/api/v1/namespaces/nomad/secrets";
  EXPECT_EQ(Ask(System::kHarvester, http::Method::kGet, target).headers.Find("Date"),
            "Thu, 01 Jan 2026 00:00:07 GMT");
  cluster().SetFaultHook([](const RequestInfo&) { return Fault::Answer(500); });
  EXPECT_EQ(Ask(System::kHarvester, http::Method::kGet, target).headers.Find("Date"),
            "Thu, 01 Jan 2026 00:00:07 GMT");
}

TEST_F(SimulatorTest, An_object_has_the_time_of_the_server_that_made_it) {
  cluster().SetClockSkews({seconds(7)});
  EXPECT_EQ(MakeVm("vm-1")["metadata"]["creationTimestamp"], "2026-01-01T00:00:07Z");
}

TEST_F(SimulatorTest, The_clock_of_nomad_is_right) {
  cluster().SetClockSkews({seconds(7)});
  EXPECT_EQ(Ask(System::kNomad, http::Method::kGet, "/v1/nodes").headers.Find("Date"),
            "Thu, 01 Jan 2026 00:00:00 GMT");
}

TEST_F(SimulatorTest, The_version_of_a_vm_stays_when_nothing_changes) {
  MakeVm("vm-1");
  Wait(minutes(1));
  const json before = cluster().Vm("vm-1");
  Wait(minutes(10));
  EXPECT_EQ(cluster().Vm("vm-1"), before);
}

}  // namespace
}  // namespace nomad_harvester::simulator
