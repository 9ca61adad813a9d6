// SPDX-License-Identifier: Apache-2.0
// Properties of every annotation: parsing returns what was written, and no edit by an operator is
// harmful.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/runtime/random.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::IsOkAndHolds;

constexpr int kRounds = 2000;

class MetadataProperty : public testing::Test {
 protected:
  std::uint64_t Below(std::uint64_t limit) { return random_->Next() % limit; }
  bool Coin() { return Below(2) == 0; }

  // Valid UTF-8, quotes, braces and control characters included.
  std::string Text() {
    const std::vector<std::string> parts = {"a", "Z",  "-", "\"", "\\", "{",
                                            "}", "\n", "ä", "€",  " "};
    std::string text = "x";
    for (std::uint64_t i = Below(12); i > 0; --i) text += parts[Below(parts.size())];
    return text;
  }

  base::WallTime Time() {
    const auto seconds = static_cast<std::int64_t>(Below(4'000'000'000U));
    const auto nanos = Coin() ? static_cast<std::int64_t>(Below(1'000'000'000U)) : 0;
    return base::WallTime{std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanos)};
  }

  NodesRecord Nodes() {
    NodesRecord nodes;
    if (Coin()) nodes.region = Text();
    if (Coin()) nodes.node_class = Text();
    if (Coin()) nodes.datacenter = Text();
    if (Coin()) nodes.node_pool = "";
    nodes.node_attribute = Text();
    nodes.index = random_->Next();
    return nodes;
  }

  DrainDeadline Deadline() {
    switch (Below(3)) {
      case 0:
        return {DrainDeadline::Kind::kNone, {}};
      case 1:
        return {DrainDeadline::Kind::kNow, {}};
      default:
        return {DrainDeadline::Kind::kAt, Time()};
    }
  }

  Mark AnyMark() {
    Mark mark;
    mark.action = Text();
    mark.reason =
        std::vector{MarkReason::kScaleIn, MarkReason::kBroken, MarkReason::kUnhealthy}[Below(3)];
    mark.vm_uid = Text();
    if (Coin()) mark.node_id = Text();
    mark.marked_at = Time();
    mark.drain_deadline = Deadline();
    mark.grace = base::Duration(static_cast<std::int64_t>(Below(100'000'000'000'000U)));
    mark.force = Coin();
    mark.ignore_system = Coin();
    mark.purge = Coin();
    mark.nodes = Nodes();
    if (Coin()) mark.unknown_members = json({{"u" + Text(), {1, Text(), nullptr}}}).dump();
    return mark;
  }

  LeaseAction AnyAction() {
    LeaseAction action;
    action.id = Text();
    action.from = static_cast<std::int64_t>(Below(1000));
    action.to = static_cast<std::int64_t>(Below(1000));
    for (std::uint64_t i = Below(5); i > 0; --i) action.names.insert(Text());
    for (std::uint64_t i = Below(5); i > 0; --i) action.create[Text()] = Text();
    for (std::uint64_t i = Below(3); i > 0; --i) action.cancel.insert(Text());
    if (Coin()) action.unknown_members = json({{"u" + Text(), true}}).dump();
    return action;
  }

  BackOff AnyBackOff() {
    BackOff back_off;
    for (std::uint64_t i = Below(4); i > 0; --i) {
      BackOffEntry entry;
      entry.failures = static_cast<std::int64_t>(Below(50));
      entry.retry_at = Time();
      if (Coin()) entry.action = Text();
      if (Coin()) entry.unknown_members = json({{"u" + Text(), 1}}).dump();
      back_off[Text()] = entry;
    }
    return back_off;
  }

  Replaces AnyReplaces() {
    Replaces replaces{.vm = Text(), .uid = Text()};
    replaces.reason.kind = static_cast<ReplaceReason::Kind>(Below(5));
    if (Coin()) replaces.reason.detail = Text();
    if (Coin()) replaces.start = Text();
    if (Coin()) replaces.unknown_members = json({{"u" + Text(), true}}).dump();
    return replaces;
  }

  // Cuts, duplicates, replaces or inserts bytes of a text.
  std::string Mutate(std::string text) {
    for (std::uint64_t i = 1 + Below(4); i > 0 && !text.empty(); --i) {
      const std::size_t at = Below(text.size());
      switch (Below(4)) {
        case 0:
          text.resize(at);
          break;
        case 1:
          text[at] = static_cast<char>(Below(256));
          break;
        case 2:
          text.insert(at, 1, "{}[]\",:\\0-e.tn\x80"[Below(15)]);
          break;
        default:
          text.erase(at, 1 + Below(5));
      }
    }
    return text;
  }

  std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(20261121);
};

TEST_F(MetadataProperty, every_annotation_comes_back_as_it_was_written) {
  for (int i = 0; i < kRounds; ++i) {
    const Mark mark = AnyMark();
    ASSERT_THAT(ParseMark(ToAnnotation(mark)), IsOkAndHolds(mark)) << ToAnnotation(mark);
    ASSERT_THAT(ParseNodesRecord(ToAnnotation(mark.nodes)), IsOkAndHolds(mark.nodes));
    const Replaces replaces = AnyReplaces();
    ASSERT_THAT(ParseReplaces(ToAnnotation(replaces)), IsOkAndHolds(replaces));
    const LeaseAction action = AnyAction();
    ASSERT_THAT(ParseLeaseAction(ToAnnotation(action)), IsOkAndHolds(action));
    const BackOff back_off = AnyBackOff();
    ASSERT_THAT(ParseBackOff(ToAnnotation(back_off)), IsOkAndHolds(back_off));
  }
}

// Every annotation that can be read is written back without loss.
TEST_F(MetadataProperty, a_damaged_annotation_is_refused_or_kept_whole) {
  for (int i = 0; i < kRounds; ++i) {
    const std::string mark = Mutate(ToAnnotation(AnyMark()));
    if (const auto parsed = ParseMark(mark); parsed.ok()) {
      ASSERT_THAT(ParseMark(ToAnnotation(*parsed)), IsOkAndHolds(*parsed)) << mark;
    }
    const std::string action = Mutate(ToAnnotation(AnyAction()));
    if (const auto parsed = ParseLeaseAction(action); parsed.ok()) {
      ASSERT_THAT(ParseLeaseAction(ToAnnotation(*parsed)), IsOkAndHolds(*parsed)) << action;
    }
    const std::string back_off = Mutate(ToAnnotation(AnyBackOff()));
    if (const auto parsed = ParseBackOff(back_off); parsed.ok()) {
      ASSERT_THAT(ParseBackOff(ToAnnotation(*parsed)), IsOkAndHolds(*parsed)) << back_off;
    }
  }
}

TEST_F(MetadataProperty, garbage_in_any_annotation_never_harms_a_VM_that_carries_it) {
  for (int i = 0; i < kRounds / 4; ++i) {
    json object = SampleVmObject();
    json& annotations = object["metadata"]["annotations"];
    for (const char* key :
         {kSelfAnnotation, kJoinTimeoutAnnotation, kNodesAnnotation, kJoinedAtAnnotation,
          kScaleInAnnotation, kProtectAnnotation, kDeleteFirstAnnotation}) {
      annotations[key] = Mutate(Coin() ? ToAnnotation(AnyMark()) : Text());
    }
    const VirtualMachine vm = ParseVirtualMachine(object);
    EXPECT_TRUE(vm.has_mark);
    EXPECT_TRUE(HasJoined(vm)) << "a VM that joined stays joined";
    EXPECT_FALSE(IsMember(vm));
  }
}

// Replaces every member of an object, one after the other, by a value of another type.
void ReplaceEverywhere(const json& whole, json& part, const json& value, int& count) {
  if (!part.is_structured()) return;
  for (auto& member : part) {
    json kept = value;
    std::swap(member, kept);
    ParseVirtualMachine(whole);
    ParseInstance(whole);
    FindStartFailure(ParseVirtualMachine(whole));
    ++count;
    std::swap(member, kept);
    ReplaceEverywhere(whole, member, value, count);
  }
}

TEST(ParseVirtualMachine, survives_any_type_in_any_place) {
  int count = 0;
  for (const json& value : {json(nullptr), json(1), json(-1.5), json("text"), json(true),
                            json::array(), json::array({nullptr, 1, "x"}), json::object()}) {
    json object = SampleVmObject();
    ReplaceEverywhere(object, object, value, count);
    EXPECT_EQ(object, SampleVmObject());
    ParseVirtualMachine(value);
    ParseInstance(value);
  }
  EXPECT_GT(count, 500);
}

}  // namespace
}  // namespace nomad_harvester::harvester
