// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/service.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "nomad_harvester/metrics/registry.h"

#include "drivers/session.h"
#include "pool_fixture.h"
#include "support/forwarding_clock.h"
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
class ProcessClock final : public support::ForwardingClock {
 public:
  using ForwardingClock::ForwardingClock;
  base::WallTime WallNow() const override { return ForwardingClock::WallNow() + ahead_; }
  void set_ahead(base::Duration ahead) { ahead_ = ahead; }

 private:
  base::Duration ahead_{};
};

// Runs each task at once, and counts them.
class CountingExecutor final : public runtime::Executor {
 public:
  absl::Status Submit(std::function<void()> task) override {
    ++submitted_;
    task();
    return absl::OkStatus();
  }
  int Take() { return std::exchange(submitted_, 0); }

 private:
  int submitted_ = 0;
};

class UnconfiguredService : public PoolFixture {
 protected:
  UnconfiguredService() { Start({}); }

  // A process with this environment.
  void Start(const StringMap& environment) {
    ServiceOptions options;
    options.clock = &process_clock_;
    options.random = random_;
    options.logger = log::Logger(sink_, log::Level::kInfo);
    options.environment = environment;
    options.transports =
        [this](const config::PluginConfig&) -> absl::StatusOr<http::RawTransports> {
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
  void MoveToPool(const std::string& vm, const std::string& pool) {
    nlohmann::json moved = cluster_.Vm(vm);
    moved["metadata"]["labels"][harvester::kPoolLabel] = pool;
    cluster_.PutObject(moved);
  }
  // A VM of the pool, web-a, and one of another pool of its namespace, web-b.
  void AddForeignVm() {
    AddVm("web-a");
    AddVm("web-b");
    MoveToPool("web-b", "other");
  }
  // The pool's VMs, which the token may not delete.
  void ForbidRemovalOf(const Strings& vms) {
    for (const std::string& vm : vms) AddVm(vm);
    Settle();
    cluster_.Forbid("delete", "virtualmachines");
  }
  std::shared_ptr<metrics::Registry> WithMetrics() {
    auto registry = metrics::MakeRegistry({.version = "1.2.3", .commit = "abc"});
    metrics_ = registry;
    EXPECT_THAT(Configure(), IsOk());
    return registry;
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
  // The removal of the only VM has begun, and its Scale did not wait for it.
  void BeginRemoval() {
    AddVm("web-a");
    Settle();
    EXPECT_THAT(Scale(0), IsOk());
  }
  // The same, and the background cannot finish it.
  void LeaveRemoval() {
    BeginRemoval();
    Always("delete virtualmachines", Failed());
    background_.RunAll();
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
    Start({{"NOMAD_ALLOC_ID", base::GetString(cluster_.Allocations().at(0), "ID")}});
    ASSERT_THAT(Configure(), IsOk());
  }

  ProcessClock process_clock_{clock_};
  StringMap values_ = PolicyValues();
  std::string client_name_ = "plugin";
  absl::Status transports_;
  std::optional<log::Level> level_;
  std::shared_ptr<metrics::Sink> metrics_;
  CountingExecutor foreground_;
  support::ManualExecutor background_;
  std::unique_ptr<TargetService> service_;
};

class ServiceTest : public UnconfiguredService {
 protected:
  void SetUp() override { ASSERT_THAT(Configure(), IsOk()); }
};

TEST_F(UnconfiguredService, S3_before_its_configuration_every_call_is_refused_without_a_request) {
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("SetConfig")));
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("SetConfig")));
  EXPECT_THAT(Configure({{"no_such_key", "1"}}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(Status().ok());
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(UnconfiguredService, P2_a_configuration_that_is_refused_leaves_the_earlier_one) {
  ASSERT_THAT(Configure({{"log_level", "debug"}}), IsOk());
  EXPECT_EQ(level_, log::Level::kDebug);
  transports_ = base::InvalidArgument("no certificate");
  EXPECT_THAT(Configure({{"log_level", "error"}}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(level_, log::Level::kDebug);
  EXPECT_THAT(Status(), IsOk());
}

TEST_F(ServiceTest, T2_a_configuration_that_is_refused_is_an_error_of_its_class) {
  const auto registry = WithMetrics();
  EXPECT_FALSE(Configure({{"request_timeout", "0s"}}).ok());
  EXPECT_THAT(registry->Text(), HasSubstr("errors_total{class=\"config\"} 1"));
}

TEST_F(ServiceTest, C15_a_pool_of_another_nomad_cluster_is_not_ready_and_not_touched) {
  AddVm("web-a");
  AddVm("web-b");
  Mark("web-a");
  cluster_.RestoreNomad(/*agents_return=*/false);
  cluster_.SetNomadKeys({"another"});
  for (const char* vm : {"web-a", "web-b"}) {
    cluster_.EditAnnotation(vm, harvester::kNodesAnnotation,
                            harvester::ToAnnotation({.node_class = "web", .index = 0}));
  }
  for (int i = 0; i < 3; ++i) {
    const auto status = Status();
    ASSERT_THAT(status, IsOk());
    EXPECT_FALSE(status->ready);
    clock_.Advance(minutes(20));
  }
  EXPECT_EQ(Logged("WARN Not ready"), 1U);
  EXPECT_THAT(sink_->Text(), HasSubstr("nomad-harvester adopt"));
  for (const std::int64_t count : {0, 1, 5}) {
    EXPECT_THAT(Scale(count), StatusIs(absl::StatusCode::kUnavailable,
                                       HasSubstr("belong to another Nomad cluster")));
  }
  EXPECT_EQ(Count("delete virtualmachines"), 0U);
  EXPECT_EQ(Count("create virtualmachines"), 0U);
  EXPECT_TRUE(IsMarked("web-a"));
}

TEST_F(ServiceTest, C15_not_even_the_lease_of_a_pool_of_another_nomad_cluster_is_taken) {
  AddVm("web-a");
  cluster_.SetNomadKeys({"another"});
  const int effects = cluster_.EffectCount();
  EXPECT_FALSE(Wakes()) << "its first Status looks for what was left";
  EXPECT_EQ(cluster_.EffectCount(), effects);
  cluster_.SetNomadKeys({simulator::kFirstNomadKey});
  EXPECT_TRUE(Wakes());
}

TEST_F(ServiceTest, C15_a_new_key_of_the_cluster_is_recorded_once_and_is_no_event) {
  AddVm("web-a");
  Settle();
  const auto before = Status();
  cluster_.SetNomadKeys({simulator::kFirstNomadKey, "new"});
  clock_.Advance(minutes(11));
  Settle();
  EXPECT_EQ(Annotation("web-a", harvester::kNomadClusterAnnotation),
            std::string(simulator::kFirstNomadKey) + ",new");
  EXPECT_EQ(Count("patch virtualmachines"), 1U);
  const int effects = cluster_.EffectCount();
  cluster_.SetNomadKeys({"new"});
  clock_.Advance(minutes(11));
  Settle();
  const auto after = Status();
  ASSERT_THAT(after, IsOk());
  EXPECT_TRUE(after->ready);
  EXPECT_EQ(cluster_.EffectCount(), effects) << "the record has a key of the cluster";
  EXPECT_EQ(after->meta, before->meta);
}

TEST_F(ServiceTest, C15_new_keys_are_recorded_in_a_vm_without_a_node_by_a_key_that_both_have) {
  AddVm("web-a");
  AddVm("web-b");
  Settle();
  const std::string node = NodeOf("web-a");
  cluster_.StopVm("web-a");
  clock_.Advance(minutes(30));
  cluster_.PurgeNode(node);
  const std::vector<std::vector<std::string>> rotations = {{simulator::kFirstNomadKey, "second"},
                                                           {"second", "third"}};
  for (const std::vector<std::string>& keys : rotations) {
    cluster_.SetNomadKeys(keys);
    clock_.Advance(minutes(6));
    Settle();
  }
  EXPECT_EQ(Annotation("web-a", harvester::kNomadClusterAnnotation), "second,third");
  EXPECT_THAT(Scale(3), IsOk());
}

TEST_F(ServiceTest, C15_one_vm_of_another_cluster_is_left_alone_and_holds_up_no_pool) {
  for (const char* vm : {"web-a", "web-b", "web-c"}) AddVm(vm);
  cluster_.EditAnnotation("web-a", harvester::kNomadClusterAnnotation, "elsewhere");
  Mark("web-a");
  Settle();
  const auto status = Status();
  ASSERT_THAT(status, IsOk());
  EXPECT_TRUE(status->ready);
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_TRUE(IsMarked("web-a"));
}

TEST_F(ServiceTest, C15_vms_of_another_region_with_its_keys_hold_up_nothing) {
  AddVm("web-a");
  cluster_.EditAnnotation(
      "web-a", harvester::kNodesAnnotation,
      harvester::ToAnnotation({.region = "eu", .node_class = "web", .index = 0}));
  cluster_.EditAnnotation("web-a", harvester::kNomadClusterAnnotation, "key-of-eu");
  ASSERT_THAT(Configure({{"nomad_region", "global"}}), IsOk());
  Settle();
  EXPECT_TRUE(Status()->ready);
  EXPECT_THAT(Scale(2), IsOk());
}

TEST_F(ServiceTest, C15_a_new_vm_has_the_keys_of_the_nomad_that_answers_now) {
  Settle();
  cluster_.RestoreNomad(/*agents_return=*/false);
  cluster_.SetNomadKeys({"rebuilt"});
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("looks again")));
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(
      Annotation(cluster_.Vms().at(0)["metadata"]["name"], harvester::kNomadClusterAnnotation),
      "rebuilt");
}

TEST_F(ServiceTest, C15_a_pool_that_was_adopted_is_ready_at_the_next_status) {
  AddVm("web-a");
  Settle();
  cluster_.SetNomadKeys({"rebuilt"});
  cluster_.EditAnnotation("web-a", harvester::kNomadClusterAnnotation, "rebuilt");
  EXPECT_TRUE(Status()->ready);
}

TEST_F(ServiceTest, C15_a_nomad_whose_keys_nobody_can_read_is_used_by_vms_without_a_record) {
  AddVm("web-a");
  cluster_.EditAnnotation("web-a", harvester::kNomadClusterAnnotation, std::nullopt);
  for (const Fault& fault :
       {Fault::Answer(401, "who"), Fault::Answer(410, "gone"), Fault::Answer(302, ""),
        Fault::Answer(200, "<html>index</html>"), Fault::Answer(503, "no backend")}) {
    Always("get jwks.json", fault);
    clock_.Advance(minutes(6));
    const auto status = Status();
    ASSERT_THAT(status, IsOk());
    EXPECT_TRUE(status->ready) << fault.status;
  }
}

TEST_F(ServiceTest, C15_a_scale_records_the_cluster_on_the_lease_in_the_write_of_its_action) {
  Settle();
  nlohmann::json intent;
  After("create secrets", [&] { intent = Body("patch leases")["metadata"]["annotations"]; });
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_TRUE(intent[harvester::kLeaseActionAnnotation].is_string()) << intent;
  EXPECT_EQ(intent[harvester::kNomadClusterAnnotation], simulator::kFirstNomadKey);
  EXPECT_EQ(LeaseAnnotation(harvester::kNomadClusterAnnotation), simulator::kFirstNomadKey);
}

TEST_F(ServiceTest, C15_an_empty_pool_whose_lease_names_another_cluster_is_not_ready) {
  AnnotateLease(harvester::kNomadClusterAnnotation, "elsewhere");
  EXPECT_FALSE(Status()->ready);
  EXPECT_THAT(sink_->Text(), HasSubstr("by its Lease the pool belongs to another Nomad cluster"));
  EXPECT_THAT(sink_->Text(), HasSubstr("nomad-harvester adopt"));
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("by its Lease")));
  EXPECT_EQ(Count("create virtualmachines"), 0U);
  EXPECT_EQ(LeaseAnnotation(harvester::kNomadClusterAnnotation), "elsewhere");
  AnnotateLease(harvester::kNomadClusterAnnotation, simulator::kFirstNomadKey);
  EXPECT_TRUE(Status()->ready) << "it was adopted, and this process reads the Lease again";
  EXPECT_THAT(Scale(1), IsOk());
}

TEST_F(ServiceTest, C15_vms_that_have_a_record_decide_whatever_the_lease_names) {
  AddVm("web-a");
  AnnotateLease(harvester::kNomadClusterAnnotation, "elsewhere");
  Settle();
  EXPECT_TRUE(Status()->ready);
  EXPECT_EQ(Count("get leases"), 0U) << "nothing depends on it";
  EXPECT_EQ(Count("get jwks.json"), 0U);
  EXPECT_THAT(Scale(2), IsOk());
  EXPECT_EQ(LeaseAnnotation(harvester::kNomadClusterAnnotation), simulator::kFirstNomadKey);
}

TEST_F(ServiceTest, C15_a_marked_vm_without_a_record_stays_while_the_lease_names_another_cluster) {
  AddVm("web-a");
  cluster_.EditAnnotation("web-a", harvester::kNomadClusterAnnotation, std::nullopt);
  Mark("web-a");
  const std::string node = NodeOf("web-a");
  cluster_.StopVm("web-a");
  clock_.Advance(minutes(1));
  cluster_.PurgeNode(node);
  AnnotateLease(harvester::kLeaseActionAnnotation,
                harvester::ToAnnotation(harvester::LeaseAction{.id = "act", .names = {"web-a"}}));
  AnnotateLease(harvester::kNomadClusterAnnotation, "elsewhere");
  for (int i = 0; i < 30; ++i) {
    Settle();
    clock_.Advance(minutes(1));
  }
  EXPECT_TRUE(IsMarked("web-a"));
  AnnotateLease(harvester::kNomadClusterAnnotation, simulator::kFirstNomadKey);
  for (int i = 0; i < 12; ++i) {
    Settle();
    clock_.Advance(minutes(1));
  }
  EXPECT_THAT(cluster_.Vms(), IsEmpty()) << "its node is gone from its own Nomad";
}

TEST_F(ServiceTest, C15_new_keys_are_recorded_on_the_lease_of_an_empty_pool_once) {
  AnnotateLease(harvester::kNomadClusterAnnotation, simulator::kFirstNomadKey);
  Settle();
  const std::vector<std::vector<std::string>> rotations = {{simulator::kFirstNomadKey, "second"},
                                                           {"second", "third"}};
  for (const std::vector<std::string>& keys : rotations) {
    cluster_.SetNomadKeys(keys);
    clock_.Advance(minutes(6));
    Settle();
  }
  EXPECT_EQ(LeaseAnnotation(harvester::kNomadClusterAnnotation), "second,third");
  const int effects = cluster_.EffectCount();
  cluster_.SetNomadKeys({"third"});
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(minutes(6));
    EXPECT_FALSE(Wakes()) << "the record has every key of the cluster";
  }
  EXPECT_EQ(cluster_.EffectCount(), effects);
  EXPECT_TRUE(Status()->ready);
}

TEST_F(ServiceTest, C15_a_nomad_that_tells_no_keys_is_not_the_one_on_the_lease) {
  Always("get jwks.json", Fault::Answer(404, "not found"));
  Settle();
  EXPECT_THAT(Scale(1), IsOk()) << "without a record on the Lease";
  EXPECT_EQ(LeaseAnnotation(harvester::kNomadClusterAnnotation), "");
  EXPECT_THAT(Scale(0), IsOk());
  AnnotateLease(harvester::kNomadClusterAnnotation, simulator::kFirstNomadKey);
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_FALSE(Status()->ready);
  EXPECT_THAT(sink_->Text(), HasSubstr("let /.well-known/jwks.json through"));
}

TEST_F(ServiceTest,
       C15_nomad_cannot_be_read_for_an_empty_pool_with_a_record_while_its_keys_cannot) {
  AnnotateLease(harvester::kNomadClusterAnnotation, simulator::kFirstNomadKey);
  Always("get jwks.json", Fault::Answer(500, "No cluster leader"));
  EXPECT_FALSE(Status()->ready);
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("Nomad cannot be read: read the ids of Nomad's keys")));
}

constexpr char kUnclaimedLine[] =
    "WARN A removal is unfinished in a pool for which this agent has no policy: unless another "
    "agent has one, finish it with nomad-harvester gc";

TEST_F(ServiceTest, S5_a_removal_of_another_nomads_agent_is_not_reported) {
  AddForeignVm();
  cluster_.EditAnnotation("web-b", harvester::kNomadClusterAnnotation, "elsewhere");
  Mark("web-b");
  Settle();
  clock_.Advance(minutes(11));
  Settle();
  EXPECT_EQ(Logged(kUnclaimedLine), 0U);
}

TEST_F(ServiceTest, S5_a_policy_that_a_reload_removed_leaves_its_removal_to_be_reported) {
  AddForeignVm();
  values_["node_group_name"] = "other";
  Settle();
  values_["node_group_name"] = "web";
  Mark("web-b");
  for (int i = 0; i < 45; ++i) {
    clock_.Advance(minutes(1));
    Settle();
  }
  EXPECT_TRUE(IsMarked("web-b"));
  EXPECT_EQ(Logged(kUnclaimedLine), 1U);
}

TEST_F(ServiceTest, C15_a_scale_after_a_long_mass_loss_lets_the_background_end_its_removals) {
  for (const char* vm : {"web-a", "web-b", "web-c", "web-d", "web-e"}) AddVm(vm);
  Settle();
  for (const char* vm : {"web-a", "web-b"}) {
    cluster_.KillNode(NodeOf(vm));
    cluster_.EditAnnotation(vm, harvester::kProtectAnnotation, "true");
  }
  for (int i = 0; i < 12; ++i) {
    clock_.Advance(minutes(1));
    Settle();
  }
  EXPECT_THAT(Scale(4), IsOk());
  background_.RunAll();
  EXPECT_EQ(cluster_.Vms().size(), 4U);
}

TEST_F(ServiceTest, S5_a_scale_is_continued_without_a_status) {
  BeginRemoval();
  EXPECT_TRUE(IsMarked("web-a"));
  clock_.Advance(minutes(2));
  background_.RunAll();
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
}

TEST_F(ServiceTest, S5_work_that_could_not_be_finished_is_tried_again_without_a_status) {
  BeginRemoval();
  Always("delete virtualmachines", Failed());
  EXPECT_EQ(background_.RunAll(), 1U);
  EXPECT_EQ(cluster_.Vms().size(), 1U);
  Next("delete virtualmachines", Fault::None());
  clock_.Advance(seconds(59));
  EXPECT_EQ(background_.pending(), 0U);
  clock_.Advance(seconds(1));
  EXPECT_EQ(background_.RunAll(), 1U);
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
  clock_.Advance(minutes(60));
  EXPECT_EQ(background_.pending(), 0U) << "nothing is left to do";
}

TEST_F(ServiceTest, L7_a_settled_pool_is_never_woken) {
  AddVm("web-a");
  Settle();
  EXPECT_THAT(Scale(2), IsOk());
  Settle();
  clock_.Advance(minutes(1));  // the new VM joins
  Settle();
  Forget();
  clock_.Advance(minutes(120));
  EXPECT_EQ(background_.pending(), 0U);
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(ServiceTest, S5_half_an_hour_after_the_last_call_about_a_pool_nothing_is_tried_any_more) {
  AddVm("web-a");
  Settle();
  Always("delete virtualmachines", Failed());
  EXPECT_THAT(Scale(0), IsOk());
  std::size_t runs = 0;
  for (int i = 0; i < 30; ++i) {
    runs += background_.RunAll();
    clock_.Advance(minutes(1));
  }
  EXPECT_GT(runs, 5U);
  EXPECT_LE(runs, 30U);
  background_.RunAll();
  Forget();
  clock_.Advance(minutes(120));
  EXPECT_EQ(background_.RunAll(), 0U);
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_TRUE(Wakes()) << "a policy speaks of it again";
}

TEST_F(ServiceTest, S5_what_a_success_leaves_is_continued_without_a_status) {
  AddVm("web-a");
  cluster_.KeepClaims(true);
  Settle();
  Always("delete persistentvolumeclaims", Refused());
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_FALSE(cluster_.Claims().empty());
  Next("delete persistentvolumeclaims", Fault::None());
  for (int i = 0; i < 3; ++i) {
    background_.RunAll();
    clock_.Advance(minutes(2));
  }
  EXPECT_THAT(cluster_.Claims(), IsEmpty());
}

TEST_F(ServiceTest, C15_a_pool_of_another_nomad_cluster_does_not_wake_itself) {
  LeaveRemoval();
  cluster_.EditAnnotation("web-a", harvester::kNomadClusterAnnotation, "elsewhere");
  EXPECT_FALSE(Status()->ready);
  clock_.Advance(minutes(10));
  EXPECT_EQ(background_.pending(), 0U) << "its Lease is another agent's";
}

TEST_F(ServiceTest, L10_a_paused_pool_does_not_wake_itself) {
  BeginRemoval();
  AnnotateLease(harvester::kLeasePausedAnnotation, "true");
  background_.RunAll();
  clock_.Advance(minutes(20));
  EXPECT_EQ(background_.pending(), 0U);
  EXPECT_EQ(cluster_.Vms().size(), 1U);
}

TEST_F(ServiceTest, S5_work_is_tried_again_with_the_configuration_of_that_time) {
  LeaveRemoval();
  Next("delete virtualmachines", Fault::None());
  client_name_ = "renewed";
  ASSERT_THAT(Configure(), IsOk());
  Forget();
  clock_.Advance(minutes(1));
  background_.RunAll();
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
  EXPECT_THAT(Senders(), ElementsAre("renewed"));
}

TEST_F(ServiceTest, S5_work_that_an_earlier_call_has_queued_is_done_with_the_new_configuration) {
  BeginRemoval();
  ASSERT_EQ(background_.pending(), 1U);
  client_name_ = "renewed";
  ASSERT_THAT(Configure(), IsOk());
  Forget();
  background_.RunAll();
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
  EXPECT_THAT(Senders(), ElementsAre("renewed"));
}

TEST_F(ServiceTest, C4_the_uid_of_the_namespace_is_read_anew_after_another_configuration) {
  for (const bool configures : {false, true}) {
    BeginRemoval();
    if (configures) {
      EXPECT_THAT(Configure(), IsOk());
    }
    Forget();
    background_.RunAll();
    EXPECT_EQ(Count("get namespaces"), configures ? 1U : 0U);
  }
}

TEST(PolicyValues, L11_two_policies_that_take_turns_leave_the_background_a_minute) {
  PolicyValues seen;
  const StringMap one = {{"max_surge", "1"}};
  const StringMap other = {{"max_surge", "2"}};
  const auto changes_at = [&](int second, const StringMap& values) {
    return seen.Changes(values, base::MonoTime{} + minutes(5) + seconds(second));
  };
  EXPECT_TRUE(changes_at(0, one));
  EXPECT_FALSE(changes_at(1, one));
  EXPECT_TRUE(changes_at(10, other)) << "an operator's change counts at once";
  for (const int second : {20, 40, 60}) {
    EXPECT_FALSE(changes_at(second, one));
    EXPECT_FALSE(changes_at(second + 5, other));
  }
  EXPECT_TRUE(changes_at(71, other));
  EXPECT_FALSE(changes_at(80, one));
  EXPECT_FALSE(changes_at(130, one));
  EXPECT_TRUE(changes_at(131, one)) << "the one that stays counts after a minute";
  EXPECT_FALSE(changes_at(200, one));
}

TEST_F(ServiceTest, L9_a_service_that_stops_or_ends_is_woken_no_more) {
  LeaveRemoval();
  Stop();
  Forget();
  clock_.Advance(minutes(10));
  EXPECT_EQ(background_.pending(), 0U);
  service_.reset();
  clock_.Advance(minutes(10));
  EXPECT_EQ(background_.pending(), 0U);
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(ServiceTest, L9_a_task_that_waits_when_the_service_ends_does_nothing) {
  LeaveRemoval();
  clock_.Advance(minutes(1));
  ASSERT_EQ(background_.pending(), 1U);
  service_.reset();
  Forget();
  background_.RunAll();
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(ServiceTest, S5_a_queue_that_was_full_is_asked_again_without_a_status) {
  AddVm("web-a");
  Settle();
  background_.set_refusal(absl::ResourceExhaustedError("full"));
  EXPECT_THAT(Scale(0), IsOk());
  clock_.Advance(minutes(1));
  background_.set_refusal(absl::OkStatus());
  clock_.Advance(minutes(1));
  EXPECT_EQ(background_.RunAll(), 1U);
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
}

TEST_F(ServiceTest, C15_nomad_cannot_be_read_while_its_keys_cannot) {
  AddVm("web-a");
  Always("get jwks.json", Fault::Answer(500, "No cluster leader"));
  const auto status = Status();
  ASSERT_THAT(status, IsOk());
  EXPECT_FALSE(status->ready);
  EXPECT_THAT(sink_->Text(), HasSubstr("Nomad cannot be read: read the ids of Nomad's keys"));
}

TEST_F(ServiceTest, C15_a_list_of_nodes_that_is_older_than_a_vm_is_read_again) {
  AddVm("web-a");
  cluster_.EditAnnotation("web-a", harvester::kNodesAnnotation,
                          harvester::ToAnnotation({.node_class = "web", .index = 1}));
  // Its index is 0, as of a list that was under way when another pool made the VM.
  Next("list nodes", Fault::NomadList("[]", 0));
  const auto status = Status();
  ASSERT_THAT(status, IsOk());
  EXPECT_TRUE(status->ready);
  EXPECT_EQ(Count("list nodes"), 2U);
  EXPECT_EQ(Count("list virtualmachines"), 1U);
}

TEST_F(ServiceTest, S3_a_status_is_two_lists_and_a_warning_of_its_policy_is_logged_once) {
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
  Forget();
  const auto all = testing::AllOf(HasSubstr("cpu_request: "),
                                  HasSubstr("user_data: line 1, column 1: unknown variable"),
                                  HasSubstr("network_data: network data is not a mapping"));
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kInvalidArgument, all));
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kInvalidArgument, all));
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(ServiceTest, S3_both_lists_are_read_in_parallel) {
  Settle();
  foreground_.Take();
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(foreground_.Take(), 1) << "beside the calling thread";
}

TEST_F(ServiceTest, S3_a_nomad_that_begins_to_hang_hides_no_vm) {
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
  Settle();
  std::size_t times = 0;
  for (const Fault& fault : {Refused(), Fault::Drop()}) {
    ++times;
    Always("list virtualmachines", fault);
    for (int i = 0; i < 2; ++i) {
      const auto status = Status();
      ASSERT_THAT(status, IsOk());
      EXPECT_FALSE(status->ready);
      EXPECT_EQ(status->count, 1);
      EXPECT_THAT(status->meta, IsEmpty());
    }
    EXPECT_EQ(Logged("WARN Not ready"), times);
    EXPECT_EQ(background_.pending(), 0U);
    Next("list virtualmachines", Fault::None());
    EXPECT_TRUE(Status()->ready);
    EXPECT_EQ(Logged("INFO Ready"), times);
  }
}

TEST_F(ServiceTest, S3_a_reply_is_sent_before_the_deadline_of_whoever_waits_for_it) {
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
  EXPECT_EQ(taken(caller), seconds(6));
  EXPECT_EQ(taken(caller.WithTimeout(milliseconds(400))), milliseconds(300));
  values_["_nomad_autoscaler_grpc_timeout"] = "20s";
  EXPECT_EQ(taken(caller), seconds(19));
}

TEST_F(ServiceTest, C15_a_status_goes_by_the_api_servers_clock_with_a_list_and_with_a_proof) {
  AddVm("web-a");
  AnnotateLease(harvester::kLeasePausedAnnotation,
                base::FormatRfc3339(clock_.WallNow() + std::chrono::hours(1)));
  process_clock_.set_ahead(std::chrono::hours(3));
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
  auto status = Status();
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->meta.at("nomad_autoscaler.last_event"),
            std::to_string(event.time_since_epoch() / std::chrono::nanoseconds(1)));
  EXPECT_EQ(Count("get leases"), 1U);
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(Count("get leases"), 0U);
}

// The background waits in the queue and records nothing.
TEST_F(ServiceTest, S4_a_vm_whose_node_is_ready_is_an_event_before_that_is_recorded) {
  AddUnjoined("web-a");
  const auto event = [this] {
    const auto status = Status();
    return status.ok() && status->ready ? status->meta.at("nomad_autoscaler.last_event") : "";
  };
  const std::string first = event();
  EXPECT_NE(first, "");
  clock_.Advance(minutes(1));
  EXPECT_EQ(event(), first) << "a cooldown ends although it cannot be recorded";
  AddUnjoined("web-b");
  EXPECT_GT(event(), first);
}

TEST_F(ServiceTest, S3_a_lease_that_cannot_be_read_does_not_make_the_first_status_unready) {
  AddVm("web-a");
  Next("get leases", Failed());
  auto status = Status();
  ASSERT_THAT(status, IsOk());
  EXPECT_TRUE(status->ready);
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(Count("get leases"), 1U) << "it is read with the next one";
}

TEST_F(ServiceTest, S5_a_queue_that_is_full_is_tried_again_by_the_next_status) {
  background_.set_refusal(absl::ResourceExhaustedError("full"));
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(background_.pending(), 0U);
  background_.set_refusal(absl::OkStatus());
  EXPECT_TRUE(Wakes());
}

TEST_F(ServiceTest, S5_a_status_leaves_pools_alone_for_which_the_process_has_no_policy) {
  AddUnjoined("web-a");
  AddUnjoined("web-b");
  MoveToPool("web-b", "other");
  Mark("web-b");
  EXPECT_TRUE(Wakes());
  EXPECT_NE(Annotation("web-a", harvester::kJoinedAtAnnotation), "");
  EXPECT_NE(Annotation("web-b", harvester::kScaleInAnnotation), "") << "it is not rolled back";
  EXPECT_FALSE(Wakes());
  values_["node_group_name"] = "other";
  EXPECT_TRUE(Wakes()) << "now there is a policy";
  EXPECT_EQ(Annotation("web-b", harvester::kScaleInAnnotation), "") << "no action names it";
}

TEST_F(ServiceTest, S5_a_removal_that_no_policy_claims_for_ten_minutes_is_one_warning) {
  AddForeignVm();
  Mark("web-b");
  Settle();
  clock_.Advance(minutes(10) - seconds(1));
  Settle();
  EXPECT_EQ(Logged(kUnclaimedLine), 0U) << "another agent may be at work";
  clock_.Advance(seconds(1));
  Settle();
  Settle();
  EXPECT_EQ(Logged(kUnclaimedLine), 1U);
  cluster_.EditAnnotation("web-b", harvester::kScaleInAnnotation, std::nullopt);
  Settle();
  Mark("web-b");
  clock_.Advance(minutes(5));
  Settle();
  EXPECT_EQ(Logged(kUnclaimedLine), 1U) << "it begins anew";
}

TEST_F(ServiceTest, S5_a_pool_of_another_namespace_does_not_begin_the_ten_minutes_anew) {
  AddForeignVm();
  Mark("web-b");
  Settle();
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(minutes(1));
    values_["namespace"] = "default";
    Settle();
    values_["namespace"] = "nomad";
    Settle();
  }
  EXPECT_EQ(Logged(kUnclaimedLine), 1U);
}

TEST_F(ServiceTest, S5_a_removal_that_no_policy_claims_is_a_metric_until_it_has_ended) {
  const auto registry = WithMetrics();
  AddForeignVm();
  Mark("web-b");
  Settle();
  clock_.Advance(minutes(10));
  Settle();
  const std::string of_pool = "unclaimed{pool=\"nomad/other\"} ";
  EXPECT_THAT(registry->Text(), HasSubstr(of_pool + "1\n"));
  cluster_.EditAnnotation("web-b", harvester::kScaleInAnnotation, std::nullopt);
  Settle();
  EXPECT_THAT(registry->Text(), HasSubstr(of_pool + "0\n"));
}

TEST_F(ServiceTest, L7_unfinished_work_comes_back_in_rounds_and_new_work_at_once) {
  AddVm("web-a");
  AddUnjoined("web-b");
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

TEST_F(ServiceTest, L7_after_a_new_configuration_unfinished_work_does_not_wait_for_its_round) {
  AddVm("web-a");
  AddUnjoined("web-b");
  cluster_.Refuse({.verb = "patch", .resource = "virtualmachines", .name = "web-b"});
  EXPECT_TRUE(Wakes());
  EXPECT_FALSE(Wakes());
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_TRUE(Wakes()) << "the new token may have the right";
}

TEST_F(ServiceTest, L10_what_a_pause_has_held_goes_on_when_status_sees_its_end) {
  AddNamed({"web-a"});
  Idle("web-a");
  hold_->Release();
  AnnotateLease(harvester::kLeasePausedAnnotation, "true");
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
  EXPECT_THAT(Status(), IsOk());
  EXPECT_EQ(background_.pending(), 1U) << "the first observation of our own pool";
  background_.RunAll();
  EXPECT_EQ(cluster_.Leases().size(), 1U);
}

TEST_F(ServiceTest, C11_background_work_that_waits_for_the_lease_comes_back_in_rounds) {
  HoldLease();  // another process
  EXPECT_TRUE(Wakes());
  EXPECT_EQ(Count("list secrets"), 0U);
  EXPECT_FALSE(Wakes());
  hold_->Release();
  clock_.Advance(seconds(61));
  EXPECT_TRUE(Wakes());
  EXPECT_EQ(Count("list secrets"), 1U);
}

TEST_F(ServiceTest, C11_a_Scale_reads_nothing_of_a_pool_before_it_holds_the_Lease) {
  EXPECT_THAT(Scale(1), IsOk());
  const Strings sent = Sent();
  EXPECT_EQ(sent.at(0), "get leases");
  const auto held = std::find(sent.begin(), sent.end(), "create leases");
  for (const char* read : {"list virtualmachines", "list virtualmachineinstances", "list nodes",
                           "list virtualmachineimages"}) {
    EXPECT_LT(held, std::find(sent.begin(), sent.end(), read)) << read;
  }
}

TEST_F(ServiceTest, C11_a_Lease_that_another_process_holds_costs_no_reads_besides) {
  HoldLease();  // another process
  for (const int count : {0, 1, 1}) {
    EXPECT_THAT(Scale(count), StatusIs(absl::StatusCode::kAborted));
    EXPECT_EQ(Sent(), (Strings{"get leases"}));
  }
}

constexpr char kLeaseRule[] =
    "the rule {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, patch]}";

TEST_F(ServiceTest, C11_a_token_that_may_not_use_leases_is_refused_with_the_rule_that_it_needs) {
  AddVm("web-a");
  for (const char* verb : {"get", "create"}) {
    cluster_.Forbid(verb, "leases");
    for (const int count : {0, 2}) {
      EXPECT_THAT(Scale(count),
                  StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(kLeaseRule)))
          << verb;
    }
    cluster_.AllowAll();
  }
  EXPECT_THAT(Effects(), testing::Each("create leases"));
  EXPECT_THAT(Scale(2), IsOk()) << "the right was granted";
  cluster_.Forbid("patch", "leases");
  EXPECT_THAT(Scale(3), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(kLeaseRule)));
  EXPECT_EQ(cluster_.Vms().size(), 2U);
}

TEST_F(ServiceTest, C11_a_status_counts_without_the_right_to_leases_and_logs_the_rule_once) {
  AddVm("web-a");
  cluster_.Forbid("get", "leases");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Status()->count, 1);
  EXPECT_EQ(sink_->Count(kLeaseRule, log::Level::kWarn), 1U) << sink_->Text();
}

TEST_F(ServiceTest, C11_background_work_without_the_right_to_leases_logs_the_rule_once) {
  AddVm("web-a");
  ASSERT_THAT(Status(), IsOk());
  cluster_.Forbid("patch", "leases");
  cluster_.Forbid("create", "leases");
  Mark("web-a");
  for (int i = 0; i < 3; ++i) {
    Settle();
    clock_.Advance(minutes(11));
  }
  EXPECT_TRUE(IsMarked("web-a"));
  EXPECT_EQ(sink_->Count(kLeaseRule, log::Level::kWarn), 1U) << sink_->Text();
}

TEST_F(ServiceTest, C11_a_dry_run_reads_the_lease_too) {
  cluster_.Forbid("get", "leases");
  values_["dry-run"] = "true";
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(kLeaseRule)));
}

TEST_F(ServiceTest, L1_an_image_that_does_not_answer_delays_no_scale_that_makes_nothing) {
  AddVm("web-a");
  Settle();
  for (const char* read : {"list virtualmachineimages", "get virtualmachineimages"}) {
    Always(read, Fault::Delay(std::chrono::hours(1)));
  }
  const base::MonoTime began = clock_.Now();
  EXPECT_THAT(Scale(1), IsOk()) << "as many as there are";
  EXPECT_LE(clock_.Now() - began, seconds(3));
  EXPECT_EQ(Count("list virtualmachineimages"), 0U);
}

TEST_F(ServiceTest, C11_a_Lease_that_was_free_and_is_taken_costs_no_reads_besides) {
  EXPECT_THAT(Scale(0), IsOk());
  HoldLease();  // another process
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(Sent(), (Strings{"get leases"})) << "besides the attempt to take it";
}

TEST_F(ServiceTest, C2_the_rights_for_a_change_are_asked_once_and_before_its_first_effect) {
  AddVm("web-a");
  Settle();
  EXPECT_THAT(Scale(2), IsOk());
  const Strings sent = Sent();
  EXPECT_LT(std::find(sent.begin(), sent.end(), "ask selfsubjectrulesreviews"),
            std::find(sent.begin(), sent.end(), "create secrets"));
  EXPECT_EQ(std::count(sent.begin(), sent.end(), "ask selfsubjectrulesreviews"), 1);
}

TEST_F(ServiceTest,
       S3_a_status_of_vms_that_changed_reads_them_and_the_next_one_may_not_try_a_proof) {
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

TEST_F(ServiceTest, C10_the_background_sets_the_owner_of_a_secret_that_a_scale_could_not_write) {
  Settle();
  Always("patch secrets", Refused());
  EXPECT_THAT(Scale(1), IsOk());
  Next("patch secrets", Fault::None());
  background_.RunAll();
  EXPECT_TRUE(cluster_.Secrets().at(0)["metadata"].contains("ownerReferences"));
  EXPECT_FALSE(Wakes()) << "nothing is left to do";
}

TEST_F(ServiceTest, C11_while_a_scale_is_open_another_is_aborted_and_status_waits_for_nothing) {
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
  const auto registry = WithMetrics();
  After("create virtualmachines", [&] {
    nlohmann::json lease = cluster_.Leases().at(0);
    lease["spec"]["holderIdentity"] = "other";
    cluster_.PutObject(lease);
    clock_.Advance(seconds(5));
  });
  EXPECT_THAT(Scale(1), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Lease was lost")));
  EXPECT_EQ(cluster_.Leases().at(0)["spec"]["holderIdentity"], "other");
  EXPECT_THAT(registry->Text(), HasSubstr("errors_total{class=\"lease_lost\"} 1"));
}

TEST_F(ServiceTest, S4_a_scale_that_is_open_keeps_its_clients_when_the_agent_reloads) {
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
  Start({{"NOMAD_ALLOC_ID", "0d6b4f0e-0000-4000-8000-00000000a110"}});
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_EQ(Count("get allocation"), 1U);
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_EQ(Count("get allocation"), 1U);
}

TEST_F(ServiceTest, T1_a_refusal_is_a_warning_once_per_change) {
  cluster_.SetImageReady("default/ubuntu-24.04", false);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Scale(1).ok());
  EXPECT_EQ(Logged("WARN Scale refused"), 1U);
  EXPECT_EQ(Logged("INFO Scale refused"), 0U);
  EXPECT_EQ(Logged("INFO Planned"), 0U) << "it will not happen";
  EXPECT_FALSE(Scale(1, R"({"nomad_policy_id": 7, )").ok()) << "its meta cannot be read";
  EXPECT_EQ(Logged("WARN Scale refused"), 2U);
  EXPECT_THAT(Scale(-2), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("negative")));
  EXPECT_EQ(Logged("WARN Scale refused"), 3U);
}

TEST_F(ServiceTest, C12_a_scale_in_that_is_refused_sends_nothing_for_half_a_minute) {
  ForbidRemovalOf({"web-a"});
  const absl::Status refused = Scale(0);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_NE(Count("patch leases"), 0U);
  clock_.Advance(seconds(29));
  EXPECT_EQ(Scale(0), refused);
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_EQ(Logged("WARN Scale refused"), 1U);
  EXPECT_THAT(Scale(1), IsOk()) << "another count is another Scale";
  cluster_.AllowAll();
  EXPECT_THAT(Scale(0), IsOk());
}

TEST_F(ServiceTest, C12_a_refused_scale_in_is_tried_again_after_half_a_minute_or_a_set_config) {
  ForbidRemovalOf({"web-a"});
  EXPECT_FALSE(Scale(0).ok());
  clock_.Advance(seconds(30));
  EXPECT_FALSE(Scale(0).ok());
  EXPECT_THAT(Sent(), Not(IsEmpty()));
  cluster_.AllowAll();
  ASSERT_THAT(Configure(), IsOk());
  EXPECT_THAT(Scale(0), IsOk());
}

TEST_F(ServiceTest, C12_a_scale_in_to_a_lower_count_than_the_refused_one_is_tried_at_once) {
  ForbidRemovalOf({"web-a", "web-b"});
  EXPECT_FALSE(Scale(1).ok());
  cluster_.AllowAll();
  EXPECT_THAT(Scale(0), IsOk());
}

TEST_F(ServiceTest, C12_C13_a_dry_run_of_a_refused_scale_in_reads_the_pool_anew) {
  ForbidRemovalOf({"web-a"});
  EXPECT_FALSE(Scale(0).ok());
  cluster_.AllowAll();
  values_["dry-run"] = "true";
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_THAT(Sent(), Not(IsEmpty()));
}

TEST_F(ServiceTest, C12_a_scale_in_that_met_another_process_is_tried_again_at_once) {
  AddVm("web-a");
  Settle();
  HoldLease();  // another process
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kAborted));
  hold_->Release();
  EXPECT_THAT(Scale(0), IsOk());
}

TEST_F(ServiceTest, C12_a_scale_in_of_which_a_part_failed_is_tried_again_at_once) {
  AddVm("web-a");
  AddVm("web-b");
  Settle();
  Next("patch virtualmachines", Refused());
  EXPECT_FALSE(Scale(0).ok());
  ASSERT_THAT(Effects(), testing::Contains("patch virtualmachines"));
  Scale(0).IgnoreError();
  EXPECT_THAT(Sent(), Not(IsEmpty()));
}

TEST_F(ServiceTest, C12_a_scale_in_that_a_proxy_redirected_is_tried_again_at_once) {
  AddVm("web-a");
  Settle();
  Always("list virtualmachines", Fault::Answer(302, ""));
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kFailedPrecondition));
  Always("list virtualmachines", Fault::None());
  EXPECT_THAT(Scale(0), IsOk());
}

TEST_F(ServiceTest, T1_a_nomad_that_hangs_is_what_a_scale_says_that_cannot_be_read) {
  AddVm("web-a");
  Settle();
  Always("list nodes", Fault::Delay(minutes(5)));
  const absl::Status failed = service_->Scale(Context::Background(clock_).WithTimeout(seconds(5)),
                                              {.count = 0, .reason = "test"}, values_);
  EXPECT_THAT(failed.ToString(), HasSubstr("Nomad cannot be read"));
}

TEST_F(ServiceTest, C12_a_scale_in_in_a_back_off_sends_nothing_for_half_a_minute) {
  AddVm("web-a");
  AnnotateLease(harvester::kLeaseBackOffAnnotation,
                harvester::ToAnnotation(harvester::BackOff{
                    {"remove", {.failures = 3, .retry_at = clock_.WallNow() + minutes(2)}}}));
  Settle();
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(ServiceTest, C12_a_growth_to_the_count_of_a_refused_scale_in_is_tried_at_once) {
  ForbidRemovalOf({"web-a", "web-b"});
  EXPECT_FALSE(Scale(1).ok());
  cluster_.AllowAll();
  cluster_.DeleteVmByHand("web-a");
  cluster_.DeleteVmByHand("web-b");
  clock_.Advance(seconds(20));
  Settle();
  EXPECT_THAT(Scale(1), IsOk());
  EXPECT_THAT(Effects(), testing::Contains("create virtualmachines"));
}

TEST_F(ServiceTest, C12_a_scale_in_that_fails_for_a_moment_is_tried_again_at_once) {
  AddVm("web-a");
  Settle();
  Next("list nodes", RefusedByNomad());
  EXPECT_THAT(Scale(0), StatusIs(absl::StatusCode::kUnavailable));
  const Fault page = Fault::Answer(404, "<html/>");  // of a proxy that restarts
  for (const Fault& fault : {Failed(), Fault::Answer(500), page}) {
    Always("ask selfsubjectrulesreviews", fault);
    EXPECT_FALSE(Scale(0).ok());
  }
  Next("ask selfsubjectrulesreviews", Fault::None());
  EXPECT_THAT(Scale(0), IsOk());
}

TEST_F(ServiceTest, C12_a_refused_growth_is_tried_again_at_once) {
  Settle();
  cluster_.SetImageReady("default/ubuntu-24.04", false);
  EXPECT_FALSE(Scale(1).ok());
  cluster_.SetImageReady("default/ubuntu-24.04", true);
  EXPECT_THAT(Scale(1), IsOk());
}

TEST_F(ServiceTest, T1_that_nothing_is_to_be_replaced_leaves_the_error_of_an_action) {
  AddVm("web-a");
  const std::string error = harvester::ToAnnotation(
      harvester::ErrorRecord{.action = "act", .at = clock_.WallNow(), .text = "no image"});
  AnnotateLease(harvester::kLeaseLastErrorAnnotation, error);
  Settle();
  clock_.Advance(minutes(2));
  Settle();
  EXPECT_EQ(LeaseAnnotation(harvester::kLeaseLastErrorAnnotation), error);
}

TEST_F(ServiceTest, C2_the_error_on_the_lease_has_the_api_servers_time) {
  Settle();
  process_clock_.set_ahead(minutes(30));
  Always("create virtualmachines", Refused());
  EXPECT_FALSE(Scale(1).ok());
  const auto error =
      harvester::ParseErrorRecord(LeaseAnnotation(harvester::kLeaseLastErrorAnnotation));
  ASSERT_THAT(error, IsOk());
  EXPECT_LE(error->at, clock_.WallNow());
}

TEST_F(ServiceTest, C13_a_dry_run_reads_the_lease_anew_and_writes_nothing) {
  AddVm("web-a");
  EXPECT_THAT(Scale(-1), IsOk());
  EXPECT_THAT(Sent(), IsEmpty()) << "there is no count to plan for";
  const std::string meta =
      R"({"nomad_autoscaler.dry_run": true, "nomad_autoscaler.dry_run.count": 3})";
  EXPECT_THAT(Scale(-1, meta), IsOk());
  EXPECT_THAT(Sent(),
              ElementsAre("get leases", "list nodes", "get jwks.json", "list virtualmachines",
                          "list virtualmachineinstances", "get namespaces"));
  EXPECT_THAT(sink_->Text(), HasSubstr("scale out 1 → 3"));
  values_["dry-run"] = "true";
  EXPECT_THAT(Scale(0), IsOk());
  EXPECT_THAT(Effects(), IsEmpty());
  Next("get leases", Failed());
  EXPECT_FALSE(Scale(0).ok());
}

TEST_F(ServiceTest, L9_a_stop_ends_an_open_scale_releases_its_lease_and_refuses_what_comes) {
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
  Next("list virtualmachines", Refused());
  After("list nodes", [&] { Stop(); });
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(Logged("WARN Not ready"), 0U);
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
