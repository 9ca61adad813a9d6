// SPDX-License-Identifier: Apache-2.0
// For any cloud-config of an operator: keys are added so that every YAML parser finds them, with
// everything else unchanged, or the text is refused.
#include <memory>
#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "nomad_harvester/runtime/random.h"

#include "cloud_config.h"
#include "gtest/gtest.h"
#include "support/seeded_random.h"

namespace nomad_harvester::harvester {
namespace {

const std::vector<std::string> kKeyWithQuotes = {"ssh-rsa AAAAkey \"q\" # no comment"};

std::string AnyDocument(runtime::Random& random) {
  static const std::vector<std::string> lines = {
      "a: 1\n",
      "b: 'x # y'\n",
      "c:\n  - one\n  - two: [3, {x: y}]\n",
      "# comment\n",
      "\n",
      "ssh_authorized_keys:\n  - mine\n",
      "ssh_authorized_keys:\n- mine\n- \"more\"\n",
      "ssh_authorized_keys: [mine, 'more']\n",
      "ssh_authorized_keys:\n  [mine,\n   more]\n",
      "text: |\n  ssh_authorized_keys:\n   - not one\n",
      "folded: >-\n  a\n\n  b\n",
      "anchor: &a {x: 1}\nalias: *a\n",
      "ä: ö\r\n",
      "quoted: \"two\n  lines\"\n",
      "users:\n  - name: x\n    ssh_authorized_keys: [other]\n",
      "---\n",
      "...\n",
      "? complex\n: value\n",
      "{flow: 1}\n",
      "  indented: 1\n",
      "\t",
      "- item\n",
      "'"};
  std::string text = "#cloud-config\n";
  for (std::uint64_t i = random.Next() % 6; i > 0; --i) text += lines[random.Next() % lines.size()];
  return text;
}

// All members but the list of keys, as text.
std::string Others(const std::string& text) {
  YAML::Node document = YAML::Load(text);
  std::string others;
  for (const auto& member : document) {
    if (member.first.IsScalar() && member.first.Scalar() == "ssh_authorized_keys") continue;
    others += YAML::Dump(member.first) + " = " + YAML::Dump(member.second) + "\n";
  }
  return others;
}

std::vector<std::string> LastKeys(const std::string& text) {
  std::vector<std::string> keys;
  for (const auto& member : YAML::Load(text)) {
    if (!member.first.IsScalar() || member.first.Scalar() != "ssh_authorized_keys") continue;
    keys.clear();
    for (const auto& key : member.second) keys.push_back(key.Scalar());
  }
  return keys;
}

TEST(CloudConfigProperty, keys_are_added_and_nothing_else_changes) {
  const auto random = support::MakeSeededRandom(11);
  int merged = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string text = AnyDocument(*random);
    const auto result = AddAuthorizedKeys(text, kKeyWithQuotes);
    if (!result.ok()) {
      ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << text;
      continue;
    }
    ++merged;
    std::vector<std::string> expected = kKeyWithQuotes;
    for (const std::string& key : LastKeys(text)) expected.push_back(key);
    ASSERT_EQ(LastKeys(*result), expected) << text << "=>\n" << *result;
    ASSERT_EQ(Others(*result), Others(text)) << text << "=>\n" << *result;
    // The second time there is nothing to add.
    ASSERT_EQ(AddAuthorizedKeys(*result, kKeyWithQuotes).value(), *result);
  }
  EXPECT_GT(merged, 1000);
}

TEST(CloudConfigProperty, any_bytes_are_accepted_or_refused) {
  const auto random = support::MakeSeededRandom(12);
  for (int i = 0; i < 20000; ++i) {
    std::string text = "#cloud-config\n";
    for (std::uint64_t length = random->Next() % 40; length > 0; --length) {
      const std::uint64_t draw = random->Next();
      text.push_back(draw % 5 == 0 ? static_cast<char>(draw >> 8U)
                                   : "a:- \n\t[]{},'\"|>&*!?%#\\x0"[(draw >> 8U) % 25]);
    }
    const auto result = AddAuthorizedKeys(text, kKeyWithQuotes);
    ASSERT_EQ(result.ok() || result.status().code() == absl::StatusCode::kInvalidArgument, true);
  }
}

}  // namespace
}  // namespace nomad_harvester::harvester
