// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/service.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "nomad_harvester/metrics/endpoint.h"

#include "drivers/session.h"
#include "pool_fixture.h"
#include "support/manual_executor.h"

namespace nomad_harvester::scaling {
namespace {

using runtime::Context;
using simulator::Fault;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The process' clock, whose time of day may be wrong.
class ProcessClock final : public runtime::Clock {
 public:
  explicit ProcessClock(runtime::Clock& clock) : clock_(clock) {}
  base::MonoTime Now() const override { return clock_.Now(); }
  base::WallTime WallNow() const override { return clock_.WallNow() + ahead_; }
  bool SleepUntil(base::MonoTime until, std::stop_token stop) override {
    return clock_.SleepUntil(until, std::move(stop));
  }
  std::unique_ptr<runtime::PeriodicTask> Every(base::Duration interval,
                                               std::function<void()> callback) override {
    return clock_.Every(interval, std::move(callback));
  }
  void set_ahead(base::Duration ahead) { ahead_ = ahead; }

 private:
  runtime::Clock& clock_;
  base::Duration ahead_{};
};

// Runs each task at once, and counts them; or when it is told to, as while a request is under way.
class CountingExecutor final : public runtime::Executor {
 public:
  absl::Status Submit(std::function<void()> task) override {
    ++submitted_;
    if (holds_) {
      held_.push_back(std::move(task));
    } else {
      task();
    }
    return absl::OkStatus();
  }
  int Take() { return std::exchange(submitted_, 0); }
  void Hold() { holds_ = true; }
  void RunHeld() {
    for (const std::function<void()>& task : std::exchange(held_, {})) task();
  }

 private:
  int submitted_ = 0;
  bool holds_ = false;
  std::vector<std::function<void()>> held_;
};

class ServiceTest : public PoolFixture {
 protected:
  ServiceTest() {
    ServiceOptions options;
    options.clock = &process_clock_;
    options.random = random_;
    options.logger = log::Logger(sink_, log::Level::kInfo);
    options.environment = [this](const std::string& name) -> std::optional<std::string> {
      if (name == "NOMAD_ALLOC_ID" && !allocation_.empty()) return allocation_;
      return std::nullopt;
    };
    options.transports = [this](const config::PluginConfig&) -> absl::StatusOr<RawTransports> {
      if (!transports_.ok()) return transports_;
      return Transports(client_name_);
    };
    options.foreground = &foreground_;
    options.background = &background_;
    options.set_log_level = [this](std::optional<log::Level> level) { level_ = level; };
    options.holder = "service";
    options.metrics_for = [this](const std::string&) { return metrics_; };
    service_ = MakeTargetService(std::move(options));
  }

  absl::Status Configure(const StringMap& more = {}) {
    StringMap values = PluginValues();
    values.insert(more.begin(), more.end());
    return service_->SetConfig(values);
  }
  absl::StatusOr<TargetStatus> Status() {
    Forget();
    return service_->Status(Context::Background(clock_), values_);
  }
  // A Status, and the background work that it started.
  void Settle() {
    EXPECT_THAT(Status(), IsOk());
    background_.RunAll();
  }
  // Whether a Status starts background work; it is run.
  bool Wakes() {
    EXPECT_THAT(Status(), IsOk());
    return background_.RunAll() > 0;
  }
  absl::Status Scale(std::int64_t count, const std::string& meta = "") {
    Forget();
    return service_->Scale(Context::Background(clock_),
                           {.count = count, .reason = "test", .meta_json = meta}, values_);
  }
  // Without waiting for the calls that it ends: they are in this thread.
  void Stop() {
    const runtime::CancelSource now(Context::Background(clock_));
    now.Cancel(runtime::CancelReason::kShutdown);
    service_->Stop(now.context());
  }
  // What the process runs as, on the only VM.
  void RunAsAllocation() {
    cluster_.RunJob({.id = "autoscaler"});
    clock_.Advance(seconds(2));
    allocation_ = base::GetString(cluster_.Allocations().at(0), "ID");
    ASSERT_THAT(Configure(), IsOk());
  }

  ProcessClock process_clock_{clock_};
  StringMap values_ = PolicyValues();
  std::string client_name_ = "plugin";
  std::string allocation_;
  absl::Status transports_;
  std::optional<log::Level> level_;
  std::shared_ptr<metrics::Sink> metrics_;
  CountingExecutor foreground_;
  support::ManualExecutor background_;
  std::unique_ptr<TargetService> service_;
};

TEST_F(ServiceTest, S3_before_its_configuration_every_call_is_refused_without_a_request) {
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("SetConfig")));
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("SetConfig")));
  EXPECT_THAT(Configure({{"no_such_key", "1"}}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(Status().ok());
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(ServiceTest, P2_a_configuration_that_is_refused_leaves_the_earlier_one) {
  ASSERT_THAT(Configure({{"log_level", "debug"}}), IsOk());
  EXPECT_EQ(level_, log::Level::kDebug);
  transports_ = base::InvalidArgument("no certificate");
  EXPECT_THAT(Configure({{"log_level", "error"}}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(level_, log::Level::kDebug);
  EXPECT_THAT(Status(), IsOk());
}

TEST_F(ServiceTest, T2_a_configuration_that_is_refused_is_an_error_of_its_class) {
  const auto registry = metrics::MakeRegistry({.version = "1.2.3", .commit = "abc"});
  metrics_ = registry;
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_FALSE(Configure({{"request_timeout", "0s"}}).ok());
  EXPECT_THAT(registry->Text(), HasSubstr("errors_total{class=\"config\"} 1"));
}

TEST_F(ServiceTest, C15_a_list_of_nodes_that_is_older_than_a_vm_is_read_again) {
  AddVm("web-a");
  cluster_.EditAnnotation("web-a", harvester::kNodesAnnotation,
                          harvester::ToAnnotation({.node_class = "web", .index = 1}));
  ASSERT_THAT(Configure(), IsOk());
  // Its index is 0, as of a list that was under way when another pool made the VM.
  Next("list nodes", Fault::Answer(200, "[]"));
  const auto status = Status();
  ASSERT_THAT(status, IsOk());
  EXPECT_TRUE(status->ready);
  EXPECT_EQ(Count("list nodes"), 2U);
  EXPECT_EQ(Count("list virtualmachines"), 1U);
}

TEST_F(ServiceTest, S3_a_status_is_two_lists_and_a_warning_of_its_policy_is_logged_once) {
  ASSERT_THAT(Configure(), IsOk());
  Settle();
  for (int i = 0; i < 2; ++i) {
    const auto status = Status();
    ASSERT_THAT(status, IsOk());
    EXPECT_TRUE(status->ready);
    EXPECT_THAT(Sent(), testing::UnorderedElementsAre("list virtualmachines", "list nodes"));
  }
  std::size_t warnings = 0;
  for (const std::string& line : Log()) warnings += line.find("user_data") != std::string::npos;
  EXPECT_EQ(warnings, 1U) << sink_->Text();
  values_["cpu_request"] = "many";
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cpu_request")));
}

TEST_F(ServiceTest, S3_a_template_that_cannot_work_is_an_error_of_status_and_of_scale) {
  values_["user_data"] = "{{vmname}}";
  values_["network_data"] = "- a list";
  values_["cpu_request"] = "0";
  ASSERT_THAT(Configure(), IsOk());
  Forget();
  const auto all = testing::AllOf(HasSubstr("cpu_request: "),
                                  HasSubstr("user_data: line 1, column 1: unknown variable"),
                                  HasSubstr("network_data: network data is not a mapping"));
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kInvalidArgument, all));
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kInvalidArgument, all));
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(ServiceTest, S3_each_change_of_a_policy_is_checked_anew) {
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Status(), IsOk());
  EXPECT_THAT(Status(), IsOk());
  values_["cpu_request"] = "0";
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kInvalidArgument));
  values_["cpu_request"] = "2";
  EXPECT_THAT(Status(), IsOk());
}

TEST_F(ServiceTest, S3_lists_are_read_one_after_the_other_only_while_both_systems_answer_at_once) {
  ASSERT_THAT(Configure(), IsOk());
  Settle();
  foreground_.Take();
  const auto helpers_of_status = [&] {
    EXPECT_THAT(Status(), IsOk());
    return foreground_.Take();
  };
  EXPECT_EQ(helpers_of_status(), 0) << "the last one took no time";
  Next("list nodes", Fault::Delay(milliseconds(21)));
  EXPECT_EQ(helpers_of_status(), 0);
  EXPECT_EQ(helpers_of_status(), 1) << "the last one took an instant too long";
  EXPECT_EQ(helpers_of_status(), 0);
}

TEST_F(ServiceTest, S3_a_nomad_that_begins_to_hang_hides_no_vm) {
  ASSERT_THAT(Configure(), IsOk());
  ASSERT_THAT(Scale(1), IsOk());
  Settle();
  Settle();
  Always("list nodes", Fault::Delay(std::chrono::hours(1)));
  const auto status = Status();
  ASSERT_THAT(status, IsOk());
  EXPECT_FALSE(status->ready);
  EXPECT_EQ(status->count, 1);
}

TEST_F(ServiceTest, S3_a_missing_template_file_is_one_warning_and_refuses_growth_alone) {
  values_.erase("user_data");
  values_["user_data_file"] = "/nowhere/at/all";
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Status(), IsOk());
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(
      Logged("WARN user_data_file: /nowhere/at/all cannot be found: the pool cannot grow until "
             "it exists"),
      1U);
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_THAT(base::Message(Scale(1)), HasSubstr("user_data_file: "));
}

TEST_F(ServiceTest, S3_a_failure_is_not_ready_with_the_last_count_and_one_line_per_change) {
  AddVm("web-a");
  ASSERT_THAT(Configure(), IsOk());
  Settle();
  Always("list virtualmachines", Refused());
  for (int i = 0; i < 2; ++i) {
    const auto status = Status();
    ASSERT_THAT(status, IsOk());
    EXPECT_FALSE(status->ready);
    EXPECT_EQ(status->count, 1);
    EXPECT_THAT(status->meta, IsEmpty());
  }
  EXPECT_EQ(Logged("WARN Not ready"), 1U);
  EXPECT_EQ(background_.pending(), 0U);
  Next("list virtualmachines", Fault::None());
  EXPECT_TRUE(Status()->ready);
  EXPECT_EQ(Logged("INFO Ready"), 1U);
}

TEST_F(ServiceTest, S3_a_reply_is_sent_before_the_deadline_of_whoever_waits_for_it) {
  ASSERT_THAT(Configure(), IsOk());
  cluster_.Refuse(
      {.resource = "virtualmachines", .kind = simulator::Refusal::kNone, .takes = minutes(1)});
  const auto taken = [&](const Context& context) {
    const base::MonoTime begun = clock_.Now();
    const auto status = service_->Status(context, values_);
    EXPECT_THAT(status, IsOk());
    EXPECT_FALSE(status->ready);
    return clock_.Now() - begun;
  };
  const Context caller = Context::Background(clock_);
  EXPECT_EQ(taken(caller), seconds(7) - milliseconds(250));
  EXPECT_EQ(taken(caller.WithTimeout(milliseconds(400))), milliseconds(300));
  values_["_nomad_autoscaler_grpc_timeout"] = "20s";
  EXPECT_EQ(taken(caller), seconds(20) - milliseconds(250));
}

TEST_F(ServiceTest, C15_a_status_goes_by_the_api_servers_clock_with_a_list_and_with_a_proof) {
  AddVm("web-a");
  AnnotateLease(harvester::kLeasePausedAnnotation,
                base::FormatRfc3339(clock_.WallNow() + std::chrono::hours(1)));
  process_clock_.set_ahead(std::chrono::hours(3));
  ASSERT_THAT(Configure(), IsOk());
  Settle();  // reads the Lease
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(Status()->ready) << "still paused, by a proof";
    cluster_.EditAnnotation("web-a", "note", std::to_string(i));
    EXPECT_FALSE(Status()->ready) << "still paused, by a list";
    EXPECT_FALSE(Status()->ready);
  }
  process_clock_.set_ahead(-std::chrono::hours(3));
  clock_.Advance(std::chrono::hours(1) + seconds(1));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Status()->ready);
}

TEST_F(ServiceTest, L7_the_vms_of_two_namespaces_are_proved_each_by_their_own_list) {
  AddVm("web-a");
  ASSERT_THAT(Configure(), IsOk());
  const auto lists = [this](const std::string& ns) {
    values_["namespace"] = ns;
    EXPECT_THAT(Status(), IsOk());
    return Count("list virtualmachines");
  };
  for (const char* ns : {"nomad", "other", "nomad", "other", "nomad"}) {
    EXPECT_EQ(lists(ns), 1U) << ns << ": a list at first, then a proof";
  }
}

TEST_F(ServiceTest, S5_the_first_status_of_a_process_queues_one_resumption_and_a_sweep) {
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Status(), IsOk());
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(background_.pending(), 1U);
  Forget();
  background_.RunAll();
  EXPECT_EQ(Count("list secrets"), 1U);
  EXPECT_FALSE(Wakes()) << "it was inspected";
}

TEST_F(ServiceTest, S4_the_first_status_of_a_process_reports_what_the_lease_remembers) {
  AddVm("web-a");
  const base::WallTime event = clock_.WallNow() - minutes(3);
  HoldLease();
  Store({.last_event = event});
  hold_->Release();
  ASSERT_THAT(Configure(), IsOk());
  auto status = Status();
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->meta.at("nomad_autoscaler.last_event"),
            std::to_string(event.time_since_epoch() / std::chrono::nanoseconds(1)));
  EXPECT_EQ(Count("get leases"), 1U);
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(Count("get leases"), 0U);
}

TEST_F(ServiceTest, S3_a_lease_that_cannot_be_read_does_not_make_the_first_status_unready) {
  AddVm("web-a");
  ASSERT_THAT(Configure(), IsOk());
  Next("get leases", Failed());
  auto status = Status();
  ASSERT_THAT(status, IsOk());
  EXPECT_TRUE(status->ready);
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(Count("get leases"), 1U) << "it is read with the next one";
}

TEST_F(ServiceTest, S5_a_queue_that_is_full_is_tried_again_by_the_next_status) {
  ASSERT_THAT(Configure(), IsOk());
  background_.set_refusal(absl::ResourceExhaustedError("full"));
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(background_.pending(), 0U);
  background_.set_refusal(absl::OkStatus());
  EXPECT_TRUE(Wakes());
}

TEST_F(ServiceTest, S5_a_status_wakes_every_pool_of_the_namespace_that_has_work) {
  AddUnjoined("web-a");
  AddUnjoined("web-b");
  nlohmann::json other = cluster_.Vm("web-b");
  other["metadata"]["labels"][harvester::kPoolLabel] = "other";
  cluster_.PutObject(other);
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(background_.pending(), 2U);
  background_.RunAll();
  EXPECT_NE(Annotation("web-a", harvester::kJoinedAtAnnotation), "");
  EXPECT_NE(Annotation("web-b", harvester::kJoinedAtAnnotation), "");
  EXPECT_FALSE(Wakes());
}

TEST_F(ServiceTest, L7_unfinished_work_comes_back_in_rounds_and_new_work_at_once) {
  AddVm("web-a");
  AddUnjoined("web-b");
  ASSERT_THAT(Configure(), IsOk());
  cluster_.Refuse({.verb = "patch", .resource = "virtualmachines", .name = "web-b"});
  EXPECT_TRUE(Wakes());
  EXPECT_FALSE(Wakes());
  clock_.Advance(seconds(59));
  EXPECT_FALSE(Wakes());
  clock_.Advance(seconds(2));
  EXPECT_TRUE(Wakes());
  EXPECT_FALSE(Wakes());
  Drain("web-a");
  EXPECT_TRUE(Wakes()) << "new work";
  const auto runs_in = [&](int duration) {
    int runs = 0;
    for (int i = 0; i < duration; ++i) {
      clock_.Advance(minutes(1));
      if (Wakes()) ++runs;
    }
    return runs;
  };
  runs_in(70);
  EXPECT_EQ(runs_in(60), 6) << "one in ten minutes";
}

TEST_F(ServiceTest, L10_what_a_pause_has_held_goes_on_when_status_sees_its_end) {
  AddVm("web-a");
  HoldLease({"web-a"});
  Idle("web-a");
  hold_->Release();
  AnnotateLease(harvester::kLeasePausedAnnotation, "true");
  ASSERT_THAT(Configure(), IsOk());
  while (Wakes()) {  // reads the Lease, and then waits for its round
  }
  EXPECT_FALSE(cluster_.Vm("web-a").is_null());
  AnnotateLease(harvester::kLeasePausedAnnotation, "false");
  EXPECT_TRUE(Wakes()) << "new work";
  EXPECT_TRUE(cluster_.Vm("web-a").is_null());
}

TEST_F(ServiceTest, I1_the_node_of_a_vm_of_another_namespace_wakes_no_pool_of_ours) {
  AddVm("web-a");
  cluster_.OperatorDrain(NodeOf("web-a"), minutes(15),
                         nodepool::ToMeta({.action = "act",
                                           .vm = "batch-a",
                                           .vm_uid = "gone",
                                           .pool = "n/long-batch",
                                           .purge = true}));
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(background_.pending(), 1U) << "the first look of our own pool";
  background_.RunAll();
  EXPECT_EQ(cluster_.Leases().size(), 1U);
}

TEST_F(ServiceTest, C11_background_work_that_waits_for_the_lease_comes_back_in_rounds) {
  ASSERT_THAT(Configure(), IsOk());
  HoldLease();  // another process
  EXPECT_TRUE(Wakes());
  EXPECT_EQ(Count("list secrets"), 0U);
  EXPECT_FALSE(Wakes());
  hold_->Release();
  clock_.Advance(seconds(61));
  EXPECT_TRUE(Wakes());
  EXPECT_EQ(Count("list secrets"), 1U);
}

TEST_F(ServiceTest, C11_what_was_read_beside_a_Lease_that_another_process_has_held_is_read_again) {
  ASSERT_THAT(Configure(), IsOk());
  const auto lists = [this] {
    EXPECT_THAT(Scale(0), IsOk());
    return Count("list nodes");
  };
  lists();
  EXPECT_EQ(lists(), 1U) << "nobody has held it since";
  HoldLease();  // another process
  hold_->Release();
  EXPECT_EQ(lists(), 2U);
  EXPECT_EQ(lists(), 1U);
}

TEST_F(ServiceTest, C11_a_Lease_that_another_process_holds_costs_no_reads_besides) {
  ASSERT_THAT(Configure(), IsOk());
  HoldLease();  // another process
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(Sent(), (Strings{"get leases"}));
}

TEST_F(ServiceTest, C2_what_a_growth_is_made_of_is_read_beside_a_Lease_that_was_never_read) {
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Scale(1), IsOk());
  const Strings sent = Sent();
  const auto first = [&](const char* request) {
    return std::find(sent.begin(), sent.end(), request);
  };
  EXPECT_LT(first("list virtualmachineimages"), first("create leases"));
  EXPECT_EQ(std::count(sent.begin(), sent.end(), "list virtualmachineimages"), 1);
}

TEST_F(ServiceTest, C11_a_growth_that_finds_the_Lease_held_ends_what_is_read_beside_it) {
  ASSERT_THAT(Configure(), IsOk());
  HoldLease();  // another process
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kAborted));
    EXPECT_EQ(Sent(), (Strings{"get leases"}));
  }
}

TEST_F(ServiceTest, L1_an_image_that_does_not_answer_delays_no_scale_that_makes_nothing) {
  AddVm("web-a");
  ASSERT_THAT(Configure(), IsOk());
  for (const char* read : {"list virtualmachineimages", "get virtualmachineimages"}) {
    Always(read, Fault::Delay(std::chrono::hours(1)));
  }
  const base::MonoTime began = clock_.Now();
  EXPECT_THAT(Scale(1), IsOk()) << "as many as there are";
  EXPECT_LE(clock_.Now() - began, seconds(3));
  EXPECT_EQ(Count("list virtualmachineimages"), 1U) << "not asked again";
}

TEST_F(ServiceTest, C2_a_growth_that_waits_for_its_Lease_reads_what_it_is_made_of_after_the_wait) {
  ASSERT_THAT(Configure(), IsOk());
  HoldLease();  // another process, which is killed
  hold_.reset();
  clock_.Advance(seconds(10));
  EXPECT_THAT(Scale(1), IsOk()) << "after the wait of one that has stopped renewing";
  const Strings sent = Sent();
  const auto last_look = std::find(sent.rbegin(), sent.rend(), "get leases");
  EXPECT_EQ(std::count(sent.rbegin(), last_look, "list virtualmachineimages"), 1);
  EXPECT_EQ(std::count(last_look, sent.rend(), "list virtualmachineimages"), 0);
}

TEST_F(ServiceTest, C2_sources_that_came_before_the_wait_for_the_Lease_are_read_again_after_it) {
  ASSERT_THAT(Configure(), IsOk());
  HoldLease();  // another process, which is killed
  hold_.reset();
  clock_.Advance(seconds(10));
  foreground_.Hold();
  std::size_t before = 0;
  std::size_t beside_rights = 0;
  After("get leases", [&] {  // its answer is slower than the images'
    foreground_.RunHeld();
    before = Count("list virtualmachineimages");
  });
  After("ask selfsubjectrulesreviews", [&] {
    foreground_.RunHeld();
    beside_rights = Count("list virtualmachineimages");
  });
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(before, 1U);
  EXPECT_EQ(beside_rights, 2U) << "ahead, as everything else";
  EXPECT_EQ(Count("list virtualmachineimages"), 2U);
}

TEST_F(ServiceTest,
       C11_a_growth_of_a_pool_that_is_known_to_be_held_reads_nothing_beside_the_Lease) {
  ASSERT_THAT(Configure(), IsOk());
  HoldLease();  // another process
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kAborted));
  foreground_.Hold();
  After("get leases", [&] { foreground_.RunHeld(); });
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(Sent(), (Strings{"get leases"}));
}

TEST_F(ServiceTest, L1_an_image_that_did_not_answer_beside_the_Lease_is_read_again_for_the_growth) {
  ASSERT_THAT(Configure(), IsOk());
  Next("list virtualmachineimages", Fault::Delay(std::chrono::hours(1)));
  Next("get virtualmachineimages", Fault::Delay(std::chrono::hours(1)));
  EXPECT_THAT(Scale(1), IsOk());
}

TEST_F(ServiceTest, C11_a_Lease_that_was_free_and_is_taken_ends_what_is_read_beside_it) {
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Scale(0), IsOk());
  HoldLease();  // another process
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(Sent(), (Strings{"get leases"})) << "besides the attempt to take it";
}

TEST_F(ServiceTest, C2_the_rights_for_a_change_are_asked_while_the_lease_is_acquired) {
  AddVm("web-a");
  ASSERT_THAT(Configure(), IsOk());
  Settle();
  EXPECT_THAT(Scale(2), IsOk());
  const Strings sent = Sent();
  EXPECT_LT(std::find(sent.begin(), sent.end(), "ask selfsubjectrulesreviews"),
            std::find(sent.begin(), sent.end(), "create secrets"));
  EXPECT_EQ(std::count(sent.begin(), sent.end(), "ask selfsubjectrulesreviews"), 1);
}

TEST_F(ServiceTest,
       S3_a_status_of_vms_that_changed_reads_them_and_the_next_one_may_not_try_a_proof) {
  ASSERT_THAT(Configure(), IsOk());
  AddVm("web-a");
  Settle();
  Settle();
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(Count("list virtualmachines"), 1U);
  EXPECT_EQ(Count("list nodes"), 1U);
  cluster_.EditAnnotation("web-a", "note", "changed");
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(Count("list virtualmachines"), 2U) << "the proof, and the list";
  EXPECT_EQ(Count("list nodes"), 1U);
}

TEST_F(ServiceTest, C10_a_scale_that_left_something_wakes_the_background_and_others_do_not) {
  ASSERT_THAT(Configure(), IsOk());
  Settle();
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_FALSE(Wakes());
  Always("patch secrets", Refused());
  EXPECT_THAT(Scale(2), IsOk());
  Next("patch secrets", Fault::None());
  clock_.Advance(seconds(10));
  EXPECT_TRUE(Wakes());
  for (const nlohmann::json& secret : cluster_.Secrets()) {
    EXPECT_TRUE(secret["metadata"].contains("ownerReferences"));
  }
  EXPECT_FALSE(Wakes());
}

TEST_F(ServiceTest, C11_while_a_scale_is_open_another_is_aborted_and_status_waits_for_nothing) {
  ASSERT_THAT(Configure(), IsOk());
  Settle();
  After("create secrets", [&] {
    EXPECT_THAT(Scale(2), StatusIs(absl::StatusCode::kAborted));
    const auto status = Status();
    ASSERT_THAT(status, IsOk());
    EXPECT_FALSE(status->ready);
    EXPECT_EQ(background_.pending(), 0U);
  });
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(Logged("INFO Not ready"), 1U) << "the agent knows of its Scale";
}

TEST_F(ServiceTest, C11_a_scale_that_loses_its_lease_is_unavailable_and_says_so) {
  ASSERT_THAT(Configure(), IsOk());
  cluster_.NeverJoin(1);
  After("create virtualmachines", [&] {
    nlohmann::json lease = cluster_.Leases().at(0);
    lease["spec"]["holderIdentity"] = "other";
    cluster_.PutObject(lease);
  });
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Lease was lost")));
  EXPECT_EQ(cluster_.Leases().at(0)["spec"]["holderIdentity"], "other");
}

TEST_F(ServiceTest, S4_a_scale_that_is_open_keeps_its_clients_when_the_agent_reloads) {
  ASSERT_THAT(Configure(), IsOk());
  After("create virtualmachines", [&] {
    client_name_ = "reloaded";
    EXPECT_THAT(Configure(), IsOk());
  });
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_THAT(Senders(), ElementsAre("plugin"));
  const auto status = Status();
  ASSERT_THAT(status, IsOk());
  EXPECT_THAT(Senders(), ElementsAre("reloaded"));
  EXPECT_TRUE(status->meta.contains("nomad_autoscaler.last_event")) << "the pool is the same";
}

TEST_F(ServiceTest, C7_the_own_node_is_asked_for_until_it_is_known_and_then_protected) {
  AddVm("web-a");
  RunAsAllocation();
  Next("get allocation", RefusedByNomad(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("own node")));
    EXPECT_EQ(Count("get allocation"), 1U);
    EXPECT_FALSE(IsMarked("web-a"));
  }
  std::size_t warnings = 0;
  for (const std::string& line : Log()) warnings += line.find("WARN the autoscaler's own") == 0;
  EXPECT_EQ(warnings, 1U);
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(Count("get allocation"), 1U);
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(Count("get allocation"), 0U) << "it is known";
}

TEST_F(ServiceTest, C7_an_allocation_of_another_cluster_is_asked_for_at_each_scale) {
  AddVm("web-a");
  allocation_ = "0d6b4f0e-0000-4000-8000-00000000a110";
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(Count("get allocation"), 1U);
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_EQ(Count("get allocation"), 1U);
}

TEST_F(ServiceTest, T1_a_refusal_is_a_warning_once_per_change) {
  ASSERT_THAT(Configure(), IsOk());
  cluster_.SetImageReady("default/ubuntu-24.04", false);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Scale(1).ok());
  EXPECT_EQ(Logged("WARN Scale refused"), 1U);
  EXPECT_EQ(Logged("INFO Scale refused"), 2U);
  EXPECT_FALSE(Scale(1, R"({"nomad_policy_id": 7, )").ok()) << "its meta cannot be read";
  EXPECT_EQ(Logged("WARN Scale refused"), 2U);
  EXPECT_THAT(Scale(-2), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("negative")));
  EXPECT_EQ(Logged("WARN Scale refused"), 3U);
}

TEST_F(ServiceTest, C13_a_dry_run_reads_the_lease_anew_and_writes_nothing) {
  AddVm("web-a");
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Scale(-1), IsOk());
  EXPECT_THAT(Sent(), IsEmpty()) << "there is no count to plan for";
  const std::string meta =
      R"({"nomad_autoscaler.dry_run": true, "nomad_autoscaler.dry_run.count": 3})";
  EXPECT_THAT(Scale(-1, meta), IsOk());
  EXPECT_THAT(Sent(), ElementsAre("get leases", "list nodes", "list virtualmachines",
                                  "list virtualmachineinstances"));
  EXPECT_THAT(sink_->Text(), HasSubstr("scale out 1 → 3"));
  values_["dry-run"] = "true";
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_THAT(Effects(), IsEmpty());
  Next("get leases", Failed());
  EXPECT_FALSE(Scale(0).ok());
}

TEST_F(ServiceTest, L9_a_stop_ends_an_open_scale_releases_its_lease_and_refuses_what_comes) {
  ASSERT_THAT(Configure(), IsOk());
  After("create secrets", [&] { Stop(); });
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(Count("create virtualmachines"), 0U);
  EXPECT_EQ(cluster_.Leases().at(0)["spec"]["holderIdentity"], "");
  Stop();
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(ServiceTest, P1_a_status_that_the_end_of_the_process_cuts_short_is_cancelled_and_no_reason) {
  ASSERT_THAT(Configure(), IsOk());
  Next("list virtualmachines", Refused());
  After("list nodes", [&] { Stop(); });
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(Logged("WARN Not ready"), 0U);
}

TEST_F(ServiceTest, P1_background_work_that_outlives_its_service_in_the_queue_does_nothing) {
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Status(), IsOk());
  service_.reset();
  Forget();
  EXPECT_EQ(background_.RunAll(), 1U);
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST(Rounds, L7_a_trouble_that_nobody_has_looked_at_for_long_begins_at_the_first_pace) {
  Rounds rounds;
  base::MonoTime now{std::chrono::hours(1)};
  for (int i = 0; i < 90; ++i) {
    if (rounds.MayBegin("work", now)) rounds.Unfinished("work", now);
    now += minutes(1);
  }
  EXPECT_FALSE(rounds.MayBegin("work", now)) << "one in ten minutes by now";
  now += minutes(30);
  ASSERT_TRUE(rounds.MayBegin("work", now));
  rounds.Unfinished("work", now);
  EXPECT_FALSE(rounds.MayBegin("work", now + seconds(59)));
  EXPECT_TRUE(rounds.MayBegin("work", now + minutes(1)));
}

}  // namespace
}  // namespace nomad_harvester::scaling
