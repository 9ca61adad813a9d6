// SPDX-License-Identifier: Apache-2.0
// Rule C6: the identity hints.
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

VmIdentityHints VmWithHints(std::string name, std::string uuid,
                            std::vector<std::string> addresses = {}) {
  return {.name = std::move(name),
          .firmware_uuid = std::move(uuid),
          .addresses = std::move(addresses),
          .node_attribute = "unique.hostname"};
}
const VmIdentityHints kOne = VmWithHints("web-1", "uuid-1", {"10.0.0.1"});
const VmIdentityHints kTwo = VmWithHints("web-2", "uuid-2", {"10.0.0.2", "fd00::2"});

Link LinkOfOne(const std::vector<nomad::Node>& nodes) {
  return LinkNodes({kOne, kTwo}, nodes).of_vm.at(0);
}
NodeBuilder One(std::string id = "n1") { return NodeBuilder(std::move(id)).HostName("web-1"); }

TEST(IdentityHints, C6_a_uuid_in_the_meta_that_is_another_vms_contradicts) {
  const Link link = LinkOfOne({One().Meta("harvester_vm_uuid", "UUID-2")});
  EXPECT_EQ(link.state, LinkState::kContradicted);
  EXPECT_THAT(link.others, ElementsAre(0U));
  EXPECT_EQ(link.explanation,
            "node n1 has the name web-1, but its meta.harvester_vm_uuid is that of VM web-2");
}

TEST(IdentityHints, C6_an_address_that_is_another_vms_contradicts) {
  EXPECT_EQ(LinkOfOne({One().Address("10.0.0.2")}).state, LinkState::kContradicted);
  EXPECT_EQ(LinkOfOne({One().Address("FD00::2")}).state, LinkState::kContradicted);
  EXPECT_EQ(LinkOfOne({One().Attribute("unique.network.ip-address", "10.0.0.2")}).state,
            LinkState::kContradicted);
  EXPECT_THAT(LinkOfOne({One().Address("10.0.0.2")}).explanation, HasSubstr("address 10.0.0.2"));
}

TEST(IdentityHints, C6_a_host_id_that_is_another_vms_firmware_uuid_contradicts) {
  EXPECT_EQ(LinkOfOne({One().Attribute("unique.host_id", "uuid-2")}).state,
            LinkState::kContradicted);
}

TEST(IdentityHints, a_stub_can_be_contradicted_by_its_address) {
  EXPECT_EQ(LinkOfOne({NodeBuilder("n").Name("web-1").Address("10.0.0.2")}).state,
            LinkState::kContradicted);
}

TEST(IdentityHints, C6_a_value_that_matches_no_vm_is_ignored) {
  EXPECT_EQ(LinkOfOne({One()
                           .Meta("harvester_vm_uuid", "uuid-9")
                           .Address("192.168.7.7")
                           .Attribute("unique.host_id", "b1946ac9")})
                .state,
            LinkState::kLinked);
  EXPECT_EQ(LinkOfOne({One().Meta("harvester_vm_uuid", "").Address("")}).state, LinkState::kLinked);
}

TEST(IdentityHints, C6_a_value_that_several_nodes_share_is_ignored) {
  // With masquerade every guest has the same address.
  const Links links = LinkNodes(
      {kOne, kTwo},
      {One().Address("10.0.0.2"), NodeBuilder("n2").HostName("web-2").Address("10.0.0.2")});
  EXPECT_EQ(links.of_vm[0].state, LinkState::kLinked);
  EXPECT_EQ(links.of_vm[1].state, LinkState::kLinked);
}

TEST(IdentityHints, a_value_that_several_vms_share_is_ignored) {
  const Links links = LinkNodes({kOne, kTwo, VmWithHints("web-3", "uuid-2")},
                                {One().Meta("harvester_vm_uuid", "uuid-2")});
  EXPECT_EQ(links.of_vm[0].state, LinkState::kLinked);
}

TEST(IdentityHints, one_that_agrees_is_named_in_the_explanation) {
  const Link link = LinkOfOne({One().Meta("harvester_vm_uuid", "uuid-1").Address("10.0.0.1")});
  EXPECT_EQ(link.state, LinkState::kLinked);
  EXPECT_EQ(link.explanation,
            "node n1 has the VM's name as its unique.hostname, confirmed by its "
            "meta.harvester_vm_uuid, confirmed by its address 10.0.0.1");
}

TEST(IdentityHints, one_that_contradicts_outweighs_one_that_agrees) {
  EXPECT_EQ(LinkOfOne({One().Meta("harvester_vm_uuid", "uuid-1").Address("10.0.0.2")}).state,
            LinkState::kContradicted);
}

TEST(IdentityHints, alone_does_not_link_a_node_of_another_name) {
  const Links links = LinkNodes(
      {kOne, kTwo}, {NodeBuilder("n").HostName("other").Meta("harvester_vm_uuid", "uuid-1")});
  EXPECT_EQ(links.of_vm[0].state, LinkState::kNone);
  EXPECT_THAT(links.node_is_linked, ElementsAre(false));
}

TEST(IdentityHints, breaks_a_tie_of_two_ready_nodes) {
  const Link link = LinkOfOne(
      {One("a").CreateIndex(9), One("b").CreateIndex(1).Meta("harvester_vm_uuid", "uuid-1")});
  EXPECT_EQ(link.state, LinkState::kLinked);
  EXPECT_EQ(link.node, 1U);
  EXPECT_THAT(link.others, ElementsAre(0U));
}

TEST(IdentityHints, breaks_no_tie_while_the_other_node_is_a_stub_that_may_have_the_same_hint) {
  const auto old_node = One("a").Meta("harvester_vm_uuid", "uuid-1");
  EXPECT_EQ(LinkOfOne({old_node, NodeBuilder("b").Name("web-1")}).state, LinkState::kAmbiguous);
  EXPECT_EQ(LinkOfOne({old_node, One("b")}).state, LinkState::kLinked) << "it tells nothing";
}

TEST(IdentityHints, breaks_no_tie_if_it_identifies_the_vm_on_both_nodes) {
  const Link link =
      LinkOfOne({One("a").Meta("harvester_vm_uuid", "uuid-1"), One("b").Address("10.0.0.1")});
  EXPECT_EQ(link.state, LinkState::kAmbiguous);
}

TEST(IdentityHints, breaks_no_tie_by_a_value_that_the_copies_share) {
  const Link link = LinkOfOne(
      {One("a").Meta("harvester_vm_uuid", "uuid-1"), One("b").Meta("harvester_vm_uuid", "uuid-1")});
  EXPECT_EQ(link.state, LinkState::kAmbiguous);
}

TEST(IdentityHints, that_names_another_vm_on_one_of_two_ready_nodes_leaves_the_tie) {
  const Link link = LinkOfOne({One("a").Meta("harvester_vm_uuid", "uuid-2"), One("b")});
  EXPECT_EQ(link.state, LinkState::kAmbiguous);
}

TEST(IdentityHints, a_contradicted_ready_node_is_not_replaced_by_an_old_down_one) {
  const Link link = LinkOfOne(
      {One("new").Meta("harvester_vm_uuid", "uuid-2"), One("old").Status(NodeStatus::kDown)});
  EXPECT_EQ(link.state, LinkState::kContradicted);
  EXPECT_THAT(link.others, ElementsAre(0U, 1U));
}

VmIdentityHints OneJoinedAs(std::string node_id) {
  VmIdentityHints vm = kOne;
  vm.node_id = std::move(node_id);
  return vm;
}

TEST(IdentityHints, C6_that_identify_the_recorded_node_link_to_it_in_any_status) {
  for (const NodeStatus status : {NodeStatus::kReady, NodeStatus::kDisconnected, NodeStatus::kDown,
                                  NodeStatus::kInitializing}) {
    const Link link = LinkNodes({OneJoinedAs("own")},
                                {One("own").Status(status).Meta("harvester_vm_uuid", "uuid-1"),
                                 One("other").CreateIndex(9)})
                          .of_vm[0];
    EXPECT_EQ(link.state, LinkState::kLinked);
    EXPECT_EQ(link.node, 0U);
    EXPECT_THAT(link.others, ElementsAre(1U));
  }
}

// A forged node copies what it can, and adds what the real one lacks.
TEST(IdentityHints, C6_that_identify_another_node_than_the_recorded_one_make_it_ambiguous) {
  const auto own = One("own").Meta("harvester_vm_uuid", "uuid-1").Address("10.0.0.1");
  const auto forged = One("forged")
                          .CreateIndex(9)
                          .Meta("harvester_vm_uuid", "uuid-1")
                          .Address("10.0.0.1")
                          .Attribute("unique.host_id", "uuid-1");
  EXPECT_EQ(LinkNodes({OneJoinedAs("own")}, {own, forged}).of_vm[0].state, LinkState::kAmbiguous);
  EXPECT_EQ(
      LinkNodes({OneJoinedAs("own")}, {own, forged, One("decoy").CreateIndex(10)}).of_vm[0].state,
      LinkState::kAmbiguous);
  EXPECT_EQ(LinkNodes({OneJoinedAs("own")}, {One("own"), forged}).of_vm[0].state,
            LinkState::kAmbiguous)
      << "user data without the meta";
}

TEST(IdentityHints, C6_the_others_go_on_when_one_is_contradicted) {
  const Links links = LinkNodes({kOne, kTwo}, {One().Meta("harvester_vm_uuid", "uuid-2"),
                                               NodeBuilder("n2").HostName("web-2")});
  EXPECT_EQ(links.of_vm[0].state, LinkState::kContradicted);
  EXPECT_EQ(links.of_vm[1].state, LinkState::kLinked);
  EXPECT_EQ(links.of_vm[1].node, 1U);
}

TEST(DeclaredForeign, is_the_meta_value_none) {
  EXPECT_TRUE(IsDeclaredForeign(NodeBuilder("n").Meta("harvester_vm_uuid", "none")));
  EXPECT_TRUE(IsDeclaredForeign(NodeBuilder("n").Meta("harvester_vm_uuid", "None")));
  EXPECT_FALSE(IsDeclaredForeign(NodeBuilder("n").Meta("harvester_vm_uuid", "uuid-1")));
  EXPECT_FALSE(IsDeclaredForeign(NodeBuilder("n").Meta("harvester_vm_uuid", "")));
  EXPECT_FALSE(IsDeclaredForeign(NodeBuilder("n")));
}

TEST(DeclaredForeign, a_machine_that_has_a_vms_name_contradicts) {
  const Link link = LinkOfOne({One().Meta("harvester_vm_uuid", "none")});
  EXPECT_EQ(link.state, LinkState::kContradicted);
  EXPECT_THAT(link.explanation, HasSubstr("declares that it is not a VM"));
}

TEST(DeclaredForeign, a_machine_is_not_a_rival_of_the_vms_own_node) {
  const Link ready = LinkOfOne({One("metal").Meta("harvester_vm_uuid", "none"), One("vm")});
  EXPECT_EQ(ready.state, LinkState::kLinked);
  EXPECT_EQ(ready.node, 1U);
  const Link down = LinkOfOne(
      {One("metal").Meta("harvester_vm_uuid", "none"), One("vm").Status(NodeStatus::kDown)});
  EXPECT_EQ(down.state, LinkState::kLinked);
  EXPECT_EQ(down.node, 1U);
}

bool ProtectedBy(const std::string& value) {
  return IsProtected(NodeBuilder("n").Meta("harvester_protect", value),
                     base::ParseRfc3339("2026-03-01T12:00:00Z").value());
}

TEST(Protected, C7_a_node_is_protected_by_its_meta) {
  EXPECT_TRUE(ProtectedBy("true"));
  EXPECT_TRUE(ProtectedBy("1"));
  EXPECT_FALSE(ProtectedBy("false"));
  EXPECT_FALSE(ProtectedBy("F"));
  EXPECT_FALSE(IsProtected(NodeBuilder("n"), base::WallTime()));
}

TEST(Protected, C7_a_node_is_protected_until_the_time_in_its_meta) {
  EXPECT_TRUE(ProtectedBy("2026-03-01T12:00:01Z"));
  EXPECT_FALSE(ProtectedBy("2026-03-01T12:00:00Z"));
}

TEST(Protected, C7_an_unreadable_value_protects) {
  for (const char* word : {"yes", "", "no", "TRUE ", "protected"}) {
    EXPECT_TRUE(ProtectedBy(word)) << word;
  }
}

TEST(FirmwareUuid, C6_of_a_vm_is_not_that_of_another) {
  const Linker linker({kOne, kTwo}, {});
  EXPECT_FALSE(linker.IsUuidOfAnother("uuid-1", 0));
  EXPECT_TRUE(linker.IsUuidOfAnother("UUID-1", 1));
  EXPECT_FALSE(linker.IsUuidOfAnother("uuid-9", 0)) << "no VM has it";
}

TEST(FirmwareUuid, C6_copies_have_that_of_their_original_and_each_is_another) {
  const Linker linker({kOne, VmWithHints("copy", "uuid-1"), VmWithHints("copy-2", "uuid-1")}, {});
  for (const std::size_t vm : {0U, 1U, 2U}) EXPECT_TRUE(linker.IsUuidOfAnother("uuid-1", vm)) << vm;
}

TEST(FirmwareUuid, C6_vms_without_one_share_none) {
  const Linker linker({VmWithHints("a", ""), VmWithHints("b", "")}, {});
  EXPECT_FALSE(linker.IsUuidOfAnother("", 0));
}

}  // namespace
}  // namespace nomad_harvester::nodepool
