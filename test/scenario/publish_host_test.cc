// SPDX-License-Identifier: Apache-2.0
//
// publish_host: Nomad's node metadata says on which Harvester host a VM runs. And the other use of
// the hosts: victims on cordoned ones (C8).

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/harvester/metadata.h"

#include "harness.h"
#include "operator.h"
#include "support/hosts.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using simulator::Refusal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kHost[] = "harvester_host";
constexpr char kZone[] = "harvester_zone";

// A pool that publishes its hosts.
class Publishing : public Harness {
 public:
  explicit Publishing(const Interleaving& interleaving = {})
      : Harness(support::TwoHosts(), interleaving) {
    policy["publish_host"] = "true";
  }
  // What Nomad's servers know; empty: the node has no such key.
  std::string Meta(const std::string& vm, const char* key) const {
    const json node = cluster.Node(vm);
    const json* meta = base::FindMember(node, "Meta");
    return meta == nullptr ? "" : base::GetString(*meta, key);
  }
  std::map<std::string, std::string> MetaOfAll(const char* key) const {
    std::map<std::string, std::string> all;
    for (const std::string& vm : VmNames()) all[vm] = Meta(vm, key);
    return all;
  }
  std::string Annotation(const std::string& vm) const {
    const json object = cluster.Vm(vm);
    const json* annotations = base::FindPath(object, {"metadata", "annotations"});
    return annotations == nullptr
               ? ""
               : base::GetString(*annotations, harvester::kPublishedHostAnnotation);
  }
  // VMs whose metadata is right.
  int Right() const {
    int right = 0;
    for (const std::string& vm : VmNames()) {
      const std::string host = Meta(vm, kHost);
      const std::string rack = host.substr(0, host.find('-'));
      if (!host.empty() && host == HostOf(vm) && Meta(vm, kZone) == rack) ++right;
    }
    return right;
  }
  std::string HostOf(const std::string& vm) const { return hosts_.at(vm); }
  void Migrate(const std::string& vm, const std::string& host) {
    EXPECT_TRUE(cluster.MigrateVm(vm, host));
    hosts_[vm] = host;
  }
  // Grows to that many and lets the background publish; the simulator's scheduler puts the VMs on
  // its hosts in turn.
  void Grow(std::int64_t count) {
    const absl::Status scaled = Scale(count);
    ASSERT_TRUE(scaled.ok()) << scaled;
    Tick(seconds(30));
    for (const auto& [vm, host] : MetaOfAll(kHost)) hosts_.try_emplace(vm, host);
  }
  int Posts() const { return cluster.RequestCount(System::kNomad, "update", "metadata"); }

 private:
  std::map<std::string, std::string> hosts_;
};

TEST(PublishHost, after_the_join_the_node_says_on_which_host_and_in_which_zone_its_vm_runs) {
  Publishing h;
  h.Grow(2);
  std::set<std::string> hosts;
  for (const auto& [vm, host] : h.MetaOfAll(kHost)) hosts.insert(host);
  EXPECT_THAT(hosts, ElementsAre("rack1-a", "rack2-a")) << h.Transcript();
  EXPECT_EQ(h.Right(), 2) << h.Transcript();
  h.CheckAtRest(2);
}

TEST(PublishHost, L7_at_rest_the_instances_are_listed_once_a_minute_and_nothing_is_written) {
  Publishing h;
  h.Grow(2);
  h.Tick(minutes(5));
  h.cluster.ResetCounters();
  h.Tick(minutes(30));
  EXPECT_LE(h.cluster.RequestCount(System::kHarvester, "list", "virtualmachineinstances"), 31);
  EXPECT_GE(h.cluster.RequestCount(System::kHarvester, "list", "virtualmachineinstances"), 25);
  EXPECT_LE(h.cluster.RequestCount(System::kHarvester, "get", "nodes"), 8)
      << "two hosts, every ten minutes each";
  EXPECT_EQ(h.cluster.EffectCount(), 0) << h.Transcript();
  EXPECT_EQ(h.cluster.RequestCount(System::kNomad, "get", "node"), 0);
}

TEST(PublishHost, a_key_that_is_taken_out_of_the_policy_is_unset) {
  Publishing h;
  h.Grow(2);
  h.policy.erase("publish_host");
  h.Tick(minutes(1));
  for (const std::string& vm : h.VmNames()) {
    EXPECT_EQ(h.Meta(vm, kHost), "") << h.Transcript();
    EXPECT_EQ(h.Meta(vm, kZone), "");
    EXPECT_EQ(h.Annotation(vm), "");
  }
  h.cluster.ResetCounters();
  h.Tick(minutes(10));
  EXPECT_EQ(h.cluster.EffectCount(), 0) << h.Transcript();
  h.CheckAtRest(2);
}

TEST(PublishHost, L10_of_a_paused_pool_nothing_is_published_until_the_pause_ends) {
  Publishing h;
  h.Grow(1);
  const std::string vm = h.VmNames().front();
  Operator person(h);
  ASSERT_TRUE(person.Pause(base::Hold{.always = true}).ok());
  h.Migrate(vm, "rack2-a");
  h.cluster.ResetCounters();
  h.Tick(minutes(10));
  EXPECT_EQ(h.Posts(), 0) << h.Transcript();
  EXPECT_LE(h.cluster.EffectCount(), 10) << "the Lease of a round now and then\n" << h.Transcript();
  ASSERT_TRUE(person.Pause(std::nullopt).ok());
  h.Tick(minutes(2));
  EXPECT_EQ(h.Meta(vm, kHost), "rack2-a") << h.Transcript();
  h.CheckAtRest(1);
}

TEST(PublishHost, a_zone_that_a_host_no_longer_has_is_unset) {
  Publishing h;
  h.Grow(1);
  const std::string vm = h.VmNames().front();
  ASSERT_EQ(h.Meta(vm, kZone), "rack1");
  ASSERT_TRUE(h.cluster.PutObject(
      {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", "rack1-a"}}}}));
  h.Tick(minutes(15));
  EXPECT_EQ(h.Meta(vm, kZone), "") << h.Transcript();
  EXPECT_EQ(h.Meta(vm, kHost), "rack1-a");
}

TEST(PublishHost, a_node_that_registers_under_a_new_id_is_published_again) {
  Publishing h;
  h.Grow(1);
  const std::string vm = h.VmNames().front();
  ASSERT_FALSE(h.cluster.ReviveNodeUnderNewId(vm).empty());
  ASSERT_EQ(h.Meta(vm, kHost), "");
  // The new node is the VM's once the recorded one has been down for two minutes (C6).
  h.Tick(minutes(4));
  EXPECT_EQ(h.Meta(vm, kHost), "rack1-a") << h.Transcript();
}

TEST(PublishHost, without_the_right_to_read_hosts_there_is_no_zone_and_one_warning) {
  Publishing h;
  h.cluster.Forbid("get", "nodes");
  h.Grow(2);
  const std::string vm = h.VmNames().front();
  EXPECT_NE(h.Meta(vm, kHost), "") << h.Transcript();
  EXPECT_EQ(h.Meta(vm, kZone), "");
  h.Tick(minutes(30));
  EXPECT_EQ(h.log->Count("may not read Harvester's hosts"), 1U);
  h.cluster.ResetCounters();
  h.Tick(minutes(10));
  EXPECT_EQ(h.cluster.EffectCount(), 0) << h.Transcript();
  h.cluster.AllowAll();
  h.Tick(minutes(25));
  EXPECT_NE(h.Meta(vm, kZone), "") << "the right was granted\n" << h.Transcript();
}

TEST(PublishHost, L1_a_host_that_cannot_be_read_costs_its_zone_alone_until_it_can) {
  Publishing h;
  h.cluster.Refuse({.resource = "nodes",
                    .kind = Refusal::kAnswer,
                    .status = 500,
                    .text = "etcdserver: request timed out"});
  h.Grow(1);
  const std::string vm = h.VmNames().front();
  EXPECT_EQ(h.Meta(vm, kHost), "rack1-a") << h.Transcript();
  EXPECT_EQ(h.Meta(vm, kZone), "");
  h.cluster.StopRefusing();
  h.Tick(minutes(3));
  EXPECT_EQ(h.Meta(vm, kZone), "rack1") << h.Transcript();
  h.CheckAtRest(1);
}

TEST(PublishHost, L7_a_right_that_is_withdrawn_costs_no_write_at_rest) {
  Publishing h;
  h.Grow(2);
  h.cluster.Forbid("get", "nodes");
  h.Tick(minutes(15));
  h.cluster.ResetCounters();
  h.Tick(minutes(60));
  EXPECT_EQ(h.cluster.EffectCount(), 0) << h.Transcript();
}

TEST(PublishHost, without_the_right_to_list_instances_one_warning_says_so) {
  Publishing h;
  ASSERT_TRUE(h.Scale(1).ok());
  h.cluster.Forbid("list", "virtualmachineinstances");
  h.Restart();
  h.Tick(minutes(10));
  EXPECT_EQ(h.log->Count("Could not list virtualmachineinstances"), 1U);
  EXPECT_TRUE(h.Status()->ready) << h.Transcript();
}

TEST(PublishHost, L1_L2_a_client_that_is_not_connected_costs_its_own_publication_alone) {
  Publishing h;
  const int rule = h.cluster.Refuse({.system = System::kNomad,
                                     .verb = "update",
                                     .resource = "metadata",
                                     .kind = Refusal::kAnswer,
                                     .status = 404,
                                     .text = "No path to node"});
  const absl::Status scaled = h.Scale(2);
  EXPECT_TRUE(scaled.ok()) << scaled;
  h.Tick(minutes(5));
  EXPECT_TRUE(h.Status()->ready) << h.Transcript();
  h.cluster.ResetCounters();
  h.Tick(minutes(120));
  EXPECT_LE(h.Posts(), 2 * 30) << "a round a minute, growing to ten\n" << h.Transcript();
  EXPECT_GE(h.Posts(), 2 * 10);
  h.cluster.StopRefusing(rule);
  h.Tick(minutes(12));
  EXPECT_EQ(h.MetaOfAll(kHost).size(), 2U);
  for (const auto& [vm, host] : h.MetaOfAll(kHost)) EXPECT_NE(host, "") << h.Transcript();
  h.CheckAtRest(2);
}

TEST(PublishHost, L1_L3_one_that_is_refused_for_ever_neither_fails_a_scale_nor_keeps_it_open) {
  Publishing h;
  h.cluster.Refuse({.system = System::kNomad,
                    .verb = "update",
                    .resource = "metadata",
                    .kind = Refusal::kForbidden});
  ASSERT_TRUE(h.Scale(3).ok());
  h.Tick(minutes(3));
  ASSERT_TRUE(h.Scale(1).ok()) << h.Transcript();
  h.Tick(minutes(3));
  h.CheckAtRest(1);
}

TEST(PublishHost, a_vm_that_failed_by_its_nodes_pool_does_not_hold_the_scale_by_its_publication) {
  Publishing h;
  h.cluster.Refuse({.system = System::kNomad,
                    .verb = "update",
                    .resource = "metadata",
                    .kind = Refusal::kForbidden});
  h.policy["user_data"] = "#cloud-config\n# node_class = \"other\"\n";
  std::string& user_data = h.policy["user_data"];
  user_data =
      "#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: |\n"
      "    name = \"{{vm_name}}\"\n    node_class = \"other\"\n";
  const base::MonoTime began = h.clock.Now();
  const absl::Status scaled = h.Scale(1);
  EXPECT_THAT(scaled.ToString(), HasSubstr("another pool"));
  EXPECT_LE(h.clock.Now() - began, seconds(50)) << "sooner than its refusal is for good";
}

TEST(PublishHost, a_kill_between_the_two_writes_repeats_the_first) {
  Publishing h;
  ASSERT_TRUE(h.Accept(1).ok());
  bool killed = false;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (killed || request.resource != "metadata") return Fault::None();
    killed = true;
    return Fault::ApplyThenDie();
  });
  h.Tick(minutes(1));
  ASSERT_TRUE(killed) << h.Transcript();
  const std::string vm = h.VmNames().front();
  EXPECT_EQ(h.Annotation(vm), "") << "nothing says that it was published";
  h.Restart();
  h.Tick(minutes(1));
  EXPECT_THAT(h.Annotation(vm), HasSubstr("rack1-a")) << h.Transcript();
  EXPECT_EQ(h.Meta(vm, kHost), "rack1-a");
  h.CheckAtRest(1);
}

TEST(PublishHost, an_annotation_that_was_written_by_somebody_else_meanwhile_is_a_conflict_alone) {
  Publishing h;
  ASSERT_TRUE(h.Accept(1).ok());
  const std::string vm = h.VmNames().front();
  int edits = 0;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.resource != "metadata" || ++edits > 2) return Fault::None();
    return Fault::BeforeReply([&] { h.cluster.EditAnnotation(vm, "someone", "else"); });
  });
  h.Tick(minutes(3));  // each of the two conflicts costs a round if its attempt is not due yet
  EXPECT_GT(edits, 0);
  EXPECT_THAT(h.Annotation(vm), HasSubstr("rack1-a")) << h.Transcript();
  h.CheckAtRest(1);
}

TEST(PublishHost, S4_is_no_action_that_the_agent_must_cool_down_after) {
  Publishing h;
  h.Grow(1);
  h.Tick(minutes(1));
  const std::string before = h.Status()->meta.at("nomad_autoscaler.last_event");
  h.Migrate(h.VmNames().front(), "rack2-a");
  h.Tick(minutes(2));
  ASSERT_EQ(h.Right(), 1) << h.Transcript();
  EXPECT_EQ(h.Status()->meta.at("nomad_autoscaler.last_event"), before);
}

TEST(PublishHost, C13_gc_says_what_it_would_publish) {
  Publishing h;
  h.policy.erase("publish_host");
  ASSERT_TRUE(h.Scale(1).ok());
  h.policy["publish_host"] = "true";
  const std::string vm = h.VmNames().front();
  Operator person(h);
  person.Preview();
  EXPECT_THAT(person.events, ::testing::Contains("publish-host " + vm)) << h.Transcript();
  EXPECT_EQ(h.Posts(), 0);
}

TEST(PublishHost, works_in_whatever_order_the_steps_of_a_pass_are_carried_out) {
  for (const Order order : {Order::kReversed, Order::kShuffled}) {
    Publishing h({.order = order, .seed = 3});
    h.Grow(4);
    h.Tick(minutes(1));
    EXPECT_EQ(h.Right(), 4) << h.Transcript();
    ASSERT_TRUE(h.Scale(2).ok());
    h.Tick(minutes(2));
    h.CheckAtRest(2);
  }
}

// --- Cordoned hosts.

TEST(CordonedHosts, C8_a_scale_in_removes_their_vms_first_and_says_why) {
  Publishing h;
  h.Grow(4);
  ASSERT_TRUE(h.cluster.PutObject(support::Host("rack1-a", /*cordoned=*/true)));
  h.cluster.ResetCounters();
  ASSERT_TRUE(h.Scale(2).ok());
  EXPECT_EQ(h.cluster.RequestCount(System::kHarvester, "list", "nodes"), 1) << "one list";
  for (const std::string& vm : h.VmNames()) EXPECT_EQ(h.HostOf(vm), "rack2-a") << h.Transcript();
  EXPECT_THAT(h.log->Text(), HasSubstr("its host rack1-a is cordoned"));
  h.CheckAtRest(2);
}

TEST(CordonedHosts, C2_a_growth_lists_the_hosts_once_and_status_does_not_ask_for_them) {
  Harness h(support::TwoHosts());
  ASSERT_TRUE(h.Scale(2).ok());
  EXPECT_EQ(h.cluster.RequestCount(System::kHarvester, "list", "nodes"), 1);
  h.Tick(minutes(5));
  EXPECT_EQ(h.cluster.RequestCount(System::kHarvester, "list", "nodes"), 1);
  EXPECT_EQ(h.cluster.RequestCount(System::kHarvester, "get", "nodes"), 0);
}

TEST(CordonedHosts, C8_without_the_right_a_scale_in_goes_on_without_a_warning) {
  Publishing h;
  h.Grow(2);
  h.cluster.Forbid("list", "nodes");
  ASSERT_TRUE(h.cluster.PutObject(support::Host("rack1-a", /*cordoned=*/true)));
  EXPECT_TRUE(h.Scale(1).ok()) << h.Transcript();
  EXPECT_THAT(h.log->Text(), Not(HasSubstr("cordoned")));
  EXPECT_EQ(h.log->Count("nodes", log::Level::kWarn), 0U) << "a missing right is none";
}

TEST(CordonedHosts, C8_a_list_of_hosts_that_does_not_answer_costs_some_seconds_alone) {
  Publishing h;
  h.Grow(2);
  h.cluster.Refuse({.system = System::kHarvester,
                    .verb = "list",
                    .resource = "nodes",
                    .kind = Refusal::kNone,
                    .takes = minutes(5)});
  const base::MonoTime began = h.clock.Now();
  EXPECT_TRUE(h.Scale(1).ok()) << h.Transcript();
  EXPECT_LE(h.clock.Now() - began, minutes(1));
}

TEST(PublishHost, what_a_later_release_wrote_beside_the_host_is_kept) {
  Publishing h;
  h.Grow(1);
  const std::string vm = h.VmNames().front();
  json annotation = json::parse(h.Annotation(vm));
  annotation["later"] = 1;
  ASSERT_TRUE(h.cluster.EditAnnotation(vm, harvester::kPublishedHostAnnotation, annotation.dump()));
  h.Migrate(vm, "rack2-a");
  h.Tick(minutes(3));
  EXPECT_THAT(h.Annotation(vm), HasSubstr("rack2-a")) << h.Transcript();
  EXPECT_THAT(h.Annotation(vm), HasSubstr(R"("later":1)"));
}

}  // namespace
}  // namespace nomad_harvester::scenario
