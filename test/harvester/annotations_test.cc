// SPDX-License-Identifier: Apache-2.0
// The records in the plugin's annotations. Any version of the plugin may have to finish what
// another one began, so their format is fixed.
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/harvester/virtual_machine.h"

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

constexpr char kTime[] = "2026-11-21T02:03:04Z";

// Reads the text, and writes what was read.
template <auto kParse>
absl::StatusOr<std::string> Again(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const auto record, kParse(text));
  return ToAnnotation(record);
}

struct Annotation {
  std::string written;  // with all its members
  json spelled;         // as the documentation says
  std::set<std::string> optional;
  absl::StatusOr<std::string> (*again)(std::string_view text);
};

// Without NodesRecord, which drops what it does not know, and BackOff, whose members are causes.
std::vector<Annotation> Annotations() {
  return {
      {ToAnnotation(SampleMark()),
       json::parse(R"({
         "action": "a-1", "reason": "scale-in", "vm_uid": "uid-1", "node_id": "node-1",
         "marked_at": "2026-11-21T02:03:04Z", "drain_deadline": "2026-11-21T02:18:04Z",
         "grace": "5m0s", "force": true, "ignore_system": false, "purge": true,
         "nodes": {"region": "global", "node_class": "batch", "datacenter": "dc1",
                   "node_pool": "workers", "node_attribute": "unique.hostname", "index": 4711}})"),
       {"node_id"},
       &Again<&ParseMark>},
      {ToAnnotation(PublishedHost{.node_id = "n-1", .host = "rack1-a", .zone = "rack1"}),
       json::parse(R"({"node_id": "n-1", "host": "rack1-a", "zone": "rack1"})"),
       {"zone"},
       &Again<&ParsePublishedHost>},
      {ToAnnotation(Replaces{.vm = "web-a",
                             .uid = "uid-a",
                             .reason = {ReplaceReason::Kind::kDrifted, "image"},
                             .start = "Always",
                             .was = "v2:1",
                             .had = {{"v2:0", kTime}},
                             .flips = 2}),
       json::parse(R"({"vm": "web-a", "uid": "uid-a", "reason": "drifted", "detail": "image",
         "start": "Always", "was": "v2:1", "had": {"v2:0": "2026-11-21T02:03:04Z"}, "flips": 2})"),
       {"detail", "start", "was", "had", "flips"},
       &Again<&ParseReplaces>},
      {ToAnnotation(StoppedReplacement{.at = At(kTime),
                                       .vm = "web-b",
                                       .template_hash = "v2:1",
                                       .why = "not ready",
                                       .lacks_room = true}),
       json::parse(R"({"stopped_at": "2026-11-21T02:03:04Z", "vm": "web-b",
         "template_hash": "v2:1", "why": "not ready", "lacks_room": true})"),
       {"vm", "template_hash", "lacks_room"},
       &Again<&ParseStoppedReplacement>},
      {ToAnnotation(LeaseAction{.id = "a-2",
                                .from = 1,
                                .to = 3,
                                .names = {"web-b", "web-a"},
                                .create = {{"web-b", "a-2"}, {"web-a", "a-1"}},
                                .cancel = {"web-d", "web-c"},
                                .despite_mass_loss = true}),
       json::parse(R"({"id": "a-2", "from": 1, "to": 3, "names": ["web-a", "web-b"],
         "create": {"web-a": "a-1", "web-b": "a-2"}, "cancel": ["web-c", "web-d"],
         "despite_mass_loss": true})"),
       {"cancel", "despite_mass_loss"},
       &Again<&ParseLeaseAction>},
      {ToAnnotation(PolicyRecord{.id = "p-2", .at = At(kTime), .before = "p-1"}),
       json::parse(R"({"id": "p-2", "at": "2026-11-21T02:03:04Z", "before": "p-1"})"),
       {"before"},
       &Again<&ParsePolicyRecord>},
      {ToAnnotation(ErrorRecord{.action = "act", .vm = "a", .at = At(kTime), .text = "no image"}),
       json::parse(R"({"action": "act", "vm": "a", "at": "2026-11-21T02:03:04Z",
         "text": "no image"})"),
       {"action", "vm"},
       &Again<&ParseErrorRecord>},
  };
}

TEST(Annotation, L6_L11_is_spelled_as_the_documentation_says_and_comes_back) {
  for (const Annotation& annotation : Annotations()) {
    EXPECT_EQ(json::parse(annotation.written), annotation.spelled);
    EXPECT_THAT(annotation.again(annotation.written), IsOkAndHolds(annotation.written));
  }
}

TEST(Annotation, keeps_the_members_that_it_does_not_know) {
  for (const Annotation& annotation : Annotations()) {
    json object = annotation.spelled;
    object["later"] = {{"deep", {1, 2, nullptr}}};
    object["also"] = "x";
    EXPECT_THAT(annotation.again(object.dump()), IsOkAndHolds(object.dump()));
  }
}

TEST(Annotation, S5_is_unreadable_without_a_member_that_is_needed) {
  for (const Annotation& annotation : Annotations()) {
    for (const auto& [key, value] : annotation.spelled.items()) {
      json object = annotation.spelled;
      object.erase(key);
      if (annotation.optional.contains(key)) {
        EXPECT_TRUE(annotation.again(object.dump()).ok()) << key;
      } else {
        EXPECT_THAT(annotation.again(object.dump()),
                    StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(key)));
      }
    }
  }
}

TEST(Annotation, S5_is_unreadable_with_a_member_of_another_type) {
  for (const Annotation& annotation : Annotations()) {
    for (const auto& [key, value] : annotation.spelled.items()) {
      for (const json& other : {json(nullptr), json(-1), json(1.5), json(18446744073709551615U),
                                json::array({1}), json({{"a", 1}})}) {
        json object = annotation.spelled;
        object[key] = other;
        EXPECT_THAT(annotation.again(object.dump()),
                    StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(key)))
            << object;
      }
    }
  }
}

TEST(Annotation, is_unreadable_if_it_is_not_an_object) {
  for (const char* text :
       {"", "true", "null", "[]", "1", "{", "{\"action\":", "\"x\"", "{}{}", "\x80"}) {
    for (const Annotation& annotation : Annotations()) {
      EXPECT_THAT(annotation.again(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    }
    EXPECT_THAT(ParseNodesRecord(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_THAT(ParseBackOff(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(Mark, S5_is_unreadable_with_a_value_that_no_version_writes) {
  for (const auto& [member, value] :
       {std::pair{"action", ""}, std::pair{"reason", "boredom"}, std::pair{"vm_uid", ""},
        std::pair{"marked_at", "yesterday"}, std::pair{"drain_deadline", "later"},
        std::pair{"drain_deadline", ""}, std::pair{"grace", "5"}, std::pair{"grace", "-1s"}}) {
    json object = json::parse(ToAnnotation(SampleMark()));
    object[member] = value;
    EXPECT_THAT(ParseMark(object.dump()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(member)))
        << value;
  }
}

TEST(Mark, reports_every_problem_at_once) {
  EXPECT_THAT(ParseMark(R"({"action": 1, "grace": "x"})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("action"), HasSubstr("grace"), HasSubstr("vm_uid"))));
}

TEST(Mark, C9_spells_a_deadline_of_zero_none_and_a_negative_one_now) {
  for (const auto& [kind, text] : {std::pair{DrainDeadline::Kind::kNone, "none"},
                                   std::pair{DrainDeadline::Kind::kNow, "now"}}) {
    Mark mark = SampleMark();
    mark.drain_deadline = {kind, {}};
    EXPECT_EQ(json::parse(ToAnnotation(mark))["drain_deadline"], text);
    EXPECT_THAT(ParseMark(ToAnnotation(mark)), IsOkAndHolds(mark));
  }
}

TEST(Mark, has_four_reasons) {
  for (const auto& [reason, name] :
       {std::pair{MarkReason::kScaleIn, "scale-in"}, std::pair{MarkReason::kBroken, "broken"},
        std::pair{MarkReason::kUnhealthy, "unhealthy"},
        std::pair{MarkReason::kReplace, "replace"}}) {
    Mark mark = SampleMark();
    mark.reason = reason;
    EXPECT_EQ(json::parse(ToAnnotation(mark))["reason"], name);
    EXPECT_THAT(ParseMark(ToAnnotation(mark)), IsOkAndHolds(mark));
  }
}

TEST(Mark, of_a_VM_without_a_node_has_an_empty_node_id) {
  Mark mark = SampleMark();
  mark.node_id.clear();
  json object = json::parse(ToAnnotation(mark));
  EXPECT_EQ(object["node_id"], "");
  object.erase("node_id");
  EXPECT_THAT(ParseMark(object.dump()), IsOkAndHolds(mark));
}

TEST(Mark, keeps_fractions_of_a_second_and_reads_any_offset) {
  Mark mark = SampleMark();
  mark.drain_deadline.at += std::chrono::milliseconds(1500);
  mark.grace = std::chrono::milliseconds(250);
  json object = json::parse(ToAnnotation(mark));
  EXPECT_EQ(object["drain_deadline"], "2026-11-21T02:18:05.5Z");
  EXPECT_EQ(object["grace"], "250ms");
  object["marked_at"] = "2026-11-21T03:03:04+01:00";
  EXPECT_THAT(ParseMark(object.dump()), IsOkAndHolds(mark));
}

TEST(Mark, is_never_overwritten_by_an_unknown_member_of_the_same_name) {
  Mark mark = SampleMark();
  mark.unknown_members = R"({"force": false, "more": 1})";
  const json object = json::parse(ToAnnotation(mark));
  EXPECT_EQ(object["force"], true);
  EXPECT_EQ(object["more"], 1);
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

TEST(LeaseAction, L6_writes_names_even_if_there_are_none_and_removals_to_cancel_if_there_are_any) {
  EXPECT_EQ(json::parse(ToAnnotation(LeaseAction{.id = "a"})),
            json::parse(R"({"id":"a","from":0,"to":0,"names":[],"create":{}})"));
}

TEST(ErrorRecord, does_not_fill_the_annotations_of_a_lease) {
  const ErrorRecord error = {.at = At(kTime), .text = std::string(100'000, 'x')};
  EXPECT_LT(ToAnnotation(error).size(), 2200U);
}

TEST(BackOff, is_spelled_as_the_documentation_says) {
  const BackOff back_off = {{"quota", {3, At(kTime), "act"}},
                            {"image default/x", {1, At("2026-11-21T03:00:00Z")}}};
  EXPECT_EQ(json::parse(ToAnnotation(back_off)), json::parse(R"({
    "image default/x": {"failures": 1, "retry_at": "2026-11-21T03:00:00Z"},
    "quota": {"failures": 3, "retry_at": "2026-11-21T02:03:04Z", "action": "act"}})"));
  EXPECT_THAT(ParseBackOff(ToAnnotation(back_off)), IsOkAndHolds(back_off));
  EXPECT_THAT(Again<&ParseBackOff>("{}"), IsOkAndHolds("{}"));
  const char* const more =
      R"({"quota":{"failures":1,"retry_at":"2026-11-21T02:03:04Z","why":["x"]}})";
  EXPECT_THAT(Again<&ParseBackOff>(more), IsOkAndHolds(more)) << "an unknown member";
}

TEST(BackOff, names_the_cause_that_cannot_be_read) {
  EXPECT_THAT(ParseBackOff(R"({"quota": {"failures": "many"}})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("quota"), HasSubstr("failures"), HasSubstr("retry_at"))));
  for (const char* text : {R"({"quota": 3})", R"({"quota": null})"}) {
    EXPECT_THAT(ParseBackOff(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(NodesRecord, leaves_absent_identifiers_out_but_not_empty_ones) {
  NodesRecord nodes;
  nodes.datacenter = "";
  nodes.node_attribute = "meta.vm";
  EXPECT_EQ(json::parse(ToAnnotation(nodes)),
            json::parse(R"({"datacenter": "", "node_attribute": "meta.vm", "index": 0})"));
  nodes.index = 18446744073709551615U;
  EXPECT_THAT(ParseNodesRecord(ToAnnotation(nodes)), IsOkAndHolds(nodes));
}

TEST(NodesRecord, tolerates_members_that_it_does_not_know) {
  EXPECT_EQ(ParseNodesRecord(R"({"node_attribute":"a","index":1,"later":[1]})").value().index, 1U);
}

TEST(NodesRecord, names_every_member_that_cannot_be_read) {
  EXPECT_THAT(ParseNodesRecord(R"({"region":1,"node_class":null,"index":-1})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("region"), HasSubstr("node_class"), HasSubstr("index"),
                             HasSubstr("node_attribute: is missing"))));
}

TEST(PublishedHost, of_a_vm_counts_as_absent_if_it_cannot_be_read) {
  const auto read = [](const json& annotations) {
    return ParseVirtualMachine({{"metadata", {{"name", "a"}, {"annotations", annotations}}}});
  };
  const VirtualMachine readable =
      read({{kPublishedHostAnnotation, R"({"node_id":"n","host":"a"})"}});
  EXPECT_TRUE(readable.has_published_host);
  ASSERT_TRUE(readable.published_host.has_value());
  EXPECT_EQ(readable.published_host->host, "a");
  const VirtualMachine edited = read({{kPublishedHostAnnotation, "yes"}});
  EXPECT_TRUE(edited.has_published_host);
  EXPECT_FALSE(edited.published_host.has_value());
  EXPECT_FALSE(read(json::object()).has_published_host);
}

}  // namespace
}  // namespace nomad_harvester::harvester
