// SPDX-License-Identifier: Apache-2.0
// Chosen members of a document, read while it arrives in pieces.
#include "nomad_harvester/base/json_fields.h"

#include <cstddef>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/json.h"
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
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// What a reader sees: "path=value", in order.
class Seen {
 public:
  explicit Seen(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  bool operator()(int path, const JsonEvent& event) {
    std::string text = paths_[static_cast<std::size_t>(path)];
    if (const auto star = text.find('*'); star != std::string::npos) {
      text.replace(star, 1, event.name);
    }
    events.push_back(text + "=" + Text(event));
    return events.size() != most;
  }

  std::vector<std::string> events;
  std::size_t most = 0;  // stops the parser; 0: never

 private:
  static std::string Text(const JsonEvent& event) {
    switch (event.kind) {
      case JsonEvent::Kind::kNull:
        return "null";
      case JsonEvent::Kind::kBool:
        return event.boolean ? "true" : "false";
      case JsonEvent::Kind::kInt:
        return std::to_string(event.integer);
      case JsonEvent::Kind::kFloat:
        return "float";
      case JsonEvent::Kind::kText:
        return "'" + std::string(event.text) + "'";
      case JsonEvent::Kind::kObject:
        return "{";
      case JsonEvent::Kind::kArray:
        return "[";
      default:
        return "end";
    }
  }
  const std::vector<std::string> paths_;
};

absl::Status Push(std::string_view text, const JsonPaths& paths, Seen& seen,
                  std::size_t piece = std::string_view::npos) {
  JsonPushParser parser(paths, std::ref(seen));
  for (std::size_t at = 0; at < text.size(); at += std::min(piece, text.size())) {
    parser.Write(text.substr(at, piece));
  }
  return parser.Finish("the reply");
}

std::vector<std::string> Read(std::string_view text, const std::vector<std::string>& paths) {
  Seen seen(paths);
  EXPECT_THAT(Push(text, JsonPaths(paths), seen), IsOk()) << text;
  return seen.events;
}

absl::Status Check(std::string_view text, std::size_t piece = std::string_view::npos) {
  Seen nothing({"a.b"});
  return Push(text, JsonPaths({"a.b"}), nothing, piece);
}

TEST(JsonPushParser, passes_on_what_the_paths_name_and_nothing_else) {
  EXPECT_THAT(Read(R"({"a":{"b":1,"c":2},"b":3,"d":[{"b":4}]})", {"a.b"}), ElementsAre("a.b=1"));
  EXPECT_THAT(Read(R"({"a":{"b":{"a":{"b":2}}}})", {"a.b"}), ElementsAre("a.b={", "a.b=end"));
  EXPECT_THAT(Read(R"({"a":1,"b":"x"})", {"a.b", "b.c"}), IsEmpty());
}

TEST(JsonPushParser, knows_every_kind_of_value) {
  EXPECT_THAT(
      Read(R"({"a":[null,true,false,-7,9223372036854775807,9223372036854775808,1.5,"t\u00e4",{}]})",
           {"a"}),
      ElementsAre("a=[", "a=null", "a=true", "a=false", "a=-7", "a=9223372036854775807", "a=float",
                  "a=float", "a='t\xC3\xA4'", "a={", "a=end", "a=end"));
}

TEST(JsonPushParser, a_path_goes_through_arrays_of_any_depth) {
  EXPECT_THAT(Read(R"({"a":[{"b":1,"c":2},[{"b":3}],"b",{"d":{"b":4}}]})", {"a.b"}),
              ElementsAre("a.b=1", "a.b=3"));
  EXPECT_THAT(Read(R"([{"a":1,"b":2},{"a":3}])", {"a"}), ElementsAre("a=1", "a=3"));
}

TEST(JsonPushParser, the_empty_path_is_the_document) {
  EXPECT_THAT(Read("7", {""}), ElementsAre("=7"));
  EXPECT_THAT(Read(R"([{"a":1}])", {"", "a"}), ElementsAre("=[", "={", "a=1", "=end", "=end"));
}

TEST(JsonPushParser, a_star_is_any_member_that_no_other_path_names) {
  EXPECT_THAT(Read(R"({"t":{"web":{"s":1,"e":2},"db":{"s":3}},"s":4})", {"t.*.s"}),
              ElementsAre("t.web.s=1", "t.db.s=3"));
  EXPECT_THAT(Read(R"({"web":{"e":1,"x":2},"db":{"e":3,"x":4}})", {"*.e", "web.x"}),
              ElementsAre("web.x=2", "db.e=3"));
}

TEST(JsonPushParser, a_path_may_end_where_another_goes_on) {
  EXPECT_THAT(Read(R"({"a":{"b":1},"c":2})", {"a", "a.b"}), ElementsAre("a={", "a.b=1", "a=end"));
  EXPECT_THAT(Read(R"({"a":null})", {"a.b", "a"}), ElementsAre("a=null"));
}

TEST(ReadJson, gives_the_events_of_the_text) {
  const Json value = Json::parse(
      R"({"a":[null,true,-7,9223372036854775807,9223372036854775808,1.5,"t\u00e4",{"b":1},[[2]]],)"
      R"("c":{"x":{"d":1,"e":{"d":2}},"y":{"d":3}},"f":4})");
  const std::vector<std::vector<std::string>> cases = {
      {""}, {"a"}, {"a.b"}, {"c.*.d"}, {"c.*", "c.x.e", "f"}, {"g"}};
  for (const std::vector<std::string>& paths : cases) {
    Seen seen(paths);
    ReadJson(value, JsonPaths(paths), std::ref(seen));
    EXPECT_EQ(seen.events, Read(DumpJson(value), paths)) << paths.front();
  }
}

TEST(JsonPushParser, stops_when_its_reader_has_enough) {
  Seen seen({"a"});
  seen.most = 2;
  EXPECT_THAT(Push(R"([{"a":1},{"a":2},{"a":3}, what is this)", JsonPaths({"a"}), seen), IsOk());
  EXPECT_THAT(seen.events, ElementsAre("a=1", "a=2"));
}

TEST(JsonPushParser, says_where_a_document_is_wrong_and_never_quotes_it) {
  EXPECT_THAT(Check(R"({"a":secret})"), StatusIs(StatusCode::kInvalidArgument,
                                                 "the reply is not JSON: syntax error at byte 6"));
  EXPECT_THAT(
      Check(R"({"a":secret})", 3),
      StatusIs(StatusCode::kInvalidArgument, "the reply is not JSON: syntax error at byte 6"));
  EXPECT_THAT(Check(R"({"a":1} {)"), StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(Check(R"({"a":)"), StatusIs(StatusCode::kInvalidArgument,
                                          "the reply is not JSON: unexpected end of input"));
  for (const char* text : {"", " ", "<html>sign in</html>", "{\"a\":[1,}],\"b\":2}",
                           "{\"a\":{\"b\":\"\x80\"}}", "{\"\x80\":1}", "[1e999999999999]"}) {
    EXPECT_THAT(Check(text), StatusIs(StatusCode::kInvalidArgument)) << text;
  }
  EXPECT_THAT(Check(" {} \n"), IsOk());
}

TEST(JsonPushParser, P2_depth_is_limited_and_a_skipped_part_counts) {
  EXPECT_THAT(Check(NestedArrays(200)), IsOk());
  EXPECT_THAT(Check(NestedArrays(201)),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("nested deeper than 200 levels")));
  EXPECT_THAT(Check("{\"x\":" + NestedArrays(199) + "}"), IsOk());
  EXPECT_THAT(Check("{\"x\":" + NestedArrays(200) + "}"), StatusIs(StatusCode::kInvalidArgument));
  EXPECT_FALSE(Check("{\"x\":" + std::string(5'000'000, '[')).ok());
}

constexpr char kSample[] =
    R"({"metadata":{"resourceVersion":"7","continue":""},"items":[{"metadata":{"name":"web-1",)"
    R"("managedFields":[{"f:spec":{}}]},"spec":{"a":[1,2.5,{"b":null}],"c":"\u00e4"}}]})";

// A broken connection can truncate a reply at any byte.
TEST(JsonPushParser, P2_any_cut_of_a_reply_is_an_error) {
  const std::string text = kSample;
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(Check(text.substr(0, length)).ok()) << length;
    EXPECT_FALSE(Check(text.substr(0, length), 1).ok()) << length;
  }
}

// Boost takes what nlohmann takes, so that both readers agree on a document.
// But for the bytes of a text that nobody asked for.
TEST(JsonPushParser, P2_a_changed_byte_is_an_error_where_it_is_one_for_the_other_library) {
  for (std::size_t at = 0; at < sizeof(kSample) - 1; ++at) {
    for (const char c : {'"', '{', '}', '[', ']', ',', ':', '0', 'x', '\0', '\\'}) {
      std::string text = kSample;
      text[at] = c;
      const bool is_json = !Json::parse(text, nullptr, /*allow_exceptions=*/false).is_discarded();
      EXPECT_EQ(Check(text).ok(), is_json) << text;
      EXPECT_EQ(Check(text, 1).ok(), is_json) << text;
    }
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

TEST(JsonPushParser, any_pieces_give_the_events_of_the_whole_text) {
  std::mt19937 random(7);
  const std::vector<std::string> paths = {"", "a", "b.a", "b.c.a", "c.*", "c.*.a", "*.b.b"};
  const JsonPaths tree(paths);
  for (int round = 0; round < 300; ++round) {
    const Json value = RandomValue(random, 6);
    Seen wanted(paths);
    ASSERT_THAT(Push(value.dump(), tree, wanted, std::string_view::npos), IsOk());
    for (const std::size_t piece : {std::size_t{1}, std::size_t{3}}) {
      Seen seen(paths);
      ASSERT_THAT(Push(value.dump(), tree, seen, piece), IsOk());
      EXPECT_EQ(seen.events, wanted.events) << value;
    }
  }
}

struct Machine {
  std::string name;
  bool on = false;
  std::map<std::string, std::string> labels;
};

const JsonFields<Machine>& MachineFields() {
  static const auto* const kFields = new JsonFields<Machine>({
      {"name", &SetText<&Machine::name>},
      {"on", &SetBool<&Machine::on>},
      {"labels.*", &PutText<&Machine::labels>},
  });
  return *kFields;
}

TEST(JsonFields, leave_a_record_as_it_is_where_a_member_is_missing_or_of_another_type) {
  const Machine machine = MachineFields().Read(
      Json::parse(R"({"name":["old",7],"on":[true,"yes"],"labels":{"a":1,"b":"x"}})"));
  EXPECT_EQ(machine.name, "old");
  EXPECT_TRUE(machine.on);
  EXPECT_THAT(machine.labels, ElementsAre(Pair("b", "x")));
}

TEST(JsonFields, the_function_of_the_empty_path_comes_once_and_last) {
  const JsonFields<Machine> fields({
      {"", [](Machine& machine, const JsonEvent&) { machine.name += "!"; }},
      {"name", &SetText<&Machine::name>},
  });
  EXPECT_EQ(fields.Read(Json::parse(R"({"name":"a"})")).name, "a!");
  JsonRecords<Machine> records(fields);
  JsonListReader reader("items", fields.paths(), records);
  reader.Write(R"({"items":[{"name":"a"},{"on":true}]})");
  ASSERT_THAT(reader.Finish("the reply"), IsOk());
  const std::vector<Machine> machines = records.TakeAll();
  ASSERT_EQ(machines.size(), 2U);
  EXPECT_EQ(machines[0].name, "a!");
  EXPECT_EQ(machines[1].name, "!");
}

// Lists of machines at "items", with the texts "next" and "kind" beside them.
class JsonLists : public testing::Test {
 protected:
  absl::Status ReadAt(const std::string& list, std::string_view text, std::size_t piece = 1) {
    JsonListReader reader(list, MachineFields().paths(), records_, {"next", "kind"});
    for (std::size_t at = 0; at < text.size(); at += piece) reader.Write(text.substr(at, piece));
    const absl::Status status = reader.Finish("the reply");
    next_ = reader.beside(0);
    kind_ = reader.beside(1);
    names_.clear();
    for (const Machine& machine : records_.TakeAll()) names_.push_back(machine.name);
    return status;
  }
  static absl::Status NeedsName(Machine& machine) {
    return machine.name.empty() ? Internal("a machine without a name") : absl::OkStatus();
  }

  JsonRecords<Machine> records_{MachineFields(), &NeedsName};
  std::vector<std::string> names_;
  std::string next_;
  std::string kind_;
};

TEST_F(JsonLists, each_element_is_a_record_of_its_own) {
  const char* text = R"({"next":"t","items":[{"name":"a","on":true,"kind":"x"},{"name":"b"}],)"
                     R"("name":"c","kind":"MachineList"})";
  EXPECT_THAT(ReadAt("items", text), IsOk());
  EXPECT_THAT(names_, ElementsAre("a", "b"));
  EXPECT_EQ(next_, "t");
  EXPECT_EQ(kind_, "MachineList");
  EXPECT_THAT(ReadAt("", R"([{"name":"a"},{"name":"b"}])"), IsOk());
  EXPECT_THAT(names_, ElementsAre("a", "b"));
}

TEST_F(JsonLists, an_empty_list_and_a_null_have_no_elements) {
  for (const char* text : {"[]", " [ ] ", "null"}) {
    EXPECT_THAT(ReadAt("", text), IsOk()) << text;
    EXPECT_THAT(names_, IsEmpty());
  }
  EXPECT_THAT(ReadAt("items", R"({"items":null})"), IsOk());
}

TEST_F(JsonLists, what_is_not_a_list_of_objects_is_an_error) {
  for (const char* text : {"7", "{}", R"({"a":[{"name":"a"}]})", R"("x")", "true"}) {
    EXPECT_THAT(ReadAt("", text), StatusIs(StatusCode::kInvalidArgument, "the reply is not a list"))
        << text;
  }
  for (const char* text : {"{}", "[]", "null", R"({"items":{}})", R"({"items":"a"})"}) {
    EXPECT_THAT(ReadAt("items", text), StatusIs(StatusCode::kInvalidArgument)) << text;
  }
  for (const char* text : {"[1]", R"([{"name":"a"},null])", R"([[{"name":"a"}]])", R"(["a"])"}) {
    EXPECT_THAT(ReadAt("", text), StatusIs(StatusCode::kInvalidArgument,
                                           "the reply has an element that is not an object"))
        << text;
  }
}

TEST_F(JsonLists, a_list_that_no_cluster_has_is_an_error_before_it_fills_the_memory) {
  std::string text = "[{\"name\":\"a\"}";
  for (std::size_t i = 1; i < JsonListReader::kMaxElements; ++i) text += ",{\"name\":\"a\"}";
  EXPECT_THAT(ReadAt("", text + "]", text.size() + 1), IsOk());
  EXPECT_EQ(names_.size(), JsonListReader::kMaxElements);
  EXPECT_THAT(ReadAt("", text + ",{\"name\":\"a\"}]", text.size()),
              StatusIs(StatusCode::kInvalidArgument, "the reply has more than 200000 elements"));
}

TEST_F(JsonLists, the_first_error_of_an_element_ends_the_reading) {
  EXPECT_THAT(ReadAt("", R"([{"name":"a"},{"on":true},{"name":"c"}, no JSON)"),
              StatusIs(StatusCode::kInternal, "a machine without a name"));
  EXPECT_THAT(names_, ElementsAre("a"));
}

TEST_F(JsonLists, a_text_beside_the_list_is_a_text_or_missing) {
  EXPECT_THAT(ReadAt("items", R"({"next":null,"items":[]})"), IsOk());
  EXPECT_EQ(next_, "");
  for (const char* other : {"7", "true", "{}", R"(["t"])"}) {
    EXPECT_THAT(ReadAt("items", R"({"items":[],"next":)" + std::string(other) + "}"),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("next that is not a string")))
        << other;
  }
}

TEST_F(JsonLists, a_document_that_begins_again_forgets_the_first_one) {
  JsonListReader reader("items", MachineFields().paths(), records_, {"next"});
  reader.Write(R"({"next":"t","items":[{"name":"a"},{"na)");
  reader.Begin();
  reader.Write(R"({"items":[{"name":"b"}]})");
  EXPECT_THAT(reader.Finish("the reply"), IsOk());
  EXPECT_EQ(reader.beside(0), "");
  const std::vector<Machine> machines = records_.TakeAll();
  ASSERT_EQ(machines.size(), 1U);
  EXPECT_EQ(machines[0].name, "b");
}

}  // namespace
}  // namespace nomad_harvester::base
