// SPDX-License-Identifier: Apache-2.0
// The replies below have the form of Nomad 1.6.3 (hashicorp/nomad:nomad/structs/structs.go).
#include <string>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/status.h"

#include "decode.h"
#include "nomad/client_fixture.h"

namespace nomad_harvester::nomad {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* kPlacement = R"({
    "ID": "a1", "Namespace": "default", "NodeID": "n1", "JobID": "web", "JobType": "service",
    "TaskGroup": "g", "DesiredStatus": "run", "ClientStatus": "running",
    "DesiredTransition": {"Migrate": true},
    "AllocatedResources": {
      "Tasks": {
        "main": {"Cpu": {"CpuShares": 500, "ReservedCores": [2, 3]}, "Memory": {"MemoryMB": 256},
                 "Networks": [{"ReservedPorts": [{"Value": 22}], "DynamicPorts": [{"Value": 20001}]}],
                 "Devices": [{"Vendor": "nvidia", "Type": "gpu", "Name": "T4",
                              "DeviceIDs": ["u1", "u2"]},
                             {"Vendor": "x", "Type": "fpga", "Name": "y", "DeviceIDs": ["u3"]}]},
        "init": {"Cpu": {"CpuShares": 900, "ReservedCores": null}, "Memory": {"MemoryMB": 64},
                 "Devices": null},
        "log": {"Cpu": {"CpuShares": 50}, "Memory": {"MemoryMB": 32},
                "Devices": [{"Vendor": "nvidia", "Type": "gpu", "Name": "T4",
                             "DeviceIDs": ["u4"]}]}},
      "TaskLifecycles": {"main": null, "init": {"Hook": "prestart", "Sidecar": false},
                         "log": {"Hook": "prestart", "Sidecar": true}},
      "Shared": {"DiskMB": 300, "Ports": [{"Label": "http", "Value": 8080}]}}})";

constexpr const char* kEvaluation = R"({
    "ID": "e1", "Namespace": "default", "Priority": 70, "Type": "batch", "JobID": "sort",
    "JobModifyIndex": 12, "Status": "blocked", "StatusDescription": "created to place remaining",
    "QuotaLimitReached": "small", "CreateIndex": 14, "ModifyIndex": 15,
    "FailedTGAllocs": {
      "one": {"NodesEvaluated": 3, "NodesFiltered": 1, "NodesExhausted": 2, "CoalescedFailures": 4,
              "NodesAvailable": {"dc1": 3}, "ClassFiltered": {"batch": 1},
              "ConstraintFiltered": {"missing drivers": 1}, "ClassExhausted": {"batch": 2},
              "DimensionExhausted": {"memory": 2}, "QuotaExhausted": ["cpu exhausted"]},
      "two": {"NodesEvaluated": 0, "ConstraintFiltered": null}}})";

constexpr const char* kJob = R"({
    "ID": "web", "Namespace": "team", "Type": "service", "Status": "pending", "Stop": false,
    "NodePool": "default", "Datacenters": ["dc1", "dc*"], "Priority": 50, "Version": 3,
    "JobModifyIndex": 77,
    "Constraints": [{"LTarget": "${attr.kernel.name}", "RTarget": "linux", "Operand": "="}],
    "TaskGroups": [{
      "Name": "g", "Count": 4, "EphemeralDisk": {"SizeMB": 300},
      "Constraints": [{"Operand": "distinct_hosts", "RTarget": "true"}],
      "Networks": [{"Mode": "bridge", "ReservedPorts": [{"Label": "http", "Value": 80}]}],
      "Volumes": {"data": {"Type": "host", "Source": "db", "ReadOnly": true, "PerAlloc": true}},
      "Tasks": [{
        "Name": "main", "Driver": "docker", "Lifecycle": null,
        "Constraints": [{"LTarget": "${meta.zone}", "Operand": "is_set"}],
        "Resources": {"CPU": 500, "Cores": 0, "MemoryMB": 256,
                      "Networks": [{"ReservedPorts": [{"Value": 22}]}],
                      "Devices": [{"Name": "nvidia/gpu", "Count": 2, "Constraints": [
                        {"LTarget": "${device.attr.memory}", "RTarget": "2 GiB", "Operand": ">"}]}]}},
       {"Name": "pinned", "Driver": "exec", "Lifecycle": {"Hook": "prestart", "Sidecar": true},
        "Resources": {"CPU": 100, "Cores": 2, "MemoryMB": 64}}]}]})";

absl::StatusOr<Placement> DecodePlacement(const json& value) {
  PlacementRecord record = PlacementFields().Read(value);
  NH_RETURN_IF_ERROR(FinishPlacementRecord(record));
  return record;
}

TEST(DecodePlacement, adds_up_what_runs_at_one_time) {
  const auto placement = DecodePlacement(json::parse(kPlacement));
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(placement->cpu_shares, 950) << "the sidecar beside the larger of init and main";
  EXPECT_EQ(placement->memory_mb, 288);
  EXPECT_EQ(placement->cores, 2);
  EXPECT_EQ(placement->disk_mb, 300);
}

TEST(DecodePlacement, reads_whose_it_is_and_whether_it_leaves) {
  const auto placement = DecodePlacement(json::parse(kPlacement));
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(placement->ns, "default");
  EXPECT_EQ(placement->job, "web");
  EXPECT_EQ(placement->group, "g");
  EXPECT_EQ(placement->node_id, "n1");
  EXPECT_EQ(placement->job_type, "service");
  EXPECT_TRUE(placement->migrate);
  json stays = json::parse(kPlacement);
  stays["DesiredTransition"] = {{"Migrate", nullptr}};
  EXPECT_FALSE(DecodePlacement(stays)->migrate);
}

TEST(DecodePlacement, counts_devices_and_names_ports) {
  const auto placement = DecodePlacement(json::parse(kPlacement));
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_THAT(placement->devices, ElementsAre(Pair("nvidia/gpu/T4", 3), Pair("x/fpga/y", 1)));
  EXPECT_THAT(placement->ports, UnorderedElementsAre(22, 20001, 8080));
}

TEST(LifecycleSum, counts_tasks_at_the_time_at_which_they_run) {
  LifecycleSum sum;
  EXPECT_EQ(sum.Total(), 0);
  sum.Add("", false, 100);
  sum.Add("poststop", false, 150);
  sum.Add("prestart", false, 130);
  EXPECT_EQ(sum.Total(), 150);
  sum.Add("poststart", true, 60);
  EXPECT_EQ(sum.Total(), 160) << "beside the main task";
  sum.Add("prestart", true, 7);
  EXPECT_EQ(sum.Total(), 167);
}

TEST(DecodeEvaluation, reads_why_each_group_has_no_place) {
  EvaluationRecord record = EvaluationFields().Read(json::parse(kEvaluation));
  ASSERT_TRUE(FinishEvaluation(record).ok());
  EXPECT_EQ(record.job, "sort");
  EXPECT_EQ(record.quota_limit_reached, "small");
  EXPECT_EQ(record.create_index, 14U);
  EXPECT_EQ(record.modify_index, 15U);
  ASSERT_EQ(record.failures.size(), 2U);
  const PlacementFailure& one = record.failures.at("one");
  EXPECT_EQ(one.unplaced, 5);
  EXPECT_EQ(one.nodes_evaluated, 3);
  EXPECT_EQ(one.nodes_filtered, 1);
  EXPECT_EQ(one.nodes_exhausted, 2);
  EXPECT_THAT(one.class_filtered, ElementsAre(Pair("batch", 1)));
  EXPECT_THAT(one.constraint_filtered, ElementsAre(Pair("missing drivers", 1)));
  EXPECT_THAT(one.dimension_exhausted, ElementsAre(Pair("memory", 2)));
  EXPECT_THAT(one.quota_exhausted, ElementsAre("cpu exhausted"));
  EXPECT_EQ(record.failures.at("two").unplaced, 1) << "a failure is of one at least";
}

TEST(DecodeJob, reads_what_each_allocation_needs) {
  const auto job = DecodeJob(json::parse(kJob));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->ns, "team");
  EXPECT_EQ(job->node_pool, "default");
  EXPECT_THAT(job->datacenters, ElementsAre("dc1", "dc*"));
  EXPECT_EQ(job->job_modify_index, 77U);
  EXPECT_THAT(job->constraints, ElementsAre(Constraint{"${attr.kernel.name}", "=", "linux"}));
  ASSERT_EQ(job->groups.size(), 1U);
  const TaskGroup& group = job->groups[0];
  EXPECT_EQ(group.count, 4);
  EXPECT_EQ(group.disk_mb, 300);
  EXPECT_EQ(group.network_mode, "bridge");
  EXPECT_THAT(group.static_ports, ElementsAre(80));
  EXPECT_THAT(group.constraints, ElementsAre(Constraint{"", "distinct_hosts", "true"}));
  ASSERT_EQ(group.volumes.size(), 1U);
  EXPECT_EQ(group.volumes[0].source, "db");
  EXPECT_TRUE(group.volumes[0].read_only && group.volumes[0].per_alloc);
  ASSERT_EQ(group.tasks.size(), 2U);
  const Task& main = group.tasks[0];
  EXPECT_EQ(main.driver, "docker");
  EXPECT_EQ(main.hook, "");
  EXPECT_EQ(main.cpu_shares, 500);
  EXPECT_EQ(main.memory_mb, 256);
  EXPECT_THAT(main.static_ports, ElementsAre(22));
  EXPECT_THAT(main.constraints, ElementsAre(Constraint{"${meta.zone}", "is_set", ""}));
  ASSERT_EQ(main.devices.size(), 1U);
  EXPECT_EQ(main.devices[0].name, "nvidia/gpu");
  EXPECT_EQ(main.devices[0].count, 2);
  EXPECT_THAT(main.devices[0].constraints,
              ElementsAre(Constraint{"${device.attr.memory}", ">", "2 GiB"}));
  const Task& pinned = group.tasks[1];
  EXPECT_EQ(pinned.hook, "prestart");
  EXPECT_TRUE(pinned.sidecar);
  EXPECT_EQ(pinned.cores, 2);
  EXPECT_EQ(pinned.cpu_shares, 0) << "its cores have their own share";
}

TEST(DecodeJob, tells_ports_on_a_named_network_of_the_host) {
  json job = json::parse(kJob);
  json& network = job["TaskGroups"][0]["Networks"][0];
  const auto has = [&] { return DecodeJob(job)->groups.at(0).host_networks; };
  EXPECT_FALSE(has());
  network["ReservedPorts"][0]["HostNetwork"] = "default";
  EXPECT_FALSE(has());
  network["ReservedPorts"][0]["HostNetwork"] = "public";
  EXPECT_TRUE(has());
  network.erase("ReservedPorts");
  EXPECT_FALSE(has());
  network["DynamicPorts"] = json::array({{{"Label", "x"}, {"HostNetwork", "public"}}});
  EXPECT_TRUE(has());
}

TEST(DecodeWork, members_that_are_null_or_of_another_type_are_missing) {
  for (const char* text : {kPlacement, kEvaluation, kJob}) {
    const json flat = json::parse(text).flatten();
    for (const auto& [path, value] : flat.items()) {
      if (path == "/ID") continue;
      for (const json& other : {json(nullptr), json::array({1}), json(-3.5), json("text")}) {
        json changed = json::parse(text);
        changed[json::json_pointer(path)] = other;
        EXPECT_TRUE(DecodePlacement(changed).ok()) << changed;
        EXPECT_TRUE(DecodeJob(changed).ok()) << changed;
        EvaluationRecord evaluation = EvaluationFields().Read(changed);
        EXPECT_TRUE(FinishEvaluation(evaluation).ok()) << changed;
      }
    }
  }
}

class NomadWork : public ClientFixture {};

TEST_F(NomadWork, placements_are_those_that_hold_room) {
  std::string list = "[";
  for (const char* status :
       {R"("run","ClientStatus":"pending")", R"("run","ClientStatus":"running")",
        R"("run","ClientStatus":"unknown")", R"("run","ClientStatus":"failed")",
        R"("run","ClientStatus":"lost")", R"("run","ClientStatus":"complete")",
        R"("stop","ClientStatus":"running")", R"("evict","ClientStatus":"running")",
        R"("stop","ClientStatus":"complete")"}) {
    list += R"({"ID":"a)" + std::to_string(list.size()) + R"(","DesiredStatus":)" + status + "},";
  }
  list.back() = ']';
  transport_->Reply(200, list, {{"X-Nomad-Index", "9"}});
  const auto placements = client_.ListPlacements(context_);
  ASSERT_TRUE(placements.ok()) << placements.status();
  EXPECT_EQ(placements->value.size(), 5U) << "those that stop hold it until they have ended";
  EXPECT_EQ(placements->index, 9U);
  EXPECT_EQ(OnlyRequest().target,
            "/v1/allocations?namespace=*&resources=true&task_states=false&filter="
            "ClientStatus%20%21%3D%20%22complete%22%20and%20"
            "ClientStatus%20%21%3D%20%22failed%22%20and%20"
            "ClientStatus%20%21%3D%20%22lost%22");
}

TEST_F(NomadWork, blocked_evaluations_are_those_of_service_and_batch_jobs) {
  transport_->Reply(200, R"([{"ID":"1","Status":"blocked","Type":"service"},
                             {"ID":"2","Status":"blocked","Type":"system"},
                             {"ID":"3","Status":"blocked","Type":"batch"},
                             {"ID":"4","Status":"pending","Type":"batch"}])",
                    {{"X-Nomad-Index", "9"}});
  const auto evaluations = client_.ListBlockedEvaluations(context_);
  ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  ASSERT_EQ(evaluations->value.size(), 2U);
  EXPECT_EQ(evaluations->value[0].id, "1");
  EXPECT_EQ(evaluations->value[1].id, "3");
  EXPECT_EQ(OnlyRequest().target, "/v1/evaluations?namespace=*&status=blocked");
}

TEST_F(NomadWork, C19_pending_evaluations_say_whether_nomad_delays_them) {
  transport_->Reply(
      200, R"([{"ID":"1","Status":"pending","Type":"service","WaitUntil":"0001-01-01T00:00:00Z"},
               {"ID":"2","Status":"pending","Type":"batch","WaitUntil":"2030-01-01T00:00:00Z"},
               {"ID":"3","Status":"pending","Type":"system"},
               {"ID":"4","Status":"blocked","Type":"batch"}])",
      {{"X-Nomad-Index", "9"}});
  const auto evaluations = client_.ListPendingEvaluations(context_);
  ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  ASSERT_EQ(evaluations->value.size(), 2U);
  EXPECT_FALSE(evaluations->value[0].delayed);
  EXPECT_TRUE(evaluations->value[1].delayed);
  EXPECT_EQ(OnlyRequest().target, "/v1/evaluations?namespace=*&status=pending");
}

TEST_F(NomadWork, jobs_are_listed_with_what_is_queued_and_without_dead_ones) {
  transport_->Reply(200, R"([{"ID":"web","Namespace":"team","Type":"service","Status":"running",
                              "JobModifyIndex":5,
                              "JobSummary":{"Summary":{"a":{"Queued":3},"b":{"Queued":0}}}},
                             {"ID":"old","Status":"dead"}])",
                    {{"X-Nomad-Index", "9"}});
  const auto jobs = client_.ListJobs(context_);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->value.size(), 1U);
  EXPECT_EQ(jobs->value[0].job_modify_index, 5U);
  EXPECT_THAT(jobs->value[0].queued, ElementsAre(Pair("a", 3), Pair("b", 0)));
  EXPECT_EQ(OnlyRequest().target, "/v1/jobs?namespace=*&filter=Status%20%21%3D%20%22dead%22");
}

TEST_F(NomadWork, a_job_is_read_in_its_namespace) {
  transport_->Reply(200, R"({"ID":"a/b"})");
  ASSERT_TRUE(client_.GetJob(context_, "team", "a/b").ok());
  EXPECT_EQ(OnlyRequest().target, "/v1/job/a%2Fb?namespace=team");
}

TEST_F(NomadWork, a_reply_about_another_job_is_refused) {
  transport_->Reply(200, R"({"ID":"c"})");
  EXPECT_EQ(client_.GetJob(context_, "team", "b").status().code(), absl::StatusCode::kInternal);
}

TEST_F(NomadWork, a_refusal_names_the_right_that_is_missing) {
  for (int i = 0; i < 4; ++i) transport_->Reply(403, "Permission denied");
  const absl::Status refusals[] = {
      client_.ListPlacements(context_).status(), client_.ListBlockedEvaluations(context_).status(),
      client_.GetJob(context_, "team", "b").status(), client_.ListJobs(context_).status()};
  for (const absl::Status& refusal : refusals) {
    EXPECT_EQ(refusal.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(base::Message(refusal),
                HasSubstr(&refusal == &refusals[3] ? "list-jobs" : "read-job"));
  }
}

TEST_F(NomadWork, S1_a_list_without_an_index_or_an_id_proves_nothing) {
  for (const char* body : {"[]", "null", "[{}]", "{}", "<html>"}) {
    for (int i = 0; i < 3; ++i) transport_->Reply(200, body);
    EXPECT_FALSE(client_.ListPlacements(context_).ok()) << body;
    EXPECT_FALSE(client_.ListBlockedEvaluations(context_).ok()) << body;
    EXPECT_FALSE(client_.ListJobs(context_).ok()) << body;
  }
  transport_->Reply(200, "[]", {{"X-Nomad-Index", "9"}});
  EXPECT_THAT(client_.ListBlockedEvaluations(context_)->value, IsEmpty());
}

}  // namespace
}  // namespace nomad_harvester::nomad
