// SPDX-License-Identifier: Apache-2.0
//
// What actions leave: the next Status finishes what an action could not, also in the same process,
// and touches nothing else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"

#include "harness.h"
#include "support/node_to_purge.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using simulator::Refusal;
using ::testing::ElementsAre;

std::vector<std::string> NamesOf(const std::vector<json>& objects) {
  std::vector<std::string> names;
  for (const json& object : objects) names.push_back(NameOf(object));
  return names;
}

void StartAgain(Harness& h) {
  h.clock.Advance(minutes(1));
  h.Restart();
}

// A process died right after it had deleted its only VM, and another one has started.
void DieLeavingAVolume(Harness& h) {
  ASSERT_TRUE(h.Scale(1).ok());
  const json claim = h.Claims().at(0);
  h.ScaleAndDieAt(0, "delete", "virtualmachines");
  StartAgain(h);
  ASSERT_TRUE(h.cluster.PutObject(claim));
}

// Harvester restores the VM in place, as its controller does it (harvester/harvester:
// pkg/controller/master/backup/restore.go): the disk has another claim, without our labels, and the
// annotation with the claims to remove is as before. The old claim is kept. A volume with data was
// attached besides.
void RestoreInPlace(Harness& h) {
  json vm = h.Vms().at(0);
  json& volumes = vm["spec"]["template"]["spec"]["volumes"];
  for (json& volume : volumes) {
    if (volume.contains("persistentVolumeClaim")) {
      volume["persistentVolumeClaim"]["claimName"] = "restore-nightly-5f0c-disk-0";
    }
  }
  volumes.push_back({{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}});
  vm["metadata"]["annotations"].erase("harvesterhci.io/volumeClaimTemplates");
  for (const char* claim : {"restore-nightly-5f0c-disk-0", "data"}) {
    ASSERT_TRUE(h.cluster.PutObject(ObjectOf("PersistentVolumeClaim", claim, "")));
  }
  ASSERT_TRUE(h.cluster.PutObject(vm));
  h.clock.Advance(minutes(1));
}

TEST(Leftovers, C4_a_volume_that_was_restored_in_place_goes_and_one_that_was_attached_stays) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  RestoreInPlace(h);
  EXPECT_TRUE(h.Scale(0).ok()) << h.Transcript();
  h.Tick(minutes(1));
  EXPECT_THAT(NamesOf(h.Claims()), ElementsAre("data")) << h.Transcript();
  EXPECT_THAT(h.log->Text(), testing::HasSubstr("Deleted a VM; volumes attached later were kept"));
}

TEST(Leftovers, C10_a_kill_before_the_delete_leaves_no_volume_that_was_restored_in_place) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  RestoreInPlace(h);
  h.ScaleAndDieAt(0, "delete", "virtualmachines", false);
  StartAgain(h);
  h.Tick(minutes(2));
  EXPECT_THAT(NamesOf(h.Claims()), ElementsAre("data")) << h.Transcript();
}

TEST(Leftovers, C4_the_volume_of_a_broken_vm_that_another_vm_uses_by_now_stays) {
  Harness h;
  h.cluster.NeverJoin(1);
  h.policy["join_timeout"] = "3m";
  ASSERT_TRUE(h.Accept(1).ok());
  h.Tick(seconds(10));
  const json broken = h.Vms().at(0);
  json other = broken;
  other["metadata"] = {{"name", "rescue"}, {"namespace", std::string(kNamespace)}};
  other["spec"]["runStrategy"] = "Halted";
  ASSERT_TRUE(h.cluster.PutObject(other));
  const std::string claim = NameOf(h.Claims().at(0));
  h.Tick(minutes(10));
  EXPECT_THAT(NamesOf(h.Vms()), ElementsAre("rescue")) << h.Transcript();
  EXPECT_THAT(NamesOf(h.Claims()), ElementsAre(claim));
  EXPECT_THAT(h.log->Text(), testing::Not(testing::HasSubstr("were kept")))
      << "nobody needs to observation after a volume that is in use";
}

TEST(Leftovers, C10_a_secret_whose_owner_could_not_be_written_gets_it_later) {
  Harness h;
  h.Tick(minutes(1));  // the sweep at the start of a process
  h.Inject(Fault::Drop(), [](const RequestInfo& request) {
    return request.resource == "secrets" && request.verb == "patch";
  });
  ASSERT_TRUE(h.Accept(2).ok());
  h.cluster.SetFaultHook(nullptr);
  h.Tick(minutes(1));
  h.CheckAtRest(2);
}

// Without a VM the Secret is garbage. It must be deleted even if no later Scale uses the name.
TEST(Leftovers, C10_a_secret_of_a_vm_that_was_never_created_is_deleted_even_as_the_only_leftover) {
  Harness h;
  h.Tick(minutes(1));
  h.OnEachRequest([&](const RequestInfo& request) {
    if (request.resource == "virtualmachines" && request.verb == "create") {
      h.process().CancelScale();
    }
  });
  EXPECT_TRUE(absl::IsCancelled(h.Scale(1)));
  h.cluster.SetFaultHook(nullptr);
  ASSERT_EQ(h.Secrets().size(), 1U);
  h.Tick(minutes(1));
  h.CheckAtRest(0);
}

TEST(Leftovers, a_scale_that_was_refused_starts_no_background_work) {
  Harness h;
  h.Tick(minutes(1));
  h.cluster.SetImageReady("default/ubuntu-24.04", false);
  EXPECT_FALSE(h.Scale(1).ok());
  h.cluster.ResetCounters();
  ASSERT_TRUE(h.Status().ok());
  h.process().RunBackground();
  EXPECT_EQ(h.cluster.RequestCount(), 2);
}

TEST(Leftovers, C10_a_volume_without_the_pools_label_is_left_alone_whatever_its_name) {
  Harness h;
  ASSERT_TRUE(h.cluster.PutObject(ObjectOf("PersistentVolumeClaim", "web-old-disk-0-abc")));
  ASSERT_TRUE(h.cluster.PutObject(ObjectOf("PersistentVolumeClaim", "mine-disk-0-abc", "")));
  h.Tick(minutes(1));
  EXPECT_THAT(NamesOf(h.Claims()), ElementsAre("mine-disk-0-abc"));
}

TEST(Leftovers, C4_volumes_that_harvester_does_not_delete_are_deleted_by_the_removal) {
  Harness h;
  h.cluster.KeepClaims(true);
  ASSERT_TRUE(h.Scale(2).ok());
  ASSERT_TRUE(h.Scale(0).ok()) << h.Transcript();
  EXPECT_TRUE(h.Claims().empty());
  h.CheckAtRest(0);
}

TEST(Leftovers, C10_a_secret_that_no_action_names_is_kept_for_ten_minutes) {
  Harness h;
  ASSERT_TRUE(h.cluster.PutObject(ObjectOf("Secret", "web-late-cloudinit")));
  h.Tick(minutes(5));
  EXPECT_EQ(h.Secrets().size(), 1U) << "its VM may be about to be created";
  h.clock.Advance(minutes(6));
  h.Restart();
  h.Tick(minutes(1));
  EXPECT_TRUE(h.Secrets().empty());
}

TEST(Leftovers, C10_a_secret_of_another_action_is_not_given_to_a_vm_of_its_name) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  json secret = h.Secrets().at(0);
  secret["metadata"].erase("ownerReferences");
  secret["metadata"]["annotations"][Key("action-id")] = "another";
  ASSERT_TRUE(h.cluster.PutObject(secret));
  h.Restart();
  h.Tick(minutes(1));
  EXPECT_FALSE(h.Secrets().at(0)["metadata"].contains("ownerReferences"));
}

TEST(Leftovers, C4_a_failure_to_read_the_namespace_purges_no_node_of_another_harvester) {
  Harness h;
  h.policy["node_purge"] = "true";
  h.Reach(1);
  const std::string id =
      support::AddNodeToPurge(h.cluster, {.name = "web-other", .node_class = "web"}, "nomad/web",
                              {{"harvester", "another-harvester"}});
  h.clock.Advance(seconds(10));
  h.cluster.KillNode(id);
  h.clock.Advance(seconds(30));
  h.Restart();
  int failed = 0;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.resource != "namespaces" || failed >= 6) return Fault::None();
    ++failed;
    return Fault::Answer(503);
  });
  h.Tick(minutes(3));
  EXPECT_EQ(failed, 6) << "it is read again by the next observation";
  EXPECT_FALSE(h.cluster.Node(id).is_null());
}

TEST(Leftovers, C4_without_node_purge_the_node_of_a_removed_vm_stays) {
  Harness h;
  h.policy["node_purge"] = "false";
  ASSERT_TRUE(h.Scale(1).ok());
  const std::string node = h.NodeOf(h.VmNames().at(0));
  ASSERT_TRUE(h.Scale(0).ok());
  h.Tick(minutes(2));
  EXPECT_FALSE(h.cluster.Node(node).is_null());
  h.CheckAtRest(0);
}

TEST(Leftovers, C4_no_node_is_purged_whose_vm_exists_although_a_list_lacks_it) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  const std::string node = h.NodeOf(h.VmNames().at(0));
  h.cluster.HangDrain(node);
  ASSERT_TRUE(h.Accept(0).ok());
  h.cluster.KillNode(node);
  h.clock.Advance(seconds(30));
  h.cluster.Refuse({.verb = "list",
                    .resource = "virtualmachines",
                    .kind = Refusal::kAnswer,
                    .status = 200,
                    .text = R"({"kind": "VirtualMachineList", )"
                            R"("metadata": {"resourceVersion": "1"}, "items": []})"});
  h.Tick(minutes(1));
  EXPECT_FALSE(h.cluster.Node(node).is_null()) << h.Transcript();
  h.cluster.StopRefusing();
  h.Tick(minutes(5));
  EXPECT_TRUE(h.cluster.Node(node).is_null());
  h.CheckAtRest(0);
}

// Such a node is not purged, so nothing waits for that.
TEST(Leftovers, L7_a_former_node_whose_drain_was_cancelled_keeps_no_pool_busy) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  const std::string vm = h.VmNames()[0];
  const std::string former = h.NodeOf(vm);
  ASSERT_TRUE(h.cluster.HangDrain(former));
  ASSERT_TRUE(h.Accept(0).ok());
  ASSERT_TRUE(h.cluster.CancelDrain(former, true));
  h.Tick(minutes(1));
  ASSERT_NE(h.cluster.ReviveNodeUnderNewId(former), "");
  h.Tick(minutes(61));
  h.Reach(0);
  ASSERT_TRUE(h.VmNames().empty()) << h.Transcript();
  ASSERT_EQ(h.cluster.Node(former).at("Status"), "down");
  h.Tick(minutes(10));
  h.cluster.ResetCounters();
  h.Tick(minutes(10));
  EXPECT_LE(h.cluster.RequestCount(), 122) << h.Transcript();
}

TEST(Leftovers, C10_a_new_action_goes_on_naming_vms_that_are_not_cleaned_up) {
  Harness h;
  h.policy["node_purge"] = "false";  // a node that waits for its purge would name the VM, too
  DieLeavingAVolume(h);
  h.ScaleAndDieAt(1, "create", "secrets", false);
  StartAgain(h);
  h.Tick(minutes(3));
  EXPECT_TRUE(h.Claims().empty());
  h.CheckAtRest(0);
}

// Scale is called right after a Status that was ready: the resumption that would have looked for
// what the killed process left has not run.
TEST(Leftovers, C10_a_scale_before_the_first_look_of_a_process_keeps_the_names_for_it) {
  Harness h;
  DieLeavingAVolume(h);
  ASSERT_TRUE(h.Scale(1).ok());
  h.Tick(minutes(15));
  h.CheckAtRest(1);
}

TEST(Leftovers, S5_the_first_look_is_repeated_until_it_has_succeeded) {
  Harness h;
  ASSERT_TRUE(h.cluster.PutObject(ObjectOf("PersistentVolumeClaim", "web-old-disk-0-abc")));
  h.cluster.Refuse({.resource = "persistentvolumeclaims", .kind = Refusal::kUnavailable});
  h.Tick(minutes(1));
  h.cluster.StopRefusing();
  h.Tick(minutes(12));
  EXPECT_TRUE(h.Claims().empty());
}

}  // namespace
}  // namespace nomad_harvester::scenario
