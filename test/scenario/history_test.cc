// SPDX-License-Identifier: Apache-2.0
//
// What removed VMs were made of, in the pool's ConfigMap (rule T3).

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/harvester/vm_history.h"

#include "harness.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<harvester::RemovedVm> HistoryOf(const Harness& h) {
  const std::vector<json> maps = h.cluster.ConfigMaps();
  return maps.empty() ? std::vector<harvester::RemovedVm>() : harvester::ParseHistory(maps.at(0));
}

std::vector<std::string> NamesIn(const std::vector<harvester::RemovedVm>& history) {
  std::vector<std::string> names;
  for (const harvester::RemovedVm& vm : history) names.push_back(vm.name);
  return names;
}

// Of two VMs the one that is gone.
json GoneOf(const std::vector<json>& before, const Harness& h) {
  return h.VmNames() == std::vector<std::string>{NameOf(before.at(0))} ? before.at(1)
                                                                       : before.at(0);
}

std::vector<json> MakeTwo(Harness& h) {
  h.Reach(2);
  return h.Vms();
}

TEST(History, T3_of_a_removed_vm_says_what_it_was_made_of_and_why_it_was_removed) {
  Harness h;
  h.cluster.AllowAll();
  const std::vector<json> before = MakeTwo(h);
  EXPECT_THAT(h.cluster.ConfigMaps(), IsEmpty());
  ASSERT_TRUE(h.Scale(1).ok());
  const json gone = GoneOf(before, h);
  const std::vector<harvester::RemovedVm> history = HistoryOf(h);
  ASSERT_THAT(NamesIn(history), ElementsAre(NameOf(gone)));
  const harvester::RemovedVm& vm = history[0];
  EXPECT_EQ(vm.template_hash, AnnotationOf(gone, Key("template-hash")));
  EXPECT_EQ(json::parse(vm.template_parts), json::parse(AnnotationOf(gone, Key("template-parts"))));
  EXPECT_EQ(vm.made_by, AnnotationOf(gone, Key("action-id")));
  EXPECT_EQ(vm.why, "scale-in");
  EXPECT_THAT(vm.action, testing::Not(IsEmpty()));
  EXPECT_TRUE(vm.joined_at.has_value() && vm.ready_at.has_value());
  EXPECT_LT(vm.made_at, *vm.joined_at);
  EXPECT_LT(*vm.joined_at, vm.removed_at);
  EXPECT_EQ(LabelOf(h.cluster.ConfigMaps().at(0), Key("pool")), "web");
}

TEST(History, T3_of_a_replaced_vm_names_the_reason_and_the_new_vm) {
  Harness h;
  h.cluster.AllowAll();
  h.Reach(1);
  const std::string old = h.VmNames().at(0);
  h.cluster.EditAnnotation(old, Key("replace"), "its disk is full");
  h.Tick(minutes(10));
  const std::vector<harvester::RemovedVm> history = HistoryOf(h);
  ASSERT_THAT(NamesIn(history), ElementsAre(old));
  EXPECT_EQ(history[0].why, "replace: requested: its disk is full, by " + h.VmNames().at(0));
}

TEST(History, T3_has_no_user_data) {
  Harness h;
  h.cluster.AllowAll();
  h.policy["user_data"] = "#cloud-config\n# do-not-tell\nhostname: \"{{vm_name}}\"\n";
  ASSERT_TRUE(h.Scale(1).ok());
  ASSERT_TRUE(h.Scale(0).ok());
  ASSERT_THAT(HistoryOf(h), SizeIs(1));
  EXPECT_EQ(h.cluster.ConfigMaps().at(0).dump().find("do-not-tell"), std::string::npos);
}

TEST(History, T3_after_a_kill_at_any_of_its_requests_has_each_removed_vm_once) {
  const std::vector<std::pair<std::string, std::string>> requests = {
      {"patch", "configmaps"}, {"create", "configmaps"}, {"delete", "virtualmachines"}};
  for (const auto& [verb, resource] : requests) {
    for (const bool applied : {false, true}) {
      SCOPED_TRACE(verb + " " + resource + (applied ? ", applied" : ""));
      Harness h;
      h.cluster.AllowAll();
      const std::vector<json> before = MakeTwo(h);
      h.ScaleAndDieAt(1, verb, resource, applied);
      h.Restart();
      h.Settle();
      EXPECT_THAT(NamesIn(HistoryOf(h)), ElementsAre(NameOf(GoneOf(before, h))));
    }
  }
}

TEST(History, T3_a_write_that_is_refused_or_unanswered_holds_up_no_removal) {
  for (const Fault& fault : {Fault::Answer(403, R"({"kind": "Status", "reason": "Forbidden"})"),
                             Fault::Answer(500, "no"), Fault::DropReply()}) {
    Harness h;
    h.cluster.AllowAll();
    MakeTwo(h);
    int tries = 0;
    h.cluster.SetFaultHook([&](const RequestInfo& request) {
      if (request.resource != "configmaps") return Fault::None();
      ++tries;
      return fault;
    });
    EXPECT_TRUE(h.Scale(1).ok());
    EXPECT_THAT(h.Vms(), SizeIs(1));
    EXPECT_EQ(tries, 1);
    EXPECT_EQ(h.log->Count("Could not write VMs into the pool's history"), 1U);
  }
}

TEST(History, T3_keeps_a_hundred_vms) {
  Harness h;
  h.cluster.AllowAll();
  MakeTwo(h);
  ASSERT_TRUE(h.Scale(1).ok());
  json full = h.cluster.ConfigMaps().at(0);
  for (int i = 0; i < 99; ++i) {
    full["data"]["old-" + std::to_string(i)] =
        R"({"removed": "2020-01-01T00:00:)" + std::to_string(10 + i % 50) + "Z\"}";
  }
  h.cluster.PutObject(full);
  ASSERT_TRUE(h.Scale(0).ok());
  const std::vector<harvester::RemovedVm> history = HistoryOf(h);
  ASSERT_THAT(history, SizeIs(100));
  EXPECT_THAT(history.at(2).name, HasSubstr("old-")) << "both that were removed now are kept";
}

TEST(History, T3_a_vm_whose_removal_is_rolled_back_is_taken_out) {
  Harness h;
  h.cluster.AllowAll();
  MakeTwo(h);
  h.cluster.Refuse({.verb = "delete", .resource = "virtualmachines"});
  EXPECT_FALSE(h.Scale(1).ok());
  EXPECT_THAT(h.Vms(), SizeIs(2));
  EXPECT_THAT(HistoryOf(h), IsEmpty());
  EXPECT_THAT(h.cluster.ConfigMaps(), SizeIs(1)) << "it was written before";
}

TEST(History, T3_a_new_process_asks_for_its_rights_once) {
  Harness h;
  MakeTwo(h);
  const std::string vm = h.LeaveOneDraining();
  h.Restart();
  h.HangDrains(false);
  h.cluster.ResetCounters();
  h.Settle();
  EXPECT_THAT(h.Vms(), SizeIs(1));
  EXPECT_EQ(h.cluster.RequestCount(System::kHarvester, "ask", "selfsubjectrulesreviews"), 1);
  EXPECT_EQ(h.cluster.RequestCount(System::kHarvester, "patch", "configmaps"), 0);
  EXPECT_EQ(h.cluster.RequestCount(System::kHarvester, "create", "configmaps"), 0);
}

}  // namespace
}  // namespace nomad_harvester::scenario
