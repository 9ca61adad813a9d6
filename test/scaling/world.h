// SPDX-License-Identifier: Apache-2.0
// Builders of snapshots for table tests: World().With(Vm("a").Joined()).With(Node("a")).
#ifndef NOMAD_HARVESTER_TEST_SCALING_WORLD_H_
#define NOMAD_HARVESTER_TEST_SCALING_WORLD_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/observer.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/rules.h"
#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

inline base::WallTime At(std::string_view text) { return base::ParseRfc3339(text).value(); }

inline NodeList ListOf(std::vector<nomad::Node> nodes) {
  return std::make_shared<const std::vector<nomad::Node>>(std::move(nodes));
}

inline const base::WallTime kNow = At("2026-03-01T12:00:00Z");

// A member of pool default/web, created an hour ago, with a join timeout of 15 minutes.
class Vm {
 public:
  explicit Vm(const std::string& name) {
    vm_.ns = "default";
    vm_.name = name;
    vm_.uid = "uid-" + name;
    vm_.resource_version = "7";
    vm_.pool = "web";
    vm_.firmware_uuid = "fw-" + name;
    vm_.created_at = kNow - std::chrono::hours(1);
    vm_.join_timeout = harvester::JoinTimeout{.none = false, .limit = std::chrono::minutes(15)};
    harvester::NodesRecord nodes;
    nodes.node_class = "web";
    nodes.index = 100;
    vm_.nodes = nodes;
    vm_.printable_status = "Running";
    vm_.ready = true;
    vm_.instance_exists = true;
  }
  Vm& InPool(const std::string& pool) { return vm_.pool = pool, *this; }
  Vm& Age(base::Duration age) { return vm_.created_at = kNow - age, *this; }
  Vm& Joined(const std::string& node_id = "") {
    vm_.joined_at = kNow - std::chrono::minutes(50);
    vm_.joined_node_id = node_id.empty() ? "node-" + vm_.name : node_id;
    return *this;
  }
  // Its node has registered, and was not seen ready yet.
  Vm& Registered(const std::string& node_id = "") {
    vm_.awaits_ready = true;
    return Joined(node_id);
  }
  Vm& NoTimeout() { return vm_.join_timeout = harvester::JoinTimeout{.none = true}, *this; }
  Vm& Unmanaged() { return member_ = false, *this; }
  Vm& Terminating() { return vm_.deleted_at = kNow, *this; }
  Vm& Stopped() {
    vm_.printable_status = "Stopped";
    vm_.ready = vm_.instance_exists = false;
    return *this;
  }
  Vm& RunStrategy(const std::string& value) { return vm_.run_strategy = value, *this; }
  Vm& ProtectedUntil(base::WallTime time) { return vm_.protect.until = time, *this; }
  Vm& Zone(const std::string& zone) { return vm_.zone = zone, *this; }
  Vm& Protected() { return vm_.protect.always = true, *this; }
  Vm& DeleteFirst() { return vm_.delete_first = true, *this; }
  Vm& Claim(const std::string& name) { return vm_.claim_names.push_back(name), *this; }
  Vm& Region(const std::string& region) { return vm_.nodes->region = region, *this; }
  // The keys of its Nomad cluster; that of the world has none unless it is said.
  Vm& OfCluster(const std::string& keys) { return vm_.nomad_cluster = keys, *this; }
  // It takes the place of a VM with that name.
  Vm& Replaces(const std::string& old, harvester::ReplaceReason reason) {
    return vm_.replaces =
               harvester::Replaces{.vm = old, .uid = "uid-" + old, .reason = std::move(reason)},
           *this;
  }
  // Made of something with that hash and these parts.
  Vm& MadeOf(const std::string& hash, const std::string& parts) {
    vm_.template_hash = hash;
    vm_.template_parts = parts;
    return *this;
  }
  Vm& Paused() {
    vm_.printable_status = "Paused";
    vm_.ready = false;
    return InstanceRuns(true);
  }
  Vm& NodeClass(const std::string& value) { return vm_.nodes->node_class = value, *this; }
  Vm& RolledBack(const std::string& marker) { return vm_.rolled_back = marker, *this; }
  Vm& FailsToStart(const std::string& reason) {
    failure_ = harvester::StartFailure{.reason = reason};
    return *this;
  }
  Vm& NodeGone() { return node_gone_ = true, *this; }
  Vm& NodeDownFor(base::Duration time) { return down_ = time, *this; }
  Vm& RunsOn(const std::string& host, std::optional<std::string> zone = std::nullopt) {
    host_ = host;
    host_zone_ = std::move(zone);
    return *this;
  }
  Vm& Published(const harvester::PublishedHost& published) {
    vm_.has_published_host = true;
    vm_.published_host = published;
    return *this;
  }
  Vm& InstanceRuns(bool runs) { return runs_ = runs, *this; }
  Vm& UnreadableMark() { return vm_.has_mark = true, *this; }
  // Marked by an action a minute ago: the drain's deadline is in 14 minutes, its grace 5 minutes.
  Vm& Marked(const std::string& action = "act") {
    harvester::Mark mark;
    mark.action = action;
    mark.vm_uid = vm_.uid;
    mark.node_id = "node-" + vm_.name;
    mark.marked_at = kNow - std::chrono::minutes(1);
    mark.drain_deadline = {.kind = harvester::DrainDeadline::Kind::kAt,
                           .at = kNow + std::chrono::minutes(14)};
    mark.grace = std::chrono::minutes(5);
    vm_.mark = mark;
    vm_.has_mark = true;
    return *this;
  }
  Vm& ForReplacement() { return vm_.mark->reason = harvester::MarkReason::kReplace, *this; }
  Vm& ForBeingBroken() { return vm_.mark->reason = harvester::MarkReason::kBroken, *this; }
  Vm& Late() {
    vm_.mark->drain_deadline.at = kNow - std::chrono::minutes(6);
    return DrainKnownFor(std::chrono::hours(1));
  }
  // This process has known the drain of its mark for that long.
  Vm& DrainKnownFor(base::Duration time) { return drain_known_ = time, *this; }
  Vm& NoForce() { return vm_.mark->force = false, *this; }
  Vm& NoDrainDeadline() {
    vm_.mark->drain_deadline = {.kind = harvester::DrainDeadline::Kind::kNone};
    return *this;
  }
  Vm& MarkedAt(base::WallTime time) { return vm_.mark->marked_at = time, *this; }

  VmView View() const {
    VmView view;
    view.vm = vm_;
    view.member = member_;
    view.node_gone = node_gone_;
    view.node_down_for = down_;
    view.drain_known_for = drain_known_;
    view.instance_runs = runs_;
    view.host = host_;
    view.host_zone = host_zone_;
    view.start_failure = failure_;
    return view;
  }

 private:
  harvester::VirtualMachine vm_;
  bool member_ = true;
  bool node_gone_ = false;
  base::Duration down_{};
  base::Duration drain_known_{};
  std::optional<bool> runs_;
  std::string host_;
  std::optional<std::string> host_zone_;
  std::optional<harvester::StartFailure> failure_;
};

// A ready, eligible node of class web with the VM's name.
class Node {
 public:
  explicit Node(const std::string& vm, const std::string& id = "") {
    node_.id = id.empty() ? "node-" + vm : id;
    node_.name = vm;
    node_.node_class = "web";
    node_.datacenter = "dc1";
    node_.node_pool = "default";
    node_.status = nomad::NodeStatus::kReady;
    node_.eligible = true;
    node_.create_index = 200;
    node_.full = true;
    node_.attributes["unique.hostname"] = vm;
    node_.resources = nomad::NodeResources{.cpu_shares = 1000, .memory_mb = 1000};
  }
  Node& Status(nomad::NodeStatus status) { return node_.status = status, *this; }
  Node& Initializing() { return Status(nomad::NodeStatus::kInitializing); }
  Node& Driver(const std::string& name, bool healthy, const std::string& why = "") {
    node_.drivers.push_back(
        {.name = name, .detected = true, .healthy = healthy, .description = why});
    return *this;
  }
  Node& Down() { return Status(nomad::NodeStatus::kDown); }
  Node& Ineligible() { return node_.eligible = false, *this; }
  Node& Class(const std::string& value) { return node_.node_class = value, *this; }
  Node& Index(std::uint64_t index) { return node_.create_index = index, *this; }
  Node& Meta(const std::string& key, const std::string& value) {
    node_.meta[key] = value;
    return *this;
  }
  Node& DrainedBy(nomad::DrainStatus status, const std::string& vm, const std::string& action,
                  bool was_ineligible = false, bool purge = false) {
    nomad::LastDrain drain;
    drain.status = status;
    drain.started_at = "2026-03-01T11:59:00Z";
    drain.updated_at = kNow - std::chrono::minutes(1);
    drain.meta = nodepool::ToMeta({.action = action,
                                   .vm = vm,
                                   .vm_uid = "uid-" + vm,
                                   .pool = "default/web",
                                   .purge = purge,
                                   .was_ineligible = was_ineligible});
    node_.last_drain = drain;
    node_.draining = status == nomad::DrainStatus::kDraining;
    node_.eligible = false;
    return *this;
  }
  Node& Draining(const std::string& vm, const std::string& action = "act") {
    return DrainedBy(nomad::DrainStatus::kDraining, vm, action);
  }
  Node& Drained(const std::string& vm, const std::string& action = "act") {
    return DrainedBy(nomad::DrainStatus::kComplete, vm, action);
  }
  Node& DrainEnded(base::WallTime at) { return node_.last_drain->updated_at = at, *this; }
  Node& DrainCancelled(const std::string& vm, const std::string& action = "act") {
    return DrainedBy(nomad::DrainStatus::kCanceled, vm, action);
  }
  Node& DrainedByOperator() {
    node_.draining = true;
    node_.eligible = false;
    node_.last_drain = nomad::LastDrain{.status = nomad::DrainStatus::kDraining,
                                        .started_at = "2026-03-01T11:58:00Z",
                                        .updated_at = std::nullopt,
                                        .meta = {}};
    return *this;
  }
  Node& Eligible() { return node_.eligible = true, *this; }
  const nomad::Node& Get() const { return node_; }

 private:
  nomad::Node node_;
};

// default/web under a policy for node_class web; a Lease whose action names every marked VM.
class World {
 public:
  World() {
    observation_.now = kNow;
    observation_.nomad = absl::OkStatus();
    observation_.allocations_complete = true;
    pool_.key = {.ns = "default", .pool = "web"};
    policy_.emplace();
    policy_->pool = "web";
    policy_->node_class = "web";
    policy_->name_prefix = "web";
    pool_.action = harvester::LeaseAction{};
  }
  World& With(const Vm& vm) {
    observation_.vms.push_back(vm.View());
    if (vm.View().vm->has_mark) pool_.action->names.insert(vm.View().vm->name);
    return *this;
  }
  World& With(const Node& node) {
    nodes_.push_back(node.Get());
    return *this;
  }
  // The allocations of the node were read: none, unless Running adds one.
  World& Idle(const std::string& vm) {
    observation_.allocations["node-" + vm];
    return *this;
  }
  World& Running(const std::string& vm, std::int64_t cpu = 100,
                 const std::string& job_type = "service") {
    nomad::Allocation allocation;
    allocation.id = vm + "-" + std::to_string(cpu);
    allocation.node_id = "node-" + vm;
    allocation.job_type = job_type;
    allocation.client_status = nomad::ClientStatus::kRunning;
    allocation.desired_status = "run";
    allocation.cpu_shares = cpu;
    allocation.memory_mb = cpu;
    allocation.all_tasks_dead = false;
    observation_.allocations["node-" + vm].push_back(allocation);
    return *this;
  }
  World& NomadUnreadable() {
    observation_.nomad = base::Unavailable("no leader");
    return *this;
  }
  World& Region(const std::string& region) { return observation_.region = region, *this; }
  World& NotNamed(const std::string& vm) { return pool_.action->names.erase(vm), *this; }
  World& WithoutPolicy() { return policy_.reset(), *this; }
  config::PoolPolicy& Policy() { return *policy_; }
  Observation& Raw() { return observation_; }
  std::vector<nomad::Node>& Nodes() { return nodes_; }
  // What the pool knows besides.
  PoolSnapshot& Pool() { return pool_; }
  // For PlanScale: the allocations that were added.
  PlanInputs Inputs() const { return {.allocations = observation_.allocations}; }

  PoolSnapshot Snapshot() {
    EmptyObservation();
    PoolSnapshot snapshot = pool_;
    snapshot.seen = std::make_shared<const scaling::Snapshot>(observation_);
    return snapshot;
  }
  // The observation, linked.
  Observation& Linked() {
    EmptyObservation();
    Link(&observation_);
    return observation_;
  }
  Step StepOf(const std::string& vm) {
    const PoolSnapshot snapshot = Snapshot();
    const VmView* view = snapshot.seen->FindVm(vm);
    return view == nullptr ? Step{} : NextStep(*view, snapshot);
  }

 private:
  // Its policy may have been edited since the last one.
  void EmptyObservation() {
    observation_.linker.reset();
    observation_.SetNodes(nodes_);
    pool_.policy = policy_;
    observation_.policy = policy_;
  }

  Observation observation_;
  std::vector<nomad::Node> nodes_;
  std::optional<config::PoolPolicy> policy_;
  PoolSnapshot pool_;
};

// A joined VM and its ready node, for each name.
inline World PoolOf(const std::vector<std::string>& names) {
  World world;
  for (const std::string& name : names) world.With(Vm(name).Joined()).With(Node(name));
  return world;
}

// The same without work; later names have younger nodes.
inline World IdlePoolOf(const std::vector<std::string>& names) {
  World world;
  std::uint64_t index = 200;
  for (const std::string& name : names) {
    world.With(Vm(name).Joined()).With(Node(name).Index(index++)).Idle(name);
  }
  return world;
}

inline std::vector<std::string> NamesIn(const std::vector<PlannedRemoval>& removals) {
  std::vector<std::string> names;
  names.reserve(removals.size());
  for (const PlannedRemoval& removal : removals) names.push_back(removal.vm);
  return names;
}

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_TEST_SCALING_WORLD_H_
