// SPDX-License-Identifier: Apache-2.0
//
// What the Kubernetes Events say about each VM (T1), and that nothing depends on them.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"

#include "sweep.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Processes that start from now on write Events.
void WriteEvents(Harness& h) {
  h.config["events"] = "true";
  h.Restart();
}

// The reasons of each VM's Events, in the order in which they were sent.
class Story {
 public:
  explicit Story(Harness& h) : h_(h) {
    h_.OnEachRequest([this](const RequestInfo& request) { Note(request); });
  }
  ~Story() { h_.cluster.SetFaultHook(nullptr); }
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;

  std::vector<std::string> Of(const std::string& vm) const {
    const auto found = reasons_.find(vm);
    return found == reasons_.end() ? std::vector<std::string>() : found->second;
  }
  const std::map<std::string, std::vector<std::string>>& all() const { return reasons_; }
  const std::vector<std::string>& notes() const { return notes_; }
  int requests() const { return requests_; }

 private:
  void Note(const RequestInfo& request) {
    if (request.resource != "events") return;
    ++requests_;
    if (request.verb != "create") return;
    const auto event = base::ParseJson(request.body, "the event");
    ASSERT_TRUE(event.ok());
    reasons_[(*event)["regarding"]["name"]].push_back((*event)["reason"]);
    notes_.push_back((*event)["note"]);
  }

  Harness& h_;
  std::map<std::string, std::vector<std::string>> reasons_;
  std::vector<std::string> notes_;
  int requests_ = 0;
};

TEST(Events, T1_tell_the_story_of_a_vm_from_its_creation_to_its_deletion) {
  Harness h;
  WriteEvents(h);
  Story story(h);
  h.Reach(2);
  h.RunJob(2);
  h.Reach(1);
  const std::string kept = h.VmNames().at(0);
  ASSERT_THAT(story.all(), SizeIs(2)) << h.Transcript();
  for (const auto& [vm, reasons] : story.all()) {
    if (vm == kept) {
      EXPECT_THAT(reasons, ElementsAre("ScaleOut", "Ready"));
    } else {
      EXPECT_THAT(reasons, ElementsAre("ScaleOut", "Ready", "ScaleIn", "DrainStarted", "Drained",
                                       "Deleted"));
    }
  }
  EXPECT_THAT(h.cluster.Events(), SizeIs(8)) << "the API server has accepted them all";
  EXPECT_THAT(story.notes(), Contains(HasSubstr("from 0 to 2; test; action ")));
  EXPECT_THAT(story.notes(), Contains(HasSubstr("from 2 to 1; test; action ")));
  for (const std::string& note : story.notes()) EXPECT_THAT(note, HasSubstr("; action "));
  h.CheckAtRest(1);
}

TEST(Events, T1_name_the_vm_by_its_uid) {
  Harness h;
  WriteEvents(h);
  h.Reach(1);
  ASSERT_THAT(h.cluster.Events(), SizeIs(2));
  for (const json& event : h.cluster.Events()) {
    EXPECT_EQ(event["regarding"]["uid"], UidOf(h.Vms().at(0)));
    EXPECT_EQ(event["regarding"]["namespace"], event["metadata"]["namespace"]);
  }
}

TEST(Events, T1_a_removal_that_growth_takes_back_is_told) {
  Harness h;
  WriteEvents(h);
  Story story(h);
  const std::string marked = h.LeaveOneDraining();
  h.Reach(2);
  EXPECT_THAT(story.Of(marked), ElementsAre("ScaleOut", "Ready", "ScaleIn", "DrainStarted",
                                            "RemovalCancelled", "DrainCancelled"));
  h.HangDrains(false);
}

TEST(Events, T1_a_broken_vm_that_is_kept_is_told_once_however_often_it_is_seen) {
  Harness h;
  WriteEvents(h);
  h.policy["on_join_timeout"] = "keep";
  Story story(h);
  h.cluster.NeverJoin(1);
  EXPECT_FALSE(h.Scale(1).ok());
  for (int i = 0; i < 3; ++i) {
    h.clock.Advance(hours(1));
    EXPECT_FALSE(h.Scale(2).ok()) << "the pool does not grow while it stands";
    h.process().RunBackground();
  }
  ASSERT_THAT(story.all(), SizeIs(1));
  EXPECT_THAT(story.all().begin()->second, ElementsAre("ScaleOut", "JoinTimeout"));
}

TEST(Events, T1_a_refused_removal_is_told_once_and_rolled_back) {
  Harness h;
  WriteEvents(h);
  h.Reach(1);
  const std::string vm = h.VmNames().at(0);
  Story story(h);
  h.cluster.Refuse({.verb = "delete", .resource = "virtualmachines"});
  EXPECT_FALSE(h.Scale(0).ok());
  h.Tick(seconds(30));
  h.cluster.StopRefusing();
  EXPECT_THAT(story.Of(vm), ElementsAre("ScaleIn", "DrainStarted", "RemovalRefused", "RolledBack",
                                        "NodeEnabled"));
  h.WaitUntilReady();
}

TEST(Events, a_server_that_fails_them_delays_and_fails_nothing) {
  Harness plain;
  const base::MonoTime plain_began = plain.clock.Now();
  ASSERT_TRUE(plain.Scale(3).ok());
  const base::Duration without = plain.clock.Now() - plain_began;

  Harness h;
  WriteEvents(h);
  h.cluster.Refuse({.resource = "events", .kind = simulator::Refusal::kUnavailable});
  const base::MonoTime began = h.clock.Now();
  ASSERT_TRUE(h.Scale(3).ok());
  EXPECT_EQ(h.clock.Now() - began, without);
  h.WaitUntilReady();
  EXPECT_THAT(h.cluster.Events(), IsEmpty());
  h.CheckAtRest(3);
}

TEST(Events, C13_a_dry_run_writes_none) {
  Harness h;
  WriteEvents(h);
  h.Reach(2);
  Story story(h);
  EXPECT_TRUE(
      h.Scale(-1, R"({"nomad_autoscaler.dry_run":true,"nomad_autoscaler.dry_run.count":5})").ok());
  h.process().RunBackground();
  EXPECT_EQ(story.requests(), 0);
}

TEST(Events, L7_at_rest_none_is_written) {
  Harness h;
  WriteEvents(h);
  h.Reach(2);
  Story story(h);
  h.Tick(minutes(30));
  EXPECT_EQ(story.requests(), 0);
}

TEST(Events, C16_a_call_whose_client_disconnects_writes_no_more) {
  Harness h;
  WriteEvents(h);
  int seen = 0;
  h.OnEachRequest([&](const RequestInfo& request) {
    if (request.verb == "create" && request.resource == "virtualmachines" && ++seen == 2) {
      h.process().CancelScale();
    }
  });
  EXPECT_FALSE(h.Scale(3).ok());
  h.cluster.SetFaultHook(nullptr);
  h.process().RunBackground();
  EXPECT_THAT(h.cluster.Events(), IsEmpty());
  h.Converge(3);
}

// The agent and the acts see the same: beside the Events the requests are those without them.
TEST(Events, the_acts_send_the_same_requests_with_and_without_them) {
  const auto requests_of = [](bool events) {
    Harness h;
    if (events) h.config["events"] = "true";
    h.Restart();
    std::vector<std::string> requests;
    h.cluster.SetFaultHook([&](const RequestInfo& request) {
      if (request.resource == "events") return Fault::None();
      std::string target = request.target;
      // IDs are random: Events have some, too.
      const std::string node = base::GetString(h.cluster.Node(request.name), "Name");
      const std::size_t id = target.find(request.name);
      if (!node.empty() && id != std::string::npos) target.replace(id, request.name.size(), node);
      requests.push_back(request.verb + " " + target);
      return Fault::None();
    });
    EXPECT_TRUE(h.Scale(4).ok());
    h.RunJob(2);
    EXPECT_TRUE(h.Scale(1).ok());
    h.cluster.SetFaultHook(nullptr);
    std::sort(requests.begin(), requests.end());  // of several nodes, in the order of their IDs
    return requests;
  };
  EXPECT_EQ(requests_of(true), requests_of(false));
}

// A kill at any effect, as crash_sweep_test does it without Events.
class EventsSweep : public Sweep {};

TEST_P(EventsSweep, C10_the_pool_converges_after_a_kill_with_events_pending_or_half_sent) {
  const Scenario& scenario = GetParam();
  const int effects = Measure(scenario, Points::Of::kEffects);
  std::size_t visited = 0;
  for (const int effect : Choose(effects, 1, 2)) {
    SCOPED_TRACE("killed at effect " + std::to_string(effect));
    Harness h;
    WriteEvents(h);
    KillAtEffect(scenario, effect, true, h);
    ComeToRest(scenario, h);
    ++visited;
    if (HasFailure()) return;
  }
  ReportVisits("events", scenario, visited, effects);
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(EventsSweep);

}  // namespace
}  // namespace nomad_harvester::scenario
