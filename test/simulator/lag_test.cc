// SPDX-License-Identifier: Apache-2.0
// Reads that lag behind writes, where the real servers allow it.
#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using http::Method;

constexpr char kSecretsPath[] = "/api/v1/namespaces/nomad/secrets";

class LagTest : public SimulatorTest {
 protected:
  std::size_t ItemsOf(const std::string& query) {
    const auto reply = Ask(System::kHarvester, Method::kGet, kSecretsPath + query);
    return json::parse(reply.body)["items"].size();
  }
  void MakeSecret(const std::string& vm) {
    ASSERT_THAT(kube().Create(context_, kube::kSecrets, "nomad", SecretFor(vm)), IsOk());
  }
  std::string AddNode(const std::string& name) {
    NodeSpec spec;
    spec.name = name;
    return cluster().AddForeignNode(spec);
  }
};

TEST_F(LagTest, A_list_from_the_api_servers_cache_shows_what_was) {
  MakeSecret("vm-1");
  cluster().SetListLag(System::kHarvester, seconds(5));
  Wait(seconds(1));
  MakeSecret("vm-2");
  Wait(seconds(4));
  EXPECT_EQ(ItemsOf("?resourceVersion=0"), 1U);
  Wait(seconds(1));
  EXPECT_EQ(ItemsOf("?resourceVersion=0"), 2U);
}

TEST_F(LagTest, A_list_without_a_version_never_lags) {
  cluster().SetListLag(System::kHarvester, minutes(5));
  MakeSecret("vm-1");
  EXPECT_EQ(ItemsOf("?limit=500"), 1U);
  EXPECT_THAT(kube::ListNames(kube(), context_, kube::kSecrets, "nomad")->value, SizeIs(1));
}

TEST_F(LagTest, The_cache_knows_no_pages_and_tells_its_own_version) {
  MakeSecret("vm-1");
  MakeSecret("vm-2");
  cluster().SetListLag(System::kHarvester, seconds(5));
  MakeSecret("vm-3");
  const std::string now = json::parse(
      Ask(System::kHarvester, Method::kGet, kSecretsPath).body)["metadata"]["resourceVersion"];
  const auto reply = Ask(System::kHarvester, Method::kGet,
                         std::string(kSecretsPath) + "?resourceVersion=0&limit=1");
  const json list = json::parse(reply.body);
  EXPECT_THAT(list["items"], SizeIs(2));
  EXPECT_LT(std::stoll(list["metadata"]["resourceVersion"].get<std::string>()), std::stoll(now));
}

TEST_F(LagTest, A_stale_read_of_nomad_shows_what_was_and_says_so) {
  const std::string id = AddNode("a");
  cluster().SetListLag(System::kNomad, seconds(3));
  Wait(seconds(1));
  AddNode("b");
  cluster().SetEligible(id, false);
  Wait(seconds(1));
  const auto stale = Ask(System::kNomad, Method::kGet, "/v1/nodes?stale");
  const auto fresh = Ask(System::kNomad, Method::kGet, "/v1/nodes?stale=false");
  EXPECT_THAT(json::parse(stale.body), SizeIs(1));
  EXPECT_EQ(json::parse(stale.body)[0]["SchedulingEligibility"], "eligible");
  EXPECT_EQ(stale.headers.Find("X-Nomad-LastContact"), "3000");
  EXPECT_THAT(json::parse(fresh.body), SizeIs(2));
  EXPECT_EQ(fresh.headers.Find("X-Nomad-LastContact"), "0");
  EXPECT_LT(std::stoll(*stale.headers.Find("X-Nomad-Index")),
            std::stoll(*fresh.headers.Find("X-Nomad-Index")));
  Wait(seconds(2));
  EXPECT_THAT(json::parse(Ask(System::kNomad, Method::kGet, "/v1/nodes?stale").body), SizeIs(2));
}

TEST_F(LagTest, The_plugins_own_reads_of_nomad_never_lag) {
  cluster().SetListLag(System::kNomad, minutes(5));
  const std::string id = AddNode("a");
  EXPECT_THAT(nomad().ListNodes(context_)->value, SizeIs(1));
  EXPECT_THAT(nomad().GetNode(context_, id), IsOk());
}

TEST_F(LagTest, A_stale_blocking_query_hears_of_a_change_when_its_server_does) {
  const std::string id = AddNode("a");
  const std::string index =
      *Ask(System::kNomad, Method::kGet, "/v1/nodes?stale").headers.Find("X-Nomad-Index");
  cluster().SetListLag(System::kNomad, seconds(3));
  cluster().SetEligible(id, false);
  const auto start = clock_.Now();
  const auto reply = Ask(System::kNomad, Method::kGet, "/v1/nodes?stale&wait=1m&index=" + index);
  EXPECT_EQ(clock_.Now() - start, seconds(3));
  EXPECT_EQ(json::parse(reply.body)[0]["SchedulingEligibility"], "ineligible");
}

}  // namespace
}  // namespace nomad_harvester::simulator
