// SPDX-License-Identifier: Apache-2.0
#include "observation/last_links.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace nomad_harvester::scaling {
namespace {

VmList Vms(const std::vector<std::string>& names) {
  std::vector<harvester::VirtualMachine> vms;
  for (const std::string& name : names) {
    vms.emplace_back();
    vms.back().name = name;
    vms.back().uid = "uid-" + name;
  }
  return std::make_shared<const std::vector<harvester::VirtualMachine>>(std::move(vms));
}

NodeList Nodes(const std::vector<std::string>& names) {
  std::vector<nomad::Node> nodes;
  for (const std::string& name : names) {
    nodes.emplace_back();
    nodes.back().id = "node-" + name;
    nodes.back().name = name;
    nodes.back().status = nomad::NodeStatus::kReady;
  }
  return std::make_shared<const std::vector<nomad::Node>>(std::move(nodes));
}

Look LookAt(const VmList& vms, NodeList nodes, const std::string& attribute = "unique.hostname") {
  Look look;
  look.policy_nodes.emplace();
  look.policy_nodes->node_attribute = attribute;
  look.node_list = std::move(nodes);
  SetVms(vms, &look);
  return look;
}

// Everything that Link sets, of each VM and of each node.
void ExpectLinkedAsUsual(const Look& look, const VmList& vms) {
  Look usual = LookAt(vms, look.node_list, look.policy_nodes->node_attribute);
  Link(&usual);
  ASSERT_EQ(look.vms.size(), usual.vms.size());
  for (std::size_t i = 0; i < usual.vms.size(); ++i) {
    EXPECT_EQ(look.vms[i].link.state, usual.vms[i].link.state) << i;
    EXPECT_EQ(look.vms[i].link.node, usual.vms[i].link.node) << i;
    EXPECT_EQ(look.vms[i].link.others, usual.vms[i].link.others) << i;
    EXPECT_EQ(look.vms[i].link.explanation, usual.vms[i].link.explanation) << i;
  }
  EXPECT_EQ(look.node_is_linked, usual.node_is_linked);
  EXPECT_TRUE(look.linker.has_value());
}

void LinkAndCheck(LastLinks* links, const VmList& vms, const NodeList& nodes,
                  const std::string& attribute = "unique.hostname") {
  Look look = LookAt(vms, nodes, attribute);
  links->Link(vms, &look);
  ExpectLinkedAsUsual(look, vms);
}

TEST(LastLinks, C6_the_same_lists_link_alike_again_and_again) {
  LastLinks links;
  const VmList vms = Vms({"a", "b", "c"});
  const NodeList nodes = Nodes({"c", "other", "b", "b"});
  for (int i = 0; i < 3; ++i) LinkAndCheck(&links, vms, nodes);
}

TEST(LastLinks, C6_other_nodes_other_vms_and_another_attribute_are_linked_anew) {
  LastLinks links;
  const VmList vms = Vms({"a", "b"});
  const NodeList nodes = Nodes({"a", "b"});
  LinkAndCheck(&links, vms, nodes);
  LinkAndCheck(&links, vms, Nodes({"b", "a"}));
  LinkAndCheck(&links, Vms({"b", "x"}), nodes);
  LinkAndCheck(&links, vms, nodes);
  LinkAndCheck(&links, Vms({"b", "a"}), nodes);
  LinkAndCheck(&links, vms, nodes, "meta.vm");
  LinkAndCheck(&links, vms, nodes);
}

TEST(LastLinks, C6_full_nodes_without_the_attribute_do_not_link_by_what_another_policy_named) {
  LastLinks links;
  const VmList vms = Vms({"a"});
  std::vector<nomad::Node> full = *Nodes({"a"});
  full.front().full = true;
  full.front().attributes["unique.hostname"] = "a";
  const auto nodes = std::make_shared<const std::vector<nomad::Node>>(std::move(full));
  Look by_host = LookAt(vms, nodes);
  links.Link(vms, &by_host);
  EXPECT_EQ(by_host.vms.at(0).link.state, nodepool::LinkState::kLinked);
  Look by_meta = LookAt(vms, nodes, "meta.vm");
  links.Link(vms, &by_meta);
  EXPECT_EQ(by_meta.vms.at(0).link.state, nodepool::LinkState::kNone);
}

TEST(LastLinks, C15_a_look_without_nodes_links_none_each_time) {
  LastLinks links;
  const VmList vms = Vms({"a"});
  LinkAndCheck(&links, vms, Nodes({"a"}));
  for (int i = 0; i < 2; ++i) LinkAndCheck(&links, vms, nullptr);
}

TEST(LastLinks, S3_the_lists_end_with_their_last_other_user) {
  LastLinks links;
  VmList vms = Vms({"a"});
  NodeList nodes = Nodes({"a"});
  const std::weak_ptr<const std::vector<harvester::VirtualMachine>> of_vms = vms;
  const std::weak_ptr<const std::vector<nomad::Node>> of_nodes = nodes;
  LinkAndCheck(&links, vms, nodes);
  vms.reset();
  nodes.reset();
  EXPECT_TRUE(of_vms.expired());
  EXPECT_TRUE(of_nodes.expired());
}

}  // namespace
}  // namespace nomad_harvester::scaling
