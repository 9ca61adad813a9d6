// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/vm_event.h"

#include <chrono>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

base::WallTime At(const char* text) { return *base::ParseRfc3339(text); }

VmEvent Sample() {
  return {.vm = "batch-7f3k2",
          .uid = "u-1",
          .reason = "DrainStarted",
          .action = "Drain",
          .note = "node n1 drains; action a-1"};
}

json Build(const VmEvent& event, const EventSeries& series = {}) {
  return BuildVmEvent(event, "nomad", "batch-7f3k2.1", "host_1_x", At("2026-01-02T03:04:05Z"),
                      series);
}

TEST(BuildVmEvent, T1_is_what_the_events_api_requires) {
  EXPECT_EQ(Build(Sample()), json::parse(R"({
    "apiVersion": "events.k8s.io/v1", "kind": "Event",
    "metadata": {"name": "batch-7f3k2.1", "namespace": "nomad"},
    "eventTime": "2026-01-02T03:04:05.000000Z",
    "reportingController": "nomad-harvester-autoscaler",
    "reportingInstance": "host_1_x",
    "action": "Drain", "reason": "DrainStarted",
    "regarding": {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
                  "namespace": "nomad", "name": "batch-7f3k2", "uid": "u-1"},
    "note": "node n1 drains; action a-1", "type": "Normal"})"));
}

TEST(BuildVmEvent, a_warning_is_one) {
  VmEvent event = Sample();
  event.warning = true;
  EXPECT_EQ(Build(event)["type"], "Warning");
}

TEST(BuildVmEvent, more_than_one_is_a_series) {
  const json event = Build(
      Sample(), {.count = 3, .last = At("2026-01-02T03:05:00Z") + std::chrono::microseconds(7)});
  EXPECT_EQ(event["series"],
            json::parse(R"({"count": 3, "lastObservedTime": "2026-01-02T03:05:00.000007Z"})"));
}

TEST(BuildVmEvent, texts_are_cut_at_a_whole_character) {
  VmEvent event = Sample();
  event.reason.assign(200, 'r');
  event.action.assign(200, 'a');
  event.note.clear();
  for (int i = 0; i < 600; ++i) event.note += "\xc3\xa4";
  const json built = BuildVmEvent(event, "nomad", "n", std::string(200, 'h'), {}, {});
  EXPECT_EQ(built["reason"].get<std::string>().size(), 128U);
  EXPECT_EQ(built["action"].get<std::string>().size(), 128U);
  EXPECT_EQ(built["reportingInstance"].get<std::string>().size(), 128U);
  const std::string note = built["note"];
  EXPECT_EQ(note.size(), 1023U);
  EXPECT_EQ(note, base::ToValidUtf8(note));
  EXPECT_TRUE(note.ends_with("\xc3\xa4..."));
}

TEST(BuildVmEvent, a_text_of_exactly_the_limit_is_kept) {
  VmEvent event = Sample();
  event.note.assign(1024, 'n');
  EXPECT_EQ(Build(event)["note"], event.note);
}

TEST(BuildVmEvent, P3_a_note_has_no_secret_and_is_valid_utf8) {
  const base::Secret token("hunter2-hunter2");
  VmEvent event = Sample();
  event.note = "the server said hunter2-hunter2\xff";
  const std::string note = Build(event)["note"];
  EXPECT_EQ(note.find("hunter2"), std::string::npos);
  EXPECT_EQ(note, base::ToValidUtf8(note));
}

TEST(BuildEventSeriesPatch, changes_nothing_but_the_series) {
  EXPECT_EQ(BuildEventSeriesPatch({.count = 2, .last = At("2026-01-02T03:04:05Z")}),
            json::parse(R"({"series": {"count": 2,
                                       "lastObservedTime": "2026-01-02T03:04:05.000000Z"}})"));
}

}  // namespace
}  // namespace nomad_harvester::harvester
