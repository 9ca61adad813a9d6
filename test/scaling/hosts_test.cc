// SPDX-License-Identifier: Apache-2.0
//
// What is remembered of Harvester's hosts.

#include "observation/hosts.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_clock.h"
#include "support/recording_sink.h"
#include "support/scripted_transport.h"
#include "support/status_matchers.h"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOkAndHolds;
using support::StatusIs;

class HostsMemory : public ::testing::Test {
 protected:
  // An observation of the loop in which that VM runs there.
  Observation Seen(const std::string& vm, const std::string& host) {
    World world;
    return world.With(Vm(vm).Joined().InstanceRuns(true).RunsOn(host)).Linked();
  }
  // What an observation of Status then knows.
  VmView Known(const std::string& vm) {
    World world;
    Observation observation = world.With(Vm(vm).Joined()).Linked();
    hosts_.Apply("nomad", &observation);
    return observation.vms.front();
  }
  void Remember(const std::string& host) {
    Observation observation = Seen("a", host);
    hosts_.Record("nomad", clock_.Now(), &observation);
  }
  void ReplyZone(const std::string& zone) {
    transport_->Reply(200, R"({"kind":"Node","metadata":{"name":"h","labels":)"
                           R"({"topology.kubernetes.io/zone":")" +
                               zone + R"("}}})");
  }

  support::FakeClock clock_;
  runtime::Context context_ = runtime::Context::Background(clock_);
  std::shared_ptr<support::ScriptedTransport> transport_ =
      std::make_shared<support::ScriptedTransport>();
  Hosts hosts_{std::make_shared<kube::KubeClient>(transport_), log::Logger()};
};

TEST_F(HostsMemory, S3_the_list_is_due_once_a_minute_for_each_namespace) {
  EXPECT_TRUE(hosts_.IsDue(HostUse::kPublish, "nomad", clock_.Now()));
  EXPECT_FALSE(hosts_.IsDue(HostUse::kPublish, "nomad", clock_.Now()));
  EXPECT_TRUE(hosts_.IsDue(HostUse::kEvacuate, "nomad", clock_.Now()))
      << "a pool that evacuates hosts does not starve behind one that publishes them";
  EXPECT_TRUE(hosts_.IsDue(HostUse::kPublish, "other", clock_.Now()));
  clock_.Advance(seconds(59));
  EXPECT_FALSE(hosts_.IsDue(HostUse::kPublish, "nomad", clock_.Now()));
  clock_.Advance(seconds(1));
  EXPECT_TRUE(hosts_.IsDue(HostUse::kPublish, "nomad", clock_.Now()));
}

TEST_F(HostsMemory, status_knows_what_a_loop_has_seen_and_nothing_of_other_namespaces) {
  EXPECT_EQ(Known("a").host, "");
  Remember("h1");
  EXPECT_EQ(Known("a").host, "h1");
  EXPECT_EQ(Known("b").host, "");
  World world;
  Observation elsewhere = world.With(Vm("a").Joined()).Linked();
  hosts_.Apply("other", &elsewhere);
  EXPECT_EQ(elsewhere.vms.front().host, "");
}

TEST_F(HostsMemory, a_list_that_began_earlier_does_not_replace_a_newer_one) {
  Observation early = Seen("a", "h1");
  const base::MonoTime began = clock_.Now();
  clock_.Advance(seconds(1));
  Remember("h2");
  hosts_.Record("nomad", began, &early);
  EXPECT_EQ(Known("a").host, "h2");
}

TEST_F(HostsMemory, a_look_without_instances_forgets_nothing) {
  Remember("h1");
  World world;
  Observation blind = world.With(Vm("a").Joined()).Linked();
  hosts_.Record("nomad", clock_.Now(), &blind);
  EXPECT_EQ(Known("a").host, "h1");
}

TEST_F(HostsMemory, a_zone_is_believed_for_ten_minutes) {
  Remember("h");
  EXPECT_EQ(Known("a").host_zone, std::nullopt);
  ReplyZone("z1");
  EXPECT_THAT(hosts_.ZoneOf(context_, "h"), IsOkAndHolds("z1"));
  EXPECT_EQ(Known("a").host_zone, "z1");
  clock_.Advance(minutes(9));
  EXPECT_THAT(hosts_.ZoneOf(context_, "h"), IsOkAndHolds("z1"));
  hosts_.RefreshZone(context_);
  EXPECT_EQ(transport_->requests().size(), 1U);
  clock_.Advance(minutes(1));
  ReplyZone("z2");
  hosts_.RefreshZone(context_);
  EXPECT_EQ(Known("a").host_zone, "z2");
}

TEST_F(HostsMemory, a_host_that_may_not_be_read_has_no_zone_and_is_asked_again_after_ten_minutes) {
  Remember("h");
  transport_->Reply(403, R"({"kind":"Status","reason":"Forbidden","code":403})");
  EXPECT_THAT(hosts_.ZoneOf(context_, "h"), IsOkAndHolds(""));
  EXPECT_EQ(Known("a").host_zone, std::nullopt) << "that is no zone to compare with";
  EXPECT_THAT(hosts_.ZoneOf(context_, "other"), IsOkAndHolds(""));
  EXPECT_EQ(transport_->requests().size(), 1U);
  clock_.Advance(minutes(10));
  ReplyZone("z1");
  EXPECT_THAT(hosts_.ZoneOf(context_, "h"), IsOkAndHolds("z1"));
}

TEST_F(HostsMemory, a_host_that_has_left_has_no_zone_and_one_that_cannot_be_read_is_an_error) {
  Remember("h");
  transport_->Reply(404, R"({"kind":"Status","reason":"NotFound","code":404})");
  EXPECT_THAT(hosts_.ZoneOf(context_, "h"), IsOkAndHolds(""));
  EXPECT_EQ(Known("a").host_zone, "");
  transport_->Fail(base::Unavailable("no route"));
  EXPECT_THAT(hosts_.ZoneOf(context_, "new"), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(HostsMemory, L8_four_publications_at_a_time_may_wait_for_nomad) {
  std::vector<std::shared_ptr<void>> turns;
  for (int i = 0; i < 4; ++i) turns.push_back(hosts_.BeginPublication());
  EXPECT_NE(turns.back(), nullptr);
  EXPECT_EQ(hosts_.BeginPublication(), nullptr);
  turns.pop_back();
  EXPECT_NE(hosts_.BeginPublication(), nullptr);
}

TEST_F(HostsMemory, a_zone_that_is_older_than_ten_minutes_is_read_before_it_is_published) {
  Remember("h");
  ReplyZone("z1");
  EXPECT_THAT(hosts_.ZoneOf(context_, "h"), IsOkAndHolds("z1"));
  clock_.Advance(minutes(10));
  ReplyZone("z2");
  EXPECT_THAT(hosts_.ZoneOf(context_, "h"), IsOkAndHolds("z2"));
}

TEST_F(HostsMemory, L7_the_zone_of_a_host_on_which_nothing_runs_any_more_is_not_read_again) {
  Remember("h1");
  ReplyZone("z1");
  EXPECT_THAT(hosts_.ZoneOf(context_, "h1"), IsOkAndHolds("z1"));
  Remember("h2");
  clock_.Advance(minutes(10));
  ReplyZone("z2");
  hosts_.RefreshZone(context_);
  EXPECT_THAT(transport_->requests().back().target, ::testing::HasSubstr("/nodes/h2"));
  hosts_.RefreshZone(context_);
  EXPECT_EQ(transport_->requests().size(), 2U);
}

TEST_F(HostsMemory, of_several_zones_that_are_due_the_one_that_was_read_first_is_read_first) {
  World world;
  world.With(Vm("a").Joined().InstanceRuns(true).RunsOn("h1"));
  world.With(Vm("b").Joined().InstanceRuns(true).RunsOn("h2"));
  hosts_.Record("nomad", clock_.Now(), &world.Linked());
  for (const char* const host : {"h1", "h2"}) {
    ReplyZone("z1");
    EXPECT_THAT(hosts_.ZoneOf(context_, host), IsOkAndHolds("z1"));
    clock_.Advance(seconds(1));
  }
  clock_.Advance(minutes(10));
  for (const char* const host : {"h1", "h2"}) {
    ReplyZone("z2");
    hosts_.RefreshZone(context_);
    EXPECT_THAT(transport_->requests().back().target, ::testing::EndsWith(host));
  }
}

TEST_F(HostsMemory, an_instance_that_does_not_run_is_on_no_host) {
  transport_->Reply(
      200, R"({"kind":"VirtualMachineInstanceList","metadata":{"resourceVersion":"1"},"items":[
      {"metadata":{"name":"a"},"status":{"phase":"Failed","nodeName":"h1"}},
      {"metadata":{"name":"b"},"status":{"phase":"Running","nodeName":"h2"}}]})");
  hosts_.List(context_, "nomad");
  EXPECT_EQ(Known("a").host, "");
  EXPECT_EQ(Known("b").host, "h2");
}

TEST_F(HostsMemory, R7_a_list_that_is_cancelled_leaves_since_when_a_host_is_cordoned) {
  transport_->Reply(200, R"({"kind":"NodeList","metadata":{"resourceVersion":"1"},)"
                         R"("items":[{"metadata":{"name":"h1"},"spec":{"unschedulable":true}}]})");
  EXPECT_THAT(hosts_.ListCordoned(context_), ::testing::ElementsAre("h1"));
  const auto must_leave = [&] {
    World world;
    Observation seen = world.With(Vm("a").Joined().RunsOn("h1")).Linked();
    seen.vms.front().vm.Change().conditions = {{.type = "LiveMigratable", .status = "False"}};
    hosts_.ApplyCordoned("nomad", clock_.Now(), &seen);
    return !seen.vms.front().host_to_leave.empty();
  };
  clock_.Advance(seconds(30));
  const runtime::CancelSource call(context_);
  call.Cancel(runtime::CancelReason::kClient);
  transport_->Fail(absl::CancelledError("the call has ended"));
  EXPECT_THAT(hosts_.ListCordoned(call.context()), ::testing::IsEmpty());
  EXPECT_TRUE(must_leave());
  transport_->Fail(base::Unavailable("no route"));
  hosts_.ListCordoned(context_);
  EXPECT_FALSE(must_leave());
}

TEST_F(HostsMemory, R7_that_hosts_cannot_be_listed_is_told_once_and_again_after_a_list) {
  const auto sink = std::make_shared<support::RecordingSink>();
  Hosts hosts(std::make_shared<kube::KubeClient>(transport_),
              log::Logger(sink, log::Level::kDebug));
  const auto told_after = [&](int status, const std::string& body) {
    transport_->Reply(status, body);
    hosts.ListCordoned(context_);
    return sink->Count("could not list Harvester's hosts", log::Level::kWarn);
  };
  const std::string forbidden = R"({"kind":"Status","reason":"Forbidden","code":403})";
  EXPECT_EQ(told_after(403, forbidden), 1U);
  EXPECT_EQ(told_after(403, forbidden), 1U);
  EXPECT_EQ(told_after(200, R"({"kind":"NodeList","metadata":{"resourceVersion":"1"},)"
                            R"("items":[{"metadata":{"name":"h1"}}]})"),
            1U);
  EXPECT_EQ(told_after(403, forbidden), 2U);
}

// A reply to a list of hosts, and one to a list of pods.
void ReplyRooms(support::ScriptedTransport& transport) {
  transport.Reply(200, R"({"kind":"NodeList","metadata":{"resourceVersion":"1"},)"
                       R"("items":[{"metadata":{"name":"h1"}}]})");
  transport.Reply(200, R"({"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[)"
                       R"({"metadata":{"name":"p","namespace":"nomad",)"
                       R"("annotations":{"kubevirt.io/domain":"web-a"},"labels":)"
                       R"({"nomad-harvester-autoscaler/pool":"web"}},"spec":{"nodeName":"h1"}}]})");
}

TEST_F(HostsMemory, S3_one_list_of_the_room_serves_all_pools_once_each) {
  base::MonoTime last_of_web = clock_.Now() - seconds(1);
  base::MonoTime last_of_db = last_of_web;
  EXPECT_FALSE(hosts_.NewRooms(clock_.Now(), &last_of_web).has_value());
  ReplyRooms(*transport_);
  ASSERT_THAT(hosts_.ListRooms(context_), support::IsOk());
  const auto of_web = hosts_.NewRooms(clock_.Now(), &last_of_web);
  ASSERT_TRUE(of_web.has_value());
  EXPECT_THAT(of_web->front().vms.at({"nomad", "web"}), testing::ElementsAre("web-a"));
  EXPECT_FALSE(hosts_.NewRooms(clock_.Now(), &last_of_web).has_value());
  clock_.Advance(kHostsFor);
  EXPECT_FALSE(hosts_.NewRooms(clock_.Now(), &last_of_db).has_value()) << "it is old";
  EXPECT_EQ(transport_->requests().size(), 2U);
}

TEST_F(HostsMemory, C2_a_right_to_list_the_room_that_is_missing_is_asked_for_again_in_ten_minutes) {
  transport_->Reply(403, R"({"kind":"Status","reason":"Forbidden","code":403})");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(hosts_.ListRooms(context_), StatusIs(absl::StatusCode::kPermissionDenied));
  }
  EXPECT_EQ(transport_->requests().size(), 1U);
  clock_.Advance(kZoneFor);
  ReplyRooms(*transport_);
  EXPECT_THAT(hosts_.ListRooms(context_), support::IsOk());
}

}  // namespace
}  // namespace nomad_harvester::scaling
