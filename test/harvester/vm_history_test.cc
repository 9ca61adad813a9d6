// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/vm_history.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"

#include "nlohmann/json.hpp"
#include "samples.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

VirtualMachine MarkedVm() {
  VirtualMachine vm;
  vm.name = "web-1";
  vm.action_id = "maker";
  vm.template_hash = "v2:abc";
  vm.template_parts = R"({"cpu": "1f0e"})";
  vm.created_at = At("2026-01-02T03:00:00Z");
  vm.joined_at = At("2026-01-02T03:01:00Z");
  vm.mark.emplace().action = "remover";
  return vm;
}

RemovedVm Described(const VirtualMachine& vm, const std::string& why = "scale-in") {
  return DescribeRemoval(vm, why, At("2026-01-05T00:00:00Z"));
}

json LineOf(const RemovedVm& vm) {
  const json history = BuildHistory("nomad", "web", {vm});
  return json::parse(history["data"][vm.name].get<std::string>());
}

TEST(History, T3_an_entry_is_what_the_annotations_and_the_mark_say) {
  EXPECT_EQ(LineOf(Described(MarkedVm())), json::parse(R"({
    "template": "v2:abc", "parts": {"cpu": "1f0e"}, "made_by": "maker", "action": "remover",
    "made": "2026-01-02T03:00:00Z", "joined": "2026-01-02T03:01:00Z", "ready": null,
    "removed": "2026-01-05T00:00:00Z", "why": "scale-in"})"));
}

TEST(History, T3_is_a_config_map_with_the_name_of_the_lease_and_the_labels_of_the_pool) {
  json history = BuildHistory("nomad", "web", {Described(MarkedVm())});
  EXPECT_EQ(history["data"].size(), 1U);
  history.erase("data");
  EXPECT_EQ(history, json::parse(R"({
    "apiVersion": "v1", "kind": "ConfigMap",
    "metadata": {"name": "nomad-harvester-autoscaler-web", "namespace": "nomad", "labels": {
      "app.kubernetes.io/managed-by": "nomad-harvester-autoscaler",
      "nomad-harvester-autoscaler/pool": "web"}}})"));
}

TEST(History, T3_is_read_as_it_was_written) {
  const RemovedVm vm = Described(MarkedVm());
  const std::vector<RemovedVm> read = ParseHistory(BuildHistory("nomad", "web", {vm}));
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_EQ(read[0].name, "web-1");
  EXPECT_EQ(ToJson(read[0]), ToJson(vm));
}

TEST(History, T3_keeps_the_hundred_vms_that_were_removed_last) {
  std::vector<RemovedVm> vms;
  for (int i = 0; i < 130; ++i) {
    vms.push_back(Described(MarkedVm()));
    vms.back().name = "web-" + std::to_string(i);
    vms.back().removed_at += std::chrono::seconds(i);
  }
  const std::vector<RemovedVm> kept = ParseHistory(BuildHistory("nomad", "web", vms));
  ASSERT_THAT(kept, SizeIs(100));
  EXPECT_EQ(kept.front().name, "web-129") << "the last one first";
  EXPECT_EQ(kept.back().name, "web-30");
}

TEST(History, T3_stays_far_below_the_limit_of_a_config_map_whatever_the_texts_are) {
  VirtualMachine vm = MarkedVm();
  vm.action_id = vm.mark->action = std::string(100000, 'a');
  vm.template_hash = std::string(100000, 'h');
  vm.template_parts = R"({"cpu": ")" + std::string(100000, 'p') + "\"}";
  const RemovedVm removed = Described(vm, std::string(100000, '"'));
  EXPECT_LT(LineOf(removed).dump().size(), 4096U);
  EXPECT_EQ(LineOf(removed)["parts"], json());
}

TEST(History, T3_has_no_secret) {
  const base::Secret secret("hunter2-hunter2-hunter2");
  const std::string text = LineOf(Described(MarkedVm(), "broken: hunter2-hunter2-hunter2")).dump();
  EXPECT_THAT(text, HasSubstr("broken: "));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

TEST(History, an_entry_that_cannot_be_read_is_the_oldest_and_has_nothing_but_its_name) {
  json history = BuildHistory("nomad", "web", {Described(MarkedVm())});
  history["data"]["web-0"] = "{";
  history["data"]["web-2"] = 7;
  const std::vector<RemovedVm> read = ParseHistory(history);
  ASSERT_THAT(read, SizeIs(3));
  EXPECT_EQ(read[0].name, "web-1");
  EXPECT_EQ(read[1].template_hash + read[2].why, "");
  EXPECT_EQ(read[1].removed_at, base::WallTime{});
  for (const char* text : {"[]", "{}", R"({"data": []})", R"({"data": null})"}) {
    EXPECT_THAT(ParseHistory(json::parse(text)), SizeIs(0)) << text;
  }
}

}  // namespace
}  // namespace nomad_harvester::harvester
