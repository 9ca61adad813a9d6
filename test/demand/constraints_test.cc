// SPDX-License-Identifier: Apache-2.0
#include "constraints.h"

#include <string>
#include <vector>

#include "demand/builders.h"
#include "gtest/gtest.h"

namespace nomad_harvester::demand {
namespace {

struct Row {
  Constraint constraint;
  Truth truth;
};
constexpr Truth kNo = Truth::kNo;
constexpr Truth kYes = Truth::kYes;
constexpr Truth kCannotTell = Truth::kCannotTell;

nomad::Node Node() {
  nomad::Node node = *MakeNode("n1").node;
  node.attributes["cpu.numcores"] = "8";
  node.attributes["os.version"] = "12.5";
  node.attributes["nomad.version"] = "1.6.3";
  node.meta = {{"features", "gpu, ssd,big"}, {"empty", ""}, {"zone", "a"}};
  return node;
}

TEST(ConstraintOnNode, has_the_operators_of_nomad) {
  const Row rows[] = {
      {{"${attr.kernel.name}", "=", "linux"}, kYes},
      {{"${attr.kernel.name}", "==", "windows"}, kNo},
      {{"${attr.kernel.name}", "is", "linux"}, kYes},
      {{"${attr.kernel.name}", "!=", "windows"}, kYes},
      {{"${attr.kernel.name}", "not", "linux"}, kNo},
      // A missing target equals nothing, not even itself, and differs from all but the empty text.
      {{"${attr.missing}", "=", ""}, kNo},
      {{"${attr.missing}", "=", "${attr.missing}"}, kNo},
      {{"${attr.missing}", "!=", "x"}, kYes},
      {{"${attr.missing}", "!=", ""}, kNo},
      {{"${meta.empty}", "=", ""}, kYes},
      // As integers, else as floats, else by their letters.
      {{"${attr.cpu.numcores}", ">", "16"}, kNo},
      {{"${attr.cpu.numcores}", "<", "16"}, kYes},
      {{"${attr.cpu.numcores}", "<=", "8"}, kYes},
      {{"${attr.cpu.numcores}", ">=", "8.5"}, kNo},
      {{"${attr.os.version}", ">", "12.10"}, kYes},
      {{"${attr.kernel.name}", ">", "16"}, kYes},
      {{"${attr.missing}", "<", "16"}, kNo},
      {{"${attr.os.version}", "regexp", "^1[0-9]\\."}, kYes},
      {{"${attr.os.version}", "regexp", "13"}, kNo},
      {{"${attr.os.version}", "regexp", "("}, kNo},
      {{"${attr.nomad.version}", "version", ">= 1.6, < 2.0"}, kYes},
      {{"${attr.nomad.version}", "semver", "> 1.6.3"}, kNo},
      {{"${meta.features}", "set_contains", "gpu,ssd"}, kYes},
      {{"${meta.features}", "set_contains_all", "gpu, hdd"}, kNo},
      {{"${meta.features}", "set_contains_any", "hdd,big"}, kYes},
      {{"${meta.features}", "set_contains_any", "hdd"}, kNo},
      {{"${meta.features}", "set_contains", "gpu,gpu"}, kYes},
      {{"${meta.missing}", "set_contains", "gpu"}, kNo},
      {{"${meta.empty}", "is_set", ""}, kYes},
      {{"${meta.missing}", "is_set", ""}, kNo},
      {{"${meta.missing}", "is_not_set", ""}, kYes},
      {{"${meta.empty}", "is_not_set", ""}, kNo},
      {{"${meta.zone}", "resembles", "a"}, kCannotTell},
  };
  for (const Row& row : rows) {
    const ConstraintCheck check(row.constraint);
    EXPECT_EQ(check.On(Node()), row.truth) << check.ToString();
  }
}

TEST(ConstraintOnNode, knows_each_target_on_both_sides) {
  const std::vector<Constraint> met = {
      {"${node.unique.id}", "=", "n1"},          {"${node.unique.name}", "=", "vm-n1"},
      {"${node.datacenter}", "=", "dc1"},        {"${node.class}", "=", "batch"},
      {"${node.pool}", "=", "default"},          {"linux", "=", "${attr.kernel.name}"},
      {"${unknown.target}", "!=", "x"},          {"${unknown.target}", "is_not_set", ""},
      {"vm-n1", "regexp", "${node.unique.name}"}};
  for (const Constraint& constraint : met) {
    const ConstraintCheck check(constraint);
    EXPECT_EQ(check.On(Node()), kYes) << check.ToString();
  }
}

TEST(ConstraintOnNode, cannot_tell_of_a_node_that_was_not_read_in_full) {
  nomad::Node node = Node();
  node.full = false;
  EXPECT_EQ(ConstraintCheck({"${meta.zone}", "=", "a"}).On(node), kCannotTell);
  EXPECT_EQ(ConstraintCheck({"${meta.zone}", "is_not_set", ""}).On(node), kCannotTell);
  EXPECT_EQ(ConstraintCheck({"${node.class}", "=", "batch"}).On(node), kYes);
}

TEST(ConstraintOnNode, a_pattern_that_is_too_large_is_not_told) {
  const std::string pattern = "((((a{100}){100}){100}){100}){100}";
  EXPECT_NE(ConstraintCheck({"${meta.zone}", "regexp", pattern}).On(Node()), kYes);
}

TEST(ConstraintOnNewNode, has_the_answer_that_all_known_nodes_give) {
  nomad::Node a = Node();
  nomad::Node b = Node();
  b.id = "n2";
  b.attributes["os.version"] = "12.6";
  b.meta["zone"] = "b";
  b.meta["only_here"] = "x";
  const Query query = BatchQuery();
  const nodepool::PoolIdentity identity = query.Identity();
  const NewNode node({&a, &b}, identity);
  const Row rows[] = {
      {{"${attr.kernel.name}", "=", "linux"}, kYes},
      {{"${attr.kernel.name}", "=", "windows"}, kNo},
      {{"${attr.os.version}", ">=", "12.5"}, kYes},
      {{"${attr.os.version}", ">=", "12.6"}, kCannotTell},
      {{"${meta.zone}", "=", "a"}, kCannotTell},
      {{"${meta.zone}", "=", "c"}, kNo},
      {{"${meta.zone}", "is_set", ""}, kYes},
      {{"${meta.only_here}", "is_set", ""}, kCannotTell},
      {{"${meta.nowhere}", "is_set", ""}, kNo},
      {{"${node.class}", "=", "batch"}, kYes},
      // What a node has for itself differs from each text that a job names.
      {{"${attr.unique.hostname}", "!=", "vm-n1"}, kYes},
      {{"${attr.unique.hostname}", "=", "vm-n1"}, kCannotTell},
      {{"${attr.unique.hostname}", "regexp", "^vm-"}, kCannotTell},
      {{"${attr.unique.hostname}", "is_set", ""}, kYes},
      {{"${attr.unique.instance}", "is_set", ""}, kNo},
      {{"${node.unique.id}", "=", "n1"}, kCannotTell},
  };
  for (const Row& row : rows) {
    const ConstraintCheck check(row.constraint);
    EXPECT_EQ(check.On(node), row.truth) << check.ToString();
  }
}

TEST(ConstraintOnNewNode, of_a_pool_without_nodes_only_its_identity_tells) {
  Query query = BatchQuery();
  query.datacenter = "dc1";
  query.node_pool = "gpu";
  const nodepool::PoolIdentity identity = query.Identity();
  const NewNode node({}, identity);
  EXPECT_EQ(ConstraintCheck({"${node.class}", "=", "batch"}).On(node), kYes);
  EXPECT_EQ(ConstraintCheck({"${node.class}", "=", "web"}).On(node), kNo);
  EXPECT_EQ(ConstraintCheck({"${node.datacenter}", "=", "dc1"}).On(node), kYes);
  EXPECT_EQ(ConstraintCheck({"${node.pool}", "!=", "gpu"}).On(node), kNo);
  EXPECT_EQ(ConstraintCheck({"${attr.kernel.name}", "=", "linux"}).On(node), kCannotTell);
  query.node_class = "autoscaler-default-pool";
  const nodepool::PoolIdentity none = query.Identity();
  EXPECT_EQ(ConstraintCheck({"${node.class}", "=", ""}).On(NewNode({}, none)), kYes);
}

TEST(MatchesGlob, stars_are_any_text) {
  const std::pair<const char*, const char*> matches[] = {
      {"*", "dc1"},  {"*", ""},      {"dc1", "dc1"},     {"dc*", "dc1"},
      {"*1", "dc1"}, {"d*1", "dc1"}, {"d*c*1", "dc-c1"}, {"**", "x"}};
  for (const auto& [pattern, text] : matches) EXPECT_TRUE(MatchesGlob(pattern, text)) << pattern;
  const std::pair<const char*, const char*> others[] = {{"", "dc1"},      {"dc", "dc1"},
                                                        {"dc2*", "dc1"},  {"*2", "dc1"},
                                                        {"ab*ba", "aba"}, {"a*b*c", "ac"}};
  for (const auto& [pattern, text] : others) EXPECT_FALSE(MatchesGlob(pattern, text)) << pattern;
}

}  // namespace
}  // namespace nomad_harvester::demand
