// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/json_reader.h"

#include <cstddef>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "base/nested_arrays.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "support/status_matchers.h"

namespace nomad_harvester::base {
namespace {

using Json = nlohmann::json;
using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

absl::StatusOr<Json> Read(std::string_view text, const std::vector<std::string>& paths = {}) {
  DropTree drop;
  for (const std::string& path : paths) drop.Add(path);
  return ParseJson(text, "the reply", drop);
}

void ExpectRead(std::string_view text, const std::vector<std::string>& paths,
                const std::string& wanted) {
  const auto read = Read(text, paths);
  ASSERT_THAT(read, IsOk()) << text;
  EXPECT_EQ(*read, Json::parse(wanted)) << text;
}

TEST(ParseJson, reads_what_is_not_an_object) {
  for (const char* text : {"7", "null", "\"x\"", "true", "[]", "[{\"a\":1}]", "1.0"}) {
    ExpectRead(text, {}, text);
  }
}

TEST(DropTree, drops_a_member_regardless_of_its_value) {
  for (const char* value : {"1", "-1", "1.5", "null", "true", "\"x\"", "[]", "{}",
                            "[[1],{\"b\":[{}]}]", "{\"a\":{\"a\":[1]},\"c\":2}"}) {
    ExpectRead("{\"a\":" + std::string(value) + ",\"b\":2}", {"a"}, R"({"b":2})");
    ExpectRead("{\"b\":2,\"a\":" + std::string(value) + "}", {"a"}, R"({"b":2})");
  }
}

TEST(DropTree, drops_by_path_and_not_by_name) {
  ExpectRead(R"({"spec":{"volumes":1,"x":{"volumes":2}},"volumes":3})", {"spec.volumes"},
             R"({"spec":{"x":{"volumes":2}},"volumes":3})");
}

TEST(DropTree, a_path_goes_through_arrays_of_any_depth) {
  ExpectRead(R"({"a":[{"b":1,"c":2},[{"b":3}],"b",{"d":{"b":4}}]})", {"a.b"},
             R"({"a":[{"c":2},[{}],"b",{"d":{"b":4}}]})");
}

TEST(DropTree, a_path_applies_to_the_root_when_that_is_an_array) {
  ExpectRead(R"([{"a":1,"b":2},{"a":3}])", {"a"}, R"([{"b":2},{}])");
}

TEST(DropTree, several_paths_share_their_beginnings) {
  ExpectRead(R"({"a":{"b":{"c":1,"d":2,"e":3},"f":4},"g":5})", {"a.b.c", "a.b.e", "g"},
             R"({"a":{"b":{"d":2},"f":4}})");
}

TEST(DropTree, a_star_matches_any_one_member) {
  ExpectRead(R"({"t":{"web":{"s":1,"e":[1]},"db":{"e":[],"s":2}},"e":3})", {"t.*.e"},
             R"({"t":{"db":{"s":2},"web":{"s":1}},"e":3})");
}

TEST(DropTree, a_member_that_has_the_name_of_a_dropped_one_is_kept) {
  ExpectRead(R"({"t":{"m":{"s":1},"e":{"s":2}}})", {"m", "e", "t.*.e"},
             R"({"t":{"m":{"s":1},"e":{"s":2}}})");
}

TEST(DropTree, a_star_does_not_match_a_member_that_another_path_names) {
  ExpectRead(R"({"web":{"e":1,"x":2},"db":{"e":3,"x":4}})", {"*.e", "web.x"},
             R"({"web":{"e":1},"db":{"x":4}})");
}

TEST(DropTree, a_shorter_path_wins_in_any_order) {
  for (const auto& paths :
       {std::vector<std::string>{"a.b", "a"}, std::vector<std::string>{"a", "a.b"}}) {
    ExpectRead(R"({"a":{"b":1,"c":2},"d":3})", paths, R"({"d":3})");
  }
}

TEST(DropTree, a_path_that_leads_nowhere_drops_nothing) {
  for (const char* path : {"", "x", "a.x", "a.b.c.d", "a.", ".a", "a..b"}) {
    ExpectRead(R"({"a":{"b":{"c":1}}})", {path}, R"({"a":{"b":{"c":1}}})");
  }
}

TEST(DropTree, a_value_after_a_dropped_one_is_where_it_belongs) {
  ExpectRead(R"({"a":{"x":[{"x":1}],"y":[1,{"x":2}]},"b":[{"a":{"x":3}}]})", {"a.x"},
             R"({"a":{"y":[1,{"x":2}]},"b":[{"a":{"x":3}}]})");
}

TEST(DropTree, a_dropped_part_is_still_checked) {
  EXPECT_THAT(Read(R"({"a":[1,}],"b":2})", {"a"}), StatusIs(StatusCode::kInvalidArgument));
}

TEST(DropTree, levels_of_a_dropped_part_count_as_well) {
  EXPECT_THAT(Read("{\"x\":" + NestedArrays(199) + "}", {"x"}), IsOk());
  EXPECT_THAT(Read("{\"x\":" + NestedArrays(200) + "}", {"x"}),
              StatusIs(StatusCode::kInvalidArgument));
  EXPECT_FALSE(Read("{\"x\":" + std::string(5'000'000, '{'), {"x"}).ok());
}

constexpr char kSample[] =
    R"({"metadata":{"resourceVersion":"7","continue":""},"items":[{"metadata":{"name":"web-1",)"
    R"("managedFields":[{"f:spec":{}}]},"spec":{"a":[1,2.5,{"b":null}],"c":"\u00e4"}}]})";

// A broken connection can truncate a reply at any byte.
TEST(ParseJson, P2_any_cut_of_a_reply_is_an_error) {
  const std::string text = kSample;
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(
        Read(text.substr(0, length), {"items.spec.a", "items.metadata.managedFields"}).ok())
        << length;
  }
}

TEST(ParseJson, P2_a_changed_byte_gives_what_the_library_gives_or_an_error) {
  for (std::size_t at = 0; at < sizeof(kSample) - 1; ++at) {
    for (const char c : {'"', '{', '}', '[', ']', ',', ':', '0', 'x', '\0', '\x80', '\\'}) {
      std::string text = kSample;
      text[at] = c;
      const Json whole = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      const auto read = Read(text);
      EXPECT_EQ(read.ok(), !whole.is_discarded()) << text;
      if (read.ok()) {
        EXPECT_EQ(*read, whole) << text;
      }
    }
  }
}

// Removes `path` from a parsed value: the expected result of the reader.
void Erase(Json& value, std::string_view path) {
  if (value.is_array()) {
    for (Json& element : value) Erase(element, path);
    return;
  }
  if (!value.is_object()) return;
  const std::size_t dot = path.find('.');
  const std::string member(path.substr(0, dot));
  if (dot == std::string_view::npos) {
    value.erase(member);
  } else if (value.contains(member)) {
    Erase(value[member], path.substr(dot + 1));
  }
}

Json RandomValue(std::mt19937& random, int depth) {
  const auto pick = random() % (depth > 0 ? 6 : 3);
  Json value;
  switch (pick) {
    case 0:
      return random() % 100;
    case 1:
      return std::to_string(random() % 1000);
    case 2:
      return nullptr;
    case 3:
      value = Json::array();
      for (auto i = random() % 4; i > 0; --i) {
        value.push_back(RandomValue(random, depth - 1));
      }
      return value;
    default:
      value = Json::object();
      for (const char* key : {"a", "b", "c"}) {
        if (random() % 3 != 0) value[key] = RandomValue(random, depth - 1);
      }
      return value;
  }
}

TEST(DropTree, reading_without_a_path_is_reading_and_then_erasing) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const Json value = RandomValue(random, 6);
    Json wanted = value;
    std::vector<std::string> paths;
    for (const char* path : {"a", "b.a", "b.c.a", "c.b.a", "c.c"}) {
      if (random() % 2 == 0) continue;
      paths.emplace_back(path);
      Erase(wanted, path);
    }
    const auto read = Read(value.dump(), paths);
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(*read, wanted) << value;
  }
}

struct Elements {
  absl::Status status;
  std::vector<std::string> texts;
};

Elements ReadList(std::string_view text, std::initializer_list<std::string_view> paths = {}) {
  Elements elements;
  elements.status = ParseJsonList(text, "the list", DropTree(paths), [&elements](const Json& json) {
    elements.texts.push_back(json.dump());
    return absl::OkStatus();
  });
  return elements;
}

TEST(ParseJsonList, gives_the_elements_in_order) {
  const Elements read = ReadList(R"([{"a":[1,{"b":2}]}, {"c":{}}, 7, null, [], [[3]], "x"])");
  EXPECT_THAT(read.status, IsOk());
  EXPECT_THAT(read.texts, ElementsAre(R"({"a":[1,{"b":2}]})", R"({"c":{}})", "7", "null", "[]",
                                      "[[3]]", R"("x")"));
}

TEST(ParseJsonList, an_empty_list_and_a_null_have_no_elements) {
  for (const char* text : {"[]", " [ ] ", "null"}) {
    const Elements read = ReadList(text);
    EXPECT_THAT(read.status, IsOk()) << text;
    EXPECT_THAT(read.texts, IsEmpty()) << text;
  }
}

TEST(ParseJsonList, a_path_applies_to_each_element) {
  const Elements read = ReadList(R"([{"A":{"B":{"C":1}}},{"B":{"C":2}},{"C":3}])", {"A.B.C"});
  EXPECT_THAT(read.texts, ElementsAre(R"({"A":{"B":{}}})", R"({"B":{"C":2}})", R"({"C":3})"));
}

TEST(ParseJsonList, a_text_that_ends_too_early_is_an_error) {
  EXPECT_THAT(
      ReadList(R"([{"ID":"a"},{"ID":)").status,
      StatusIs(StatusCode::kInvalidArgument, "the list is not JSON: unexpected end of input"));
}

TEST(ParseJsonList, a_page_of_a_proxy_is_an_error) {
  for (const char* text : {"<html>sign in</html>", "", "[] trailing"}) {
    EXPECT_THAT(ReadList(text).status, StatusIs(StatusCode::kInvalidArgument)) << text;
  }
}

TEST(ParseJsonList, what_is_not_a_list_is_an_error) {
  for (const char* text : {"{}", R"({"a":[1]})", "7", R"("x")", "true"}) {
    const Elements read = ReadList(text);
    EXPECT_THAT(read.status, StatusIs(StatusCode::kInvalidArgument, "the list is not a list"))
        << text;
    EXPECT_THAT(read.texts, IsEmpty()) << text;
  }
}

TEST(ParseJsonList, two_hundred_levels_are_read_and_no_more) {
  EXPECT_THAT(ReadList(NestedArrays(200)).status, IsOk());
  EXPECT_THAT(ReadList(NestedArrays(201)).status,
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("nested deeper than 200 levels")));
}

TEST(ParseJsonList, the_first_error_of_an_element_ends_the_reading) {
  int calls = 0;
  const absl::Status status = ParseJsonList("[1,2,3]", "the list", {}, [&calls](const Json&) {
    ++calls;
    return Internal("number " + std::to_string(calls));
  });
  EXPECT_THAT(status, StatusIs(StatusCode::kInternal, "number 1"));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace nomad_harvester::base
