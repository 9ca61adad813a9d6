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
using support::IsOk;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;

LeaseAction SampleAction() {
  LeaseAction action;
  action.id = "a-2";
  action.from = 1;
  action.to = 3;
  action.names = {"web-b", "web-a"};
  action.create = {{"web-b", "a-2"}, {"web-a", "a-1"}};
  return action;
}

TEST(LeaseAction, is_spelled_as_the_documentation_says) {
  EXPECT_EQ(json::parse(ToAnnotation(SampleAction())), json::parse(R"({
    "id": "a-2", "from": 1, "to": 3, "names": ["web-a", "web-b"],
    "create": {"web-a": "a-1", "web-b": "a-2"}})"));
}

TEST(LeaseAction, comes_back_as_it_was_written) {
  EXPECT_THAT(ParseLeaseAction(ToAnnotation(SampleAction())), IsOkAndHolds(SampleAction()));
  LeaseAction removal;
  removal.id = "a-3";
  removal.from = 3;
  EXPECT_THAT(ParseLeaseAction(ToAnnotation(removal)), IsOkAndHolds(removal));
}

TEST(LeaseAction, writes_lists_and_objects_even_if_they_are_empty) {
  LeaseAction action;
  action.id = "a";
  EXPECT_EQ(json::parse(ToAnnotation(action)),
            json::parse(R"({"id":"a","from":0,"to":0,"names":[],"create":{}})"));
}

TEST(LeaseAction, L6_names_the_VMs_whose_removal_it_cancels_if_there_are_any) {
  LeaseAction action = SampleAction();
  action.cancel = {"web-d", "web-c"};
  const json object = json::parse(ToAnnotation(action));
  EXPECT_EQ(object["cancel"], json::parse(R"(["web-c", "web-d"])"));
  EXPECT_THAT(ParseLeaseAction(object.dump()), IsOkAndHolds(action));
  EXPECT_FALSE(json::parse(ToAnnotation(SampleAction())).contains("cancel"));
}

TEST(LeaseAction, L6_that_an_earlier_release_wrote_takes_nothing_back) {
  const auto action = ParseLeaseAction(R"({"id":"a","from":0,"to":0,"names":[],"create":{}})");
  ASSERT_THAT(action, IsOk());
  EXPECT_TRUE(action->cancel.empty());
}

TEST(LeaseAction, keeps_the_members_that_it_does_not_know) {
  json object = json::parse(ToAnnotation(SampleAction()));
  object["policy"] = {{"id", "p"}};
  const auto action = ParseLeaseAction(object.dump());
  ASSERT_THAT(action, IsOk());
  EXPECT_EQ(json::parse(ToAnnotation(*action)), object);
}

TEST(LeaseAction, is_unreadable_with_members_of_another_type) {
  const std::pair<const char*, json> cases[] = {
      {"id", ""},
      {"id", 5},
      {"from", -1},
      {"from", "1"},
      {"to", 1.5},
      {"to", 18446744073709551615U},
      {"names", "web-a"},
      {"names", {1}},
      {"names", nullptr},
      {"create", {"web-a"}},
      {"create", {{"web-a", 1}}},
      {"cancel", "web-a"},
      {"cancel", {{"web-a", true}}},
      {"cancel", {1}},
      {"cancel", nullptr},
  };
  for (const auto& [member, value] : cases) {
    json object = json::parse(ToAnnotation(SampleAction()));
    object[member] = value;
    EXPECT_THAT(ParseLeaseAction(object.dump()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(member)))
        << object;
  }
}

TEST(LeaseAction, is_unreadable_without_one_of_its_members) {
  const json whole = json::parse(ToAnnotation(SampleAction()));
  for (const auto& [key, value] : whole.items()) {
    json object = whole;
    object.erase(key);
    EXPECT_THAT(ParseLeaseAction(object.dump()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(key)));
  }
}

TEST(BackOff, is_spelled_as_the_documentation_says) {
  const BackOff back_off = {{"quota", {3, At("2026-11-21T02:03:04Z"), "act"}},
                            {"image default/x", {1, At("2026-11-21T03:00:00Z")}}};
  EXPECT_EQ(json::parse(ToAnnotation(back_off)), json::parse(R"({
    "image default/x": {"failures": 1, "retry_at": "2026-11-21T03:00:00Z"},
    "quota": {"failures": 3, "retry_at": "2026-11-21T02:03:04Z", "action": "act"}})"));
  EXPECT_THAT(ParseBackOff(ToAnnotation(back_off)), IsOkAndHolds(back_off));
}

TEST(BackOff, without_causes_is_an_empty_object) {
  EXPECT_EQ(ToAnnotation(BackOff{}), "{}");
  EXPECT_THAT(ParseBackOff("{}"), IsOkAndHolds(BackOff{}));
}

TEST(BackOff, keeps_the_members_of_an_entry_that_it_does_not_know) {
  const json object = json::parse(
      R"({"quota": {"failures": 1, "retry_at": "2026-11-21T02:03:04Z", "why": ["x"]}})");
  const auto back_off = ParseBackOff(object.dump());
  ASSERT_THAT(back_off, IsOk());
  EXPECT_EQ(json::parse(ToAnnotation(*back_off)), object);
}

TEST(BackOff, names_the_cause_that_cannot_be_read) {
  EXPECT_THAT(ParseBackOff(R"({"quota": {"failures": "many"}})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("quota"), HasSubstr("failures"), HasSubstr("retry_at"))));
  for (const char* text : {R"({"quota": 3})", R"({"quota": null})", "[]", "x", ""}) {
    EXPECT_THAT(ParseBackOff(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(PolicyRecord, L11_is_spelled_as_the_documentation_says) {
  const PolicyRecord policy = {.id = "p-1", .at = At("2026-11-21T02:03:04Z")};
  EXPECT_EQ(json::parse(ToAnnotation(policy)),
            json::parse(R"({"id": "p-1", "at": "2026-11-21T02:03:04Z"})"));
  EXPECT_THAT(ParsePolicyRecord(ToAnnotation(policy)), IsOkAndHolds(policy));
  const PolicyRecord second = {.id = "p-2", .at = policy.at, .before = "p-1"};
  EXPECT_EQ(json::parse(ToAnnotation(second)).at("before"), "p-1");
  EXPECT_THAT(ParsePolicyRecord(ToAnnotation(second)), IsOkAndHolds(second));
}

TEST(PolicyRecord, keeps_the_members_that_it_does_not_know) {
  const json object =
      json::parse(R"({"id": "p-1", "at": "2026-11-21T02:03:04Z", "file": "web.hcl"})");
  const auto policy = ParsePolicyRecord(object.dump());
  ASSERT_THAT(policy, IsOk());
  EXPECT_EQ(json::parse(ToAnnotation(*policy)), object);
}

TEST(PolicyRecord, names_what_cannot_be_read) {
  EXPECT_THAT(
      ParsePolicyRecord(R"({"id": "", "at": "soon"})"),
      StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("id"), HasSubstr("at"))));
  for (const char* text : {"{}", "[]", "p-1", "", R"({"id": "p-1"})", R"({"id": 5, "at": 7})"}) {
    EXPECT_THAT(ParsePolicyRecord(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(ErrorRecord, is_spelled_as_the_documentation_says_and_keeps_what_it_does_not_know) {
  ErrorRecord error = {.action = "act", .at = At("2026-11-21T02:03:04Z"), .text = "no image"};
  EXPECT_EQ(ToAnnotation(error),
            R"({"action":"act","at":"2026-11-21T02:03:04Z","text":"no image"})");
  EXPECT_THAT(ParseErrorRecord(ToAnnotation(error)), IsOkAndHolds(error));
  error.action = "";
  error.vm = "a";
  EXPECT_EQ(ToAnnotation(error),
            R"({"action":"","at":"2026-11-21T02:03:04Z","text":"no image","vm":"a"})");
  EXPECT_THAT(ParseErrorRecord(ToAnnotation(error)), IsOkAndHolds(error));
  const auto more =
      ParseErrorRecord(R"({"action":"","at":"2026-11-21T02:03:04Z","text":"x","new":1})");
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_THAT(ToAnnotation(*more), HasSubstr(R"("new":1)"));
  EXPECT_THAT(ParseErrorRecord("{}"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ErrorRecord, does_not_fill_the_annotations_of_a_lease) {
  const ErrorRecord error = {.at = At("2026-11-21T02:03:04Z"), .text = std::string(100'000, 'x')};
  EXPECT_LT(ToAnnotation(error).size(), 2200U);
}

}  // namespace
}  // namespace nomad_harvester::harvester
