// SPDX-License-Identifier: Apache-2.0
// nomad-harvester status and nomad-harvester gc against the simulated systems: output and exit
// codes.
#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/cli/commands.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/scaling/service.h"
#include "nomad_harvester/simulator/cluster.h"
#include "nomad_harvester/simulator/server.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "cli/captured_output.h"
#include "cli/operator.h"
#include "command.h"
#include "nlohmann/json.hpp"
#include "support/fake_clock.h"
#include "support/hosts.h"
#include "support/listener.h"
#include "support/node_to_purge.h"
#include "support/scoped_temp_dir.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

constexpr char kMark[] = "nomad-harvester-autoscaler/scale-in";

// A pool of one VM, and an operator who runs commands while the plugin exists.
class MaintenanceCommands : public OperatorTest {
 protected:
  MaintenanceCommands() {
    const auto parsed = ReadSettings(
        {"harvester_url=http://harvester.invalid", "auth_token=x", "node_group_name=web",
         "namespace=nomad", "node_class=web", "image=default/ubuntu-24.04", "cpu_request=1",
         "memory_request=1Gi", "networks=default/vlan100", "node_purge=true"},
        {}, PolicyUse::kOptional, {});
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    settings_ = *parsed;
    maintenance_ = MakeMaintenance(cluster_, clock_, executor_, settings_);
  }

  // The plugin scales the pool to `count`, and exits once the pool is ready.
  absl::Status Scale(int count) {
    scaling::ServiceOptions options;
    options.clock = &clock_;
    options.random = support::MakeSeededRandom(3);
    options.transports = [this](const config::PluginConfig&) {
      return TransportsOf(cluster_, "plugin");
    };
    options.foreground = options.background = &executor_;
    options.holder = "plugin";
    const auto service = scaling::MakeTargetService(std::move(options));
    EXPECT_TRUE(
        service->SetConfig({{"harvester_url", "http://harvester.invalid"}, {"auth_token", "x"}})
            .ok());
    const scaling::StringMap policy = {
        {"node_group_name", "web"},
        {"namespace", "nomad"},
        {"node_class", "web"},
        {"image", "default/ubuntu-24.04"},
        {"cpu_request", "1"},
        {"memory_request", "1Gi"},
        {"networks", "default/vlan100"},
        {"node_purge", "true"},
        {"user_data",
         "#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: "
         "|\n    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n"}};
    absl::Status scaled = service->Scale(work_.context(), {.count = count}, policy);
    for (int i = 0; scaled.ok() && i < 60; ++i) {
      const auto status = service->Status(work_.context(), policy);
      if (!status.ok() || (status->ready && i > 0)) break;
      clock_.Advance(std::chrono::seconds(2));
    }
    return scaled;
  }
  // Scales the pool to one VM, and returns its name.
  std::string MakeVm() {
    EXPECT_TRUE(Scale(1).ok());
    return cluster_.Vms().at(0)["metadata"]["name"];
  }
  // The plugin is killed after it has started to drain its only VM. Returns the VM's name.
  std::string DieDraining(bool for_ever = false) {
    EXPECT_TRUE(Scale(1).ok());
    cluster_.HangDrain(cluster_.Nodes().at(0)["ID"], for_ever);
    KillAt("update", "drain");
    EXPECT_FALSE(Scale(0).ok());
    cluster_.SetFaultHook(nullptr);
    clock_.Advance(std::chrono::seconds(30));
    return cluster_.Vms().at(0)["metadata"]["name"];
  }

  int Status(const std::string& output = "table") {
    return Call("status", [&](const CommandRun& run) {
      return ShowStatus(run, {.output = output, .vm = vm_, .watch = {.watch = watch_}});
    });
  }
  Prompter Question() {
    return {.interactive = interactive_,
            .read_line = [this](const runtime::Context&) { return answer_; }};
  }
  int Gc(bool dry_run = false, const std::string& output = kForPeople) {
    return Call(
        "gc",
        [&](const CommandRun& run) {
          return CollectGarbage(run, {.output = output, .dry_run = dry_run, .yes = yes_});
        },
        Question());
  }
  int Adopt(bool dry_run = false, const std::string& output = kForPeople) {
    return Call(
        "adopt",
        [&](const CommandRun& run) {
          return AdoptPool(
              run,
              {.output = output, .dry_run = dry_run, .yes = yes_, .without_nodes = without_nodes_});
        },
        Question());
  }

  int Replace(const ReplaceArguments& arguments) {
    return Call("replace", [&](const CommandRun& run) { return ReplaceVms(run, arguments); });
  }
  int Evacuate(const EvacuateArguments& arguments) {
    return Call("evacuate", [&](const CommandRun& run) { return EvacuateHost(run, arguments); });
  }
  std::string Check() {
    Call("check", [](const CommandRun& run) { return CheckPreconditions(run, {}); });
    return out_.str();
  }
  // The last output, for a program.
  nlohmann::json Document() const { return nlohmann::json::parse(out_.str(), nullptr, false); }
  // Why the VM is to be replaced; empty: nobody has asked for it.
  std::string RequestOf(const std::string& vm) const {
    return cluster_.Vm(vm)["metadata"]["annotations"].value("nomad-harvester-autoscaler/replace",
                                                            "");
  }

  std::string vm_;  // of status
  bool watch_ = false;
  // Of gc's question.
  bool yes_ = true;
  bool without_nodes_ = false;
  bool interactive_ = false;
  std::string answer_;
};

TEST_F(MaintenanceCommands, status_of_a_ready_pool_is_0) {
  ASSERT_TRUE(Scale(2).ok());
  EXPECT_EQ(Status(), 0);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("Ready:      yes\n"), HasSubstr("Count:      2\n"),
                                Not(HasSubstr("Unlinked:"))));
  EXPECT_EQ(Status("json"), 0);
  EXPECT_EQ(Document()["count"], 2);
}

TEST_F(MaintenanceCommands, status_of_a_name_that_never_was_is_trouble_and_names_the_pools) {
  EXPECT_EQ(Status(), 4);
  EXPECT_THAT(out_.str(), HasSubstr("Note:       there is nothing of this name in namespace "
                                    "nomad; the namespace has no pool\n"));
  ASSERT_TRUE(Scale(1).ok());
  EXPECT_EQ(Status(), 0);
  EXPECT_THAT(out_.str(), Not(HasSubstr("Note:")));
  vm_ = "web";
  EXPECT_EQ(Status(), 1);
  EXPECT_THAT(err_.str(),
              HasSubstr("has no VM web; it is the pool's own name: without it, status"));
  vm_ = "";
  settings_.policy->pool = "wbe";
  EXPECT_EQ(Status("json"), 4);
  EXPECT_EQ(Document()["ready"], true) << "as Status tells the agent";
  EXPECT_EQ(Status(), 4);
  const std::string note = " in namespace nomad; pools of the namespace: web\n";
  EXPECT_THAT(out_.str(), HasSubstr(note));
  EXPECT_LT(out_.str().find(note), out_.str().find("Count:")) << "above what else there is";
  vm_ = "web-a";
  EXPECT_EQ(Status(), 1);
  EXPECT_THAT(err_.str(), HasSubstr("has no VM web-a; there is nothing of this name" + note));
}

TEST_F(MaintenanceCommands, status_of_a_pool_that_only_its_policy_names_is_no_trouble) {
  settings_.pools_of_files = {{.ns = "nomad", .pool = "web"}};
  EXPECT_EQ(Status(), 0);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("Note:       pool web has no VM and no Lease in namespace "
                              "nomad: no Scale of it has begun\n"),
                    Not(HasSubstr("Trouble:"))));
  settings_.policy->ns = "nmoad";
  settings_.pools_of_files = {{.ns = "nmoad", .pool = "web"}};
  EXPECT_EQ(Status(), 4) << "there is no such namespace";
}

TEST_F(MaintenanceCommands, status_and_gc_say_that_a_namespace_does_not_exist) {
  settings_.policy->ns = settings_.ns = "nmoad";
  const std::string problem =
      "namespace nmoad: it does not exist; create it: kubectl create namespace nmoad; or correct "
      "the key namespace\n";
  EXPECT_EQ(Status(), 4);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("Trouble:    " + problem), Not(HasSubstr("Note:"))));
  EXPECT_EQ(Gc(), 1);
  EXPECT_EQ(err_.str(), "nomad-harvester gc: " + problem);
  cluster_.Forbid("get", "namespaces");
  EXPECT_EQ(Status(), 4);
  EXPECT_THAT(out_.str(), HasSubstr("Trouble:    pool web has no VM and no Lease in namespace "
                                    "nmoad; the namespace could not be read\n"));
  EXPECT_EQ(Gc(), 0);
  EXPECT_EQ(out_.str(), "nothing of pool web was found in namespace nmoad\n");
}

TEST_F(MaintenanceCommands, status_of_a_pool_that_has_nothing_does_not_read_as_a_healthy_one) {
  int reads = 0;
  cluster_.SetFaultHook([&](const simulator::RequestInfo& request) {
    if (request.resource == "namespaces") ++reads;
    return simulator::Fault::None();
  });
  EXPECT_EQ(Status(), 4);
  EXPECT_EQ(reads, 2) << "its uid, and whether it exists";
  EXPECT_THAT(out_.str(),
              HasSubstr("Trouble:    pool web has no VM and no Lease in namespace nomad: "
                        "no Scale of it has begun, or its name is wrong\n"));
  ASSERT_TRUE(Scale(1).ok());
  ASSERT_TRUE(Scale(0).ok());
  reads = 0;
  EXPECT_EQ(Status(), 0);
  EXPECT_THAT(out_.str(), Not(HasSubstr("Trouble:"))) << "its Lease says that it was scaled";
  EXPECT_EQ(reads, 1);
}

TEST_F(MaintenanceCommands, status_tells_another_namespaces_nodes_from_those_without_a_vm) {
  ASSERT_TRUE(Scale(1).ok());
  cluster_.AddForeignNode(
      {.name = "theirs",
       .node_class = "web",
       .meta = {{"harvester_vm_uuid", "0b0e7d1c-6f0a-4f6e-8f6b-000000000001"}}});
  cluster_.AddForeignNode(
      {.name = "metal", .node_class = "web", .meta = {{"harvester_vm_uuid", "none"}}});
  cluster_.AddForeignNode({.name = "stranger", .node_class = "web"});
  Status();
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("Unlinked:   3 nodes have no VM (below): "),
                    HasSubstr("Trouble:    nodes of the pool without a VM of ours: stranger\n"),
                    ContainsRegex(" theirs +ready, eligible, not of this namespace\n"),
                    ContainsRegex(" metal +ready, eligible, not of this namespace\n"),
                    ContainsRegex(" stranger +ready, eligible\n")));
  Status("json");
  int foreign = 0;
  const auto json = Document();
  for (const auto& node : json["unlinked_nodes"]) {
    if (node["foreign"] == true) ++foreign;
  }
  EXPECT_EQ(foreign, 2);
}

TEST_F(MaintenanceCommands, status_knows_the_uuid_of_a_vm_of_ours_in_capitals) {
  ASSERT_TRUE(Scale(1).ok());
  const nlohmann::json guest = cluster_.Vms().at(0)["spec"]["template"]["spec"]["domain"];
  const std::string capitals = absl::AsciiStrToUpper(guest["firmware"]["uuid"].get<std::string>());
  cluster_.AddForeignNode(
      {.name = "renamed", .node_class = "web", .meta = {{"harvester_vm_uuid", capitals}}});
  Status("json");
  const auto json = Document();
  ASSERT_EQ(json["unlinked_nodes"].size(), 1U);
  EXPECT_EQ(json["unlinked_nodes"][0]["foreign"], false);
}

TEST_F(MaintenanceCommands, status_has_a_block_for_each_vm_on_a_narrow_terminal) {
  ASSERT_TRUE(Scale(2).ok());
  terminal_.width = 40;
  Status();
  EXPECT_THAT(out_.str(), ContainsRegex("\nVM:     web-.*\nSTATE:  ready\n"));
}

TEST_F(MaintenanceCommands, status_for_programs_is_not_folded_on_a_narrow_terminal) {
  ASSERT_TRUE(Scale(1).ok());
  Status("json");
  const std::string whole = out_.str();
  terminal_.width = 20;
  Status("json");
  const auto folded = nlohmann::json::parse(out_.str(), nullptr, false);
  ASSERT_FALSE(folded.is_discarded()) << out_.str();
  EXPECT_EQ(folded["vms"], nlohmann::json::parse(whole)["vms"]);
}

TEST_F(MaintenanceCommands, status_of_one_vm_is_its_whole_story) {
  const std::string vm = DieDraining();
  vm_ = vm;
  EXPECT_EQ(Status(), 4) << "the process that holds the Lease was killed";
  EXPECT_THAT(
      out_.str(),
      AllOf(StartsWith("VM:         nomad/" + vm + "\nState:      draining"),
            HasSubstr("\nHost:       "), HasSubstr("\nAddress:    10."),
            HasSubstr("\nNode:       " + vm + " ("), HasSubstr("\nMark:       scale-in, "),
            HasSubstr("\nLease:      action "), HasSubstr("\nNext step:  delete the VM: node ")));
  EXPECT_EQ(Status("json"), 4);
  EXPECT_EQ(Document()["name"], vm);
  EXPECT_EQ(Status("yaml"), 4);
  EXPECT_THAT(out_.str(), StartsWith("name: " + vm + "\n"));
  vm_ = vm.substr(0, vm.size() - 1);
  EXPECT_EQ(Status(), 1);
  EXPECT_EQ(err_.str(), "nomad-harvester status: pool nomad/web has no VM " + vm_ +
                            "; did you mean " + vm + "?\n");
  vm_ = "quite-another";
  EXPECT_EQ(Status(), 1);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("has no VM quite-another; it has web-"), HasSubstr(vm)));
}

TEST_F(MaintenanceCommands, T3_status_shows_the_history_of_removed_vms) {
  std::string output = kForPeople;
  const auto history = [&] {
    return Call("status", [&](const CommandRun& run) {
      return ShowStatus(run, {.output = output, .vm = vm_, .history = true});
    });
  };
  const std::string vm = MakeVm();
  EXPECT_EQ(history(), 1);
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr("pool nomad/web has no history"),
                    HasSubstr("grant get, create and patch of configmaps in namespace nomad")));
  ASSERT_TRUE(Scale(0).ok());
  EXPECT_EQ(history(), 0) << err_.str();
  EXPECT_THAT(out_.str(),
              MatchesRegex("NAME +MADE +JOINED +REMOVED +ACTION +TEMPLATE +WHY\n" + vm +
                           "  20.*Z  20.*Z  20.*Z  [a-z0-9]+  v2:[0-9a-f]+  scale-in\n"));
  output = "json";
  EXPECT_EQ(history(), 0) << err_.str();
  const auto json = Document();
  EXPECT_EQ(json["node_group_name"], "web");
  EXPECT_EQ(json["removed"][0]["name"], vm);
  EXPECT_TRUE(json["removed"][0]["parts"].contains("image"));
  vm_ = "web-never";
  EXPECT_EQ(history(), 1);
  EXPECT_THAT(err_.str(), HasSubstr("the history of pool nomad/web has no VM web-never"));
  cluster_.Forbid("get", "configmaps");
  EXPECT_EQ(history(), 1);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("the history of pool nomad/web cannot be read; grant"),
                                HasSubstr("is forbidden")));
}

// What a controller says of a VM.
nlohmann::json EventOf(const std::string& vm, int number) {
  const std::string second = std::to_string(10 + number);
  return {{"apiVersion", "events.k8s.io/v1"},
          {"kind", "Event"},
          {"metadata", {{"name", "e" + second}, {"namespace", "nomad"}}},
          {"regarding", {{"kind", "VirtualMachine"}, {"namespace", "nomad"}, {"name", vm}}},
          {"eventTime", "2026-01-01T00:00:" + second + ".000000Z"},
          {"reason", "Reason" + second},
          {"note", "words\nof several lines"},
          {"type", "Warning"}};
}

TEST_F(MaintenanceCommands, status_of_one_vm_ends_with_its_last_events) {
  vm_ = MakeVm();
  EXPECT_EQ(Status(), 0) << err_.str();
  EXPECT_THAT(out_.str(), ContainsRegex("\nEvent:      [0-9ms]+ ago: Normal ScaleOut: created: "))
      << "the plugin's own";
  for (const nlohmann::json& event : cluster_.Events()) {
    nlohmann::json other = event;
    other["regarding"]["name"] = "other";
    cluster_.PutObject(other);
  }
  EXPECT_EQ(Status(), 0) << err_.str();
  EXPECT_THAT(out_.str(), testing::EndsWith("\nEvents:     none\n"));
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(cluster_.PutObject(EventOf(vm_, i)));
  EXPECT_EQ(Status(), 0) << err_.str();
  EXPECT_THAT(
      out_.str(),
      AllOf(HasSubstr("\nEvents:     the last 10 of 12\nEvent:      "), Not(HasSubstr("Reason11:")),
            HasSubstr(" ago: Warning Reason12: words\n            of several lines\n"),
            ContainsRegex(" Reason20: (.|\n)* Reason21: words\n +of several lines\n$")));
  EXPECT_EQ(Status("json"), 0);
  const auto json = Document();
  EXPECT_EQ(json["events"].size(), 10U);
  EXPECT_EQ(json["events"][9], (nlohmann::json{{"last", "2026-01-01T00:00:21Z"},
                                               {"type", "Warning"},
                                               {"reason", "Reason21"},
                                               {"count", 1},
                                               {"message", "words\nof several lines"}}));
}

TEST_F(MaintenanceCommands, status_of_one_vm_does_without_the_right_to_its_events) {
  vm_ = MakeVm();
  cluster_.Forbid("list", "events");
  EXPECT_EQ(Status(), 0) << err_.str();
  EXPECT_THAT(out_.str(),
              testing::EndsWith("\nEvents:     the token may not list them: grant list of "
                                "events.events.k8s.io in namespace nomad\n"));
  EXPECT_THAT(err_.str(), IsEmpty());
  EXPECT_EQ(Status("json"), 0);
  EXPECT_TRUE(Document()["events"].is_null());
}

TEST_F(MaintenanceCommands, status_lists_events_only_of_a_vm_that_there_is) {
  ASSERT_TRUE(Scale(1).ok());
  int lists = 0;
  cluster_.SetFaultHook([&](const simulator::RequestInfo& request) {
    if (request.resource == "events") ++lists;
    return simulator::Fault::None();
  });
  Status();
  Status("json");
  vm_ = "web-none";
  EXPECT_EQ(Status(), 1);
  EXPECT_EQ(lists, 0);
  vm_ = cluster_.Vms().at(0)["metadata"]["name"];
  Status();
  EXPECT_EQ(lists, 1);
}

TEST_F(MaintenanceCommands, status_of_a_pool_that_is_not_ready_is_3_and_says_why) {
  ASSERT_TRUE(Scale(1).ok());
  const std::string node = cluster_.Nodes().at(0)["ID"];
  cluster_.HangDrain(node);
  cluster_.OperatorDrain(node);
  EXPECT_EQ(Status(), 3);
  EXPECT_THAT(out_.str(), HasSubstr("Ready:      no: "));
}

TEST_F(MaintenanceCommands, status_of_a_ready_pool_with_trouble_is_4) {
  ASSERT_TRUE(Scale(1).ok());
  ASSERT_TRUE(cluster_.EditAnnotation(cluster_.Vms().at(0)["metadata"]["name"],
                                      "nomad-harvester-autoscaler/scale-in", "unreadable"));
  EXPECT_EQ(Status(), 4);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("Ready:      yes\n"), HasSubstr("Trouble:    web-")));
}

TEST_F(MaintenanceCommands, status_is_1_if_either_system_cannot_be_read) {
  ASSERT_TRUE(Scale(1).ok());
  cluster_.SetNomadReachable(false);
  EXPECT_EQ(Status(), 1);
  EXPECT_THAT(out_.str(), HasSubstr("no: Nomad cannot be read"));
  cluster_.SetHarvesterReachable(false);
  EXPECT_EQ(Status(), 1);
  EXPECT_THAT(out_.str(), IsEmpty());
  EXPECT_THAT(err_.str(), HasSubstr("Harvester cannot be read"));
}

TEST_F(MaintenanceCommands, status_blames_nomad_if_nomad_hangs_and_shows_harvesters_part) {
  ASSERT_TRUE(Scale(3).ok());
  Hang(simulator::System::kNomad);
  EXPECT_EQ(Status(), 1);
  EXPECT_THAT(err_.str(), IsEmpty());
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("Ready:      no: Nomad cannot be read: list Nomad nodes: "),
                    HasSubstr("Count:      3\n"), Not(HasSubstr("Attention"))));
}

TEST_F(MaintenanceCommands, status_shows_the_hosts_of_vms_while_nomad_cannot_be_read) {
  ASSERT_TRUE(Scale(1).ok());
  Status("json");
  const auto host = Document()["vms"][0]["host"];
  ASSERT_NE(host, "");
  cluster_.SetNomadReachable(false);
  Status("json");
  EXPECT_EQ(Document()["vms"][0]["host"], host);
}

TEST_F(MaintenanceCommands, status_waits_for_a_nomad_that_is_slow) {
  ASSERT_TRUE(Scale(1).ok());
  cluster_.Refuse({.system = simulator::System::kNomad,
                   .resource = "nodes",
                   .kind = simulator::Refusal::kNone,
                   .takes = std::chrono::seconds(8)});
  EXPECT_EQ(Status(), 0);
  EXPECT_THAT(out_.str(), HasSubstr("Ready:      yes\n"));
}

TEST_F(MaintenanceCommands, status_blames_nomad_if_it_hangs_after_the_list_of_nodes) {
  DieDraining();
  Hang(simulator::System::kNomad, "allocations");
  EXPECT_EQ(Status(), 1);
  EXPECT_THAT(err_.str(), StartsWith("nomad-harvester status: Nomad cannot be read: "));
}

TEST_F(MaintenanceCommands, status_blames_harvester_if_harvester_hangs) {
  ASSERT_TRUE(Scale(1).ok());
  for (const char* resource : {"leases", "virtualmachines", "virtualmachineinstances"}) {
    Hang(simulator::System::kHarvester, resource);
    EXPECT_EQ(Status(), 1);
    EXPECT_THAT(out_.str(), IsEmpty());
    EXPECT_THAT(err_.str(), AllOf(StartsWith("nomad-harvester status: Harvester cannot be read: "),
                                  HasSubstr("attempts)")))
        << resource;
  }
}

TEST_F(MaintenanceCommands, status_watches_and_piped_shows_a_pool_again_only_if_it_has_changed) {
  const std::string vm = MakeVm();
  const auto protect = [&] {
    cluster_.EditAnnotation(vm, "nomad-harvester-autoscaler/protect", "true");
  };
  clock_.After(std::chrono::seconds(61), protect);
  StopAfter(std::chrono::seconds(121));
  watch_ = true;
  EXPECT_EQ(Status(), 0);
  const std::string text = out_.str();
  std::size_t blocks = 0;
  for (std::size_t at = text.find("Pool: "); at != std::string::npos;
       at = text.find("Pool: ", at + 1)) {
    ++blocks;
  }
  EXPECT_EQ(blocks, 2U) << text;
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST_F(MaintenanceCommands, status_watches_and_tells_the_same_error_once) {
  ASSERT_TRUE(Scale(1).ok());
  cluster_.SetHarvesterReachable(false);
  clock_.After(std::chrono::minutes(3), [this] { cluster_.SetHarvesterReachable(true); });
  StopAfter(std::chrono::minutes(5));
  watch_ = true;
  EXPECT_EQ(Status(), 0);
  EXPECT_EQ(
      err_.str(),
      "nomad-harvester status: Harvester cannot be read: no answer from the simulated harvester "
      "(4 attempts)\n");
  EXPECT_THAT(out_.str(), HasSubstr("Ready:      yes\n"));
}

TEST_F(MaintenanceCommands, status_watches_and_shows_the_pool_again_when_an_error_is_over) {
  ASSERT_TRUE(Scale(1).ok());
  clock_.After(std::chrono::seconds(30), [this] { cluster_.SetHarvesterReachable(false); });
  clock_.After(std::chrono::minutes(2), [this] { cluster_.SetHarvesterReachable(true); });
  StopAfter(std::chrono::minutes(4));
  watch_ = true;
  EXPECT_EQ(Status(), 0);
  const std::string text = out_.str();
  EXPECT_NE(text.find("Pool: "), text.rfind("Pool: ")) << text;
}

TEST_F(MaintenanceCommands, status_watches_on_the_alternate_screen_and_leaves_what_it_saw_last) {
  ASSERT_TRUE(Scale(1).ok());
  StopAfter(std::chrono::seconds(3));
  watch_ = true;
  terminal_.redraws = true;
  EXPECT_EQ(Status(), 0);
  const std::string frame =
      "\x1b\\[H\x1b\\[Jstatus of pool nomad/web, every 2s: [-0-9T:]+Z \\(Ctrl-C ends\\)\n\n"
      "Pool: [^\x1b]*";
  EXPECT_THAT(out_.str(), MatchesRegex("\x1b\\[\\?1049h\x1b\\[\\?25l" + frame + frame +
                                       "\x1b\\[\\?25h\x1b\\[\\?1049lPool: [^\x1b]*"));
}

TEST_F(MaintenanceCommands, status_watches_on_a_low_terminal_and_says_how_much_is_not_shown) {
  ASSERT_TRUE(Scale(3).ok());
  StopAfter(std::chrono::seconds(1));
  watch_ = true;
  terminal_.redraws = true;
  terminal_.height = 6;
  EXPECT_EQ(Status(), 0);
  EXPECT_THAT(out_.str(),
              ContainsRegex("\\[J([^\n]*\n){4}\\([0-9]+ more lines: the terminal is not high "
                            "enough\\)\n\x1b"));
}

TEST_F(MaintenanceCommands, status_watches_and_shows_an_error_above_what_was_seen_before_it) {
  ASSERT_TRUE(Scale(1).ok());
  clock_.After(std::chrono::seconds(1), [this] { cluster_.SetHarvesterReachable(false); });
  StopAfter(std::chrono::seconds(60));
  watch_ = true;
  terminal_.redraws = true;
  EXPECT_EQ(Status(), 1);
  EXPECT_THAT(out_.str(), ContainsRegex("Ctrl-C ends\\)\n\nHarvester cannot be read: [^\n]*\n\n"
                                        "Before that:\n\nPool: "));
  EXPECT_THAT(err_.str(), StartsWith("nomad-harvester status: Harvester cannot be read: "))
      << "it stays when the screen is given back";
}

TEST_F(MaintenanceCommands, status_colours_whether_a_pool_is_ready_and_its_trouble) {
  ASSERT_TRUE(Scale(1).ok());
  terminal_.colour = true;
  EXPECT_EQ(Status(), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\n\x1b[32mReady:      yes\x1b[0m\n"));
  cluster_.AddForeignNode({.name = "stranger", .node_class = "web"});
  cluster_.SetNomadReachable(false);
  EXPECT_EQ(Status(), 1);
  EXPECT_THAT(out_.str(), HasSubstr("\n\x1b[31mReady:      no\x1b[0m: Nomad cannot be read"));
  cluster_.SetNomadReachable(true);
  Status();
  EXPECT_THAT(out_.str(), HasSubstr("\n\x1b[33mTrouble:\x1b[0m    nodes of the pool without a VM"));
  Status("json");
  EXPECT_THAT(out_.str(), Not(HasSubstr("\x1b")));
}

TEST_F(MaintenanceCommands, C15_adopt_gives_the_pool_to_a_nomad_that_was_rebuilt_and_asks_first) {
  ASSERT_TRUE(Scale(2).ok());
  EXPECT_EQ(Adopt(), 0);
  EXPECT_EQ(out_.str(), "pool nomad/web belongs to this Nomad cluster\n");
  cluster_.RestoreNomad(/*agents_return=*/true);
  cluster_.SetNomadKeys({"rebuilt"});
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(Status(), 3);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("2 VMs of the pool"), HasSubstr("nomad-harvester adopt")));
  const int effects = cluster_.EffectCount();
  EXPECT_EQ(Adopt(/*dry_run=*/true), 0);
  EXPECT_THAT(out_.str(), HasSubstr(std::string("recorded keys ") + simulator::kFirstNomadKey));
  EXPECT_THAT(out_.str(),
              HasSubstr(std::string("its Lease: recorded keys ") + simulator::kFirstNomadKey));
  EXPECT_EQ(Adopt(/*dry_run=*/true, "json"), 0);
  const auto document = Document();
  EXPECT_EQ(document["node_group_name"], "web");
  EXPECT_EQ(document["needed"], true);
  EXPECT_EQ(document["cluster"], "rebuilt");
  EXPECT_EQ(document["lease_cluster"], simulator::kFirstNomadKey);
  EXPECT_EQ(document["known"], 2);
  ASSERT_EQ(document["vms"].size(), 2U);
  EXPECT_EQ(document["vms"][0]["nomad_cluster"], simulator::kFirstNomadKey);
  yes_ = false;
  EXPECT_EQ(Adopt(), 2) << "nobody can be asked";
  EXPECT_EQ(cluster_.EffectCount(), effects);
  yes_ = true;
  EXPECT_EQ(Adopt(), 0);
  EXPECT_EQ(cluster_.EffectCount(), effects + 3) << "one write for each VM, and the Lease's";
  EXPECT_THAT(out_.str(), testing::EndsWith("pool nomad/web belongs to this Nomad cluster now\n"));
  EXPECT_EQ(Status(), 0);
}

TEST_F(MaintenanceCommands, L9_adopt_that_got_no_answer_wants_the_index_as_well_as_the_keys) {
  ASSERT_TRUE(Scale(1).ok());
  cluster_.RestoreNomad(/*agents_return=*/true);
  cluster_.SetNomadKeys({"rebuilt"});
  clock_.Advance(std::chrono::minutes(1));
  const nlohmann::json metadata = cluster_.Vms().at(0)["metadata"];
  const std::string vm = metadata["name"];
  constexpr char kNodes[] = "nomad-harvester-autoscaler/nodes";
  auto nodes = nlohmann::json::parse(metadata["annotations"][kNodes].get<std::string>());
  nodes["index"] = 1'000'000;
  cluster_.SetFaultHook([&](const simulator::RequestInfo& request) {
    if (request.resource != "virtualmachines" || request.verb != "patch") {
      return simulator::Fault::None();
    }
    // Somebody else records the keys alone.
    cluster_.EditAnnotation(vm, "nomad-harvester-autoscaler/nomad-cluster", "rebuilt");
    cluster_.EditAnnotation(vm, kNodes, nodes.dump());
    return simulator::Fault::Drop();
  });
  EXPECT_EQ(Adopt(), 1);
  EXPECT_THAT(err_.str(), HasSubstr("VM " + vm + " was not written, as a read after it shows"));
}

TEST_F(MaintenanceCommands, C15_adopt_refuses_a_nomad_that_knows_no_node_of_the_pool) {
  ASSERT_TRUE(Scale(2).ok());
  cluster_.RestoreNomad(/*agents_return=*/false);
  cluster_.SetNomadKeys({"another"});
  const int effects = cluster_.EffectCount();
  EXPECT_EQ(Adopt(), 1);
  EXPECT_THAT(out_.str(), HasSubstr("of the 2 VMs that had a node, it knows the nodes of 0\n"));
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("Check nomad_address"), HasSubstr("--without-nodes")));
  EXPECT_EQ(cluster_.EffectCount(), effects);
  without_nodes_ = true;
  EXPECT_EQ(Adopt(), 0);
}

TEST_F(MaintenanceCommands, C15_adopt_refuses_a_pool_of_which_nothing_exists) {
  settings_.policy->pool = "wbe";
  EXPECT_EQ(Adopt(), 1);
  EXPECT_THAT(err_.str(), HasSubstr("no VM and no Lease of pool nomad/wbe exists"));
}

TEST_F(MaintenanceCommands, C15_adopt_needs_a_nomad_that_tells_its_keys_and_can_be_repeated) {
  ASSERT_TRUE(Scale(2).ok());
  cluster_.SetNomadKeys({});
  EXPECT_EQ(Adopt(), 1);
  EXPECT_THAT(err_.str(), HasSubstr("/.well-known/jwks.json"));
  cluster_.SetNomadKeys({"rebuilt"});
  int patches = 0;
  cluster_.SetFaultHook([&](const simulator::RequestInfo& request) {
    const bool second = request.verb == "patch" && ++patches == 2;
    return second ? simulator::Fault::Answer(403, "denied") : simulator::Fault::None();
  });
  EXPECT_EQ(Adopt(), 1);
  EXPECT_THAT(err_.str(), HasSubstr("after 1 of 2 VMs were recorded: VM "));
  EXPECT_EQ(Adopt(), 0);
  EXPECT_THAT(out_.str(), HasSubstr("belongs to this Nomad cluster now"));
}

TEST_F(MaintenanceCommands, C15_check_warns_of_a_stray_vm_and_fails_if_the_pool_is_another_nomads) {
  ASSERT_TRUE(Scale(2).ok());
  const std::string vm = cluster_.Vms().at(0)["metadata"]["name"];
  const std::string other = cluster_.Vms().at(1)["metadata"]["name"];
  EXPECT_THAT(Check(), HasSubstr("ok       Nomad's cluster: the pool's VMs belong to it\n"));
  cluster_.EditAnnotation(vm, "nomad-harvester-autoscaler/nomad-cluster", "elsewhere");
  EXPECT_THAT(Check(), AllOf(HasSubstr("warn     Nomad's cluster: " + vm + ": of another Nomad"),
                             Not(HasSubstr("nomad-harvester adopt"))));
  cluster_.EditAnnotation(other, "nomad-harvester-autoscaler/nomad-cluster", "elsewhere");
  EXPECT_THAT(Check(), AllOf(HasSubstr("FAIL     Nomad's cluster: "), HasSubstr(vm),
                             HasSubstr(other), HasSubstr("run nomad-harvester adopt")));
}

TEST_F(MaintenanceCommands, C15_status_names_a_stray_vm_of_another_nomad) {
  ASSERT_TRUE(Scale(2).ok());
  const std::string vm = cluster_.Vms().at(0)["metadata"]["name"];
  cluster_.EditAnnotation(vm, "nomad-harvester-autoscaler/nomad-cluster", "elsewhere");
  EXPECT_EQ(Status(), 4);
  EXPECT_THAT(out_.str(), ContainsRegex("Trouble:    " + vm +
                                        ": it belongs to another Nomad "
                                        "cluster than its pool"));
}

TEST_F(MaintenanceCommands, C15_adopt_leaves_vms_of_another_region_alone) {
  ASSERT_TRUE(Scale(2).ok());
  const nlohmann::json before = cluster_.Vms().at(0)["metadata"];
  const std::string vm = before["name"];
  const std::string prefix = "nomad-harvester-autoscaler/";
  nlohmann::json nodes =
      nlohmann::json::parse(before["annotations"][prefix + "nodes"].get<std::string>());
  nodes["region"] = "eu";
  nodes["index"] = 100000;
  cluster_.EditAnnotation(vm, prefix + "nodes", nodes.dump());
  cluster_.EditAnnotation(vm, prefix + "nomad-cluster", "key-of-eu");
  const auto parsed =
      ReadSettings({"harvester_url=http://harvester.invalid", "auth_token=x", "node_group_name=web",
                    "namespace=nomad", "node_class=web", "nomad_region=global"},
                   {}, PolicyUse::kOptional, {});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  settings_ = *parsed;
  maintenance_ = MakeMaintenance(cluster_, clock_, executor_, settings_);
  EXPECT_EQ(Adopt(), 0);
  EXPECT_EQ(out_.str(), "pool nomad/web belongs to this Nomad cluster\n");
  cluster_.SetNomadKeys({"rebuilt"});
  EXPECT_EQ(Adopt(), 0);
  for (const nlohmann::json& each : cluster_.Vms()) {
    const nlohmann::json& annotations = each["metadata"]["annotations"];
    const bool is_other = each["metadata"]["name"] == vm;
    EXPECT_EQ(annotations[prefix + "nomad-cluster"], is_other ? "key-of-eu" : "rebuilt");
    if (!is_other) continue;
    EXPECT_EQ(annotations[prefix + "nodes"], nodes.dump());
  }
}

TEST_F(MaintenanceCommands, C15_adopt_gives_an_empty_pool_to_a_nomad_that_was_rebuilt) {
  ASSERT_TRUE(Scale(1).ok());
  ASSERT_TRUE(Scale(0).ok());
  cluster_.RestoreNomad(/*agents_return=*/false);
  cluster_.SetNomadKeys({"rebuilt"});
  EXPECT_EQ(Status(), 3);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("by its Lease the pool belongs to another Nomad cluster"),
                                HasSubstr("nomad-harvester adopt")));
  EXPECT_THAT(Scale(1), support::StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Adopt(), 0);
  EXPECT_EQ(Status(), 4) << "the last action failed";
  Status("json");
  EXPECT_EQ(Document()["lease"]["nomad_cluster"], "rebuilt");
  EXPECT_TRUE(Scale(1).ok());
  EXPECT_EQ(Status(), 0);
}

TEST_F(MaintenanceCommands, C15_adopt_does_not_claim_success_for_a_lease_that_it_cannot_write) {
  ASSERT_TRUE(Scale(1).ok());
  ASSERT_TRUE(Scale(0).ok());
  cluster_.SetNomadKeys({"rebuilt"});
  cluster_.Refuse({.verb = "patch",
                   .resource = "leases",
                   .kind = simulator::Refusal::kAnswer,
                   .status = 200,
                   .text = "{}"});
  EXPECT_EQ(Adopt(), 1);
  EXPECT_THAT(err_.str(), HasSubstr("the reply is not the Lease"));
  cluster_.StopRefusing();
  cluster_.Refuse(
      {.resource = "leases", .kind = simulator::Refusal::kAnswer, .status = 403, .text = "denied"});
  EXPECT_EQ(Adopt(), 1);
  EXPECT_THAT(err_.str(),
              HasSubstr("the pool's Lease cannot be read: pool nomad/web needs its Lease"));
}

TEST_F(MaintenanceCommands, S5_status_lists_what_is_unfinished_in_pools_without_a_policy) {
  const std::string vm = DieDraining(/*for_ever=*/true);
  settings_.policy->pool = "other";
  const auto unclaimed = [this] {
    Status("json");
    return Document()["unclaimed"];
  };
  EXPECT_THAT(unclaimed(), IsEmpty()) << "an agent may be about to finish it";
  clock_.Advance(std::chrono::minutes(11));
  const nlohmann::json listed = unclaimed();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0]["namespace"], "nomad");
  EXPECT_EQ(listed[0]["node_group_name"], "web");
  EXPECT_EQ(listed[0]["unfinished"][0]["vm"], vm);
  Status();
  EXPECT_THAT(out_.str(), ContainsRegex("Unclaimed:  pool nomad/web, of which no policy was given, "
                                        "has unfinished removals: " +
                                        vm + " .marked for removal, since .*Z."));
  EXPECT_THAT(out_.str(), HasSubstr("finish it with nomad-harvester gc --set namespace=nomad --set "
                                    "node_group_name=web\n"));
  settings_.pools_of_files = {{.ns = "nomad", .pool = "web"}};
  EXPECT_THAT(unclaimed(), IsEmpty()) << "the agent has a policy for it";
  settings_.pools_of_files.clear();
  settings_.policy->pool = "web";
  EXPECT_THAT(unclaimed(), IsEmpty()) << "it is the pool that is shown";
  settings_.policy->pool = "other";
  cluster_.EditAnnotation(vm, kMark, std::nullopt);
  EXPECT_THAT(unclaimed().dump(), HasSubstr("drained for it")) << "a drain without a mark";
}

TEST_F(MaintenanceCommands, S5_status_lists_a_node_to_purge_of_a_pool_without_a_policy) {
  const std::string node = support::AddNodeToPurge(cluster_, {.name = "old-k2m4p"}, "nomad/old");
  clock_.Advance(std::chrono::minutes(2));
  cluster_.KillNode(node);
  clock_.Advance(std::chrono::minutes(11));
  Status();
  EXPECT_THAT(out_.str(), HasSubstr("pool nomad/old, of which no policy was given, has unfinished "
                                    "removals: old-k2m4p (it is gone, and its node " +
                                    node + " is to be purged, since "));
}

TEST_F(MaintenanceCommands, gc_dry_run_says_what_would_be_done_and_why) {
  const std::string vm = DieDraining();
  cluster_.EditAnnotation(vm, kMark, std::nullopt);
  const int effects = cluster_.EffectCount();
  EXPECT_EQ(Gc(true), 0);
  EXPECT_THAT(out_.str(), MatchesRegex("nomad/web: " + vm +
                                       ": would make its node eligible again: the VM carries no "
                                       "mark, but node .* was drained for it\n"
                                       "nomad/web: nothing was changed\n"));
  EXPECT_THAT(err_.str(), IsEmpty());
  EXPECT_EQ(cluster_.EffectCount(), effects);
}

TEST_F(MaintenanceCommands, gc_dry_run_says_the_same_to_a_program) {
  EXPECT_EQ(Gc(true, "json"), 0);
  EXPECT_TRUE(Document()["pools"].empty()) << out_.str();
  const std::string vm = DieDraining();
  cluster_.EditAnnotation(vm, kMark, std::nullopt);
  const int effects = cluster_.EffectCount();
  EXPECT_EQ(Gc(true, "json"), 0);
  const auto pool = Document()["pools"][0];
  EXPECT_EQ(pool["namespace"], "nomad");
  EXPECT_EQ(pool["node_group_name"], "web");
  ASSERT_EQ(pool["steps"].size(), 1U);
  EXPECT_EQ(pool["steps"][0]["vm"], vm);
  EXPECT_EQ(pool["steps"][0]["what"], "make its node eligible again");
  EXPECT_THAT(pool["steps"][0]["why"].get<std::string>(), HasSubstr("the VM carries no mark"));
  EXPECT_TRUE(pool["unfinished"].empty());
  EXPECT_TRUE(pool["error"].is_null());
  EXPECT_EQ(cluster_.EffectCount(), effects);
}

TEST_F(MaintenanceCommands, gc_that_finds_no_pool_says_so_as_an_error_of_the_command) {
  cluster_.SetHarvesterReachable(false);
  EXPECT_EQ(Gc(true, "json"), 1);
  EXPECT_THAT(err_.str(), StartsWith("nomad-harvester gc: ")) << "which is JSON for a program";
  EXPECT_THAT(out_.str(), IsEmpty());
}

TEST_F(MaintenanceCommands, gc_prints_a_line_for_each_thing_done) {
  const std::string vm = DieDraining();
  EXPECT_EQ(Gc(), 0);
  EXPECT_THAT(out_.str(), HasSubstr("nomad/web: " + vm + ": deleted the VM: node "));
  EXPECT_THAT(out_.str(), HasSubstr("nomad/web: " + vm + ": purged node "));
  EXPECT_THAT(out_.str(), testing::EndsWith("nomad/web: clean\n"));
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
  EXPECT_EQ(Gc(true), 0);
  EXPECT_EQ(out_.str(), "nomad/web: nothing to do\n");
}

TEST_F(MaintenanceCommands, C10_gc_says_what_a_growth_that_was_killed_leaves_on_the_lease) {
  KillAt("create", "secrets", /*applied=*/false);
  EXPECT_FALSE(Scale(1).ok());
  cluster_.SetFaultHook(nullptr);
  clock_.Advance(std::chrono::seconds(30));
  EXPECT_EQ(Gc(), 0) << err_.str();
  EXPECT_THAT(out_.str(), ContainsRegex("nomad/web: its Lease keeps the action of an interrupted "
                                        "growth, which has not made web-[a-z0-9]+: [^\n]*\n"
                                        "nomad/web: clean\n$"));
}

TEST_F(MaintenanceCommands, gc_of_one_pool_leaves_the_others_alone_and_without_a_pool_takes_all) {
  DieDraining();
  settings_.policy.reset();
  settings_.pool = "other";
  EXPECT_EQ(Gc(), 0);
  EXPECT_EQ(out_.str(), "nothing of pool other was found in namespace nomad\n");
  EXPECT_EQ(cluster_.Vms().size(), 1U);
  settings_.pool = "";
  EXPECT_EQ(Gc(), 0);
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
}

TEST_F(MaintenanceCommands, gc_of_every_pool_says_what_it_would_do_and_asks_first) {
  const std::string vm = DieDraining();
  settings_.policy.reset();
  settings_.pool = "";
  yes_ = false;
  EXPECT_EQ(Gc(), 2);
  EXPECT_EQ(
      err_.str(),
      "nomad-harvester gc: it would collect what is left of pool web in namespace nomad, and there "
      "is no terminal to ask on: give --yes\n");
  EXPECT_THAT(out_.str(), HasSubstr(vm + ": would delete the VM: "));
  EXPECT_EQ(Gc(true), 0) << "a dry run does nothing";
  interactive_ = true;
  EXPECT_EQ(Gc(), 1);
  EXPECT_THAT(out_.str(),
              MatchesRegex("nomad/web: " + vm +
                           ": would delete the VM: [^\n]*\n\nCollect what is left of pool "
                           "web in namespace nomad\\? \\[y/N\\] "));
  EXPECT_EQ(cluster_.Vms().size(), 1U);
  answer_ = "y";
  EXPECT_EQ(Gc(), 0);
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
  EXPECT_EQ(Gc(), 0);
  EXPECT_THAT(out_.str(),
              StartsWith("nomad/web: nothing to do\n\nCollect what is left of pool web "));
}

TEST_F(MaintenanceCommands, gc_of_one_pool_asks_before_it_deletes) {
  const std::string vm = DieDraining();
  yes_ = false;
  EXPECT_EQ(Gc(), 2);
  EXPECT_EQ(
      err_.str(),
      "nomad-harvester gc: it would collect what is left of pool web in namespace nomad, and there "
      "is no terminal to ask on: give --yes\n");
  interactive_ = true;
  EXPECT_EQ(Gc(), 1);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("nomad/web: " + vm + ": "),
                                testing::EndsWith("in namespace nomad? [y/N] ")));
  EXPECT_EQ(cluster_.Vms().size(), 1U);
  answer_ = "y";
  EXPECT_EQ(Gc(), 0);
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
  answer_ = "";
  EXPECT_EQ(Gc(), 0) << "nothing is left to be deleted";
}

TEST_F(MaintenanceCommands, gc_of_one_pool_does_not_ask_before_it_undoes) {
  const std::string vm = DieDraining();
  cluster_.EditAnnotation(vm, kMark, std::nullopt);
  yes_ = false;
  EXPECT_EQ(Gc(), 0) << err_.str();
  EXPECT_EQ(cluster_.Vms().size(), 1U);
}

TEST_F(MaintenanceCommands, check_warns_of_a_join_timeout_that_joins_nearly_use_up) {
  ASSERT_TRUE(Scale(1).ok());
  settings_.policy->join_timeout = std::chrono::seconds(10);
  EXPECT_THAT(Check(), HasSubstr("ok       time to join: the slowest of 1 VMs was ready after 8s; "
                                 "join_timeout is 10s\n"));
  settings_.policy->join_timeout = std::chrono::seconds(9);
  EXPECT_THAT(Check(), HasSubstr("warn     time to join: the slowest of 1 VMs was ready after 8s; "
                                 "join_timeout is 9s\n         -> raise join_timeout"));
}

TEST_F(MaintenanceCommands, gc_takes_no_lease_for_a_pool_that_does_not_exist) {
  settings_.pool = "other";
  EXPECT_EQ(Gc(), 0);
  EXPECT_THAT(cluster_.Leases(), IsEmpty());
}

TEST_F(MaintenanceCommands, gc_says_once_for_what_it_waits) {
  const std::string vm = DieDraining();
  EXPECT_EQ(Gc(), 0);
  const std::string waiting = vm + ": waiting: ";
  const std::size_t first = out_.str().find(waiting);
  ASSERT_NE(first, std::string::npos) << out_.str();
  const std::string line = out_.str().substr(first, out_.str().find('\n', first) - first + 1);
  EXPECT_EQ(out_.str().find(line, first + 1), std::string::npos) << out_.str();
}

TEST_F(MaintenanceCommands, C11_gc_skips_a_pool_that_a_live_process_holds_and_is_1) {
  DieDraining();
  const auto renewal = clock_.Every(std::chrono::seconds(1), [&] { HoldLease("somebody"); });
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_EQ(Gc(), 1);
  EXPECT_THAT(out_.str(), IsEmpty());
  EXPECT_EQ(err_.str(), "nomad/web: skipped: another process acts on pool nomad/web: somebody\n");
  EXPECT_EQ(cluster_.Vms().size(), 1U);
}

TEST_F(MaintenanceCommands, gc_of_several_pools_is_1_if_any_of_them_is_not_done) {
  DieDraining();
  const auto holder = clock_.Every(std::chrono::seconds(1), [&] { HoldLease("somebody"); });
  clock_.Advance(std::chrono::seconds(2));
  // It comes after the one that is held, and has nothing to be done.
  ASSERT_TRUE(
      cluster_.PutObject({{"apiVersion", "coordination.k8s.io/v1"},
                          {"kind", "Lease"},
                          {"metadata",
                           {{"name", "nomad-harvester-autoscaler-worker"},
                            {"namespace", "nomad"},
                            {"labels",
                             {{"app.kubernetes.io/managed-by", "nomad-harvester-autoscaler"},
                              {"nomad-harvester-autoscaler/pool", "worker"}}}}}}));
  settings_.policy.reset();
  settings_.pool = "";
  EXPECT_EQ(Gc(), 1);
  EXPECT_THAT(err_.str(), StartsWith("nomad/web: skipped: "));
  EXPECT_EQ(out_.str(), "nomad/worker: clean\n");
}

TEST_F(MaintenanceCommands, C11_gc_says_whose_lease_it_waits_for_and_until_when) {
  DieDraining();
  const base::WallTime began = clock_.WallNow();
  EXPECT_EQ(Gc(), 0);
  const std::string line =
      "nomad/web: waiting for the Lease of plugin, which no longer renews it; it is taken over "
      "by " +
      base::FormatRfc3339(began + std::chrono::seconds(22)) + "\n";
  EXPECT_THAT(out_.str(), StartsWith(line));
  EXPECT_EQ(out_.str().find("waiting for the Lease", line.size()), std::string::npos);
}

TEST_F(MaintenanceCommands, gc_that_was_not_allowed_is_1_and_says_so) {
  DieDraining();
  cluster_.Forbid("delete", "virtualmachines");
  EXPECT_EQ(Gc(), 1);
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr(": could not delete the VM: "), HasSubstr("nomad/web: not done: "),
                    HasSubstr("cannot delete resource \"virtualmachines\"")));
}

TEST_F(MaintenanceCommands, gc_names_what_only_a_policy_can_decide) {
  cluster_.NeverJoin(1);
  KillAt("create", "virtualmachines");
  EXPECT_FALSE(Scale(1).ok());
  cluster_.SetFaultHook(nullptr);
  clock_.Advance(std::chrono::minutes(20));
  const auto policy = std::exchange(settings_.policy, std::nullopt);
  EXPECT_EQ(Gc(), 1);
  EXPECT_THAT(err_.str(), HasSubstr(": not done: it has not joined Nomad"));
  EXPECT_THAT(err_.str(), HasSubstr("no policy is known"));
  settings_.policy = policy;
  EXPECT_EQ(Gc(), 0) << err_.str();
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
}

TEST_F(MaintenanceCommands, gc_that_is_interrupted_is_1_and_releases_its_lease) {
  DieDraining(true);
  StopAfter(std::chrono::seconds(40));
  EXPECT_EQ(Gc(), 1);
  EXPECT_THAT(err_.str(), HasSubstr("nomad/web: interrupted"));
  EXPECT_EQ(cluster_.Leases().at(0)["spec"].value("holderIdentity", ""), "");
}

TEST_F(MaintenanceCommands, gc_of_every_pool_asks_for_the_others_if_one_cannot_be_looked_at) {
  DieDraining();
  settings_.policy.reset();
  settings_.pool = "";
  yes_ = false;
  interactive_ = true;
  cluster_.Refuse({.verb = "get", .resource = "leases", .kind = simulator::Refusal::kUnavailable});
  EXPECT_EQ(Gc(), 1);
  EXPECT_THAT(err_.str(), StartsWith("nomad/web: not done: "));
  EXPECT_THAT(out_.str(), testing::EndsWith("in namespace nomad? [y/N] "));
}

// From arguments to sockets; Main changes signals for the process.
class WholeCommands : public testing::Test {
 protected:
  WholeCommands() {
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
    EXPECT_TRUE(server_.Start().ok());
  }
  ~WholeCommands() override { pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }

  int Call(std::vector<std::string> arguments) { return Call(arguments, server_.nomad_url()); }
  int Call(std::vector<std::string> arguments, const std::string& nomad) {
    const CapturedOutput captured;
    const int code = Main(arguments, {{kAgentConfigVariable, ""},
                                      {"HARVESTER_URL", server_.harvester_url()},
                                      {"NOMAD_ADDR", nomad},
                                      credential_});
    out_ = captured.Stdout();
    err_ = captured.Stderr();
    return code;
  }

  sigset_t mask_{};
  const std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_{*clock_, *random_};
  simulator::SimulatorServer server_{cluster_, *clock_};
  std::pair<std::string, std::string> credential_ = {"HARVESTER_TOKEN", "x"};
  std::string out_;
  std::string err_;
};

TEST_F(WholeCommands, status_of_a_pool_that_was_never_scaled_is_4) {
  EXPECT_EQ(Call({"status", "--set", "node_group_name=web", "--set", "node_class=web"}), 4) << err_;
  EXPECT_THAT(out_, AllOf(StartsWith("Pool:       default/web\nReady:      yes\n"),
                          HasSubstr("Trouble:    pool web has no VM and no Lease in namespace "
                                    "default")));
  EXPECT_EQ(Call({"status", "--output", "json", "--set", "node_group_name=web", "--set",
                  "node_class=web"}),
            4);
  EXPECT_TRUE(nlohmann::json::accept(out_)) << out_;
}

TEST_F(WholeCommands, status_names_the_address_of_a_nomad_that_hangs_and_the_limit) {
  const support::Listener nomad;
  EXPECT_EQ(Call({"status", "--set", "node_group_name=web", "--set", "node_class=web", "--set",
                  "request_timeout=200ms"},
                 nomad.url()),
            1);
  EXPECT_THAT(err_, Not(HasSubstr("Harvester")));
  EXPECT_THAT(out_, ContainsRegex("Ready: +no: Nomad cannot be read: list Nomad nodes: timed out "
                                  "after [0-9]+ms waiting for " +
                                  nomad.url() + " \\(4 attempts\\)\n"));
}

// nomad-harvester scale to one VM of pool web, and more settings.
std::vector<std::string> ScaleToOne(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"scale", "--count", "1"};
  std::vector<std::string> pairs = {"node_group_name=web",
                                    "node_class=web",
                                    "cpu_request=1",
                                    "memory_request=1Gi",
                                    "image=default/ubuntu-24.04",
                                    "networks=default/vlan100"};
  pairs.insert(pairs.end(), more.begin(), more.end());
  for (const std::string& pair : pairs) arguments.insert(arguments.end(), {"--set", pair});
  return arguments;
}

TEST_F(WholeCommands, set_wins_over_the_environment_for_scale_as_well) {
  credential_ = {"NOMAD_TOKEN_FILE", "/nowhere/token"};
  EXPECT_EQ(Call(ScaleToOne({"nomad_token=of-nomad", "auth_token=of-harvester"})), 0) << err_;
  EXPECT_THAT(out_, ContainsRegex("\ndone in [0-9]+s\nnow: pool default/web has 1 VM[^\n]*\n$"));
}

TEST_F(WholeCommands, short_options_stand_for_their_keys_and_a_count_needs_no_option) {
  std::vector<std::string> scale = ScaleToOne();
  scale.erase(scale.begin() + 1);  // --count
  scale.insert(scale.end(), {"-n", "nomad"});
  EXPECT_EQ(Call(scale), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\nnow: pool nomad/web has 1 VM"));
  EXPECT_EQ(Call({"status", "-n", "nomad", "-o", "yaml", "--set", "node_group_name=web", "--set",
                  "node_class=web", "--set", "namespace=default"}),
            0)
      << err_;
  EXPECT_THAT(out_, StartsWith("namespace: nomad\n"));
  EXPECT_EQ(Call({"status", "--kubeconfig", "/nowhere/kubeconfig", "--set", "node_group_name=web",
                  "--set", "node_class=web"}),
            2);
  EXPECT_THAT(err_, HasSubstr("/nowhere/kubeconfig"));
}

TEST_F(WholeCommands, L10_a_pause_may_say_how_long_it_is) {
  ASSERT_EQ(Call(ScaleToOne()), 0) << err_;
  EXPECT_EQ(Call({"pause", "--until", "2h", "--set", "node_group_name=web"}), 0) << err_;
  EXPECT_THAT(out_, ContainsRegex("is paused until 20[0-9]{2}-[-0-9T:]+Z\n"));
}

// A policy of a pool in namespace default; `more` are keys of its target block.
std::string PolicyOfPool(const std::string& name, const std::string& more = "",
                         const std::string& enabled = "true") {
  return "scaling \"" + name + "\" {\n  enabled = " + enabled +
         "\n  max = 3\n  policy {\n    target \"harvester\" {\n      node_group_name = \"" + name +
         "\"\n      node_class = \"" + name + "\"\n      " + more + "\n    }\n  }\n}\n";
}

TEST_F(WholeCommands, status_of_all_has_a_line_for_the_pool_of_each_policy) {
  ASSERT_EQ(Call(ScaleToOne()), 0) << err_;
  const support::ScopedTempDir dir;
  const std::string file =
      dir.WriteFile("p.hcl", PolicyOfPool("web") + PolicyOfPool("db", "namespace = \"nomad\""));
  EXPECT_EQ(Call({"status", "--all", "--policy", file}), 0) << err_;
  EXPECT_THAT(
      out_, ContainsRegex("^POOL +POLICY +READY +COUNT +OTHERS +WHY\nnomad/db +db +yes +0 +- +pool "
                          "db has no VM and no Lease [^\n]*\ndefault/web +web +yes +1 "));
  EXPECT_EQ(Call({"status", "--all", "--policy", file, "-n", "default", "-o", "json"}), 0) << err_;
  const auto pools = nlohmann::json::parse(out_)["pools"];
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_EQ(pools[0]["vms"].size(), 1U);
  EXPECT_EQ(pools[0]["policy"], "web");
  EXPECT_EQ(Call({"status", "--all", "--policy", file, "-o", "wide"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(StartsWith("Pool:       nomad/db\n"),
                          HasSubstr("\n\nPool:       default/web\n")));
  EXPECT_EQ(Call({"status", "--all", "--policy", file, "-n", "elsewhere"}), 2);
  EXPECT_THAT(
      err_,
      HasSubstr("no enabled policy of the files has a pool of this plugin in namespace elsewhere"));
  EXPECT_EQ(Call({"status", "--all"}), 2);
  EXPECT_THAT(err_, HasSubstr("the pools of all policies are asked for; give the agent's files"));
  EXPECT_EQ(Call({"status", "web-1", "--all", "--policy", file}), 2);
  EXPECT_EQ(Call({"status", "--all", "--policy", file, "--policy-name", "web"}), 2);
  EXPECT_THAT(err_, HasSubstr("leave out --policy-name"));
}

TEST_F(WholeCommands, status_of_all_is_3_if_one_pool_is_not_ready_and_another_has_trouble) {
  ASSERT_EQ(Call(ScaleToOne()), 0) << err_;
  ASSERT_EQ(Call({"pause", "--set", "node_group_name=web"}), 0) << err_;
  const support::ScopedTempDir dir;
  const std::string file =
      dir.WriteFile("p.hcl", PolicyOfPool("web") + PolicyOfPool("db", "namespace = \"nomad\""));
  EXPECT_EQ(Call({"status", "--all", "--policy", file}), 3) << out_ << err_;
  EXPECT_THAT(out_,
              AllOf(HasSubstr("default/web  web     no"), HasSubstr("nomad/db     db      yes")));
  EXPECT_THAT(out_, Not(HasSubstr("more: status of this pool"))) << "it has one trouble";
}

TEST_F(WholeCommands, status_of_all_shows_what_cannot_be_read_beside_the_other_pools_and_is_1) {
  ASSERT_EQ(Call(ScaleToOne()), 0) << err_;
  const support::ScopedTempDir dir;
  dir.WriteFile("a.hcl", PolicyOfPool("web"));
  dir.WriteFile("b.hcl", "scaling \"ci\" {\n");
  const std::string wrong =
      dir.WriteFile("c.hcl", PolicyOfPool("db", "memory = \"1Gi\"\n      namespace = \"other\""));
  dir.WriteFile("d.hcl", absl::StrReplaceAll(PolicyOfPool("api"), {{"harvester", "harvestr"}}));
  EXPECT_EQ(Call({"status", "--all", "--policy", dir.path()}), 1) << err_;
  EXPECT_THAT(
      out_, AllOf(ContainsRegex("\ndefault/web +web +yes +1 "),
                  ContainsRegex("\n- +b.hcl:1:14 +unknown +- +- +[^\n]*/b.hcl:1:14: this block is "
                                "not closed"),
                  ContainsRegex("\n- +api +unknown +- +- +[^\n]*/d.hcl:1:1: no target block "
                                "of this plugin is named \"harvestr\"; did you mean harvester"),
                  ContainsRegex("\n- +db +unknown +- +- +[^\n]*/c.hcl:1:1: memory: unknown "
                                "key[^\n]*/c.hcl:8:7")));
  EXPECT_EQ(Call({"status", "--all", "--policy", dir.path(), "-n", "default", "-o", "json"}), 1);
  const auto pools = nlohmann::json::parse(out_)["pools"];
  ASSERT_EQ(pools.size(), 3U) << "the policy of namespace other is left out: " << out_;
  EXPECT_EQ(pools[0]["node_group_name"], "web");
  EXPECT_EQ(pools[1]["policy"], "");
  EXPECT_EQ(pools[1]["place"], dir.Path("b.hcl:1:14"));
  EXPECT_THAT(std::string(pools[1]["error"]), StartsWith("this block is not closed"));
  EXPECT_EQ(pools[2]["policy"], "api");
  EXPECT_EQ(Call({"status", "--all", "--policy", dir.path(), "-o", "wide"}), 1);
  EXPECT_THAT(out_, AllOf(StartsWith("Pool:       default/web\n"),
                          HasSubstr("\nNot read:   policy db: " + wrong + ":1:1: ")));
  EXPECT_EQ(Call({"status", "--all", "--policy", wrong}), 2) << "there is nothing to show";
  EXPECT_THAT(err_, ContainsRegex("c.hcl:1:1: memory: unknown key"));
}

TEST_F(WholeCommands, check_warns_of_the_other_policies_and_files_that_cannot_be_read) {
  const support::ScopedTempDir dir;
  dir.WriteFile("a.hcl", PolicyOfPool("web",
                                      "image = \"default/ubuntu-24.04\"\n"
                                      "cpu_request = \"1\"\nmemory_request = \"1Gi\"\n"
                                      "networks = \"default/vlan100\"",
                                      "false"));
  dir.WriteFile("b.hcl", "scaling \"ci\" {\n");
  dir.WriteFile("c.hcl", PolicyOfPool("db", "memory = \"1Gi\""));
  dir.WriteFile("d.hcl", absl::StrReplaceAll(PolicyOfPool("api"), {{"harvester", "harvestr"}}));
  Call({"check", "--policy", dir.path(), "--policy-name", "web", "-o", "json"});
  std::vector<std::string> lines;
  const auto document = nlohmann::json::parse(out_, nullptr, false);
  ASSERT_TRUE(document.is_object()) << out_ << err_;
  for (const auto& check : document["checks"]) {
    if (check["id"] != "files.policies" && check["id"] != "policy.enabled") continue;
    EXPECT_EQ(check["outcome"], "warn");
    lines.push_back(std::string(check["subject"]) + ": " + std::string(check["text"]));
  }
  EXPECT_THAT(lines,
              testing::ElementsAre(
                  "policy \"web\" (" + dir.Path("a.hcl:1:1") +
                      "): is not enabled: the agent does not scale its pool",
                  StartsWith("also in the files: " + dir.Path("b.hcl:1:14: this")),
                  StartsWith("also in the files: policy api: " + dir.Path("d.hcl:1:1: no target")),
                  AllOf(StartsWith("also in the files: policy db: " + dir.Path("c.hcl:1:1: ")),
                        HasSubstr("; memory: unknown key; "))));
}

TEST_F(MaintenanceCommands, status_of_all_watches_and_shows_what_cannot_be_read_each_time) {
  ASSERT_TRUE(Scale(1).ok());
  has_reader_ = [] { return false; };
  const auto watch = [](const CommandRun& run) {
    return ShowStatusOfAll(
        {run}, {{.label = "db", .where = "db.hcl:1:1", .ns = "", .problem = "is wrong"}},
        {.all = true, .watch = {.watch = true}});
  };
  EXPECT_EQ(Call("status", watch), kExitFailure);
  EXPECT_THAT(out_.str(), AllOf(ContainsRegex("\nnomad/web +- +yes +1 "),
                                ContainsRegex("\n- +db +unknown +- +- +db.hcl:1:1: is wrong")));
}

TEST_F(WholeCommands, completion_asks_for_the_names_of_a_pools_vms) {
  ASSERT_EQ(Call(ScaleToOne()), 0) << err_;
  EXPECT_EQ(Call({"__complete", "status", "--set", "node_group_name", "=", "web", ""}), 0) << err_;
  EXPECT_THAT(out_, ContainsRegex("\nweb-[a-z0-9]+\n"));
  EXPECT_EQ(Call({"__complete", "replace", "--set", "node_group_name=web", "w"}), 0) << err_;
  EXPECT_THAT(out_, ContainsRegex("^web-[a-z0-9]+\n$"));
}

TEST_F(WholeCommands, init_writes_the_address_of_nomad_that_the_environment_has) {
  const support::ScopedTempDir dir;
  EXPECT_EQ(Call({"init", "--dir", dir.Path("etc")}, "http://10.0.0.20:4646"), 0) << err_;
  EXPECT_THAT(base::ReadFile(dir.Path("etc/agent.hcl")).value_or(""),
              HasSubstr("address = \"http://10.0.0.20:4646\""));
}

TEST_F(WholeCommands, gc_of_an_empty_namespace_is_clean) {
  EXPECT_EQ(Call({"gc", "--set", "namespace=nomad"}), 0) << err_;
  EXPECT_EQ(out_, "nothing of the plugin was found in namespace nomad\n");
  EXPECT_EQ(Call({"gc", "--dry-run"}), 0) << err_;
  EXPECT_EQ(out_,
            "nothing of the plugin was found in namespace default, which is the default; no files "
            "of the agent are read (NOMAD_HARVESTER_AGENT_CONFIG is empty): name them with "
            "--agent-config, or the pool's namespace with -n\n");
}

// What an operator has anyway; --set and the environment take precedence.
TEST_F(WholeCommands, take_their_settings_from_the_files_of_the_agent) {
  const support::ScopedTempDir dir;
  const std::string agent = dir.WriteFile("agent.hcl",
                                          "target \"east\" {\n"
                                          "  driver = \"harvester\"\n"
                                          "  config = {\n"
                                          "    harvester_url = \"http://harvester.invalid\"\n"
                                          "    max_concurrency = 5\n"
                                          "  }\n"
                                          "}\n");
  const std::string policy =
      dir.WriteFile("policy.hcl", absl::StrReplaceAll(PolicyOfPool("web", "namespace = \"nomad\""),
                                                      {{"\"harvester\"", "\"east\""}}));
  const std::vector<std::string> files = {"--agent-config", agent,           "--policy",
                                          policy,           "--policy-name", "web"};
  const auto with_files = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), files.begin(), files.end());
    return arguments;
  };
  EXPECT_EQ(Call(with_files({"status"})), 0) << err_;
  EXPECT_THAT(out_, StartsWith("Pool:       nomad/web\nReady:      yes\n"));
  EXPECT_EQ(Call(with_files({"status", "--set", "namespace=default"})), 4)
      << "no policy of the files has that pool: " << err_;
  EXPECT_THAT(out_, StartsWith("Pool:       default/web\n"));
  EXPECT_EQ(Call(with_files({"pause"})), 0) << err_;
  EXPECT_THAT(out_, AllOf(StartsWith("pool nomad/web is paused until nomad-harvester resume\n"),
                          HasSubstr("Note: no process has scaled it yet")));
  EXPECT_EQ(Call(with_files({"pause"})), 0) << err_;
  EXPECT_EQ(out_, "pool nomad/web is paused until nomad-harvester resume\n");
  EXPECT_EQ(Call(with_files({"resume"})), 0) << err_;
  EXPECT_EQ(out_, "pool nomad/web resumed\n");
  EXPECT_EQ(Call(with_files({"resume"})), 0) << err_;
  EXPECT_EQ(out_, "pool nomad/web was not paused\n");
  EXPECT_EQ(Call(with_files({"gc", "--dry-run"})), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("nomad/web"));
}

TEST_F(WholeCommands, D4_check_reads_nomad_as_each_apm_block_that_a_check_names) {
  const support::ScopedTempDir dir;
  std::string agent = "target \"harvester\" {\n  driver = \"harvester\"\n}\n";
  std::string checks;
  for (const std::string name : {"one", "other", "unused"}) {
    agent += "apm \"" + name +
             "\" {\n  driver = \"harvester\"\n  args = [\"apm\"]\n  config = {\n" +
             "    request_timeout = \"" + std::to_string(name.size()) + "s\"\n  }\n}\n";
    if (name == "unused") break;
    checks += "    check \"" + name + "\" {\n      source = \"" + name +
              "\"\n      query = \"nodes-needed node_class=web\"\n      strategy "
              "\"pass-through\" {}\n    }\n";
  }
  const std::string policy = dir.WriteFile(
      "policy.hcl",
      "scaling \"web\" {\n  enabled = true\n  max = 5\n  policy {\n" + checks +
          "    target \"harvester\" {\n      node_group_name = \"web\"\n      node_class = "
          "\"web\"\n      image = \"default/ubuntu-24.04\"\n      cpu_request = 1\n      "
          "memory_request = \"1Gi\"\n      networks = \"default/vlan100\"\n    }\n  }\n}\n");
  Call({"check", "-o", "json", "--agent-config", dir.WriteFile("agent.hcl", agent), "--policy",
        policy});
  std::vector<std::string> read;
  const nlohmann::json document = nlohmann::json::parse(out_);
  for (const nlohmann::json& line : document["checks"]) {
    if (line["id"] == "metrics.rights") read.push_back(line["subject"].get<std::string>());
  }
  EXPECT_THAT(read, testing::ElementsAre("rights of the apm block \"one\"",
                                         "rights of the apm block \"other\""))
      << out_ << err_;
}

TEST_F(WholeCommands, L10_pause_and_resume_need_the_pools_name_alone) {
  EXPECT_EQ(Call({"resume", "--set", "node_group_name=web"}), 0) << err_;
  EXPECT_THAT(out_, StartsWith("pool default/web was not paused: it has no Lease\n"));
  EXPECT_EQ(Call({"pause"}), 2);
  EXPECT_THAT(err_, HasSubstr("or the pool with --set node_group_name=NAME\n"));
}

TEST_F(WholeCommands, R5_resume_says_whether_the_replacement_of_vms_had_stopped) {
  ASSERT_EQ(Call(ScaleToOne()), 0) << err_;
  const std::vector<std::string> resume = {"resume", "--replacement", "--set",
                                           "node_group_name=web"};
  EXPECT_EQ(Call(resume), 0) << err_;
  EXPECT_EQ(out_, "pool default/web: the replacement of VMs had not stopped\n");
  nlohmann::json lease = cluster_.Leases().at(0);
  lease["metadata"]["annotations"][harvester::kLeaseReplacementAnnotation] = "{}";
  ASSERT_TRUE(cluster_.PutObject(lease));
  EXPECT_EQ(Call(resume), 0) << err_;
  EXPECT_EQ(out_, "pool default/web: the replacement of VMs goes on\n");
}

TEST_F(WholeCommands, L10_pause_and_resume_do_not_need_the_other_keys_of_the_policy) {
  const support::ScopedTempDir dir;
  const std::string policy = dir.WriteFile("web.hcl", PolicyOfPool("web", "memory = \"1Gi\""));
  EXPECT_EQ(Call({"pause", "web", "--policy", policy}), 0) << err_;
  EXPECT_THAT(out_, StartsWith("pool default/web is paused"));
  EXPECT_EQ(Call({"resume", "default/web", "--policy", policy}), 0) << err_;
  EXPECT_EQ(Call({"gc", "web", "--policy", policy}), 2) << "it removes by the policy's settings";
  EXPECT_THAT(err_, AllOf(HasSubstr("memory: unknown key"), HasSubstr(policy + ":8:7")));
}

TEST_F(WholeCommands, L10_pause_and_resume_of_a_pool_that_is_named_in_full_need_no_policy) {
  const support::ScopedTempDir dir;
  const std::string agent = dir.WriteFile("agent.hcl",
                                          "target \"harvester\" {\n  driver = \"harvester\"\n}\n"
                                          "policy {\n  dir = \"" +
                                              dir.Path("policies") + "\"\n}\n");
  ASSERT_EQ(Call(ScaleToOne()), 0) << err_;
  dir.WriteFile("policies/web.hcl", "scaling \"web\" {\n");
  EXPECT_EQ(Call({"pause", "default/web", "--agent-config", agent}), 0) << err_;
  EXPECT_EQ(out_, "pool default/web is paused until nomad-harvester resume\n");
  EXPECT_THAT(err_, AllOf(HasSubstr("without a policy, because " + dir.Path("policies")),
                          HasSubstr("web.hcl:1:15: this block is not closed")));
  EXPECT_EQ(Call({"resume", "default/web", "--agent-config", agent}), 0) << err_;
  EXPECT_EQ(Call({"pause", "web", "--agent-config", agent}), 2);
  EXPECT_THAT(err_,
              AllOf(HasSubstr("web.hcl:1:15: this block is not closed"),
                    HasSubstr("no policy is needed for a pool that is named NAMESPACE/NAME")));
  EXPECT_EQ(Call({"pause", "default/wbe", "--agent-config", agent}), 1);
  EXPECT_THAT(err_, HasSubstr("nothing was paused: no VM and no Lease of pool default/wbe exist"));
  EXPECT_EQ(Call({"gc", "default/web", "--agent-config", agent}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("web.hcl:1:15: this block is not closed"),
                          Not(HasSubstr("without a policy"))))
      << "it removes by the policy's settings";
}

TEST_F(WholeCommands, L10_pause_of_a_mistyped_pool_is_refused_and_leaves_no_lease) {
  EXPECT_EQ(Call({"pause", "--set", "node_group_name=wbe"}), 1);
  EXPECT_THAT(err_,
              StartsWith("nomad-harvester pause: nothing was paused: no VM and no Lease of pool "
                         "default/wbe exist; the namespace has no pool"));
  EXPECT_EQ(Call({"status", "--set", "node_group_name=wbe", "--set", "node_class=web"}), 4);
  EXPECT_THAT(out_, HasSubstr("Note:       there is nothing of this name"));
}

TEST_F(WholeCommands,
       of_a_token_file_that_cannot_be_read_check_blames_the_token_and_not_the_address) {
  credential_ = {"HARVESTER_TOKEN_FILE", "/nowhere/token"};
  EXPECT_EQ(
      Call({"check", "--set", "nomad_token_file=/nowhere/too", "--set", "node_group_name=web",
            "--set", "node_class=web", "--set", "cpu_request=1", "--set", "memory_request=1Gi",
            "--set", "image=default/ubuntu-24.04", "--set", "networks=default/vlan100"}),
      1);
  for (const char* const line :
       {"FAIL     Harvester's token: cannot use the token file /nowhere/token: ",
        "FAIL     Nomad's token: cannot use the token file /nowhere/too: ",
        "-> write the token into this file",
        "skip     Harvester's URL: there is no token to ask with\n"}) {
    EXPECT_THAT(out_, HasSubstr(line));
  }
  EXPECT_THAT(out_, Not(HasSubstr("CA that signed")));
  EXPECT_THAT(err_, IsEmpty()) << "it is told once";
}

TEST_F(WholeCommands, a_count_that_begins_with_0_is_refused_because_it_would_be_read_as_octal) {
  EXPECT_EQ(Call({"plan", "--count", "010", "--set", "node_group_name=web"}), 2);
  EXPECT_THAT(err_, HasSubstr("without leading zeros, such as 3, got \"010\""));
  EXPECT_EQ(Call({"plan", "--count", "-1", "--set", "node_group_name=web"}), 2);
}

TEST_F(WholeCommands, a_policy_directory_that_is_missing_is_named_with_its_origin) {
  const support::ScopedTempDir dir;
  const std::string agent = dir.WriteFile("agent.hcl",
                                          "policy { dir = \"/nowhere/policies\" }\n"
                                          "target \"harvester\" {\n  driver = \"harvester\"\n}\n");
  EXPECT_EQ(Call({"plan", "--count", "1", "--agent-config", agent}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("policy.dir of " + agent + " (--policy names another place): "),
                          HasSubstr("/nowhere/policies")));
}

TEST_F(WholeCommands, a_mistake_in_a_file_is_shown_with_its_line) {
  const support::ScopedTempDir dir;
  const std::string policy = dir.WriteFile("policy.hcl", "scaling web {\n  max = file(5)\n}\n");
  EXPECT_EQ(Call({"status", "--policy", policy}), 2);
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_THAT(err_, StartsWith("nomad-harvester status: " + policy + ":2:9: the agent knows no "));
  EXPECT_THAT(err_, HasSubstr("\nnomad-harvester status:   2 |   max = file(5)\n"
                              "nomad-harvester status:     |         ^\n"));
}

TEST_F(MaintenanceCommands, L10_pause_needs_no_nomad_and_says_what_is_left_without_harvester) {
  ASSERT_TRUE(Scale(1).ok());
  const auto pause = [this] {
    return Call("pause", [](const CommandRun& run) { return PausePool(run, {.always = true}); });
  };
  cluster_.SetNomadReachable(false);
  EXPECT_EQ(pause(), 0) << err_.str();
  EXPECT_EQ(out_.str(), "pool nomad/web is paused until nomad-harvester resume\n");
  EXPECT_EQ(Status(), 1);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("pool nomad/web is paused"), Not(HasSubstr("neither"))));
  nlohmann::json lease = cluster_.Leases().at(0);
  lease["metadata"]["annotations"][harvester::kLeasePausedAnnotation] = "tomorrow";
  ASSERT_TRUE(cluster_.PutObject(lease));
  Status();
  EXPECT_THAT(out_.str(),
              HasSubstr("Trouble:    the pool's Lease: its annotation nomad-harvester-autoscaler/"
                        "paused = \"tomorrow\" is neither true, false nor a time"));
  cluster_.SetHarvesterReachable(false);
  EXPECT_EQ(pause(), 1);
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr("nomad-harvester pause: whether the Lease of pool nomad/web was "
                              "written is not known: "),
                    HasSubstr("\nnomad-harvester pause: a pause is kept in Harvester: without it, "
                              "stop the agent")));
}

TEST_F(MaintenanceCommands, L10_a_pause_with_a_token_that_is_not_accepted_was_not_written) {
  ASSERT_TRUE(Scale(1).ok());
  cluster_.Refuse({.system = simulator::System::kHarvester,
                   .kind = simulator::Refusal::kAnswer,
                   .status = 401,
                   .text = "Unauthorized"});
  EXPECT_EQ(Call("pause", [](const CommandRun& run) { return PausePool(run, {.always = true}); }),
            1);
  EXPECT_THAT(err_.str(), HasSubstr("pause: the Lease of pool nomad/web was not written: "));
}

TEST_F(MaintenanceCommands, R1_replace_annotates_the_vms_that_are_named_and_cancel_undoes_that) {
  ASSERT_TRUE(Scale(2).ok());
  const std::string vm = cluster_.Vms().at(0)["metadata"]["name"];
  EXPECT_EQ(Replace({.names = {vm}, .reason = "its disk is full", .yes = true}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr(vm + ": to be replaced\n"));
  EXPECT_EQ(RequestOf(vm), "its disk is full");
  EXPECT_EQ(Replace({.names = {vm}, .cancel = true, .yes = true}), 0) << err_.str();
  EXPECT_EQ(RequestOf(vm), "");
  EXPECT_EQ(Replace({.names = {"web-x"}, .yes = true}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("pool nomad/web has no VM web-x"));
  EXPECT_EQ(Replace({.names = {vm}}), 2) << "nobody can be asked";
  EXPECT_EQ(RequestOf(vm), "");
}

TEST_F(MaintenanceCommands, R1_replace_says_who_replaces_and_the_same_to_a_program) {
  const std::string vm = MakeVm();
  const auto replace = [&](const std::string& output) {
    return Replace({.output = output, .names = {vm}, .yes = true});
  };
  EXPECT_EQ(replace(kForPeople), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\nNo agent has scaled this pool: nothing is replaced before"))
      << "the Scale had no policy's id";
  nlohmann::json lease = cluster_.Leases().at(0);
  lease["metadata"]["annotations"][harvester::kLeasePolicyAnnotation] = harvester::ToAnnotation(
      harvester::PolicyRecord{.id = "p1", .at = clock_.WallNow() - std::chrono::minutes(3)});
  lease["metadata"]["annotations"][harvester::kLeasePausedAnnotation] = "true";
  ASSERT_TRUE(cluster_.PutObject(lease));
  EXPECT_EQ(replace(kForPeople), 0) << err_.str();
  EXPECT_THAT(out_.str(), ContainsRegex("The agent's plugin replaces them, .* by policy p1: if it "
                                        "does not run any more, nothing is replaced\\. They wait: "
                                        "pool nomad/web is paused"));
  EXPECT_EQ(replace("json"), 0) << err_.str();
  const auto document = Document();
  EXPECT_EQ(document["vms"],
            nlohmann::json::array(
                {{{"vm", vm}, {"written", true}, {"replacement", ""}, {"obstacle", ""}}}));
  EXPECT_EQ(document["reason"], "nomad-harvester replace");
  EXPECT_EQ(document["agents_policy"]["id"], "p1");
  EXPECT_THAT(document["waits"].get<std::string>(), HasSubstr("is paused"));
  EXPECT_TRUE(document["error"].is_null());
}

TEST_F(MaintenanceCommands, R7_evacuate_tells_a_program_which_vms_have_left) {
  const std::string vm = MakeVm();
  const std::string host = cluster_.HostOfVm(vm);
  ASSERT_TRUE(cluster_.PutObject(support::Host(host, /*cordoned=*/true)));
  StopAfter(std::chrono::seconds(20));
  EXPECT_EQ(Evacuate({.output = "json", .host = host, .all = true, .yes = true}), 1);
  const auto document = Document();
  EXPECT_EQ(document["host"], host);
  EXPECT_EQ(document["left"], nlohmann::json::array({vm}));
  EXPECT_EQ(document["vms"][0]["written"], true);
  EXPECT_THAT(document["error"].get<std::string>(), HasSubstr("interrupted"));
}

TEST_F(MaintenanceCommands, R7_evacuate_that_nobody_reads_ends_and_leaves_what_was_asked_for) {
  const std::string vm = MakeVm();
  const std::string host = cluster_.HostOfVm(vm);
  ASSERT_TRUE(cluster_.PutObject(support::Host(host, /*cordoned=*/true)));
  has_reader_ = [] { return false; };
  StopAfter(std::chrono::minutes(9));
  const base::MonoTime begin = clock_.Now();
  for (const char* const output : {"json", kForPeople}) {
    EXPECT_EQ(Evacuate({.output = output, .host = host, .all = true, .yes = true}), 1);
    EXPECT_NE(RequestOf(vm), "");
  }
  EXPECT_LT(clock_.Now() - begin, std::chrono::minutes(1));
}

TEST_F(MaintenanceCommands, status_that_watches_ends_once_nobody_reads) {
  ASSERT_TRUE(Scale(1).ok());
  has_reader_ = [] { return false; };
  StopAfter(std::chrono::minutes(9));
  const base::MonoTime begin = clock_.Now();
  watch_ = true;
  EXPECT_EQ(Status(), 0);
  EXPECT_LT(clock_.Now() - begin, std::chrono::minutes(1));
}

TEST_F(MaintenanceCommands, R1_cancel_takes_back_the_named_request_alone_and_without_a_name_all) {
  ASSERT_TRUE(Scale(2).ok());
  std::vector<std::string> vms;
  for (const nlohmann::json& vm : cluster_.Vms()) vms.push_back(vm["metadata"]["name"]);
  EXPECT_EQ(Replace({.names = vms, .reason = "its disk is full", .yes = true}), 0) << err_.str();
  EXPECT_EQ(Replace({.names = {vms[0]}, .cancel = true, .yes = true}), 0) << err_.str();
  EXPECT_EQ(RequestOf(vms[0]), "");
  EXPECT_NE(RequestOf(vms[1]), "");
  EXPECT_EQ(Replace({.cancel = true, .yes = true}), 0) << err_.str();
  EXPECT_EQ(RequestOf(vms[1]), "");
}

TEST_F(MaintenanceCommands, R1_replace_finds_vms_by_their_age_and_by_their_drift) {
  ASSERT_TRUE(Scale(1).ok());
  clock_.Advance(std::chrono::hours(2));
  EXPECT_EQ(Replace({.yes = true, .age = std::chrono::hours(3)}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("nothing to do"));
  EXPECT_EQ(Replace({.yes = true, .age = std::chrono::hours(1)}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("to be replaced"));
}

TEST_F(MaintenanceCommands, R7_evacuate_asks_for_the_vms_that_cannot_migrate_off_a_cordoned_host) {
  ASSERT_TRUE(Scale(2).ok());
  const std::string vm = cluster_.Vms().at(0)["metadata"]["name"];
  const std::string host = cluster_.HostOfVm(vm);
  ASSERT_TRUE(cluster_.PutObject(support::Pinned(cluster_.Vm(vm))));
  EXPECT_EQ(Evacuate({.host = host, .no_wait = true, .yes = true}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("run kubectl cordon " + host));
  EXPECT_EQ(Evacuate({.host = "rack9-z", .no_wait = true, .yes = true}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("there is no host rack9-z; there are: " + host));
  EXPECT_EQ(RequestOf(vm), "");
  ASSERT_TRUE(cluster_.PutObject(support::Host(host, /*cordoned=*/true)));
  EXPECT_EQ(Evacuate({.host = host, .no_wait = true, .yes = true}), 0) << err_.str();
  EXPECT_EQ(RequestOf(vm), "host " + host + " is to be left");
  const std::string other = cluster_.Vms().at(1)["metadata"]["name"];
  EXPECT_EQ(RequestOf(other), "") << "it can migrate";
  EXPECT_EQ(Evacuate({.host = host, .all = true, .no_wait = true, .yes = true}), 0);
  EXPECT_NE(RequestOf(other), "");
}

TEST_F(MaintenanceCommands, R7_evacuate_waits_until_it_sees_that_no_vm_is_left) {
  const std::string vm = MakeVm();
  const std::string host = cluster_.HostOfVm(vm);
  ASSERT_TRUE(cluster_.PutObject(support::Host(host, /*cordoned=*/true)));
  clock_.After(std::chrono::seconds(1), [&] { cluster_.SetHarvesterReachable(false); });
  clock_.After(std::chrono::minutes(1), [&] {
    cluster_.SetHarvesterReachable(true);
    cluster_.DeleteVmByHand(vm);
  });
  EXPECT_EQ(Evacuate({.host = host, .all = true, .yes = true}), 0) << err_.str();
  EXPECT_THAT(out_.str(), ContainsRegex("1 of 1 are left: " + vm +
                                        "(.|\n)*it is not known how many are left"
                                        "(.|\n)*none of them is on host " +
                                        host + " any more"));
}

TEST_F(MaintenanceCommands, R7_status_tells_which_hosts_are_to_be_left_and_who_is_on_them) {
  const std::string vm = MakeVm();
  for (const std::string& host : {cluster_.HostOfVm(vm), std::string("rack9-z")}) {
    ASSERT_TRUE(cluster_.PutObject(support::Host(host, /*cordoned=*/true)));
  }
  Status();
  EXPECT_THAT(out_.str(), HasSubstr(cluster_.HostOfVm(vm) + " is cordoned; on it: " + vm));
  EXPECT_THAT(out_.str(), HasSubstr("rack9-z is cordoned; no VM of the pool is on it"));
  Status("json");
  EXPECT_EQ(Document()["cordoned_hosts"][0]["vms"], nlohmann::json::array({vm}));
}

TEST_F(MaintenanceCommands, R7_status_names_no_vm_of_another_pool_on_a_host_to_be_left) {
  ASSERT_TRUE(Scale(1).ok());
  nlohmann::json vm = cluster_.Vms().at(0);
  const std::string host = cluster_.HostOfVm(vm["metadata"]["name"]);
  ASSERT_TRUE(cluster_.PutObject(support::Host(host, /*cordoned=*/true)));
  vm["metadata"]["labels"]["nomad-harvester-autoscaler/pool"] = "other";
  ASSERT_TRUE(cluster_.PutObject(vm));
  Status();
  EXPECT_THAT(out_.str(), HasSubstr(host + " is cordoned; no VM of the pool is on it"));
}

TEST_F(MaintenanceCommands, C7_status_says_that_a_protection_counts_although_it_was_misread) {
  const std::string vm = MakeVm();
  const auto trouble = [&](const std::string& value) {
    cluster_.EditAnnotation(vm, "nomad-harvester-autoscaler/protect", value);
    Status();
    return out_.str();
  };
  for (const char* value : {"no", "tomorrow"}) {
    EXPECT_THAT(
        trouble(value),
        HasSubstr("Trouble:    " + vm + ": its annotation nomad-harvester-autoscaler/protect = \"" +
                  value + "\" is neither true, false nor a time"));
  }
  EXPECT_THAT(Check(), HasSubstr("warn     protected VMs: VM " + vm + ": its annotation "));
  for (const char* value : {"true", "f", "2099-12-01T06:00:00Z"}) {
    EXPECT_THAT(trouble(value), Not(HasSubstr("is neither"))) << value;
  }
}

TEST_F(MaintenanceCommands, C11_check_warns_of_a_lease_whose_holder_was_killed) {
  ASSERT_TRUE(Scale(1).ok());
  EXPECT_THAT(Check(), Not(HasSubstr("no longer renews it")));
  HoldLease("somebody");
  EXPECT_THAT(Check(), Not(HasSubstr("no longer renews it"))) << "it acts on the pool";
  clock_.Advance(std::chrono::seconds(10));
  EXPECT_THAT(Check(), HasSubstr("warn     the pool's Lease: the process that holds the Lease, "
                                 "somebody, no longer renews it"));
}

TEST_F(MaintenanceCommands, C8_status_and_check_say_that_delete_first_was_misread) {
  const std::string vm = MakeVm();
  cluster_.EditAnnotation(vm, "nomad-harvester-autoscaler/delete-first", "maybe");
  const std::string text =
      ": its annotation nomad-harvester-autoscaler/delete-first = \"maybe\" is neither true nor "
      "false, and counts as false";
  Status();
  EXPECT_THAT(out_.str(), HasSubstr("Trouble:    " + vm + text));
  EXPECT_THAT(Check(), HasSubstr("warn     VMs to delete first: VM " + vm + text));
  cluster_.EditAnnotation(vm, "nomad-harvester-autoscaler/delete-first", "false");
  Status();
  EXPECT_THAT(out_.str(), Not(HasSubstr("is neither")));
}

TEST_F(MaintenanceCommands, L10_replace_says_that_the_pause_was_misread) {
  const std::string vm = MakeVm();
  nlohmann::json lease = cluster_.Leases().at(0);
  lease["metadata"]["annotations"][harvester::kLeasePausedAnnotation] = "tomorrow";
  ASSERT_TRUE(cluster_.PutObject(lease));
  EXPECT_EQ(Replace({.names = {vm}, .yes = true}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\"tomorrow\" is neither true, false nor a time"));
}

TEST_F(MaintenanceCommands, C7_replace_says_what_keeps_a_vm) {
  const std::string vm = MakeVm();
  cluster_.EditAnnotation(vm, "nomad-harvester-autoscaler/protect", "true");
  EXPECT_EQ(Replace({.names = {vm}, .yes = true}), 0);
  EXPECT_THAT(out_.str(),
              HasSubstr(vm + ": to be replaced, but not for now: protected by its annotation"));
}

}  // namespace
}  // namespace nomad_harvester::cli
