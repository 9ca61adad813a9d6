// SPDX-License-Identifier: Apache-2.0
// VMs on the base of a template: what is read for them, what the policy overrides, what is refused.
#include "execution/template_base.h"

#include <functional>
#include <string>

#include "nomad_harvester/harvester/template_hash.h"

#include "execution/creation.h"
#include "pool_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using nlohmann::json;
using support::IsOk;
using support::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class TemplateBaseTest : public PoolFixture {
 protected:
  TemplateBaseTest() {
    policy_.vm_template = config::TemplateRef{.name = {"default", "worker"}, .version = {}};
    policy_.image = {};
    policy_.cpu_cores = 0;
    policy_.memory_bytes = 0;
    policy_.networks.clear();
    cluster_.PutObject({{"apiVersion", "harvesterhci.io/v1beta1"},
                        {"kind", "VirtualMachineTemplate"},
                        {"metadata", {{"namespace", "default"}, {"name", "worker"}}}});
  }

  static json Claim(const std::string& name, const std::string& image, const std::string& size) {
    json claim = {{"metadata", {{"name", name}}},
                  {"spec", {{"resources", {{"requests", {{"storage", size}}}}}}}};
    if (!image.empty()) claim["metadata"]["annotations"] = {{"harvesterhci.io/imageId", image}};
    return claim;
  }
  static void SetClaims(json& version, const std::vector<json>& claims) {
    version["spec"]["vm"]["metadata"]["annotations"]["harvesterhci.io/volumeClaimTemplates"] =
        json(claims).dump();
  }
  static json Version() {
    const json claims = {Claim("root", "default/image-rx7kp", "20Gi"), Claim("data", "", "5Gi")};
    const json guest = {
        {"nodeSelector", {{"disk", "nvme"}}},
        {"domain",
         {{"cpu", {{"sockets", 2}, {"cores", 3}}},
          {"resources", {{"limits", {{"cpu", "6"}, {"memory", "16Gi"}}}}},
          {"devices",
           {{"disks",
             {{{"name", "a"}, {"disk", {{"bus", "virtio"}}}},
              {{"name", "b"}, {"disk", {{"bus", "virtio"}}}}}},
            {"interfaces", {{{"name", "n"}, {"bridge", json::object()}}}}}}}},
        {"networks", {{{"name", "n"}, {"multus", {{"networkName", "default/vlan100"}}}}}},
        {"volumes",
         {{{"name", "a"}, {"persistentVolumeClaim", {{"claimName", "root"}}}},
          {{"name", "b"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}}}};
    return {{"apiVersion", "harvesterhci.io/v1beta1"},
            {"kind", "VirtualMachineTemplateVersion"},
            {"metadata", {{"namespace", "default"}, {"name", "worker-1"}}},
            {"spec",
             {{"templateId", "default/worker"},
              {"vm",
               {{"metadata",
                 {{"labels", {{"harvesterhci.io/os", "linux"}, {"team", "template"}}},
                  {"annotations", {{"harvesterhci.io/volumeClaimTemplates", claims.dump()}}}}},
                {"spec", {{"template", {{"spec", guest}}}}}}}}}};
  }
  void PutVersion(const std::function<void(json& guest, json& version)>& change = {},
                  const std::string& name = "worker-1") {
    json version = Version();
    version["metadata"]["name"] = name;
    if (change) change(version["spec"]["vm"]["spec"]["template"]["spec"], version);
    ASSERT_TRUE(cluster_.PutObject(version));
  }
  absl::StatusOr<CreationPlan> Prepare() {
    Forget();
    return PrepareCreation();
  }
};

TEST_F(TemplateBaseTest, C2_the_template_gives_what_the_policy_does_not) {
  PutVersion();
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(Effects(), IsEmpty());
  EXPECT_THAT(Sent(), UnorderedElementsAre("get virtualmachinetemplates",
                                           "get virtualmachinetemplateversions",
                                           "get virtualmachineimages", "list virtualmachineimages",
                                           "get network-attachment-definitions",
                                           "list resourcequotas", "try virtualmachines"));
  const harvester::VmSpec& vm_spec = plan->vm_spec;
  EXPECT_EQ(vm_spec.image.name, "image-rx7kp");
  EXPECT_EQ(vm_spec.cpu_cores, 6);
  EXPECT_EQ(vm_spec.memory_bytes, std::int64_t{16} << 30);
  EXPECT_EQ(vm_spec.disk_bytes, std::int64_t{20} << 30);
  ASSERT_EQ(vm_spec.networks.size(), 1U);
  EXPECT_EQ(vm_spec.networks[0].name, "vlan100");
  EXPECT_THAT(vm_spec.node_selector, ElementsAre(Pair("disk", "nvme")));
  EXPECT_THAT(vm_spec.labels, Contains(Pair("harvesterhci.io/os", "linux")));
  EXPECT_EQ(vm_spec.base.disks.size(), 2U);
  EXPECT_THAT(plan->template_notes, IsEmpty());
}

TEST_F(TemplateBaseTest, the_policys_keys_override_the_template) {
  PutVersion();
  policy_.cpu_cores = 2;
  policy_.memory_bytes = std::int64_t{4} << 30;
  policy_.disk_bytes = std::int64_t{30} << 30;
  policy_.networks = {{.management = true, .attachment = {}}};
  policy_.node_selector = {{"rack", "a"}};
  policy_.labels = {{"team", "policy"}};
  policy_.run_strategy = policy::RunStrategy::kOnce;
  policy_.data_disks = {{std::int64_t{7} << 30, "", false}};
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  const json vm = harvester::BuildVirtualMachine(plan->vm_spec, IdentityFor("web-a", "act"));
  const json& guest = vm["spec"]["template"]["spec"];
  EXPECT_EQ(guest["domain"]["cpu"], json({{"cores", 2}, {"sockets", 1}, {"threads", 1}}));
  EXPECT_EQ(guest["domain"]["resources"]["limits"], json({{"cpu", "2"}, {"memory", "4Gi"}}));
  EXPECT_TRUE(guest["networks"][0].contains("pod"));
  EXPECT_EQ(vm["spec"]["runStrategy"], "Once");
  EXPECT_EQ(vm["metadata"]["labels"]["team"], "policy");
  EXPECT_THAT(plan->vm_spec.node_selector, ElementsAre(Pair("rack", "a")));
  const std::string claims = vm["metadata"]["annotations"]["harvesterhci.io/volumeClaimTemplates"];
  EXPECT_THAT(claims, AllOf(HasSubstr("30Gi"), HasSubstr("7Gi"), Not(HasSubstr("5Gi"))));
}

TEST_F(TemplateBaseTest, C10_a_vm_and_its_disks_are_made_and_named_as_without_a_template) {
  PutVersion();
  AddVm("web-a");
  const std::vector<json> claims = cluster_.Claims();
  ASSERT_EQ(claims.size(), 2U);
  for (const json& claim : claims) {
    EXPECT_THAT(claim["metadata"]["name"].get<std::string>(), ::testing::StartsWith("web-a-disk-"));
    EXPECT_EQ(claim["metadata"]["labels"][harvester::kPoolLabel], "web");
  }
}

TEST_F(TemplateBaseTest, C2_everything_that_is_missing_is_named_at_once) {
  policy_.networks = {{.management = false, .attachment = {"default", "vlan8"}},
                      {.management = false, .attachment = {"default", "vlan9"}}};
  policy_.machine["priority_class"] = std::string("low");
  const absl::Status problem = Prepare().status();
  EXPECT_THAT(problem, StatusIs(absl::StatusCode::kFailedPrecondition));
  for (const char* const part :
       {"vm_template: template default/worker has no default version; it has no versions yet",
        "default/vlan8", "default/vlan9", "priority_class: priority class low"}) {
    EXPECT_THAT(base::Message(problem), HasSubstr(part));
  }
  EXPECT_EQ(Count("try virtualmachines"), 0U);
  EXPECT_THAT(Effects(), IsEmpty());
}

TEST_F(TemplateBaseTest, C2_keys_that_neither_has_are_named) {
  PutVersion([](json& guest, json& version) {
    guest.erase("networks");
    guest["domain"]["devices"].erase("interfaces");
    guest["domain"]["resources"]["limits"] = {{"cpu", "6"}};
    SetClaims(version, {Claim("root", "", "20Gi"), Claim("data", "", "5Gi")});
  });
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("no hard disk from an image")));
  PutVersion(
      [](json& guest, json& version) {
        guest.erase("networks");
        guest["domain"]["resources"]["limits"] = {{"cpu", "6"}};
        json root = Claim("root", "x", "20Gi");
        root["metadata"]["annotations"]["harvesterhci.io/imageId"] = "";
        SetClaims(version, {root, Claim("data", "", "5Gi")});
      },
      "worker-2");
  policy_.vm_template->version = 2;
  EXPECT_THAT(Prepare(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("does not say image, memory_request, networks; add these keys")));
  policy_.image = {"default", "ubuntu-24.04"};
  policy_.memory_bytes = std::int64_t{4} << 30;
  policy_.networks = {{.management = true, .attachment = {}}};
  EXPECT_THAT(Prepare(), IsOk());
}

TEST_F(TemplateBaseTest, C2_sizes_of_a_vm_that_may_change_them_are_not_overridden) {
  PutVersion([](json&, json& version) {
    version["spec"]["vm"]["metadata"]["annotations"]["harvesterhci.io/enableCPUAndMemoryHotplug"] =
        "true";
  });
  EXPECT_THAT(Prepare(), IsOk());
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("remove cpu_request and memory_request"));
  policy_.cpu_cores = 2;
  EXPECT_THAT(Prepare(), refused);
  policy_.cpu_cores = 0;
  policy_.memory_bytes = std::int64_t{2} << 30;
  EXPECT_THAT(Prepare(), refused);
}

TEST_F(TemplateBaseTest, another_disk_from_an_image_is_made_of_it_and_as_large_as_it_needs) {
  const auto with_two = [](json&, json& version) {
    SetClaims(version,
              {Claim("root", "default/image-rx7kp", "20Gi"), Claim("data", "default/more", "1Gi")});
  };
  const auto put_image = [this](const char* imported) {
    cluster_.PutObject({{"apiVersion", "harvesterhci.io/v1beta1"},
                        {"kind", "VirtualMachineImage"},
                        {"metadata", {{"namespace", "default"}, {"name", "more"}}},
                        {"spec", {{"displayName", "more"}}},
                        {"status",
                         {{"storageClassName", "lh-more"},
                          {"virtualSize", std::int64_t{2} << 30},
                          {"conditions", {{{"type", "Imported"}, {"status", imported}}}}}}});
  };
  put_image("True");
  PutVersion(with_two);
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->vm_spec.base.disks[1].storage_class, "lh-more");
  EXPECT_EQ(plan->vm_spec.base.disks[1].bytes, std::int64_t{2} << 30);
  put_image("False");
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("default/more cannot be used")));
}

TEST_F(TemplateBaseTest, another_version_is_drift_of_the_part_template) {
  PutVersion();
  const auto first = Prepare();
  ASSERT_THAT(first, IsOk());
  const auto again = Prepare();
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->vm_spec.template_hash, first->vm_spec.template_hash);
  PutVersion({}, "worker-2");
  policy_.vm_template->version = 2;
  const auto second = Prepare();
  ASSERT_THAT(second, IsOk());
  EXPECT_TRUE(harvester::IsDrift(first->vm_spec.template_hash, second->vm_spec.template_hash));
  EXPECT_THAT(
      harvester::DriftedParts(first->vm_spec.template_parts, second->vm_spec.template_parts),
      ElementsAre("template"));
}

TEST_F(TemplateBaseTest, what_is_left_out_is_noted_unless_the_policy_says_it) {
  PutVersion([](json& guest, json& version) {
    guest["accessCredentials"] = {{{"userPassword", json::object()}}};
    version["spec"]["keyPairIds"] = {"default/ops"};
  });
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->template_notes,
              ElementsAre("the access credentials", HasSubstr("SSH keys default/ops")));
  cluster_.PutObject({{"apiVersion", "harvesterhci.io/v1beta1"},
                      {"kind", "KeyPair"},
                      {"metadata", {{"namespace", "default"}, {"name", "ops"}}},
                      {"spec", {{"publicKey", "ssh-ed25519 AAAA ops"}}}});
  policy_.ssh_keys = {{"default", "ops"}};
  const auto with_keys = Prepare();
  ASSERT_THAT(with_keys, IsOk());
  EXPECT_THAT(with_keys->template_notes, ElementsAre("the access credentials"));
}

TEST_F(TemplateBaseTest, gpus_are_given_as_the_version_of_harvester_takes_them) {
  PutVersion([](json& guest, json&) {
    guest["domain"]["devices"]["gpus"] = {{{"name", "g"}, {"deviceName", "nvidia.com/A10"}}};
  });
  const auto newer = Prepare();
  ASSERT_THAT(newer, IsOk());
  EXPECT_EQ(Count("get settings"), 1U);
  const auto devices = [](const CreationPlan& plan) {
    return harvester::BuildVirtualMachine(
        plan.vm_spec, IdentityFor("web-a", "act"))["spec"]["template"]["spec"]["domain"]["devices"];
  };
  EXPECT_FALSE(devices(*newer).contains("gpus"));
  EXPECT_EQ(devices(*newer)["hostDevices"][0]["deviceName"], "nvidia.com/A10");
  cluster_.PutObject({{"apiVersion", "harvesterhci.io/v1beta1"},
                      {"kind", "Setting"},
                      {"metadata", {{"name", "server-version"}}},
                      {"value", "v1.7.2"}});
  const auto older = Prepare();
  ASSERT_THAT(older, IsOk());
  EXPECT_FALSE(devices(*older).contains("hostDevices"));
  EXPECT_EQ(devices(*older)["gpus"][0]["deviceName"], "nvidia.com/A10");
}

TEST_F(TemplateBaseTest, C2_a_right_that_is_missing_is_named_and_asked_for_only_with_the_key) {
  PutVersion();
  cluster_.Forbid("get", "virtualmachinetemplates");
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kPermissionDenied,
                                  AllOf(HasSubstr("vm_template: template default/worker"),
                                        HasSubstr("virtualmachinetemplates"))));
  EXPECT_THAT(Effects(), IsEmpty());
  policy_ = *config::ParsePoolPolicy(PolicyValues());
  EXPECT_THAT(Prepare(), IsOk());
}

TEST_F(TemplateBaseTest, a_request_that_failed_is_the_only_error) {
  PutVersion();
  Next("get virtualmachinetemplateversions", Failed());
  policy_.machine["priority_class"] = std::string("low");
  const absl::Status problem = Prepare().status();
  EXPECT_THAT(problem, StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("version worker-1")));
  EXPECT_THAT(base::Message(problem), Not(HasSubstr("low")));
}

TEST_F(TemplateBaseTest, what_few_templates_say_counts_too_unless_the_policy_says_otherwise) {
  cluster_.PutObject({{"apiVersion", "scheduling.k8s.io/v1"},
                      {"kind", "PriorityClass"},
                      {"metadata", {{"name", "high"}}},
                      {"value", 1000}});
  PutVersion([](json& guest, json& version) {
    guest["priorityClassName"] = "high";
    guest["domain"]["devices"]["hostDevices"] = {{{"name", "h"}, {"deviceName", "a.org/hsm"}}};
    json& vm = version["spec"]["vm"];
    vm["metadata"]["annotations"]["harvesterhci.io/reservedMemory"] = "256Mi";
    vm["spec"]["runStrategy"] = "Once";
  });
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(policy::TextOf(plan->vm_spec.machine, "priority_class"), "high");
  EXPECT_THAT(plan->vm_spec.host_devices,
              ElementsAre(policy::DeviceRequest{.resource = "a.org/hsm", .count = 1}));
  EXPECT_THAT(plan->vm_spec.annotations, Contains(Pair("harvesterhci.io/reservedMemory", "256Mi")));
  EXPECT_EQ(plan->vm_spec.run_strategy, policy::RunStrategy::kOnce);
}

TEST_F(TemplateBaseTest, the_policys_firmware_cpu_model_and_grace_period_replace_the_templates) {
  PutVersion([](json& guest, json&) {
    guest["terminationGracePeriodSeconds"] = 300;
    guest["domain"]["cpu"]["model"] = "EPYC";
    guest["domain"]["firmware"]["bootloader"]["efi"] = {{"secureBoot", true}};
    guest["domain"]["features"] = {{"smm", {{"enabled", true}}}};
  });
  const auto guest_of = [&] {
    const auto plan = Prepare();
    EXPECT_THAT(plan, IsOk());
    return plan.ok() ? harvester::BuildVirtualMachine(
                           plan->vm_spec, IdentityFor("web-a", "act"))["spec"]["template"]["spec"]
                     : json();
  };
  const json plain = guest_of();
  EXPECT_EQ(plain["domain"]["cpu"]["model"], "EPYC");
  EXPECT_EQ(plain["terminationGracePeriodSeconds"], 300);
  policy_.firmware = policy::Firmware::kBios;
  policy_.machine["cpu_model"] = std::string("host-passthrough");
  policy_.machine["termination_grace_period"] = std::int64_t{60};
  const json changed = guest_of();
  EXPECT_EQ(changed["domain"]["cpu"]["model"], "host-passthrough");
  EXPECT_EQ(changed["terminationGracePeriodSeconds"], 60);
  EXPECT_FALSE(changed["domain"]["firmware"].contains("bootloader"));
  EXPECT_THAT(changed["domain"].dump(), Not(HasSubstr("smm")));
}

TEST_F(TemplateBaseTest, a_disk_is_as_large_as_its_image_even_if_the_template_says_less) {
  PutVersion([](json&, json& version) {
    SetClaims(version, {Claim("root", "default/image-rx7kp", "1Mi"),
                        Claim("data", "default/image-rx7kp", "1Mi")});
  });
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  EXPECT_GE(plan->vm_spec.disk_bytes, plan->vm_spec.image.virtual_size);
  ASSERT_EQ(plan->vm_spec.base.disks.size(), 2U);
  EXPECT_GE(plan->vm_spec.base.disks[1].bytes, plan->vm_spec.image.virtual_size);
}

TEST_F(TemplateBaseTest, C2_the_storage_class_of_a_templates_disk_is_checked) {
  const auto with_modes = [](const json& modes) {
    return [modes](json&, json& version) {
      json data = Claim("data", "", "5Gi");
      data["spec"]["storageClassName"] = "local";
      data["spec"]["accessModes"] = modes;
      SetClaims(version, {Claim("root", "default/image-rx7kp", "20Gi"), data});
    };
  };
  PutVersion(with_modes(json::array({"ReadWriteMany"})));
  EXPECT_THAT(Prepare(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("vm_template: storage class local")));
  cluster_.PutObject({{"apiVersion", "storage.k8s.io/v1"},
                      {"kind", "StorageClass"},
                      {"metadata", {{"name", "local"}}},
                      {"provisioner", "lvm.driver.harvesterhci.io"}});
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("make its access mode ReadWriteOnce")));
  PutVersion(with_modes(json::array({"ReadWriteOnce"})), "worker-2");
  policy_.vm_template->version = 2;
  EXPECT_THAT(Prepare(), IsOk());
}

}  // namespace
}  // namespace nomad_harvester::scaling
