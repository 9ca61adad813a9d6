// SPDX-License-Identifier: Apache-2.0
// One process' parts for pool nomad/web, each constructed directly, against the simulated systems
// and on a fake clock; every request that they send is recorded and may be given a fault.
#ifndef NOMAD_HARVESTER_TEST_SCALING_POOL_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_SCALING_POOL_FIXTURE_H_

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/lease_hold.h"
#include "nomad_harvester/scaling/target_service.h"
#include "nomad_harvester/simulator/cluster.h"

#include "execution/creation.h"
#include "execution/pool_dependencies.h"
#include "execution/reconciler.h"
#include "nlohmann/json.hpp"
#include "observation/nomad_reads.h"
#include "support/fake_clock.h"
#include "support/inline_executor.h"
#include "support/object_uid.h"
#include "support/recording_sink.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::scaling {

using Strings = std::vector<std::string>;

class PoolFixture : public testing::Test {
 protected:
  PoolFixture() {
    cluster_.SetFaultHook([this](const simulator::RequestInfo& request) { return Judge(request); });
  }

  // --- What is tested.
  PoolDependencies Deps() { return Deps(executor_); }
  PoolDependencies Deps(runtime::Executor& executor) {
    return {.key = key_,
            .clients = clients_,
            .vms = vms_,
            .nodes = nodes_,
            .work = work_,
            .hosts = hosts_,
            .memory = memory_,
            .backlog = troubles_,
            .lease = lease_,
            .clock = clock_,
            .random = *random_,
            .executor = executor,
            .logger = logger_,
            .events = [this](const ReconcileEvent& event) { events_.push_back(event); }};
  }
  Observer MakeObserver() { return {*clients_.nomad, nodes_, vms_, memory_, executor_, logger_}; }
  // Of the process, without the systems' addresses.
  static StringMap PluginValues() {
    return {{"harvester_url", "https://harvester.invalid"},
            {"auth_token", "token"},
            {"harvester_skip_verify", "true"},
            {"events", "false"}};
  }
  static StringMap PolicyValues() {
    return {{"node_group_name", "web"},
            {"namespace", "nomad"},
            {"node_class", "web"},
            {"image", "default/ubuntu-24.04"},
            {"cpu_request", "2"},
            {"memory_request", "4Gi"},
            {"networks", "default/vlan100"},
            {"node_selector_strategy", "newest_create_index"},
            {"user_data",
             "#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: |\n"
             "    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n"}};
  }
  http::RawTransports Transports(const std::string& client = "plugin") {
    http::RawTransports transports;
    transports.harvester = cluster_.HarvesterTransport(client);
    transports.nomad = cluster_.NomadTransport(client);
    return transports;
  }

  // What a Scale does before it makes VMs.
  absl::StatusOr<CreationPlan> PrepareCreation(std::uint64_t nomad_index = 0,
                                               const std::string& policy_id = "") {
    const auto context = runtime::Context::Background(clock_);
    NH_ASSIGN_OR_RETURN(CreationPlan plan,
                        PlanCreation(Deps(), policy_, ReadSources(context, Deps(), policy_),
                                     nomad_index, policy_id));
    NH_RETURN_IF_ERROR(DryRunCreation(context, Deps(), policy_, plan));
    return plan;
  }

  // --- The pool. What these send is forgotten.
  // A VM made as the plugin makes it; after 10 s its node is ready, and the join is not recorded.
  void AddUnjoined(const std::string& vm) {
    const auto plan = PrepareCreation();
    ASSERT_THAT(plan, support::IsOk());
    const auto context = runtime::Context::Background(clock_);
    const auto created =
        CreateVm(context, Deps(), *plan, {.name = vm, .action_id = "made"}, clock_.WallNow());
    ASSERT_THAT(created, support::IsOk());
    ASSERT_THAT(OwnSecret(context, Deps(), *created), support::IsOk());
    clock_.Advance(std::chrono::seconds(10));
    Forget();
  }
  void AddVm(const std::string& vm) {
    AddUnjoined(vm);
    cluster_.EditAnnotation(vm, harvester::kNomadClusterAnnotation, simulator::kFirstNomadKey);
    cluster_.EditAnnotation(vm, harvester::kNodeIdAnnotation, NodeOf(vm));
    cluster_.EditAnnotation(vm, harvester::kJoinedAtAnnotation,
                            base::FormatRfc3339(clock_.WallNow()));
  }
  std::string UidOf(const std::string& vm) { return support::UidOf(cluster_.Vm(vm)); }
  std::string NodeOf(const std::string& vm) { return cluster_.NodeIdOfVm(UidOf(vm)); }
  std::string Annotation(const std::string& vm, const std::string& key) {
    const nlohmann::json object = cluster_.Vm(vm);
    const nlohmann::json* all = base::FindPath(object, {"metadata", "annotations"});
    return all == nullptr ? "" : base::GetString(*all, key);
  }
  bool IsMarked(const std::string& vm) {
    return !Annotation(vm, harvester::kScaleInAnnotation).empty();
  }
  // By action "act", for a scale-in.
  void Mark(const std::string& vm, const std::function<void(harvester::Mark&)>& change = {}) {
    harvester::Mark mark{.action = "act", .vm_uid = UidOf(vm), .node_id = NodeOf(vm)};
    mark.marked_at = clock_.WallNow();
    mark.drain_deadline = {.kind = harvester::DrainDeadline::Kind::kAt,
                           .at = clock_.WallNow() + std::chrono::minutes(15)};
    mark.grace = std::chrono::minutes(5);
    mark.nodes.node_class = "web";
    if (change) change(mark);
    cluster_.EditAnnotation(vm, harvester::kScaleInAnnotation, harvester::ToAnnotation(mark));
  }
  // Our drain for that VM, of action "act".
  void Drain(const std::string& vm, bool purge = false) {
    cluster_.OperatorDrain(
        NodeOf(vm), std::chrono::minutes(15),
        nodepool::ToMeta(
            {.action = "act", .vm = vm, .vm_uid = UidOf(vm), .pool = "nomad/web", .purge = purge}));
  }
  // Marked, and its drain is complete: the next step is its deletion.
  void Idle(const std::string& vm) {
    Mark(vm);
    Drain(vm);
    clock_.Advance(std::chrono::seconds(2));
  }

  // --- The Lease. Acquires it and stores action "act" with these names.
  void HoldLease(const std::set<std::string>& names = {}) {
    if (hold_ != nullptr) hold_->Release();
    auto hold = LeaseHold::Acquire(lease_, client_.context(), LeaseUser::kScale);
    ASSERT_THAT(hold, support::IsOk());
    hold_ = *std::move(hold);
    PoolRecord record = lease_.record();
    record.action = harvester::LeaseAction{.id = "act", .names = names};
    if (!names.empty()) Store(record);
    Forget();
  }
  // VMs that are named by that action.
  void AddNamed(const Strings& vms) {
    for (const std::string& vm : vms) AddVm(vm);
    HoldLease({vms.begin(), vms.end()});
  }
  void Store(const PoolRecord& record) {
    EXPECT_THAT(lease_.Store(hold_->context(), record), support::IsOk());
  }
  const runtime::Context& context() const {
    return hold_ == nullptr ? client_.context() : hold_->context();
  }
  // As stored; empty if there is none.
  std::string LeaseAnnotation(const std::string& key) const {
    const std::vector<nlohmann::json> leases = cluster_.Leases();
    if (leases.empty()) return "";
    const nlohmann::json* all = base::FindPath(leases.front(), {"metadata", "annotations"});
    return all == nullptr ? "" : base::GetString(*all, key);
  }
  harvester::LeaseAction StoredAction() const {
    const auto action =
        harvester::ParseLeaseAction(LeaseAnnotation(harvester::kLeaseActionAnnotation));
    return action.ok() ? *action : harvester::LeaseAction{};
  }
  // As an operator or an earlier process.
  void AnnotateLease(const std::string& key, const std::string& value) {
    nlohmann::json lease =
        cluster_.Leases().empty()
            ? nlohmann::json{{"apiVersion", "coordination.k8s.io/v1"},
                             {"kind", "Lease"},
                             {"metadata",
                              {{"namespace", "nomad"}, {"name", harvester::LeaseName("web")}}}}
            : cluster_.Leases().front();
    lease["metadata"]["annotations"][key] = value;
    EXPECT_TRUE(cluster_.PutObject(lease));
  }

  // --- Requests, as "get node"; of the Lease's patches only those that store something.
  Strings Sent() const {
    Strings sent;
    for (const simulator::RequestInfo& request : sent_) {
      sent.push_back(request.verb + " " + request.resource);
    }
    return sent;
  }
  std::string Last() const { return sent_.empty() ? "" : Sent().back(); }
  Strings Effects() const {
    Strings effects;
    for (const simulator::RequestInfo& request : sent_) {
      if (request.has_effect) effects.push_back(request.verb + " " + request.resource);
    }
    return effects;
  }
  std::size_t Count(const std::string& what) const {
    const Strings sent = Sent();
    return static_cast<std::size_t>(std::count(sent.begin(), sent.end(), what));
  }
  // The clients that sent them.
  std::set<std::string> Senders() const {
    std::set<std::string> senders;
    for (const simulator::RequestInfo& request : sent_) senders.insert(request.client);
    return senders;
  }
  // The body of the last one of that kind.
  nlohmann::json Body(const std::string& what) const {
    for (auto request = sent_.rbegin(); request != sent_.rend(); ++request) {
      if (request->verb + " " + request->resource == what) {
        return nlohmann::json::parse(request->body);
      }
    }
    ADD_FAILURE() << "no request " << what;
    return {};
  }
  void Forget() { sent_.clear(); }
  // The next requests of that kind get this fault.
  void Next(const std::string& what, const simulator::Fault& fault, std::size_t count = 1) {
    faults_[what].assign(count, fault);
  }
  void Always(const std::string& what, const simulator::Fault& fault) { Next(what, fault, 9999); }
  // `others` act once, after such a request was answered.
  void After(const std::string& what, std::function<void()> others) {
    Next(what, simulator::Fault::BeforeReply(std::move(others)));
  }
  // Answers that say no for good, by either system, and one that may pass by itself.
  static simulator::Fault Refused() { return simulator::Fault::Answer(403); }
  static simulator::Fault RefusedByNomad() {
    return simulator::Fault::Answer(403, "Permission denied");
  }
  static simulator::Fault Failed() { return simulator::Fault::Answer(401); }

  // --- The log: "WARN text", of INFO and above.
  Strings Log() const {
    Strings lines;
    for (const log::Record& record : sink_->records()) {
      if (record.level < log::Level::kInfo) continue;
      lines.push_back((record.level == log::Level::kInfo ? "INFO " : "WARN ") + record.message);
    }
    return lines;
  }
  std::size_t Logged(const std::string& line) const {
    const Strings lines = Log();
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), line));
  }

  support::FakeClock clock_;
  const std::shared_ptr<runtime::Random> server_random_ = support::MakeSeededRandom(2);
  const std::shared_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_{clock_, *server_random_};
  const std::shared_ptr<support::RecordingSink> sink_ = std::make_shared<support::RecordingSink>();
  const log::Logger logger_{sink_, log::Level::kDebug};
  // May be changed before what is tested reads it.
  const std::shared_ptr<config::PluginConfig> config_ = std::make_shared<config::PluginConfig>();
  config::PoolPolicy policy_ = config::ParsePoolPolicy(PolicyValues()).value();
  const PoolKey key_{.ns = "nomad", .pool = "web"};
  const Clients clients_ = MakeClients(config_, Transports(), random_, log::Logger());
  const harvester::VmStore vms_{clients_.kube, "nomad"};
  NomadReads nodes_{clients_.nomad_urgent};
  support::InlineExecutor executor_;
  demand::Reader work_{clients_.nomad, executor_};
  Hosts hosts_{clients_.kube_urgent, log::Logger()};
  ObserverMemory memory_;
  PoolBacklog troubles_{*random_};
  PoolLease lease_{clients_.kube_urgent, key_, clock_, {.holder = "me"}, logger_};
  std::vector<ReconcileEvent> events_;
  const runtime::CancelSource client_{runtime::Context::Background(clock_)};
  std::unique_ptr<LeaseHold> hold_;

 private:
  simulator::Fault Judge(const simulator::RequestInfo& request) {
    const bool renews_or_takes = request.resource == "leases" && request.verb == "patch" &&
                                 request.body.find("annotations") == std::string::npos;
    if (renews_or_takes) return simulator::Fault::None();
    sent_.push_back(request);
    std::deque<simulator::Fault>& faults = faults_[request.verb + " " + request.resource];
    if (faults.empty()) return simulator::Fault::None();
    const simulator::Fault fault = faults.front();
    faults.pop_front();
    return fault;
  }

  std::vector<simulator::RequestInfo> sent_;
  std::map<std::string, std::deque<simulator::Fault>> faults_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_TEST_SCALING_POOL_FIXTURE_H_
