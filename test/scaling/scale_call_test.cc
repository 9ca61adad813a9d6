// SPDX-License-Identifier: Apache-2.0
#include "drivers/scale_call.h"

#include <algorithm>
#include <functional>

#include "nomad_harvester/scaling/status_report.h"

#include "pool_fixture.h"
#include "rules/back_off.h"

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
    call_.emplace(Deps(), policy_, request_, &scale_memory_);
    Forget();
    if (before) before();
    absl::Status outcome = call_->Run(context());
    effects_ = Effects();
    Close(call_->closed_record());
    return outcome;
  }
  // As a Scale does that acquires its Lease.
  void Prefetch() {
    call_->reads().PrefetchSources(context());
    call_->reads().Prefetch(context());
  }
  // How often a kind of request was sent in the last Scale.
  std::int64_t Times(const std::string& request) {
    const Strings sent = Sent();
    return std::count(sent.begin(), sent.end(), request);
  }
  void BackOffFor(const std::string& cause, std::int64_t failures) {
    PoolRecord record = lease_.record();
    record.back_off[cause] = {.failures = failures, .retry_at = clock_.WallNow() + minutes(5)};
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

  ScaleRequest request_{.reason = "test"};
  ScaleMemory scale_memory_;
  std::optional<ScaleCall> call_;
  Strings effects_;  // of the last Scale, before its Lease is released with the record
};

TEST_F(ScaleCallTest, C2_what_was_read_ahead_is_not_read_again) {
  request_.last_count = 1;
  ASSERT_THAT(Scale(0, [&] { Prefetch(); }), IsOk());
  EXPECT_EQ(Times("list nodes"), 2) << "Nomad's, and Harvester's hosts";
  EXPECT_EQ(Times("list virtualmachines"), 1);
  ASSERT_THAT(Scale(0), IsOk());
  EXPECT_EQ(Times("list nodes"), 1);
}

TEST_F(ScaleCallTest, C2_the_sources_of_a_growth_are_read_ahead_and_tried) {
  ASSERT_THAT(Scale(1, [&] { Prefetch(); }), IsOk());
  for (const char* const request :
       {"ask selfsubjectrulesreviews", "get virtualmachineimages", "list resourcequotas",
        "get network-attachment-definitions", "try virtualmachines", "patch secrets"}) {
    EXPECT_EQ(Times(request), 1) << request;
  }
}

TEST_F(ScaleCallTest, C2_a_refusal_that_was_read_ahead_refuses_the_action) {
  EXPECT_THAT(
      Scale(1,
            [&] {
              Next("try virtualmachines", Refused());
              Prefetch();
            }),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("Harvester would refuse the VM")));
  EXPECT_THAT(effects_, IsEmpty());
}

TEST_F(ScaleCallTest, C2_a_trial_that_got_no_answer_ahead_refuses_nothing_and_is_repeated) {
  EXPECT_THAT(Scale(1,
                    [&] {
                      Always("try virtualmachines", simulator::Fault::Delay(std::chrono::hours(1)));
                      Prefetch();
                      Next("try virtualmachines", simulator::Fault::None());
                      Forget();
                    }),
              IsOk());
  EXPECT_EQ(Times("try virtualmachines"), 1);
}

TEST_F(ScaleCallTest, L3_trouble_of_what_is_read_ahead_that_passes_refuses_nothing) {
  const simulator::Fault busy = simulator::Fault::Answer(429, "", "60");
  for (const char* const request : {"get virtualmachineimages", "try virtualmachines"}) {
    EXPECT_THAT(Scale(1,
                      [&] {
                        Next(request, busy);
                        Prefetch();
                      }),
                IsOk())
        << request;
    EXPECT_EQ(Times(request), 2) << request;
    ASSERT_THAT(Scale(0), IsOk());
  }
}

TEST_F(ScaleCallTest, L10_a_paused_pool_reads_no_sources_ahead) {
  AnnotateLease(harvester::kLeasePausedAnnotation, "true");
  EXPECT_FALSE(Scale(1, [&] { Prefetch(); }).ok());
  EXPECT_EQ(Times("get virtualmachineimages"), 0);
  EXPECT_EQ(Times("try virtualmachines"), 0);
}

TEST_F(ScaleCallTest, C3_what_waits_or_does_not_grow_reads_no_sources) {
  AddVm("web-a");
  request_.last_count = 1;
  ASSERT_THAT(Scale(1, [&] { Prefetch(); }), IsOk());
  EXPECT_EQ(Times("get virtualmachineimages"), 0);
  BackOffFor("create", 1);
  EXPECT_FALSE(Scale(2, [&] { Prefetch(); }).ok());
  EXPECT_EQ(Times("get virtualmachineimages"), 0);
  EXPECT_EQ(Times("try virtualmachines"), 0);
}

TEST_F(ScaleCallTest, C15_a_growth_is_refused_if_nomad_is_another_cluster_than_the_observed_one) {
  ASSERT_THAT(Scale(0), IsOk());
  cluster_.SetNomadKeys({"rebuilt"});
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("another Nomad cluster answers than a moment ago")));
}

TEST_F(ScaleCallTest, C2_what_was_read_ahead_is_read_again_if_that_took_long) {
  ASSERT_THAT(Scale(0,
                    [&] {
                      Prefetch();
                      clock_.Advance(seconds(6));
                    }),
              IsOk());
  EXPECT_EQ(Times("list nodes"), 2);
}

TEST_F(ScaleCallTest, C2_the_sources_are_read_again_if_the_lease_was_waited_for) {
  ASSERT_THAT(Scale(1,
                    [&] {
                      call_->reads().PrefetchSources(context());
                      clock_.Advance(seconds(6));
                      call_->reads().Prefetch(context());
                    }),
              IsOk());
  EXPECT_EQ(Times("list resourcequotas"), 2);
}

TEST_F(ScaleCallTest, C2_what_was_read_ahead_is_read_again_after_slow_roll_backs) {
  AddVm("web-a");
  Drain("web-a");
  request_.last_count = 1;
  After("update drain", [&] { clock_.Advance(seconds(6)); });
  ASSERT_THAT(Scale(2, [&] { Prefetch(); }), IsOk());
  for (const char* const request :
       {"ask selfsubjectrulesreviews", "list resourcequotas", "get virtualmachineimages"}) {
    EXPECT_EQ(Times(request), 2) << request;
  }
}

TEST_F(ScaleCallTest, C12_after_removals_that_were_all_refused_one_vm_alone_is_removed) {
  AddVm("web-a");
  AddVm("web-b");
  HoldLease();
  PoolRecord record = lease_.record();
  record.back_off[std::string(cause::kRefused)] = {.failures = 1, .retry_at = clock_.WallNow()};
  Store(record);
  ASSERT_THAT(Scale(0), IsOk());
  EXPECT_EQ(cluster_.Vms().size(), 1U);
}

TEST_F(ScaleCallTest, C2_allocations_too_are_read_again_if_what_was_read_ahead_took_long) {
  AddVm("web-a");
  policy_.selector = policy::SelectorStrategy::kLeastBusy;
  request_.last_count = 1;
  ASSERT_THAT(Scale(0,
                    [&] {
                      Prefetch();
                      EXPECT_EQ(Times("list allocations"), 1);
                      clock_.Advance(seconds(6));
                      Forget();
                    }),
              IsOk());
  const Strings sent = Sent();
  const auto intent = std::find(sent.begin(), sent.end(), "patch leases");
  EXPECT_EQ(std::count(sent.begin(), intent, "list allocations"), 1) << "the plan's own";
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
                          "patch leases",
                          "create secrets",
                          "create virtualmachines",
                          "patch secrets"};
  ASSERT_GE(sent.size(), wanted.size());
  EXPECT_EQ(Strings(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(wanted.size())),
            wanted);
  EXPECT_TRUE(call_->facts().acted);
  EXPECT_FALSE(call_->facts().leaves_work);
  EXPECT_NE(scale_memory_.current_template.hash, "");
  EXPECT_EQ(LeaseAnnotation(harvester::kLeaseActionAnnotation), "") << "it is closed";
}

TEST_F(ScaleCallTest, C2_a_removal_checks_the_rights_and_names_its_victim_before_the_mark) {
  AddVm("web-a");
  ASSERT_THAT(Scale(0), IsOk());
  const Strings sent = Sent();
  const Strings wanted = {"list nodes",
                          "get jwks.json",
                          "list virtualmachines",
                          "list virtualmachineinstances",
                          "get namespaces",
                          "list nodes",  // Harvester's hosts
                          "ask selfsubjectrulesreviews",
                          "patch leases",
                          "get node",
                          "patch virtualmachines",
                          "get node",
                          "update drain"};
  ASSERT_GE(sent.size(), wanted.size());
  EXPECT_EQ(Strings(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(wanted.size())),
            wanted);
}

TEST_F(ScaleCallTest, C1_without_a_difference_nothing_is_checked_or_stored) {
  AddVm("web-a");
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_THAT(Sent(), ElementsAre("list nodes", "get jwks.json", "list virtualmachines",
                                  "list virtualmachineinstances", "get namespaces"));
  EXPECT_FALSE(call_->facts().acted);
  EXPECT_EQ(call_->facts().range->from, 1);
  EXPECT_EQ(call_->facts().range->to, 1);
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
      {0, Code::kResourceExhausted, "removing VMs failed 1 time ", [&] { BackOffFor("remove", 1); },
       clear_record},
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
       [&] { PutPodQuota(5, 5); }, [&] { PutPodQuota(5, 0); }},
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
    EXPECT_FALSE(call_->facts().acted) << c.why;
    EXPECT_FALSE(call_->facts().leaves_work) << c.why;
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
              testing::StartsWith(call_->facts().action_id + ": image: default/ubuntu-24.04"));
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
  request_.mass_loss_over = true;
  EXPECT_THAT(Scale(2), IsOk());
  EXPECT_EQ(cluster_.Vms().size(), 2U);
}

TEST_F(ScaleCallTest, L10_a_paused_pool_is_refused_after_its_roll_backs) {
  AddVm("web-a");
  Drain("web-a");
  AnnotateLease(harvester::kLeasePausedAnnotation, "true");
  EXPECT_THAT(Scale(3), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("pool nomad/web is paused")));
  EXPECT_EQ(effects_, (Strings{"update drain"}));
  EXPECT_FALSE(call_->facts().acted);
  EXPECT_FALSE(call_->facts().range.has_value());
}

TEST_F(ScaleCallTest, C12_a_back_off_of_creations_defers_them_and_removals_are_still_taken_back) {
  AddVm("web-a");
  HoldLease({"web-a"});
  Mark("web-a");
  BackOffFor("join", 2);
  EXPECT_THAT(Scale(3),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the join of new VMs")));
  EXPECT_TRUE(call_->facts().acted);
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_EQ(Count("create virtualmachines"), 0U);
}

TEST_F(ScaleCallTest, C12_a_quota_without_room_defers_creations_and_removals_are_still_taken_back) {
  AddVm("web-a");
  HoldLease({"web-a"});
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
  EXPECT_EQ(Logged("WARN A quota has no room for all new VMs"), 1U);
  PutPodQuota(5, 4);
  EXPECT_THAT(Scale(2), IsOk()) << "as many as fit";
  Next("list resourcequotas", Refused());
  EXPECT_THAT(Scale(3), IsOk());
}

TEST_F(ScaleCallTest, T1_the_error_of_what_did_not_fit_does_not_go_with_the_end_of_its_action) {
  PutPodQuota(5, 4);
  EXPECT_THAT(Scale(3), StatusIs(absl::StatusCode::kResourceExhausted));
  const PoolRecord* record = call_->closed_record();
  ASSERT_NE(record, nullptr);
  ASSERT_TRUE(record->last_error.has_value());
  EXPECT_THAT(record->last_error->text, HasSubstr("1 of 3 VMs fit the quota"));
  EXPECT_EQ(record->last_error->action, "");
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
  EXPECT_THAT(Scale(1, [&] { Prefetch(); }), IsOk());
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
  EXPECT_EQ(stored.id, call_->facts().action_id);
  EXPECT_THAT(stored.names, ElementsAre("web-gone", "web-x", "web-y"));
  EXPECT_THAT(stored.create,
              ElementsAre(testing::Pair("web-x", "earlier"), testing::Pair("web-y", "earlier")));
  EXPECT_EQ(stored.unknown_members, R"({"later":1})");
  EXPECT_EQ(Annotation("web-x", harvester::kActionIdAnnotation), "earlier");
  EXPECT_THAT(StoredAction().create, ElementsAre(testing::Pair("web-y", "earlier")));
}

TEST_F(ScaleCallTest, L6_the_vms_that_a_growth_takes_back_are_on_the_lease_before_their_roll_back) {
  AddVm("web-a");
  HoldLease({"web-a"});
  Mark("web-a");
  std::set<std::string> back;
  After("patch leases", [&] {
    back = StoredAction().back;
    EXPECT_TRUE(IsMarked("web-a"));
  });
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_THAT(back, ElementsAre("web-a"));
  EXPECT_EQ(LeaseAnnotation(harvester::kLeaseActionAnnotation), "");
}

TEST_F(ScaleCallTest, L11_what_a_later_release_wrote_about_the_policy_is_kept) {
  HoldLease();
  Store({.policy = harvester::PolicyRecord{
             .id = "one", .at = clock_.WallNow(), .unknown_members = R"({"later":1})"}});
  request_.policy_id = "one";
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_THAT(LeaseAnnotation(harvester::kLeasePolicyAnnotation), HasSubstr("later"));
}

TEST_F(ScaleCallTest, C10_a_scale_whose_secret_has_no_owner_or_that_failed_leaves_work) {
  Always("patch secrets", Refused());
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_TRUE(call_->facts().leaves_work);
  Next("patch secrets", simulator::Fault::None());
  Next("create virtualmachines", Refused());
  EXPECT_FALSE(Scale(2).ok());
  EXPECT_TRUE(call_->facts().acted);
  EXPECT_TRUE(call_->facts().leaves_work);
  EXPECT_EQ(Logged("WARN Scaled"), 1U);
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

TEST_F(ScaleCallTest, C8_a_vm_whose_removal_was_refused_goes_last_for_an_hour) {
  for (const char* vm : {"web-a", "web-b", "web-c"}) AddVm(vm);
  troubles_.removal_refusals["web-c"] = {.count = 1, .last = clock_.Now() - minutes(50)};
  ASSERT_THAT(Scale(2), IsOk());
  EXPECT_NE(cluster_.Vm("web-c"), nullptr) << "the newest would go first";
  EXPECT_EQ(cluster_.Vm("web-b"), nullptr);
  clock_.Advance(minutes(10));
  ASSERT_THAT(Scale(1), IsOk());
  EXPECT_EQ(cluster_.Vm("web-c"), nullptr);
}

}  // namespace
}  // namespace nomad_harvester::scaling
