// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/template_hash.h"

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/harvester/vm_template.h"
#include "nomad_harvester/policy/machine_fields.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

TemplateSources SampleSources() {
  TemplateSources sources;
  sources.user_data = "#cloud-config\nhostname: {{vm_name}}\n";
  sources.network_data = "version: 2\n";
  sources.template_version = "default/base-v3";
  sources.public_keys = {"ssh-ed25519 AAAA one"};
  return sources;
}

std::string SampleHash() { return TemplateHash(SampleSources(), SampleVmSpec()); }

// The hash and its parts.
std::pair<std::string, std::string> TemplateFor(const std::string& node_class,
                                                const std::string& user_data) {
  TemplateSources sources = SampleSources();
  sources.user_data = user_data;
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.nodes.node_class = node_class;
  return {TemplateHash(sources, vm_spec), TemplateParts(sources, vm_spec)};
}

TEST(TemplateParts, C8_identifiers_that_are_rendered_are_a_part_and_others_are_none) {
  const std::string uses = "#cloud-config\nclass: {{node_class}}\n";
  const auto [hash, parts] = TemplateFor("web", uses);
  const auto [other_hash, other_parts] = TemplateFor("api", uses);
  EXPECT_NE(hash, other_hash);
  EXPECT_THAT(DriftedParts(parts, other_parts), testing::ElementsAre("nodes"));
  EXPECT_EQ(TemplateFor("web", "#cloud-config\n"), TemplateFor("api", "#cloud-config\n"));
}

TEST(TemplateParts, C8_identifiers_that_only_the_network_data_uses_are_a_part_too) {
  VmSpec moved = SampleVmSpec();
  moved.nodes.node_class = "web";
  moved.nodes.datacenter = "dc2";
  moved.nodes.node_pool = "other";
  moved.nodes.region = "eu";
  for (const std::string name : {"node_class", "datacenter", "node_pool", "nomad_region"}) {
    TemplateSources sources = SampleSources();
    sources.network_data = "version: 2 # {{" + name + "}}\n";
    EXPECT_NE(TemplateHash(sources, SampleVmSpec()), TemplateHash(sources, moved)) << name;
    EXPECT_THAT(DriftedParts(TemplateParts(sources, SampleVmSpec()), TemplateParts(sources, moved)),
                testing::ElementsAre("nodes"))
        << name;
  }
}

// A change of this value makes every VM of every pool look drifted, unless its version changes,
// too: change it only on purpose.
TEST(TemplateHash, is_the_same_in_every_release) {
  EXPECT_EQ(SampleHash(), SampleHash());
  EXPECT_EQ(SampleHash(), "v2:e7ce9111787076f8");
}

TEST(TemplateHash, changes_with_each_of_its_sources) {
  const std::vector<std::function<void(TemplateSources&)>> changes = {
      [](TemplateSources&) {},
      [](TemplateSources& s) { s.user_data += " "; },
      [](TemplateSources& s) { s.user_data += "\x80"; },
      [](TemplateSources& s) { s.user_data += "\x81"; },
      [](TemplateSources& s) { s.network_data.clear(); },
      [](TemplateSources& s) { std::swap(s.user_data, s.network_data); },
      [](TemplateSources& s) { s.template_version = "default/base-v4"; },
      [](TemplateSources& s) { s.public_keys[0] = "ssh-ed25519 AAAB two"; },
      [](TemplateSources& s) { s.public_keys.emplace_back("ssh-ed25519 AAAC three"); },
      [](TemplateSources& s) { s.public_keys.clear(); },
  };
  std::set<std::string> hashes;
  for (const auto& change : changes) {
    TemplateSources sources = SampleSources();
    change(sources);
    hashes.insert(TemplateHash(sources, SampleVmSpec()));
  }
  EXPECT_EQ(hashes.size(), changes.size());
}

TEST(TemplateHash, changes_with_everything_that_shapes_a_VM) {
  const std::vector<std::function<void(VmSpec&)>> changes = {
      [](VmSpec&) {},
      [](VmSpec& v) { v.image.name = "image-new"; },
      [](VmSpec& v) { v.image.ns = "images"; },
      [](VmSpec& v) { v.image.storage_class = "lh-5678"; },
      [](VmSpec& v) { v.cpu_cores += 1; },
      [](VmSpec& v) { v.memory_bytes += 1; },
      [](VmSpec& v) { v.disk_bytes += 1; },
      [](VmSpec& v) { v.networks[0].name = "vlan200"; },
      [](VmSpec& v) { v.networks[0].management = true; },
      [](VmSpec& v) {
        v.networks.push_back({true, "", ""});
      },
      [](VmSpec& v) { v.run_strategy = policy::RunStrategy::kAlways; },
      [](VmSpec& v) { v.zones = {"a"}; },
      [](VmSpec& v) { v.labels["team"] = "web"; },
      [](VmSpec& v) { v.labels.clear(); },
      [](VmSpec& v) { v.annotations["example.org/cost"] = "43"; },
      [](VmSpec& v) { v.annotations["example.org/more"] = ""; },
      [](VmSpec& v) { v.tags["stage"] = "test"; },
      [](VmSpec& v) { std::swap(v.tags, v.labels); },
      [](VmSpec& v) {
        v.data_disks = {{1024, "", false}};
      },
      [](VmSpec& v) {
        v.data_disks = {{1024, "fast", false}};
      },
      [](VmSpec& v) {
        v.data_disks = {{1024, "", true}};
      },
      [](VmSpec& v) {
        v.data_disks = {{1024, "", false}, {1024, "", false}};
      },
      [](VmSpec& v) { v.firmware = policy::Firmware::kUefi; },
      [](VmSpec& v) { v.firmware = policy::Firmware::kUefiSecure; },
      [](VmSpec& v) { v.machine["cpu_model"] = std::string("host-model"); },
      [](VmSpec& v) {
        v.host_devices = {{"x.io/a", 1}};
      },
      [](VmSpec& v) {
        v.host_devices = {{"x.io/a", 2}};
      },
      [](VmSpec& v) {
        v.gpus = {{"x.io/a", 1}};
      },
      [](VmSpec& v) { v.host_spread = policy::HostSpread::kRequired; },
      [](VmSpec& v) { v.host_spread = policy::HostSpread::kOff; },
      [](VmSpec& v) {
        v.node_selector = {{"disk", "nvme"}};
      },
      [](VmSpec& v) { v.machine["priority_class"] = std::string("low"); },
      [](VmSpec& v) { v.machine["maintain_mode_strategy"] = std::string("Migrate"); },
      [](VmSpec& v) { v.machine["termination_grace_period"] = std::int64_t{120}; },
  };
  std::set<std::string> hashes;
  for (const auto& change : changes) {
    VmSpec vm_spec = SampleVmSpec();
    change(vm_spec);
    hashes.insert(TemplateHash(SampleSources(), vm_spec));
  }
  EXPECT_EQ(hashes.size(), changes.size());
}

TEST(TemplateHash, changes_with_the_disks_of_a_template_and_the_flags_that_override_it) {
  const auto read = ReadVmTemplate(SampleTemplateVersion(), "nomad");
  ASSERT_THAT(read, support::IsOk());
  ASSERT_GE(read->base.disks.size(), 3U);
  const std::vector<std::function<void(VmSpec&)>> changes = {
      [](VmSpec&) {},
      [](VmSpec& v) { v.base.disks[1].image.name = "image-new"; },
      [](VmSpec& v) { v.base.disks[1].image.ns = "images"; },
      [](VmSpec& v) { v.base.disks[2].bytes += 1; },
      [](VmSpec& v) { v.base.disks[2].storage_class = "slow"; },
      [](VmSpec& v) { v.machine["tpm"] = false; },
      [](VmSpec& v) { v.machine["tpm"] = true; },
  };
  std::set<std::string> hashes;
  for (const auto& change : changes) {
    VmSpec vm_spec = SampleVmSpec();
    vm_spec.base = read->base;
    change(vm_spec);
    hashes.insert(TemplateHash(SampleSources(), vm_spec));
  }
  EXPECT_EQ(hashes.size(), changes.size());
}

TEST(TemplateHash, ignores_a_flag_that_is_off_without_a_template) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.machine["tpm"] = false;
  EXPECT_EQ(TemplateHash(SampleSources(), vm_spec), SampleHash());
  vm_spec.machine["tpm"] = true;
  EXPECT_NE(TemplateHash(SampleSources(), vm_spec), SampleHash());
}

TEST(TemplateHash, ignores_the_order_of_zones) {
  VmSpec one = SampleVmSpec();
  VmSpec other = SampleVmSpec();
  one.zones = {"a", "b"};
  other.zones = {"b", "a"};
  EXPECT_EQ(TemplateHash({}, one), TemplateHash({}, other));
}

TEST(TemplateHash, ignores_what_does_not_change_a_VM) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.image.display_name = "renamed";
  vm_spec.image.problem = "x";
  vm_spec.image.virtual_size += 1;
  vm_spec.template_hash = "of an earlier action";
  vm_spec.template_parts = "of an earlier action";
  vm_spec.join_timeout = "none";
  vm_spec.nodes.index += 1;
  vm_spec.gpus_are_host_devices = false;  // says Harvester's version
  vm_spec.has_network_data = true;        // the text is among the sources
  EXPECT_EQ(TemplateHash(SampleSources(), vm_spec), SampleHash());
}

std::vector<std::string> Drifted(const std::function<void(VmSpec&, TemplateSources&)>& change) {
  VmSpec vm_spec = SampleVmSpec();
  TemplateSources sources = SampleSources();
  change(vm_spec, sources);
  return DriftedParts(TemplateParts(SampleSources(), SampleVmSpec()),
                      TemplateParts(sources, vm_spec));
}

TEST(DriftedParts, are_named_as_operators_know_them) {
  using Change = std::function<void(VmSpec&, TemplateSources&)>;
  const std::vector<std::pair<std::string, Change>> cases = {
      {"image", [](VmSpec& v, TemplateSources&) { v.image.name = "image-new"; }},
      {"image", [](VmSpec& v, TemplateSources&) { v.image.storage_class = "lh-5678"; }},
      {"cpu", [](VmSpec& v, TemplateSources&) { v.cpu_cores += 1; }},
      {"cpu",
       [](VmSpec& v, TemplateSources&) { v.machine["cpu_model"] = std::string("host-model"); }},
      {"memory", [](VmSpec& v, TemplateSources&) { v.memory_bytes += 1; }},
      {"disks", [](VmSpec& v, TemplateSources&) { v.disk_bytes += 1; }},
      {"disks",
       [](VmSpec& v, TemplateSources&) {
         v.data_disks = {{1024, "", false}};
       }},
      {"networks", [](VmSpec& v, TemplateSources&) { v.networks[0].name = "vlan200"; }},
      {"user_data", [](VmSpec&, TemplateSources& s) { s.user_data += " "; }},
      {"network_data", [](VmSpec&, TemplateSources& s) { s.network_data += " "; }},
      {"keys", [](VmSpec&, TemplateSources& s) { s.public_keys.clear(); }},
      {"template", [](VmSpec&, TemplateSources& s) { s.template_version = "default/x"; }},
      {"placement",
       [](VmSpec& v, TemplateSources&) { v.machine["priority_class"] = std::string("low"); }},
      {"placement",
       [](VmSpec& v, TemplateSources&) {
         v.node_selector = {{"a", "b"}};
       }},
      {"placement", [](VmSpec& v, TemplateSources&) { v.host_spread = policy::HostSpread::kOff; }},
      {"devices",
       [](VmSpec& v, TemplateSources&) {
         v.gpus = {{"x.io/a", 1}};
       }},
      {"devices",
       [](VmSpec& v, TemplateSources&) {
         v.host_devices = {{"x.io/a", 1}};
       }},
      {"firmware", [](VmSpec& v, TemplateSources&) { v.firmware = policy::Firmware::kUefi; }},
      {"run_strategy",
       [](VmSpec& v, TemplateSources&) { v.run_strategy = policy::RunStrategy::kOnce; }},
      {"maintain_mode_strategy",
       [](VmSpec& v, TemplateSources&) {
         v.machine["maintain_mode_strategy"] = std::string("Migrate");
       }},
      {"termination_grace_period",
       [](VmSpec& v, TemplateSources&) {
         v.machine["termination_grace_period"] = std::int64_t{1};
       }},
      {"labels", [](VmSpec& v, TemplateSources&) { v.labels["team"] = "web"; }},
      {"annotations", [](VmSpec& v, TemplateSources&) { v.annotations.clear(); }},
      {"tags", [](VmSpec& v, TemplateSources&) { v.tags.clear(); }},
  };
  for (const auto& [part, change] : cases) {
    EXPECT_EQ(Drifted(change), std::vector<std::string>{part});
    EXPECT_TRUE(policy::TemplatePartNames().contains(part))
        << "drift_ignore does not know " << part;
  }
}

TEST(DriftedParts, of_no_possible_name_are_passed_over) {
  EXPECT_THAT(DriftedParts(R"({"cpu": "1", "Evil\n": "x"})", R"({"cpu": "2"})"),
              ::testing::ElementsAre("cpu"));
}

TEST(DriftedParts, are_sorted_and_none_where_nothing_differs) {
  EXPECT_EQ(Drifted([](VmSpec& v, TemplateSources& s) {
              v.memory_bytes += 1;
              v.cpu_cores += 1;
              s.user_data += " ";
            }),
            (std::vector<std::string>{"cpu", "memory", "user_data"}));
  EXPECT_TRUE(Drifted([](VmSpec&, TemplateSources&) {}).empty());
}

TEST(DriftedParts, are_not_known_without_both_values) {
  const std::string parts = TemplateParts(SampleSources(), SampleVmSpec());
  for (const char* const bad : {"", "no JSON", "[]", "7", "{}", "{\"cpu\": 7}"}) {
    EXPECT_TRUE(DriftedParts(bad, parts).empty()) << bad;
    EXPECT_TRUE(DriftedParts(parts, bad).empty()) << bad;
  }
}

// As of TemplateHash: a change makes every VM look different in that part.
TEST(TemplateParts, are_small_and_the_same_in_every_release) {
  EXPECT_EQ(
      TemplateParts(SampleSources(), SampleVmSpec()),
      R"({"annotations":"1f75737f","cpu":"960c2b9e","disks":"aa9931ae","image":"bc96a884",)"
      R"("keys":"4714a86f","labels":"c8f720a7","memory":"c6a52967","network_data":"a9a8e6ad",)"
      R"("networks":"6a2ea876","run_strategy":"dc058b9d","tags":"041bbc92",)"
      R"("template":"0f7eb4cb","user_data":"d1fb8b13"})");
}

TEST(IsDrift, is_a_difference_within_a_version) {
  EXPECT_TRUE(IsDrift("v2:a", "v2:b"));
  EXPECT_FALSE(IsDrift("v2:a", "v2:a"));
  EXPECT_FALSE(IsDrift(SampleHash(), SampleHash()));
}

// An upgrade of the plugin must not report every VM as drifted, nor must a downgrade.
TEST(IsDrift, is_no_difference_between_versions) {
  EXPECT_FALSE(IsDrift("f394a02d0d0c1f1c", "v2:f394a02d0d0c1f1d"));
  EXPECT_FALSE(IsDrift("v3:a", "v2:b"));
  EXPECT_FALSE(IsDrift("v2:a", "v3:b"));
}

TEST(IsDrift, needs_both_values) {
  EXPECT_FALSE(IsDrift("", SampleHash()));
  EXPECT_FALSE(IsDrift(SampleHash(), ""));
  EXPECT_FALSE(IsDrift("f394a02d0d0c1f1c", ""));
  EXPECT_FALSE(IsDrift("", ""));
}

}  // namespace
}  // namespace nomad_harvester::harvester
