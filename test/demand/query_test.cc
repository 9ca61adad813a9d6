// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/demand/query.h"

#include <chrono>
#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::demand {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string ProblemOf(const std::string& text) {
  const auto query = ParseQuery(text);
  EXPECT_FALSE(query.ok()) << text;
  if (query.ok()) return "";
  EXPECT_EQ(query.status().code(), absl::StatusCode::kInvalidArgument);
  return base::Message(query.status());
}

TEST(ParseQuery, reads_every_key) {
  const auto query = ParseQuery(
      " nodes-needed  node_class=batch datacenter=dc1 node_pool=\"gpu pool\" idle_for=1m30s\n"
      "headroom=3x(cpu=500,memory=1024) headroom=(cores=2) "
      "node=(cpu=8000, cores=4, memory=16384, disk=50000, \"nvidia/gpu/Tesla T4\"=2)");
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->node_class, "batch");
  EXPECT_EQ(query->datacenter, "dc1");
  EXPECT_EQ(query->node_pool, "gpu pool");
  EXPECT_EQ(query->idle_for, std::chrono::seconds(90));
  ASSERT_EQ(query->headroom.size(), 2U);
  EXPECT_EQ(query->headroom[0].count, 3);
  EXPECT_EQ(query->headroom[0].unit.cpu, 500);
  EXPECT_EQ(query->headroom[0].unit.memory_mb, 1024);
  EXPECT_EQ(query->headroom[1].count, 1);
  EXPECT_EQ(query->headroom[1].unit.cores, 2);
  ASSERT_TRUE(query->node.has_value());
  EXPECT_EQ(query->node->cpu, 8000);
  EXPECT_EQ(query->node->cores, 4);
  EXPECT_EQ(query->node->memory_mb, 16384);
  EXPECT_EQ(query->node->disk_mb, 50000);
  EXPECT_THAT(query->node->devices, ElementsAre(Pair("nvidia/gpu/Tesla T4", 2)));
  EXPECT_EQ(query->Identity().ToString(), "node_class=batch, datacenter=dc1, node_pool=gpu pool");
}

TEST(ParseQuery, one_identifier_is_enough) {
  for (const char* key : {"node_class", "datacenter", "node_pool"}) {
    const auto query = ParseQuery(std::string("nodes-needed ") + key + "=x");
    ASSERT_TRUE(query.ok()) << query.status();
    EXPECT_EQ(query->idle_for, std::chrono::minutes(10));
    EXPECT_FALSE(query->node.has_value());
  }
}

TEST(ParseQuery, takes_as_many_units_of_headroom_as_nodes_are_counted_for_a_group) {
  const auto query = ParseQuery("nodes-needed node_class=batch headroom=10000x(cpu=1)");
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->headroom.at(0).count, 10000);
}

TEST(ParseQuery, a_quoted_device_may_have_an_equals_sign) {
  const auto query = ParseQuery("nodes-needed node_class=batch node=(\"acme/gpu/mem=16\"=2)");
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_THAT(query->node->devices, ElementsAre(Pair("acme/gpu/mem=16", 2)));
}

TEST(ParseQuery, names_every_mistake_at_once) {
  EXPECT_EQ(ProblemOf("nodes-needed node_clas=batch headroom=3(cpu=1) idle_for=ten cheese=1"),
            "\"node_clas\" is no key of nodes-needed; did you mean node_class?\n"
            "headroom = \"3(cpu=1)\": \"3\" is no number of units from 1x to 10000x; give units of "
            "MHz and MiB, such as 3x(cpu=500,memory=1024), also with cores, disk and devices\n"
            "idle_for = \"ten\": give a duration with its unit, such as 90s, 10m or 1h\n"
            "\"cheese\" is no key of nodes-needed; the keys are node_class, datacenter, node_pool, "
            "headroom, idle_for, node\n"
            "name the pool with at least one of node_class, datacenter and node_pool");
}

TEST(ParseQuery, begins_with_what_is_asked) {
  for (const char* text : {"", "   ", "node_class=batch", "nodes_needed node_class=batch"}) {
    EXPECT_THAT(ProblemOf(text), HasSubstr("a query begins with nodes-needed, overflow or room"))
        << text;
  }
}

TEST(ParseQuery, knows_the_nearest_beginning) {
  EXPECT_EQ(ProblemOf("overflw node_class=cloud namespace=nomad pool=batch max=1"),
            "a query begins with nodes-needed, overflow or room; did you mean overflow?");
  EXPECT_EQ(ProblemOf("node_class=batch"),
            "a query begins with nodes-needed, overflow or room, such as \"nodes-needed "
            "node_class=batch\"");
}

TEST(ParseQuery, D7_of_an_overflow_has_the_pool_that_comes_first) {
  const auto query = ParseQuery(
      "overflow node_class=cloud namespace=nomad pool=batch max=10 idle_for=5m "
      "headroom=1x(cpu=500) node=(cpu=4000)");
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->subject, Subject::kOverflow);
  EXPECT_EQ(query->node_class, "cloud");
  EXPECT_EQ(ToString(query->home), "nomad/batch");
  EXPECT_EQ(query->home.max, 10);
  EXPECT_EQ(query->idle_for, std::chrono::minutes(5));
  EXPECT_EQ(ParseQuery("overflow node_class=cloud namespace=nomad pool=batch max=0")->home.max, 0);
}

TEST(ParseQuery, D6_of_the_room_has_the_pool_alone) {
  const auto query = ParseQuery("room pool=batch namespace=nomad");
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->subject, Subject::kRoom);
  EXPECT_EQ(ToString(query->home), "nomad/batch");
  EXPECT_TRUE(query->Identity().empty());
}

TEST(ParseQuery, names_what_a_query_about_a_pool_on_harvester_lacks) {
  EXPECT_EQ(ProblemOf("room pool=Batch max=3"),
            "pool = \"Batch\": give the node_group_name of the VMs, such as batch\n"
            "\"max\" is no key of room; the keys are namespace, pool\n"
            "room needs namespace: give the namespace of the VMs in Harvester, such as nomad");
  EXPECT_EQ(ProblemOf("overflow namespace=nomad pool=batch max=-1"),
            "max = \"-1\": give the most VMs that the pool may have, as in its policy, such as 10\n"
            "name the pool with at least one of node_class, datacenter and node_pool");
  EXPECT_EQ(ProblemOf("overflow node_class=cloud"),
            "overflow needs namespace: give the namespace of the VMs in Harvester, such as nomad\n"
            "overflow needs pool: give the node_group_name of the VMs, such as batch\n"
            "overflow needs max: give the most VMs that the pool may have, as in its policy, such "
            "as 10");
  EXPECT_THAT(ProblemOf("nodes-needed node_class=batch max=3"),
              HasSubstr("\"max\" is no key of nodes-needed; the keys are"));
}

TEST(ParseQuery, refuses_values_that_mean_nothing) {
  for (const char* word : {"node_class=",
                           "node_class=\"\"",
                           "node_class",
                           "datacenter=",
                           "idle_for=-1m",
                           "idle_for=10",
                           "headroom=",
                           "headroom=3x",
                           "headroom=0x(cpu=1)",
                           "headroom=10001x(cpu=1)",
                           "headroom=-1x(cpu=1)",
                           "headroom=3x()",
                           "headroom=3x(cpu=0)",
                           "headroom=3x(cpu=-1)",
                           "headroom=3x(cpu=1",
                           "headroom=3x(cpu=1))",
                           "headroom=3x(cpu=1.5)",
                           "headroom=3x(ram=1)",
                           "headroom=3x(cpu)",
                           "node=cpu=1",
                           "node=()",
                           "node=(gpu=1)",
                           "node_pool=\"a",
                           "node_pool=a\"b\"",
                           "node=(\"a/b\"/c=1)",
                           "headroom=(cores=1048577)",
                           "node=(cpu=2000000000000)"}) {
    EXPECT_FALSE(ParseQuery(std::string("nodes-needed datacenter=d ") + word).ok()) << word;
  }
}

TEST(ParseQuery, says_what_is_wrong_with_a_value_and_which_form_it_has) {
  const std::pair<const char*, const char*> problems[] = {
      {"headroom=0x(cpu=1)", "\"0x\" is no number of units from 1x to 10000x; give units"},
      {"headroom=99999999x(cpu=1)", "\"99999999x\" is no number of units from 1x to 10000x"},
      {"headroom=3", "it has no size in parentheses; give units"},
      {"headroom=3x(cpu=5,ram=1)",
       "\"ram=1\" is neither cpu, cores, memory or disk nor a device; give units"},
      {"headroom=3x(cpu=0)", "the size is empty; give units"},
      {"headroom=(cpu=5,memory=1,cpu=6)", "cpu is given twice; give units"},
      {"headroom=(cpu = 5)", "\"cpu = 5\": write KEY=VALUE without spaces around \"=\""},
      {"node=(cpu=5,memory=1GB)", "\"memory=1GB\" is no whole number of MiB from 0 to"},
      {"node=(cpu=5,disk=)", "\"disk=\" is no whole number of MiB from 0 to"},
      {"node=(a/b/c=5,a/b/c=6)", "a/b/c is given twice; give what a new node holds"},
      {"node=8000", "\"8000\" is no size in parentheses; give what a new node holds"},
      {"node_class=web,", "node_class = \"web,\": keys are separated by spaces, not by commas"},
      {"node_class=web;", "keys are separated by spaces, not by commas; give a node class"},
      {"node_class='web'", "no name has the character '; give a node class"},
      {"node_class=w*", "no name has the character *; give a node class"},
      {"node_pool=all", "all is Nomad's word for every node pool, and no node is in it; give"},
      {"idle_for=10", "idle_for = \"10\": give a duration with its unit, such as 90s"},
      {"idle_for=10min", "idle_for = \"10min\": give a duration with its unit, such as 90s"},
      {"idle_for=-1m", "idle_for = \"-1m\": give a duration with its unit, such as 90s"}};
  for (const auto& [word, problem] : problems) {
    EXPECT_THAT(ProblemOf(std::string("nodes-needed datacenter=d ") + word), HasSubstr(problem));
  }
}

TEST(ParseQuery, refuses_spaces_around_an_equals_sign_in_one_line) {
  for (const char* const pair : {"node_class = batch", "node_class =batch", "node_class= batch"}) {
    EXPECT_EQ(ProblemOf(std::string("nodes-needed ") + pair + " idle_for=1m"),
              "\"" + std::string(pair) + "\": write KEY=VALUE without spaces around \"=\"");
  }
  EXPECT_EQ(ProblemOf("nodes-needed node_class= datacenter=d"),
            "node_class = \"\": give a node class, such as batch");
}

TEST(ParseQuery, what_node_does_not_name_is_not_limited) {
  const auto query = ParseQuery("nodes-needed datacenter=d node=(cpu=8000,disk=0)");
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->node->cpu, 8000);
  EXPECT_EQ(query->node->disk_mb, 0);
  EXPECT_EQ(query->node->memory_mb, kUnlimited);
  EXPECT_EQ(query->node->cores, kUnlimited);
}

TEST(ParseQuery, only_headroom_may_be_given_twice) {
  EXPECT_EQ(ProblemOf("nodes-needed datacenter=a datacenter=b"), "datacenter is given twice");
  EXPECT_TRUE(ParseQuery("nodes-needed datacenter=a headroom=(cpu=1) headroom=(cpu=1)").ok());
}

TEST(ParseQuery, reads_or_refuses_every_cut_and_every_changed_byte) {
  const std::string text =
      R"(nodes-needed node_class=b headroom=3x(cpu=5,"a/b/c d"=1) idle_for=1m node=(memory=4))";
  ASSERT_TRUE(ParseQuery(text).ok());
  for (std::size_t i = 0; i < text.size(); ++i) {
    ParseQuery(text.substr(0, i)).IgnoreError();
    for (const char c : {'"', '(', ')', '=', ' ', ',', 'x', '\0', '\xff', '9', '-', '/'}) {
      std::string changed = text;
      changed[i] = c;
      const auto query = ParseQuery(changed);
      EXPECT_TRUE(query.ok() || !query.status().message().empty()) << changed;
    }
  }
}

TEST(QueryText, is_what_is_read) {
  for (const char* const text :
       {"nodes-needed node_class=batch", "nodes-needed node_pool=\"gpu pool\"",
        "nodes-needed datacenter=d idle_for=0s", "room namespace=nomad pool=batch",
        "overflow node_class=cloud idle_for=5m0s namespace=nomad pool=batch max=10",
        "nodes-needed node_class=b datacenter=d node_pool=p headroom=3x(cpu=5,memory=7,a/b/c=1) "
        "headroom=1x(cores=2,disk=9,\"a/b/c d\"=1) idle_for=1m30s "
        "node=(cpu=0,cores=4,memory=16384,disk=50000,\"a/b/c=(1,2)\"=2)"}) {
    const auto query = ParseQuery(text);
    ASSERT_TRUE(query.ok()) << query.status();
    EXPECT_EQ(ToString(*query), text);
  }
}

TEST(QueryText, of_a_node_has_what_it_does_not_limit) {
  const auto query = ParseQuery("nodes-needed node_class=b idle_for=10m node=(cpu=5)");
  ASSERT_TRUE(query.ok()) << query.status();
  const std::string text = ToString(*query);
  EXPECT_EQ(text, "nodes-needed node_class=b node=(cpu=5,memory=1099511627776,disk=1099511627776)");
  const auto again = ParseQuery(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->node->cores, kUnlimited);
}

}  // namespace
}  // namespace nomad_harvester::demand
