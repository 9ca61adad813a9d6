// SPDX-License-Identifier: Apache-2.0
// nomad-harvester plan, scale and render against the simulated systems: output, exit codes,
// effects.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/scaling/rendering.h"
#include "nomad_harvester/scaling/service.h"
#include "nomad_harvester/simulator/cluster.h"

#include "absl/strings/str_split.h"
#include "cli/golden.h"
#include "cli/operator.h"
#include "command.h"
#include "nlohmann/json.hpp"
#include "scale_command.h"
#include "support/fake_clock.h"
#include "support/hosts.h"
#include "support/manual_executor.h"
#include "support/seeded_random.h"
#include "terminal.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

constexpr char kDeleteFirst[] = "nomad-harvester-autoscaler/delete-first";
constexpr char kScaleInMark[] = "nomad-harvester-autoscaler/scale-in";
constexpr char kProtect[] = "nomad-harvester-autoscaler/protect";
constexpr char kRefused[] = "would be refused: ";

// A pool, and an operator who plans and scales while no agent runs.
class PlanCommands : public OperatorTest {
 protected:
  PlanCommands() { Configure({}); }

  // With these settings besides those that the pool needs.
  void Configure(const std::vector<std::string>& more, const config::StringMap& environment = {}) {
    std::vector<std::string> pairs = {"harvester_url=http://harvester.invalid",
                                      "auth_token=secret-token-of-harvester",
                                      "node_group_name=web",
                                      "namespace=nomad",
                                      "node_class=web",
                                      "cpu_request=1",
                                      "memory_request=1Gi",
                                      "networks=default/vlan100",
                                      "node_purge=true"};
    if (more.empty() || more.front().rfind("user_data=", 0) != 0) {
      pairs.emplace_back(
          "user_data=#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: "
          "|\n    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n");
    }
    if (more.empty() || more.front().rfind("image=", 0) != 0) {
      pairs.emplace_back("image=default/ubuntu-24.04");
    }
    pairs.insert(pairs.end(), more.begin(), more.end());
    environment_ = environment;
    const auto parsed = ReadSettings(pairs, {}, PolicyUse::kWhole, environment);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    settings_ = *parsed;
    maintenance_ = MakeMaintenance(cluster_, clock_, executor_, settings_);
  }

  int Plan(std::int64_t count, const std::string& output = kForPeople) {
    return Call("plan", [&](const CommandRun& run) {
      return ShowPlan(run, {.count = count, .output = output});
    });
  }
  json PlanOf(std::int64_t count) {
    EXPECT_EQ(Plan(count, "json"), 0) << err_.str();
    return json::parse(out_.str(), nullptr, false);
  }
  // The last line.
  std::string VerdictOf(std::int64_t count) {
    EXPECT_EQ(Plan(count), 0) << err_.str();
    const std::string text = out_.str();
    return text.substr(text.rfind('\n', text.size() - 2) + 1);
  }

  // With an answer: somebody can be asked.
  int Scale(const ScaleArguments& arguments, const std::optional<std::string>& answer = {}) {
    const std::string client = "command-" + std::to_string(++commands_);
    const MakeService make_service = [&](const std::shared_ptr<log::Sink>& progress) {
      if (const auto act = std::exchange(meanwhile_, nullptr)) {
        EXPECT_TRUE(act());
      }
      scaling::ServiceOptions options;
      options.clock = &clock_;
      options.random = support::MakeSeededRandom(static_cast<std::uint64_t>(100 + commands_));
      options.logger = log::Logger(progress, log::Level::kDebug);
      options.environment = environment_;
      options.transports = [this, client](const config::PluginConfig&) {
        return absl::StatusOr<http::RawTransports>(TransportsOf(cluster_, client));
      };
      options.foreground = &executor_;
      options.background = background_;
      options.replaces = false;
      options.holder = client;
      options.set_log_level = [this](std::optional<log::Level> level) {
        if (level.has_value()) levels_.push_back(*level);
      };
      return scaling::MakeTargetService(std::move(options));
    };
    return Call("scale",
                [&](const CommandRun& run) { return ScalePool(run, arguments, make_service); },
                {.interactive = answer.has_value(), .read_line = [&](const runtime::Context&) {
                   if (answer == "^C") work_.Cancel(runtime::CancelReason::kShutdown);
                   return *answer;
                 }});
  }
  int ScaleTo(std::int64_t count) { return Scale({.count = count, .yes = true}); }
  int BeginScaleTo(std::int64_t count) {
    return Scale({.count = count, .yes = true, .no_wait = true});
  }

  // What check says of the state of the pool.
  std::vector<std::string> States() {
    Call("check",
         [](const CommandRun& run) { return CheckPreconditions(run, {.output = "json"}); });
    std::vector<std::string> texts;
    const json document = json::parse(out_.str(), nullptr, false);
    for (const json& check : document["checks"]) {
      if (check["id"] == "pool.state") texts.push_back(check["text"]);
    }
    return texts;
  }

  int Render(const std::string& output) {
    return Call("render", [&](const CommandRun& run) { return RenderPolicy(run, output); });
  }

  std::set<std::string> VmNames() const {
    std::set<std::string> names;
    for (const json& vm : cluster_.Vms()) names.insert(vm["metadata"]["name"]);
    return names;
  }
  std::string FirstVm() const { return *VmNames().begin(); }
  // The marks, by VM.
  std::map<std::string, std::string> Marks() const {
    std::map<std::string, std::string> marks;
    for (const json& vm : cluster_.Vms()) {
      const json& annotations = vm["metadata"]["annotations"];
      if (annotations.contains(kScaleInMark)) {
        marks[vm["metadata"]["name"]] = annotations[kScaleInMark];
      }
    }
    return marks;
  }

  // An agent that ended the pool's action a moment ago, and recorded this failure.
  void EndAction(base::WallTime failed_at) {
    json lease = cluster_.Leases().at(0);
    json& annotations = lease["metadata"]["annotations"];
    annotations.erase(harvester::kLeaseActionAnnotation);
    annotations[harvester::kLeaseLastErrorAnnotation] =
        harvester::ToAnnotation(harvester::ErrorRecord{
            .action = "act", .at = failed_at, .text = FirstVm() + ": failed: it was kept"});
    EXPECT_TRUE(cluster_.PutObject(lease));
    EXPECT_TRUE(cluster_.EditAnnotation(FirstVm(), kScaleInMark, std::nullopt));
    EXPECT_TRUE(cluster_.CancelDrain(cluster_.Nodes().at(0)["ID"], true));
  }
  // The only VM begins to drain, and no background work is done here.
  void HangInTheWatch() {
    ASSERT_EQ(ScaleTo(1), 0);
    cluster_.HangDrain(cluster_.Nodes().at(0)["ID"]);
    idle_.set_refusal(absl::UnavailableError("full"));
    background_ = &idle_;
  }

  support::ManualExecutor idle_;
  runtime::Executor* background_ = &executor_;
  config::StringMap environment_;
  int commands_ = 0;
  std::vector<log::Level> levels_;   // that a configuration has set
  std::function<bool()> meanwhile_;  // called once, when a plan was agreed to
};

TEST_F(PlanCommands, plan_of_a_growth_counts_the_new_vms) {
  EXPECT_EQ(Plan(3), 0);
  EXPECT_EQ(out_.str(),
            "nomad/web: 0 → 3, scale out\n"
            "\n"
            "CREATE\n"
            "COUNT  ZONE  NAME\n"
            "3      -     new\n"
            "\n"
            "nothing would refuse it\n");
}

// Tells what the command asks of the service, and does nothing.
class ToldService final : public scaling::TargetService {
 public:
  explicit ToldService(std::string& calls) : calls_(calls) {}
  absl::Status SetConfig(const scaling::StringMap& /*config*/) override { return Note("config "); }
  absl::StatusOr<scaling::TargetStatus> Status(const runtime::Context& /*context*/,
                                               const scaling::StringMap& /*policy*/) override {
    return scaling::TargetStatus{};
  }
  absl::Status Scale(const runtime::Context& /*context*/, const scaling::ScaleAction& /*action*/,
                     const scaling::StringMap& /*policy*/) override {
    return Note("scale ");
  }
  void Flush(const runtime::Context& context) override {
    EXPECT_LE(context.Remaining(), std::chrono::seconds(5));
    Note("flush ").IgnoreError();
  }
  void Stop(const runtime::Context& /*context*/) override { Note("stop").IgnoreError(); }

 private:
  absl::Status Note(const std::string& call) {
    calls_ += call;
    return absl::OkStatus();
  }
  std::string& calls_;
};

TEST_F(PlanCommands, T1_scale_sends_its_events_within_a_limit_before_it_ends) {
  std::string calls;
  const MakeService make_service = [&](const std::shared_ptr<log::Sink>& /*progress*/) {
    return std::make_unique<ToldService>(calls);
  };
  EXPECT_EQ(Call("scale",
                 [&](const CommandRun& run) {
                   return ScalePool(run, {.count = 1, .yes = true, .no_wait = true}, make_service);
                 }),
            0);
  EXPECT_EQ(calls, "config scale flush stop");
}

TEST_F(PlanCommands, plan_on_a_terminal_keeps_the_cells_of_a_row_together) {
  ASSERT_EQ(ScaleTo(2), 0);
  EXPECT_EQ(Plan(1), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\nREMOVE\n#  VM"));
  terminal_.width = 40;
  EXPECT_EQ(Plan(1), 0);
  EXPECT_THAT(out_.str(), ContainsRegex("\nREMOVE\n#:     1\nVM:    web-.*\nNODE:  .*\n"
                                        "WHY:   "));
  const std::vector<std::string> lines = absl::StrSplit(out_.str(), '\n');
  for (const std::string& line : lines) EXPECT_LE(DisplayWidth(line), terminal_.width) << line;
}

TEST_F(PlanCommands, plan_of_a_growth_has_the_zones) {
  Configure({"availability_zones=zone-a,zone-b"});
  EXPECT_EQ(Plan(3), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\n2      zone-a  new\n1      zone-b  new\n"));
}

TEST_F(PlanCommands, plan_of_the_present_count_has_nothing_to_do) {
  ASSERT_EQ(ScaleTo(1), 0);
  EXPECT_EQ(Plan(1), 0);
  EXPECT_EQ(out_.str(), "nomad/web: 1, nothing to do\n\nnothing would refuse it\n");
}

TEST_F(PlanCommands, C13_plan_says_that_a_policy_in_dry_run_does_nothing_and_what_ends_it) {
  Configure({"dry-run=true"});
  EXPECT_EQ(VerdictOf(1),
            "would not be done: the policy sets dry-run: what the agent wants is logged, and not "
            "done; to scale, set dry-run = \"false\" and restart the agent\n");
  EXPECT_EQ(PlanOf(1)["dry_run"], true);
  Configure({"image=default/none", "dry-run=true"});
  EXPECT_THAT(VerdictOf(1), StartsWith("would not be done: "));
  EXPECT_THAT(out_.str(), HasSubstr("\nwould be refused: image: "));
  Configure({});
  EXPECT_EQ(VerdictOf(1), "nothing would refuse it\n");
  EXPECT_EQ(PlanOf(1)["dry_run"], false);
}

TEST_F(PlanCommands, plan_and_check_say_that_another_pool_has_vms_for_the_same_nodes) {
  ASSERT_EQ(ScaleTo(1), 0);
  const auto check = [this] {
    Call("check", [](const CommandRun& run) { return CheckPreconditions(run, {}); });
    return out_.str();
  };
  const std::string text = "also of web: a demand query counts the nodes for each of these pools";
  Configure({"node_group_name=api"});
  EXPECT_EQ(Plan(1), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\nnote: its nodes are " + text));
  EXPECT_THAT(check(), HasSubstr("\nwarn     nodes with node_class=web: " + text));
  Configure({"node_group_name=api", "node_class=api"});
  EXPECT_EQ(Plan(1), 0);
  EXPECT_THAT(out_.str(), Not(HasSubstr("also of")));
  EXPECT_THAT(check(), Not(HasSubstr("also of")));
  Configure({});
  EXPECT_THAT(check(), Not(HasSubstr("also of"))) << "they are its own";
}

TEST_F(PlanCommands, L10_plan_says_that_the_pause_was_misread) {
  ASSERT_EQ(ScaleTo(1), 0);
  json lease = cluster_.Leases().at(0);
  lease["metadata"]["annotations"][harvester::kLeasePausedAnnotation] = "tomorrow";
  ASSERT_TRUE(cluster_.PutObject(lease));
  EXPECT_THAT(VerdictOf(2), HasSubstr("pool nomad/web is paused"));
  EXPECT_THAT(out_.str(), HasSubstr("\nnote: the pool's Lease: its annotation "
                                    "nomad-harvester-autoscaler/paused = \"tomorrow\" is neither"));
}

TEST_F(PlanCommands, R2_plan_says_what_is_to_be_replaced_and_why_that_waits) {
  Configure({"expire_after=1h"});
  ASSERT_EQ(ScaleTo(2), 0);
  EXPECT_EQ(Plan(2), 0);
  EXPECT_THAT(out_.str(), Not(HasSubstr("REPLACE")));
  EXPECT_THAT(PlanOf(2)["to_replace"], IsEmpty());
  clock_.Advance(std::chrono::hours(1));
  EXPECT_EQ(Plan(2), 0);
  EXPECT_THAT(out_.str(), ContainsRegex("\nREPLACE\nVM +WHY\nweb-.* expired\nweb-.* expired\n"
                                        "\nnothing would refuse it\n"));
  Configure({"expire_after=1h", "replacement_window=0 3 * * * 1h"});
  EXPECT_EQ(Plan(1), 0);
  EXPECT_THAT(out_.str(),
              HasSubstr(" expired\nwaits: outside of replacement_window, which opens at "
                        "2026-01-01T03:00:00Z\n\nnothing would refuse it\n"));
  const json plan = PlanOf(3);
  ASSERT_EQ(plan["to_replace"].size(), 2U) << plan.dump(1);
  EXPECT_EQ(plan["to_replace"][0]["why"], "expired");
  EXPECT_EQ(VmNames().count(plan["to_replace"][0]["vm"].get<std::string>()), 1U);
  EXPECT_EQ(plan["replacement_blocked_reason"],
            "outside of replacement_window, which opens at 2026-01-01T03:00:00Z");
  ASSERT_EQ(Scale({.count = 1}, "n"), 1);
  EXPECT_THAT(out_.str(), Not(HasSubstr("REPLACE"))) << "scale replaces nothing";
}

TEST_F(PlanCommands, R1_plan_reads_what_new_vms_are_made_of_to_know_which_have_drifted) {
  ASSERT_EQ(ScaleTo(1), 0);
  clock_.Advance(std::chrono::minutes(11));
  Configure({"replace_drifted=rolling"});
  EXPECT_THAT(PlanOf(1)["to_replace"], IsEmpty());
  Configure({"replace_drifted=rolling", "tags=team=data", "dry-run=true"});
  const json plan = PlanOf(1);
  ASSERT_EQ(plan["to_replace"].size(), 1U) << plan.dump(1);
  EXPECT_EQ(plan["to_replace"][0]["vm"], FirstVm());
  EXPECT_EQ(plan["to_replace"][0]["why"], "drifted: tags");
  EXPECT_EQ(plan["replacement_blocked_reason"], "the policy is in dry run");
  Configure({"image=default/none", "replace_drifted=rolling"});
  EXPECT_THAT(PlanOf(1)["replacement_blocked_reason"].get<std::string>(),
              HasSubstr("which VMs have drifted is not known: "));
  EXPECT_EQ(Plan(1), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\nREPLACE\nwaits: which VMs have drifted is not known: "));
}

TEST_F(PlanCommands, R2_plan_says_what_refuses_the_new_vm_of_a_replacement) {
  Configure({"expire_after=1h"});
  ASSERT_EQ(ScaleTo(1), 0);
  clock_.Advance(std::chrono::hours(1));
  cluster_.SetFaultHook([](const simulator::RequestInfo& request) {
    const bool tries = request.verb == "try" && request.resource == "virtualmachines";
    return tries ? simulator::Fault::Answer(403) : simulator::Fault::None();
  });
  EXPECT_THAT(PlanOf(1)["replacement_blocked_reason"].get<std::string>(),
              HasSubstr("Harvester would refuse the VM"));
}

TEST_F(PlanCommands, plan_of_a_scale_in_says_who_goes_who_is_next_and_who_is_passed_over) {
  ASSERT_EQ(ScaleTo(4), 0) << err_.str();
  const std::set<std::string> names = VmNames();
  auto name = names.begin();
  const std::string safe = *name++;
  const std::string first = *name++;
  const std::string stopped = *name;
  ASSERT_TRUE(cluster_.EditAnnotation(safe, kProtect, "true"));
  ASSERT_TRUE(cluster_.EditAnnotation(first, kDeleteFirst, "true"));
  ASSERT_TRUE(cluster_.StopVm(stopped));
  clock_.Advance(std::chrono::minutes(2));
  const json plan = PlanOf(2);
  EXPECT_EQ(plan["direction"], "in");
  ASSERT_EQ(plan["remove"].size(), 2U) << plan.dump(1);
  EXPECT_EQ(plan["remove"][0]["vm"], first);
  EXPECT_EQ(plan["remove"][0]["why"], "marked to be deleted first");
  EXPECT_EQ(plan["remove"][0]["node"], cluster_.Node(first)["ID"]);
  EXPECT_EQ(plan["remove"][1]["vm"], stopped);
  ASSERT_EQ(plan["reserve"].size(), 1U);
  EXPECT_EQ(plan["reserve"][0]["why"], "least_busy (0 %)");
  EXPECT_EQ(plan["passed_over"][0], json({{"vm", safe}, {"why", "protected by its annotation"}}));
  EXPECT_TRUE(plan["refusal"].is_null()) << plan["refusal"];
  EXPECT_EQ(Plan(2), 0);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("nomad/web: 4 → 2, scale in by least_busy\n"),
                                HasSubstr("\nREMOVE\n#  VM"), HasSubstr("\nRESERVE\n#  VM"),
                                HasSubstr("\nPASSED OVER\nVM"), Not(HasSubstr("CREATE"))));
}

TEST_F(PlanCommands, C19_plan_says_which_work_may_wait_and_whose_has_no_other_place) {
  ASSERT_EQ(ScaleTo(2), 0) << err_.str();
  simulator::JobSpec job;
  job.id = "api";
  job.count = 2;
  job.cpu = 3000;
  cluster_.RunJob(job);
  clock_.Advance(std::chrono::seconds(5));
  const json plan = PlanOf(1);
  ASSERT_EQ(plan["would_wait"].size(), 1U) << plan.dump(1);
  EXPECT_EQ(plan["would_wait"][0]["vm"], plan["remove"][0]["vm"]);
  EXPECT_EQ(plan["would_wait"][0]["why"], "default/api.group: 1 allocation (3000 MHz, 128 MiB)");
  EXPECT_EQ(Plan(1), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\nMAY WAIT\nVM"));
  Configure({"scale_in_fit=require"});
  const json refused = PlanOf(1);
  EXPECT_THAT(refused["would_wait"], IsEmpty());
  EXPECT_THAT(refused["refusal"].get<std::string>(),
              AllOf(HasSubstr("no VM of the pool may be removed; web-"),
                    HasSubstr(": its work has no other place: default/api.group")));
}

TEST_F(PlanCommands, plan_says_what_limits_it) {
  Configure({"max_scale_out=2", "max_scale_in=1"});
  EXPECT_EQ(PlanOf(5)["to"], 2);
  EXPECT_EQ(PlanOf(5)["limited"], "max_scale_out");
  ASSERT_EQ(ScaleTo(2), 0);
  EXPECT_EQ(Plan(0), 0);
  EXPECT_THAT(out_.str(), HasSubstr("limited: a count of 0 was asked for; max_scale_in is 1\n"));
}

TEST_F(PlanCommands, C12_plan_says_that_failures_limit_it_and_not_the_policy) {
  Configure({"max_scale_out=3", "max_scale_in=2"});
  ASSERT_EQ(ScaleTo(3), 0);
  cluster_.FailStart(3, "ErrorUnschedulable", "no host has room");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ScaleTo(4), 1);
    clock_.Advance(std::chrono::hours(2));
  }
  EXPECT_EQ(PlanOf(5)["to"], 4);
  EXPECT_EQ(Plan(5), 0);
  EXPECT_THAT(out_.str(), HasSubstr("limited: a count of 5 was asked for; new VMs have failed "
                                    "several times in a row: only one is created\n"));
  cluster_.Refuse({.verb = "delete", .resource = "virtualmachines"});
  EXPECT_EQ(ScaleTo(1), 1);
  clock_.Advance(std::chrono::hours(2));
  EXPECT_EQ(Plan(0), 0);
  EXPECT_THAT(out_.str(),
              HasSubstr("limited: a count of 0 was asked for; every removal of the last "
                        "action was refused: one VM alone is removed\n"));
}

TEST_F(PlanCommands, plan_says_that_a_quota_limits_it) {
  const json pods = {{"pods", "5"}};
  cluster_.PutObject({{"apiVersion", "v1"},
                      {"kind", "ResourceQuota"},
                      {"metadata", {{"name", "team"}, {"namespace", "nomad"}}},
                      {"spec", {{"hard", pods}}},
                      {"status", {{"hard", pods}, {"used", {{"pods", "4"}}}}}});
  EXPECT_EQ(Plan(3), 0);
  EXPECT_THAT(out_.str(), HasSubstr("limited: a count of 3 was asked for; 1 of 3 VMs fit the quota "
                                    "of namespace nomad: "));
}

TEST_F(PlanCommands, C2_plan_says_how_many_vms_fit_on_the_hosts) {
  cluster_.PutObject(support::HostWith("harvester-1", "2Gi"));
  EXPECT_EQ(Plan(3), 0);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("limited: a count of 3 was asked for; 1 of 3 VMs fit now: "
                              "host harvester-1 has "),
                    HasSubstr("nothing would refuse it")));
  cluster_.PutObject(support::HostWith("harvester-1", "1Gi"));
  EXPECT_THAT(VerdictOf(3), AllOf(HasSubstr(kRefused), HasSubstr("0 of 3 VMs fit now: ")));
  EXPECT_EQ(cluster_.EffectCount(), 0);
}

TEST_F(PlanCommands, plan_of_a_growth_takes_vms_back_that_drain) {
  ASSERT_EQ(ScaleTo(2), 0);
  for (const json& node : cluster_.Nodes()) cluster_.HangDrain(node["ID"]);
  ASSERT_EQ(BeginScaleTo(1), 0) << err_.str();
  const json plan = PlanOf(3);
  ASSERT_EQ(plan["unmark"].size(), 1U) << plan.dump(1);
  EXPECT_EQ(plan["create"].size(), 1U);
  EXPECT_EQ(plan["being_removed"], json::array()) << "its removal is cancelled";
  EXPECT_EQ(Plan(2), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\nUNMARK\nVM"));
}

TEST_F(PlanCommands, plan_says_what_is_rolled_back_first) {
  ASSERT_EQ(ScaleTo(2), 0);
  for (const json& node : cluster_.Nodes()) cluster_.HangDrain(node["ID"]);
  ASSERT_EQ(BeginScaleTo(1), 0);
  std::string marked;
  for (const json& node : cluster_.Nodes()) {
    if (!node["DrainStrategy"].is_null()) marked = node["Name"];
  }
  ASSERT_FALSE(marked.empty());
  ASSERT_TRUE(cluster_.EditAnnotation(marked, kProtect, "true"));
  const json plan = PlanOf(1);
  EXPECT_EQ(plan["from"], 2) << "it stands then";
  ASSERT_EQ(plan["roll_backs"].size(), 1U) << plan.dump(1);
  EXPECT_EQ(plan["roll_backs"][0]["vm"], marked);
  ASSERT_EQ(plan["remove"].size(), 1U);
  EXPECT_NE(plan["remove"][0]["vm"], marked);
  ASSERT_EQ(plan["passed_over"].size(), 1U);
  EXPECT_EQ(plan["passed_over"][0]["why"], "protected by its annotation");
}

// Whatever was left behind, on whatever VM: drained or taken back by an operator, ineligible
// before, without its mark, protected, marked to go first.
TEST_F(PlanCommands, C14_the_victims_of_a_plan_are_those_of_the_scale_also_after_roll_backs) {
  std::mt19937 random(7);
  const auto one_of = [&random](int count) {
    return std::uniform_int_distribution<int>(0, count - 1)(random);
  };
  int removals = 0;
  for (int round = 0; round < 40; ++round) {
    (void)ScaleTo(6);  // it tells of the removals that were rolled back
    ASSERT_EQ(PlanOf(6)["from"], 6) << err_.str();
    for (const json& node : cluster_.Nodes()) {
      cluster_.HangDrain(node["ID"]);
      if (one_of(3) == 0) cluster_.SetEligible(node["ID"], false);
    }
    (void)BeginScaleTo(1 + one_of(4));
    for (const json& node : cluster_.Nodes()) {
      const std::string vm = node["Name"];
      if (one_of(3) == 0) cluster_.CancelDrain(node["ID"], one_of(2) == 0);
      if (one_of(6) == 0) cluster_.EditAnnotation(vm, kScaleInMark, std::nullopt);
      if (one_of(6) == 0) cluster_.EditAnnotation(vm, kScaleInMark, "unreadable");
      if (one_of(6) == 0) cluster_.EditAnnotation(vm, kDeleteFirst, "true");
      cluster_.EditAnnotation(vm, kProtect, one_of(6) == 0 ? "true" : "false");
    }
    Configure({"node_filter_ignore_ineligible=false"});
    const std::int64_t count = 1 + one_of(4);
    const json plan = PlanOf(count);
    std::set<std::string> planned;
    for (const json& removal : plan["remove"]) planned.insert(removal["vm"].get<std::string>());
    const auto before = Marks();
    (void)BeginScaleTo(count);
    std::set<std::string> marked;
    for (const auto& [vm, mark] : Marks()) {
      const auto known = before.find(vm);
      if (known == before.end() || known->second != mark) marked.insert(vm);
    }
    // The roll-backs of a whole action are a failure, after which removals wait (C12).
    const bool waits = err_.str().find("; next try at ") != std::string::npos;
    if (!waits) {
      EXPECT_EQ(planned, marked) << plan.dump(1) << out_.str() << err_.str();
    }
    removals += static_cast<int>(marked.size());
    for (const json& node : cluster_.Nodes()) {
      cluster_.HangDrain(node["ID"], false);
      cluster_.SetEligible(node["ID"], true);
      cluster_.EditAnnotation(node["Name"], kProtect, "false");
    }
    clock_.Advance(std::chrono::hours(2));
  }
  EXPECT_GT(removals, 10);
}

TEST_F(PlanCommands, S1_a_broken_vm_that_goes_in_any_case_is_in_the_plan_and_in_the_question) {
  ASSERT_EQ(ScaleTo(2), 0);
  cluster_.NeverJoin(1);
  KillAt("create", "virtualmachines");
  EXPECT_NE(ScaleTo(3), 0);
  cluster_.SetFaultHook(nullptr);
  std::string broken;
  for (const json& vm : cluster_.Vms()) {
    if (!vm["metadata"]["annotations"].contains("nomad-harvester-autoscaler/joined-at")) {
      broken = vm["metadata"]["name"];
    }
  }
  clock_.Advance(std::chrono::hours(2));
  const json plan = PlanOf(1);
  ASSERT_EQ(plan["replaced"].size(), 1U) << plan.dump(1);
  EXPECT_EQ(plan["replaced"][0]["vm"], broken);
  EXPECT_EQ(Scale({.count = 1}, "n"), 1);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\nREMOVE IN ANY CASE\n"), HasSubstr(broken),
                                HasSubstr("Remove 2 VMs? [y/N] ")));
  EXPECT_EQ(Scale({.count = 2}, "n"), 1);
  EXPECT_THAT(out_.str(), HasSubstr("Remove 1 VM? [y/N] ")) << "also if nothing else is to be done";
}

TEST_F(PlanCommands, plan_names_a_vm_that_an_interrupted_action_left_to_be_made) {
  ASSERT_EQ(ScaleTo(1), 0);
  KillAt("create", "secrets", false);
  EXPECT_NE(ScaleTo(2), 0);
  cluster_.SetFaultHook(nullptr);
  clock_.Advance(std::chrono::seconds(30));
  const json plan = PlanOf(2);
  ASSERT_EQ(plan["create"].size(), 1U) << plan.dump(1);
  const std::string name = plan["create"][0]["name"];
  EXPECT_THAT(name, testing::StartsWith("web-"));
  EXPECT_EQ(ScaleTo(2), 0) << err_.str();
  EXPECT_TRUE(VmNames().contains(name));
}

TEST_F(PlanCommands, plan_writes_nothing_and_makes_no_token) {
  ASSERT_EQ(ScaleTo(2), 0);
  Configure(
      {"user_data=#cloud-config\nwrite_files:\n- path: /t\n  content: "
       "\"{{nomad_intro_token}}\"\n",
       "nomad_intro_token=required"});
  const std::vector<std::string> journal = cluster_.Journal();
  const std::vector<json> leases = cluster_.Leases();
  cluster_.ResetCounters();
  EXPECT_EQ(Plan(4), 0) << err_.str();
  EXPECT_EQ(Plan(0), 0) << err_.str();
  EXPECT_EQ(cluster_.EffectCount(), 0);
  for (const auto& [request, count] : cluster_.RequestCounts()) {
    EXPECT_THAT(request, ContainsRegex(" (get|list|try|ask) ")) << count << " requests";
  }
  EXPECT_EQ(cluster_.Leases(), leases);
  EXPECT_EQ(cluster_.Journal(), journal);
}

TEST_F(PlanCommands, a_count_outside_of_the_policys_min_and_max_is_refused) {
  settings_.files.limits = {.policy = "policy \"web\" (web.hcl:1:1)", .min = 1, .max = 3};
  EXPECT_EQ(Plan(3), 0) << err_.str();
  EXPECT_EQ(Plan(4), 2);
  EXPECT_EQ(
      err_.str(),
      "nomad-harvester plan: --count: 4 is more than max of policy \"web\" (web.hcl:1:1), 3, to "
      "which the agent would scale back; give a count from 1 to 3, or change the policy\n");
  EXPECT_THAT(out_.str(), IsEmpty());
  EXPECT_EQ(Scale({.count = 0, .yes = true}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--count: 0 is less than min of policy"));
}

TEST_F(PlanCommands, a_policy_by_which_the_agent_does_not_scale_is_refused) {
  settings_.files.refusals = {"web.hcl:3:3: the type of a cluster's policy is \"cluster\""};
  EXPECT_EQ(Plan(1), 2);
  EXPECT_EQ(err_.str(),
            "nomad-harvester plan: the agent does not scale by this policy:\n"
            "nomad-harvester plan: web.hcl:3:3: the type of a cluster's policy is \"cluster\"\n");
  EXPECT_EQ(Scale({.count = 1}), 2);
}

TEST_F(PlanCommands, a_pause_would_refuse_it) {
  ASSERT_EQ(ScaleTo(1), 0);
  ASSERT_TRUE(
      maintenance_
          ->Pause(work_.context(), {.ns = "nomad", .pool = "web"}, base::Hold{.always = true})
          .ok());
  EXPECT_THAT(VerdictOf(2), AllOf(HasSubstr(kRefused), HasSubstr("nomad-harvester resume")));
  EXPECT_EQ(ScaleTo(2), 1);
  EXPECT_EQ(VmNames().size(), 1U);
}

TEST_F(PlanCommands, plan_answers_by_its_exit_code_if_asked_to) {
  const auto plan = [&](std::int64_t count) {
    return Call("plan", [&](const CommandRun& run) {
      return ShowPlan(run, {.count = count, .exit_code = true});
    });
  };
  EXPECT_EQ(plan(0), 0) << "nothing would change";
  EXPECT_EQ(plan(2), 2) << "two VMs would be made";
  ASSERT_EQ(ScaleTo(2), 0);
  EXPECT_EQ(plan(2), 0);
  EXPECT_EQ(plan(1), 2);
  ASSERT_TRUE(
      maintenance_->Pause(work_.context(), {.ns = "nomad", .pool = "web"}, {.always = true}).ok());
  EXPECT_EQ(plan(1), 1) << "it would be refused";
  EXPECT_EQ(Plan(1), 0) << "it was not asked to answer so";
}

TEST_F(PlanCommands, a_process_that_acts_on_the_pool_would_refuse_it) {
  ASSERT_EQ(ScaleTo(1), 0);
  HoldLease();
  EXPECT_THAT(VerdictOf(2),
              HasSubstr("would be refused: another process acts on pool nomad/web: agents-plugin"));
  EXPECT_EQ(ScaleTo(2), 1);
  EXPECT_THAT(err_.str(),
              HasSubstr("nothing was done: repeat it in ten seconds; if that process is dead"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("would be refused"))) << "the error says it";
  EXPECT_EQ(VmNames().size(), 1U);
}

TEST_F(PlanCommands, a_back_off_would_refuse_it) {
  ASSERT_EQ(ScaleTo(1), 0);
  cluster_.FailStart(1, "ErrorUnschedulable", "no host has room");
  EXPECT_EQ(ScaleTo(2), 1);
  EXPECT_THAT(err_.str(), HasSubstr("no host has room")) << "one line per VM";
  EXPECT_THAT(VerdictOf(2), AllOf(HasSubstr(kRefused), HasSubstr("; next try at ")));
}

TEST_F(PlanCommands, check_warns_of_a_count_above_the_policys_max) {
  ASSERT_EQ(ScaleTo(3), 0);
  settings_.files.limits = {.policy = "policy \"web\" (web.hcl:1:1)", .min = 1, .max = 3};
  EXPECT_THAT(States(), IsEmpty());
  settings_.files.limits->max = 1;
  EXPECT_THAT(States(), ElementsAre("its count is 3, and max of policy \"web\" (web.hcl:1:1) is 1: "
                                    "as soon as a check asks for another count, the agent removes "
                                    "2"));
}

TEST_F(PlanCommands, plan_and_check_say_that_a_pool_is_not_ready_and_why) {
  ASSERT_EQ(ScaleTo(1), 0);
  EXPECT_THAT(States(), IsEmpty());
  EXPECT_THAT(PlanOf(2)["notes"], IsEmpty());
  const std::string node = cluster_.Nodes().at(0)["ID"];
  cluster_.HangDrain(node);
  cluster_.OperatorDrain(node);
  const std::string why =
      "not ready, so that the agent does not scale it: node " + node + " is draining";
  EXPECT_THAT(PlanOf(2)["notes"], ElementsAre("the pool is " + why));
  EXPECT_THAT(States(), ElementsAre("it is " + why));
}

TEST_F(PlanCommands, C12_check_says_what_refuses_a_scale) {
  ASSERT_EQ(ScaleTo(1), 0);
  cluster_.FailStart(1, "ErrorUnschedulable", "no host has room");
  EXPECT_EQ(ScaleTo(2), 1);
  EXPECT_THAT(States(), testing::Contains(ContainsRegex(" failed 1 time; next try at 20")));
  json lease = cluster_.Leases().at(0);
  lease["metadata"]["annotations"]["nomad-harvester-autoscaler/back-off"] =
      R"({"create": {"failures": 1, "retry_at": "2199-01-01T00:00:00Z"}})";
  ASSERT_TRUE(cluster_.PutObject(lease));
  EXPECT_THAT(States(), IsEmpty()) << "a wrong clock wrote it";
  clock_.Advance(std::chrono::hours(1));
  EXPECT_THAT(States(), IsEmpty());
  HoldLease();
  EXPECT_THAT(States(), ElementsAre(HasSubstr("agents-plugin holds its Lease, and is alive")));
}

TEST_F(PlanCommands, C17_a_broken_vm_that_is_kept_is_told_by_check_status_and_scale) {
  Configure({"on_join_timeout=keep"});
  cluster_.NeverJoin(1);
  EXPECT_EQ(ScaleTo(1), 1);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("the count is 0 and not 1: "),
                                HasSubstr("; not counted: " + FirstVm() + " is broken: ")));
  const std::string why = "the pool does not grow while VM " + FirstVm() + " is broken and stays";
  EXPECT_THAT(States(), testing::Contains(HasSubstr("a growth would be refused: " + why)));
  Call("status", [](const CommandRun& run) { return ShowStatus(run, {.output = "json"}); });
  EXPECT_THAT(json::parse(out_.str())["growth_problem"].get<std::string>(), HasSubstr(why));
}

TEST_F(PlanCommands, a_growth_that_scale_is_refused_is_on_the_lease) {
  cluster_.SetQuotaExceeded("the quota of the namespace has no room");
  EXPECT_EQ(Scale({.count = 2}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("no room"));
  EXPECT_THAT(out_.str(), HasSubstr("now: pool nomad/web has 0 VMs and is ready\n"));
  EXPECT_THAT(cluster_.Leases()
                  .at(0)["metadata"]["annotations"]["nomad-harvester-autoscaler/last-error"]
                  .get<std::string>(),
              HasSubstr("no room"));
}

TEST_F(PlanCommands, missing_sources_would_refuse_it) {
  Configure({"image=default/none"});
  EXPECT_THAT(VerdictOf(2),
              AllOf(HasSubstr("would be refused: image: \"none\" not found in namespace default"),
                    HasSubstr("; upload it, wait for its import, or correct the key image")));
}

TEST_F(PlanCommands, a_blind_token_would_refuse_a_scale_in_by_load) {
  ASSERT_EQ(ScaleTo(2), 0);
  cluster_.DenyReadJob(true);
  EXPECT_THAT(VerdictOf(1), AllOf(HasSubstr(kRefused), HasSubstr("read-job")));
}

TEST_F(PlanCommands, the_autoscalers_own_node_is_passed_over_and_must_be_known) {
  ASSERT_EQ(ScaleTo(2), 0);
  Configure({}, {{"NOMAD_ALLOC_ID", "00000000-0000-0000-0000-000000000000"}});
  cluster_.DenyReadJob(true);
  EXPECT_THAT(VerdictOf(0), HasSubstr(kRefused));
  cluster_.DenyReadJob(false);
  cluster_.RunJob({.id = "autoscaler", .count = 1, .cpu = 100});
  clock_.Advance(std::chrono::minutes(1));
  const json allocation = cluster_.Allocations().at(0);
  Configure({}, {{"NOMAD_ALLOC_ID", allocation["ID"]}});
  const json plan = PlanOf(0);
  ASSERT_EQ(plan["passed_over"].size(), 1U) << plan.dump(1);
  EXPECT_EQ(plan["passed_over"][0]["why"], "the autoscaler itself runs on its node");
  EXPECT_EQ(plan["missing_victims"], 1);
}

TEST_F(PlanCommands, a_pool_without_a_victim_has_no_plan_but_a_reason) {
  ASSERT_EQ(ScaleTo(1), 0);
  ASSERT_TRUE(cluster_.EditAnnotation(FirstVm(), kProtect, "true"));
  EXPECT_THAT(VerdictOf(0), HasSubstr("would be refused: no VM of the pool may be removed; "));
  EXPECT_THAT(out_.str(), HasSubstr("nomad/web: 1 → 0, scale in"));
}

TEST_F(PlanCommands, plan_is_1_if_either_system_cannot_be_read) {
  ASSERT_EQ(ScaleTo(1), 0);
  cluster_.SetNomadReachable(false);
  EXPECT_EQ(Plan(2), 1);
  EXPECT_THAT(out_.str(), IsEmpty());
  EXPECT_THAT(err_.str(), HasSubstr("nomad-harvester plan: Nomad cannot be read"));
  cluster_.SetHarvesterReachable(false);
  EXPECT_EQ(Plan(2), 1);
  EXPECT_THAT(err_.str(), HasSubstr("Harvester cannot be read"));
}

TEST_F(PlanCommands, plan_names_the_system_that_hangs) {
  Hang(simulator::System::kHarvester, "leases");
  EXPECT_EQ(Plan(1), 1);
  EXPECT_THAT(err_.str(),
              AllOf(testing::StartsWith("nomad-harvester plan: Harvester cannot be read: "),
                    HasSubstr("attempts)")));
}

TEST_F(PlanCommands, scale_out_asks_nothing_and_prints_what_changes) {
  EXPECT_EQ(Scale({.count = 1}), 0) << err_.str();
  const std::string vm = FirstVm();
  EXPECT_THAT(
      out_.str(),
      AllOf(HasSubstr("s     accepted: Ctrl-C ends the waiting"), HasSubstr(vm + ": ready\n"),
            ContainsRegex("\ndone in [0-9]+s\nnow: pool nomad/web has 1 VM and is ready\n$"),
            Not(HasSubstr("record-join")), Not(HasSubstr("its node has registered")),
            Not(HasSubstr("action_id"))));
  EXPECT_THAT(err_.str(), IsEmpty());
}

TEST_F(PlanCommands, L11_scale_warns_of_the_agents_policy_that_scaled_the_pool_last) {
  constexpr char kWarning[] =
      "warning: an agent scaled this pool at 2026-01-01T00:00:00Z, by policy "
      "p-1, and may scale it back: to stop that, set enabled = false in the "
      "policy and restart the agent\n";
  ASSERT_EQ(ScaleTo(1), 0);
  EXPECT_THAT(out_.str(), Not(HasSubstr("an agent"))) << "it was a command";
  json lease = cluster_.Leases().at(0);
  lease["metadata"]["annotations"]["nomad-harvester-autoscaler/policy"] =
      R"({"id":"p-1","at":"2026-01-01T00:00:00Z"})";
  ASSERT_TRUE(cluster_.PutObject(lease));
  EXPECT_EQ(ScaleTo(1), 0);
  EXPECT_THAT(out_.str(), Not(HasSubstr("an agent"))) << "nothing is changed";
  EXPECT_EQ(Scale({.count = 0}, "n"), 1);
  EXPECT_THAT(out_.str(), HasSubstr(std::string(kWarning) + "\nRemove 1 VM? [y/N] "));
  settings_.files.pools = {{.key = {.ns = "nomad", .pool = "web"}, .label = "batch-workers"}};
  EXPECT_EQ(Scale({.count = 0}, "n"), 1);
  EXPECT_THAT(out_.str(), HasSubstr("by policy batch-workers, and may scale it back"));
}

TEST_F(PlanCommands, scale_in_asks_first) {
  ASSERT_EQ(ScaleTo(2), 0);
  EXPECT_EQ(Scale({.count = 0}, "n"), 1);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\nREMOVE\n"), HasSubstr("Remove 2 VMs? [y/N] ")));
  EXPECT_EQ(Scale({.count = 1}, ""), 1) << "the end of the input is no yes";
  EXPECT_EQ(VmNames().size(), 2U);
  EXPECT_EQ(Scale({.count = 1}, "Y"), 0);
  EXPECT_EQ(ScaleTo(2), 0);
  EXPECT_EQ(Scale({.count = 1}, "yes"), 0);
  EXPECT_EQ(ScaleTo(2), 0);
  EXPECT_EQ(Scale({.count = 1}, "y"), 0);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("Remove 1 VM? [y/N] "), HasSubstr(": gone\n")));
  EXPECT_EQ(VmNames().size(), 1U);
}

TEST_F(PlanCommands, C7_scale_to_fewer_vms_than_are_protected_says_that_no_other_may_be_removed) {
  ASSERT_EQ(ScaleTo(2), 0);
  ASSERT_TRUE(cluster_.EditAnnotation(FirstVm(), kProtect, "true"));
  EXPECT_EQ(Scale({.count = 0}, "y"), 1);
  EXPECT_THAT(out_.str(), HasSubstr("only 1 of 2 VMs may be removed"));
  EXPECT_THAT(err_.str(), HasSubstr("the count is 1 and not 0: no other VM may be removed"));
  EXPECT_EQ(VmNames().size(), 1U);
}

TEST_F(PlanCommands, scale_removes_nothing_but_what_was_agreed_to) {
  ASSERT_EQ(ScaleTo(3), 0);
  const std::string planned = PlanOf(2)["remove"][0]["vm"];
  meanwhile_ = [&] {
    for (const std::string& vm : VmNames()) {
      if (vm != planned) return cluster_.EditAnnotation(vm, kDeleteFirst, "true");
    }
    return false;
  };
  EXPECT_EQ(Scale({.count = 2}, "y"), 1);
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr("the pool has changed since its plan was agreed to: VM "),
                    HasSubstr("(marked to be deleted first)"), HasSubstr("nothing was done")));
  EXPECT_EQ(VmNames().size(), 3U);
  meanwhile_ = [&] { return ScaleTo(5) == 0; };
  EXPECT_EQ(Scale({.count = 4}), 1) << "it was a growth: nobody was asked";
  EXPECT_THAT(err_.str(), HasSubstr("the pool has changed since its plan was agreed to: VM "));
  EXPECT_EQ(VmNames().size(), 5U);
}

TEST_F(PlanCommands, L5_scale_removes_another_vm_only_if_that_was_agreed_to_as_well) {
  ASSERT_EQ(ScaleTo(3), 0);
  const json plan = PlanOf(2);
  ASSERT_EQ(plan["reserve"].size(), 2U) << plan.dump(1);
  const std::string victim = plan["remove"][0]["vm"];
  const std::string next = plan["reserve"][0]["vm"];
  const std::string last = plan["reserve"][1]["vm"];
  // The victim is, just before its mark.
  const auto protect_late = [&] {
    cluster_.SetFaultHook([&](const simulator::RequestInfo& request) {
      if (request.verb == "patch" && request.resource == "virtualmachines" &&
          request.name == victim) {
        cluster_.EditAnnotation(victim, kProtect, "true");
      }
      return simulator::Fault::None();
    });
    return true;
  };
  cluster_.EditAnnotation(last, kProtect, "true");
  meanwhile_ = [&] {
    return cluster_.EditAnnotation(last, kProtect, std::nullopt) &&
           cluster_.EditAnnotation(next, kProtect, "true") && protect_late();
  };
  EXPECT_EQ(Scale({.count = 2}, "y"), 1) << "the last one was not in the plan";
  EXPECT_THAT(err_.str(), HasSubstr(victim + ": failed: protected by its annotation"));
  EXPECT_EQ(VmNames().size(), 3U);
  cluster_.SetFaultHook(nullptr);
  clock_.Advance(std::chrono::hours(2));
  cluster_.EditAnnotation(victim, kProtect, std::nullopt);
  cluster_.EditAnnotation(next, kProtect, std::nullopt);
  meanwhile_ = protect_late;
  EXPECT_EQ(Scale({.count = 2}, "y"), 0) << err_.str();
  EXPECT_THAT(VmNames(), ElementsAre(std::min(victim, last), std::max(victim, last)));
}

TEST_F(PlanCommands, L1_a_scale_in_reads_nothing_of_what_new_vms_are_made_of) {
  ASSERT_EQ(ScaleTo(2), 0);
  const auto reads = [this] {
    return cluster_.RequestCount(simulator::System::kHarvester, "get", "virtualmachineimages") +
           cluster_.RequestCount(simulator::System::kHarvester, "try", "virtualmachines");
  };
  const auto before = reads();
  ASSERT_EQ(ScaleTo(1), 0);
  EXPECT_EQ(reads(), before);
}

TEST_F(PlanCommands, C13_scale_says_that_a_policy_with_dry_run_does_nothing_and_does_not_ask) {
  ASSERT_EQ(ScaleTo(2), 0);
  Configure({"dry-run=true"});
  EXPECT_EQ(Scale({.count = 1}, "y"), 1);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("\nREMOVE\n"), Not(HasSubstr("[y/N]")), Not(HasSubstr("done"))));
  EXPECT_THAT(err_.str(), HasSubstr("nothing was done: the policy sets dry-run"));
}

TEST_F(PlanCommands, scale_with_no_wait_returns_once_it_is_accepted) {
  ASSERT_EQ(ScaleTo(1), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\ndone in "));
  cluster_.HangDrain(cluster_.Nodes().at(0)["ID"]);
  EXPECT_EQ(BeginScaleTo(0), 0);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\naccepted; the agent or nomad-harvester gc goes on"),
                                HasSubstr("not counted: " + FirstVm() + " is draining\n"),
                                Not(HasSubstr("done"))));
}

TEST_F(PlanCommands, R2_scale_watches_the_background_remove_the_vms_and_replaces_none) {
  Configure({"expire_after=1h"});
  ASSERT_EQ(ScaleTo(2), 0);
  clock_.Advance(std::chrono::hours(2));
  const std::string kept = PlanOf(1)["reserve"][0]["vm"];
  EXPECT_EQ(ScaleTo(1), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr(": gone\ndone in "));
  EXPECT_THAT(err_.str(), IsEmpty());
  EXPECT_THAT(VmNames(), ElementsAre(kept));
  EXPECT_EQ(cluster_.Leases().at(0)["spec"].value("holderIdentity", ""), "");
}

TEST_F(PlanCommands, scale_that_is_interrupted_in_the_watch_says_who_goes_on) {
  HangInTheWatch();
  StopAfter(std::chrono::seconds(40));
  EXPECT_EQ(ScaleTo(0), 1);
  EXPECT_EQ(cluster_.Leases().at(0)["spec"].value("holderIdentity", ""), "");
  EXPECT_THAT(out_.str(), HasSubstr("s     accepted: "));
  EXPECT_THAT(err_.str(),
              HasSubstr("interrupted; the agent or nomad-harvester gc finishes or undoes"));
  EXPECT_THAT(out_.str(), HasSubstr("not counted: " + FirstVm() + " is draining\n"));
}

TEST_F(PlanCommands, scale_that_nobody_reads_ends_its_watch) {
  HangInTheWatch();
  has_reader_ = [] { return false; };
  const base::MonoTime begin = clock_.Now();
  EXPECT_EQ(Scale({.count = 0, .output = "json", .yes = true}), 1);
  EXPECT_LT(clock_.Now() - begin, std::chrono::minutes(1));
  EXPECT_EQ(json::parse(out_.str())["outcome"], "failed");
  EXPECT_THAT(err_.str(), HasSubstr("nobody reads the output any more; the agent or "
                                    "nomad-harvester gc goes on"));
}

TEST_F(PlanCommands, scale_fails_if_its_failure_is_recorded_on_the_lease) {
  HangInTheWatch();
  clock_.After(std::chrono::seconds(40), [&] { EndAction(clock_.WallNow()); });
  EXPECT_EQ(ScaleTo(0), 1);
  EXPECT_EQ(err_.str(), "nomad-harvester scale: " + FirstVm() + ": failed: it was kept\n");
  EXPECT_THAT(out_.str(), AllOf(HasSubstr(FirstVm() + ": ready\n"), Not(HasSubstr("done in"))));
}

TEST_F(PlanCommands, scale_does_not_fail_for_a_failure_from_before_it) {
  HangInTheWatch();
  const base::WallTime before = clock_.WallNow() - std::chrono::seconds(2);
  clock_.After(std::chrono::seconds(40), [&] { EndAction(before); });
  EXPECT_EQ(ScaleTo(0), 1);
  EXPECT_THAT(err_.str(), HasSubstr("the count is 1 and not 0: another process")) << "nor done";
}

TEST_F(PlanCommands, scale_goes_on_watching_when_a_system_can_be_read_again) {
  HangInTheWatch();
  clock_.After(std::chrono::seconds(40), [&] { cluster_.SetNomadReachable(false); });
  clock_.After(std::chrono::minutes(3), [&] {
    cluster_.SetNomadReachable(true);
    EndAction(clock_.WallNow() - std::chrono::hours(1));
  });
  EXPECT_EQ(ScaleTo(0), 1) << "an agent has taken the removal back";
  EXPECT_THAT(out_.str(), HasSubstr("Nomad cannot be read: "));
}

TEST_F(PlanCommands, scale_that_takes_too_long_says_what_is_open) {
  HangInTheWatch();
  const base::MonoTime begin = clock_.Now();
  EXPECT_EQ(ScaleTo(0), 1);
  const base::Duration taken = clock_.Now() - begin;
  EXPECT_GE(taken, std::chrono::minutes(45)) << "15m, 5m and 15m of the policy, and ten minutes";
  EXPECT_LT(taken, std::chrono::minutes(46));
  EXPECT_THAT(err_.str(), HasSubstr("it was accepted, and has not ended in time; still open: " +
                                    FirstVm() + " (draining: "));
  const std::string out = out_.str();
  const std::string line = FirstVm() + ": draining: node ";
  EXPECT_THAT(out, HasSubstr(line));
  EXPECT_EQ(out.find(line), out.rfind(line)) << out;
  EXPECT_THAT(out, ContainsRegex("\n1m[0-9]+s +waits for " + FirstVm() + " \\(draining: "));
  EXPECT_THAT(out, ContainsRegex("\n3[0-9]m[0-9]+s +waits for "));
}

TEST_F(PlanCommands, scale_tells_the_time_since_it_began) {
  EXPECT_EQ(ScaleTo(3), 0) << err_.str();
  EXPECT_THAT(out_.str(), ContainsRegex("(\n[0-9]+s +web-[a-z0-9]+: ready){3}\n"));
}

TEST_F(PlanCommands, scale_that_fails_or_is_interrupted_says_at_last_what_is_so_now) {
  ASSERT_EQ(ScaleTo(1), 0);
  cluster_.FailStart(1, "ErrorUnschedulable", "no host has room");
  EXPECT_EQ(ScaleTo(2), 1);
  EXPECT_THAT(out_.str(), ContainsRegex("\nnow: pool nomad/web has 1 VM and is ready\n$"));
  clock_.Advance(std::chrono::hours(2));
  cluster_.HangDrain(cluster_.Nodes().at(0)["ID"]);
  StopAfter(std::chrono::seconds(40));
  EXPECT_EQ(ScaleTo(0), 1);
  EXPECT_THAT(out_.str(), ContainsRegex("\nnow: pool nomad/web has 0 VMs and is (not )?ready"));
}

TEST_F(PlanCommands, scale_waits_for_the_vms_of_a_growth_of_which_a_part_fits_and_fails) {
  cluster_.PutObject(support::HostWith("harvester-1", "2Gi"));
  EXPECT_EQ(ScaleTo(3), 1);
  EXPECT_THAT(err_.str(), HasSubstr("1 of 3 VMs fit now: host harvester-1 has "));
  EXPECT_THAT(out_.str(), ContainsRegex("\n[0-9]+s +accepted in part: Ctrl-C ends the waiting"));
  EXPECT_THAT(out_.str(), ContainsRegex("\n[0-9]+s +" + FirstVm() + ": ready\n"));
  EXPECT_THAT(out_.str(), HasSubstr("\nnow: pool nomad/web has 1 VM and is ready\n"));
  EXPECT_EQ(BeginScaleTo(3), 1) << "nothing fits, and there is nothing to wait for";
  EXPECT_THAT(out_.str(), Not(HasSubstr("accepted")));
}

TEST_F(PlanCommands, scale_fails_for_the_part_that_does_not_fit_although_the_lease_forgets_it) {
  cluster_.PutObject(support::HostWith("harvester-1", "2Gi"));
  clock_.After(std::chrono::seconds(1), [&] {
    json lease = cluster_.Leases().at(0);
    lease["metadata"]["annotations"].erase(harvester::kLeaseLastErrorAnnotation);
    EXPECT_TRUE(cluster_.PutObject(lease));
  });
  EXPECT_EQ(ScaleTo(3), 1);
  EXPECT_THAT(err_.str(), HasSubstr("1 of 3 VMs fit now: host harvester-1 has "));
}

TEST_F(PlanCommands, scale_with_no_wait_does_not_wait_for_the_part_of_a_growth_that_fits) {
  cluster_.PutObject(support::HostWith("harvester-1", "2Gi"));
  EXPECT_EQ(BeginScaleTo(3), 1);
  EXPECT_THAT(err_.str(), HasSubstr("1 of 3 VMs fit now"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("accepted")));
}

TEST_F(PlanCommands, scale_says_that_it_does_not_know_what_is_so_now) {
  cluster_.SetFaultHook([this](const simulator::RequestInfo& request) {
    if (request.verb == "create" && request.resource == "secrets") {
      cluster_.SetHarvesterReachable(false);
    }
    return simulator::Fault::None();
  });
  EXPECT_EQ(ScaleTo(1), 1);
  EXPECT_THAT(
      out_.str(),
      ContainsRegex("\nnow: not known: Harvester cannot be read: .*; nomad-harvester status "
                    "shows it once that is gone\n$"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("accepted in part"))) << "it does not wait";
}

TEST_F(PlanCommands, C16_scale_that_a_limit_stopped_is_not_just_done) {
  Configure({"max_scale_out=2"});
  EXPECT_EQ(ScaleTo(3), 0);
  EXPECT_THAT(out_.str(),
              ContainsRegex("\ndone in [0-9a-z]+, as far as one action goes \\(limited: a "
                            "count of 3 was asked for; max_scale_out is 2\\): repeat it\n"
                            "now: pool nomad/web has 2 VMs and is ready\n$"));
  EXPECT_EQ(ScaleTo(3), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\ndone in "));
  Configure({"max_scale_in=1"});
  for (const json& node : cluster_.Nodes()) cluster_.HangDrain(node["ID"]);
  EXPECT_EQ(BeginScaleTo(0), 0);
  EXPECT_THAT(out_.str(),
              ContainsRegex("\naccepted; .*gc goes on, as far as one action goes \\(limited: a "
                            "count of 0 was asked for; max_scale_in is 1\\): repeat it\nnow: "));
}

TEST_F(PlanCommands, scale_does_not_wait_for_the_mark_of_a_copy_that_is_no_member) {
  ASSERT_EQ(ScaleTo(1), 0);
  ASSERT_TRUE(cluster_.CloneVm(FirstVm(), "copy"));
  ASSERT_TRUE(cluster_.EditAnnotation("copy", kScaleInMark, "copied"));
  EXPECT_EQ(ScaleTo(2), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\ndone in "));
}

TEST_F(PlanCommands, C11_scale_says_whose_lease_it_waits_for) {
  ASSERT_EQ(ScaleTo(1), 0);
  HoldLease("killed-process");
  clock_.Advance(std::chrono::seconds(12));
  EXPECT_EQ(ScaleTo(2), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("Waiting for the Lease of a stopped process: "
                                    "killed-process: 20"));
}

TEST_F(PlanCommands, an_interrupt_at_the_question_does_nothing) {
  ASSERT_EQ(ScaleTo(1), 0);
  EXPECT_EQ(Scale({.count = 0}, "^C"), 1);
  EXPECT_THAT(err_.str(), HasSubstr("nomad-harvester scale: nothing was done\n"));
  EXPECT_EQ(VmNames().size(), 1U);
}

TEST_F(PlanCommands, scale_in_without_a_terminal_needs_yes) {
  ASSERT_EQ(ScaleTo(2), 0);
  const int effects = cluster_.EffectCount();
  EXPECT_EQ(Scale({.count = 1}), 2);
  EXPECT_EQ(err_.str(),
            "nomad-harvester scale: it would remove 1 VM, and there is no terminal to ask on: give "
            "--yes\n");
  EXPECT_EQ(cluster_.EffectCount(), effects);
  EXPECT_EQ(ScaleTo(1), 0);
}

TEST_F(PlanCommands, scale_prints_one_object_for_a_program_and_asks_nobody) {
  const auto scale = [this](std::int64_t count, bool yes, bool no_wait = false) {
    const int code =
        Scale({.count = count, .output = "json", .yes = yes, .no_wait = no_wait}, "yes");
    return std::pair(code, json::parse(out_.str(), nullptr, false));
  };
  const auto [grown, growth] = scale(2, /*yes=*/false);
  EXPECT_EQ(grown, 0) << err_.str();
  EXPECT_EQ(growth["outcome"], "done");
  EXPECT_EQ(growth["from"], 0) << "as in plan";
  EXPECT_EQ(growth["now"],
            json({{"count", 2}, {"ready", true}, {"reason", ""}, {"not_counted", json::object()}}));
  EXPECT_TRUE(growth["error"].is_null());
  const auto [unasked, refused] = scale(1, /*yes=*/false);
  EXPECT_EQ(unasked, 2) << "there is a terminal, and nobody is asked";
  EXPECT_THAT(err_.str(), HasSubstr("nobody is asked with --output: give --yes"));
  EXPECT_EQ(refused["outcome"], "not_done");
  EXPECT_EQ(refused["remove"].size(), 1U);
  EXPECT_TRUE(refused["now"].is_null());
  cluster_.HangDrain(cluster_.Nodes().at(0)["ID"]);
  cluster_.HangDrain(cluster_.Nodes().at(1)["ID"]);
  const auto [begun, accepted] = scale(1, /*yes=*/true, /*no_wait=*/true);
  EXPECT_EQ(begun, 0) << err_.str();
  EXPECT_EQ(accepted["outcome"], "accepted");
}

TEST_F(PlanCommands, scale_that_fails_says_why_to_a_program) {
  Configure({"dry-run=true"});
  EXPECT_EQ(Scale({.count = 2, .output = "json"}), 1);
  const json dry = json::parse(out_.str(), nullptr, false);
  EXPECT_EQ(dry["outcome"], "not_done");
  EXPECT_THAT(dry["error"].get<std::string>(), HasSubstr("the policy sets dry-run"));
  Configure({});
  cluster_.FailStart(1, "ErrorUnschedulable", "no host has room");
  EXPECT_EQ(Scale({.count = 1, .output = "json"}), 1);
  const json failed = json::parse(out_.str(), nullptr, false);
  EXPECT_EQ(failed["outcome"], "failed");
  EXPECT_THAT(failed["error"].get<std::string>(), HasSubstr("no host has room"));
  EXPECT_EQ(failed["now"]["count"], 0);
}

TEST_F(PlanCommands, scale_resumes_what_a_command_that_was_killed_has_begun) {
  ASSERT_EQ(ScaleTo(2), 0);
  KillAt("update", "drain");
  EXPECT_NE(ScaleTo(1), 0);
  cluster_.SetFaultHook(nullptr);
  EXPECT_EQ(PlanOf(1)["being_removed"].size(), 1U);
  EXPECT_EQ(ScaleTo(2), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\nUNMARK\n"));
  EXPECT_EQ(VmNames().size(), 2U);
}

TEST_F(PlanCommands, scale_to_the_same_count_watches_the_end_of_what_another_one_has_begun) {
  ASSERT_EQ(ScaleTo(2), 0);
  KillAt("update", "drain");
  EXPECT_NE(ScaleTo(1), 0);
  cluster_.SetFaultHook(nullptr);
  EXPECT_EQ(ScaleTo(1), 0) << err_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("an earlier action is removing, besides: web-"),
                                HasSubstr(": gone\ndone in ")));
  EXPECT_EQ(VmNames().size(), 1U);
}

TEST_F(PlanCommands, scale_does_not_serve_the_metrics_of_the_agents_plugin) {
  settings_.plugin_block["metrics_address"] = "not an address";
  settings_.plugin_block["log_level"] = "error";
  EXPECT_EQ(ScaleTo(1), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr(": ready\n"));
  EXPECT_THAT(levels_, IsEmpty()) << "that of the agent's plugin would hide the progress";
}

// A way to a new image without a replacement; here another size, of which the same is true.
TEST_F(PlanCommands, a_pool_gets_other_vms_by_doubling_it_and_removing_the_oldest) {
  ASSERT_EQ(ScaleTo(3), 0);
  const std::set<std::string> old = VmNames();
  clock_.Advance(std::chrono::hours(1));
  Configure({"disk_size=20Gi"});
  ASSERT_EQ(ScaleTo(6), 0) << err_.str();
  Configure({"disk_size=20Gi", "node_selector_strategy=oldest_create_index"});
  ASSERT_EQ(ScaleTo(3), 0) << err_.str();
  for (const std::string& name : VmNames()) EXPECT_FALSE(old.contains(name)) << name;
  EXPECT_EQ(VmNames().size(), 3U);
}

// docs/lifecycle.md, "The end of a pool".
TEST_F(PlanCommands, a_pool_that_ends_leaves_its_lease_alone) {
  ASSERT_EQ(ScaleTo(2), 0);
  ASSERT_EQ(ScaleTo(0), 0) << err_.str();
  EXPECT_EQ(Call("gc", [](const CommandRun& run) { return CollectGarbage(run, {.yes = true}); }), 0)
      << err_.str();
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
  EXPECT_THAT(cluster_.Claims(), IsEmpty());
  EXPECT_THAT(cluster_.Secrets(), IsEmpty());
  EXPECT_EQ(cluster_.Leases().size(), 1U);
}

// What differs between two VMs of a policy, in the order in which it is replaced.
std::string WithoutSamples(std::string text, const json& vm) {
  const auto replace = [&text](const std::string& what, const std::string& by) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
      text.replace(at, what.size(), by);
    }
  };
  const json& metadata = vm["metadata"];
  const json& annotations = metadata["annotations"];
  replace(vm["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"], "UUID");
  replace(annotations["nomad-harvester-autoscaler/action-id"], "ACTION");
  replace(metadata["name"], "NAME");
  text = std::regex_replace(text, std::regex("(NAME-disk-[0-9]+)-[a-z0-9]+"), "$1-RANDOM");
  return std::regex_replace(text, std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"), "TIME");
}

TEST_F(PlanCommands, render_prints_the_lease_the_secret_and_the_vm) {
  ASSERT_EQ(Render("yaml"), 0) << err_.str();
  const std::string yaml = out_.str();
  const auto rendering = maintenance_->Render(work_.context(), *settings_.policy);
  ASSERT_TRUE(rendering.ok());
  // The name of each rendering is another one: that of this text.
  std::smatch name;
  ASSERT_TRUE(std::regex_search(yaml, name, std::regex("name: (web-[a-z0-9]{8})\n")));
  const std::string shape =
      std::regex_replace(yaml, std::regex(R"(web-[a-z0-9]{8}(-disk-[0-9]+-[a-z0-9]+)?)"), "NAME$1");
  EXPECT_THAT(shape, AllOf(HasSubstr("---\napiVersion: coordination.k8s.io/v1\nkind: Lease\n"),
                           HasSubstr("---\napiVersion: v1\ndata:\n"),
                           HasSubstr("---\napiVersion: kubevirt.io/v1\nkind: VirtualMachine\n"),
                           HasSubstr("  namespace: nomad\n")));
}

TEST_F(PlanCommands, the_rendered_objects_are_those_of_the_golden_file) {
  Configure({"availability_zones=zone-a,zone-b", "labels=team=web,on=true", "data_disks=5Gi"});
  const auto rendering = maintenance_->Render(work_.context(), *settings_.policy);
  ASSERT_TRUE(rendering.ok()) << rendering.status();
  json secret = rendering->secret;
  secret["data"]["userdata"] = *base::Base64Decode(secret["data"]["userdata"].get<std::string>());
  const std::string text = WithoutSamples(
      ToYaml(rendering->lease) + "---\n" + ToYaml(secret) + "---\n" + ToYaml(rendering->vm),
      rendering->vm);
  ExpectGolden("render.yaml", text);
}

TEST_F(PlanCommands, the_rendered_vm_and_secret_are_what_scale_creates) {
  const auto rendering = maintenance_->Render(work_.context(), *settings_.policy);
  ASSERT_TRUE(rendering.ok()) << rendering.status();
  ASSERT_EQ(ScaleTo(1), 0);
  json made = cluster_.Vms().at(0);
  made["spec"]["template"]["spec"]["domain"]["resources"].erase("requests");  // Harvester's
  const json secret = cluster_.Secrets().at(0);
  EXPECT_EQ(WithoutSamples(rendering->vm["spec"]["template"].dump(1), rendering->vm),
            WithoutSamples(made["spec"]["template"].dump(1), made));
  EXPECT_EQ(rendering->vm["metadata"]["labels"], made["metadata"]["labels"]);
  for (const auto& [key, value] : rendering->vm["metadata"]["annotations"].items()) {
    EXPECT_TRUE(made["metadata"]["annotations"].contains(key)) << key;
  }
  const auto user_data = [](const json& object) {
    return *base::Base64Decode(object["data"]["userdata"].get<std::string>());
  };
  EXPECT_EQ(WithoutSamples(user_data(rendering->secret), rendering->vm),
            WithoutSamples(user_data(secret), made));
}

TEST_F(PlanCommands, no_secret_is_in_any_output) {
  const std::string password = "correct-horse-battery-staple";
  Configure({"user_data=#cloud-config\nwrite_files:\n- path: /t\n  content: "
             "\"{{env.HARVESTER_TEMPLATE_PASSWORD}} {{env.HARVESTER_TEMPLATE_PIN}}\"\n"},
            {{"HARVESTER_TEMPLATE_PASSWORD", password}, {"HARVESTER_TEMPLATE_PIN", "4711"}});
  ASSERT_EQ(Render("yaml"), 0) << err_.str();
  std::smatch data;
  const std::string yaml = out_.str();
  ASSERT_TRUE(std::regex_search(yaml, data, std::regex("userdata: \"?([A-Za-z0-9+/=]+)")));
  const auto decoded = base::Base64Decode(data[1].str());
  ASSERT_TRUE(decoded.ok());
  EXPECT_THAT(*decoded, AllOf(HasSubstr("REDACTED REDACTED"), Not(HasSubstr("4711")),
                              Not(HasSubstr(password))));
  ASSERT_EQ(Render("json"), 0);
  EXPECT_THAT(out_.str(), Not(HasSubstr(base::Base64Encode(password).substr(4, 20))));
  EXPECT_EQ(json::parse(out_.str())["items"].size(), 3U);
  cluster_.Refuse({.verb = "list",
                   .kind = simulator::Refusal::kAnswer,
                   .status = 400,
                   .text = "no, " + password});
  EXPECT_NE(ScaleTo(1), 0);
  EXPECT_THAT(out_.str() + err_.str(), AllOf(HasSubstr("no, "), Not(HasSubstr(password))));
}

TEST_F(PlanCommands, P3_plan_for_programs_holds_no_secret_either) {
  Configure({"image=default/secret-token-of-harvester"});
  EXPECT_THAT(PlanOf(1)["refusal"].get<std::string>(),
              AllOf(HasSubstr("\"REDACTED\" not found in namespace default"),
                    Not(HasSubstr("secret-token"))));
}

TEST_F(PlanCommands, render_is_1_without_harvester_and_with_a_missing_source) {
  Configure({"image=default/none"});
  EXPECT_EQ(Render("yaml"), 1);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("nomad-harvester render: image: "), HasSubstr("none")));
  cluster_.SetHarvesterReachable(false);
  EXPECT_EQ(Render("yaml"), 1);
  EXPECT_THAT(out_.str(), IsEmpty());
}

TEST(Yaml, texts_that_a_reader_could_take_for_something_else_are_quoted) {
  EXPECT_EQ(ToYaml(json{{"a", {"true", "NO", "12", "x: y", "", "web-1", "a\nb", "2026-01-01"}},
                        {"b/c", 3},
                        {"d", json::object()},
                        {"e", {{{"f", true}, {"g", {{"h", nullptr}}}}}},
                        {"on", json::array()}}),
            "a:\n  - \"true\"\n  - \"NO\"\n  - \"12\"\n  - \"x: y\"\n  - \"\"\n  - web-1\n"
            "  - \"a\\nb\"\n  - \"2026-01-01\"\n"
            "b/c: 3\n"
            "d: {}\n"
            "e:\n  - f: true\n    g:\n      h: ~\n"
            "\"on\": []\n");
}

}  // namespace
}  // namespace nomad_harvester::cli
