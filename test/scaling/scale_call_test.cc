// SPDX-License-Identifier: Apache-2.0
#include "drivers/scale_call.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "nomad_harvester/scaling/status_report.h"

#include "pool_fixture.h"
#include "rules/back_off.h"
#include "support/hosts.h"

namespace nomad_harvester::scaling {
namespace {

using simulator::Fault;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ScaleCallTest : public PoolFixture {
 protected:
  absl::Status Scale(std::int64_t count, const std::function<void()>& before = {}) {
    if (hold_ == nullptr) HoldLease();
    request_.count = count;
    call_.emplace(Deps(), policy_, request_);
    Forget();
    if (before) before();
    absl::Status outcome = call_->Run(context());
    effects_ = Effects();
    EXPECT_THAT(call_->reconciler().StoreRecord(context()), IsOk());
    return outcome;
  }
  // How often a kind of request was sent in the last Scale.
  std::int64_t Times(const std::string& request) {
    const Strings sent = Sent();
    return std::count(sent.begin(), sent.end(), request);
  }
  void BackOffFor(const std::string& cause, std::int64_t failures) {
    PoolRecord record = lease_.record();
    record.back_off[cause] = {.failures = failures, .retry_at = clock_.WallNow() + seconds(30)};
    Store(record);
  }
  void PutPodQuota(int hard, int used) {
    const nlohmann::json pods = {{"pods", std::to_string(hard)}};
    cluster_.PutObject({{"apiVersion", "v1"},
                        {"kind", "ResourceQuota"},
                        {"metadata", {{"name", "team"}, {"namespace", "nomad"}}},
                        {"spec", {{"hard", pods}}},
                        {"status", {{"hard", pods}, {"used", {{"pods", std::to_string(used)}}}}}});
  }

  // The only host has so much memory for pods.
  void PutHost(const std::string& memory) {
    ASSERT_TRUE(cluster_.PutObject(support::HostWith("harvester-1", memory)));
  }

  ScaleRequest request_{.reason = "test"};
  std::optional<ScaleCall> call_;
  Strings effects_;  // of the last Scale, before its Lease is released with the record
};

TEST_F(ScaleCallTest, C2_what_a_growth_needs_is_read_once_and_tried) {
  ASSERT_THAT(Scale(1), IsOk());
  for (const char* const request :
       {"ask selfsubjectrulesreviews", "get virtualmachineimages", "list resourcequotas",
        "get network-attachment-definitions", "try virtualmachines", "patch secrets"}) {
    EXPECT_EQ(Times(request), 1) << request;
  }
}

TEST_F(ScaleCallTest, L10_a_paused_pool_reads_no_sources) {
  AnnotateLease(harvester::kLeasePausedAnnotation, "true");
  EXPECT_FALSE(Scale(1).ok());
  EXPECT_EQ(Times("get virtualmachineimages"), 0);
  EXPECT_EQ(Times("try virtualmachines"), 0);
}

TEST_F(ScaleCallTest, C3_what_waits_or_does_not_grow_reads_no_sources) {
  AddVm("web-a");
  ASSERT_THAT(Scale(1), IsOk());
  EXPECT_EQ(Times("get virtualmachineimages"), 0);
  BackOffFor("create", 1);
  EXPECT_FALSE(Scale(2).ok());
  EXPECT_EQ(Times("get virtualmachineimages"), 0);
  EXPECT_EQ(Times("try virtualmachines"), 0);
}

TEST_F(ScaleCallTest, C15_a_growth_is_refused_if_nomad_is_another_cluster_than_the_observed_one) {
  ASSERT_THAT(Scale(0), IsOk());
  cluster_.SetNomadKeys({"rebuilt"});
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("another Nomad cluster answers than a moment ago")));
}

TEST_F(ScaleCallTest, C12_after_removals_that_were_all_refused_one_vm_alone_is_removed) {
  AddVm("web-a");
  AddVm("web-b");
  HoldLease();
  PoolRecord record = lease_.record();
  record.back_off[std::string(cause::kRefused)] = {.failures = 1, .retry_at = clock_.WallNow()};
  Store(record);
  ASSERT_THAT(Scale(0), IsOk());
  EXPECT_NE(IsMarked("web-a"), IsMarked("web-b"));
}

TEST_F(ScaleCallTest, L1_a_selection_by_load_asks_node_by_node_if_the_list_is_too_large) {
  AddVm("web-a");
  policy_.selector = policy::SelectorStrategy::kLeastBusy;
  Next("list allocations", simulator::Fault::Answer(200, "{}"));
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_GE(Times("list node-allocations"), 1);
  EXPECT_THAT(sink_->Text(), HasSubstr("Could not list all allocations"));
}

TEST_F(ScaleCallTest, C2_a_growth_checks_everything_and_names_its_vms_before_it_creates) {
  ASSERT_THAT(Scale(1), IsOk());
  const Strings sent = Sent();
  const Strings wanted = {"list nodes",
                          "get jwks.json",
                          "list virtualmachines",
                          "list virtualmachineinstances",
                          "get namespaces",
                          "ask selfsubjectrulesreviews",
                          "list virtualmachineimages",
                          "get virtualmachineimages",
                          "get network-attachment-definitions",
                          "list resourcequotas",
                          "get jwks.json",
                          "try virtualmachines",
                          "list nodes",  // Harvester's hosts
                          "list pods",
                          "patch leases",
                          "create secrets",
                          "create virtualmachines",
                          "patch secrets"};
  ASSERT_GE(sent.size(), wanted.size());
  EXPECT_EQ(Strings(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(wanted.size())),
            wanted);
  EXPECT_TRUE(call_->result().acted);
  EXPECT_NE(troubles_.new_vms.current.hash, "");
  EXPECT_EQ(LeaseAnnotation(harvester::kLeaseActionAnnotation), "") << "it is closed";
}

TEST_F(ScaleCallTest, C2_a_removal_checks_the_rights_and_names_its_victim_before_the_mark) {
  AddVm("web-a");
  ASSERT_THAT(Scale(0), IsOk());
  const Strings sent = Sent();
  const Strings wanted = {"list nodes", "get jwks.json", "list virtualmachines",
                          "list virtualmachineinstances", "get namespaces",
                          "ask selfsubjectrulesreviews",
                          "list nodes",  // Harvester's hosts
                          "patch leases",
                          // Where the work of the victim can go (rule C19).
                          "get acl", "list evaluations", "list jobs", "list allocations",
                          "list evaluations", "list nodes", "get node",
                          // The mark and the drain.
                          "get node", "patch virtualmachines", "get node", "update drain"};
  ASSERT_GE(sent.size(), wanted.size());
  EXPECT_EQ(Strings(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(wanted.size())),
            wanted);
}

TEST_F(ScaleCallTest, C1_without_a_difference_nothing_is_checked_or_stored) {
  AddVm("web-a");
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_THAT(Sent(), ElementsAre("list nodes", "get jwks.json", "list virtualmachines",
                                  "list virtualmachineinstances", "get namespaces"));
  EXPECT_FALSE(call_->result().acted);
  EXPECT_EQ(call_->result().plan->from, 1);
  EXPECT_EQ(call_->result().plan->to, 1);
}

TEST_F(ScaleCallTest, C2_what_refuses_an_action_does_so_before_its_first_write) {
  AddVm("web-a");
  HoldLease();
  using Code = absl::StatusCode;
  struct Case {
    std::int64_t count;
    Code code;
    std::string why;
    std::function<void()> spoil, mend;
  };
  const auto clear_record = [&] { Store({}); };
  const auto nothing = [] {};
  const std::vector<Case> cases = {
      {2, Code::kUnavailable, "Nomad cannot be read", [&] { Next("list nodes", RefusedByNomad()); },
       nothing},
      {2, Code::kResourceExhausted, "creating VMs failed 2 times in a row",
       [&] { BackOffFor("create", 2); }, clear_record},
      {0, Code::kResourceExhausted, "removing VMs failed 1 time; ",
       [&] { BackOffFor("remove", 1); }, clear_record},
      {0, Code::kUnavailable, "own node",
       [&] { memory_.SetOwnNode(base::Unavailable("own node")); }, [&] { memory_.SetOwnNode(""); }},
      {0, Code::kFailedPrecondition, "autoscaler", [&] { memory_.SetOwnNode(NodeOf("web-a")); },
       [&] { memory_.SetOwnNode(""); }},
      {2, Code::kPermissionDenied, "create secrets", [&] { cluster_.Forbid("create", "secrets"); },
       [&] { cluster_.AllowAll(); }},
      {0, Code::kPermissionDenied, "list persistentvolumeclaims",
       [&] { cluster_.Forbid("list", "persistentvolumeclaims"); }, [&] { cluster_.AllowAll(); }},
      {2, Code::kUnauthenticated, "SelfSubjectRulesReview",
       [&] { Next("ask selfsubjectrulesreviews", Failed()); }, nothing},
      {2, Code::kFailedPrecondition, "image",
       [&] { cluster_.SetImageReady("default/ubuntu-24.04", false); },
       [&] { cluster_.SetImageReady("default/ubuntu-24.04", true); }},
      {2, Code::kResourceExhausted,
       "0 of 1 VMs fit the quota of namespace nomad: ResourceQuota team: 5 of 5 pods are used",
       [&] { PutPodQuota(5, 5); },
       [&] {
         PutPodQuota(5, 0);
         clear_record();  // of the back-off
       }},
      {2, Code::kResourceExhausted, "0 of 1 VMs fit now: host harvester-1 has ",
       [&] { PutHost("4Gi"); },
       [&] {
         PutHost("64Gi");
         clear_record();
       }},
      {2, Code::kFailedPrecondition, "no host could hold a VM", [&] { PutHost("1Gi"); },
       [&] {
         PutHost("64Gi");
         clear_record();
       }},
      {0, Code::kFailedPrecondition, "lacks the capability read-job",
       [&] {
         policy_.selector = policy::SelectorStrategy::kLeastBusy;
         Next("list allocations", RefusedByNomad());
       },
       [&] { policy_.selector = policy::SelectorStrategy::kNewestCreateIndex; }},
      {0, Code::kFailedPrecondition, "does not let its capability read-job be verified",
       [&] {
         policy_.selector = policy::SelectorStrategy::kLeastBusy;
         Always("get acl", RefusedByNomad());
       },
       [&] {
         policy_.selector = policy::SelectorStrategy::kNewestCreateIndex;
         Always("get acl", Fault::None());
       }},
      {2, Code::kPermissionDenied, "patch Lease", [&] { Next("patch leases", Refused()); },
       nothing}};
  for (const Case& c : cases) {
    c.spoil();
    EXPECT_THAT(Scale(c.count), StatusIs(c.code, HasSubstr(c.why))) << c.why;
    if (c.why != "patch Lease") {
      EXPECT_THAT(effects_, IsEmpty()) << c.why;
    }
    EXPECT_EQ(LeaseAnnotation(harvester::kLeaseActionAnnotation), "") << c.why;
    EXPECT_FALSE(call_->result().acted) << c.why;
    c.mend();
  }
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_EQ(cluster_.Vms().size(), 1U);
}

TEST_F(ScaleCallTest, C2_the_lease_keeps_why_the_last_action_was_refused_until_one_succeeds) {
  const auto last_error = [&] {
    const auto error =
        harvester::ParseErrorRecord(LeaseAnnotation(harvester::kLeaseLastErrorAnnotation));
    return error.ok() ? error->action + ": " + error->text : "";
  };
  cluster_.SetImageReady("default/ubuntu-24.04", false);
  EXPECT_FALSE(Scale(2).ok());
  const std::string refused = last_error();
  EXPECT_THAT(refused,
              testing::StartsWith(call_->result().action_id + ": image: default/ubuntu-24.04"));
  // A pause and a back-off have lines of their own, and their cause is the better answer.
  BackOffFor("create", 2);
  EXPECT_FALSE(Scale(2).ok());
  EXPECT_EQ(last_error(), refused);
  AnnotateLease(harvester::kLeasePausedAnnotation, "true");
  EXPECT_FALSE(Scale(2).ok());
  EXPECT_EQ(last_error(), refused);
  AnnotateLease(harvester::kLeasePausedAnnotation, "false");
  Store({.last_error = lease_.record().last_error});
  cluster_.SetImageReady("default/ubuntu-24.04", true);
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(last_error(), "");
}

TEST_F(ScaleCallTest, T1_a_scale_to_the_present_count_ends_the_last_error) {
  cluster_.SetImageReady("default/ubuntu-24.04", false);
  EXPECT_FALSE(Scale(2).ok());
  EXPECT_NE(LeaseAnnotation(harvester::kLeaseLastErrorAnnotation), "");
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_EQ(LeaseAnnotation(harvester::kLeaseLastErrorAnnotation), "");
}

TEST_F(ScaleCallTest, C2_rights_that_a_review_does_not_list_are_asked_one_by_one) {
  cluster_.SetRulesIncomplete(true);
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(Count("ask selfsubjectaccessreviews"), 11U);
  AddVm("web-z");
  cluster_.Forbid("delete", "virtualmachines");
  EXPECT_THAT(Scale(1),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("delete virtualmachines")));
  EXPECT_EQ(Count("ask selfsubjectaccessreviews"), 7U);
}

TEST_F(ScaleCallTest, C15_a_mass_loss_refuses_removals_until_its_time_is_over) {
  for (const std::string vm : {"web-a", "web-b", "web-c"}) AddVm(vm);
  for (const std::string vm : {"web-a", "web-b"}) cluster_.KillNode(NodeOf(vm));
  clock_.Advance(seconds(20));
  for (const std::string vm : {"web-a", "web-b"}) cluster_.PurgeNode(vm);
  EXPECT_THAT(Scale(2), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("2 of 3 running VMs have lost their Nomad node")));
  EXPECT_THAT(effects_, IsEmpty());
  request_.terms.mass_loss_over = true;
  EXPECT_THAT(Scale(2), IsOk());
  EXPECT_EQ(StoredAction().names.size(), 1U);
}

TEST_F(ScaleCallTest, L10_a_paused_pool_is_refused_after_its_roll_backs) {
  AddVm("web-a");
  Drain("web-a");
  AnnotateLease(harvester::kLeasePausedAnnotation, "true");
  EXPECT_THAT(Scale(3), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("pool nomad/web is paused")));
  EXPECT_EQ(effects_, (Strings{"update drain"}));
  EXPECT_FALSE(call_->result().acted);
  EXPECT_FALSE(call_->result().plan.has_value());
}

TEST_F(ScaleCallTest,
       C12_a_back_off_of_creations_defers_them_and_removals_are_still_removal_cancelled) {
  AddNamed({"web-a"});
  Mark("web-a");
  BackOffFor("join", 2);
  EXPECT_THAT(Scale(3),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the join of new VMs")));
  EXPECT_TRUE(call_->result().acted);
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_EQ(Count("create virtualmachines"), 0U);
}

TEST_F(ScaleCallTest,
       C12_a_quota_without_room_defers_creations_and_removals_are_still_removal_cancelled) {
  AddNamed({"web-a"});
  Mark("web-a");
  PutPodQuota(5, 5);
  EXPECT_THAT(Scale(3), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("0 of 2 VMs")));
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_EQ(Count("create virtualmachines"), 0U);
}

TEST_F(ScaleCallTest, C2_what_fits_the_quota_is_made_and_quotas_need_not_be_readable) {
  PutPodQuota(5, 4);
  EXPECT_THAT(Scale(3), StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("1 of 3 VMs fit the quota of namespace nomad")));
  EXPECT_EQ(cluster_.Vms().size(), 1U);
  EXPECT_EQ(Logged("WARN There is no room for all new VMs"), 1U);
  EXPECT_THAT(Scale(2), StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("finding room for new VMs failed 1 time; next try at")));
  clock_.Advance(seconds(31));
  PutPodQuota(5, 4);
  EXPECT_THAT(Scale(2), IsOk()) << "as many as fit";
  Next("list resourcequotas", Refused());
  EXPECT_THAT(Scale(3), IsOk());
}

TEST_F(ScaleCallTest, C2_what_fits_on_the_hosts_is_made_and_the_error_says_what_they_lack) {
  PutHost("4Gi");
  EXPECT_THAT(Scale(3), StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("1 of 3 VMs fit now: host harvester-1 has ")));
  EXPECT_EQ(cluster_.Vms().size(), 1U);
  EXPECT_EQ(Logged("WARN There is no room for all new VMs"), 1U);
  EXPECT_EQ(lease_.record().back_off.at("room").failures, 1);
  clock_.Advance(seconds(31));
  EXPECT_THAT(Scale(3), StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("0 of 2 VMs fit now: host harvester-1 has ")));
  EXPECT_THAT(effects_, IsEmpty());
  EXPECT_FALSE(call_->result().acted);
  clock_.Advance(seconds(61));
  PutHost("64Gi");
  EXPECT_THAT(Scale(3), IsOk()) << "both at once";
}

TEST_F(ScaleCallTest, C2_of_quota_and_hosts_the_one_with_less_room_limits_a_growth) {
  PutHost("8Gi");
  PutPodQuota(5, 4);
  EXPECT_THAT(Scale(4), StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("1 of 4 VMs fit the quota of namespace nomad")));
  EXPECT_EQ(cluster_.Vms().size(), 1U);
  clock_.Advance(seconds(31));
  PutPodQuota(8, 5);
  EXPECT_THAT(Scale(4),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1 of 3 VMs fit now: ")));
  EXPECT_EQ(cluster_.Vms().size(), 2U);
}

TEST_F(ScaleCallTest, C2_what_no_host_could_ever_hold_is_refused_without_a_trace) {
  PutHost("2Gi");
  EXPECT_THAT(Scale(3), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 testing::AllOf(HasSubstr("no host could hold a VM"),
                                                HasSubstr("host harvester-1 has 2 GiB of memory"),
                                                HasSubstr("memory_request"))));
  EXPECT_THAT(effects_, IsEmpty());
  EXPECT_TRUE(lease_.record().back_off.contains("room")) << "not each tick lists all pods";
}

TEST_F(ScaleCallTest, C2_a_forecast_that_alone_refuses_for_ten_minutes_is_doubted_by_one_vm) {
  PutHost("3Gi");  // enough for the guest, not for what KubeVirt adds
  EXPECT_THAT(Scale(2), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("0 of 2 VMs")));
  clock_.Advance(minutes(9));
  EXPECT_THAT(Scale(2), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("0 of 2 VMs")));
  EXPECT_EQ(cluster_.Vms().size(), 0U);
  clock_.Advance(seconds(61));
  const std::string doubt =
      "WARN Nothing but the forecast has refused new VMs for ten minutes; one is made all the same";
  EXPECT_EQ(Logged(doubt), 0U);
  EXPECT_THAT(Scale(2), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("0 of 2 VMs")));
  EXPECT_EQ(cluster_.Vms().size(), 1U);
  EXPECT_EQ(Logged(doubt), 1U);
  clock_.Advance(minutes(2));
  EXPECT_FALSE(Scale(2).ok());
  EXPECT_EQ(cluster_.Vms().size(), 1U) << "that VM was accepted: the ten minutes begin again";
}

TEST_F(ScaleCallTest, C2_a_forecast_with_room_ends_the_ten_minutes) {
  PutHost("3Gi");
  EXPECT_FALSE(Scale(1).ok());
  ASSERT_TRUE(troubles_.refused_by_forecast.has_value());
  clock_.Advance(minutes(9));
  PutHost("4Gi");
  Next("create secrets", Refused());
  EXPECT_FALSE(Scale(1).ok());
  EXPECT_FALSE(troubles_.refused_by_forecast.has_value());
}

TEST_F(ScaleCallTest, C2_a_quota_that_refuses_too_begins_the_ten_minutes_of_the_forecast_again) {
  PutHost("3Gi");
  const auto refused = [&](base::Duration later, const std::string& why) {
    clock_.Advance(later);
    EXPECT_THAT(Scale(2), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(why)));
  };
  refused(seconds(0), "0 of 2 VMs fit now");
  refused(minutes(8), "0 of 2 VMs fit now");
  PutPodQuota(5, 5);
  refused(minutes(1), "0 of 2 VMs fit the quota");
  PutPodQuota(5, 0);
  refused(minutes(2), "0 of 2 VMs fit now");
  EXPECT_EQ(cluster_.Vms().size(), 0U) << "the forecast was not alone";
}

TEST_F(ScaleCallTest, C2_without_the_right_to_list_pods_nothing_is_forecast_for_ten_minutes) {
  PutHost("2Gi");
  cluster_.Forbid("list", "pods", /*cluster_wide=*/true);
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(Times("list pods"), 1);
  EXPECT_THAT(Scale(2), IsOk());
  EXPECT_EQ(Times("list pods"), 0);
  EXPECT_EQ(cluster_.Vms().size(), 2U);
  cluster_.AllowAll();
  PutHost("64Gi");
  clock_.Advance(kZoneFor);
  EXPECT_THAT(Scale(3), IsOk());
  EXPECT_EQ(Times("list pods"), 1);
}

TEST_F(ScaleCallTest, C2_without_the_right_to_list_hosts_no_pods_are_listed) {
  PutHost("2Gi");
  cluster_.Forbid("list", "nodes");
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(Times("list pods"), 0);
  EXPECT_EQ(Times("list nodes"), 3) << "Nomad's before and after, and the one that is refused";
  EXPECT_THAT(Scale(2), IsOk());
  EXPECT_EQ(Times("list nodes"), 2);
}

TEST_F(ScaleCallTest, C2_hosts_that_do_not_answer_delay_a_growth_by_three_seconds_at_most) {
  PutHost("2Gi");
  Next("list pods", Fault::Delay(minutes(5)));
  const base::MonoTime begun = clock_.Now();
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_LE(clock_.Now() - begun, kHostsLimit + seconds(1));
}

TEST_F(ScaleCallTest, C2_vms_go_to_the_zones_that_have_room) {
  for (const auto& [zone, memory] : {std::pair("a", "4Gi"), std::pair("b", "64Gi")}) {
    nlohmann::json host = support::HostIn(zone);
    host["status"]["allocatable"]["memory"] = memory;
    ASSERT_TRUE(cluster_.PutObject(host));
  }
  policy_.zones = {"a", "b"};
  policy_.evenly_split_zones = true;
  EXPECT_THAT(Scale(4), IsOk());
  std::multiset<std::string> zones;
  for (const nlohmann::json& vm : cluster_.Vms()) {
    zones.insert(vm["metadata"]["annotations"].value(harvester::kZoneAnnotation, ""));
  }
  EXPECT_THAT(zones, ElementsAre("a", "b", "b", "b"));
}

TEST_F(ScaleCallTest, T1_the_error_of_what_did_not_fit_does_not_go_with_the_end_of_its_action) {
  PutPodQuota(5, 4);
  EXPECT_THAT(Scale(3), StatusIs(absl::StatusCode::kResourceExhausted));
  const std::optional<harvester::ErrorRecord> error = lease_.record().last_error;
  ASSERT_TRUE(error.has_value());
  EXPECT_THAT(error->text, HasSubstr("1 of 3 VMs fit the quota"));
  EXPECT_EQ(error->action, "");
}

TEST_F(ScaleCallTest, C2_a_class_that_cannot_be_checked_is_one_warning) {
  policy_.machine["priority_class"] = std::string("low");
  cluster_.Forbid("get", "priorityclasses");
  const char* const warning =
      "WARN The token may not read what the policy names, so it is not checked; if it is missing, "
      "VMs do not start. Grant get on storageclasses.storage.k8s.io and "
      "priorityclasses.scheduling.k8s.io, as the optional ClusterRole of examples/rbac.yaml does";
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(Logged(warning), 1U);
  EXPECT_THAT(Scale(2), IsOk());
  EXPECT_EQ(Logged(warning), 1U);
}

TEST_F(ScaleCallTest, what_is_not_as_in_the_template_is_one_warning_of_a_growth) {
  cluster_.PutObject({{"apiVersion", "harvesterhci.io/v1beta1"},
                      {"kind", "VirtualMachineTemplate"},
                      {"metadata", {{"namespace", "default"}, {"name", "worker"}}}});
  const nlohmann::json claims = nlohmann::json::array(
      {{{"metadata",
         {{"name", "c"}, {"annotations", {{"harvesterhci.io/imageId", "default/image-rx7kp"}}}}},
        {"spec", {{"resources", {{"requests", {{"storage", "20Gi"}}}}}}}}});
  const nlohmann::json guest = {
      {"domain", {{"devices", {{"disks", {{{"name", "d"}, {"disk", nlohmann::json::object()}}}}}}}},
      {"volumes", {{{"name", "d"}, {"persistentVolumeClaim", {{"claimName", "c"}}}}}}};
  cluster_.PutObject(
      {{"apiVersion", "harvesterhci.io/v1beta1"},
       {"kind", "VirtualMachineTemplateVersion"},
       {"metadata", {{"namespace", "default"}, {"name", "worker-a"}}},
       {"spec",
        {{"templateId", "default/worker"},
         {"vm",
          {{"metadata",
            {{"annotations", {{"harvesterhci.io/volumeClaimTemplates", claims.dump()}}}}},
           {"spec", {{"runStrategy", "Halted"}, {"template", {{"spec", guest}}}}}}}}}});
  policy_.vm_template = config::TemplateRef{.name = {"default", "worker"}, .version = {}};
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(Logged("WARN Parts of the VM template are not used"), 1U);
  EXPECT_EQ(cluster_.Vms().size(), 1U);
}

TEST_F(ScaleCallTest, C10_names_that_an_earlier_action_left_are_used_first_or_kept) {
  HoldLease();
  Store({.action = harvester::LeaseAction{.id = "earlier",
                                          .names = {"web-gone", "web-x", "web-y"},
                                          .create = {{"web-x", "earlier"}, {"web-y", "earlier"}},
                                          .unknown_members = R"({"later":1})"}});
  harvester::LeaseAction stored;
  After("patch leases", [&] { stored = StoredAction(); });
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(stored.id, call_->result().action_id);
  EXPECT_THAT(stored.names, ElementsAre("web-gone", "web-x", "web-y"));
  EXPECT_THAT(stored.create,
              ElementsAre(testing::Pair("web-x", "earlier"), testing::Pair("web-y", "earlier")));
  EXPECT_EQ(stored.unknown_members, R"({"later":1})");
  EXPECT_EQ(Annotation("web-x", harvester::kActionIdAnnotation), "earlier");
  EXPECT_THAT(StoredAction().create, ElementsAre(testing::Pair("web-y", "earlier")));
}

TEST_F(ScaleCallTest, L6_the_vms_that_a_growth_takes_back_are_on_the_lease_before_their_roll_back) {
  AddNamed({"web-a"});
  Mark("web-a");
  std::set<std::string> back;
  After("patch leases", [&] {
    back = StoredAction().cancel;
    EXPECT_TRUE(IsMarked("web-a"));
  });
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_THAT(back, ElementsAre("web-a"));
  EXPECT_EQ(LeaseAnnotation(harvester::kLeaseActionAnnotation), "");
}

// Of VMs that the Lease names, web-a, whose roll-back is refused, and web-b.
class CancelledInVain : public ScaleCallTest {
 protected:
  CancelledInVain() {
    AddNamed({"web-a", "web-b"});
    PoolRecord record = lease_.record();
    record.action->cancel = {"web-a", "web-b"};
    Store(record);
    Mark("web-a");
    cluster_.Refuse({.verb = "patch", .resource = "virtualmachines", .name = "web-a"});
  }
  // The removals that are cancelled once the plan is stored.
  std::set<std::string> StoredFor(std::int64_t count) {
    std::set<std::string> stored;
    After("patch leases", [&] { stored = StoredAction().cancel; });
    EXPECT_THAT(Scale(count), IsOk());
    return stored;
  }
};

TEST_F(CancelledInVain, L6_growth_keeps_a_removal_cancelled_until_it_is_undone) {
  EXPECT_THAT(StoredFor(3), ElementsAre("web-a")) << "web-b has no mark any more";
}

TEST_F(CancelledInVain, C14_a_scale_in_lets_it_go_on) {
  EXPECT_THAT(StoredFor(1), IsEmpty());
  EXPECT_TRUE(IsMarked("web-a"));
  EXPECT_FALSE(IsMarked("web-b"));
}

TEST_F(CancelledInVain, C14_a_scale_to_the_count_that_it_has_only_with_that_vm_fails) {
  EXPECT_THAT(Scale(2), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("VM web-a, which counts although it is marked")));
}

TEST_F(ScaleCallTest, L11_what_a_later_release_wrote_about_the_policy_is_kept) {
  HoldLease();
  Store({.policy = harvester::PolicyRecord{
             .id = "one", .at = clock_.WallNow(), .unknown_members = R"({"later":1})"}});
  request_.terms.policy_id = "one";
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_THAT(LeaseAnnotation(harvester::kLeasePolicyAnnotation), HasSubstr("later"));
}

// A mark that was written too late, by a process that had lost the Lease, is rolled back. While
// that is refused, no other action may make the mark valid: its VM would be drained and deleted.
TEST_F(ScaleCallTest, C11_a_mark_that_no_action_has_named_is_not_named_by_the_next_one) {
  for (const char* vm : {"web-a", "web-b", "web-c"}) AddVm(vm);
  Mark("web-a");
  cluster_.Refuse({.verb = "patch", .resource = "virtualmachines", .name = "web-a"});
  ASSERT_THAT(Scale(2), IsOk());
  EXPECT_TRUE(IsMarked("web-a"));
  EXPECT_THAT(StoredAction().names, testing::Not(testing::Contains("web-a")));
  EXPECT_EQ(Count("update drain"), 1U);
}

// The mark of a removal that failed may still be on its way.
TEST_F(ScaleCallTest, C11_an_unmarked_vm_that_the_last_action_named_is_not_named_by_the_next_one) {
  for (const char* vm : {"web-a", "web-b"}) AddVm(vm);
  HoldLease({"web-a"});
  harvester::LeaseAction stored;
  After("patch leases", [&] { stored = StoredAction(); });
  ASSERT_THAT(Scale(3), IsOk());
  EXPECT_EQ(stored.id, call_->result().action_id);
  EXPECT_THAT(stored.names, testing::Not(testing::Contains("web-a")));
}

TEST_F(ScaleCallTest, C12_a_failure_that_is_not_yet_on_the_lease_delays_the_growth) {
  troubles_.unrecorded.failures = {{std::string(cause::kRoom), "act"}};
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("finding room for new VMs failed 1 time")));
  EXPECT_EQ(cluster_.Vms().size(), 0U);
}

TEST_F(ScaleCallTest, C12_a_failure_whose_record_got_no_reply_delays_the_growth_once) {
  HoldLease();
  PoolRecord record = lease_.record();
  record.back_off["join"] = {
      .failures = 1, .retry_at = clock_.WallNow() + minutes(1), .action = "act"};
  Store(record);
  troubles_.unrecorded.failures = {{std::string(cause::kJoin), "act"}};
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("the join of new VMs failed 1 time;")));
}

TEST_F(ScaleCallTest, C12_a_zone_in_which_a_vm_could_not_start_is_avoided_for_two_hours) {
  for (const char* zone : {"a", "b"}) cluster_.PutObject(support::HostIn(zone));
  policy_.zones = {"a", "b"};
  policy_.evenly_split_zones = true;
  troubles_.zone_failures = {{"a", clock_.Now()}};
  ASSERT_THAT(Scale(1), IsOk());
  const auto zones = [&] {
    std::multiset<std::string> found;
    for (const nlohmann::json& vm : cluster_.Vms()) {
      found.insert(vm["metadata"]["annotations"].value(harvester::kZoneAnnotation, ""));
    }
    return found;
  };
  EXPECT_THAT(zones(), ElementsAre("b"));
  clock_.Advance(kZoneAvoidedFor);
  ASSERT_THAT(Scale(2), IsOk());
  EXPECT_THAT(zones(), ElementsAre("a", "b"));
}

TEST_F(ScaleCallTest, C8_a_vm_whose_removal_was_refused_goes_last_for_an_hour) {
  for (const char* vm : {"web-a", "web-b", "web-c"}) AddVm(vm);
  troubles_.removal_refusals["web-c"] = {.count = 1, .last = clock_.Now() - minutes(50)};
  ASSERT_THAT(Scale(2), IsOk());
  EXPECT_FALSE(IsMarked("web-c")) << "the newest would go first";
  EXPECT_TRUE(IsMarked("web-b"));
  clock_.Advance(minutes(10));
  ASSERT_THAT(Scale(1), IsOk());
  EXPECT_TRUE(IsMarked("web-c"));
}

}  // namespace
}  // namespace nomad_harvester::scaling
