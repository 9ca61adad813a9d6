// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <string>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/replies.h"
#include "support/status_matchers.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST(DecodeObject, an_error_names_what_was_asked_and_why) {
  EXPECT_THAT(DecodeObject(Response(200, "{\"items\":[{]}"), "get X"),
              StatusIs(StatusCode::kInternal,
                       "get X: the reply cannot be decoded: the body is not JSON: syntax error at "
                       "byte 12"));
  EXPECT_THAT(DecodeObject(Response(200, "[]"), "get X"),
              StatusIs(StatusCode::kInternal, HasSubstr("it is not a JSON object")));
}

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
