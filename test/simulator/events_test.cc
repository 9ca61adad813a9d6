// SPDX-License-Identifier: Apache-2.0
// What the simulated API server accepts as an Event of events.k8s.io/v1.
#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;

class EventsTest : public SimulatorTest {
 protected:
  static json EventFor(const std::string& vm) {
    return {{"metadata", {{"name", vm + ".1"}}},
            {"eventTime", "2026-01-01T00:00:00.000000Z"},
            {"reportingController", "nomad-harvester-autoscaler"},
            {"reportingInstance", "me"},
            {"action", "Drain"},
            {"reason", "DrainStarted"},
            {"regarding",
             {{"apiVersion", "kubevirt.io/v1"},
              {"kind", "VirtualMachine"},
              {"namespace", "nomad"},
              {"name", vm}}},
            {"note", "node n1 drains"},
            {"type", "Normal"}};
  }
  absl::Status Create(const json& event) {
    return base::GetStatus(kube().Create(context_, kube::kEvents, "nomad", event));
  }
};

// A member, the value that it gets, null for none, and what the server says.
struct Wrong {
  const char* member;
  json value;
  const char* problem;
};

TEST_F(EventsTest, An_event_that_is_not_complete_is_refused) {
  const std::string word(129, 'x');
  const std::vector<Wrong> wrongs = {
      {"eventTime", nullptr, "eventTime: Required value"},
      {"eventTime", "2026-01-01T00:00:00Z", "cannot parse"},
      {"reportingController", nullptr, "reportingController: Required value"},
      {"reportingInstance", nullptr, "reportingInstance: Required value"},
      {"reportingInstance", word, "reportingInstance: Invalid value"},
      {"action", nullptr, "action: Required value"},
      {"action", word, "action: Invalid value"},
      {"reason", nullptr, "reason: Required value"},
      {"reason", word, "can have at most 128 characters"},
      {"note", std::string(1025, 'x'), "can have at most 1024 characters"},
      {"type", "Error", "type: Invalid value"},
      {"regarding", nullptr, "does not match event.namespace"},
      {"series", {{"count", 1}}, "should be at least 2"},
      {"series", {{"count", 2}}, "series.lastObservedTime: Required value"},
  };
  for (const Wrong& wrong : wrongs) {
    json event = EventFor("vm-1");
    event.merge_patch({{wrong.member, wrong.value}});
    EXPECT_THAT(Create(event), StatusIs(StatusCode::kInvalidArgument, HasSubstr(wrong.problem)));
  }
  EXPECT_THAT(cluster().Events(), IsEmpty());
}

TEST_F(EventsTest, The_right_to_create_events_can_be_missing) {
  cluster().Forbid("create", "events");
  EXPECT_TRUE(kube::IsForbidden(Create(EventFor("vm-1"))));
}

}  // namespace
}  // namespace nomad_harvester::simulator
