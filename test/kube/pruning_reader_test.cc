#include "pruning_reader.h"

#include <string>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/random.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

absl::StatusOr<Json> Read(std::string_view text, const std::vector<std::string>& paths = {}) {
  DropTree drop;
  for (const std::string& path : paths) drop.Add(path);
  return ReadPruned(text, drop);
}

void ExpectRead(std::string_view text, const std::vector<std::string>& paths,
                const std::string& wanted) {
  const auto read = Read(text, paths);
  ASSERT_THAT(read, IsOk()) << text;
  EXPECT_EQ(*read, Json::parse(wanted)) << text;
}

TEST(PruningReader, reads_every_kind_of_value) {
  const std::string text =
      R"({"s":"a\u00e4\"","i":-7,"u":18446744073709551615,"f":1.5,"t":true,"n":null,)"
      R"("a":[1,[2,{}],[]],"o":{"p":{}}})";
  ExpectRead(text, {}, text);
  EXPECT_TRUE((*Read(text))["u"].is_number_unsigned());
  EXPECT_TRUE((*Read(text))["i"].is_number_integer());
}

TEST(PruningReader, reads_what_is_no_object) {
  for (const char* text : {"7", "null", "\"x\"", "true", "[]", "[{\"a\":1}]", "1.0"}) {
    ExpectRead(text, {}, text);
  }
}

TEST(PruningReader, drops_a_member_whatever_its_value_is) {
  for (const char* value : {"1", "-1", "1.5", "null", "true", "\"x\"", "[]", "{}",
                            "[[1],{\"b\":[{}]}]", "{\"a\":{\"a\":[1]},\"c\":2}"}) {
    ExpectRead("{\"a\":" + std::string(value) + ",\"b\":2}", {"a"}, R"({"b":2})");
    ExpectRead("{\"b\":2,\"a\":" + std::string(value) + "}", {"a"}, R"({"b":2})");
  }
}

TEST(PruningReader, drops_by_path_and_not_by_name) {
  ExpectRead(R"({"spec":{"volumes":1,"x":{"volumes":2}},"volumes":3})", {"spec.volumes"},
             R"({"spec":{"x":{"volumes":2}},"volumes":3})");
}

TEST(PruningReader, a_path_goes_through_arrays_of_any_depth) {
  ExpectRead(R"({"a":[{"b":1,"c":2},[{"b":3}],"b",{"d":{"b":4}}]})", {"a.b"},
             R"({"a":[{"c":2},[{}],"b",{"d":{"b":4}}]})");
}

TEST(PruningReader, a_path_applies_to_the_root_when_that_is_an_array) {
  ExpectRead(R"([{"a":1,"b":2},{"a":3}])", {"a"}, R"([{"b":2},{}])");
}

TEST(PruningReader, several_paths_share_their_beginnings) {
  ExpectRead(R"({"a":{"b":{"c":1,"d":2,"e":3},"f":4},"g":5})", {"a.b.c", "a.b.e", "g"},
             R"({"a":{"b":{"d":2},"f":4}})");
}

TEST(PruningReader, a_shorter_path_wins_whatever_the_order) {
  for (const auto& paths :
       {std::vector<std::string>{"a.b", "a"}, std::vector<std::string>{"a", "a.b"}}) {
    ExpectRead(R"({"a":{"b":1,"c":2},"d":3})", paths, R"({"d":3})");
  }
}

TEST(PruningReader, a_path_that_leads_nowhere_drops_nothing) {
  for (const char* path : {"", "x", "a.x", "a.b.c.d", "a.", ".a", "a..b"}) {
    ExpectRead(R"({"a":{"b":{"c":1}}})", {path}, R"({"a":{"b":{"c":1}}})");
  }
}

TEST(PruningReader, a_value_after_a_dropped_one_is_where_it_belongs) {
  ExpectRead(R"({"a":{"x":[{"x":1}],"y":[1,{"x":2}]},"b":[{"a":{"x":3}}]})", {"a.x"},
             R"({"a":{"y":[1,{"x":2}]},"b":[{"a":{"x":3}}]})");
}

TEST(PruningReader, of_a_key_that_is_given_twice_the_last_value_counts) {
  ExpectRead(R"({"a":[1,2],"a":{"b":3}})", {}, R"({"a":{"b":3}})");
}

TEST(PruningReader, a_dropped_part_is_still_checked) {
  EXPECT_THAT(Read(R"({"a":[1,}],"b":2})", {"a"}), StatusIs(StatusCode::kInvalidArgument));
}

TEST(PruningReader, says_where_it_stops_and_never_quotes) {
  for (const char* text :
       {"", " ", "sesame", "{\"sesame\":", "{\"sesame\"}", "[sesame]", "{} sesame", "\"sesame",
        "{\"a\":\"sesame\xFF\"}", "{\"a\":1e999}", "{\"sesame\":01}", "\"\\ud800\""}) {
    EXPECT_THAT(Read(text), StatusIs(StatusCode::kInvalidArgument,
                                     AllOf(HasSubstr("not JSON: "), HasSubstr("at byte "),
                                           Not(HasSubstr("sesame")))))
        << text;
  }
}

std::string Nested(std::size_t depth, bool objects) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += objects ? "{\"a\":" : "[";
  text += "1";
  for (std::size_t i = 0; i < depth; ++i) text += objects ? '}' : ']';
  return text;
}

TEST(PruningReader, two_hundred_levels_are_read_and_no_more) {
  for (const bool objects : {false, true}) {
    EXPECT_THAT(Read(Nested(200, objects)), IsOk());
    EXPECT_THAT(Read(Nested(201, objects)),
                StatusIs(StatusCode::kInvalidArgument, "not JSON: nested deeper than 200 levels"));
  }
}

TEST(PruningReader, levels_of_a_dropped_part_count_as_well) {
  EXPECT_THAT(Read("{\"x\":" + Nested(199, false) + "}", {"x"}), IsOk());
  EXPECT_THAT(Read("{\"x\":" + Nested(200, false) + "}", {"x"}),
              StatusIs(StatusCode::kInvalidArgument));
}

TEST(PruningReader, P2_a_text_of_brackets_alone_is_refused) {
  EXPECT_FALSE(Read(std::string(5'000'000, '[')).ok());
  EXPECT_FALSE(Read("{\"x\":" + std::string(5'000'000, '{'), {"x"}).ok());
}

constexpr char kSample[] =
    R"({"metadata":{"resourceVersion":"7","continue":""},"items":[{"metadata":{"name":"web-1",)"
    R"("managedFields":[{"f:spec":{}}]},"spec":{"a":[1,2.5,{"b":null}],"c":"\u00e4"}}]})";

// Whatever a broken connection leaves of a reply.
TEST(PruningReader, P2_any_cut_of_a_reply_is_an_error) {
  const std::string text = kSample;
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(
        Read(text.substr(0, length), {"items.spec.a", "items.metadata.managedFields"}).ok())
        << length;
  }
}

TEST(PruningReader, P2_a_changed_byte_gives_what_the_library_gives_or_an_error) {
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

// Removes `path` from a value that is there already: what the reader must come to.
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

Json RandomValue(runtime::Random& random, int depth) {
  const auto pick = random.Next() % (depth > 0 ? 6 : 3);
  Json value;
  switch (pick) {
    case 0:
      return random.Next() % 100;
    case 1:
      return random.NextName(3);
    case 2:
      return nullptr;
    case 3:
      value = Json::array();
      for (std::uint64_t i = random.Next() % 4; i > 0; --i) {
        value.push_back(RandomValue(random, depth - 1));
      }
      return value;
    default:
      value = Json::object();
      for (const char* key : {"a", "b", "c"}) {
        if (random.Next() % 3 != 0) value[key] = RandomValue(random, depth - 1);
      }
      return value;
  }
}

TEST(PruningReader, reading_without_a_path_is_reading_and_then_erasing) {
  const auto random = runtime::MakeSeededRandom(7);
  for (int round = 0; round < 500; ++round) {
    const Json value = RandomValue(*random, 6);
    Json wanted = value;
    std::vector<std::string> paths;
    for (const char* path : {"a", "b.a", "b.c.a", "c.b.a", "c.c"}) {
      if (random->Next() % 2 == 0) continue;
      paths.emplace_back(path);
      Erase(wanted, path);
    }
    const auto read = Read(value.dump(), paths);
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(*read, wanted) << value;
  }
}

}  // namespace
}  // namespace nomad_harvester::kube
