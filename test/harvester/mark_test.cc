// SPDX-License-Identifier: Apache-2.0
// Any version of the plugin may have to finish a removal from its mark, so the mark's format is
// fixed.
#include <string>
#include <tuple>

#include "nomad_harvester/harvester/metadata.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;

json SampleObject() { return json::parse(ToAnnotation(SampleMark())); }

TEST(Mark, is_spelled_as_the_documentation_says) {
  EXPECT_EQ(SampleObject(), json::parse(R"({
    "action": "a-1", "reason": "scale-in", "vm_uid": "uid-1", "node_id": "node-1",
    "marked_at": "2026-11-21T02:03:04Z", "drain_deadline": "2026-11-21T02:18:04Z",
    "grace": "5m0s", "force": true, "ignore_system": false, "purge": true,
    "nodes": {"region": "global", "node_class": "batch", "datacenter": "dc1",
              "node_pool": "workers", "node_attribute": "unique.hostname", "index": 4711}})"));
}

TEST(Mark, comes_back_as_it_was_written) {
  EXPECT_THAT(ParseMark(ToAnnotation(SampleMark())), IsOkAndHolds(SampleMark()));
}

TEST(Mark, C9_spells_a_deadline_of_zero_none_and_a_negative_one_now) {
  Mark mark = SampleMark();
  mark.drain_deadline = {DrainDeadline::Kind::kNone, {}};
  EXPECT_EQ(json::parse(ToAnnotation(mark))["drain_deadline"], "none");
  EXPECT_THAT(ParseMark(ToAnnotation(mark)), IsOkAndHolds(mark));
  mark.drain_deadline = {DrainDeadline::Kind::kNow, {}};
  EXPECT_EQ(json::parse(ToAnnotation(mark))["drain_deadline"], "now");
  EXPECT_THAT(ParseMark(ToAnnotation(mark)), IsOkAndHolds(mark));
}

TEST(Mark, has_three_reasons) {
  for (const auto& [reason, name] :
       {std::pair{MarkReason::kScaleIn, "scale-in"}, std::pair{MarkReason::kBroken, "broken"},
        std::pair{MarkReason::kUnhealthy, "unhealthy"}}) {
    Mark mark = SampleMark();
    mark.reason = reason;
    EXPECT_EQ(MarkReasonName(reason), name);
    EXPECT_EQ(json::parse(ToAnnotation(mark))["reason"], name);
    EXPECT_THAT(ParseMark(ToAnnotation(mark)), IsOkAndHolds(mark));
  }
}

TEST(Replaces, has_five_reasons_which_people_read_with_their_details) {
  using Kind = ReplaceReason::Kind;
  for (const auto& [reason, name, text] :
       {std::tuple{ReplaceReason{Kind::kUnhealthy}, "unhealthy", "unhealthy"},
        std::tuple{ReplaceReason{Kind::kRequested, "slow"}, "requested", "requested: slow"},
        std::tuple{ReplaceReason{Kind::kHost, "rack1-a"}, "host", "host rack1-a is cordoned"},
        std::tuple{ReplaceReason{Kind::kDrifted, "image"}, "drifted", "drifted: image"},
        std::tuple{ReplaceReason{Kind::kExpired}, "expired", "expired"}}) {
    const Replaces replaces{.vm = "web-a", .uid = "uid-a", .reason = reason};
    EXPECT_EQ(json::parse(ToAnnotation(replaces))["reason"], name);
    EXPECT_EQ(Describe(reason), text);
    EXPECT_THAT(ParseReplaces(ToAnnotation(replaces)), IsOkAndHolds(replaces));
  }
}

TEST(Replaces, a_reason_of_another_version_is_a_request_with_its_text) {
  Replaces replaces{
      .vm = "web-a", .uid = "uid-a", .reason = {ReplaceReason::Kind::kRequested, "host rack1-a"}};
  EXPECT_THAT(ParseReplaces(R"({"vm": "web-a", "uid": "uid-a", "reason": "host rack1-a"})"),
              IsOkAndHolds(replaces));
  replaces.reason.detail = "rebalanced: zone x";
  EXPECT_THAT(ParseReplaces(
                  R"({"vm": "web-a", "uid": "uid-a", "reason": "rebalanced", "detail": "zone x"})"),
              IsOkAndHolds(replaces));
  EXPECT_THAT(ParseReplaces(R"({"vm": "web-a", "uid": "uid-a", "reason": ""})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reason: is empty")));
  EXPECT_FALSE(ParseReplaces(R"(["reason"])").ok());
}

TEST(Mark, of_a_VM_without_a_node_has_an_empty_node_id) {
  Mark mark = SampleMark();
  mark.node_id.clear();
  EXPECT_THAT(ParseMark(ToAnnotation(mark)), IsOkAndHolds(mark));
  json object = SampleObject();
  object.erase("node_id");
  EXPECT_THAT(ParseMark(object.dump()), IsOkAndHolds(mark));
}

TEST(Mark, keeps_fractions_of_a_second) {
  Mark mark = SampleMark();
  mark.drain_deadline.at += std::chrono::milliseconds(1500);
  mark.grace = std::chrono::milliseconds(250);
  EXPECT_EQ(json::parse(ToAnnotation(mark))["drain_deadline"], "2026-11-21T02:18:05.5Z");
  EXPECT_EQ(json::parse(ToAnnotation(mark))["grace"], "250ms");
  EXPECT_THAT(ParseMark(ToAnnotation(mark)), IsOkAndHolds(mark));
}

TEST(Mark, reads_any_offset_of_a_time) {
  json object = SampleObject();
  object["marked_at"] = "2026-11-21T03:03:04+01:00";
  EXPECT_THAT(ParseMark(object.dump()), IsOkAndHolds(SampleMark()));
}

TEST(Mark, keeps_the_members_that_it_does_not_know) {
  json object = SampleObject();
  object["later"] = {{"deep", {1, 2, nullptr}}};
  object["also"] = "x";
  const auto mark = ParseMark(object.dump());
  ASSERT_THAT(mark, IsOk());
  EXPECT_EQ(json::parse(mark->unknown_members), json::parse(R"({
    "later": {"deep": [1, 2, null]}, "also": "x"})"));
  EXPECT_EQ(json::parse(ToAnnotation(*mark)), object);
  EXPECT_THAT(ParseMark(ToAnnotation(*mark)), IsOkAndHolds(*mark));
}

TEST(Mark, is_never_overwritten_by_an_unknown_member_of_the_same_name) {
  Mark mark = SampleMark();
  mark.unknown_members = R"({"force": false, "more": 1})";
  const json object = json::parse(ToAnnotation(mark));
  EXPECT_EQ(object["force"], true);
  EXPECT_EQ(object["more"], 1);
}

struct Unreadable {
  const char* member;
  json value;
};

TEST(Mark, S5_is_unreadable_with_a_member_of_another_type_or_value) {
  const Unreadable cases[] = {
      {"action", ""},
      {"action", 1},
      {"reason", "boredom"},
      {"reason", nullptr},
      {"vm_uid", ""},
      {"vm_uid", json::array()},
      {"node_id", 7},
      {"marked_at", "yesterday"},
      {"marked_at", 0},
      {"drain_deadline", "later"},
      {"drain_deadline", ""},
      {"drain_deadline", 0},
      {"grace", "5"},
      {"grace", "-1s"},
      {"grace", 300},
      {"force", "true"},
      {"ignore_system", 1},
      {"purge", nullptr},
      {"nodes", "dc1"},
      {"nodes", {{"index", 1}}},
      {"nodes", json::object()},
  };
  for (const Unreadable& c : cases) {
    json object = SampleObject();
    object[c.member] = c.value;
    EXPECT_THAT(ParseMark(object.dump()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.member)))
        << object;
  }
}

TEST(Mark, S5_is_unreadable_without_a_member_that_the_removal_needs) {
  const json whole = SampleObject();
  for (const auto& [key, value] : whole.items()) {
    if (key == "node_id") continue;
    json object = whole;
    object.erase(key);
    EXPECT_THAT(ParseMark(object.dump()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(key)));
  }
}

TEST(Mark, reports_every_problem_at_once) {
  EXPECT_THAT(ParseMark(R"({"action": 1, "grace": "x"})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("action"), HasSubstr("grace"), HasSubstr("vm_uid"))));
}

TEST(Mark, is_unreadable_if_it_is_not_an_object) {
  for (const char* text : {"", "true", "null", "[]", "{\"action\":", "\x80"}) {
    EXPECT_THAT(ParseMark(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace nomad_harvester::harvester
