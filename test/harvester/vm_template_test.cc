// SPDX-License-Identifier: Apache-2.0
// What is read of a template, and what a policy's keys take out of it. The whole VMs:
// golden_test.cc.
#include "nomad_harvester/harvester/vm_template.h"

#include <functional>
#include <string>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::StatusIs;
using ::testing::_;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

json& GuestOf(json& version) { return version["spec"]["vm"]["spec"]["template"]["spec"]; }

VmTemplate Read(const std::function<void(json&)>& change = {}) {
  json version = SampleTemplateVersion();
  if (change) change(version);
  auto read = ReadVmTemplate(version, "nomad");
  EXPECT_THAT(read, IsOk());
  return read.ok() ? *std::move(read) : VmTemplate();
}

json Build(const VmTemplate& base, const TemplateOverrides& overrides = {}) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.base = Override(base.base, overrides);
  return BuildVirtualMachine(vm_spec, SampleIdentity());
}

TEST(VmTemplate, gives_what_keys_of_a_policy_say_as_they_say_it) {
  const VmTemplate read = Read();
  EXPECT_EQ(read.id, "default/worker-x7 (u-7)");
  EXPECT_EQ(read.cpu_cores, 4);
  EXPECT_EQ(read.memory_bytes, std::int64_t{4} << 30);
  ASSERT_EQ(read.networks.size(), 2U);
  EXPECT_TRUE(read.networks[0].management);
  EXPECT_EQ(read.networks[1].ns + "/" + read.networks[1].name, "default/vlan100");
  EXPECT_THAT(read.host_devices,
              ElementsAre(policy::DeviceRequest{.resource = "example.org/hsm", .count = 2}));
  EXPECT_THAT(read.gpus,
              ElementsAre(policy::DeviceRequest{.resource = "nvidia.com/GA102GL_A10", .count = 1}));
  EXPECT_THAT(read.node_selector, ElementsAre(Pair("disk", "nvme")));
  EXPECT_EQ(policy::TextOf(read.machine, "priority_class"), "high");
  EXPECT_FALSE(read.hotplug);
  EXPECT_THAT(read.ssh_keys, ElementsAre("default/ops"));
}

TEST(VmTemplate, the_root_disk_is_the_first_hard_disk_from_an_image) {
  const VmTemplate read = Read();
  ASSERT_EQ(read.base.disks.size(), 4U);
  const VmBase::Disk& root = read.base.disks.front();
  EXPECT_EQ(root.image.ns + "/" + root.image.name, "default/image-rx7kp");
  EXPECT_EQ(root.bytes, std::int64_t{50} << 30);
  EXPECT_EQ((*root.claim)["spec"]["accessModes"], json::array({"ReadWriteOnce"}));
  EXPECT_EQ(root.claim->dump().find("pvc-of-one-vm"), std::string::npos);
}

TEST(VmTemplate, keeps_what_no_key_says) {
  const json vm = Build(Read());
  const json& guest = vm["spec"]["template"]["spec"];
  EXPECT_EQ(guest["tolerations"][0]["key"], "example.org/batch");
  EXPECT_EQ(guest["evictionStrategy"], "LiveMigrate");
  EXPECT_EQ(guest["terminationGracePeriodSeconds"], 300);
  EXPECT_EQ(guest["domain"]["memory"], json({{"hugepages", {{"pageSize", "2Mi"}}}}));
  EXPECT_EQ(guest["domain"]["firmware"]["bootloader"]["efi"]["secureBoot"], true);
  EXPECT_EQ(guest["domain"]["features"]["smm"]["enabled"], true);
  EXPECT_TRUE(guest["domain"]["devices"].contains("tpm"));
  EXPECT_EQ(guest["domain"]["devices"]["inputs"][0]["name"], "pointer");
  EXPECT_EQ(guest["domain"]["devices"]["interfaces"][0]["model"], "e1000");
  EXPECT_EQ(vm["spec"]["template"]["metadata"]["annotations"]["example.org/note"], "kept");
  EXPECT_EQ(vm["spec"]["template"]["metadata"]["labels"]["example.org/scrape"], "yes");
  EXPECT_EQ(vm["spec"]["template"]["metadata"]["labels"]["harvesterhci.io/vmName"], "batch-7f3k2");
}

// For the API server they are absent members; merged, they would take the VM's own away: without
// its firmware UUID a VM is no member, and its pool grows for ever.
TEST(VmTemplate, nulls_in_it_are_members_that_are_absent) {
  const json whole = Build(Read());
  const auto damaged = [](const std::function<void(json&)>& change) {
    return Build(Read([&](json& version) { change(GuestOf(version)["domain"]); }));
  };
  const json vm = damaged([](json& domain) { domain["firmware"] = nullptr; });
  EXPECT_EQ(vm["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"],
            SampleIdentity().firmware_uuid);
  for (const char* const member : {"cpu", "resources", "memory"}) {
    const json other = damaged([&](json& domain) { domain[member] = nullptr; });
    EXPECT_TRUE(other["spec"]["template"]["spec"]["domain"].contains("resources")) << member;
  }
  EXPECT_EQ(Build(Read([](json& version) {
              json& annotations = version["spec"]["vm"]["metadata"]["annotations"];
              json claims = json::parse(
                  annotations["harvesterhci.io/volumeClaimTemplates"].get<std::string>());
              for (json& claim : claims) {
                claim["metadata"]["creationTimestamp"] = nullptr;
                claim["spec"]["dataSourceRef"] = nullptr;
              }
              annotations["harvesterhci.io/volumeClaimTemplates"] = claims.dump();
            })),
            whole);
}

TEST(VmTemplate, a_volume_with_the_name_of_a_disk_of_ours_is_refused) {
  for (const char* const name : {"disk-7", "disk-12"}) {
    json version = SampleTemplateVersion();
    GuestOf(version)["volumes"].push_back({{"name", name}, {"configMap", {{"name", "settings"}}}});
    EXPECT_THAT(ReadVmTemplate(version, "nomad"),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr(std::string("volume ") + name + " has no disk")));
  }
}

TEST(VmTemplate, is_without_that_by_which_a_deployment_tool_knows_and_prunes_its_objects) {
  const VmTemplate read = Read([](json& version) {
    json& made = version["spec"]["vm"];
    for (const char* const kind : {"labels", "annotations"}) {
      for (const char* const key :
           {"objectset.rio.cattle.io/hash", "fleet.cattle.io/bundle-id",
            "argocd.argoproj.io/tracking-id", "kustomize.toolkit.fluxcd.io/name",
            "helm.toolkit.fluxcd.io/name", "meta.helm.sh/release-name", "helm.sh/chart",
            "app.kubernetes.io/instance"}) {
        made["metadata"][kind][key] = "theirs";
        made["spec"]["template"]["metadata"][kind][key] = "theirs";
      }
    }
    made["metadata"]["labels"]["app.kubernetes.io/name"] = "kept";
  });
  EXPECT_THAT(read.labels, Contains(Pair("app.kubernetes.io/name", "kept")));
  for (const auto& shared : {read.labels, read.annotations}) {
    EXPECT_THAT(shared, Not(Contains(Pair(_, "theirs"))));
  }
  EXPECT_EQ(Build(read).dump().find("theirs"), std::string::npos);
}

TEST(VmTemplate, is_without_what_belongs_to_one_vm_or_its_cloud_init) {
  const VmTemplate read = Read();
  EXPECT_THAT(read.labels, UnorderedElementsAre(Pair("harvesterhci.io/os", "linux"),
                                                Pair("harvesterhci.io/creator", "harvester"),
                                                Pair("tag.harvesterhci.io/stage", "test")));
  EXPECT_THAT(read.annotations, ElementsAre(Pair("harvesterhci.io/reservedMemory", "256Mi")));
  const std::string text = Build(read).dump();
  for (const char* const one : {"52:54:00:aa:bb:cc", "7a1d3c5e", "one-vm", "tpl-", "default/ops",
                                "\"guest\"", "maxSockets", "\"requests\":{\"cpu\""}) {
    EXPECT_EQ(text.find(one), std::string::npos) << one;
  }
  const json guest = Build(read)["spec"]["template"]["spec"];
  EXPECT_EQ(guest["domain"]["firmware"]["uuid"], SampleIdentity().firmware_uuid);
  EXPECT_EQ(guest["volumes"].back()["cloudInitNoCloud"]["secretRef"]["name"],
            "batch-7f3k2-cloudinit");
}

TEST(VmTemplate, its_host_labels_and_affinity_and_those_of_the_pool_hold_together) {
  const VmTemplate read = Read();
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.base = read.base;
  vm_spec.node_selector = read.node_selector;
  const json guest = BuildVirtualMachine(vm_spec, SampleIdentity())["spec"]["template"]["spec"];
  EXPECT_FALSE(guest.contains("nodeSelector"));
  const json& terms = guest["affinity"]["nodeAffinity"]
                           ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  ASSERT_EQ(terms.size(), 1U);
  EXPECT_EQ(terms[0]["matchExpressions"][0]["key"], "rack");
  EXPECT_EQ(terms[0]["matchExpressions"][1]["key"], "disk");
  EXPECT_EQ(guest["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
                .size(),
            2U);
}

TEST(VmTemplate, each_key_of_a_policy_takes_its_own_place) {
  const json plain = Build(Read());
  struct Case {
    TemplateOverrides overrides;
    std::string gone;
  };
  for (const Case& c :
       std::vector<Case>{{{.cpu = true}, R"("threads":2)"},
                         {{.memory = true}, R"("memory":"4Gi")"},
                         {{.networks = true}, R"("e1000")"},
                         {{.networks = true}, R"([\"nic-a\"])"},
                         {{.data_disks = true}, R"("fast")"},
                         {{.firmware = true}, R"("secureBoot")"},
                         {{.firmware = true}, R"("smm")"},
                         {{.machine = {{"cpu_model", std::string("x")}}}, R"("EPYC")"},
                         {{.machine = {{"termination_grace_period", std::int64_t{1}}}}, "300"}}) {
    std::string text = Build(Read(), c.overrides).dump();
    std::string before = plain.dump();
    // The claims are JSON in a text.
    for (std::string* both : {&text, &before}) {
      for (std::size_t at = 0; (at = both->find("\\\"", at)) != std::string::npos;) {
        if (c.gone[0] == '[') break;
        both->erase(at, 1);
      }
    }
    EXPECT_NE(before.find(c.gone), std::string::npos) << c.gone;
    EXPECT_EQ(text.find(c.gone), std::string::npos) << c.gone;
  }
}

TEST(VmTemplate, data_disks_replace_hard_disks_and_leave_drives) {
  const VmBase changed = Override(Read().base, {.data_disks = true});
  ASSERT_EQ(changed.disks.size(), 3U);
  EXPECT_FALSE(changed.disks[1].hard_disk);
  EXPECT_FALSE(changed.disks[2].hard_disk);
}

TEST(VmTemplate, sizes_that_may_change_while_a_vm_runs_stay_as_they_are) {
  const VmTemplate read = Read([](json& version) {
    version["spec"]["vm"]["metadata"]["annotations"]["harvesterhci.io/enableCPUAndMemoryHotplug"] =
        "true";
  });
  EXPECT_TRUE(read.hotplug);
  const json domain = Build(read)["spec"]["template"]["spec"]["domain"];
  EXPECT_EQ(domain["cpu"]["maxSockets"], 2);
  EXPECT_EQ(domain["memory"]["guest"], "4Gi");
}

TEST(VmTemplate, its_run_strategy_counts_if_a_vm_boots_with_it) {
  EXPECT_EQ(Read().run_strategy, std::nullopt);
  EXPECT_THAT(Read().notes, ElementsAre(HasSubstr("run strategy Halted")));
  const auto with = [](const char* key, const json& value) {
    return Read([&](json& version) {
      version["spec"]["vm"]["spec"].erase("runStrategy");
      version["spec"]["vm"]["spec"][key] = value;
    });
  };
  EXPECT_EQ(with("runStrategy", "Once").run_strategy, policy::RunStrategy::kOnce);
  EXPECT_EQ(with("running", true).run_strategy, policy::RunStrategy::kAlways);
  EXPECT_THAT(with("runStrategy", "Once").notes, IsEmpty());
  EXPECT_FALSE(Build(with("running", true))["spec"].contains("running"));
}

TEST(VmTemplate, what_is_left_out_is_noted) {
  const VmTemplate read = Read([](json& version) {
    GuestOf(version)["accessCredentials"] = {{{"sshPublicKey", json::object()}}};
    json& annotations = version["spec"]["vm"]["metadata"]["annotations"];
    annotations["static-ip.harvesterhci.io/nic-a"] = "10.0.0.9";
    json claims =
        json::parse(annotations["harvesterhci.io/volumeClaimTemplates"].get<std::string>());
    claims[1]["spec"]["dataSource"] = {{"kind", "VolumeSnapshot"}, {"name", "s"}};
    annotations["harvesterhci.io/volumeClaimTemplates"] = claims.dump();
  });
  EXPECT_THAT(read.notes,
              UnorderedElementsAre(HasSubstr("static-ip.harvesterhci.io/nic-a"),
                                   HasSubstr("dataSource of volume root"),
                                   HasSubstr("run strategy"), HasSubstr("access credentials")));
  EXPECT_EQ(Build(read).dump().find("accessCredentials"), std::string::npos);
}

TEST(VmTemplate, C2_everything_that_several_vms_cannot_have_is_refused_at_once) {
  json version = SampleTemplateVersion();
  json& guest = GuestOf(version);
  guest["volumes"][2]["persistentVolumeClaim"]["claimName"] = "mine";
  guest["networks"][1] = {{"name", "nic-a"}, {"other", json::object()}};
  guest["domain"]["devices"]["gpus"][0]["virtualGPUOptions"] = {{"display", json::object()}};
  version["spec"]["vm"]["spec"]["dataVolumeTemplates"] = {{{"metadata", {{"name", "dv"}}}}};
  const auto read = ReadVmTemplate(version, "nomad");
  ASSERT_THAT(read,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("existing claim mine")));
  for (const char* const part :
       {"network nic-a is neither", "gpus: gpu1 says more than", "dataVolumeTemplates"}) {
    EXPECT_THAT(base::Message(read.status()), HasSubstr(part));
  }
}

TEST(VmTemplate, C2_one_that_would_have_to_be_installed_first_is_refused) {
  json version = SampleTemplateVersion();
  GuestOf(version)["domain"]["devices"]["disks"].erase(1);
  EXPECT_THAT(ReadVmTemplate(version, "nomad"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                         HasSubstr("no hard disk from an image")));
}

TEST(VmTemplate, C2_of_unexpected_shape_is_refused_and_never_followed) {
  const json sample = SampleTemplateVersion();
  for (const char* const path :
       {"/spec/vm", "/spec/vm/spec", "/spec/vm/spec/template", "/spec/vm/spec/template/spec",
        "/spec/vm/spec/template/spec/domain", "/spec/vm/spec/template/spec/domain/devices",
        "/spec/vm/spec/template/metadata",
        "/spec/vm/metadata/annotations/harvesterhci.io~1volumeClaimTemplates"}) {
    json version = sample;
    version[json::json_pointer(path)] = 7;
    EXPECT_THAT(ReadVmTemplate(version, "nomad"), StatusIs(absl::StatusCode::kFailedPrecondition))
        << path;
  }
  EXPECT_FALSE(ReadVmTemplate(json::object(), "nomad").ok());
}

// Whoever may write templates may write anything: each member in turn is of another type.
TEST(VmTemplate, survives_any_member_of_another_type) {
  const json sample = SampleTemplateVersion();
  const json flat = sample.flatten();
  std::vector<std::string> pointers;
  for (const auto& [pointer, value] : flat.items()) {
    for (std::string at = pointer; !at.empty(); at.resize(at.rfind('/'))) pointers.push_back(at);
  }
  for (const std::string& pointer : pointers) {
    for (const json& other : {json(7), json("x"), json::array({1}), json({{"a", 1}}), json()}) {
      json version = sample;
      version[json::json_pointer(pointer)] = other;
      const auto read = ReadVmTemplate(version, "nomad");
      if (!read.ok()) continue;
      VmSpec vm_spec = SampleVmSpec();
      vm_spec.base = Override(read->base, {.data_disks = true});
      vm_spec.node_selector = {{"a", "b"}};
      EXPECT_FALSE(BuildVirtualMachine(vm_spec, SampleIdentity()).is_null()) << pointer;
    }
  }
}

TEST(VmTemplate, C2_tells_the_volumes_that_only_one_host_can_write) {
  const VmTemplate read = Read();
  EXPECT_TRUE(read.base.disks[0].read_write_once);
  EXPECT_FALSE(read.base.disks[1].read_write_once) << "ReadWriteMany";
  EXPECT_FALSE(read.base.disks[2].read_write_once);
}

TEST(VmTemplate, the_disks_beside_the_root_disk_keep_their_order) {
  const VmTemplate read = Read([](json& version) {
    json& disks = GuestOf(version)["domain"]["devices"]["disks"];
    const json root = disks[1];
    disks.erase(1);
    disks.push_back(root);
  });
  ASSERT_EQ(read.base.disks.size(), 4U);
  EXPECT_EQ(read.base.disks[0].image.name, "image-rx7kp");
  EXPECT_EQ(read.base.disks[1].image.name, "tools");
  EXPECT_EQ(read.base.disks[2].storage_class, "fast");
  EXPECT_EQ(read.base.disks[3].claim, nullptr) << "the drive with drivers";
}

TEST(VmTemplate, C2_a_lun_is_no_root_disk) {
  json version = SampleTemplateVersion();
  json& root = GuestOf(version)["domain"]["devices"]["disks"][1];
  root["lun"] = root["disk"];
  root.erase("disk");
  EXPECT_THAT(ReadVmTemplate(version, "nomad"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                         HasSubstr("no hard disk from an image")));
}

TEST(VmTemplate, C2_a_volume_of_which_size_or_image_is_missing_is_refused) {
  json version = SampleTemplateVersion();
  json& text =
      version["spec"]["vm"]["metadata"]["annotations"]["harvesterhci.io/volumeClaimTemplates"];
  json claims = json::parse(text.get<std::string>());
  claims[0]["metadata"]["annotations"]["harvesterhci.io/imageId"] = "";
  claims[2]["spec"].erase("resources");
  text = claims.dump();
  const auto read = ReadVmTemplate(version, "nomad");
  ASSERT_THAT(
      read, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("volume data has no size")));
  EXPECT_THAT(base::Message(read.status()), HasSubstr("is to be from an image, but names none"));
}

// Harvester 1.8's own mutator gives a VM that cannot be enlarged while it runs at most one socket.
TEST(VmTemplate, its_sockets_become_cores_of_one) {
  const json vm = Build(Read());
  EXPECT_EQ(vm["spec"]["template"]["spec"]["domain"]["cpu"],
            json({{"sockets", 1}, {"cores", 2}, {"threads", 2}, {"model", "EPYC"}}));
  const json larger = Build(Read([](json& version) {
    GuestOf(version)["domain"]["cpu"] = {{"sockets", 2}, {"cores", 3}, {"threads", 2}};
  }));
  EXPECT_EQ(larger["spec"]["template"]["spec"]["domain"]["cpu"],
            json({{"sockets", 1}, {"cores", 6}, {"threads", 2}}));
  const json zero = Build(Read([](json& version) {
    GuestOf(version)["domain"]["cpu"] = {{"sockets", 4}, {"cores", 0}};
  }));
  EXPECT_EQ(zero["spec"]["template"]["spec"]["domain"]["cpu"],
            json({{"sockets", 1}, {"cores", 4}, {"threads", 1}}));
}

TEST(VmTemplate, its_cpus_are_those_of_its_limit_or_else_of_its_topology) {
  const auto with = [](const json& limit, const json& topology) {
    return Read([&](json& version) {
      json& domain = GuestOf(version)["domain"];
      domain["resources"]["limits"] = limit;
      domain["cpu"] = topology;
    });
  };
  EXPECT_EQ(with({{"cpu", "3"}}, {{"sockets", 2}, {"cores", 2}}).cpu_cores, 3);
  EXPECT_EQ(with({{"memory", "4Gi"}}, {{"sockets", 2}, {"cores", 3}}).cpu_cores, 6);
  EXPECT_EQ(with({{"memory", "4Gi"}}, {{"model", "EPYC"}}).cpu_cores, 0) << "a key must say it";
}

TEST(VmTemplate, its_ssh_keys_are_those_of_the_version_and_those_that_its_vm_names) {
  const VmTemplate read = Read([](json& version) {
    version["spec"]["vm"]["metadata"]["annotations"]["harvesterhci.io/sshNames"] =
        R"(["default/dev"])";
  });
  EXPECT_THAT(read.ssh_keys, ElementsAre("default/dev", "default/ops"));
}

TEST(VmTemplate, data_disks_leave_a_hard_disk_that_is_no_claim) {
  const VmTemplate read = Read([](json& version) {
    GuestOf(version)["domain"]["devices"]["disks"][3] = {{"name", "drivers"},
                                                         {"disk", {{"bus", "virtio"}}}};
  });
  const VmBase changed = Override(read.base, {.data_disks = true});
  ASSERT_EQ(changed.disks.size(), 3U);
  EXPECT_TRUE(changed.disks[2].hard_disk);
}

TEST(VmTemplate, one_that_is_not_to_run_is_as_one_that_is_halted) {
  const VmTemplate read = Read([](json& version) {
    version["spec"]["vm"]["spec"].erase("runStrategy");
    version["spec"]["vm"]["spec"]["running"] = false;
  });
  EXPECT_EQ(read.run_strategy, std::nullopt);
  EXPECT_THAT(read.notes, ElementsAre(HasSubstr("run strategy Halted")));
}

TEST(VmTemplate, keeps_nothing_of_the_access_credentials_in_the_guests_annotations) {
  const VmTemplate read = Read([](json& version) {
    // Of the VM itself it stays: without it, pools of such a template would have another hash.
    version["spec"]["vm"]["metadata"]["annotations"]["harvesterhci.io/dynamic-ssh-key-x"] = "[]";
    version["spec"]["vm"]["spec"]["template"]["metadata"]["annotations"]
           ["harvesterhci.io/dynamic-ssh-key-names"] = R"(["default/ops"])";
  });
  EXPECT_EQ(Build(read).dump().find("dynamic-ssh-key-names"), std::string::npos);
  EXPECT_TRUE(read.annotations.contains("harvesterhci.io/dynamic-ssh-key-x"));
}

}  // namespace
}  // namespace nomad_harvester::harvester
