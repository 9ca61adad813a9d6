// SPDX-License-Identifier: Apache-2.0
//
// Whole actions, undisturbed and disturbed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"

#include "harness.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Pair;

TEST(ScaleOut, C6_each_new_vm_has_a_firmware_uuid_of_its_own_and_records_the_index_of_nomad) {
  Harness h;
  ASSERT_TRUE(h.Scale(3).ok());
  std::set<std::string> uuids;
  for (const json& vm : h.Vms()) {
    const json* uuid =
        base::FindPath(vm, {"spec", "template", "spec", "domain", "firmware", "uuid"});
    ASSERT_NE(uuid, nullptr);
    uuids.insert(*uuid);
    const auto nodes = base::ParseJson(AnnotationOf(vm, Key("nodes")), "nodes");
    ASSERT_TRUE(nodes.ok()) << nodes.status();
    EXPECT_GT(base::GetInt(*nodes, "index"), 1) << "nodes that are older cannot be its own";
  }
  EXPECT_EQ(uuids.size(), 3U);
}

TEST(ScaleOut, C3_a_vm_whose_volumes_do_not_come_is_explained_in_the_provisioners_words) {
  Harness h;
  h.cluster.FailStart(1, "ErrorUnschedulable",
                      "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.");
  h.clock.After(minutes(1), [&] {
    for (const json& claim : h.Claims()) {
      const std::string name = claim["metadata"]["name"];
      h.cluster.PutObject({{"apiVersion", "events.k8s.io/v1"},
                           {"kind", "Event"},
                           {"metadata", {{"name", name + ".1"}, {"namespace", "nomad"}}},
                           {"deprecatedLastTimestamp", base::FormatRfc3339(h.clock.WallNow())},
                           {"regarding", {{"kind", "PersistentVolumeClaim"}, {"name", name}}},
                           {"reason", "ProvisioningFailed"},
                           {"note", "storageclass.storage.k8s.io \"fast\" not found"},
                           {"type", "Warning"}});
    }
  });
  constexpr char kWords[] = ": ProvisioningFailed: storageclass.storage.k8s.io";
  EXPECT_THAT(h.Scale(1).ToString(), AllOf(HasSubstr("; volume web-"), HasSubstr(kWords)));
  EXPECT_THAT(h.Leases().at(0)["metadata"]["annotations"][Key("last-error")].get<std::string>(),
              HasSubstr("ProvisioningFailed"));
  const int asked = h.cluster.RequestCount(System::kHarvester, "list", "events");
  EXPECT_LE(asked, 2 * 16) << "once a minute, until the VM's deadline";
  h.CheckAtRest(0);
  h.Tick(hours(1));
  EXPECT_EQ(h.cluster.RequestCount(System::kHarvester, "list", "events"), asked);
}

TEST(ScaleOut, C12_creation_backs_off_after_a_failure_and_a_success_clears_it) {
  Harness h;
  h.cluster.NeverJoin(1);
  EXPECT_FALSE(h.Scale(1).ok());
  const absl::Status refused = h.Scale(1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(refused.ToString(), HasSubstr("the join of new VMs failed 1 time"));
  h.clock.Advance(minutes(1));
  EXPECT_TRUE(h.Scale(1).ok());
  EXPECT_TRUE(h.Scale(2).ok());
  h.CheckAtRest(2);
}

TEST(ScaleOut, C12_nothing_is_made_before_the_back_off_knows_of_a_failure) {
  Harness h;
  h.cluster.NeverJoin(1);
  ASSERT_TRUE(h.Accept(1).ok());
  h.clock.Advance(hours(1));
  const absl::Status early = h.Accept(1);
  EXPECT_EQ(early.code(), absl::StatusCode::kUnavailable) << early;
  EXPECT_THAT(early.ToString(), HasSubstr("has just failed (it has not joined"));
  EXPECT_EQ(h.Vms().size(), 1U);
  h.Settle();
  EXPECT_TRUE(h.Vms().empty());
  EXPECT_EQ(h.Accept(1).code(), absl::StatusCode::kResourceExhausted);
}

TEST(Rights, C2_each_of_a_growth_is_named_when_it_is_missing_and_nothing_is_made) {
  for (const std::string right :
       {"get virtualmachines", "create virtualmachines", "patch virtualmachines",
        "delete virtualmachines", "get secrets", "list secrets", "create secrets", "patch secrets",
        "delete secrets", "list persistentvolumeclaims", "delete persistentvolumeclaims"}) {
    Harness h;
    const std::size_t space = right.find(' ');
    h.cluster.Forbid(right.substr(0, space), right.substr(space + 1));
    EXPECT_THAT(h.Scale(1).ToString(),
                HasSubstr("the token may not, in namespace nomad: " + right));
    EXPECT_TRUE(h.Vms().empty());
    EXPECT_TRUE(h.Secrets().empty());
  }
}

TEST(Rights, C2_each_of_a_removal_is_named_when_it_is_missing_and_nothing_is_drained) {
  for (const std::string right :
       {"get virtualmachines", "patch virtualmachines", "delete virtualmachines", "list secrets",
        "delete secrets", "list persistentvolumeclaims", "delete persistentvolumeclaims"}) {
    Harness h;
    h.Reach(2);
    const std::size_t space = right.find(' ');
    h.cluster.Forbid(right.substr(0, space), right.substr(space + 1));
    h.cluster.ResetCounters();
    EXPECT_THAT(h.Scale(1).ToString(),
                HasSubstr("the token may not, in namespace nomad: " + right));
    EXPECT_EQ(h.cluster.RequestCount(System::kNomad, "update", "drain"), 0);
  }
}

TEST(Lease, C10_an_intent_whose_reply_is_no_lease_is_not_taken_for_stored) {
  Harness h;
  bool lied = false;
  h.Inject(Fault::Answer(200, "{}"), [&](const RequestInfo& request) {
    return request.resource == "leases" && request.verb == "patch" &&
           request.body.find("autoscaler/action\":\"{") != std::string::npos &&
           !std::exchange(lied, true);
  });
  EXPECT_THAT(h.Scale(2).ToString(), HasSubstr("the reply is no Lease"));
  EXPECT_TRUE(lied);
  EXPECT_TRUE(h.Vms().empty());
  h.cluster.SetFaultHook(nullptr);
  h.Converge(2);
  h.CheckAtRest(2);
}

TEST(ScaleOut, C2_everything_that_is_missing_is_named_at_once) {
  Harness h;
  h.policy["user_data_file"] = "/nonexistent/user-data";
  h.policy.erase("user_data");
  h.policy["image"] = "default/nope";
  h.policy["ssh_keys"] = "default/nokey";
  h.policy["networks"] = "default/nonet";
  const std::string scaled = h.Scale(1).ToString();
  for (const char* const part : {"user_data_file: /nonexistent/user-data", "create it there",
                                 "\"nope\"", "default/nokey", "default/nonet"}) {
    EXPECT_THAT(scaled, HasSubstr(part));
  }
}

TEST(ScaleIn, C2_a_token_that_cannot_read_allocations_refuses_a_choice_by_load) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  h.cluster.DenyReadJob(true);
  const absl::Status scaled = h.Scale(1);
  EXPECT_EQ(scaled.code(), absl::StatusCode::kFailedPrecondition) << scaled;
  EXPECT_THAT(scaled.ToString(), HasSubstr("read-job"));
  h.CheckAtRest(2);
}

TEST(ScaleIn, C14_a_roll_back_that_is_due_is_finished_before_victims_are_chosen) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  const std::string vm = h.VmNames()[0];
  const std::string node = h.NodeOf(vm);
  h.RunJob(1);
  h.cluster.HangDrain(node);
  ASSERT_TRUE(h.Accept(0).ok());
  ASSERT_TRUE(h.cluster.EditAnnotation(vm, kMarkKey, std::nullopt));
  // As long as that drain runs, the VM would be no victim.
  h.OnEachRequest([&](const RequestInfo& request) {
    if (request.resource == "drain") h.cluster.HangDrain(node, false);
  });
  const absl::Status scaled = h.Scale(0);
  EXPECT_TRUE(scaled.ok()) << scaled << "\n" << h.Transcript();
  h.CheckAtRest(0);
}

TEST(ScaleIn, C11_a_new_action_goes_on_naming_vms_that_an_earlier_one_marked) {
  Harness h;
  ASSERT_TRUE(h.Scale(3).ok());
  h.RunJob(3);
  h.HangDrains();
  ASSERT_TRUE(h.Accept(2).ok());
  ASSERT_TRUE(h.Accept(1).ok());
  const std::vector<json> vms = h.Vms();
  EXPECT_EQ(std::count_if(vms.begin(), vms.end(), IsMarked), 2) << h.Transcript();
  h.HangDrains(false);
  h.WaitUntilReady();
  h.CheckAtRest(1);
}

TEST(ScaleIn, C5_a_vm_whose_guest_registers_again_just_before_its_deletion_is_kept) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  std::string new_node;
  // The observation that finds a node drained reads allocations: at that moment its agent loses its
  // data directory and registers under another ID.
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.verb != "list" || request.resource != "allocations" || !new_node.empty()) {
      return Fault::None();
    }
    for (const json& node : h.Nodes()) {
      const json* status = base::FindPath(node, {"LastDrain", "Status"});
      if (status == nullptr || *status != "complete") continue;
      const std::string id = base::GetString(node, "ID");
      return Fault::BeforeReply(
          [&h, &new_node, id] { new_node = h.cluster.ReviveNodeUnderNewId(id); });
    }
    return Fault::None();
  });
  const absl::Status scaled = h.Scale(1);
  ASSERT_FALSE(new_node.empty());
  EXPECT_THAT(scaled.ToString(), HasSubstr("several nodes could be it")) << h.Transcript();
  h.WaitUntilReady();
  h.CheckAtRest(2);
}

// Nomad does not require that clients have different names (hashicorp/nomad#14401). The forged node
// copies the address of the VM's own, and adds a hint that this one lacks.
TEST(ScaleIn, C6_a_vm_is_not_deleted_for_a_forged_node_of_its_name) {
  for (const char* status : {"ready", "disconnected", "down", "initializing"}) {
    Harness h;
    ASSERT_TRUE(h.Scale(1).ok());
    const json own = h.Nodes().at(0);
    const json vm = h.Vms().at(0);
    const json* uuid =
        base::FindPath(vm, {"spec", "template", "spec", "domain", "firmware", "uuid"});
    ASSERT_NE(uuid, nullptr);
    h.cluster.AddForeignNode(
        {.name = h.VmNames().at(0),
         .node_class = "web",
         .attributes = {{"unique.network.ip-address", base::GetString(own, "Address")},
                        {"unique.host_id", uuid->get<std::string>()}}});
    h.cluster.SetNodeStatus(base::GetString(own, "ID"), status);
    EXPECT_THAT(h.Scale(0).ToString(), HasSubstr("several nodes could be it")) << status;
    EXPECT_EQ(h.VmNames().size(), 1U) << status << "\n" << h.Transcript();
  }
}

TEST(ScaleIn, C5_a_start_after_the_last_read_of_the_instance_prevents_the_deletion) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  const std::string vm = h.VmNames()[0];
  const std::string node = h.NodeOf(vm);
  ASSERT_TRUE(h.cluster.StopVm(vm));
  h.clock.Advance(minutes(1));
  bool started = false;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.verb != "get" || request.resource != "virtualmachineinstances" || started) {
      return Fault::None();
    }
    started = true;
    return Fault::BeforeReply([&] { h.cluster.StartVm(vm); });
  });
  h.cluster.ResetCounters();
  EXPECT_TRUE(h.Scale(1).ok()) << h.Transcript();
  ASSERT_TRUE(started);
  EXPECT_EQ(h.cluster.RequestCount(System::kHarvester, "delete", "virtualmachines"), 2)
      << "the first one is a conflict; then all is looked at again\n"
      << h.Transcript();
  h.CheckAtRest(1);
}

TEST(ScaleIn, C4_a_cancelled_drain_is_rolled_back_alone) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  h.RunJob(2);
  const std::string victim = h.VmNames()[0];
  const std::string node = h.NodeOf(victim);
  h.cluster.HangDrain(node);
  h.clock.After(seconds(12), [&] { h.cluster.CancelDrain(node, true); });
  const absl::Status scaled = h.Scale(0);
  EXPECT_FALSE(scaled.ok());
  EXPECT_THAT(scaled.ToString(), HasSubstr("cancelled by an operator")) << h.Transcript();
  h.WaitUntilReady();
  h.CheckAtRest(1);
}

TEST(ScaleIn, C9_work_that_holds_a_drain_is_named_and_its_forced_end_is_a_warning) {
  Harness h;
  h.policy["node_drain_deadline"] = "3m";
  h.policy["drain_grace"] = "30s";
  ASSERT_TRUE(h.Scale(1).ok());
  h.RunJob(1);
  h.HangDrains();
  EXPECT_TRUE(h.Scale(0).ok()) << h.Transcript();
  const std::string log = h.log->Text();
  EXPECT_THAT(log, HasSubstr("A drain waits for running work"));
  EXPECT_EQ(h.log->Count("A drain waits for running work"), 1U) << "once per change";
  EXPECT_EQ(h.log->Count("Deleted a VM although its drain had not ended", log::Level::kWarn), 1U)
      << log;
  EXPECT_THAT(log, HasSubstr("running=\"job "));
  EXPECT_THAT(log, HasSubstr("lost=\"job "));
  EXPECT_THAT(log, testing::Not(HasSubstr(" step=")));
}

TEST(ScaleIn, C9_without_force_work_that_outlives_the_deadline_keeps_its_vm) {
  Harness h;
  h.policy["node_drain_deadline"] = "1m";
  h.policy["drain_grace"] = "30s";
  h.policy["force_after_deadline"] = "false";
  ASSERT_TRUE(h.Scale(1).ok());
  h.cluster.RunJob({.id = "api", .poststop = minutes(30)});
  h.clock.Advance(seconds(5));
  EXPECT_THAT(h.Scale(0).ToString(), HasSubstr("past its deadline and grace"));
  h.WaitUntilReady();
  h.CheckAtRest(1);
}

TEST(ScaleIn, L3_a_refused_deletion_is_tried_ever_more_rarely_and_rolled_back_after_a_minute) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  int refused = 0;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.verb != "delete" || request.resource != "virtualmachines") {
      return Fault::None();
    }
    ++refused;
    return Fault::Answer(403);
  });
  const base::MonoTime begun = h.clock.Now();
  EXPECT_THAT(h.Scale(0).ToString(), HasSubstr("its removal has been refused for a minute"));
  EXPECT_THAT(h.log->Text(), ContainsRegex("A step is refused.*why=\"node web-.* is drained"));
  EXPECT_LT(h.clock.Now() - begun, minutes(3));
  EXPECT_GE(refused, 5);
  EXPECT_LE(refused, 8);
  h.cluster.SetFaultHook(nullptr);
  h.Converge(0);
  h.CheckAtRest(0);
}

std::set<std::string> KeysOf(const log::Record& record) {
  std::set<std::string> keys;
  for (const log::Field& field : record.fields) keys.insert(field.key);
  return keys;
}

TEST(ScaleOut, C14_growth_cancels_removals_before_it_creates) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  const std::vector<std::string> before = h.VmNames();
  h.RunJob(2);
  for (const std::string& vm : before) h.cluster.HangDrain(h.NodeOf(vm));
  ASSERT_TRUE(h.Accept(0).ok()) << h.Transcript();
  ASSERT_TRUE(h.Scale(2).ok()) << h.Transcript();
  EXPECT_EQ(h.VmNames(), before);
  h.WaitUntilReady();
  h.CheckAtRest(2);
  int cancelled = 0;
  for (const log::Record& record : h.log->records()) {
    if (record.message != "Cancelled the removal of a VM") continue;
    ++cancelled;
    EXPECT_THAT(KeysOf(record), IsSupersetOf({"action_id", "pool", "policy_id", "vm"})) << "T1";
  }
  EXPECT_EQ(cancelled, 2);
}

TEST(Scale, T1_decision_and_outcome_are_one_line_each_with_pool_counts_and_reason) {
  Harness h;
  for (const int count : {2, 1}) ASSERT_TRUE(h.Scale(count, R"({"nomad_policy_id":"p-1"})").ok());
  std::map<std::string, int> lines;
  for (const log::Record& record : h.log->records()) {
    if (record.level < log::Level::kInfo) continue;
    ++lines[record.message];
    if (record.message == "Planned" || record.message == "Scale accepted") {
      EXPECT_THAT(KeysOf(record),
                  IsSupersetOf({"action_id", "pool", "policy_id", "reason", "from", "to"}));
    }
    if (record.message == "A new VM is ready" || record.message == "Removed a VM") {
      EXPECT_THAT(KeysOf(record), IsSupersetOf({"action_id", "pool", "policy_id", "vm"}));
      EXPECT_THAT(log::FormatPlain(record), HasSubstr("policy_id=p-1"));
    }
  }
  EXPECT_EQ(lines["Planned"], 2);
  EXPECT_EQ(lines["Scale accepted"], 2);
  EXPECT_EQ(lines["A new VM is ready"], 2);
  EXPECT_EQ(lines["Removed a VM"], 1);
}

std::vector<log::Record> Refusals(const Harness& h) {
  std::vector<log::Record> refusals;
  for (const log::Record& record : h.log->records()) {
    if (record.message == "Scale refused") refusals.push_back(record);
  }
  return refusals;
}

std::map<log::Level, int> LevelsOfRefusals(const Harness& h) {
  std::map<log::Level, int> levels;
  for (const log::Record& record : Refusals(h)) ++levels[record.level];
  return levels;
}

TEST(Scale, T1_a_refusal_is_one_warning_with_pool_counts_and_reason) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  const std::size_t before = h.log->records().size();
  h.cluster.Forbid("create", "virtualmachines");
  EXPECT_EQ(h.Scale(3, R"({"nomad_policy_id":"p-1"})").code(), absl::StatusCode::kPermissionDenied);
  const std::vector<log::Record> refusals = Refusals(h);
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_THAT(KeysOf(refusals[0]),
              IsSupersetOf({"action_id", "pool", "policy_id", "reason", "from", "to", "error"}));
  EXPECT_THAT(log::FormatPlain(refusals[0]),
              AllOf(HasSubstr("policy_id=p-1"), HasSubstr("from=1"), HasSubstr("to=3"),
                    HasSubstr("create virtualmachines.kubevirt.io")));
  EXPECT_EQ(refusals[0].level, log::Level::kWarn);
  const std::vector<log::Record> records = h.log->records();
  for (std::size_t i = before; i < records.size(); ++i) {
    EXPECT_TRUE(records[i].level < log::Level::kWarn || records[i].message == "Scale refused")
        << log::FormatPlain(records[i]);
  }
}

TEST(Scale, T1_a_success_ends_the_refusals_of_a_policy_that_could_not_be_read) {
  Harness h;
  h.policy.erase("namespace");
  const std::string cpu = h.policy["cpu_request"];
  for (int i = 0; i < 2; ++i) {
    h.policy["cpu_request"] = "abc";
    EXPECT_FALSE(h.Scale(0).ok());
    h.policy["cpu_request"] = cpu;
    EXPECT_TRUE(h.Scale(0).ok()) << h.Transcript();
  }
  EXPECT_THAT(LevelsOfRefusals(h), ElementsAre(Pair(log::Level::kWarn, 2)));
  EXPECT_THAT(log::FormatPlain(Refusals(h)[0]), HasSubstr("pool=default/"));
}

TEST(Scale, T1_a_back_off_is_one_warning_however_often_it_refuses) {
  Harness h;
  h.cluster.FailStart(1, "ErrorUnschedulable", "no host has room");
  EXPECT_FALSE(h.Scale(1).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(h.Scale(1).code(), absl::StatusCode::kResourceExhausted);
    h.clock.Advance(seconds(1));
  }
  EXPECT_THAT(LevelsOfRefusals(h), ElementsAre(Pair(log::Level::kWarn, 1)));
}

TEST(Scale, T1_a_policy_that_is_refused_is_named_by_its_pool) {
  Harness h;
  h.policy["no_such_key"] = "1";
  EXPECT_EQ(h.Scale(1).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(Refusals(h).size(), 1U);
  EXPECT_THAT(log::FormatPlain(Refusals(h)[0]),
              AllOf(HasSubstr("WARN"), HasSubstr("nomad/web"), HasSubstr("no_such_key")));
}

TEST(Scale, T1_a_busy_pool_and_a_client_that_went_away_are_no_refusals) {
  Harness h;
  std::function<void()> meanwhile;
  h.OnEachRequest([&](const RequestInfo& request) {
    if (request.verb == "create" && request.resource == "virtualmachines") meanwhile();
  });
  absl::Status second;
  meanwhile = [&] { second = h.process().Scale(5, h.policy); };
  EXPECT_TRUE(h.Scale(1).ok());
  EXPECT_EQ(second.code(), absl::StatusCode::kAborted);
  meanwhile = [&] { h.process().CancelScale(); };
  EXPECT_EQ(h.Scale(2).code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(Refusals(h), IsEmpty());
}

TEST(Scale, T1_a_call_that_was_cancelled_does_not_end_a_refusal) {
  Harness h;
  h.cluster.Forbid("create", "virtualmachines");
  EXPECT_EQ(h.Scale(1).code(), absl::StatusCode::kPermissionDenied);
  h.OnEachRequest([&](const RequestInfo& request) {
    if (request.verb == "list") h.process().CancelScale();
  });
  EXPECT_EQ(h.Scale(1).code(), absl::StatusCode::kCancelled);
  h.cluster.SetFaultHook(nullptr);
  EXPECT_EQ(h.Scale(1).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(LevelsOfRefusals(h), ElementsAre(Pair(log::Level::kWarn, 1)));
}

TEST(Scale, T1_a_scale_that_acted_ends_a_refusal_even_if_it_failed) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  h.cluster.Forbid("create", "virtualmachines");
  EXPECT_EQ(h.Scale(2).code(), absl::StatusCode::kPermissionDenied);
  h.Inject(Fault::Answer(422), [](const RequestInfo& request) {
    return request.verb == "patch" && request.resource == "virtualmachines";
  });
  EXPECT_FALSE(h.Scale(0).ok());
  EXPECT_EQ(h.Scale(2).code(), absl::StatusCode::kPermissionDenied);
  const std::vector<log::Record> refusals = Refusals(h);
  ASSERT_EQ(refusals.size(), 2U);
  EXPECT_EQ(refusals[1].level, log::Level::kWarn);
}

TEST(Scale, T1_the_refusals_of_one_pool_do_not_hide_those_of_another) {
  Harness h;
  scaling::StringMap other = h.policy;
  other["node_group_name"] = "db";
  h.policy["no_such_key"] = other["no_such_key"] = "1";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(h.Scale(1).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(h.process().Scale(1, other).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(LevelsOfRefusals(h), ElementsAre(Pair(log::Level::kWarn, 2)));
}

TEST(Status, C15_the_ten_minutes_of_a_mass_loss_go_on_while_nomad_cannot_be_read) {
  Harness h;
  h.Reach(3);
  for (const std::string& vm : h.VmNames()) {
    const std::string node = h.NodeOf(vm);
    h.cluster.KillNode(node);
    h.cluster.PurgeNode(node);
  }
  const auto ready_after = [&](base::Duration time) {
    h.clock.Advance(time);
    const auto status = h.Status();
    return status.ok() && status->ready;
  };
  EXPECT_FALSE(ready_after(seconds(0)));
  h.cluster.SetNomadReachable(false);
  EXPECT_FALSE(ready_after(minutes(6)));
  h.cluster.SetNomadReachable(true);
  EXPECT_TRUE(ready_after(minutes(4))) << h.Transcript();
}

// In milliseconds.
int LongestWaitForNodes(const std::string& block_query_wait_time) {
  Harness h;
  EXPECT_TRUE(h.Scale(1).ok());
  h.RunJob(1);
  h.HangDrains();
  EXPECT_TRUE(h.Accept(0).ok());
  int longest = 0;
  h.OnEachRequest([&](const RequestInfo& request) {
    const std::size_t wait = request.target.find("&wait=");
    if (request.resource == "nodes" && wait != std::string::npos) {
      longest = std::max(longest, std::stoi(request.target.substr(wait + 6)));
    }
  });
  Process process(h.clock, h.cluster, 99, h.log,
                  {.config = {{"nomad_block-query-wait-time", block_query_wait_time}}});
  h.clock.After(minutes(2), [&] { h.HangDrains(false); });
  EXPECT_TRUE(process.Status(h.policy).ok());
  process.RunBackground();
  return longest;
}

TEST(Background, a_blocking_query_waits_as_long_as_configured_and_never_more_than_5s) {
  EXPECT_EQ(LongestWaitForNodes("1500ms"), 1500);
  EXPECT_EQ(LongestWaitForNodes("5m0s"), 5000);
}

TEST(DryRun, C13_names_what_a_killed_process_left_over) {
  Harness h;
  // Its names are on the Lease, and none of their objects exist.
  h.ScaleAndDieAt(1, "create", "secrets", false);
  h.Restart();
  EXPECT_TRUE(
      h.Scale(-1, R"({"nomad_autoscaler.dry_run":true,"nomad_autoscaler.dry_run.count":2})").ok());
  EXPECT_THAT(h.log->Text(), ContainsRegex("scale out 0 → 2: create 2 web-[a-z0-9]+ .left over"));
}

TEST(Scale, T1_only_names_of_an_earlier_action_are_left_over) {
  Harness h;
  ASSERT_TRUE(h.Scale(2).ok());
  EXPECT_THAT(h.log->Text(),
              AllOf(HasSubstr("scale out 0 → 2: create 2"), testing::Not(HasSubstr("left over"))));
}

TEST(DryRun, C8_without_an_answer_drift_is_what_was_read_last) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  h.policy["memory_request"] = "8Gi";
  h.Reach(2);
  h.Inject(Fault::Answer(403),
           [](const RequestInfo& request) { return request.resource == "virtualmachineimages"; });
  EXPECT_TRUE(
      h.Scale(-1, R"({"nomad_autoscaler.dry_run":true,"nomad_autoscaler.dry_run.count":1})").ok());
  EXPECT_THAT(h.log->Text(), ContainsRegex("scale in 2 → 1: [^\n]*drifted"));
}

TEST(Status, S4_drifted_counts_the_vms_of_another_template_than_the_last_scale_found) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  h.policy["memory_request"] = "8Gi";
  EXPECT_EQ(h.Status()->meta.at("harvester.drifted"), "0") << "no Scale has found it yet";
  ASSERT_TRUE(h.Scale(2).ok());
  EXPECT_EQ(h.Status()->meta.at("harvester.drifted"), "1");
}

// The first process has made some of the VMs when the second one's first request for the Lease gets
// this answer.
class OneRefusal : public testing::TestWithParam<const char*> {};

TEST_P(OneRefusal, C11_of_the_lease_makes_no_vm_too_many) {
  constexpr int kWanted = 9;
  Harness h;
  Process& first = h.process();
  int created = 0;
  bool refused = false;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    EXPECT_LE(h.VmNames().size(), static_cast<std::size_t>(kWanted)) << h.Transcript();
    if (request.client != first.name()) {
      if (request.resource != "leases" || std::exchange(refused, true)) {
        return Fault::None();
      }
      return Fault::Answer(403, GetParam());
    }
    if (request.resource == "virtualmachines" && request.verb == "create" && ++created == 6) {
      h.Start();
      EXPECT_FALSE(h.Scale(kWanted).ok());
      EXPECT_TRUE(absl::IsAborted(h.Scale(kWanted))) << "the first one acts";
    }
    return Fault::None();
  });
  absl::Status scaled;
  {
    const Invariants::Scale open(h.invariants, h.policy.at("node_group_name"), kWanted);
    scaled = first.Scale(kWanted, h.policy);
  }
  EXPECT_TRUE(scaled.ok()) << scaled << "\n" << h.Transcript();
  EXPECT_TRUE(refused);
  h.cluster.SetFaultHook(nullptr);
  h.WaitUntilReady();
  h.CheckAtRest(kWanted);
}

INSTANTIATE_TEST_SUITE_P(
    Lease, OneRefusal,
    testing::Values("<html><head><title>403 Forbidden</title></head></html>",
                    R"({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
                        "message": "leases is forbidden: RBAC: role not found"})"));

TEST(DeletionHolds,
     C18_a_drained_vm_waits_until_a_program_has_removal_cancelled_what_it_has_elsewhere) {
  Harness h;
  h.policy["deletion_holds"] = "vpn";
  ASSERT_TRUE(h.Scale(1).ok());
  const std::string vm = h.VmNames().at(0);
  bool released = false;
  h.OnEachRequest([&](const RequestInfo& request) {
    if (request.resource == "virtualmachines" && request.verb == "delete") {
      EXPECT_TRUE(released);
    }
  });
  h.clock.After(minutes(5), [&] {
    json object = h.cluster.Vm(vm);
    object["metadata"]["annotations"].erase(Key("hold-vpn"));
    released = h.cluster.PutObject(object);
  });
  ASSERT_TRUE(h.Scale(0).ok()) << h.Transcript();
  EXPECT_TRUE(released);
  EXPECT_THAT(h.log->Text(), HasSubstr("is drained, and it is held by vpn, until "));
  h.CheckAtRest(0);
}

// The clocks of the API servers against Nomad's and the plugin's, and for how long.
struct Skew {
  const char* what;
  std::vector<base::Duration> servers;
  base::Duration lasts;
};

TEST(DeletionHolds, C18_a_vm_that_nobody_releases_goes_after_hold_timeout_whatever_clock_is_wrong) {
  const base::Duration always = hours(9);
  for (const Skew& skew : std::vector<Skew>{{"none", {}, always},
                                            {"Nomad 3 s ahead", {-seconds(3)}, always},
                                            {"Nomad an hour ahead", {-hours(1)}, always},
                                            {"Nomad an hour behind", {hours(1)}, always},
                                            {"a few replies an hour ahead", {hours(1)}, seconds(9)},
                                            {"a server ahead", {{}, hours(1), {}}, always},
                                            {"a server behind", {{}, -hours(1), {}}, always}}) {
    SCOPED_TRACE(skew.what);
    Harness h;
    h.policy["deletion_holds"] = "vpn";
    h.policy["hold_timeout"] = "20m";
    ASSERT_TRUE(h.Scale(1).ok());
    const bool later = skew.lasts < always;
    h.clock.After(later ? minutes(10) : base::Duration(),
                  [&] { h.cluster.SetClockSkews(skew.servers); });
    h.clock.After(minutes(10) + skew.lasts, [&] { h.cluster.SetClockSkews({}); });
    const base::MonoTime began = h.clock.Now();
    ASSERT_TRUE(h.Scale(0).ok()) << h.Transcript();
    EXPECT_GE(h.clock.Now() - began, minutes(20));
    EXPECT_LE(h.clock.Now() - began, minutes(21));
    EXPECT_THAT(h.log->Text(), HasSubstr("A VM is deleted although it is held"));
    h.CheckAtRest(0);
  }
}

TEST(DeletionHolds, C18_a_wrong_date_at_the_first_look_of_a_process_ends_no_hold) {
  Harness h;
  h.policy["deletion_holds"] = "vpn";
  h.policy["hold_timeout"] = "20m";
  ASSERT_TRUE(h.Scale(1).ok());
  ASSERT_TRUE(h.Accept(0).ok());
  h.cluster.SetClockSkews({hours(1)});
  h.Restart();
  const base::MonoTime began = h.clock.Now();
  h.clock.After(seconds(9), [&] { h.cluster.SetClockSkews({}); });
  while (!h.VmNames().empty()) h.Tick(seconds(10));
  EXPECT_GE(h.clock.Now() - began, minutes(20)) << h.Transcript();
  EXPECT_LE(h.clock.Now() - began, minutes(23)) << h.Transcript();
  h.CheckAtRest(0);
}

TEST(DeletionHolds, C18_an_outage_of_nomad_does_not_begin_a_hold_anew) {
  Harness h;
  h.policy["deletion_holds"] = "vpn";
  h.policy["hold_timeout"] = "20m";
  ASSERT_TRUE(h.Scale(1).ok());
  ASSERT_TRUE(h.Accept(0).ok());
  h.clock.After(minutes(15), [&] {
    h.Inject(Fault::Answer(500, "No cluster leader"),
             [](const RequestInfo& request) { return request.system == System::kNomad; });
  });
  h.clock.After(minutes(16), [&] { h.cluster.SetFaultHook(nullptr); });
  const base::MonoTime began = h.clock.Now();
  while (!h.VmNames().empty()) h.Tick(seconds(10));
  EXPECT_GE(h.clock.Now() - began, minutes(19)) << h.Transcript();
  EXPECT_LE(h.clock.Now() - began, minutes(24)) << h.Transcript();
  h.CheckAtRest(0);
}

}  // namespace
}  // namespace nomad_harvester::scenario
