// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "nomad_harvester/base/status.h"

#include "decode.h"
#include "gtest/gtest.h"

namespace nomad_harvester::nomad {
namespace {

using nlohmann::json;

absl::StatusOr<Allocation> DecodeAllocation(const json& value) {
  AllocationRecord record = AllocationFields().Read(value);
  NH_RETURN_IF_ERROR(FinishAllocation(record));
  return record;
}

// As GET /v1/node/:id/allocations returns it.
json FullAllocation() {
  return json::parse(R"({
    "ID": "a1", "Namespace": "default", "NodeID": "n1", "JobID": "web",
    "Job": {"ID": "web", "Type": "service"}, "TaskGroup": "g",
    "Resources": {"CPU": 1, "MemoryMB": 2},
    "AllocatedResources": {"Tasks": {
        "web": {"Cpu": {"CpuShares": 100}, "Memory": {"MemoryMB": 256, "MemoryMaxMB": 512}},
        "log": {"Cpu": {"CpuShares": 50}, "Memory": {"MemoryMB": 64}}},
      "Shared": {"DiskMB": 300}},
    "DesiredStatus": "run", "ClientStatus": "running",
    "TaskStates": {"web": {"State": "running"}, "log": {"State": "dead"}},
    "CreateIndex": 7, "ModifyIndex": 8})");
}

TEST(DecodeAllocation, reads_every_field_of_the_full_form) {
  const auto allocation = DecodeAllocation(FullAllocation());
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_EQ(allocation->id, "a1");
  EXPECT_EQ(allocation->ns, "default");
  EXPECT_EQ(allocation->node_id, "n1");
  EXPECT_EQ(allocation->job_type, "service");
  EXPECT_EQ(allocation->desired_status, "run");
  EXPECT_EQ(allocation->client_status, ClientStatus::kRunning);
  EXPECT_FALSE(allocation->all_tasks_dead);
  EXPECT_EQ(allocation->create_index, 7U);
}

TEST(DecodeAllocation, adds_up_the_tasks_resources) {
  const auto allocation = DecodeAllocation(FullAllocation());
  EXPECT_EQ(allocation->cpu_shares, 150);
  EXPECT_EQ(allocation->memory_mb, 320);
}

TEST(DecodeAllocation, reads_the_stub_with_its_job_type) {
  const auto allocation = DecodeAllocation(json::parse(
      R"({"ID":"a2","JobType":"system","DesiredStatus":"stop","ClientStatus":"complete",
          "AllocatedResources":{"Tasks":{"t":{"Cpu":{"CpuShares":9}}}},"TaskStates":null})"));
  ASSERT_TRUE(allocation.ok());
  EXPECT_EQ(allocation->job_type, "system");
  EXPECT_EQ(allocation->desired_status, "stop");
  EXPECT_EQ(allocation->client_status, ClientStatus::kComplete);
  EXPECT_EQ(allocation->cpu_shares, 9);
  EXPECT_EQ(allocation->memory_mb, 0);
}

TEST(DecodeAllocation, knows_each_client_status_and_no_other) {
  const std::pair<const char*, ClientStatus> rows[] = {
      {"pending", ClientStatus::kPending},   {"running", ClientStatus::kRunning},
      {"complete", ClientStatus::kComplete}, {"failed", ClientStatus::kFailed},
      {"lost", ClientStatus::kLost},         {"unknown", ClientStatus::kUnknown},
      {"anything", ClientStatus::kUnknown},  {"", ClientStatus::kUnknown}};
  for (const auto& [text, status] : rows) {
    EXPECT_EQ(DecodeAllocation({{"ID", "a"}, {"ClientStatus", text}})->client_status, status)
        << text;
  }
}

TEST(DecodeAllocation, all_tasks_are_dead_only_if_each_one_is) {
  const std::pair<const char*, bool> rows[] = {
      {R"({"a":{"State":"dead"}})", true},
      {R"({"a":{"State":"dead"},"post":{"State":"running"}})", false},
      {R"({"a":{"State":"pending"}})", false},
      {R"({"a":{"State":null}})", false},
      {R"({"a":null})", false},
      {R"({})", true},
      {"null", true}};
  for (const auto& [states, dead] : rows) {
    const json allocation = {{"ID", "a"}, {"TaskStates", json::parse(states)}};
    EXPECT_EQ(DecodeAllocation(allocation)->all_tasks_dead, dead) << states;
  }
}

TEST(DecodeAllocation, an_allocation_without_id_is_an_error) {
  for (const json& bad : {json::object(), json(nullptr), json("a1"), json{{"ID", 1}}}) {
    EXPECT_EQ(DecodeAllocation(bad).status().code(), absl::StatusCode::kInternal) << bad;
  }
}

TEST(DecodeAllocation, members_that_are_null_or_of_another_type_are_missing) {
  const json full = FullAllocation();
  for (const auto& [key, value] : full.items()) {
    if (key == "ID") continue;
    for (const json& other : {json(nullptr), json(json::array()), json(3.5), json("text")}) {
      json changed = full;
      changed[key] = other;
      EXPECT_TRUE(DecodeAllocation(changed).ok()) << changed;
    }
  }
}

TEST(DecodeAllocation, sums_no_server_means_do_no_harm) {
  json full = FullAllocation();
  for (int i = 0; i < 100; ++i) {
    full["AllocatedResources"]["Tasks"]["t" + std::to_string(i)] = {
        {"Cpu", {{"CpuShares", 9223372036854775807LL}}}};
  }
  EXPECT_EQ(DecodeAllocation(full)->cpu_shares, std::int64_t{1} << 40);
}

}  // namespace
}  // namespace nomad_harvester::nomad
