// SPDX-License-Identifier: Apache-2.0
// How many more VMs the quotas allow.
#include "nomad_harvester/harvester/quota.h"

#include <cstdint>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "harvester/store_fixture.h"
#include "object_fields.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

ResourceQuota ParseResourceQuota(const nlohmann::json& object) {
  return ResourceQuotaFields().Read(object);
}

using nlohmann::json;
using support::IsOk;
using testing::HasSubstr;
using testing::IsEmpty;

json Quota(const json& hard, const json& used) {
  return {{"metadata", {{"name", "team"}}},
          {"spec", {{"hard", hard}}},
          {"status", {{"hard", hard}, {"used", used}}}};
}

VmSpec DefaultVmSpec() {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.cpu_cores = 2;
  vm_spec.memory_bytes = std::int64_t{4} << 30;
  vm_spec.disk_bytes = std::int64_t{10} << 30;
  vm_spec.image.storage_class = "longhorn-ubuntu";
  return vm_spec;
}

std::optional<QuotaRoom> RoomIn(const json& hard, const json& used) {
  return FindQuotaRoom({ParseResourceQuota(Quota(hard, used))}, DefaultVmSpec(), {});
}

TEST(QuotaRoom, C2_is_what_is_left_divided_by_what_a_vm_takes) {
  struct Row {
    const char* resource;
    const char* hard;
    const char* used;
    std::int64_t room;
  };
  for (const Row& row : {
           Row{"limits.cpu", "10", "5", 2},
           Row{"limits.cpu", "10", "4500m", 2},
           Row{"limits.cpu", "10545m", "4500m", 3},
           Row{"limits.cpu", "10544m", "4500m", 2},
           Row{"limits.cpu", "10", "10", 0},
           Row{"limits.memory", "16Gi", "4Gi", 2},
           Row{"limits.memory", "18Gi", "4Gi", 3},
           Row{"limits.memory", "17179869184", "0", 3},
           Row{"requests.storage", "1Ti", "0", 102},
           Row{"longhorn-ubuntu.storageclass.storage.k8s.io/requests.storage", "25Gi", "0", 2},
           Row{"longhorn-ubuntu.storageclass.storage.k8s.io/persistentvolumeclaims", "3", "2", 1},
           Row{"persistentvolumeclaims", "5", "1", 4},
           Row{"pods", "5", "4", 1},
           Row{"count/secrets", "100", "98", 2},
           Row{"count/virtualmachines.kubevirt.io", "4", "3", 1},
           Row{"pods", "5", "9", 0},
       }) {
    const auto room = RoomIn({{row.resource, row.hard}}, {{row.resource, row.used}});
    ASSERT_TRUE(room.has_value()) << row.resource;
    EXPECT_EQ(room->vms, row.room) << row.resource << " " << row.hard << " " << row.used;
    EXPECT_THAT(room->limit, HasSubstr(std::string("ResourceQuota team: ") + row.used + " of " +
                                       row.hard + " " + row.resource));
  }
}

TEST(QuotaRoom, C2_data_disks_count_with_the_root_disk_and_by_their_class) {
  VmSpec vm_spec = DefaultVmSpec();  // 10 Gi of class longhorn-ubuntu
  constexpr std::int64_t kGi = std::int64_t{1} << 30;
  vm_spec.data_disks = {{20 * kGi, "", false}, {30 * kGi, "lvm", true}, {30 * kGi, "lvm", true}};
  const auto room = [&](const std::string& resource, const char* hard) {
    const auto found = FindQuotaRoom(
        {ParseResourceQuota(Quota({{resource, hard}}, {{resource, "0"}}))}, vm_spec, {});
    return found.has_value() ? found->vms : -1;
  };
  EXPECT_EQ(room("requests.storage", "200Gi"), 2);
  EXPECT_EQ(room("persistentvolumeclaims", "11"), 2);
  EXPECT_EQ(room("lvm.storageclass.storage.k8s.io/requests.storage", "119Gi"), 1);
  EXPECT_EQ(room("lvm.storageclass.storage.k8s.io/persistentvolumeclaims", "7"), 3);
  EXPECT_EQ(room("longhorn-ubuntu.storageclass.storage.k8s.io/requests.storage", "40Gi"), 4);
  vm_spec.data_disks.assign(3, {std::numeric_limits<std::int64_t>::max(), "", false});
  EXPECT_EQ(room("requests.storage", "1Ti"), 0) << "no overflow";
}

TEST(QuotaRoom, C2_a_disk_of_a_template_that_is_no_claim_takes_none) {
  VmSpec vm_spec = DefaultVmSpec();
  const auto room = [&] {
    return FindQuotaRoom({ParseResourceQuota(Quota({{"persistentvolumeclaims", "4"}},
                                                   {{"persistentvolumeclaims", "0"}}))},
                         vm_spec, {})
        ->vms;
  };
  vm_spec.base.disks.resize(2);  // the root disk, and an empty CD-ROM drive
  EXPECT_EQ(room(), 4);
  vm_spec.base.disks[1].claim = std::make_shared<const json>(json::object());
  EXPECT_EQ(room(), 2);
}

TEST(QuotaRoom, the_tightest_line_of_all_quotas_decides) {
  const std::vector<ResourceQuota> quotas = {
      ParseResourceQuota(
          Quota({{"limits.cpu", "100"}, {"pods", "9"}}, {{"limits.cpu", "0"}, {"pods", "0"}})),
      ParseResourceQuota(Quota({{"limits.memory", "12Gi"}}, {{"limits.memory", "0"}}))};
  const auto room = FindQuotaRoom(quotas, DefaultVmSpec(), {});
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->vms, 2);
  EXPECT_THAT(room->limit, HasSubstr("limits.memory"));
}

// Harvester 1.8.0 and KubeVirt 1.7.0 make a pod of 1557364928 bytes and 1015m for it.
TEST(QuotaRoom, C2_a_vm_takes_what_its_pod_takes) {
  VmSpec vm_spec = DefaultVmSpec();
  vm_spec.cpu_cores = 1;
  vm_spec.memory_bytes = std::int64_t{1} << 30;
  const auto room = [&](const char* resource, const char* hard) {
    return FindQuotaRoom({ParseResourceQuota(Quota({{resource, hard}}, {{resource, "0"}}))},
                         vm_spec, {})
        ->vms;
  };
  EXPECT_EQ(room("limits.memory", "1557364928"), 1);
  EXPECT_EQ(room("limits.memory", "1557364927"), 0);
  EXPECT_EQ(room("limits.cpu", "1015m"), 1);
  EXPECT_EQ(room("limits.cpu", "1014m"), 0);
  vm_spec.cpu_cores = 5;
  EXPECT_EQ(room("limits.memory", "1607700000"), 1) << "a core needs 12 MiB more";
  EXPECT_EQ(room("limits.memory", "1607690000"), 0);
  vm_spec.cpu_cores = 1;
  vm_spec.gpus = {{}};
  EXPECT_EQ(room("limits.memory", "3000Mi"), 0) << "a device needs 1.5 GiB more";
  vm_spec.gpus.clear();
  EXPECT_EQ(room("limits.memory", "3000Mi"), 2);
  vm_spec.host_devices = {{}};
  EXPECT_EQ(room("limits.memory", "3000Mi"), 0) << "one of another kind, too";
}

TEST(QuotaRoom, C2_a_vm_requests_what_the_dry_run_says) {
  VmNeed need;
  need.amounts = {{kCpu, 250}, {kMemory, std::int64_t{3} << 30}, {kPods, 1}};
  const auto room = [&](const char* resource, const char* hard) {
    return FindQuotaRoom({ParseResourceQuota(Quota({{resource, hard}}, {{resource, "0"}}))},
                         DefaultVmSpec(), need)
        ->vms;
  };
  EXPECT_EQ(room("requests.cpu", "499m"), 1);
  EXPECT_EQ(room("cpu", "500m"), 2);
  EXPECT_EQ(room("requests.memory", "9Gi"), 3);
  EXPECT_EQ(room("memory", "9215Mi"), 2);
}

TEST(QuotaRoom, what_is_not_known_limits_nothing) {
  EXPECT_EQ(FindQuotaRoom({}, DefaultVmSpec(), {}), std::nullopt);
  EXPECT_EQ(RoomIn({{"services", "0"}}, {{"services", "0"}}), std::nullopt);
  EXPECT_EQ(RoomIn({{"requests.cpu", "0"}}, {{"requests.cpu", "0"}}), std::nullopt)
      << "only Harvester's answer to the dry run says what it requests";
  EXPECT_EQ(RoomIn({{"pods", "many"}}, {{"pods", "0"}}), std::nullopt);
  EXPECT_EQ(RoomIn({{"pods", "1"}}, json::object()), std::nullopt) << "not counted yet";
  EXPECT_EQ(RoomIn({{"pods", 1}}, {{"pods", 0}}), std::nullopt);
  EXPECT_EQ(RoomIn({{"other.storageclass.storage.k8s.io/requests.storage", "0"}},
                   {{"other.storageclass.storage.k8s.io/requests.storage", "0"}}),
            std::nullopt);
}

TEST(QuotaRoom, a_quota_with_scopes_is_not_ours_to_judge) {
  json scoped = Quota({{"pods", "0"}}, {{"pods", "0"}});
  scoped["spec"]["scopes"] = json::array({"BestEffort"});
  EXPECT_THAT(ParseResourceQuota(scoped).lines, IsEmpty());
  json selected = Quota({{"pods", "0"}}, {{"pods", "0"}});
  selected["spec"]["scopeSelector"] = {{"matchExpressions", json::array({json::object()})}};
  EXPECT_THAT(ParseResourceQuota(selected).lines, IsEmpty());
}

TEST(QuotaRoom, P2_survives_objects_that_are_none) {
  for (const json& bad : {json(), json(7), json::array(), json{{"status", 1}},
                          json{{"status", {{"hard", json::array()}, {"used", 1}}}},
                          json{{"status", {{"hard", {{"pods", "1"}}}, {"used", 1}}}}}) {
    EXPECT_THAT(ParseResourceQuota(bad).lines, IsEmpty()) << bad;
  }
  const auto huge = RoomIn({{"limits.memory", "9E"}}, {{"limits.memory", "0"}});
  EXPECT_EQ(huge, std::nullopt);
}

class VmStoreQuotas : public StoreTest {};

TEST_F(VmStoreQuotas, lists_those_of_its_namespace) {
  Put(kube::kResourceQuotas, kNs, Quota({{"pods", "2"}}, {{"pods", "1"}}));
  Put(kube::kResourceQuotas, "other", Quota({{"pods", "2"}}, {{"pods", "2"}}));
  const auto quotas = store_.ListQuotas(context_);
  ASSERT_THAT(quotas, IsOk());
  ASSERT_EQ(quotas->size(), 1U);
  EXPECT_EQ(quotas->front().name, "team");
  EXPECT_EQ(quotas->front().lines.at("pods").used, 1000);
}

}  // namespace
}  // namespace nomad_harvester::harvester
