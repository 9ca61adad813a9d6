// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/object.h"

#include "nomad_harvester/kube/observed.h"

#include "gtest/gtest.h"

namespace nomad_harvester::kube {
namespace {

TEST(Metadata, is_empty_where_it_is_missing_or_of_another_type) {
  for (const char* text : {"{}", "[]", "null", R"({"metadata":7})", R"({"metadata":{}})",
                           R"({"metadata":{"name":1,"uid":[],"resourceVersion":{}}})"}) {
    const Json object = Json::parse(text);
    EXPECT_EQ(NameOf(object), "") << text;
    EXPECT_EQ(ResourceVersionOf(object), "") << text;
  }
}

}  // namespace
}  // namespace nomad_harvester::kube
