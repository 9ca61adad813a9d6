// SPDX-License-Identifier: Apache-2.0
// The Secret and the VM of some policies, exactly as they are sent: golden/*.json. A file that
// names another one has the changes to its objects, as merge patches (RFC 7386);
// TestKubeVirtAndHarvesterAdmit reads the files, too. Keys that do not influence each other share a
// file. To rewrite the files, run this executable with NOMAD_HARVESTER_UPDATE_GOLDEN=1 in its
// environment.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/harvester/vm_template.h"

#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "support/source_tree.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

struct Golden {
  std::string file;
  std::string base;
  std::function<void(VmSpec&, CloudInit&)> change;
};

policy::MachineValue SampleOf(const policy::MachineField& field) {
  using enum policy::FieldType;
  switch (field.type) {
    case kFlag:
      return true;
    case kQuantity:
      return std::int64_t{256} << 20;
    case kSeconds:
      return std::int64_t{60};
    case kChoice:
      return std::string(field.choices.substr(0, field.choices.find(',')));
    case kObjectName:
    case kCpuModel:
      break;
  }
  return std::string("sample");
}

// As the engine does it for a policy that gives these keys.
void Apply(const TemplateOverrides& overrides, VmSpec& vm_spec) {
  const auto read = ReadVmTemplate(SampleTemplateVersion(), vm_spec.ns);
  ASSERT_TRUE(read.ok()) << read.status();
  vm_spec.base = Override(read->base, overrides);
  for (VmBase::Disk& disk : vm_spec.base.disks) {
    if (disk.from_image) disk.storage_class = "lh-" + disk.image.name;
  }
  vm_spec.labels.insert(read->labels.begin(), read->labels.end());
  vm_spec.annotations.insert(read->annotations.begin(), read->annotations.end());
  vm_spec.host_devices = read->host_devices;
  vm_spec.gpus = read->gpus;
  vm_spec.node_selector = read->node_selector;
  vm_spec.machine = read->machine;
  vm_spec.tags.clear();
}

const std::vector<Golden>& AllGolden() {
  static const auto* const kAll = new std::vector<Golden>{
      {"default", "", [](VmSpec&, CloudInit&) {}},
      {"all-keys", "default",
       [](VmSpec& v, CloudInit& c) {
         constexpr std::int64_t kGi = std::int64_t{1} << 30;
         v.data_disks = {{100 * kGi, "", false}, {20 * kGi, "lvm", true}};
         v.has_network_data = true;
         c.network_data = "version: 2\nethernets:\n  enp1s0:\n    dhcp4: true\n";
         v.firmware = policy::Firmware::kUefiSecure;
         v.host_spread = policy::HostSpread::kRequired;
         v.node_selector = {{"disk", "nvme"}, {"example.org/rack", "r1"}};
         v.zones = {"rack-1", "rack-2"};
         v.host_devices = {{"intel.com/X710", 2}, {"example.org/hsm", 1}};
         v.gpus = {{"nvidia.com/GA102GL_A10", 2}};
         v.run_strategy = policy::RunStrategy::kAlways;
         v.machine["cpu_model"] = std::string("host-passthrough");
         v.machine["priority_class"] = std::string("system-cluster-critical");
         v.machine["maintain_mode_strategy"] = std::string("ShutdownAndRestartAfterEnable");
         v.machine["termination_grace_period"] = std::int64_t{300};
       }},
      {"other-values", "default",
       [](VmSpec& v, CloudInit&) {
         v.firmware = policy::Firmware::kUefi;
         v.host_spread = policy::HostSpread::kOff;
         v.gpus = {{"nvidia.com/GA102GL_A10", 2}};
         v.gpus_are_host_devices = false;
       }},
      {"template", "", [](VmSpec& v, CloudInit&) { Apply({}, v); }},
      {"template-with-keys", "template",
       [](VmSpec& v, CloudInit&) {
         Apply({.cpu = true,
                .memory = true,
                .networks = true,
                .data_disks = true,
                .firmware = true,
                .machine = {{"cpu_model", std::string("host-model")},
                            {"termination_grace_period", std::int64_t{60}}}},
               v);
         v.data_disks = {{std::int64_t{100} << 30, "", false}};
         v.firmware = policy::Firmware::kUefi;
         v.machine["cpu_model"] = std::string("host-model");
         v.machine["termination_grace_period"] = std::int64_t{60};
         v.zones = {"rack-1"};
       }},
      {"machine-fields", "default",
       [](VmSpec& v, CloudInit&) {
         for (const policy::MachineField& field : policy::MachineFields()) {
           v.machine.emplace(field.key, SampleOf(field));
         }
       }},
  };
  return *kAll;
}

json Render(const Golden& golden) {
  VmSpec vm_spec = SampleVmSpec();
  CloudInit cloud_init{.user_data = "#cloud-config\n"};
  golden.change(vm_spec, cloud_init);
  return json::array({BuildSecret(vm_spec, SampleIdentity(), cloud_init),
                      BuildVirtualMachine(vm_spec, SampleIdentity())});
}

// The merge patch that makes `to` of `from`.
json Changes(const json& from, const json& to) {
  json changes = json::object();
  for (const auto& [key, value] : from.items()) {
    if (!to.contains(key)) changes[key] = nullptr;
  }
  for (const auto& [key, value] : to.items()) {
    if (!from.contains(key)) {
      changes[key] = value;
    } else if (from[key] != value) {
      const bool both = from[key].is_object() && value.is_object();
      changes[key] = both ? Changes(from[key], value) : value;
    }
  }
  return changes;
}

std::string PathOf(const std::string& file) {
  return support::SourcePath("test/harvester/golden/" + file + ".json");
}

json Stored(const std::string& file) {
  json stored = json::parse(base::ReadFile(PathOf(file)).value_or("null"));
  if (!stored.is_object()) return stored;
  json objects = Stored(stored["base"]);
  for (std::size_t i = 0; i < objects.size(); ++i) objects[i].merge_patch(stored["changes"][i]);
  return objects;
}

void Store(const Golden& golden, json objects) {
  if (!golden.base.empty()) {
    const json from = Stored(golden.base);
    json changes;
    for (std::size_t i = 0; i < objects.size(); ++i) changes[i] = Changes(from[i], objects[i]);
    objects = {{"base", golden.base}, {"changes", changes}};
  }
  std::ofstream(PathOf(golden.file), std::ios::binary) << objects.dump(2) << "\n";
}

TEST(Golden, the_objects_of_each_policy_are_those_of_its_file) {
  for (const Golden& golden : AllGolden()) {
    const json wanted = Render(golden);
    if (std::getenv("NOMAD_HARVESTER_UPDATE_GOLDEN") != nullptr) Store(golden, wanted);
    const json stored = Stored(golden.file);
    EXPECT_TRUE(stored == wanted)
        << golden.file << ".json is not what is sent; if that is on purpose, run harvester_test "
        << "with NOMAD_HARVESTER_UPDATE_GOLDEN=1 in its environment, and commit the file\n"
        << json::diff(stored, wanted).dump(1);
  }
}

}  // namespace
}  // namespace nomad_harvester::harvester
