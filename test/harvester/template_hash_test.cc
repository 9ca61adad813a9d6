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
  sources.image = SampleImage();
  sources.template_version = "default/base-v3";
  sources.networks = {{false, "default", "vlan100"}};
  sources.public_keys = {"ssh-ed25519 AAAA one"};
  return sources;
}

// A change of this value makes every VM of every pool look drifted: change it only on purpose.
TEST(TemplateHash, is_the_same_in_every_release) {
  EXPECT_EQ(TemplateHash(SampleSources()), TemplateHash(SampleSources()));
  EXPECT_EQ(TemplateHash(SampleSources()), "f394a02d0d0c1f1c");
}

TEST(TemplateHash, changes_with_each_of_its_sources) {
  const std::vector<std::function<void(TemplateSources&)>> changes = {
      [](TemplateSources&) {},
      [](TemplateSources& s) { s.user_data += " "; },
      [](TemplateSources& s) { s.user_data += "\x80"; },
      [](TemplateSources& s) { s.user_data += "\x81"; },
      [](TemplateSources& s) { s.network_data.clear(); },
      [](TemplateSources& s) { std::swap(s.user_data, s.network_data); },
      [](TemplateSources& s) { s.image.name = "image-new"; },
      [](TemplateSources& s) { s.image.ns = "images"; },
      [](TemplateSources& s) { s.image.storage_class = "lh-5678"; },
      [](TemplateSources& s) { s.template_version = "default/base-v4"; },
      [](TemplateSources& s) { s.networks[0].name = "vlan200"; },
      [](TemplateSources& s) { s.networks[0].management = true; },
      [](TemplateSources& s) {
        s.networks.push_back({true, "", ""});
      },
      [](TemplateSources& s) { s.public_keys[0] = "ssh-ed25519 AAAB two"; },
      [](TemplateSources& s) { s.public_keys.emplace_back("ssh-ed25519 AAAC three"); },
      [](TemplateSources& s) { s.public_keys.clear(); },
  };
  std::set<std::string> hashes;
  for (const auto& change : changes) {
    TemplateSources sources = SampleSources();
    change(sources);
    hashes.insert(TemplateHash(sources));
  }
  EXPECT_EQ(hashes.size(), changes.size());
}

TEST(TemplateHash, ignores_what_does_not_change_a_VM) {
  TemplateSources sources = SampleSources();
  sources.image.display_name = "renamed";
  sources.image.problem = "x";
  sources.image.virtual_size += 1;
  EXPECT_EQ(TemplateHash(sources), TemplateHash(SampleSources()));
}

}  // namespace
}  // namespace nomad_harvester::harvester
