// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "nomad_harvester/harvester/metadata.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;

TEST(NodesRecord, is_spelled_as_the_documentation_says) {
  EXPECT_EQ(json::parse(ToAnnotation(SampleNodes())), json::parse(R"({
    "region": "global", "node_class": "batch", "datacenter": "dc1", "node_pool": "workers",
    "node_attribute": "unique.hostname", "index": 4711})"));
}

TEST(NodesRecord, leaves_absent_identifiers_out_but_not_empty_ones) {
  NodesRecord nodes;
  nodes.datacenter = "";
  nodes.node_attribute = "meta.vm";
  EXPECT_EQ(json::parse(ToAnnotation(nodes)),
            json::parse(R"({"datacenter": "", "node_attribute": "meta.vm", "index": 0})"));
  EXPECT_THAT(ParseNodesRecord(ToAnnotation(nodes)), IsOkAndHolds(nodes));
}

TEST(NodesRecord, comes_back_as_it_was_written) {
  EXPECT_THAT(ParseNodesRecord(ToAnnotation(SampleNodes())), IsOkAndHolds(SampleNodes()));
  NodesRecord largest = SampleNodes();
  largest.index = 18446744073709551615U;
  EXPECT_THAT(ParseNodesRecord(ToAnnotation(largest)), IsOkAndHolds(largest));
}

TEST(NodesRecord, tolerates_members_that_it_does_not_know) {
  EXPECT_THAT(ParseNodesRecord(R"({"node_attribute":"a","index":1,"later":[1]})").value().index,
              1U);
}

TEST(NodesRecord, names_every_member_that_cannot_be_read) {
  EXPECT_THAT(ParseNodesRecord(R"({"region":1,"node_class":null,"index":-1})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("region"), HasSubstr("node_class"), HasSubstr("index"),
                             HasSubstr("node_attribute: is missing"))));
}

TEST(NodesRecord, is_unreadable_if_it_is_not_an_object) {
  for (const char* text : {"", "null", "[]", "1", "{", "\"x\"", "{}{}"}) {
    EXPECT_THAT(ParseNodesRecord(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace nomad_harvester::harvester
