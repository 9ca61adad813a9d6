// SPDX-License-Identifier: Apache-2.0
#include "rules/progress.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

json Condition(const char* type, const char* status, const char* reason, const char* message) {
  return {{"type", type}, {"status", status}, {"reason", reason}, {"message", message}};
}

VmView ViewOfVm(const json& status) {
  VmView view;
  view.vm = harvester::ParseVirtualMachine({{"metadata", {{"name", "web-1"}}}, {"status", status}});
  return view;
}

VmView ViewOfInstance(const json& status) {
  VmView view = ViewOfVm({{"created", true}, {"printableStatus", "Starting"}});
  view.instance = harvester::ParseInstance({{"metadata", {{"name", "web-1"}}}, {"status", status}});
  view.instance_runs = harvester::IsRunning(*view.instance);
  view.addresses = view.instance->addresses;
  return view;
}

TEST(Progress, of_a_vm_without_an_instance_is_cloning_in_the_words_of_kubevirt_and_cdi) {
  const VmView view =
      ViewOfVm({{"printableStatus", "Provisioning"},
                {"conditions",
                 json::array({Condition("Ready", "False", "VMINotExists", "VMI does not exist"),
                              Condition("DataVolumesReady", "False", "Pending",
                                        "Import of 10Gi is at 37 %")})}});
  EXPECT_EQ(DescribeProgress(view),
            "its volumes are made, and it has no instance yet (Provisioning): Pending: Import of "
            "10Gi is at 37 %");
}

TEST(Progress, of_a_vm_whose_guest_does_not_run_has_the_last_warning_about_its_volumes) {
  VmView cloning = ViewOfVm({{"printableStatus", "Provisioning"}});
  VmView booting = ViewOfInstance({{"phase", "Pending"}});
  VmView joining = ViewOfInstance({{"phase", "Running"}});
  for (VmView* view : {&cloning, &booting, &joining}) {
    view->volume_warning = "volume web-1-disk-0-x: ProvisioningFailed: no storage class";
  }
  EXPECT_EQ(DescribeProgress(cloning),
            "its volumes are made, and it has no instance yet (Provisioning); volume "
            "web-1-disk-0-x: ProvisioningFailed: no storage class");
  EXPECT_EQ(DescribeProgress(booting),
            "its instance is Pending; volume web-1-disk-0-x: ProvisioningFailed: no storage "
            "class");
  EXPECT_THAT(DescribeProgress(joining), Not(HasSubstr("ProvisioningFailed")));
}

TEST(Progress, of_an_instance_that_is_not_scheduled_has_the_schedulers_words) {
  const VmView view = ViewOfInstance(
      {{"phase", "Scheduling"},
       {"phaseTransitionTimestamps",
        json::array(
            {{{"phase", "Pending"}, {"phaseTransitionTimestamp", "2026-03-01T11:00:00Z"}},
             {{"phase", "Scheduling"}, {"phaseTransitionTimestamp", "2026-03-01T11:00:02Z"}}})},
       {"conditions",
        json::array({Condition("PodScheduled", "False", "Unschedulable",
                               "0/3 nodes are available: 3 Insufficient memory.")})}});
  EXPECT_EQ(DescribeProgress(view),
            "its instance is Scheduling since 2026-03-01T11:00:02Z: Unschedulable: 0/3 nodes are "
            "available: 3 Insufficient memory.");
}

// KubeVirt's condition keeps the words of the first attempt.
TEST(Progress, C3_of_a_vm_that_no_host_takes_has_what_its_pod_says_now) {
  VmView view = ViewOfInstance(
      {{"phase", "Scheduling"},
       {"conditions", json::array({Condition("PodScheduled", "False", "Unschedulable",
                                             "pod has unbound PersistentVolumeClaims")})}});
  view.pod_message = "0/3 nodes are available: 3 Insufficient memory.";
  EXPECT_EQ(DescribeProgress(view),
            "its instance is Scheduling: 0/3 nodes are available: 3 Insufficient memory.");
}

TEST(Progress, of_a_guest_that_runs_tells_since_when_where_and_whether_its_agent_answers) {
  json status = {
      {"phase", "Running"},
      {"interfaces", json::array({{{"ipAddress", "10.0.0.7"}}})},
      {"phaseTransitionTimestamps",
       json::array({{{"phase", "Running"}, {"phaseTransitionTimestamp", "2026-03-01T11:05:00Z"}}})},
      {"conditions", json::array({Condition("AgentConnected", "True", "", "")})}};
  EXPECT_EQ(DescribeProgress(ViewOfInstance(status)),
            "its guest runs since 2026-03-01T11:05:00Z at 10.0.0.7, its guest agent answers, and "
            "no Nomad node has its name");
  status["conditions"] = json::array();
  EXPECT_THAT(DescribeProgress(ViewOfInstance(status)), HasSubstr("agent does not answer"));
  status.erase("interfaces");
  EXPECT_THAT(DescribeProgress(ViewOfInstance(status)), HasSubstr("without an address"));
}

TEST(Progress, is_told_without_the_instances_too) {
  EXPECT_EQ(DescribeProgress(ViewOfVm({{"created", true}, {"printableStatus", "Starting"}})),
            "its guest is started (Starting)");
  EXPECT_EQ(DescribeProgress(ViewOfVm({{"ready", true}})),
            "its guest runs and no Nomad node has its name");
}

TEST(Advice, tells_what_nomad_may_demand_of_a_guest_that_runs) {
  World world;
  world.With(Vm("a"));
  const auto advice = [&] {
    const PoolSnapshot snapshot = world.Snapshot();
    return AdviceToJoin(*snapshot.vms().front(), snapshot);
  };
  EXPECT_THAT(advice(), EndsWith("set nomad_intro_token"));
  world.Policy().intro_token = config::IntroToken::kAuto;
  EXPECT_THAT(advice(), HasSubstr("if Nomad had introduction tokens when it was made, its token"));
  world.Policy().intro_token = config::IntroToken::kRequired;
  EXPECT_THAT(advice(), HasSubstr("; its introduction token lets in a client of this name"));
  EXPECT_THAT(advice(), HasSubstr("30 minutes at most, and an expired one is refused"));
}

TEST(Advice, names_the_node_pool_for_which_the_vm_was_made) {
  World world;
  world.Policy().intro_token = config::IntroToken::kRequired;
  world.Policy().node_pool = "today";
  world.With(Vm("a"));
  world.Raw().vms[0].vm.Change().nodes.emplace().node_pool = "then";
  const PoolSnapshot snapshot = world.Snapshot();
  EXPECT_THAT(AdviceToJoin(*snapshot.vms().front(), snapshot), HasSubstr("in node pool then"));
  EXPECT_EQ(AdviceToJoin(ViewOfVm({{"printableStatus", "Provisioning"}}), world.Snapshot()), "");
}

}  // namespace
}  // namespace nomad_harvester::scaling
