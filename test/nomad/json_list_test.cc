#include "json_list.h"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::nomad {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct ReadResult {
  absl::Status status;
  std::vector<std::string> elements;
};

ReadResult ReadAll(std::string_view text, const std::vector<std::string_view>& unread = {}) {
  ReadResult result;
  result.status = ForEachElement(text, "the list", unread, [&result](const nlohmann::json& json) {
    result.elements.push_back(json.dump());
    return absl::OkStatus();
  });
  return result;
}

TEST(JsonList, gives_the_elements_in_order) {
  const ReadResult result = ReadAll(R"([{"a":[1,{"b":2}]}, {"c":{}}, 7, null, [], "x"])");
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(result.elements,
              ElementsAre(R"({"a":[1,{"b":2}]})", R"({"c":{}})", "7", "null", "[]", R"("x")"));
}

TEST(JsonList, an_empty_list_and_a_null_have_no_elements) {
  for (const char* text : {"[]", " [ ] ", "null"}) {
    const ReadResult result = ReadAll(text);
    EXPECT_TRUE(result.status.ok()) << text << result.status;
    EXPECT_THAT(result.elements, IsEmpty()) << text;
  }
}

TEST(JsonList, leaves_out_unread_members_by_their_path) {
  const ReadResult result =
      ReadAll(R"([{"Metrics":{"x":1},"ID":"a","Job":{"Type":"batch","TaskGroups":[{"y":2}]}}])",
              {"Metrics", "Job/TaskGroups"});
  ASSERT_TRUE(result.status.ok());
  EXPECT_THAT(result.elements, ElementsAre(R"({"ID":"a","Job":{"Type":"batch"}})"));
}

TEST(JsonList, a_star_stands_for_any_one_member) {
  const ReadResult result = ReadAll(
      R"([{"TaskStates":{"web":{"State":"dead","Events":[1]},"db":{"Events":[],"State":"x"}}}])",
      {"TaskStates/*/Events"});
  EXPECT_THAT(result.elements,
              ElementsAre(R"({"TaskStates":{"db":{"State":"x"},"web":{"State":"dead"}}})"));
}

TEST(JsonList, a_task_that_bears_the_name_of_an_unread_member_is_read) {
  const ReadResult result =
      ReadAll(R"([{"TaskStates":{"Metrics":{"State":"running"},"Events":{"State":"running"}}}])",
              {"Metrics", "Events", "TaskStates/*/Events"});
  EXPECT_THAT(
      result.elements,
      ElementsAre(
          R"({"TaskStates":{"Events":{"State":"running"},"Metrics":{"State":"running"}}})"));
}

TEST(JsonList, a_path_begins_anew_with_each_element) {
  const ReadResult result = ReadAll(R"([{"A":{"B":{"C":1}}},{"B":{"C":2}},{"C":3}])", {"A/B/C"});
  EXPECT_THAT(result.elements, ElementsAre(R"({"A":{"B":{}}})", R"({"B":{"C":2}})", R"({"C":3})"));
}

TEST(JsonList, a_text_that_ends_too_early_is_an_error) {
  const ReadResult result = ReadAll(R"([{"ID":"a"},{"ID":)");
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(base::Message(result.status), "the list is not JSON");
}

TEST(JsonList, a_page_of_a_proxy_is_an_error) {
  EXPECT_EQ(ReadAll("<html>sign in</html>").status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ReadAll("").status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ReadAll("[] trailing").status.code(), absl::StatusCode::kInternal);
}

TEST(JsonList, what_is_no_list_is_an_error) {
  for (const char* text : {"{}", R"({"a":[1]})", "7", R"("x")", "true"}) {
    const ReadResult result = ReadAll(text);
    EXPECT_EQ(base::Message(result.status), "the list is not a list") << text;
    EXPECT_THAT(result.elements, IsEmpty()) << text;
  }
}

TEST(JsonList, a_bottomless_document_is_refused_without_being_built) {
  const std::string deep(200000, '[');
  EXPECT_FALSE(ReadAll(deep).status.ok());
  const std::string closed = std::string(5000, '[') + std::string(5000, ']');
  EXPECT_EQ(base::Message(ReadAll(closed).status), "the list is nested too deeply");
}

TEST(JsonList, a_hundred_levels_are_read) {
  const std::string text = std::string(100, '[') + std::string(100, ']');
  EXPECT_TRUE(ReadAll(text).status.ok());
}

TEST(JsonList, the_first_error_of_an_element_ends_the_reading) {
  int calls = 0;
  const absl::Status status =
      ForEachElement("[1,2,3]", "the list", {}, [&calls](const nlohmann::json&) {
        ++calls;
        return base::Internal("number " + std::to_string(calls));
      });
  EXPECT_EQ(base::Message(status), "number 1");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace nomad_harvester::nomad
