// SPDX-License-Identifier: Apache-2.0
// nomad-harvester check against the simulated systems: each precondition broken in turn.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/demand/service.h"
#include "nomad_harvester/simulator/cluster.h"

#include "cli/operator.h"
#include "command.h"
#include "http/loopback_server.h"
#include "http/test_certificates.h"
#include "nlohmann/json.hpp"
#include "support/fake_clock.h"
#include "support/hosts.h"
#include "support/inline_executor.h"
#include "support/scoped_temp_dir.h"
#include "support/seeded_random.h"

namespace nomad_harvester::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

using Values = std::map<std::string, std::string>;

simulator::Options NewestNomad() {
  simulator::Options options;
  options.introduction = simulator::Introduction::kWarn;
  options.nomad_version = "2.0.5";
  return options;
}

int RunCheck(const scaling::Maintenance& maintenance, const runtime::Context& context,
             const Settings& settings, const std::string& output, std::ostream& out,
             const Terminal& terminal = {}, demand::Reader* apm = nullptr,
             demand::RoomReader* room = nullptr) {
  const ErrorWriter errors("check", {}, out);
  CommandRun run = {.maintenance = maintenance,
                    .context = context,
                    .settings = settings,
                    .out = out,
                    .err = out,
                    .errors = errors,
                    .terminal = terminal};
  if (apm != nullptr) {
    run.apms.push_back(
        {.name = "harvester",
         .nomad = settings.plugin.nomad,
         .read =
             [apm](const runtime::Context& limited) { return base::GetStatus(apm->Read(limited)); },
         .read_room =
             [room](const runtime::Context& limited, const demand::HomePool& pool) {
               return base::GetStatus(room->Read(limited, pool));
             }});
  }
  return CheckPreconditions(run, {.output = output});
}

// Both systems, a policy, and an operator who checks it.
class CheckedPool {
 public:
  explicit CheckedPool(const Values& changes = {}, simulator::Options options = NewestNomad(),
                       const FileSettings& files = {})
      : cluster_(clock_, *random_, std::move(options)) {
    Values values = {{"harvester_url", "http://127.0.0.1:6443"},
                     {"auth_token", "secret-of-harvester"},
                     {"nomad_token", "secret-of-nomad"},
                     {"node_group_name", "web"},
                     {"namespace", "nomad"},
                     {"node_class", "web"},
                     {"image", "default/ubuntu-24.04"},
                     {"cpu_request", "1"},
                     {"memory_request", "1Gi"},
                     {"networks", "default/vlan100"}};
    for (const auto& [key, value] : changes) values[key] = value;
    if (!values.contains("user_data_file") && !files.policy.contains("user_data")) {
      values.emplace("user_data",
                     "#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: "
                     "client { node_class = \"{{node_class}}\" node_pool = \"{{node_pool}}\" }\n");
    }
    std::vector<std::string> pairs;
    for (const auto& [key, value] : values) {
      if (!value.empty()) pairs.push_back(key + "=" + value);
    }
    const auto parsed = ReadSettings(pairs, files, PolicyUse::kChecked, {});
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    settings_ = *parsed;
    maintenance_ = MakeMaintenance(cluster_, clock_, executor_, settings_);
  }

  int Check(const std::string& output = "table", const Terminal& terminal = {}) {
    return Check(runtime::Context::Background(clock_), output, terminal);
  }
  int Check(const runtime::Context& context, const std::string& output = "table",
            const Terminal& terminal = {}) {
    std::ostringstream out;
    const auto& queries = settings_.files.queries;
    demand::Reader reader(demand::MakeClient(settings_.plugin, cluster_.NomadTransport("apm"),
                                             support::MakeSeededRandom(3), {}, nullptr),
                          executor_);
    demand::RoomReader room(demand::MakeHarvesterClient(settings_.plugin,
                                                        cluster_.HarvesterTransport("apm"),
                                                        support::MakeSeededRandom(4), {}, nullptr));
    const bool asks = std::any_of(queries.begin(), queries.end(), &IsOurs);
    const int code = RunCheck(*maintenance_, context, settings_, output, out, terminal,
                              asks ? &reader : nullptr, &room);
    out_ = out.str();
    return code;
  }
  // Those with that outcome: "ID SUBJECT: TEXT -> CURE".
  std::vector<std::string> Lines(const std::string& outcome) {
    Check("json");
    std::vector<std::string> lines;
    const json document = json::parse(out_);
    for (const json& check : document["checks"]) {
      if (check["outcome"] != outcome) continue;
      lines.push_back(std::string(check["id"]) + " " + std::string(check["subject"]) + ": " +
                      std::string(check["text"]) + " -> " + std::string(check["cure"]));
    }
    return lines;
  }
  std::vector<std::string> Ids(const std::string& outcome) {
    std::vector<std::string> ids = Lines(outcome);
    for (std::string& id : ids) id.erase(id.find(' '));
    return ids;
  }
  void Answer(const std::string& verb, const std::string& resource, int status,
              const std::string& text = "",
              simulator::System system = simulator::System::kHarvester) {
    cluster_.Refuse({.system = system,
                     .verb = verb,
                     .resource = resource,
                     .kind = simulator::Refusal::kAnswer,
                     .status = status,
                     .text = text});
  }
  simulator::Cluster& cluster() { return cluster_; }
  support::FakeClock& clock() { return clock_; }
  const std::string& out() const { return out_; }

 private:
  support::FakeClock clock_;
  std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_;
  support::InlineExecutor executor_;
  Settings settings_;
  std::unique_ptr<scaling::Maintenance> maintenance_;
  std::string out_;
};

TEST(CheckCommand, names_every_file_that_it_has_read) {
  FileSettings files;
  files.files = {"/etc/agent.hcl", "/etc/policies/web.hcl"};
  CheckedPool world({}, NewestNomad(), files);
  world.Check();
  EXPECT_THAT(
      world.out(),
      StartsWith("ok       the agent's files: read /etc/agent.hcl, /etc/policies/web.hcl\n"));
}

TEST(CheckCommand, of_a_healthy_world_passes_line_by_line) {
  CheckedPool world;
  EXPECT_EQ(world.Check(), 0);
  EXPECT_EQ(
      world.out(),
      "ok       Harvester's URL: http://127.0.0.1:6443 answers\n"
      "ok       Harvester's token: accepted: the token of auth_token or HARVESTER_TOKEN\n"
      "ok       Harvester's version: Harvester v1.8.2, Kubernetes v1.32.3\n"
      "ok       namespace nomad: exists\n"
      "ok       rights to observe: granted in namespace nomad\n"
      "ok       rights to grow: granted in namespace nomad\n"
      "ok       rights to shrink: granted in namespace nomad\n"
      "ok       rights to the pool's Lease: granted in namespace nomad\n"
      "ok       optional rights: all granted\n"
      "ok       image default/ubuntu-24.04: imported: default/image-rx7kp, \"ubuntu-24.04\"\n"
      "ok       networks default/vlan100: exist\n"
      "ok       cloud-init templates: they render\n"
      "ok       dry run of a VM: Harvester would accept one; nothing was stored\n"
      "ok       quota: no quota limits the VMs\n"
      "ok       room on the hosts: there is room for at least 1000 more VMs\n"
      "ok       VMs and Harvester's upgrade: nothing keeps them on their host\n"
      "ok       Nomad's address: http://127.0.0.1:4646 answers\n"
      "ok       Nomad's token: accepted: the token of nomad_token or NOMAD_TOKEN\n"
      "ok       node:write: granted: drains, eligibility, purges\n"
      "ok       read-job: granted for every namespace\n"
      "unknown  nodes with node_class=web: no node of this Nomad has them, as in a pool that is "
      "empty; 0 nodes in all\n"
      "         -> check that cloud-init writes the same values into Nomad's client "
      "configuration\n"
      "ok       Nomad's version: 2.0.5 (server-1.global, the oldest of 1 servers)\n"
      "unknown  time to join: no VM of the pool has joined yet; join_timeout is 15m0s\n"
      "ok       dynamic host volumes: no node of the pool has one\n"
      "ok       Nomad's cluster: the pool has no VM yet\n"
      "ok       clocks: this machine agrees with Harvester and Nomad\n"
      "24 ok, 2 unknown\n");
}

TEST(CheckCommand, C15_an_empty_pool_whose_lease_names_another_nomad_fails) {
  CheckedPool world;
  ASSERT_TRUE(world.cluster().PutObject(
      {{"apiVersion", "coordination.k8s.io/v1"},
       {"kind", "Lease"},
       {"metadata",
        {{"namespace", "nomad"},
         {"name", "nomad-harvester-autoscaler-web"},
         {"annotations", {{"nomad-harvester-autoscaler/nomad-cluster", "elsewhere"}}}}}}));
  EXPECT_THAT(world.Lines("fail"),
              ElementsAre(AllOf(StartsWith("pool.nomad_cluster "), HasSubstr("the pool's Lease"),
                                HasSubstr("-> "), HasSubstr("nomad-harvester adopt"))));
}

// A VM of the pool, as another process made it.
json VmMadeAt(std::uint64_t index, const char* cluster) {
  const harvester::NodesRecord nodes{.node_class = "web", .index = index};
  const std::string uuid = "0b0a7d4e-4c3e-4f0c-9d5d-2f6a8f1f7c11";
  return {{"apiVersion", "kubevirt.io/v1"},
          {"kind", "VirtualMachine"},
          {"metadata",
           {{"namespace", "nomad"},
            {"name", "web-a"},
            {"labels",
             {{harvester::kManagedByLabel, harvester::kManagedByValue},
              {harvester::kPoolLabel, "web"}}},
            {"annotations",
             {{harvester::kSelfAnnotation, "web-a/" + uuid},
              {harvester::kNomadClusterAnnotation, cluster},
              {harvester::kNodesAnnotation, harvester::ToAnnotation(nodes)}}}}},
          {"spec",
           {{"runStrategy", "RerunOnFailure"},
            {"template", {{"spec", {{"domain", {{"firmware", {{"uuid", uuid}}}}}}}}}}}};
}

TEST(CheckCommand, C15_a_nomad_whose_index_is_below_that_of_a_vm_is_another_one) {
  CheckedPool world;
  ASSERT_TRUE(world.cluster().PutObject(VmMadeAt(1'000'000, simulator::kFirstNomadKey)));
  EXPECT_THAT(world.Lines("fail"),
              ElementsAre(AllOf(StartsWith("pool.nomad_cluster "),
                                HasSubstr("is below 1000000, at which VM web-a was made"))));
}

TEST(CheckCommand, C15_nodes_that_cannot_be_listed_are_no_reason_to_adopt_the_pool) {
  CheckedPool world;
  ASSERT_TRUE(world.cluster().PutObject(VmMadeAt(7, simulator::kFirstNomadKey)));
  world.Answer("list", "nodes", 403, "Permission denied", simulator::System::kNomad);
  EXPECT_THAT(world.Lines("fail"),
              ElementsAre(AllOf(StartsWith("nomad.nodes "),
                                HasSubstr("list Nomad nodes: Permission denied (HTTP 403)"),
                                HasSubstr("though the token's policies grant node:write"),
                                HasSubstr("-> let the path /v1/nodes through"))));
  EXPECT_THAT(world.out(), Not(HasSubstr("nomad-harvester adopt")));
}

TEST(CheckCommand, VMs_that_cannot_be_listed_fail_though_the_review_grants_the_right) {
  CheckedPool world;
  world.Answer("list", "virtualmachines", 403);
  EXPECT_THAT(world.Lines("fail"),
              ElementsAre(ContainsRegex("^harvester.rights.status list of VMs: .*403")));
}

// A request of the check, and how it is answered.
using Refused = std::tuple<simulator::System, std::string, std::string, int>;

// Refuses each request of a check in turn, though the reviews grant its right.
TEST(CheckCommand, fails_for_each_read_that_is_refused_though_the_right_is_granted) {
  using enum simulator::System;
  // What a healthy pool need not have, or what another read proves.
  const std::set<Refused> may_fail = {{kHarvester, "get", "namespaces", 403},
                                      {kHarvester, "get", "namespaces", 404},
                                      {kHarvester, "get", "namespaces", 500},
                                      {kHarvester, "get", "settings", 403},
                                      {kHarvester, "list", "pods", 403},
                                      {kHarvester, "list", "pods", 404},
                                      {kHarvester, "list", "pods", 500},
                                      {kHarvester, "list", "virtualmachineinstances", 403},
                                      {kHarvester, "list", "virtualmachineinstances", 404},
                                      {kHarvester, "list", "virtualmachineinstances", 500},
                                      {kNomad, "get", "jwks.json", 403},
                                      {kNomad, "get", "jwks.json", 404},
                                      {kNomad, "get", "agent", 403},
                                      {kNomad, "get", "node-pool", 403},
                                      {kNomad, "get", "node-pool", 404}};
  const Values policy = {{"data_disks", "1Gi@harvester-longhorn"},
                         {"priority_class", "system-node-critical"},
                         {"node_pool", "default"}};
  std::set<std::tuple<simulator::System, std::string, std::string>> requests;
  CheckedPool healthy(policy);
  healthy.cluster().SetFaultHook([&](const simulator::RequestInfo& request) {
    requests.insert({request.system, request.verb, request.resource});
    return simulator::Fault::None();
  });
  ASSERT_EQ(healthy.Check(), 0) << healthy.out();
  ASSERT_GT(requests.size(), 15U);
  for (const auto& [system, verb, resource] : requests) {
    for (const int status : {403, 404, 500}) {
      const Refused refused = {system, verb, resource, status};
      CheckedPool world(policy);
      world.Answer(verb, resource, status, "no", system);
      EXPECT_EQ(world.Check(), may_fail.contains(refused) ? 0 : 1)
          << verb << " " << resource << " " << status << "\n"
          << world.out();
    }
  }
}

void PutPause(CheckedPool& world, const std::string& value) {
  EXPECT_TRUE(world.cluster().PutObject(
      {{"apiVersion", "coordination.k8s.io/v1"},
       {"kind", "Lease"},
       {"metadata",
        {{"namespace", "nomad"},
         {"name", "nomad-harvester-autoscaler-web"},
         {"annotations", {{"nomad-harvester-autoscaler/paused", value}}}}}}));
}

TEST(CheckCommand, L10_warns_of_a_paused_pool_and_tells_how_to_resume_it) {
  const auto pause = [](const std::string& value) {
    CheckedPool world;
    PutPause(world, value);
    return world.Lines("warn");
  };
  constexpr char kCure[] = " -> nomad-harvester resume, with the options of this command";
  EXPECT_THAT(
      pause("true"),
      ElementsAre(AllOf(StartsWith("pool.paused pool nomad/web: it is paused until somebody "
                                   "resumes it, by the annotation "
                                   "nomad-harvester-autoscaler/paused"),
                        EndsWith("no removal goes on" + std::string(kCure)))));
  EXPECT_THAT(pause("2100-01-01T06:00:00Z"),
              ElementsAre(HasSubstr(": it is paused until 2100-01-01T06:00:00Z, by")));
  EXPECT_THAT(pause("tomorrow"),
              ElementsAre(AllOf(HasSubstr("until somebody resumes it"),
                                HasSubstr("/paused = \"tomorrow\" is neither true, false nor"),
                                EndsWith("counts as true" + std::string(kCure)))));
  EXPECT_THAT(pause("2001-01-01T06:00:00Z"), IsEmpty()) << "it is over";
  EXPECT_THAT(pause("false"), IsEmpty());
}

TEST(CheckCommand, of_the_pool_blames_the_system_that_could_not_be_read) {
  const auto why = [](const std::string& refused) {
    CheckedPool world;
    for (const auto system : {simulator::System::kHarvester, simulator::System::kNomad}) {
      world.Answer("list", refused, 403, "", system);
    }
    std::vector<std::string> lines = world.Lines("skipped");
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("pool."); });
    return lines;
  };
  EXPECT_THAT(why("nodes"),
              AllOf(Not(IsEmpty()), testing::Each(HasSubstr(": Nomad could not be read ->"))));
  EXPECT_THAT(
      why("virtualmachines"),
      AllOf(Not(IsEmpty()), testing::Each(HasSubstr(": the pool's VMs could not be read ->"))));
}

TEST(CheckCommand, L10_a_pause_ends_by_the_time_of_the_api_server) {
  const auto warned = [](base::Duration until, base::Duration harvester_is_ahead) {
    CheckedPool world;
    world.cluster().SetClockSkews({harvester_is_ahead});
    PutPause(world, base::FormatRfc3339(world.clock().WallNow() + until));
    return world.Ids("warn");
  };
  const std::chrono::minutes two(2);
  const std::chrono::minutes five(5);
  EXPECT_THAT(warned(two, five), ElementsAre("clocks")) << "it is over there";
  EXPECT_THAT(warned(-two, -five), UnorderedElementsAre("clocks", "pool.paused"));
}

TEST(CheckCommand, names_the_host_names_that_only_examples_have) {
  EXPECT_EQ(scaling::PlaceholderIn("retry_join = [\"nomad.example.org\"]"), "nomad.example.org");
  EXPECT_EQ(scaling::PlaceholderIn("https://Vault.Example.COM:8200"), "Vault.Example.COM");
  EXPECT_EQ(scaling::PlaceholderIn("ops@example.net."), "example.net");
  EXPECT_EQ(scaling::PlaceholderIn("example.o and a.b.example.com"), "a.b.example.com");
  for (const char* somebodys :
       {"myexample.org", "my-example.org", "example.org.cn", "example.orgs", "example.organisation",
        "my_example.org", "example.org_old", "example.org.c", "example", "example.", ""}) {
    EXPECT_EQ(scaling::PlaceholderIn(somebodys), "") << somebodys;
  }
}

// The line about the user data of a pool without a VM; null: there is none.
json JoiningLine(const Values& changes) {
  CheckedPool world(changes);
  world.Check("json");
  const json document = json::parse(world.out());
  for (const json& line : document["checks"]) {
    if (line["id"] == "harvester.templates" && line["subject"] == "user_data") return line;
  }
  return {};
}

TEST(CheckCommand, warns_of_user_data_with_which_no_node_is_the_pools) {
  EXPECT_TRUE(JoiningLine({}).is_null());
  const json none = JoiningLine({{"user_data", ""}});
  EXPECT_EQ(none["outcome"], "warn");
  EXPECT_THAT(none["text"].get<std::string>(), HasSubstr("there is none: no VM joins Nomad"));
  const json other = JoiningLine(
      {{"user_data", "#cloud-config\n# {{node_class}}\nruncmd: [[systemctl, start, nomad]]\n"},
       {"node_pool", "gpu"}});
  EXPECT_EQ(other["outcome"], "warn");
  EXPECT_THAT(other["text"].get<std::string>(),
              StartsWith("no line of it sets node_class = \"{{node_class}}\", node_pool = "));
  EXPECT_TRUE(JoiningLine({{"user_data", "#cloud-config\nx: the class web\n"}}).is_null());
  EXPECT_EQ(JoiningLine({{"user_data", "#cloud-config\nx: webby, my-web\n"}})["outcome"], "warn");
  EXPECT_EQ(JoiningLine({{"node_attribute", "meta.vm"}})["outcome"], "warn");
  EXPECT_EQ(JoiningLine({{"user_data", "#cloud-config\nx: web\nnode_class: a\n"}})["outcome"],
            "warn")
      << "on another line";
  EXPECT_TRUE(JoiningLine({{"user_data", "#cloud-config\nx: NOMAD_CLASS=web\n"}}).is_null());
  const std::string gpu = "#cloud-config\nclass: web\npath: /etc/default/nomad\nnode_pool: gpu\n";
  EXPECT_EQ(JoiningLine({{"user_data", gpu}, {"node_pool", "default"}})["outcome"], "warn");
  EXPECT_EQ(JoiningLine({{"datacenter", "dc1"}}).is_null(), true) << "it is Nomad's default";
  const std::string dc2 = "#cloud-config\nx: class web, datacenter = \"dc2\"\n";
  EXPECT_THAT(JoiningLine({{"user_data", dc2}, {"datacenter", "dc1"}})["text"].get<std::string>(),
              StartsWith("no line of it sets datacenter = \"{{datacenter}}\" for"));
  const json downloads = JoiningLine({{"user_data", "#include\nhttps://10.0.0.1/data\n"}});
  EXPECT_EQ(downloads["outcome"], "unknown");
}

TEST(CheckCommand, warns_of_a_host_name_that_is_not_the_vms) {
  const auto line = [](const std::string& name, const std::string& attribute = "unique.hostname") {
    return JoiningLine({{"user_data", "#cloud-config\n" + name + "\nx: class web\n"},
                        {"node_attribute", attribute}});
  };
  for (const char* constant : {"hostname: nomad-client", "fqdn: web.test", "hostname: \"{{pool}}\"",
                               "hostname: \"x-{{vm_name}}\""}) {
    EXPECT_EQ(line(constant)["outcome"], "warn") << constant;
    EXPECT_THAT(line(constant)["text"].get<std::string>(), HasSubstr(" is not the VM's name"))
        << constant;
    EXPECT_TRUE(line(constant, "unique.network.ip-address").is_null()) << constant;
  }
  for (const char* right : {"hostname: \"{{vm_name}}\"", "fqdn: \"{{vm_name}}.test\"",
                            "hostname: web-{{short_id}}", "y: {hostname: a}", "# hostname: a"}) {
    EXPECT_TRUE(line(right).is_null()) << right;
  }
}

TEST(CheckCommand, warns_of_user_data_without_tls_if_nomad_wants_certificates) {
  const support::ScopedTempDir dir;
  const http::PemPair pair = http::TestCa().Issue("DNS:client");
  const Values https = {{"nomad_address", "https://127.0.0.1:4646"},
                        {"nomad_client-cert", dir.WriteFile("cert.pem", pair.certificate)},
                        {"nomad_client-key", dir.WriteFile("key.pem", pair.key)}};
  EXPECT_THAT(JoiningLine(https)["text"].get<std::string>(),
              StartsWith("no line of it sets tls { rpc = true } (examples/cloud-init-tls.yaml) "));
  Values with_tls = https;
  with_tls["user_data"] = "#cloud-config\nx: class web tls { rpc = true }\n";
  EXPECT_TRUE(JoiningLine(with_tls).is_null());
}

TEST(CheckCommand, does_not_doubt_user_data_with_which_a_vm_has_joined) {
  CheckedPool world(Values{{"user_data", ""}});
  EXPECT_THAT(world.Ids("warn"), Contains("harvester.templates"));
  json vm = VmMadeAt(1, simulator::kFirstNomadKey);
  vm["metadata"]["annotations"][harvester::kJoinedAtAnnotation] = "2026-03-01T11:00:00Z";
  ASSERT_TRUE(world.cluster().PutObject(vm));
  EXPECT_THAT(world.Ids("warn"), Not(Contains("harvester.templates")));
  vm["metadata"]["annotations"][harvester::kTemplateHashAnnotation] = "v2:earlier";
  ASSERT_TRUE(world.cluster().PutObject(vm));
  EXPECT_THAT(world.Ids("warn"), Not(Contains("harvester.templates"))) << "the parts are unknown";
  vm["metadata"]["annotations"][harvester::kTemplatePartsAnnotation] = R"({"user_data":"earlier"})";
  ASSERT_TRUE(world.cluster().PutObject(vm));
  EXPECT_THAT(world.Ids("warn"), Contains("harvester.templates"))
      << "it joined with other user data";
}

TEST(CheckCommand, C2_fails_for_two_lists_of_one_name_in_the_file_of_user_data) {
  const support::ScopedTempDir dir;
  const std::string file =
      dir.WriteFile("cloud-init.yaml", "#cloud-config\nruncmd: [a]\nx: class web\nruncmd: [b]\n");
  CheckedPool world({{"user_data_file", file}});
  EXPECT_THAT(world.Lines("fail"), ElementsAre(AllOf(StartsWith("harvester.templates "),
                                                     HasSubstr("user_data_file: #cloud-config is "
                                                               "not valid YAML: line 4: "))));
}

TEST(CheckCommand, warns_of_names_of_the_examples_in_user_data) {
  const support::ScopedTempDir dir;
  const std::string file =
      dir.WriteFile("cloud-init.yaml",
                    "#cloud-config\n# See https://example.com.\nwrite_files:\n- content: |\n    "
                    "retry_join = [\"nomad.example.org\"]\n    node_class = \"{{node_class}}\"\n");
  CheckedPool world({{"user_data_file", file}});
  EXPECT_EQ(world.Check(), 0);
  EXPECT_THAT(
      world.out(),
      HasSubstr("ok       cloud-init templates: they render\nwarn     user_data_file " + file +
                ": line 5: nomad.example.org: a name that only examples have, and no "
                "server answers to\n         -> write the names or addresses of your own "
                "servers there\n"));
  EXPECT_THAT(world.Ids("warn"), ElementsAre("harvester.templates"));
}

TEST(CheckCommand, warns_of_names_of_the_examples_in_the_files_of_the_agent) {
  MetricQuery query{.policy = "web",
                    .check = {.name = "load", .source = "prom", .strategy = "target-value"},
                    .apm = AgentPlugin{.driver = "prometheus",
                                       .config = {.values = {{"address", "http://p.example.com"}},
                                                  .origins = {{"address", "agent.hcl:19:5"}}}},
                    .apms_are_known = true};
  CheckedPool world({}, NewestNomad(),
                    {.policy = {{"annotations", "example.org/owner=data"}},
                     .origins = {{"annotations", "web.hcl:9:7"}},
                     .queries = {query}});
  EXPECT_THAT(world.Ids("warn"), ElementsAre("files.placeholder", "files.placeholder"));
  EXPECT_EQ(world.Check(), 0);
  EXPECT_THAT(world.out(), HasSubstr("warn     annotations (web.hcl:9:7): example.org is a name"));
  EXPECT_THAT(world.out(), HasSubstr("warn     address (agent.hcl:19:5): p.example.com is a name "
                                     "that only examples have\n         -> write your own there"));
}

TEST(CheckCommand, warns_of_a_name_in_a_template_of_the_policy_once) {
  const std::string data = "#cloud-config\ny: a.example.org\nclass: {{node_class}}\n";
  const std::string network = "version: 2\nnameservers: [dns.example.org]\n";
  CheckedPool world({}, NewestNomad(),
                    {.policy = {{"user_data", data}, {"network_data", network}}});
  EXPECT_THAT(world.Ids("warn"), ElementsAre("harvester.templates", "harvester.templates"))
      << world.out();
}

class CheckOfFiles : public testing::Test {
 protected:
  static std::string Policy(const std::string& name, const std::string& pool,
                            const std::string& target = "harvester",
                            const std::string& enabled = "true") {
    return "scaling \"" + name + "\" {\n  enabled = " + enabled +
           "\n  max = 5\n  policy {\n    check \"a\" {\n      strategy \"fixed-value\" {}\n    "
           "}\n    target \"" +
           target + "\" {\n      node_group_name = \"" + pool +
           "\"\n      namespace = \"nomad\"\n    }\n  }\n}\n";
  }
  static std::string Target(const std::string& name, const std::string& url) {
    return "target \"" + name +
           "\" {\n  driver = \"harvester\"\n  config = {\n    "
           "harvester_url = \"" +
           url + "\"\n  }\n}\n";
  }
  std::string Agent(const std::string& more = "") const {
    return dir_.WriteFile("agent.hcl", "policy {\n  dir = \"" + dir_.Path("policies") + "\"\n}\n" +
                                           Target("harvester", "http://127.0.0.1:6443") + more);
  }
  // The lines about policies that share a pool.
  static std::vector<std::string> Shared(const OperatorFiles& given) {
    const auto files = ReadOperatorFiles(given);
    EXPECT_TRUE(files.ok()) << files.status();
    CheckedPool world({}, NewestNomad(), *files);
    std::vector<std::string> lines = world.Lines("fail");
    for (std::string& line : lines) {
      EXPECT_THAT(line, ContainsRegex("^policy.pool .* -> .*set enabled = false"));
      line = line.substr(0, line.find(" -> ")).substr(line.find(' ') + 1);
    }
    return lines;
  }

  const support::ScopedTempDir dir_;
};

TEST_F(CheckOfFiles, L11_two_policies_of_one_pool_fail_in_one_file_and_in_several) {
  const std::string agent = Agent();
  const std::string web = dir_.WriteFile("policies/web.hcl", Policy("web", "web"));
  EXPECT_THAT(Shared({.agent_config = {agent}, .policy = web}), IsEmpty());
  const std::string both =
      dir_.WriteFile("both.hcl", Policy("day", "web") + Policy("night", "web"));
  EXPECT_THAT(Shared({.agent_config = {agent}, .policy = both, .policy_name = "day"}),
              ElementsAre("policies of pool nomad/web: policy \"day\" (" + both +
                          ":1:1) and policy \"night\" (" + both +
                          ":14:1) scale the same pool: they overwrite each other's count"));
  const std::string other = dir_.WriteFile("policies/other.hcl", Policy("other", "web"));
  const std::string text = "policies of pool nomad/web: policy \"other\" (" + other +
                           ":1:1) and policy \"web\" (" + web +
                           ":1:1) scale the same pool: they overwrite each other's count";
  const std::string dir = dir_.Path("policies");
  EXPECT_THAT(Shared({.agent_config = {agent}, .policy_name = "web", .needs_policy = true}),
              ElementsAre(text));
  EXPECT_THAT(Shared({.policy = dir, .policy_name = "web"}), ElementsAre(text));
  // The agent reads the other files of the directory, too.
  EXPECT_THAT(Shared({.agent_config = {agent}, .policy = web}), SizeIs(1));
  dir_.WriteFile("policies/broken.hcl", "scaling {");
  EXPECT_THAT(Shared({.agent_config = {agent}, .policy = web}), SizeIs(1));
  // A file from elsewhere may be the next version of one that is there.
  EXPECT_THAT(
      Shared({.agent_config = {agent}, .policy = dir_.WriteFile("web.hcl", Policy("web", "web"))}),
      IsEmpty());
}

TEST_F(CheckOfFiles, L11_a_pool_is_of_one_harvester_and_of_policies_that_are_enabled) {
  const std::string agent = Agent(Target("same", "HTTP://127.0.0.1:6443/") +
                                  Target("elsewhere", "https://10.0.0.20:6443"));
  const auto shared = [&](const std::string& second) {
    const std::string file = dir_.WriteFile("both.hcl", Policy("web", "web") + second);
    return Shared({.agent_config = {agent}, .policy = file, .policy_name = "web"}).size();
  };
  EXPECT_EQ(shared(Policy("b", "web")), 1U);
  EXPECT_EQ(shared(Policy("b", "web", "same")), 1U);
  EXPECT_EQ(shared(Policy("b", "web", "elsewhere")), 0U);
  EXPECT_EQ(shared(Policy("b", "web", "harvester", "false")), 0U);
  EXPECT_EQ(shared(Policy("b", "db")), 0U);
}

TEST_F(CheckOfFiles, L11_two_targets_with_one_kubeconfig_are_of_one_harvester) {
  const std::string kubeconfig =
      dir_.WriteFile("kubeconfig",
                     "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
                     "clusters: [{name: c, cluster: {server: 'http://10.0.0.1:6443'}}]\n"
                     "users: [{name: u, user: {token: t}}]\n");
  const auto target = [&](const std::string& name) {
    return "target \"" + name +
           "\" {\n  driver = \"harvester\"\n  config = {\n    harvester_kubeconfig = \"" +
           kubeconfig + "\"\n  }\n}\n";
  };
  const std::string agent = Agent(target("one") + target("two"));
  const std::string file =
      dir_.WriteFile("both.hcl", Policy("web", "web", "one") + Policy("b", "web", "two"));
  EXPECT_THAT(Shared({.agent_config = {agent}, .policy = file, .policy_name = "web"}), SizeIs(1));
}

TEST(CheckCommand, C15_a_nomad_that_does_not_tell_its_keys_may_be_the_pools) {
  CheckedPool world;
  ASSERT_TRUE(world.cluster().PutObject(VmMadeAt(1, simulator::kFirstNomadKey)));
  world.Answer("get", "jwks.json", 403, "no", simulator::System::kNomad);
  EXPECT_THAT(world.Lines("fail"),
              ElementsAre(HasSubstr(
                  "this one does not tell its keys: let /.well-known/jwks.json through")));
}

TEST(CheckCommand, an_error_of_the_system_itself_is_no_wrong_address) {
  CheckedPool world;
  world.Answer("", "nodes", 500, "No cluster leader", simulator::System::kNomad);
  EXPECT_THAT(world.Ids("fail"), ElementsAre("nomad.address"));
  EXPECT_THAT(world.out(), AllOf(HasSubstr("No cluster leader"), HasSubstr("nomad server members"),
                                 Not(HasSubstr("another server"))));
}

TEST(CheckCommand, an_answer_for_which_no_address_is_to_blame_has_a_cure_of_its_own) {
  for (const auto& [status, cure] :
       {std::pair(429, "-> it limits how much is asked"), std::pair(407, "-> a proxy wants")}) {
    CheckedPool world;
    world.cluster().SetFaultHook([status = status](const simulator::RequestInfo&) {
      return simulator::Fault::Answer(status, "later");
    });
    EXPECT_THAT(world.Lines("fail"),
                ElementsAre(AllOf(StartsWith("harvester.address "), HasSubstr(cure)),
                            AllOf(StartsWith("nomad.address "), HasSubstr(cure))));
  }
}

TEST(CheckCommand, that_is_interrupted_shows_no_result) {
  CheckedPool world;
  const runtime::CancelSource work(runtime::Context::Background(world.clock()));
  world.cluster().SetFaultHook([&](const simulator::RequestInfo&) {
    work.Cancel(runtime::CancelReason::kShutdown);
    return simulator::Fault::None();
  });
  world.Check(work.context());
  EXPECT_EQ(world.out(), "nomad-harvester check: interrupted\n");
}

TEST(CheckCommand, writes_nothing_but_reviews_and_the_dry_run) {
  CheckedPool world({{"nomad_intro_token", "required"},
                     {"user_data", "#cloud-config\n# {{nomad_intro_token}}\n"}});
  EXPECT_EQ(world.Check(), 0) << world.out();
  EXPECT_EQ(world.cluster().EffectCount(), 0);
  EXPECT_EQ(world.cluster().RequestCount(simulator::System::kHarvester, "try", "virtualmachines"),
            1);
  EXPECT_THAT(world.out(), Not(HasSubstr("secret-of")));
}

using simulator::Cluster;

// A precondition.
struct Broken {
  std::string name;
  Values values;
  std::function<void(Cluster&)> breaks;  // null: the values do
  std::string id;                        // of the only line that fails
  std::string object;
  std::string cure;
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class CheckFails : public testing::TestWithParam<Broken> {};

TEST_P(CheckFails, with_one_line_that_names_object_and_cure) {
  const Broken& broken = GetParam();
  CheckedPool world(broken.values);
  if (broken.breaks) broken.breaks(world.cluster());
  EXPECT_EQ(world.Check(), 1);
  EXPECT_THAT(world.Lines("fail"),
              ElementsAre(AllOf(StartsWith(broken.id + " "), HasSubstr(broken.object),
                                ContainsRegex(" -> .*"), HasSubstr(broken.cure))));
  EXPECT_FALSE(json::parse(world.out())["ok"].get<bool>());
  EXPECT_EQ(world.cluster().EffectCount(), 0);
}

json Quota(const char* hard, const char* used) {
  return {{"apiVersion", "v1"},
          {"kind", "ResourceQuota"},
          {"metadata", {{"namespace", "nomad"}, {"name", "small"}}},
          {"spec", {{"hard", {{"limits.cpu", hard}}}}},
          {"status", {{"hard", {{"limits.cpu", hard}}}, {"used", {{"limits.cpu", used}}}}}};
}

constexpr char kDenial[] =
    "admission webhook \"policy.example\" denied the request: label team is missing";

// Refuses the trial creation of such an object.
std::function<simulator::Fault(const simulator::RequestInfo&)> Denies(const std::string& resource,
                                                                      const std::string& message) {
  return [=](const simulator::RequestInfo& request) {
    if (request.resource != resource || request.verb != "try") return simulator::Fault::None();
    return simulator::Fault::Answer(403, json({{"kind", "Status"},
                                               {"apiVersion", "v1"},
                                               {"status", "Failure"},
                                               {"reason", "Forbidden"},
                                               {"code", 403},
                                               {"message", message}})
                                             .dump());
  };
}

INSTANTIATE_TEST_SUITE_P(
    EachPrecondition, CheckFails,
    testing::Values(
        Broken{"no_namespace",
               {{"namespace", "nowhere"}},
               nullptr,
               "harvester.namespace",
               "namespace nowhere: it does not exist",
               "kubectl create namespace nowhere"},
        Broken{"no_namespace_that_may_be_read",
               {{"namespace", "nowhere"}},
               [](Cluster& cluster) { cluster.Forbid("get", "namespaces"); },
               "harvester.namespace",
               "namespace nowhere: it does not exist",
               "kubectl create namespace nowhere"},
        Broken{"no_image",
               {{"image", "default/none"}},
               nullptr,
               "harvester.image",
               "image default/none: image: ",
               "correct the key image"},
        Broken{"an_image_that_is_not_imported",
               {},
               [](Cluster& cluster) { cluster.SetImageReady("default/ubuntu-24.04", false); },
               "harvester.image",
               "image default/ubuntu-24.04: ",
               "wait for its import"},
        Broken{"an_image_that_may_not_be_read",
               {},
               [](Cluster& cluster) {
                 cluster.Forbid("get", "virtualmachineimages");
                 cluster.Forbid("list", "virtualmachineimages");
               },
               "harvester.image",
               "the token may not read it",
               "grant get and list on virtualmachineimages"},
        Broken{"no_network",
               {{"networks", "default/none"}},
               nullptr,
               "harvester.networks",
               "networks default/none: ",
               "correct the key networks"},
        Broken{"no_key_pair",
               {{"ssh_keys", "default/none"}},
               nullptr,
               "harvester.ssh_keys",
               "key pairs default/none: ",
               "correct the key ssh_keys"},
        Broken{"no_storage_class",
               {{"data_disks", "1Gi@none"}},
               nullptr,
               "harvester.storage_classes",
               "none",
               "create it"},
        Broken{"no_priority_class",
               {{"priority_class", "none"}},
               nullptr,
               "harvester.priority_class",
               "priority class none: ",
               "create it"},
        Broken{"no_template",
               {{"vm_template", "default/none"}},
               nullptr,
               "harvester.vm_template",
               "VM template default/none: ",
               "virtualmachinetemplates"},
        Broken{"no_file_of_user_data",
               {{"user_data_file", "/nowhere/cloud-init.yaml"}},
               nullptr,
               "harvester.templates",
               "/nowhere/cloud-init.yaml",
               "where the agent runs"},
        Broken{"no_device",
               {{"host_devices", "nvidia.com/none"}},
               nullptr,
               "harvester.devices",
               "no host offers 1 of nvidia.com/none",
               "enable the device"},
        Broken{"a_quota_that_refuses",
               {},
               [](Cluster& cluster) { cluster.SetQuotaExceeded("cpu insufficient resources"); },
               "harvester.dry_run",
               "cpu insufficient resources",
               "raise the quota"},
        Broken{"a_namespace_that_ends",
               {},
               [](Cluster& cluster) {
                 cluster.SetFaultHook(Denies("virtualmachines",
                                             "unable to create new content in namespace nomad "
                                             "because it is being terminated"));
               },
               "harvester.dry_run",
               "being terminated",
               "wait until the namespace is gone"},
        Broken{"an_admission_webhook_that_denies_secrets",
               {},
               [](Cluster& cluster) { cluster.SetFaultHook(Denies("secrets", kDenial)); },
               "harvester.dry_run dry run of a VM's Secret:",
               "label team is missing",
               "change what refuses it"},
        Broken{"an_admission_webhook_that_answers_403",
               {},
               [](Cluster& cluster) { cluster.SetFaultHook(Denies("virtualmachines", kDenial)); },
               "harvester.dry_run",
               "label team is missing",
               "change what Harvester names"},
        Broken{"user_data_with_a_misspelt_header",
               {{"user_data", "#cloudconfig\nhostname: x\n"}},
               nullptr,
               "harvester.templates",
               "user_data: cloud-init does not run it",
               "where the agent runs"},
        Broken{"no_room",
               {},
               [](Cluster& cluster) { cluster.PutObject(Quota("4", "4")); },
               "harvester.quota",
               "room for 0 more VMs",
               "raise the quota"},
        Broken{
            "no_host_that_could_hold_a_vm",
            {},
            [](Cluster& cluster) { cluster.PutObject(support::HostWith("harvester-1", "512Mi")); },
            "harvester.room",
            "no host could hold a VM, even if it were empty: host "
            "harvester-1 has 512 MiB of memory",
            "lower what a VM asks for"},
        Broken{"no_node_write",
               {},
               [](Cluster& cluster) { cluster.DenyNodeWrite(true); },
               "nomad.rights.node_write",
               "node:write: ",
               "node { policy = \"write\" }"},
        Broken{"no_read_job",
               {},
               [](Cluster& cluster) { cluster.DenyReadJob(true); },
               "nomad.rights.read_job",
               "least_busy refuses",
               "read-job"},
        Broken{"no_list_jobs",
               {{"scale_in_fit", "require"}},
               [](Cluster& cluster) { cluster.DenyListJobs(true); },
               "nomad.rights.list_jobs",
               "list-jobs: the token's policies do not grant it for every namespace: "
               "scale_in_fit \"require\" refuses",
               "[\"read-job\", \"list-jobs\"]"},
        Broken{"harvester_is_out_of_reach",
               {},
               [](Cluster& cluster) { cluster.SetHarvesterReachable(false); },
               "harvester.address",
               "Harvester's URL: http://127.0.0.1:6443: ",
               "correct harvester_url"},
        Broken{"no_such_region",
               {{"nomad_region", "eu"}},
               nullptr,
               "nomad.address",
               "No path to region",
               "correct nomad_region (or NOMAD_REGION)"},
        Broken{"nomad_is_out_of_reach",
               {},
               [](Cluster& cluster) { cluster.SetNomadReachable(false); },
               "nomad.address",
               "Nomad's address: http://127.0.0.1:4646: ",
               "correct nomad_address"}),
    [](const testing::TestParamInfo<Broken>& row) { return row.param.name; });

simulator::Options WithTokens(const std::string& kube, const std::string& nomad) {
  simulator::Options options = NewestNomad();
  options.kube_token = kube;
  options.nomad_token = nomad;
  return options;
}

TEST(CheckCommand, names_the_credential_that_harvester_does_not_accept) {
  CheckedPool world({}, WithTokens("another", ""));
  EXPECT_EQ(world.Check(), 1);
  EXPECT_THAT(world.out(), AllOf(HasSubstr("FAIL     Harvester's token: not accepted: the token of "
                                           "auth_token or HARVESTER_TOKEN: "),
                                 ContainsRegex("skip     Harvester's version, namespace nomad, "
                                               ".* more: Harvester does not accept the token\n"),
                                 HasSubstr("ok       Nomad's token"), Not(HasSubstr("secret-of"))));
}

TEST(CheckCommand, calls_no_credential_accepted_that_is_not_sent) {
  const support::ScopedTempDir dir;
  const std::string kubeconfig =
      dir.WriteFile("kubeconfig",
                    "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
                    "clusters: [{name: c, cluster: {server: 'http://10.0.0.1:6443'}}]\n"
                    "users: [{name: u, user: {token: t}}]\n");
  const Values values = {{"auth_token", ""}, {"harvester_kubeconfig", kubeconfig}};
  CheckedPool open(values);
  open.Check();
  EXPECT_THAT(open.out(),
              HasSubstr("ok       Harvester's token: none is sent, and none is needed\n"));
  CheckedPool closed(values, WithTokens("another", ""));
  EXPECT_EQ(closed.Check(), 1);
  EXPECT_THAT(closed.out(),
              AllOf(HasSubstr("not accepted: no credentials, since none are set for this server: "),
                    HasSubstr("-> set auth_token_file, or a kubeconfig of the server"),
                    Not(HasSubstr("renew"))));
}

TEST(CheckCommand, names_the_credential_that_nomad_does_not_accept) {
  CheckedPool world({}, WithTokens("", "another"));
  EXPECT_THAT(world.Ids("fail"), ElementsAre("nomad.token"));
  EXPECT_THAT(world.out(),
              AllOf(HasSubstr("not accepted: the token of nomad_token or NOMAD_TOKEN: "),
                    Not(HasSubstr("secret-"))));
}

TEST(CheckCommand, of_a_system_out_of_reach_skips_what_depends_on_it_and_checks_the_other) {
  CheckedPool world;
  world.cluster().SetHarvesterReachable(false);
  EXPECT_EQ(world.Check(), 1);
  EXPECT_THAT(
      world.out(),
      AllOf(ContainsRegex("\nskip     Harvester's token, Harvester's version, namespace nomad, "
                          "rights to observe, rights to grow and [0-9]+ more: Harvester "
                          "cannot be reached\n"),
            HasSubstr("ok       Nomad's token"), HasSubstr("ok       node:write")));
  const std::string text = world.out();
  EXPECT_EQ(text.find("Harvester cannot be reached"), text.rfind("Harvester cannot be reached"))
      << "a system is one line, whatever depends on it";
  EXPECT_GT(world.Ids("skipped").size(), 10U) << "a program reads each";
}

TEST(CheckCommand, colours_what_fails_and_warns_on_a_terminal_that_has_colours) {
  CheckedPool world({{"image", "default/none"}}, simulator::Options());
  world.Check("table", {.colour = true});
  EXPECT_THAT(world.out(),
              AllOf(HasSubstr("\n\x1b[31mFAIL\x1b[0m     image default/none"),
                    HasSubstr("\x1b[33mwarn\x1b[0m     "), Not(HasSubstr("\x1b[31mok"))));
  world.Check();
  EXPECT_THAT(world.out(), Not(HasSubstr("\x1b")));
}

TEST(CheckCommand, of_a_ca_that_is_missing_fails_and_checks_everything_else) {
  FileSettings files{.plugin = {{"harvester_ca_cert", "/nowhere/ca.pem"}},
                     .origins = {{"harvester_ca_cert", "agent.hcl:9:5"}}};
  CheckedPool world({{"nomad_ca-path", "/nowhere/cas"}}, NewestNomad(), files);
  EXPECT_EQ(world.Check(), 1);
  EXPECT_THAT(world.out(),
              AllOf(HasSubstr("FAIL     harvester_ca_cert: no such file: /nowhere/ca.pem "
                              "(agent.hcl:9:5); checked without it\n"),
                    HasSubstr("FAIL     nomad_ca-path: no such file: /nowhere/cas; "),
                    HasSubstr("ok       Harvester's token"), HasSubstr("ok       Nomad's token")));
  EXPECT_THAT(world.Ids("fail"), ElementsAre("files.ca", "files.ca"));
}

TEST(CheckCommand, looks_for_the_plugin_where_the_agents_file_says_it_is) {
  const support::ScopedTempDir dir;
  const auto line = [&](const std::string& path) {
    CheckedPool world({}, NewestNomad(), {.plugin_dir = {.path = path, .where = "agent.hcl:6:1"}});
    EXPECT_EQ(world.Check(), 0) << "the agent may run elsewhere";
    const std::string& out = world.out();
    return out.substr(0, out.find("Harvester's URL") - std::string("ok       ").size());
  };
  const std::string where = "plugin_dir (agent.hcl:6:1): ";
  const std::string& there = dir.path();
  const std::string executable = dir.Path("harvester");
  const std::string cure =
      "\n         -> put the plugin's executable there, where the agent runs, or correct "
      "plugin_dir\n";
  EXPECT_EQ(line(there + "/none"), "warn     " + where + "there is no directory " + there +
                                       "/none, where the agent looks for the plugin" + cure);
  EXPECT_EQ(line(there), "warn     " + where + "there is no file " + executable +
                             ", where the agent looks for the plugin" + cure);
  dir.WriteFile("harvester", "");
  EXPECT_EQ(line(there), "warn     " + where + executable +
                             " may be executed by nobody\n         -> chmod 755 " + executable +
                             "\n");
  std::filesystem::permissions(executable, std::filesystem::perms::owner_all);
  EXPECT_EQ(line(there),
            "warn     " + where + executable + " is not an executable of Linux" + cure);
  dir.WriteFile("harvester",
                "\x7f"
                "ELF");
  EXPECT_EQ(line(there), "ok       " + where + "has the executable harvester\n");
  std::filesystem::remove(executable);
  std::filesystem::create_directory(executable);
  EXPECT_EQ(line(there), "warn     " + where + executable + " is not a file" + cure);
  std::filesystem::remove(executable);
  std::filesystem::create_symlink(executable, executable);
  EXPECT_EQ(line(there), "unknown  " + where + "cannot look at " + executable +
                             ": Too many levels of symbolic links\n         -> run it as the "
                             "agent's user, where the agent runs\n");
}

TEST(CheckCommand, warns_of_what_the_agent_may_look_for_elsewhere) {
  FileSettings files{.plugin_dir = {.where = "agent.hcl"},
                     .policy_dir_doubt = "agent.hcl has no policy.dir"};
  const auto warned = [&] { return CheckedPool({}, NewestNomad(), files).Lines("warn"); };
  EXPECT_THAT(warned(),
              ElementsAre(StartsWith("files.plugin_dir the agent's files: agent.hcl has no "
                                     "plugin_dir: the agent looks for the plugin in ./plugins"),
                          StartsWith("files.policy_dir the agent's files: agent.hcl has no "
                                     "policy.dir -> set dir in the block policy")));
  files.plugin_dir = {.path = "plugins", .where = "agent.hcl:6:1"};
  EXPECT_THAT(warned(), Contains(StartsWith("files.relative plugin_dir (agent.hcl:6:1): plugins is "
                                            "relative: the agent looks for it below its working")));
}

TEST(CheckCommand, warns_of_a_relative_path_in_a_file_and_of_none_that_is_set) {
  const FileSettings files{.policy = {{"user_data_file", "cloud-init.yaml"}},
                           .origins = {{"user_data_file", "policy.hcl:9:7"}}};
  const auto relative = [](const Values& changes, const FileSettings& given) {
    auto lines = CheckedPool(changes, NewestNomad(), given).Lines("warn");
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("files.rel"); });
    return lines;
  };
  EXPECT_THAT(relative({{"user_data", ""}}, files),
              ElementsAre(StartsWith("files.relative user_data_file (policy.hcl:9:7): "
                                     "cloud-init.yaml is relative: ")));
  EXPECT_THAT(relative({{"user_data_file", "cloud-init.yaml"}}, {}), IsEmpty());
}

TEST(CheckCommand, warns_of_a_policy_whose_pool_can_have_no_vm) {
  FileSettings files;
  files.limits = {.policy = "policy \"web\" (web.hcl:1:1)", .min = 0, .max = 0};
  CheckedPool world({}, NewestNomad(), files);
  EXPECT_THAT(world.Lines("warn"),
              Contains(StartsWith("policy.max policy \"web\" (web.hcl:1:1): max = 0: the agent "
                                  "removes every VM of its pool")));
}

TEST(CheckCommand, fails_for_a_policy_that_the_agent_does_not_take) {
  FileSettings files{.refusals = {"policy.hcl:4:3: min, 5, is greater than max, 3"}};
  CheckedPool world({}, NewestNomad(), files);
  EXPECT_EQ(world.Check(), 1);
  EXPECT_THAT(world.out(),
              HasSubstr("FAIL     the policy's file: policy.hcl:4:3: min, 5, is greater than max, "
                        "3\n         -> correct it: the agent does not scale by this policy\n"));
  EXPECT_THAT(world.Ids("fail"), ElementsAre("policy.agent"));
}

TEST(CheckCommand, fails_for_a_name_that_no_known_agent_reads) {
  CheckedPool world({}, NewestNomad(), {.unknown = {"agent.hcl:7:1: unknown block quantum_foam"}});
  EXPECT_EQ(world.Check(), 1);
  EXPECT_THAT(world.out(),
              HasSubstr("FAIL     the agent's files: agent.hcl:7:1: unknown block quantum_foam\n"
                        "         -> correct it, unless the agent is newer and knows it\n"));
  EXPECT_THAT(world.Ids("fail"), ElementsAre("files.agent"));
}

MetricQuery QueryOf(const std::string& source, const std::string& driver) {
  return {.policy = "web",
          .from_zero = true,
          .check = {.name = "load", .source = source, .strategy = "target-value"},
          .apm = AgentPlugin{.driver = driver, .args = {"apm"}, .config = {}},
          .apms_are_known = true};
}

// The line about the query of the policy's check.
json LineOf(const MetricQuery& query) {
  CheckedPool world({}, NewestNomad(), {.queries = {query}});
  world.Check("json");
  const json document = json::parse(world.out());
  for (const json& check : document["checks"]) {
    if (check["id"] == "metrics.query") return check;
  }
  return {};
}

TEST(CheckCommand, says_of_a_query_that_only_the_agent_runs_it) {
  MetricQuery query = QueryOf("prom", "prometheus");
  query.apm->config.values["address"] = "http://prometheus.test:9090";
  EXPECT_EQ(LineOf(query), (json{{"id", "metrics.query"},
                                 {"subject", "check \"load\" of policy \"web\""},
                                 {"outcome", "unknown"},
                                 {"text",
                                  "only the agent asks its source \"prom\" (driver "
                                  "prometheus)"},
                                 {"cure", ""}}));
}

TEST(CheckCommand, fails_for_a_query_to_a_prometheus_without_an_address) {
  const json line = LineOf(QueryOf("prom", "prometheus"));
  EXPECT_EQ(line["outcome"], "fail");
  EXPECT_EQ(line["text"], "the apm block \"prom\" has no address");
}

TEST(CheckCommand, fails_for_a_query_to_a_source_that_the_agent_does_not_have) {
  MetricQuery query = QueryOf("prom", "prometheus");
  query.apm.reset();
  query.instead = "; did you mean prometheus?";
  EXPECT_EQ(LineOf(query)["outcome"], "fail");
  EXPECT_EQ(
      LineOf(query)["text"],
      "the agent's configuration has no apm block \"prom\", which is its source; did you mean "
      "prometheus?");
  query.apms_are_known = false;
  EXPECT_EQ(LineOf(query)["outcome"], "unknown");
  EXPECT_THAT(LineOf(query)["cure"].get<std::string>(), HasSubstr("--agent-config"));
}

TEST(CheckCommand, warns_of_a_pool_of_zero_vms_that_scales_by_nomads_own_data) {
  MetricQuery query = QueryOf("nomad-apm", "nomad-apm");
  EXPECT_EQ(LineOf(query)["outcome"], "warn");
  EXPECT_THAT(LineOf(query)["text"].get<std::string>(), HasSubstr("raises min to 1"));
  query.check.strategy = "fixed-value";
  EXPECT_EQ(LineOf(query)["outcome"], "warn") << "min is raised whatever the strategy is";
  query.from_zero = false;
  EXPECT_EQ(LineOf(query)["outcome"], "pass");
}

TEST(CheckCommand, an_apm_whose_driver_is_not_in_the_plugin_directory_fails) {
  const support::ScopedTempDir dir;
  FileSettings files{.queries = {QueryOf("demand", "harvestr")},
                     .plugin_dir = {.path = dir.path(), .where = "agent.hcl:1:1"}};
  files.queries.front().from_zero = false;
  CheckedPool world({}, NewestNomad(), files);
  EXPECT_THAT(world.Ids("fail"), testing::Contains("metrics.query"));
  EXPECT_THAT(world.out(), HasSubstr("did you mean driver = \\\"harvester\\\"?"));
  for (const char* const driver : {"prometheus", "datadog"}) {
    files.queries.front().apm->driver = driver;
    files.queries.front().apm->config.values = {{"address", "http://prometheus"}};
    CheckedPool built_in({}, NewestNomad(), files);
    EXPECT_THAT(built_in.Ids("fail"), testing::Not(testing::Contains("metrics.query"))) << driver;
  }
}

// A check that asks this plugin.
MetricQuery DemandQuery(const std::string& query) {
  MetricQuery made = QueryOf("demand", "harvester");
  made.check.query = query;
  made.check.strategy = "pass-through";
  made.check.where = "web.hcl:9:5";
  return made;
}

TEST(CheckCommand, D4_fails_for_an_apm_whose_token_lacks_a_right_without_which_it_answers_nothing) {
  CheckedPool world({{"node_selector_strategy", "empty_ignore_system"}}, NewestNomad(),
                    {.queries = {DemandQuery("nodes-needed node_class=web")}});
  EXPECT_EQ(world.Check(), 0);
  EXPECT_THAT(world.out(), HasSubstr("ok       rights of the apm block \"harvester\": "));
  world.cluster().DenyListJobs(true);
  EXPECT_THAT(world.Ids("fail"), ElementsAre("metrics.rights"));
  world.Check();
  EXPECT_THAT(world.out(),
              AllOf(HasSubstr("lacks the capability list-jobs in some namespaces"),
                    HasSubstr("-> grant node { policy = \"read\" } and namespace \"*\" { "
                              "capabilities = [\"read-job\", \"list-jobs\"] } to the token")));
  world.cluster().DenyListJobs(false);
  world.cluster().DenyReadJob(true);
  world.Check();
  EXPECT_THAT(world.out(), HasSubstr("lacks the capability read-job in some namespaces"));
}

TEST(CheckCommand, compares_the_nodes_of_a_query_with_those_of_the_target_block) {
  json line = LineOf(DemandQuery("nodes-needed node_class=batch"));
  EXPECT_EQ(line["outcome"], "fail");
  EXPECT_EQ(line["text"],
            "its query counts nodes with node_class=batch, but the target block scales nodes with "
            "node_class=web");
  EXPECT_THAT(line["cure"].get<std::string>(), HasSubstr("the same node_class"));
  EXPECT_EQ(LineOf(DemandQuery("nodes-needed node_class=web datacenter=dc1"))["outcome"], "warn");
  EXPECT_EQ(LineOf(DemandQuery("nodes-needed node_class=web"))["outcome"], "pass");
}

TEST(CheckCommand, D7_fails_for_a_query_that_needs_harvester_if_the_apm_block_has_no_connection) {
  MetricQuery query = DemandQuery("overflow node_class=web namespace=nomad pool=home max=3");
  EXPECT_EQ(LineOf(query)["outcome"], "fail");
  EXPECT_THAT(LineOf(query)["cure"].get<std::string>(), HasSubstr("add harvester_url"));
  query.apm->config.values["harvester_url"] = "https://harvester:6443";
  EXPECT_EQ(LineOf(query)["outcome"], "pass");
  query.check.query = "room namespace=nomad pool=home";
  EXPECT_EQ(LineOf(query)["outcome"], "warn") << "it is no count";
}

TEST(CheckCommand, D6_reads_the_pool_of_a_query_that_asks_harvester) {
  const auto lines = [](const std::string& outcome, const std::string& max, bool cut) {
    MetricQuery query = DemandQuery("overflow node_class=web namespace=nomad pool=home max=" + max);
    query.apm->config.values["harvester_url"] = "https://harvester:6443";
    query.check.source = "harvester";
    CheckedPool world({{"node_selector_strategy", "empty_ignore_system"}}, NewestNomad(),
                      {.queries = {query}});
    world.cluster().SetHarvesterReachable(!cut);
    return world.Lines(outcome);
  };
  EXPECT_THAT(lines("warn", "3", false),
              ElementsAre(AllOf(StartsWith("metrics.rights pool nomad/home, for the apm block "),
                                HasSubstr("pool nomad/home has no VM yet"))));
  EXPECT_THAT(lines("warn", "0", false), IsEmpty()) << "it is not read";
  EXPECT_THAT(lines("fail", "3", true), Contains(StartsWith("metrics.rights pool nomad/home, ")));
}

TEST(CheckCommand, warns_if_the_query_of_another_policy_may_count_the_same_nodes) {
  const auto same_nodes = [](const std::string& other_query) {
    MetricQuery other = DemandQuery(other_query);
    other.policy = "batch";
    other.check.where = "batch.hcl:8:5";
    CheckedPool world(
        {{"node_selector_strategy", "empty_ignore_system"}}, NewestNomad(),
        {.queries = {DemandQuery("nodes-needed node_class=web")}, .other_queries = {other}});
    return world.Lines("warn");
  };
  EXPECT_THAT(
      same_nodes("nodes-needed node_class=web datacenter=dc1"),
      ElementsAre(HasSubstr(
          ": its query (web.hcl:9:5) and that of check \"load\" of policy \"batch\" "
          "(batch.hcl:8:5) may count the same nodes: both pools then grow for one job ->")));
  EXPECT_THAT(same_nodes("nodes-needed node_class=batch"), IsEmpty());
}

TEST(CheckCommand, warns_if_a_pool_with_the_count_from_the_work_may_drain_nodes_with_work) {
  MetricQuery query = DemandQuery("nodes-needed node_class=web");
  CheckedPool world({}, NewestNomad(), {.queries = {query}});
  EXPECT_EQ(world.Check(), 0);
  EXPECT_THAT(world.out(),
              HasSubstr("warn     node_selector_strategy: least_busy may drain a node with work "
                        "while idle ones stay"));
  EXPECT_THAT(world.out(), HasSubstr("-> node_selector_strategy = \"empty_ignore_system\""));
  EXPECT_THAT(world.Ids("warn"), ElementsAre("policy.selector"));
  CheckedPool right({{"node_selector_strategy", "empty_ignore_system"}}, NewestNomad(),
                    {.queries = {query}});
  EXPECT_THAT(right.Ids("warn"), ElementsAre());
}

TEST(CheckCommand, fails_for_an_apm_block_with_which_the_agent_does_not_start) {
  MetricQuery query = DemandQuery("nodes-needed node_class=web");
  EXPECT_EQ(LineOf(query)["outcome"], "pass");
  query.apm->config.values["request_timeot"] = "3s";
  EXPECT_EQ(LineOf(query)["outcome"], "fail");
  EXPECT_THAT(LineOf(query)["text"].get<std::string>(), HasSubstr("did you mean request_timeout?"));
  query.apm->args = {"amp"};
  EXPECT_EQ(LineOf(query)["outcome"], "fail");
  EXPECT_EQ(LineOf(query)["cure"], "args = [\"apm\"]");
}

TEST(CheckCommand, passes_for_a_fixed_value_because_the_agent_asks_no_source) {
  MetricQuery query = QueryOf("prom", "prometheus");
  query.check.strategy = "fixed-value";
  query.apm.reset();
  EXPECT_EQ(LineOf(query)["outcome"], "pass");
  query.apms_are_known = false;
  EXPECT_EQ(LineOf(query)["outcome"], "pass");
}

// Of a server of its own at `url`, by real connections.
std::string CheckOfServer(const std::string& url, const Values& tls) {
  std::vector<std::string> pairs = {
      "harvester_url=" + url, "nomad_address=" + url, "node_group_name=web", "node_class=web",
      "image=default/a",      "cpu_request=1",        "memory_request=1Gi",  "networks=management"};
  for (const auto& [key, value] : tls) pairs.push_back(key + "=" + value);
  const auto settings = ReadSettings(pairs, {}, PolicyUse::kWhole, {});
  EXPECT_TRUE(settings.ok()) << settings.status();
  const auto config = std::make_shared<config::PluginConfig>(settings->plugin);
  auto transports = scaling::MakeCurlTransports(*config);
  EXPECT_TRUE(transports.ok()) << transports.status();
  const auto clock = runtime::MakeSystemClock();
  support::InlineExecutor executor;
  scaling::MaintenanceOptions options;
  options.clock = clock.get();
  options.random = support::MakeSeededRandom(2);
  options.executor = &executor;
  options.holder = "operator";
  const scaling::Maintenance maintenance(
      options,
      scaling::MakeClients(config, *std::move(transports), options.random, options.logger));
  std::ostringstream out;
  EXPECT_EQ(RunCheck(maintenance, runtime::Context::Background(*clock), *settings, "table", out),
            kExitFailure);
  return out.str();
}

TEST(CheckCommand, of_a_tls_that_fails_names_the_cure_of_what_failed) {
  const http::TestCa ca;
  const http::PemPair own = ca.Issue("IP:127.0.0.1");
  const http::PemPair stranger = http::TestCa("other").Issue("DNS:client");
  const http::LoopbackServer server(http::ServerReply(), {.tls = own, .client_ca_pem = ca.pem()});
  const support::ScopedTempDir dir;
  const std::string ca_file = dir.WriteFile("ca.pem", ca.pem());
  const std::string other_ca = dir.WriteFile("other.pem", http::TestCa("other").pem());
  const std::string certificate = dir.WriteFile("cert.pem", stranger.certificate);
  const std::string key = dir.WriteFile("key.pem", stranger.key);
  EXPECT_THAT(CheckOfServer(server.url(), {{"harvester_ca_cert", ca_file},
                                           {"harvester_client_cert", certificate},
                                           {"harvester_client_key", key},
                                           {"nomad_ca-cert", ca_file},
                                           {"nomad_client-cert", certificate},
                                           {"nomad_client-key", key}}),
              AllOf(HasSubstr("-> give a certificate that Harvester accepts with its own key"),
                    HasSubstr("-> give a certificate that Nomad accepts with its own key")));
  EXPECT_THAT(
      CheckOfServer(server.url(), {{"harvester_ca_cert", other_ca}, {"nomad_ca-cert", other_ca}}),
      AllOf(HasSubstr("-> name the CA that signed the certificate in harvester_ca_cert"),
            HasSubstr("-> name the CA that signed Nomad's certificate in nomad_ca-cert")));
}

TEST(CheckCommand, of_another_server_at_an_address_names_the_address_and_no_firewall) {
  const http::LoopbackServer login(http::ServerReply{.headers = {{"Content-Type", "text/html"}},
                                                     .body = "<html><title>Login</title></html>"});
  EXPECT_THAT(CheckOfServer(login.url(), {}),
              AllOf(HasSubstr("FAIL     Harvester's URL: "), HasSubstr("the reply is an HTML page"),
                    HasSubstr("-> harvester_url must be the base URL of the Kubernetes API"),
                    HasSubstr("-> nomad_address must be the base address of a Nomad agent"),
                    Not(HasSubstr("syntax error")), Not(HasSubstr("firewall"))));
}

TEST(CheckCommand, of_two_systems_that_hang_ends_within_the_budget) {
  CheckedPool world;
  world.cluster().SetFaultHook(
      [](const simulator::RequestInfo&) { return simulator::Fault::Delay(std::chrono::hours(1)); });
  const base::MonoTime began = world.clock().Now();
  EXPECT_THAT(world.Ids("fail"), ElementsAre("harvester.address", "nomad.address"));
  EXPECT_LE(world.clock().Now() - began, kOperatorBudget);
  EXPECT_GT(world.clock().Now() - began, std::chrono::seconds(10));
}

TEST(CheckCommand, of_a_harvester_that_hangs_later_leaves_time_for_nomad) {
  CheckedPool world;
  world.cluster().Refuse({.resource = "virtualmachineimages",
                          .kind = simulator::Refusal::kNone,
                          .takes = std::chrono::hours(1)});
  const base::MonoTime began = world.clock().Now();
  EXPECT_EQ(world.Check(), 1);
  EXPECT_THAT(world.out(), AllOf(HasSubstr("FAIL     image default/ubuntu-24.04: "),
                                 HasSubstr("ok       Nomad's token")));
  EXPECT_LE(world.clock().Now() - began, kOperatorBudget);
}

struct TestedRight {
  const char* verb;
  const char* resource;
  std::vector<std::string> failed;
  std::vector<std::string> warned;
};

TEST(CheckCommand, names_each_right_that_is_missing) {
  const std::string growth = "harvester.rights.growth";
  const std::string removal = "harvester.rights.removal";
  const std::string optional = "harvester.rights.optional";
  const std::vector<TestedRight> rights = {
      {"list", "virtualmachines", {"harvester.rights.status"}, {}},
      {"create", "virtualmachines", {growth}, {}},
      {"get", "virtualmachines", {growth, removal}, {}},
      {"patch", "virtualmachines", {growth, removal}, {}},
      {"delete", "virtualmachines", {growth, removal}, {}},
      {"create", "secrets", {growth}, {}},
      {"get", "secrets", {growth}, {}},
      {"patch", "secrets", {growth}, {}},
      {"list", "secrets", {growth, removal}, {}},
      {"delete", "secrets", {growth, removal}, {}},
      {"list", "persistentvolumeclaims", {growth, removal}, {}},
      {"delete", "persistentvolumeclaims", {growth, removal}, {}},
      {"get", "leases", {"harvester.rights.lease"}, {}},
      {"create", "leases", {"harvester.rights.lease"}, {}},
      {"patch", "leases", {"harvester.rights.lease"}, {}},
      {"list", "leases", {}, {optional}},
      {"get", "virtualmachineinstances", {}, {optional}},
      {"list", "virtualmachineinstances", {}, {optional}},
      {"list", "resourcequotas", {}, {optional}},
      {"list", "events", {}, {optional}},
      {"create", "events", {}, {optional}},
      {"patch", "events", {}, {optional}},
      {"create", "configmaps", {}, {optional}},
      {"patch", "configmaps", {}, {optional}},
      {"get", "configmaps", {}, {optional}},
      {"list", "nodes", {}, {optional}}};
  for (const bool incomplete : {false, true}) {
    for (const TestedRight& right : rights) {
      SCOPED_TRACE(std::string(right.verb) + " " + right.resource);
      CheckedPool world;
      world.cluster().SetRulesIncomplete(incomplete);
      world.cluster().Forbid(right.verb, right.resource);
      EXPECT_EQ(world.Ids("fail"), right.failed);
      EXPECT_EQ(world.Ids("warn"), right.warned);
      EXPECT_THAT(world.out(), HasSubstr(std::string(right.verb) + " " + right.resource));
    }
  }
}

TEST(CheckCommand, C2_warns_of_secrets_in_the_namespace_that_are_no_pools) {
  CheckedPool world;
  const auto put = [&](const std::string& name, const json& labels) {
    ASSERT_TRUE(world.cluster().PutObject(
        {{"apiVersion", "v1"},
         {"kind", "Secret"},
         {"metadata", {{"namespace", "nomad"}, {"name", name}, {"labels", labels}}}}));
  };
  put("nomad-harvester-autoscaler-token", json::object());
  put("web-a-cloudinit", {{"app.kubernetes.io/managed-by", "nomad-harvester-autoscaler"}});
  EXPECT_THAT(world.Lines("warn"), IsEmpty());
  put("database-password", json::object());
  EXPECT_THAT(
      world.Lines("warn"),
      ElementsAre(AllOf(StartsWith("harvester.namespace "), HasSubstr("such as database-password"),
                        HasSubstr("use every ServiceAccount here"),
                        HasSubstr("a namespace that has nothing else"))));
}

TEST(CheckCommand, calls_unknown_what_the_token_may_not_read) {
  CheckedPool world({{"data_disks", "1Gi@harvester-longhorn"},
                     {"priority_class", "system-node-critical"},
                     {"host_devices", "nvidia.com/A10"}});
  for (const char* resource : {"storageclasses", "priorityclasses", "settings", "namespaces"}) {
    world.cluster().Forbid("get", resource);
  }
  world.cluster().Forbid("list", "nodes");
  world.cluster().Forbid("list", "resourcequotas");
  EXPECT_THAT(world.Ids("unknown"),
              ElementsAre("harvester.version", "harvester.storage_classes",
                          "harvester.priority_class", "harvester.devices", "harvester.quota",
                          "harvester.room", "nomad.nodes", "pool.boot_time"));
  EXPECT_THAT(world.Lines("unknown"),
              Contains(AllOf(StartsWith("harvester.version "),
                             HasSubstr("the token may not read the setting server-version -> grant "
                                       "what Harvester's ClusterRole harvester-authenticated"))));
  EXPECT_THAT(world.Ids("fail"), IsEmpty());
}

TEST(CheckCommand, does_not_know_whether_vms_can_migrate_without_the_list_of_hosts) {
  CheckedPool world;
  world.cluster().Forbid("list", "nodes");
  EXPECT_THAT(
      world.Lines("unknown"),
      Contains(ContainsRegex("^harvester.upgrade .*known: the token may not list nodes ->")));
}

TEST(CheckCommand, C2_says_how_many_more_vms_fit_on_the_hosts) {
  CheckedPool world;
  const auto says = [](const std::string& text) {
    return Contains(StartsWith("harvester.room room on the hosts: " + text));
  };
  world.cluster().PutObject(support::HostWith("harvester-1", "4Gi"));
  EXPECT_THAT(world.Lines("pass"), says("there is room for 3 more VMs: host harvester-1 has "));
  json vm = VmMadeAt(1, simulator::kFirstNomadKey);
  ASSERT_TRUE(world.cluster().PutObject(vm));
  EXPECT_THAT(world.Lines("pass"), says("there is room for 2 more VMs: host harvester-1 has "))
      << "a VM that is to run has no host yet";
  vm["spec"]["runStrategy"] = "Halted";
  ASSERT_TRUE(world.cluster().PutObject(vm));
  EXPECT_THAT(world.Lines("pass"), says("there is room for 3 more VMs: "));
  world.cluster().PutObject(support::HostWith("harvester-1", "1Gi"));
  EXPECT_THAT(world.Lines("warn"),
              says("there is room for no more VM: host harvester-1 has 1 GiB"));
  world.cluster().Forbid("list", "pods", /*cluster_wide=*/true);
  EXPECT_THAT(world.Lines("unknown"),
              says("the token may not list the hosts and the pods of the "));
  EXPECT_THAT(world.Ids("warn"), IsEmpty()) << "the right is optional";
  EXPECT_THAT(world.Ids("fail"), IsEmpty());
}

TEST(CheckCommand, warns_of_a_full_quota_if_the_pool_has_vms) {
  CheckedPool world;
  ASSERT_TRUE(world.cluster().PutObject(VmMadeAt(1, simulator::kFirstNomadKey)));
  ASSERT_TRUE(world.cluster().PutObject(Quota("4", "4")));
  EXPECT_THAT(world.Lines("warn"),
              ElementsAre(AllOf(StartsWith("harvester.quota quota: room for 0 more VMs"),
                                HasSubstr("-> raise the quota"))));
  EXPECT_THAT(world.Ids("fail"), IsEmpty());
}

TEST(CheckCommand, files_a_root_disk_that_is_too_small_under_the_image) {
  CheckedPool world(Values{{"disk_size", "1Mi"}});
  EXPECT_THAT(world.Lines("fail"),
              ElementsAre(ContainsRegex("^harvester.image .*disk_size 1Mi is smaller than")));
}

TEST(CheckCommand, tells_what_keeps_vms_on_their_host) {
  CheckedPool world({{"data_disks", "1Gi@harvester-longhorn:rwo"},
                     {"availability_zones", "a"},
                     {"node_selector", "disk=fast"},
                     {"host_spread", "required"}});
  EXPECT_THAT(
      world.Lines("warn"),
      ElementsAre(AllOf(StartsWith("harvester.upgrade "), HasSubstr(":rwo"),
                        HasSubstr("zone a has no second host"),
                        HasSubstr("node_selector fits no second host"), HasSubstr("host_spread"))));
}

TEST(CheckCommand, wants_a_second_host_that_the_node_selector_fits) {
  for (const auto& [zone, outcome] : Values{{"b", "warn"}, {"a", "pass"}}) {
    simulator::Options options = NewestNomad();
    options.hosts = {{.name = "harvester-1", .zone = "a"}, {.name = "harvester-2", .zone = zone}};
    CheckedPool world({{"node_selector", "topology.kubernetes.io/zone=a"}}, options);
    EXPECT_THAT(world.Ids(outcome), testing::Contains("harvester.upgrade")) << world.out();
  }
}

TEST(CheckCommand, C13_tells_of_a_policy_that_changes_nothing) {
  CheckedPool world(Values{{"dry-run", "true"}});
  EXPECT_THAT(world.Ids("warn"), ElementsAre("pool.dry_run"));
  EXPECT_THAT(world.Ids("fail"), IsEmpty());
}

TEST(CheckCommand, tells_the_faults_of_nomads_version) {
  const std::map<std::string, std::vector<std::string>> faults = {
      {"1.10.5", {"system jobs", "batch job"}}, {"1.11.3", {"batch job"}}, {"2.0.4", {}}};
  for (const auto& [version, texts] : faults) {
    simulator::Options options;
    options.nomad_version = version;
    CheckedPool world({}, options);
    EXPECT_EQ(world.Ids("warn").size(), texts.empty() ? 0U : 1U) << world.out();
    for (const std::string& text : texts) EXPECT_THAT(world.out(), HasSubstr(text)) << version;
    EXPECT_EQ(world.out().find("system jobs") == std::string::npos, version != "1.10.5");
  }
}

TEST(CheckCommand, tells_whether_nomad_has_introduction_tokens_and_makes_none) {
  const Values wants = {{"user_data", "#cloud-config\n# {{nomad_intro_token}}\n"}};
  for (const auto& [mode, outcome] : Values{{"auto", "warn"}, {"required", "fail"}}) {
    Values values = wants;
    values["nomad_intro_token"] = mode;
    CheckedPool old(values, simulator::Options{});
    EXPECT_THAT(old.Ids(outcome), testing::Contains("nomad.introduction_tokens")) << old.out();
    CheckedPool with(values);
    EXPECT_THAT(with.Ids("pass"), AllOf(testing::Contains("nomad.introduction_tokens"),
                                        testing::Contains("pool.token_lifetime")));
    EXPECT_EQ(with.cluster().RequestCount(simulator::System::kNomad, "update", "introduction"), 0);
  }
}

TEST(CheckCommand, C3_tells_that_a_vm_may_boot_for_longer_than_it_has_a_token) {
  CheckedPool world(Values{{"user_data", "#cloud-config\n# {{nomad_intro_token}}\n"},
                           {"nomad_intro_token", "auto"},
                           {"join_timeout", "20m"}});
  EXPECT_THAT(world.Ids("unknown"), testing::Contains("pool.token_lifetime")) << world.out();
}

TEST(CheckCommand, tells_of_nodes_their_volumes_and_a_pool_that_does_not_exist) {
  CheckedPool world(Values{{"node_pool", "gpu"}});
  EXPECT_THAT(world.Ids("warn"), ElementsAre("nomad.node_pool"));
  world.cluster().AddForeignNode({.name = "web-1",
                                  .node_class = "web",
                                  .node_pool = "gpu",
                                  .host_volumes = {{"data", "volume-1"}}});
  EXPECT_THAT(world.Ids("warn"), ElementsAre("pool.host_volumes"));
  EXPECT_THAT(world.out(), HasSubstr("web-1 (data): these VMs are never removed"));
  EXPECT_THAT(world.Ids("pass"),
              AllOf(testing::Contains("nomad.nodes"), testing::Contains("nomad.node_pool")));
}

TEST(CheckCommand, C17_tells_of_a_driver_that_no_node_of_the_pool_has) {
  CheckedPool world(Values{{"ready_drivers", "docker,dokcer"}});
  EXPECT_EQ(world.Check(), 0) << "there is no node";
  EXPECT_THAT(world.out(), HasSubstr("warn     ready_drivers docker, dokcer: the pool has no node "
                                     "that tells its drivers; dokcer: did you mean docker?\n"));
  CheckedPool other(Values{{"ready_drivers", "docker,nvidia"}});
  EXPECT_THAT(other.Ids("unknown"), testing::Contains("pool.ready_drivers"))
      << "a driver that is not known may exist";
  world.cluster().AddForeignNode({.name = "web-1", .node_class = "web"});
  EXPECT_THAT(world.Lines("fail"),
              ElementsAre(AllOf(StartsWith("pool.ready_drivers "),
                                HasSubstr(": dokcer: no node of the pool has it; they have docker, "
                                          "exec: no new VM would become ready ->"))));
}

TEST(CheckCommand, C17_a_driver_that_no_node_has_detected_fails) {
  simulator::Options options = NewestNomad();
  options.client.drivers["podman"] = {.at_first = simulator::DriverHealth::kUndetected,
                                      .trouble = "podman is not running"};
  CheckedPool world(Values{{"ready_drivers", "podman"}}, options);
  world.cluster().AddForeignNode({.name = "web-1", .node_class = "web"});
  EXPECT_THAT(world.Ids("fail"), ElementsAre("pool.ready_drivers"));
}

TEST(CheckCommand, tells_of_clocks_that_differ) {
  for (const auto& [minutes, side] : {std::pair(5, "ahead"), std::pair(-5, "behind")}) {
    CheckedPool world;
    world.cluster().SetClockSkews({std::chrono::minutes(minutes)});
    EXPECT_THAT(world.Lines("warn"),
                ElementsAre(AllOf(StartsWith("clocks "),
                                  HasSubstr("Harvester is 5m0s " + std::string(side)))));
  }
}

TEST(CheckCommand, goes_by_the_servers_of_its_own_region_and_warns_if_user_data_cannot_name_it) {
  CheckedPool world;
  world.cluster().SetFaultHook([](const simulator::RequestInfo& request) {
    if (request.resource != "agent") return simulator::Fault::None();
    const auto server = [](const char* name, const char* region, const char* version) {
      return json{{"Name", name}, {"Tags", {{"region", region}, {"build", version}}}};
    };
    const json reply = {{"ServerRegion", "eu"},
                        {"Members",
                         {server("a.eu", "eu", "2.0.5"), server("b.eu", "eu", "1.11.3"),
                          server("c.eu", "eu", "2.0.4"), server("d.us", "us", "1.9.0")}}};
    return simulator::Fault::Answer(200, reply.dump());
  });
  EXPECT_THAT(
      world.Lines("warn"),
      ElementsAre(AllOf(StartsWith("nomad.nodes region of Nomad: the servers' region is eu, "
                                   "and nomad_region is not set"),
                        HasSubstr("-> set nomad_region (or NOMAD_REGION) to \"eu\"")),
                  StartsWith("nomad.version ")));
  EXPECT_THAT(world.out(), HasSubstr("1.11.3 (b.eu, the oldest of 3 servers)"));
  world.cluster().AddForeignNode({.name = "web-1", .node_class = "web"});
  EXPECT_THAT(world.Ids("warn"), ElementsAre("nomad.version")) << "the pool has a node";
}

TEST(CheckCommand, P3_for_programs_holds_no_secret_either) {
  CheckedPool world({{"image", "default/secret-of-harvester"}, {"node_class", "web"}});
  EXPECT_EQ(world.Check("json"), 1);
  EXPECT_THAT(world.out(), AllOf(HasSubstr("image default/REDACTED"), Not(HasSubstr("secret-of"))));
}

}  // namespace
}  // namespace nomad_harvester::cli
