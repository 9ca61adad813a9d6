// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/status.h"

#include "decode.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::nomad {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

absl::StatusOr<Node> DecodeNodeStub(const json& value) {
  Node node = NodeStubFields().Read(value);
  NH_RETURN_IF_ERROR(FinishNode(node));
  return node;
}

json Stub() {
  return json::parse(R"({
    "ID": "8d01d8fe-3c6b-0fdd-ebbc-a8b5cbb9c00c", "Name": "web-x7k2m", "Address": "10.0.0.7",
    "Datacenter": "dc1", "NodeClass": "high-memory", "NodePool": "default", "Version": "1.10.5",
    "Drain": false, "SchedulingEligibility": "eligible", "Status": "ready",
    "NodeResources": {"Cpu": {"CpuShares": 38400}, "Memory": {"MemoryMB": 16777216}},
    "ReservedResources": {"Cpu": {"CpuShares": 400}, "Memory": {"MemoryMB": 200}},
    "LastDrain": null, "CreateIndex": 12, "ModifyIndex": 34})");
}

json Full() {
  return json::parse(R"({
    "ID": "n1", "Name": "web-x7k2m", "HTTPAddr": "10.0.0.7:4646", "Datacenter": "dc1",
    "NodeClass": "", "NodePool": "default",
    "Attributes": {"unique.hostname": "web-x7k2m", "cpu.numcores": "4"},
    "Meta": {"harvester_vm_uuid": "abc"},
    "Drain": true,
    "DrainStrategy": {"Deadline": 900000000000, "IgnoreSystemJobs": true,
                      "ForceDeadline": "2026-11-21T02:18:04.5Z",
                      "StartedAt": "2026-11-21T02:03:04.5Z"},
    "SchedulingEligibility": "ineligible", "Status": "ready", "StatusUpdatedAt": 1795000000,
    "LastDrain": {"StartedAt": "2026-11-21T02:03:04.123456789Z",
                  "UpdatedAt": "2026-11-21T02:04:00Z", "Status": "draining",
                  "AccessorID": "", "Meta": {"drained_by": "nomad-autoscaler", "action": "a1"}},
    "CreateIndex": 12, "ModifyIndex": 99})");
}

TEST(DecodeNodeStub, reads_every_field_of_a_stub) {
  const auto node = DecodeNodeStub(Stub());
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->id, "8d01d8fe-3c6b-0fdd-ebbc-a8b5cbb9c00c");
  EXPECT_EQ(node->name, "web-x7k2m");
  EXPECT_EQ(node->address, "10.0.0.7");
  EXPECT_EQ(node->datacenter, "dc1");
  EXPECT_EQ(node->node_class, "high-memory");
  EXPECT_EQ(node->node_pool, "default");
  EXPECT_EQ(node->status, NodeStatus::kReady);
  EXPECT_TRUE(node->eligible);
  EXPECT_FALSE(node->draining);
  ASSERT_TRUE(node->resources.has_value());
  EXPECT_EQ(node->resources->cpu_shares, 38400);
  EXPECT_EQ(node->resources->memory_mb, 16777216);
  EXPECT_EQ(node->reserved.cpu_shares, 400);
  EXPECT_EQ(node->reserved.memory_mb, 200);
  EXPECT_EQ(node->create_index, 12U);
  EXPECT_EQ(node->modify_index, 34U);
  EXPECT_FALSE(node->full);
  EXPECT_FALSE(node->last_drain.has_value());
}

TEST(DecodeNodeStub, leaves_empty_what_only_the_full_form_has) {
  json stub = Stub();
  stub["Attributes"] = {{"os.name", "debian"}};  // a list with os=true contains this one
  const auto node = DecodeNodeStub(stub);
  ASSERT_TRUE(node.ok());
  EXPECT_THAT(node->attributes, IsEmpty());
}

TEST(DecodeNodeStub, knows_each_status_and_no_other) {
  const std::pair<const char*, NodeStatus> rows[] = {{"initializing", NodeStatus::kInitializing},
                                                     {"ready", NodeStatus::kReady},
                                                     {"down", NodeStatus::kDown},
                                                     {"disconnected", NodeStatus::kDisconnected},
                                                     {"READY", NodeStatus::kUnknown},
                                                     {"", NodeStatus::kUnknown}};
  for (const auto& [text, status] : rows) {
    EXPECT_EQ(DecodeNodeStub({{"ID", "n"}, {"Status", text}})->status, status) << text;
  }
}

TEST(DecodeNodeStub, only_the_word_eligible_is_eligible) {
  EXPECT_TRUE(DecodeNodeStub({{"ID", "n"}, {"SchedulingEligibility", "eligible"}})->eligible);
  EXPECT_FALSE(DecodeNodeStub({{"ID", "n"}, {"SchedulingEligibility", "ineligible"}})->eligible);
  EXPECT_FALSE(DecodeNodeStub({{"ID", "n"}})->eligible);
}

TEST(DecodeNodeStub, recognises_a_draining_node) {
  EXPECT_TRUE(DecodeNodeStub({{"ID", "n"}, {"Drain", true}})->draining);
}

TEST(DecodeNodeStub, reads_all_that_limits_what_a_node_can_hold) {
  json stub = Stub();
  stub["NodeResources"] = json::parse(R"({
      "Cpu": {"CpuShares": 8000, "TotalCpuCores": 4, "ReservableCpuCores": [0, 1, 3]},
      "Memory": {"MemoryMB": 1024}, "Disk": {"DiskMB": 5000},
      "Networks": [{"Mode": "host", "Device": "eth0"}, {"Mode": "bridge"}, {"Mode": ""}],
      "Devices": [{"Vendor": "nvidia", "Type": "gpu", "Name": "T4",
                   "Instances": [{"ID": "u1", "Healthy": true}, {"ID": "u2", "Healthy": false},
                                 {"ID": "u3", "Healthy": true}]},
                  {"Vendor": "x", "Type": "fpga", "Name": "y", "Instances": null}]})");
  stub["ReservedResources"] =
      json::parse(R"({"Cpu": {"CpuShares": 1, "ReservedCpuCores": [0]}, "Disk": {"DiskMB": 70}})");
  const auto node = DecodeNodeStub(stub);
  ASSERT_TRUE(node.ok() && node->resources.has_value());
  EXPECT_EQ(node->resources->disk_mb, 5000);
  EXPECT_EQ(node->resources->cores, 3);
  EXPECT_EQ(node->resources->total_cores, 4);
  EXPECT_EQ(node->reserved.disk_mb, 70);
  EXPECT_EQ(node->reserved.cores, 1);
  EXPECT_THAT(node->network_modes, ElementsAre("host", "bridge", "host"));
  ASSERT_EQ(node->devices.size(), 2U);
  EXPECT_EQ(node->devices[0].vendor, "nvidia");
  EXPECT_EQ(node->devices[0].type, "gpu");
  EXPECT_EQ(node->devices[0].name, "T4");
  EXPECT_EQ(node->devices[0].healthy, 2);
  EXPECT_EQ(node->devices[1].healthy, 0);
}

TEST(DecodeNodeStub, names_all_host_volumes_and_which_can_only_be_read) {
  json stub = Stub();
  stub["HostVolumes"] = json::parse(
      R"({"logs": {"Name": "logs"}, "certs": {"Name": "certs", "ReadOnly": true, "ID": "6b"}})");
  const auto node = DecodeNodeStub(stub);
  ASSERT_TRUE(node.ok());
  ASSERT_EQ(node->host_volumes.size(), 2U);
  EXPECT_EQ(node->host_volumes[0].name, "certs");
  EXPECT_TRUE(node->host_volumes[0].read_only);
  EXPECT_EQ(node->host_volumes[1].name, "logs");
  EXPECT_FALSE(node->host_volumes[1].read_only);
}

TEST(DecodeNodeStub, no_resources_are_not_zero_resources) {
  EXPECT_FALSE(DecodeNodeStub({{"ID", "n"}, {"NodeResources", nullptr}})->resources.has_value());
  EXPECT_TRUE(
      DecodeNodeStub({{"ID", "n"}, {"NodeResources", json::object()}})->resources.has_value());
}

// As hashicorp/nomad:command/agent/node_endpoint.go encodes nomad/structs/volumes.go.
TEST(DecodeNodeStub, C7_names_the_host_volumes_that_were_created_dynamically) {
  const json volumes = json::parse(R"({
      "db": {"Name": "db", "Path": "/opt/nomad/data/host_volumes/6b1f", "ReadOnly": false,
             "ID": "6b1f0a5e-6a3f-1f0c-8d0b-0c2f0d6f6b11"},
      "certs": {"Name": "certs", "Path": "/etc/ssl/certs", "ReadOnly": true, "ID": ""},
      "cache": {"ID": "0f"}, "old": {"Name": "old", "Path": "/srv"}, "odd": null})");
  json stub = Stub();
  stub["HostVolumes"] = volumes;
  EXPECT_THAT(DecodeNodeStub(stub)->dynamic_host_volumes, ElementsAre("cache", "db"));
  json full = Full();
  full["HostVolumes"] = volumes;
  EXPECT_THAT(DecodeFullNode(full)->dynamic_host_volumes, ElementsAre("cache", "db"));
}

TEST(DecodeNodeStub, C17_has_the_drivers_that_are_detected_or_say_why_not) {
  const char* const drivers = R"({
      "exec": {"Attributes": {"driver.exec": "true"}, "Detected": true, "Healthy": true,
               "HealthDescription": "Healthy", "UpdateTime": "2026-11-26T01:00:00Z"},
      "docker": {"Detected": false, "HealthDescription": "Failed to connect to docker daemon",
                 "Healthy": false},
      "java": {"Detected": false, "Healthy": false, "HealthDescription": ""}})";
  json object = Stub();
  object["Drivers"] = json::parse(drivers);
  for (const auto& node : {DecodeNodeStub(object), DecodeFullNode(object)}) {
    ASSERT_TRUE(node.ok()) << node.status();
    ASSERT_THAT(node->drivers, testing::SizeIs(2));
    const bool docker_first = node->drivers[0].name == "docker";
    const Driver& docker = node->drivers[docker_first ? 0 : 1];
    const Driver& exec = node->drivers[docker_first ? 1 : 0];
    EXPECT_FALSE(docker.detected);
    EXPECT_FALSE(docker.healthy);
    EXPECT_EQ(docker.description, "Failed to connect to docker daemon");
    EXPECT_EQ(exec.name, "exec");
    EXPECT_TRUE(exec.detected);
    EXPECT_TRUE(exec.healthy);
  }
  object["Drivers"] = nullptr;
  EXPECT_THAT(DecodeNodeStub(object)->drivers, IsEmpty());
}

TEST(DecodeNodeStub, a_server_or_a_client_without_host_volumes_has_none) {
  for (const json& volumes : {json(nullptr), json::object(), json::array(), json("db")}) {
    json stub = Stub();
    stub["HostVolumes"] = volumes;
    EXPECT_THAT(DecodeNodeStub(stub)->dynamic_host_volumes, IsEmpty()) << volumes;
  }
  EXPECT_THAT(DecodeNodeStub(Stub())->dynamic_host_volumes, IsEmpty());
}

TEST(DecodeNodeStub, a_node_without_id_is_an_error) {
  for (const json& bad : {json::object(), json{{"ID", ""}}, json{{"ID", nullptr}}, json{{"ID", 7}},
                          json(nullptr), json(7), json::array()}) {
    EXPECT_EQ(DecodeNodeStub(bad).status().code(), absl::StatusCode::kInternal) << bad;
  }
}

TEST(DecodeNodeStub, members_that_are_null_or_of_another_type_are_missing) {
  const json stub = Stub();
  for (const auto& [key, value] : stub.items()) {
    if (key == "ID") continue;
    for (const json& other : {json(nullptr), json(json::array()), json(3.5), json("text")}) {
      json changed = stub;
      changed[key] = other;
      EXPECT_TRUE(DecodeNodeStub(changed).ok()) << changed;
      EXPECT_TRUE(DecodeFullNode(changed).ok()) << changed;
    }
  }
}

TEST(DecodeFullNode, reads_every_field_of_a_full_node) {
  const auto node = DecodeFullNode(Full());
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_TRUE(node->full);
  EXPECT_EQ(node->address, "10.0.0.7");
  EXPECT_THAT(node->attributes,
              ElementsAre(Pair("cpu.numcores", "4"), Pair("unique.hostname", "web-x7k2m")));
  EXPECT_THAT(node->meta, ElementsAre(Pair("harvester_vm_uuid", "abc")));
  EXPECT_TRUE(node->draining);
}

TEST(DecodeFullNode, keeps_the_start_of_the_last_drain_byte_by_byte) {
  const auto node = DecodeFullNode(Full());
  ASSERT_TRUE(node.ok() && node->last_drain.has_value());
  EXPECT_EQ(node->last_drain->started_at, "2026-11-21T02:03:04.123456789Z");
  EXPECT_EQ(node->last_drain->updated_at, *base::ParseRfc3339("2026-11-21T02:04:00Z"));
  EXPECT_EQ(node->last_drain->status, DrainStatus::kDraining);
  EXPECT_THAT(node->last_drain->meta,
              ElementsAre(Pair("action", "a1"), Pair("drained_by", "nomad-autoscaler")));
}

TEST(DecodeFullNode, knows_each_drain_status_and_no_other) {
  const std::pair<const char*, DrainStatus> rows[] = {{"draining", DrainStatus::kDraining},
                                                      {"complete", DrainStatus::kComplete},
                                                      {"canceled", DrainStatus::kCanceled},
                                                      {"cancelled", DrainStatus::kUnknown},
                                                      {"", DrainStatus::kUnknown}};
  for (const auto& [text, status] : rows) {
    const json node = {{"ID", "n"}, {"LastDrain", {{"Status", text}}}};
    EXPECT_EQ(DecodeFullNode(node)->last_drain->status, status) << text;
  }
}

TEST(DecodeFullNode, has_the_time_of_its_status) {
  const auto time = [](const json& value) {
    return DecodeFullNode({{"ID", "n"}, {"StatusUpdatedAt", value}})->status_updated_at;
  };
  EXPECT_EQ(time(90), base::WallTime(std::chrono::seconds(90)));
  for (const json& value : {json(0), json(-1), json("1"), json(std::int64_t{1} << 62)}) {
    EXPECT_EQ(time(value), std::nullopt) << value;
  }
}

TEST(DecodeFullNode, a_drain_strategy_alone_means_draining) {
  const auto node = DecodeFullNode({{"ID", "n"}, {"DrainStrategy", {{"Deadline", -1}}}});
  ASSERT_TRUE(node.ok());
  EXPECT_TRUE(node->draining);
}

TEST(DecodeFullNode, an_unset_go_time_is_not_a_time) {
  const json node = {{"ID", "n"}, {"LastDrain", {{"UpdatedAt", "0001-01-01T00:00:00Z"}}}};
  const auto decoded = DecodeFullNode(node);
  ASSERT_TRUE(decoded.ok());
  EXPECT_FALSE(decoded->last_drain->updated_at.has_value());
}

TEST(DecodeFullNode, takes_the_host_of_the_http_address) {
  const std::pair<const char*, const char*> rows[] = {{"10.0.0.7:4646", "10.0.0.7"},
                                                      {"[fd00::7]:4646", "fd00::7"},
                                                      {"fd00::7", "fd00::7"},
                                                      {"host", "host"},
                                                      {"", ""},
                                                      {"[broken", "[broken"},
                                                      {":4646", ""}};
  for (const auto& [text, host] : rows) {
    EXPECT_EQ(DecodeFullNode({{"ID", "n"}, {"HTTPAddr", text}})->address, host) << text;
  }
}

TEST(DecodeFullNode, skips_meta_values_that_are_not_text) {
  const auto node = DecodeFullNode({{"ID", "n"}, {"Meta", {{"a", "1"}, {"b", nullptr}, {"c", 2}}}});
  EXPECT_THAT(node->meta, ElementsAre(Pair("a", "1")));
}

TEST(DecodeFullNode, amounts_and_indexes_no_server_means_do_no_harm) {
  const json node = {
      {"ID", "n"},
      {"NodeResources",
       {{"Cpu", {{"CpuShares", -5}}}, {"Memory", {{"MemoryMB", 9223372036854775807LL}}}}},
      {"CreateIndex", -3}};
  const auto decoded = DecodeFullNode(node);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->resources->cpu_shares, 0);
  EXPECT_EQ(decoded->resources->memory_mb, std::int64_t{1} << 40);
  EXPECT_EQ(decoded->create_index, 0U);
}

}  // namespace
}  // namespace nomad_harvester::nomad
