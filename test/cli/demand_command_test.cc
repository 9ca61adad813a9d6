// SPDX-License-Identifier: Apache-2.0
// nomad-harvester demand and why against the simulated systems: output and exit codes.
#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/demand/room_reader.h"
#include "nomad_harvester/demand/service.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/kube/client.h"

#include "cli/golden.h"
#include "cli/operator.h"
#include "command.h"
#include "demand_view.h"
#include "nlohmann/json.hpp"
#include "support/source_tree.h"

namespace nomad_harvester::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kQuery[] = "nodes-needed node_class=web headroom=1x(cpu=500,memory=512)";

class DemandCommands : public OperatorTest {
 protected:
  DemandCommands() {
    auto settings = ReadSettings({"harvester_url=http://harvester.invalid", "auth_token=secret",
                                  "node_group_name=web", "namespace=nomad", "node_class=web"},
                                 {}, PolicyUse::kRequired, {});
    EXPECT_TRUE(settings.ok()) << settings.status();
    settings_ = *std::move(settings);
    maintenance_ = MakeMaintenance(cluster_, clock_, executor_, settings_);
    reader_ = std::make_unique<demand::Reader>(
        demand::MakeClient(settings_.plugin, cluster_.NomadTransport("operator"),
                           support::MakeSeededRandom(3), {}, nullptr),
        executor_);
  }

  // A node for four of its allocations.
  void AddNode(const std::string& name) {
    simulator::NodeSpec node;
    node.name = name;
    node.node_class = "web";
    cluster_.AddForeignNode(node);
    Wait(std::chrono::seconds(2));
  }
  void RunJob(const std::string& id, int count, std::int64_t memory_mb) {
    simulator::JobSpec job;
    job.id = id;
    job.count = count;
    job.cpu = 1000;
    job.memory_mb = memory_mb;
    job.node_class = "web";
    job.group = "server";
    cluster_.RunJob(job);
  }
  void Wait(base::Duration duration) {
    clock_.Advance(duration);
    cluster_.ApplyDue();
  }

  // The files have one policy, with a check that asks this plugin.
  FileSettings Files() const {
    FileSettings files;
    files.policy_name = "web";
    files.limits = CountLimits{.policy = "policy \"web\" (web.hcl:1:1)", .min = 0, .max = 2};
    if (dry_run_) files.policy["dry-run"] = "true";
    files.queries.push_back(
        {.policy = "web",
         .check = {.name = "need", .where = "web.hcl:9:5", .source = "demand", .query = query_},
         .apm = AgentPlugin{.driver = "harvester"},
         .apms_are_known = true});
    if (!other_query_.empty()) {
      files.queries.push_back(files.queries.front());
      files.queries.back().check.query = other_query_;
    }
    return files;
  }
  std::vector<DemandPool> Pools(const CommandRun* run) const {
    std::vector<DemandPool> pools;
    DemandPool pool{.files = Files(), .problem = run == nullptr ? "no token" : ""};
    if (run != nullptr) pool.run.emplace(*run);
    pools.push_back(std::move(pool));
    return pools;
  }
  int Ask(const DemandTask& task, bool with_harvester = true) {
    return Call("demand", [&](const CommandRun& run) {
      return task({.reader = *reader_,
                   .harvester = rooms_.get(),
                   .nomad = nomad_,
                   .context = run.context,
                   .pools = Pools(with_harvester ? &run : nullptr),
                   .out = run.out,
                   .errors = run.errors});
    });
  }
  int Demand(const DemandArguments& arguments = {}) {
    return Ask([&](const DemandRun& run) { return ShowDemand(run, arguments); });
  }
  int Why(const WhyArguments& arguments, bool with_harvester = true) {
    return Ask([&](const DemandRun& run) { return ShowWhy(run, arguments); }, with_harvester);
  }

  std::string query_ = kQuery;
  std::string other_query_;  // of a second check; empty: there is none
  bool dry_run_ = false;
  config::NomadSettings nomad_ = {.address = "http://nomad.invalid"};
  std::unique_ptr<demand::Reader> reader_;
  std::unique_ptr<demand::RoomReader> rooms_;
};

TEST_F(DemandCommands, demand_shows_each_job_that_waits_and_the_parts_of_the_count) {
  AddNode("web-1");
  RunJob("api", 10, 1024);
  RunJob("huge", 2, 1'000'000);
  EXPECT_EQ(Demand(), kExitOk);
  ExpectGolden("demand.txt", out_.str());
  EXPECT_EQ(Demand({.output = "json"}), kExitOk);
  ExpectGolden("demand.json", out_.str());
}

TEST_F(DemandCommands, demand_answers_a_query_that_is_given) {
  EXPECT_EQ(Demand({.query = {"nodes-needed", "node_class=web"}}), kExitOk);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("Pool:      node_class=web\n"), HasSubstr("Needed:    0 nodes\n"),
                    HasSubstr("Nothing is pending for this pool.\n")));
}

TEST_F(DemandCommands, a_mistake_in_a_query_is_named_with_its_place) {
  EXPECT_EQ(Demand({.query = {"nodes-needed node_clas=web"}}), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("did you mean node_class?"));
  query_ = "nodes-needed idle_for=soon";
  EXPECT_EQ(Demand(), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("web.hcl:9:5: the query of check \"need\""));
}

TEST_F(DemandCommands, a_policy_with_a_wrong_query_does_not_hide_the_others) {
  AddNode("web-1");
  RunJob("api", 10, 1024);
  const auto ask = [this](const auto& show) {
    return Call("demand", [&](const CommandRun& run) {
      std::vector<DemandPool> pools = Pools(&run);
      std::vector<DemandPool> wrong = Pools(&run);
      wrong.front().files.policy_name = "db";
      wrong.front().files.queries.front().check.query = "nodes-needed idle_for=soon";
      wrong.push_back(std::move(pools.front()));
      return show({.reader = *reader_,
                   .nomad = nomad_,
                   .context = run.context,
                   .pools = std::move(wrong),
                   .unread = {{.label = "",
                               .where = "/etc/policies/ci.hcl:4:18",
                               .ns = "",
                               .problem = "this block is not closed"}},
                   .out = run.out,
                   .errors = run.errors});
    });
  };
  std::string output = kForPeople;
  const auto demand = [&](const DemandRun& run) { return ShowDemand(run, {.output = output}); };
  const auto why = [&](const DemandRun& run) {
    return ShowWhy(run, {.output = output, .job = "api"});
  };
  EXPECT_EQ(ask(demand), kExitFailure);
  EXPECT_THAT(
      out_.str(),
      AllOf(StartsWith("Pool:      node_class=web (policy web)\n"),
            HasSubstr("\n\nNot read:   /etc/policies/ci.hcl:4:18: this block is not closed\n"
                      "Not read:   policy db: web.hcl:9:5: the query of check \"need\": "
                      "idle_for = ")));
  EXPECT_EQ(ask(why), kExitFailure);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("Pool node_class=web (policy web): "),
                                HasSubstr("\nNot read:   /etc/policies/ci.hcl:4:18: "),
                                HasSubstr("\nNot read:   policy db: ")));
  output = "json";
  for (const auto& show : {DemandTask(demand), DemandTask(why)}) {
    EXPECT_EQ(ask(show), kExitFailure);
    const auto pools = nlohmann::json::parse(out_.str())["pools"];
    ASSERT_EQ(pools.size(), 3U) << out_.str();
    EXPECT_EQ(pools[0]["policy"], "web");
    EXPECT_EQ(pools[1]["place"], "/etc/policies/ci.hcl:4:18");
    EXPECT_EQ(pools[2]["policy"], "db");
  }
}

TEST_F(DemandCommands, a_nomad_that_does_not_answer_is_an_error) {
  cluster_.SetNomadReachable(false);
  EXPECT_EQ(Demand(), kExitFailure);
  EXPECT_EQ(out_.str(), "");
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr("Nomad at nomad_address http://nomad.invalid, with no token ("),
                    HasSubstr("correct nomad_address (or NOMAD_ADDR)")));
  EXPECT_EQ(Why({.job = "api"}), kExitFailure);
}

TEST_F(DemandCommands, of_an_empty_pool_the_output_says_that_the_agent_may_know_more) {
  constexpr char kMayDiffer[] = "the pool has no ready node; the agent's answer may differ";
  RunJob("api", 10, 1024);
  EXPECT_EQ(Demand(), kExitOk);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("Needed:    1 node: 1 new\n"),
                    HasSubstr("Note:      how much a node of this pool holds is not known; the "
                              "first node shows it"),
                    HasSubstr(kMayDiffer)));
  EXPECT_EQ(Why({.job = "api"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr(kMayDiffer));
  AddNode("web-1");
  Wait(2 * demand::kReadingIsKept);
  EXPECT_EQ(Demand(), kExitOk);
  EXPECT_THAT(out_.str(), testing::Not(HasSubstr("Note:")));
}

TEST_F(DemandCommands, of_a_query_whose_node_is_not_used_the_output_names_the_node_that_is) {
  query_ = "nodes-needed node_class=web node=(cpu=8000,memory=8192)";
  constexpr char kNotUsed[] = "node= is not used: the size of a new node is that of node web-1";
  RunJob("api", 10, 1024);
  EXPECT_EQ(Demand(), kExitOk);
  EXPECT_THAT(out_.str(), testing::Not(HasSubstr("is not used")));
  AddNode("web-1");
  Wait(2 * demand::kReadingIsKept);
  EXPECT_EQ(Demand(), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr(kNotUsed));
  EXPECT_EQ(Why({.job = "api"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr(kNotUsed));
}

TEST_F(DemandCommands, the_pool_is_named_as_in_a_query) {
  EXPECT_EQ(Demand({.query = {"nodes-needed node_class=web datacenter=dc1"}}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("Pool:      node_class=web datacenter=dc1\n"));
}

TEST_F(DemandCommands, without_a_token_the_cure_is_to_set_one) {
  cluster_.DenyReadJob(true);
  EXPECT_EQ(Demand(), kExitFailure);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("with no token ("),
                                HasSubstr("set the agent's token here, too: NOMAD_TOKEN"),
                                testing::Not(HasSubstr("grant"))));
  nomad_.token_file = "/run/token";
  EXPECT_EQ(Demand(), kExitFailure);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("with the token of nomad_token_file /run/token: "),
                                HasSubstr("; grant node { policy = \"read\" }")));
}

TEST_F(DemandCommands, why_says_what_nomad_found_what_the_pool_can_do_and_what_holds_it) {
  AddNode("web-1");
  RunJob("api", 16, 1024);
  EXPECT_EQ(Why({.job = "api"}), kExitOk);
  ExpectGolden("why.txt", out_.str());
  EXPECT_THAT(out_.str(), HasSubstr("the policy's max is 2, and 5 nodes are needed"));
  EXPECT_EQ(Why({.output = "json", .job = "api"}), kExitOk);
  ExpectGolden("why.json", out_.str());
}

TEST_F(DemandCommands, why_of_a_pool_with_two_queries_goes_by_the_one_that_needs_most_nodes) {
  AddNode("web-1");
  RunJob("api", 16, 1024);
  other_query_ = "nodes-needed node_class=web node_pool=idle";
  EXPECT_EQ(Why({.job = "api"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("the policy's max is 2, and 5 nodes are needed"));
}

TEST_F(DemandCommands, why_names_the_cooldown_after_a_scale_if_nothing_else_holds_the_pool) {
  RunJob("api", 1, 1024);
  Wait(std::chrono::seconds(2));
  const std::string last = harvester::ToAnnotation(
      harvester::PolicyRecord{.id = "p1", .at = clock_.WallNow() - std::chrono::minutes(1)});
  ASSERT_TRUE(cluster_.PutObject(
      {{"apiVersion", "coordination.k8s.io/v1"},
       {"kind", "Lease"},
       {"metadata",
        {{"name", harvester::LeaseName("web")},
         {"namespace", "nomad"},
         {"annotations", {{std::string(harvester::kLeasePolicyAnnotation), last}}}}},
       {"spec", nlohmann::json::object()}}));
  EXPECT_EQ(Why({.job = "api"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("once its policy's cooldown has passed"));
  clock_.Advance(std::chrono::minutes(10));
  EXPECT_EQ(Why({.job = "api"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("and nothing holds it"));
}

TEST_F(DemandCommands, why_without_harvester_says_so) {
  AddNode("web-1");
  RunJob("api", 16, 1024);
  EXPECT_EQ(Why({.job = "api"}, /*with_harvester=*/false), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("Harvester was not asked: no token"));
  EXPECT_THAT(out_.str(), testing::Not(HasSubstr("dry-run")));
  dry_run_ = true;
  EXPECT_EQ(Why({.job = "api"}, /*with_harvester=*/false), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("the policy sets dry-run"));
}

TEST_F(DemandCommands, why_of_a_job_that_waits_for_nothing_says_that) {
  AddNode("web-1");
  RunJob("api", 1, 1024);
  Wait(std::chrono::seconds(2));
  EXPECT_EQ(Why({.job = "api"}), kExitOk);
  EXPECT_EQ(out_.str(), "Nothing of job default/api waits for a node.\n");
}

TEST_F(DemandCommands, why_of_a_job_that_is_not_there_names_the_nearest_one) {
  RunJob("api", 16, 1024);
  EXPECT_EQ(Why({.job = "apo"}), kExitFailure);
  EXPECT_THAT(err_.str(), HasSubstr("Nomad has no job default/apo that runs or waits; did you mean "
                                    "api?"));
  EXPECT_EQ(Why({.job = "api", .ns = "prod"}), kExitFailure);
  EXPECT_THAT(err_.str(), HasSubstr("there is default/api: give --namespace default"));
  EXPECT_EQ(out_.str(), "");
}

TEST_F(DemandCommands, why_takes_the_job_as_demand_shows_it) {
  RunJob("api", 16, 1024);
  EXPECT_EQ(Why({.job = "default/api", .ns = "prod"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("Group server: 16 pending"));
  RunJob("api/night", 16, 1024);
  Wait(2 * demand::kReadingIsKept);
  EXPECT_EQ(Why({.job = "api/night"}), kExitOk) << "an ID may have a slash";
}

TEST_F(DemandCommands, why_of_work_that_no_node_can_hold_says_that_no_node_is_ordered_for_it) {
  AddNode("web-1");
  RunJob("huge", 2, 1'000'000);
  EXPECT_EQ(Why({.job = "huge"}), kExitOk);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("impossible: needs 1000000 MiB of memory, there are 4096 on an empty "
                              "node\n"),
                    HasSubstr("Pool node_class=web (policy web): orders no node for this job, see "
                              "above\n"),
                    testing::Not(HasSubstr("needed"))));
}

TEST_F(DemandCommands, a_policy_without_a_check_of_this_plugin_is_asked_about_its_pool) {
  DemandPool pool;
  pool.files.policy_name = "web";
  pool.files.policy = {{"node_class", "web"}, {"datacenter", "dc1"}};
  pool.files.queries.push_back({.check = {.source = "demand"}});
  std::vector<DemandPool> pools;
  pools.push_back(std::move(pool));
  std::vector<UnreadPolicy> unread;
  const auto queries = QueriesOf(pools, &unread);
  ASSERT_TRUE(queries.ok()) << queries.status();
  ASSERT_EQ(queries->size(), 1U);
  EXPECT_EQ(queries->front().query.Identity().ToString(), "node_class=web, datacenter=dc1");
  EXPECT_THAT(NotesOf(queries->front()).front(),
              AllOf(HasSubstr("this is about the nodes of the policy's target block"),
                    HasSubstr("give the agent's configuration, too: --agent-config")));
  pools.front().files.policy["node_class"] = "gpu nodes";
  const auto quoted = QueriesOf(pools, &unread);
  ASSERT_TRUE(quoted.ok()) << quoted.status();
  EXPECT_EQ(quoted->front().query.node_class, "gpu nodes");
  pools.front().files.policy.clear();
  EXPECT_EQ(QueriesOf(pools, &unread).status().message(),
            "the target block of policy \"web\": name the pool with at least one of node_class, "
            "datacenter and node_pool");
}

TEST_F(DemandCommands, the_example_asks_this_plugin_about_the_nodes_of_its_target) {
  const auto files = ReadFilesOfAll({.agent_config = {support::SourcePath("examples/agent.hcl"),
                                                      support::SourcePath("examples/apm.hcl")},
                                     .policy = support::SourcePath("examples/policy-demand.hcl")});
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->policies.size(), 1U);
  EXPECT_THAT(files->policies.front().refusals, testing::IsEmpty());
  EXPECT_THAT(files->policies.front().unknown, testing::IsEmpty());
  ASSERT_EQ(files->policies.front().queries.size(), 1U);
  EXPECT_TRUE(IsOurs(files->policies.front().queries.front()));
  EXPECT_EQ(files->policies.front().queries.front().apm->config.values.at("nomad_address"),
            "http://127.0.0.1:4646")
      << "it inherits the agent's";
  const auto query = demand::ParseQuery(files->policies.front().queries.front().check.query);
  ASSERT_TRUE(query.ok()) << query.status();
  const config::StringMap& target = files->policies.front().policy;
  EXPECT_EQ(query->node_class, target.at("node_class"));
  EXPECT_EQ(query->node_pool, target.at("node_pool"));
  EXPECT_EQ(query->datacenter, target.at("datacenter"));
}

TEST_F(DemandCommands, D7_the_example_of_a_second_harvester_overflows_from_the_first_policys_pool) {
  const auto files_of = [](const std::string& policy) {
    auto files = ReadFilesOfAll({.agent_config = {support::SourcePath("examples/agent.hcl"),
                                                  support::SourcePath("examples/overflow.hcl")},
                                 .policy = support::SourcePath("examples/" + policy)});
    EXPECT_TRUE(files.ok()) << files.status();
    return files.ok() && files->policies.size() == 1 ? files->policies.front() : FileSettings();
  };
  const FileSettings first = files_of("policy-demand.hcl");
  const FileSettings second = files_of("policy-overflow.hcl");
  EXPECT_THAT(second.refusals, testing::IsEmpty());
  EXPECT_THAT(second.unknown, testing::IsEmpty());
  EXPECT_EQ(second.plugin.at("harvester_url"), "https://10.1.0.10:6443");
  ASSERT_EQ(second.queries.size(), 1U);
  ASSERT_TRUE(IsOurs(second.queries.front()));
  EXPECT_EQ(second.queries.front().apm->config.values.at("harvester_url"),
            first.plugin.at("harvester_url"));
  const auto query = demand::ParseQuery(second.queries.front().check.query);
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->node_class, second.policy.at("node_class"));
  EXPECT_EQ(query->node_pool, second.policy.at("node_pool"));
  EXPECT_EQ(query->datacenter, second.policy.at("datacenter"));
  EXPECT_EQ(query->home.ns, first.policy.at("namespace"));
  EXPECT_EQ(query->home.pool, first.policy.at("node_group_name"));
  ASSERT_TRUE(first.limits.has_value());
  EXPECT_EQ(query->home.max, first.limits->max);
}

TEST_F(DemandCommands, D7_the_example_with_aws_has_a_query_about_the_nodes_of_its_target) {
  const auto text = base::ReadFile(support::SourcePath("examples/policy-overflow-aws.hcl"));
  ASSERT_TRUE(text.ok()) << text.status();
  constexpr char kBegin[] = "      query  = \"";
  const std::size_t begin = text->find(kBegin) + sizeof(kBegin) - 1;
  const auto query = demand::ParseQuery(text->substr(begin, text->find("\"\n", begin) - begin));
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_THAT(*text, AllOf(HasSubstr("node_class = \"" + *query->node_class + "\""),
                           HasSubstr("node_pool  = \"" + *query->node_pool + "\""),
                           HasSubstr("datacenter = \"" + *query->datacenter + "\"")));
}

TEST_F(DemandCommands, D6_demand_tells_the_room_or_what_it_needs_to_do_so) {
  const DemandArguments room = {.query = {"room", "namespace=nomad", "pool=web"}};
  EXPECT_EQ(Demand(room), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("room needs Harvester: add harvester_url"));
  query_ = "overflow node_class=web namespace=nomad pool=home max=3";
  EXPECT_EQ(Demand(), kExitFailure);
  EXPECT_THAT(err_.str(), HasSubstr("overflow needs Harvester: add harvester_url"));
  rooms_ = std::make_unique<demand::RoomReader>(
      std::make_shared<kube::KubeClient>(cluster_.HarvesterTransport("operator")));
  EXPECT_EQ(Demand(room), kExitFailure);
  EXPECT_THAT(err_.str(), HasSubstr("pool nomad/web has no VM yet"));
  EXPECT_EQ(Demand(), kExitOk) << "nothing waits, so that Harvester is not asked";
}

}  // namespace
}  // namespace nomad_harvester::cli
