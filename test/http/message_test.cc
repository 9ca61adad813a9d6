// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/message.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::http {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::Optional;
using testing::Pair;

TEST(Message, every_method_has_its_name) {
  EXPECT_EQ(MethodName(Method::kGet), "GET");
  EXPECT_EQ(MethodName(Method::kPost), "POST");
  EXPECT_EQ(MethodName(Method::kPut), "PUT");
  EXPECT_EQ(MethodName(Method::kPatch), "PATCH");
  EXPECT_EQ(MethodName(Method::kDelete), "DELETE");
}

TEST(Headers, are_found_in_any_case) {
  const Headers headers = {{"X-Nomad-Index", "7"}};
  EXPECT_THAT(headers.Find("x-nomad-INDEX"), Optional(Eq("7")));
  EXPECT_EQ(headers.Find("X-Nomad"), std::nullopt);
}

TEST(Headers, Find_returns_the_first_of_several_fields) {
  Headers headers;
  headers.Add("Warning", "one");
  headers.Add("warning", "two");
  EXPECT_THAT(headers.Find("Warning"), Optional(Eq("one")));
  EXPECT_EQ(headers.fields().size(), 2U);
}

TEST(Headers, Set_replaces_every_field_of_that_name_and_no_other) {
  Headers headers = {{"accept", "a"}, {"Other", "b"}, {"ACCEPT", "c"}};
  headers.Set("Accept", "d");
  EXPECT_THAT(headers.fields(), ElementsAre(Pair("Other", "b"), Pair("Accept", "d")));
}

TEST(Headers, Set_may_be_given_a_part_of_what_it_replaces) {
  Headers headers = {{"Token", "a value too long for the small string buffer"}};
  headers.Set(headers.fields().front().first, headers.fields().front().second);
  EXPECT_THAT(headers.fields(),
              ElementsAre(Pair("Token", "a value too long for the small string buffer")));
}

TEST(ServerDate, reads_the_Date_header) {
  HttpResponse response;
  response.headers.Add("date", "Sat, 21 Nov 2026 02:03:04 GMT");
  const auto date = ServerDate(response);
  ASSERT_TRUE(date.has_value());
  EXPECT_EQ(base::FormatRfc3339(*date), "2026-11-21T02:03:04Z");
}

TEST(ServerDate, is_nothing_without_a_readable_header) {
  HttpResponse response;
  EXPECT_EQ(ServerDate(response), std::nullopt);
  response.headers.Add("Date", "yesterday");
  EXPECT_EQ(ServerDate(response), std::nullopt);
}

}  // namespace
}  // namespace nomad_harvester::http
