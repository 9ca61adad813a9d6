// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/template_hash.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "harvester/samples.h"

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
      [](VmSpec& v) { v.labels["team"] = "web"; },
      [](VmSpec& v) { v.labels.clear(); },
      [](VmSpec& v) { v.annotations["example.org/cost"] = "43"; },
      [](VmSpec& v) { v.annotations["example.org/more"] = ""; },
      [](VmSpec& v) { v.tags["stage"] = "test"; },
      [](VmSpec& v) { std::swap(v.tags, v.labels); },
  };
  std::set<std::string> hashes;
  for (const auto& change : changes) {
    VmSpec vm_spec = SampleVmSpec();
    change(vm_spec);
    hashes.insert(TemplateHash(SampleSources(), vm_spec));
  }
  EXPECT_EQ(hashes.size(), changes.size());
}

TEST(TemplateHash, ignores_what_does_not_change_a_VM) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.image.display_name = "renamed";
  vm_spec.image.problem = "x";
  vm_spec.image.virtual_size += 1;
  vm_spec.template_hash = "of an earlier action";
  vm_spec.join_timeout = "none";
  vm_spec.nodes.index += 1;
  EXPECT_EQ(TemplateHash(SampleSources(), vm_spec), SampleHash());
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
