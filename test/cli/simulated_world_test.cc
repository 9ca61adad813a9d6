// SPDX-License-Identifier: Apache-2.0
#include "simulated_world.h"

#include <cstdint>
#include <memory>
#include <string>

#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/nomad/client.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/list_names.h"
#include "nlohmann/json.hpp"
#include "runtime_parts.h"
#include "support/fake_clock.h"
#include "support/recording_sink.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::cli {
namespace {

using support::IsOk;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Key;
using testing::StartsWith;
using testing::UnorderedElementsAre;

TEST(Shield, leaves_out_what_connects_to_real_systems) {
  const config::StringMap shielded = SimulatedWorld::Shield({{"HARVESTER_URL", "https://real"},
                                                             {"HARVESTER_TOKEN", "t"},
                                                             {"HARVESTER_KUBECONFIG", "/k"},
                                                             {"HARVESTER_", "x"},
                                                             {"NOMAD_ADDR", "https://real"},
                                                             {"NOMAD_TOKEN", "t"},
                                                             {"NOMAD_ALLOC_ID", "a"}});
  EXPECT_THAT(shielded, IsEmpty());
}

TEST(Shield, keeps_the_variables_of_templates_and_all_others) {
  const config::StringMap kept = {
      {"HARVESTER_TEMPLATE_KEY", "v"}, {"PATH", "/bin"},       {"TMPDIR", ""},
      {"MY_NOMAD_ADDR", "x"},          {"harvester_url", "x"}, {"NOMADIC", "x"}};
  EXPECT_EQ(SimulatedWorld::Shield(kept), kept);
}

class SimulatedWorldTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_THAT(world_.Start(), IsOk()); }
  static std::shared_ptr<http::HttpTransport> Transport(const std::string& url) {
    http::CurlOptions options;
    options.base_url = url;
    auto transport = http::MakeCurlTransport(options);
    EXPECT_THAT(transport, IsOk());
    return *transport;
  }

  const std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  const runtime::Context context_ = runtime::Context::Background(*clock_);
  SimulatedWorld world_;
};

TEST_F(SimulatedWorldTest, the_configuration_leads_to_both_systems) {
  const config::StringMap config = world_.Config();
  EXPECT_THAT(config, UnorderedElementsAre(Key("harvester_url"), Key("nomad_address"),
                                           Key("auth_token"), Key("nomad_token")));
  EXPECT_EQ(config.at("harvester_url"), world_.harvester_url());
  EXPECT_EQ(config.at("nomad_address"), world_.nomad_address());
  EXPECT_THAT(world_.harvester_url(), StartsWith("http://127.0.0.1:"));
  EXPECT_THAT(world_.nomad_address(), StartsWith("http://127.0.0.1:"));
  EXPECT_NE(world_.harvester_url(), world_.nomad_address());
}

TEST_F(SimulatedWorldTest, both_systems_refuse_a_token_that_the_configuration_does_not_have) {
  const auto ask = [&](const std::string& url, const std::string& path, const std::string& header,
                       const std::string& token) {
    http::HttpRequest request;
    request.target = path;
    request.headers.Set(header, token);
    const auto reply = Transport(url)->Send(context_, request);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? reply->status : 0;
  };
  const std::string harvester = world_.harvester_url();
  const std::string nomad = world_.nomad_address();
  EXPECT_EQ(ask(harvester, "/api/v1/nodes", "Authorization", "Bearer wrong"), 401);
  EXPECT_EQ(ask(harvester, "/api/v1/nodes", "Authorization",
                "Bearer " + world_.Config().at("auth_token")),
            200);
  EXPECT_EQ(ask(nomad, "/v1/nodes", "X-Nomad-Token", "wrong"), 403);
  EXPECT_EQ(ask(nomad, "/v1/nodes", "X-Nomad-Token", world_.Config().at("nomad_token")), 200);
}

// "least_busy (152 %)" would puzzle.
TEST(SimulatedWorldsJobs, fit_one_node) {
  support::FakeClock clock;
  const std::unique_ptr<runtime::Random> random = support::MakeSeededRandom(1);
  simulator::Cluster cluster(clock, *random);
  cluster.AddForeignNode({.name = "node"});
  const nlohmann::json room = cluster.Nodes().at(0)["NodeResources"];
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
  for (const simulator::JobSpec& job : SimulatedWorld::Jobs()) {
    cpu += job.count * job.cpu;
    memory += job.count * job.memory_mb;
  }
  EXPECT_LE(cpu, room["Cpu"]["CpuShares"].get<std::int64_t>());
  EXPECT_LE(memory, room["Memory"]["MemoryMB"].get<std::int64_t>());
}

TEST(SimulatedWorldsFailures, a_full_quota_is_an_object_that_can_be_read) {
  const std::unique_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  SimulatedWorld world({.failure = "quota"});
  ASSERT_THAT(world.Start(), IsOk());
  http::CurlOptions options;
  options.base_url = world.harvester_url();
  auto transport = http::MakeCurlTransport(options);
  ASSERT_THAT(transport, IsOk());
  const auto kube = std::make_shared<kube::KubeClient>(*transport);
  const auto quotas =
      kube::ListNames(*kube, runtime::Context::Background(*clock), kube::kResourceQuotas, "nomad");
  ASSERT_THAT(quotas, IsOk());
  EXPECT_THAT(quotas->value, ElementsAre(Field(&kube::Named::name, "default-quota")));
}

TEST_F(SimulatedWorldTest, a_service_takes_the_configuration) {
  RuntimeParts parts(std::make_shared<support::RecordingSink>(), log::Level::kInfo, {});
  const auto service = parts.MakeService();
  EXPECT_THAT(service->SetConfig(world_.Config()), IsOk());
}

}  // namespace
}  // namespace nomad_harvester::cli
