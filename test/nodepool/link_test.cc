// SPDX-License-Identifier: Apache-2.0
// Rule C6: links VMs to nodes by name.
#include "nomad_harvester/nodepool/link.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nodepool/builders.h"
#include "nodepool/links.h"

namespace nomad_harvester::nodepool {
namespace {

using nomad::NodeStatus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

VmIdentityHints Vm(std::string name, std::string attribute = "unique.hostname") {
  return {.name = std::move(name), .node_attribute = std::move(attribute)};
}

Link LinkOf(const VmIdentityHints& vm, const std::vector<nomad::Node>& nodes) {
  return LinkNodes({vm}, nodes).of_vm.at(0);
}

TEST(LinkByName, C6_a_full_node_links_by_its_attribute) {
  const Link link = LinkOf(
      Vm("web-1"), {NodeBuilder("n0").HostName("web-0"), NodeBuilder("n1").HostName("web-1")});
  EXPECT_EQ(link.state, LinkState::kLinked);
  EXPECT_EQ(link.node, 1U);
  EXPECT_THAT(link.others, IsEmpty());
  EXPECT_EQ(link.explanation, "node n1 has the VM's name as its unique.hostname");
}

TEST(LinkByName, C6_the_short_host_name_counts_without_case) {
  for (const char* host : {"web-1", "WEB-1", "web-1.example.org", "Web-1.local"}) {
    EXPECT_EQ(LinkOf(Vm("web-1"), {NodeBuilder("n").HostName(host)}).state, LinkState::kLinked)
        << host;
  }
  for (const char* host : {"web-10", "web", "web-1x.example.org", "", ".web-1"}) {
    EXPECT_EQ(LinkOf(Vm("web-1"), {NodeBuilder("n").HostName(host)}).state, LinkState::kNone)
        << host;
  }
}

TEST(LinkByName, the_name_of_a_full_node_is_not_its_attribute) {
  const nomad::Node node = NodeBuilder("n").Name("web-1").HostName("other");
  EXPECT_EQ(LinkOf(Vm("web-1"), {node}).state, LinkState::kNone);
}

TEST(LinkByName, a_full_node_without_the_attribute_links_to_nothing) {
  EXPECT_EQ(LinkOf(Vm("web-1"), {NodeBuilder("n").Name("web-1").Meta("a", "b")}).state,
            LinkState::kNone);
}

TEST(LinkByName, another_attribute_or_a_meta_key_can_hold_the_name) {
  EXPECT_EQ(
      LinkOf(Vm("web-1", "unique.vm.name"), {NodeBuilder("n").Attribute("unique.vm.name", "web-1")})
          .state,
      LinkState::kLinked);
  EXPECT_EQ(LinkOf(Vm("web-1", "meta.vm"), {NodeBuilder("n").Meta("vm", "web-1")}).state,
            LinkState::kLinked);
  EXPECT_EQ(LinkOf(Vm("web-1", "meta.vm"), {NodeBuilder("n").Attribute("meta.vm", "web-1")}).state,
            LinkState::kNone);
  EXPECT_EQ(LinkOf(Vm("web-1", "vm"), {NodeBuilder("n").Meta("vm", "web-1")}).state,
            LinkState::kNone);
}

TEST(LinkByName, C6_a_stub_links_provisionally_by_its_name) {
  for (const char* attribute : {"unique.hostname", "meta.vm"}) {
    const Link link = LinkOf(Vm("web-1", attribute), {NodeBuilder("n").Name("Web-1.local")});
    EXPECT_EQ(link.state, LinkState::kLinked) << attribute;
    EXPECT_THAT(link.explanation, HasSubstr("as its Name"));
  }
}

TEST(LinkByName, a_full_node_that_matches_the_attribute_is_preferred_to_a_stub_of_the_name) {
  const Link link = LinkOf(Vm("web-1", "meta.vm"), {NodeBuilder("stub").Name("web-1"),
                                                    NodeBuilder("full").Meta("vm", "web-1")});
  EXPECT_EQ(link.state, LinkState::kLinked);
  EXPECT_EQ(link.node, 1U);
}

TEST(LinkByName, where_the_host_name_counts_a_stub_of_the_name_is_a_rival) {
  const Link link = LinkOf(
      Vm("web-1"), {NodeBuilder("stub").Name("web-1"), NodeBuilder("full").HostName("web-1")});
  EXPECT_EQ(link.state, LinkState::kAmbiguous);
}

TEST(LinkByName, a_vm_without_a_name_links_to_nothing) {
  EXPECT_EQ(LinkOf(Vm(""), {NodeBuilder("n").Name(""), NodeBuilder("m").HostName("")}).state,
            LinkState::kNone);
}

TEST(LinkByName, no_node_no_link) {
  const Link link = LinkOf(Vm("web-1"), {});
  EXPECT_EQ(link.state, LinkState::kNone);
  EXPECT_THAT(link.others, IsEmpty());
  EXPECT_EQ(link.explanation, "");
}

TEST(LinkAmongSeveral, C6_an_old_down_node_of_the_name_loses_to_the_ready_one) {
  const Link link = LinkOf(
      Vm("web-1"), {NodeBuilder("old").HostName("web-1").Status(NodeStatus::kDown).CreateIndex(99),
                    NodeBuilder("new").HostName("web-1").CreateIndex(5)});
  EXPECT_EQ(link.state, LinkState::kLinked);
  EXPECT_EQ(link.node, 1U);
  EXPECT_THAT(link.others, ElementsAre(0U));
}

TEST(LinkAmongSeveral, C6_any_node_of_the_name_that_is_not_down_beats_one_that_is) {
  for (const NodeStatus better :
       {NodeStatus::kReady, NodeStatus::kInitializing, NodeStatus::kDisconnected}) {
    const Link link = LinkOf(
        Vm("web-1"), {NodeBuilder("a").HostName("web-1").Status(NodeStatus::kDown).CreateIndex(9),
                      NodeBuilder("b").HostName("web-1").Status(better).CreateIndex(1)});
    EXPECT_EQ(link.state, LinkState::kLinked);
    EXPECT_EQ(link.node, 1U);
  }
}

TEST(LinkAmongSeveral, C6_a_ready_node_is_not_preferred_to_one_that_may_come_back) {
  for (const NodeStatus other : {NodeStatus::kInitializing, NodeStatus::kDisconnected}) {
    const Link link =
        LinkOf(Vm("web-1"), {NodeBuilder("a").HostName("web-1").Status(other),
                             NodeBuilder("b").HostName("web-1").Status(NodeStatus::kReady)});
    EXPECT_EQ(link.state, LinkState::kAmbiguous);
  }
}

TEST(LinkAmongSeveral, among_equals_that_are_not_ready_the_younger_wins) {
  const Link link = LinkOf(
      Vm("web-1"), {NodeBuilder("a").HostName("web-1").Status(NodeStatus::kDown).CreateIndex(5),
                    NodeBuilder("b").HostName("web-1").Status(NodeStatus::kDown).CreateIndex(9),
                    NodeBuilder("c").HostName("web-1").Status(NodeStatus::kDown).CreateIndex(7)});
  EXPECT_EQ(link.state, LinkState::kLinked);
  EXPECT_EQ(link.node, 1U);
  EXPECT_THAT(link.others, ElementsAre(2U, 0U));
}

TEST(LinkAmongSeveral, C6_two_ready_nodes_are_a_real_tie) {
  const Link link =
      LinkOf(Vm("web-1"), {NodeBuilder("a").HostName("web-1").CreateIndex(5),
                           NodeBuilder("b").HostName("web-1").CreateIndex(9),
                           NodeBuilder("c").HostName("web-1").Status(NodeStatus::kDown)});
  EXPECT_EQ(link.state, LinkState::kAmbiguous);
  EXPECT_THAT(link.others, ElementsAre(1U, 0U));
  EXPECT_EQ(link.explanation, "several nodes could be it: b (ready), a (ready)");
}

constexpr NodeStatus kNotReady[] = {NodeStatus::kInitializing, NodeStatus::kDisconnected,
                                    NodeStatus::kDown};

VmIdentityHints JoinedAs(std::string node_id, bool is_lost = false) {
  VmIdentityHints vm = Vm("web-1");
  vm.node_id = std::move(node_id);
  vm.node_is_lost = is_lost;
  return vm;
}
NodeBuilder Web(std::string id, std::uint64_t index) {
  return NodeBuilder(std::move(id)).HostName("web-1").CreateIndex(index);
}

TEST(LinkToRecorded, C6_a_vm_does_not_link_to_a_ready_node_while_its_own_is_not_ready) {
  for (const NodeStatus status : kNotReady) {
    for (const std::uint64_t other : {1U, 9U}) {
      const Link link =
          LinkOf(JoinedAs("own"), {Web("own", 5).Status(status), Web("other", other)});
      EXPECT_EQ(link.state, LinkState::kAmbiguous);
      EXPECT_THAT(link.others, ElementsAre(1U, 0U));
      EXPECT_THAT(link.explanation, HasSubstr("other (ready), own ("));
      EXPECT_THAT(link.explanation, HasSubstr("the one it joined as"));
    }
  }
}

TEST(LinkToRecorded, C6_it_links_to_its_own_node_in_any_status_while_no_other_could_be_it) {
  for (const NodeStatus status : kNotReady) {
    const Link link =
        LinkOf(JoinedAs("own", true),
               {Web("own", 5).Status(status), Web("stale", 1).Status(NodeStatus::kDown),
                Web("metal", 9).Meta("harvester_vm_uuid", "none")});
    EXPECT_EQ(link.state, LinkState::kLinked);
    EXPECT_EQ(link.node, 0U);
  }
}

TEST(LinkToRecorded, C6_a_node_with_its_name_that_just_went_down_could_be_its_new_one) {
  const auto younger = Web("new", 9).Status(NodeStatus::kDown);
  EXPECT_EQ(LinkOf(JoinedAs("own"), {Web("own", 5).Status(NodeStatus::kDown), younger}).state,
            LinkState::kAmbiguous);
  EXPECT_EQ(LinkOf(JoinedAs("own"), {Web("own", 5), younger}).node, 0U) << "its own is ready";
}

TEST(LinkToRecorded, C6_a_second_ready_node_of_its_name_makes_it_ambiguous) {
  EXPECT_EQ(LinkOf(JoinedAs("own"), {Web("own", 5), Web("other", 9)}).state, LinkState::kAmbiguous);
}

TEST(LinkToRecorded, C6_a_client_that_registered_anew_is_linked_once_its_old_node_is_lost) {
  const auto old = Web("own", 5).Status(NodeStatus::kDown);
  const Link link = LinkOf(JoinedAs("own", true), {old, Web("new", 9)});
  EXPECT_EQ(link.state, LinkState::kLinked);
  EXPECT_EQ(link.node, 1U);
  EXPECT_EQ(LinkOf(JoinedAs("own", true), {old, Web("older", 4)}).state, LinkState::kAmbiguous)
      << "it was there before the VM joined";
  EXPECT_EQ(LinkOf(JoinedAs("own", true), {old, Web("new", 9), Web("too", 8)}).state,
            LinkState::kAmbiguous);
  EXPECT_EQ(LinkOf(JoinedAs("own", true), {Web("own", 5), Web("new", 9)}).state,
            LinkState::kAmbiguous)
      << "it is ready again";
}

TEST(LinkToRecorded, C6_a_node_is_linked_once_its_own_is_gone_or_says_that_it_is_no_vm) {
  EXPECT_EQ(LinkOf(JoinedAs("own"), {Web("new", 9)}).state, LinkState::kLinked);
  const Link link =
      LinkOf(JoinedAs("own"), {Web("own", 5).Meta("harvester_vm_uuid", "none"), Web("new", 9)});
  EXPECT_EQ(link.state, LinkState::kLinked);
  EXPECT_EQ(link.node, 1U);
}

TEST(LinkToRecorded, C6_a_node_with_its_name_is_not_linked_while_its_own_has_another_name) {
  const auto renamed = NodeBuilder("own").HostName("localhost").CreateIndex(5);
  EXPECT_EQ(LinkOf(JoinedAs("own"), {renamed, Web("other", 9)}).state, LinkState::kAmbiguous);
  EXPECT_EQ(LinkOf(JoinedAs("own"), {renamed}).state, LinkState::kNone);
}

TEST(LinkMany, each_vm_gets_its_own_node) {
  std::vector<VmIdentityHints> vms;
  std::vector<nomad::Node> nodes;
  for (int i = 0; i < 200; ++i) {
    vms.push_back(Vm("web-" + std::to_string(i)));
    nodes.push_back(
        NodeBuilder("n" + std::to_string(i)).HostName("web-" + std::to_string(199 - i)));
  }
  const Links links = LinkNodes(vms, nodes);
  ASSERT_EQ(links.of_vm.size(), 200U);
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(links.of_vm[i].state, LinkState::kLinked);
    EXPECT_EQ(links.of_vm[i].node, 199 - i);
  }
}

TEST(LinkMany, a_node_is_linked_if_any_link_names_it_whatever_its_state) {
  const Links links =
      LinkNodes({Vm("linked"), Vm("tied"), Vm("absent")},
                {NodeBuilder("n0").HostName("linked"),
                 NodeBuilder("n1").HostName("linked").Status(NodeStatus::kDown),
                 NodeBuilder("n2").HostName("tied"), NodeBuilder("n3").HostName("tied"),
                 NodeBuilder("n4").HostName("unmanaged"), NodeBuilder("n5")});
  EXPECT_THAT(links.node_is_linked, ElementsAre(true, true, true, true, false, false));
}

TEST(LinkMany, a_node_that_has_the_names_of_several_vms_links_to_none) {
  const Links links = LinkNodes(
      {Vm("web-1"), Vm("db-1", "meta.vm"), Vm("web-2")},
      {NodeBuilder("n").HostName("web-1").Meta("vm", "db-1"), NodeBuilder("m").HostName("web-2")});
  EXPECT_EQ(links.of_vm[0].state, LinkState::kContradicted);
  EXPECT_EQ(links.of_vm[1].state, LinkState::kContradicted);
  EXPECT_EQ(links.of_vm[2].state, LinkState::kLinked);
  EXPECT_THAT(links.of_vm[0].others, ElementsAre(0U));
  EXPECT_THAT(links.node_is_linked, ElementsAre(true, true));
}

}  // namespace
}  // namespace nomad_harvester::nodepool
