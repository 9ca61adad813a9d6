// SPDX-License-Identifier: Apache-2.0
// User data that is a cloud-config, and the keys that are added to it.
#include <algorithm>
#include <string>

#include "cloud_config.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace harvester = nomad_harvester::harvester;
  using nomad_harvester::fuzz::Require;
  const std::string text(nomad_harvester::fuzz::Text(data, size));
  const std::string key = "ssh-ed25519 AAAA fuzz";
  const absl::Status checked = harvester::AddAuthorizedKeys(text, {}).status();
  const auto added = harvester::AddAuthorizedKeys(text, {key});
  if (!added.ok()) return 0;
  Require(checked.ok(), "keys are only added to what is a cloud-config");
  const auto outline = harvester::ReadOutline(*added);
  Require(outline.ok(), "the result is still one mapping");
  // Unchanged: the same key with another type or comment is there.
  Require(*added == text || std::count(outline->keys.begin(), outline->keys.end(), key) >= 1,
          "the key is in it");
  const auto again = harvester::AddAuthorizedKeys(*added, {key});
  Require(again.ok() && *again == *added, "a key that is there is not added again");
  const auto before = harvester::ReadOutline(text);
  for (const std::string& old : before->keys) {
    Require(std::count(outline->keys.begin(), outline->keys.end(), old) >= 1, "old keys stay");
  }
  for (const std::string& member : before->members) {
    Require(std::count(outline->members.begin(), outline->members.end(), member) >= 1,
            "other members stay");
  }
  return 0;
}
