// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "harvester/store_fixture.h"
#include "support/object_uid.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::StatusIs;
using testing::SizeIs;

class VmStoreClaims : public StoreTest {
 protected:
  json FindClaim(const std::string& name) const {
    return Find(kube::kPersistentVolumeClaims, kNs, name);
  }
  // Creates a claim of the plugin and returns it as VmStore does.
  Claim PutClaim(const std::string& name) {
    Put(kube::kPersistentVolumeClaims, kNs, ClaimObject(name));
    ObjectMetadata metadata;
    metadata.name = name;
    metadata.uid = support::UidOf(FindClaim(name));
    return Claim(std::move(metadata));
  }
  static json ClaimObject(const std::string& name) {
    return {{"metadata", {{"name", name}, {"labels", {{kPoolLabel, "batch"}}}}},
            {"spec", {{"volumeMode", "Block"}}}};
  }
};

TEST_F(VmStoreClaims, C10_lists_all_of_the_namespace_because_CDI_loses_labels) {
  const Claim labelled = PutClaim("batch-a-disk-0-x");
  json unlabelled = ClaimObject("batch-b-disk-0-y");
  unlabelled["metadata"].erase("labels");
  PutTerminating(kube::kPersistentVolumeClaims, kNs, unlabelled);
  const auto claims = store_.ListClaims(context_);
  ASSERT_THAT(claims, IsOk());
  ASSERT_THAT(*claims, SizeIs(2));
  EXPECT_EQ((*claims)[0].name, "batch-a-disk-0-x");
  EXPECT_EQ((*claims)[0].uid, labelled.uid);
  EXPECT_EQ((*claims)[0].pool, "batch");
  EXPECT_FALSE((*claims)[0].terminating);
  EXPECT_EQ((*claims)[1].pool, "");
  EXPECT_TRUE((*claims)[1].terminating);
  ASSERT_THAT(script_.requests(), SizeIs(1));
  EXPECT_FALSE(script_.requests()[0].query.contains("labelSelector"));
}

TEST_F(VmStoreClaims, C3_the_last_warning_of_a_volume_counts) {
  const auto put = [&](const std::string& name, const std::string& volume, const json& more) {
    json event = {{"metadata", {{"name", name}}},
                  {"regarding", {{"kind", "PersistentVolumeClaim"}, {"name", volume}}},
                  {"reason", "Failed"},
                  {"note", "words of " + name},
                  {"type", "Warning"}};
    event.merge_patch(more);
    Put(kube::kEvents, kNs, event);
  };
  put("e1", "root", {{"deprecatedLastTimestamp", "2026-11-21T02:00:00Z"}});
  put("e2", "root",
      {{"eventTime", "2026-11-21T01:00:00.000000Z"},
       {"series", {{"lastObservedTime", "2026-11-21T02:00:01.000000Z"}}}});
  put("e3", "root", {{"eventTime", "2026-11-21T01:59:00.000000Z"}});
  put("e4", "root", {{"deprecatedLastTimestamp", "2026-11-21T03:00:00Z"}, {"type", "Normal"}});
  put("e7", "root",
      {{"deprecatedLastTimestamp", "2026-11-21T04:00:00Z"},
       {"note",
        "Error saving claim: Operation cannot be fulfilled on persistentvolumeclaims "
        "\"root\": the object has been modified; please apply your changes to the latest "
        "version and try again"}});
  put("e8", "came", {{"deprecatedLastTimestamp", "2026-11-21T01:00:00Z"}});
  put("e9", "came",
      {{"deprecatedLastTimestamp", "2026-11-21T01:00:05Z"},
       {"type", "Normal"},
       {"reason", "ProvisioningSucceeded"}});
  put("e10", "again", {{"deprecatedLastTimestamp", "2026-11-21T01:00:00Z"}});
  put("e11", "again",
      {{"deprecatedLastTimestamp", "2026-11-21T00:59:00Z"},
       {"type", "Normal"},
       {"reason", "CloneSucceeded"}});
  put("e12", "cloned", {{"deprecatedLastTimestamp", "2026-11-21T01:00:00Z"}});
  put("e13", "cloned",
      {{"deprecatedLastTimestamp", "2026-11-21T01:00:05Z"},
       {"type", "Normal"},
       {"reason", "CloneSucceeded"}});
  put("e14", "at-once", {{"deprecatedLastTimestamp", "2026-11-21T01:00:00Z"}});
  put("e15", "at-once",
      {{"deprecatedLastTimestamp", "2026-11-21T01:00:00Z"},
       {"type", "Normal"},
       {"reason", "ProvisioningSucceeded"}});
  put("e16", "twice", {{"deprecatedLastTimestamp", "2026-11-21T01:00:00Z"}});
  put("e17", "twice",
      {{"deprecatedLastTimestamp", "2026-11-21T01:00:05Z"},
       {"type", "Normal"},
       {"reason", "ProvisioningSucceeded"}});
  put("e18", "twice",
      {{"deprecatedLastTimestamp", "2026-11-21T00:59:00Z"},
       {"type", "Normal"},
       {"reason", "ImportSucceeded"}});
  put("e5", "data", {{"regarding", {{"kind", "DataVolume"}}}, {"note", nullptr}});
  put("e6", "pod", {{"regarding", {{"kind", "Pod"}}}});
  const auto warnings = store_.ListVolumeWarnings(context_);
  ASSERT_THAT(warnings, IsOk());
  EXPECT_THAT(*warnings, testing::ElementsAre(testing::Pair("again", "Failed: words of e10"),
                                              testing::Pair("data", "Failed"),
                                              testing::Pair("root", "Failed: words of e2")));
  ASSERT_THAT(script_.requests(), SizeIs(2));
  EXPECT_EQ(script_.requests()[0].query.at("fieldSelector"),
            "regarding.kind=PersistentVolumeClaim");
  EXPECT_EQ(script_.requests()[1].query.at("fieldSelector"), "regarding.kind=DataVolume");
}

TEST_F(VmStoreClaims, C3_a_pod_without_a_host_says_why_for_its_vm) {
  const auto pod = [](const std::string& name, const std::string& vm, const json& scheduled) {
    return json{{"metadata",
                 {{"name", name},
                  {"labels", {{"kubevirt.io", "virt-launcher"}}},
                  {"annotations", {{"kubevirt.io/domain", vm}}}}},
                {"status", {{"conditions", json::array({{{"type", "Initialized"}}, scheduled})}}}};
  };
  const auto put = [&](const std::string& name, const std::string& vm, const json& scheduled) {
    Put(kube::kPods, kNs, pod(name, vm, scheduled));
  };
  const json none = {{"type", "PodScheduled"}, {"status", "False"}, {"message", "no host"}};
  put("waits", "batch-a", none);
  put("runs", "batch-b", {{"type", "PodScheduled"}, {"status", "True"}, {"message", "?"}});
  put("new", "batch-c", {{"type", "Ready"}, {"status", "False"}, {"message", "?"}});
  put("foreign", "", none);
  PutTerminating(kube::kPods, kNs, pod("of-an-earlier-start", "batch-d", none));
  const auto messages = store_.ListPodMessages(context_);
  ASSERT_THAT(messages, IsOk());
  EXPECT_THAT(*messages, testing::ElementsAre(testing::Pair("batch-a", "no host")));
  ASSERT_THAT(script_.requests(), SizeIs(1));
  EXPECT_EQ(script_.requests()[0].query.at("labelSelector"), "kubevirt.io=virt-launcher");
}

TEST_F(VmStoreClaims, the_events_of_a_vm_are_those_of_its_instance_too_the_newest_last) {
  const auto put = [&](const std::string& name, const std::string& kind, const json& more) {
    json event = {{"metadata", {{"name", name}}},
                  {"regarding", {{"kind", kind}, {"name", "batch-a"}}},
                  {"reason", name},
                  {"note", "words"},
                  {"type", "Normal"}};
    event.merge_patch(more);
    Put(kube::kEvents, kNs, event);
  };
  // As the API server shows one of the core group: its own times are deprecated ones.
  put("core", "VirtualMachineInstance",
      {{"eventTime", nullptr},
       {"deprecatedFirstTimestamp", "2026-11-21T01:00:00Z"},
       {"deprecatedLastTimestamp", "2026-11-21T02:00:00Z"},
       {"deprecatedCount", 7},
       {"type", "Warning"}});
  put("ours", "VirtualMachine",
      {{"eventTime", "2026-11-21T01:30:00.000000Z"}, {"note", std::string(2000, 'x')}});
  put("series", "VirtualMachine",
      {{"eventTime", "2026-11-21T01:00:00.000000Z"},
       {"deprecatedCount", 9},
       {"series", {{"count", 3}, {"lastObservedTime", "2026-11-21T03:00:00.000000Z"}}}});
  put("made", "VirtualMachine", json::object());  // tells no time but that of its creation
  put("pod", "Pod", {{"eventTime", "2026-11-21T03:00:00.000000Z"}});
  put("other", "VirtualMachine", {{"regarding", {{"name", "batch-b"}}}});
  const auto events = store_.ListEventsOf(context_, "batch-a");
  ASSERT_THAT(events, IsOk());
  ASSERT_THAT(*events, SizeIs(4));
  EXPECT_EQ((*events)[0].reason, "ours");
  EXPECT_EQ((*events)[0].note.size(), 1024U);
  EXPECT_EQ((*events)[1].reason, "core");
  EXPECT_EQ((*events)[1].type, "Warning");
  EXPECT_EQ(base::FormatRfc3339((*events)[1].last), "2026-11-21T02:00:00Z");
  for (const SeenEvent& event : *events) {
    EXPECT_NE(event.last, base::WallTime{}) << event.reason;
    EXPECT_EQ(event.count, event.reason == "series" ? 9 : event.reason == "core" ? 7 : 1);
  }
  ASSERT_THAT(script_.requests(), SizeIs(1));
  EXPECT_EQ(script_.requests()[0].query.at("fieldSelector"), "regarding.name=batch-a");
}

TEST_F(VmStoreClaims, deletes_by_uid_and_accepts_a_missing_object) {
  const Claim claim = PutClaim("c");
  EXPECT_THAT(store_.DeleteClaim(context_, claim), IsOk());
  EXPECT_EQ(FindClaim("c"), nullptr);
  const json options = json::parse(script_.requests().back().body);
  EXPECT_EQ(options["preconditions"], json({{"uid", claim.uid}}));
  EXPECT_EQ(options["propagationPolicy"], "Background");
  EXPECT_THAT(store_.DeleteClaim(context_, claim), IsOk());
}

TEST_F(VmStoreClaims, never_deletes_a_claim_that_was_recreated) {
  Claim old = PutClaim("c");
  Remove(kube::kPersistentVolumeClaims, kNs, "c");
  PutClaim("c");
  EXPECT_TRUE(kube::IsConflict(store_.DeleteClaim(context_, old)));
  old.uid.clear();
  EXPECT_THAT(store_.DeleteClaim(context_, old), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_NE(FindClaim("c"), nullptr);
}

// Harvester's webhook refuses to delete the claim of a VM that still exists.
TEST_F(VmStoreClaims, passes_on_that_a_claim_is_in_use) {
  const Claim claim = PutClaim("batch-7f3k2-disk-0-x2b4c");
  Put(kube::kVirtualMachines, kNs, SampleVmObject());
  EXPECT_THAT(store_.DeleteClaim(context_, claim),
              StatusIs(absl::StatusCode::kFailedPrecondition, testing::HasSubstr("attached")));
  EXPECT_NE(FindClaim(claim.name), nullptr);
}

}  // namespace
}  // namespace nomad_harvester::harvester
