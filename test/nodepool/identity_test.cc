// SPDX-License-Identifier: Apache-2.0
// The checklist of hashicorp/nomad-autoscaler:sdk/helper/scaleutils/nodepool/*_test.go.
#include "nomad_harvester/nodepool/identity.h"

#include "gtest/gtest.h"
#include "nodepool/builders.h"

namespace nomad_harvester::nodepool {
namespace {

PoolIdentity ByClass(std::string_view value) { return {.node_class = value}; }
PoolIdentity ByDatacenter(std::string_view value) { return {.datacenter = value}; }
PoolIdentity ByPool(std::string_view value) { return {.node_pool = value}; }

nomad::Node Node(std::string node_class, std::string datacenter = "", std::string pool = "") {
  return NodeBuilder("n")
      .Class(std::move(node_class))
      .Datacenter(std::move(datacenter))
      .Pool(std::move(pool));
}

TEST(NodeClass, equal_different_empty_and_the_default) {
  EXPECT_TRUE(ByClass("foo").Contains(Node("foo")));
  EXPECT_FALSE(ByClass("foo").Contains(Node("bar")));
  EXPECT_FALSE(ByClass("foo").Contains(Node("")));
  EXPECT_FALSE(ByClass("Foo").Contains(Node("foo")));
  EXPECT_FALSE(ByClass("").Contains(Node("foo")));
  EXPECT_FALSE(ByClass("").Contains(Node("")));
  EXPECT_TRUE(ByClass("autoscaler-default-pool").Contains(Node("")));
  EXPECT_TRUE(ByClass("autoscaler-default-pool").Contains(Node("autoscaler-default-pool")));
  EXPECT_FALSE(ByClass("autoscaler-default-pool").Contains(Node("foo")));
}

TEST(Datacenter, equal_different_and_empty) {
  EXPECT_TRUE(ByDatacenter("dc1").Contains(Node("", "dc1")));
  EXPECT_FALSE(ByDatacenter("dc1").Contains(Node("", "dc2")));
  EXPECT_FALSE(ByDatacenter("dc1").Contains(Node("", "")));
  EXPECT_FALSE(ByDatacenter("dc1").Contains(Node("", "DC1")));
  EXPECT_TRUE(ByDatacenter("").Contains(Node("", "")));
}

TEST(NodePool, equal_different_and_empty) {
  EXPECT_TRUE(ByPool("gpu").Contains(Node("", "", "gpu")));
  EXPECT_FALSE(ByPool("gpu").Contains(Node("", "", "default")));
  EXPECT_FALSE(ByPool("gpu").Contains(Node("", "", "")));
  EXPECT_TRUE(ByPool("").Contains(Node("", "", "")));
}

TEST(PoolIdentity, combined_class_and_datacenter_is_an_and) {
  const PoolIdentity both{.node_class = "test-class", .datacenter = "dc1"};
  EXPECT_TRUE(both.Contains(Node("test-class", "dc1")));
  EXPECT_FALSE(both.Contains(Node("test-class", "dc2")));
  EXPECT_FALSE(both.Contains(Node("other-class", "dc1")));
  EXPECT_FALSE(both.Contains(Node("other-class", "dc2")));
}

TEST(PoolIdentity, combined_class_datacenter_and_node_pool_is_an_and) {
  const PoolIdentity all{.node_class = "test-class", .datacenter = "dc1", .node_pool = "gpu"};
  EXPECT_TRUE(all.Contains(Node("test-class", "dc1", "gpu")));
  EXPECT_FALSE(all.Contains(Node("test-class", "dc1", "default")));
  EXPECT_FALSE(all.Contains(Node("test-class", "dc2", "gpu")));
  EXPECT_FALSE(all.Contains(Node("other-class", "dc1", "gpu")));
}

TEST(PoolIdentity, without_any_identifier_it_is_empty_and_contains_nothing) {
  const PoolIdentity none;
  EXPECT_TRUE(none.empty());
  EXPECT_FALSE(none.Contains(Node("", "", "")));
  EXPECT_FALSE(none.Contains(Node("foo", "dc1", "default")));
  EXPECT_FALSE(ByClass("").empty()) << "presence counts, not content";
}

TEST(PoolIdentity, is_written_in_the_order_class_datacenter_pool) {
  EXPECT_EQ((PoolIdentity{.node_class = "x", .datacenter = "y", .node_pool = "z"}).ToString(),
            "node_class=x, datacenter=y, node_pool=z");
  EXPECT_EQ((PoolIdentity{.datacenter = "dc1", .node_pool = "gpu"}).ToString(),
            "datacenter=dc1, node_pool=gpu");
  EXPECT_EQ(ByClass("").ToString(), "node_class=");
  EXPECT_EQ(PoolIdentity{}.ToString(), "");
}

TEST(PoolIdentity, equals_by_presence_and_content) {
  EXPECT_EQ(ByClass("a"), ByClass("a"));
  EXPECT_NE(ByClass("a"), ByClass("b"));
  EXPECT_NE(ByClass(""), PoolIdentity{});
}

}  // namespace
}  // namespace nomad_harvester::nodepool
