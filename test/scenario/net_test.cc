// SPDX-License-Identifier: Apache-2.0
//
// The net below the scenarios can fail: each of its checks sees what it is there for.

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/runtime/workers.h"

#include "acts_executor.h"
#include "bystanders.h"
#include "invariants.h"
#include "nlohmann/json.hpp"
#include "support/fake_clock.h"
#include "support/seeded_random.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using nlohmann::json;
using simulator::System;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A cluster without any process of the plugin, watched.
class Net : public ::testing::Test {
 protected:
  Net()
      : random_(support::MakeSeededRandom(1)),
        cluster_(clock_, *random_),
        invariants_(clock_, cluster_),
        bystanders_(clock_, cluster_) {}

  // Sends a request as the plugin would.
  void Send(System system, http::Method method, const std::string& target,
            const json& body = nullptr) {
    http::HttpRequest request;
    request.method = method;
    request.target = target;
    if (!body.is_null()) request.body = base::DumpJson(body);
    request.headers.Set("Content-Type", "application/merge-patch+json");
    const auto reply = cluster_.Serve(runtime::Context::Background(clock_), system, request);
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_EQ(reply->status, 200) << reply->body;
  }
  std::string IdOf(const std::string& node) { return base::GetString(cluster_.Node(node), "ID"); }

  support::FakeClock clock_;
  const std::unique_ptr<runtime::Random> random_;
  simulator::Cluster cluster_;
  Invariants invariants_;
  const Bystanders bystanders_;
};

TEST_F(Net, it_is_silent_while_nothing_happens) {
  clock_.Advance(std::chrono::hours(2));
  EXPECT_THAT(bystanders_.Changes(), IsEmpty());
  EXPECT_THAT(invariants_.violations(), IsEmpty());
  EXPECT_THAT(bystanders_.Without(cluster_.Vms()), IsEmpty());
  EXPECT_THAT(bystanders_.Without(cluster_.Nodes()), IsEmpty());
}

TEST_F(Net, C10_a_volume_or_secret_of_somebody_else_that_is_deleted_is_seen) {
  Send(System::kHarvester, http::Method::kDelete,
       "/api/v1/namespaces/nomad/persistentvolumeclaims/x-disk-0-abc");
  Send(System::kHarvester, http::Method::kDelete, "/api/v1/namespaces/nomad/secrets/x-cloudinit");
  EXPECT_THAT(invariants_.violations(),
              ElementsAre(HasSubstr("C10: x-disk-0-abc is deleted, which belongs to no VM"),
                          HasSubstr("C10: x-cloudinit is deleted, which belongs to no VM")));
  EXPECT_THAT(bystanders_.Changes(),
              ::testing::UnorderedElementsAre(
                  "a bystander is gone: PersistentVolumeClaim nomad/x-disk-0-abc",
                  "a bystander is gone: Secret nomad/x-cloudinit"));
}

TEST_F(Net, C10_a_secret_that_is_deleted_while_its_vm_stands_is_seen) {
  Send(System::kHarvester, http::Method::kDelete,
       "/api/v1/namespaces/nomad/secrets/db-k3v9x-cloudinit");
  EXPECT_THAT(invariants_.violations(), ElementsAre(HasSubstr("is deleted while its VM stands")));
}

TEST_F(Net, C4_a_node_that_is_purged_without_a_drain_of_ours_is_seen) {
  Send(System::kNomad, http::Method::kPut, "/v1/node/" + IdOf("metal-1") + "/purge");
  EXPECT_THAT(invariants_.violations(),
              ElementsAre(HasSubstr("C4: a node is purged that no drain of ours named"),
                          HasSubstr("C4: a node is purged that is ready")));
}

TEST_F(Net, C4_a_node_that_is_purged_for_the_pool_of_another_namespace_is_seen) {
  Send(System::kNomad, http::Method::kPut, "/v1/node/" + IdOf("elsewhere-a1b2c") + "/purge");
  EXPECT_THAT(invariants_.violations(),
              ElementsAre(HasSubstr("C4: a node is purged that no drain of ours named")));
}

TEST_F(Net, C9_an_operators_node_that_is_enabled_is_seen) {
  const std::string id = IdOf("metal-1");
  Send(System::kNomad, http::Method::kPut, "/v1/node/" + id + "/eligibility",
       {{"NodeID", id}, {"Eligibility", "eligible"}});
  EXPECT_THAT(invariants_.violations(),
              ElementsAre(HasSubstr("C9: a node is changed whose last drain is not ours")));
  EXPECT_THAT(bystanders_.Changes(),
              ElementsAre(HasSubstr("a bystander was changed: node metal-1")));
}

TEST_F(Net, C9_an_operators_drain_that_is_cancelled_is_seen) {
  const std::string id = IdOf("metal-2");
  Send(System::kNomad, http::Method::kPut, "/v1/node/" + id + "/drain",
       {{"NodeID", id}, {"DrainSpec", nullptr}, {"MarkEligible", false}});
  EXPECT_THAT(invariants_.violations(),
              ElementsAre(HasSubstr("C9: a node is changed whose last drain is not ours")));
}

TEST_F(Net, I1_a_vm_of_another_namespace_that_is_changed_is_seen) {
  Send(System::kHarvester, http::Method::kPatch,
       "/apis/kubevirt.io/v1/namespaces/harvester-public/virtualmachines/elsewhere-p7q2d",
       {{"metadata", {{"annotations", {{Key("delete-first"), "true"}}}}}});
  EXPECT_THAT(invariants_.violations(),
              ElementsAre(HasSubstr("I1: an object of another namespace is changed")));
}

// Two requests for each act; returns which act sends which request.
std::vector<std::string> RunActs(const Interleaving& interleaving) {
  support::FakeClock clock;
  ActsExecutor executor(interleaving);
  std::vector<std::string> sent;
  runtime::ForEachBounded(runtime::Context::Background(clock), executor, 3, 3, [&](std::size_t i) {
    for (const char* request : {"read", "write"}) {
      executor.Yield();
      sent.push_back(request + std::to_string(i));
    }
    return absl::OkStatus();
  });
  return sent;
}

TEST(Interleaving, acts_run_one_after_the_other_in_reverse_or_by_a_seed) {
  EXPECT_THAT(RunActs({}), ElementsAre("read0", "write0", "read1", "write1", "read2", "write2"));
  EXPECT_THAT(RunActs({.order = Order::kReversed}),
              ElementsAre("read2", "write2", "read1", "write1", "read0", "write0"));
  bool between = false;
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const std::vector<std::string> sent = RunActs({.order = Order::kShuffled, .seed = seed});
    EXPECT_EQ(sent.size(), 6U);
    between = between || (sent.front() == "read0" && sent[1] != "write0");
  }
  EXPECT_TRUE(between) << "an act runs between the read and the write of another";
}

}  // namespace
}  // namespace nomad_harvester::scenario
