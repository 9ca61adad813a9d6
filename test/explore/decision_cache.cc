// SPDX-License-Identifier: Apache-2.0
#include "decision_cache.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/observer.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/replacement.h"
#include "nomad_harvester/scaling/status_report.h"

namespace nomad_harvester::explore {
namespace {

using scaling::PoolSnapshot;
using scaling::Step;
using scaling::StepKind;
using scaling::VmView;

constexpr char kClass[] = "web";
constexpr char kDriver[] = "docker";
const base::WallTime kNow = base::ParseRfc3339("2026-03-01T12:00:00Z").value();

std::string Letter(int slot) { return std::string(1, static_cast<char>('a' + slot)); }
std::string Uid(int slot, Bits generation) {
  return "uid-" + Letter(slot) + std::to_string(generation);
}
std::string NodeId(int slot, int node) { return "node-" + Letter(slot) + std::to_string(node); }
std::string ActionId(Bits action) { return "action-" + std::to_string(action); }
std::string StartedAt(int node, Bits number) {
  return "start-" + std::to_string(node) + "-" + std::to_string(number);
}

nomad::NodeStatus StatusOf(Power power) {
  switch (power) {
    case Power::kInitializing:
    case Power::kInitializingForLong:
      return nomad::NodeStatus::kInitializing;
    case Power::kReady:
      return nomad::NodeStatus::kReady;
    case Power::kDown:
    case Power::kDownForLong:
      return nomad::NodeStatus::kDown;
    case Power::kDisconnected:
    case Power::kDisconnectedForLong:
      return nomad::NodeStatus::kDisconnected;
  }
  return nomad::NodeStatus::kUnknown;
}

nomad::DrainStatus StatusOf(DrainState state) {
  switch (state) {
    case DrainState::kDraining:
      return nomad::DrainStatus::kDraining;
    case DrainState::kComplete:
      return nomad::DrainStatus::kComplete;
    case DrainState::kCanceled:
      return nomad::DrainStatus::kCanceled;
    case DrainState::kNone:
      break;
  }
  return nomad::DrainStatus::kUnknown;
}

nomad::Node NodeOf(const Node& node, int slot, int incarnation, const std::string& vm, bool purge) {
  nomad::Node result;
  result.id = NodeId(slot, incarnation);
  result.name = node.misnamed != 0 ? "localhost" + Letter(slot) : vm;
  result.attributes["unique.hostname"] = result.name;
  result.node_class = kClass;
  result.datacenter = "dc1";
  result.node_pool = "default";
  result.full = true;
  result.status = StatusOf(node.power);
  result.eligible = node.eligible != 0;
  result.draining = node.Draining();
  result.drivers = {{.name = kDriver, .detected = true, .healthy = node.sick == 0}};
  result.create_index = 200 + static_cast<std::uint64_t>(incarnation);
  if (node.drain == DrainState::kNone) return result;
  nomad::LastDrain drain;
  drain.status = StatusOf(node.drain);
  drain.started_at = StartedAt(incarnation, node.number);
  drain.updated_at = kNow - std::chrono::minutes(1);
  if (node.ours != 0) {
    drain.meta = nodepool::ToMeta({.action = ActionId(node.action),
                                   .vm = vm,
                                   .vm_uid = Uid(slot, node.uid),
                                   .pool = "default/web",
                                   .purge = purge,
                                   .was_ineligible = node.was != 0});
  }
  result.last_drain = std::move(drain);
  return result;
}

// One on a node that is disconnected is within the time that its group gives it: it runs again when
// the node returns.
nomad::Allocation AllocationOn(const std::string& node_id, const Node& node) {
  nomad::Allocation allocation;
  allocation.id = "allocation-" + node_id;
  allocation.node_id = node_id;
  allocation.job_type = "service";
  allocation.client_status =
      IsDisconnected(node.power) ? nomad::ClientStatus::kUnknown : nomad::ClientStatus::kRunning;
  allocation.desired_status = node.work == Work::kStopping ? "stop" : "run";
  allocation.all_tasks_dead = false;
  return allocation;
}

std::string TextOf(Keys keys) {
  switch (keys) {
    case Keys::kNone:
      break;
    case Keys::kFirst:
      return "key-1";
    case Keys::kSecond:
      return "key-2,key-1";
    case Keys::kThird:
      return "key-3,key-2";
    case Keys::kOther:
      return "other-key";
  }
  return "";
}

harvester::NodesRecord Birth() {
  harvester::NodesRecord nodes;
  nodes.node_class = kClass;
  nodes.index = 100;
  return nodes;
}

harvester::MarkReason ReasonOf(Reason reason) {
  switch (reason) {
    case Reason::kScaleIn:
      break;
    case Reason::kBroken:
      return harvester::MarkReason::kBroken;
    case Reason::kUnhealthy:
      return harvester::MarkReason::kUnhealthy;
    case Reason::kReplace:
      return harvester::MarkReason::kReplace;
  }
  return harvester::MarkReason::kScaleIn;
}

harvester::Mark MarkOf(const Vm& vm, int slot, const Configuration& configuration) {
  harvester::Mark mark;
  mark.action = ActionId(vm.mark_action);
  mark.reason = ReasonOf(vm.mark_reason);
  mark.vm_uid = Uid(slot, vm.mark_uid);
  if (vm.mark_node != kNoNode) mark.node_id = NodeId(slot, static_cast<int>(vm.mark_node));
  mark.marked_at = kNow - std::chrono::minutes(1);
  mark.drain_deadline = {.kind = configuration.endless ? harvester::DrainDeadline::Kind::kNone
                                                       : harvester::DrainDeadline::Kind::kAt,
                         .at = vm.late != 0  ? kNow - std::chrono::hours(1)
                               : vm.due != 0 ? kNow - std::chrono::minutes(1)
                                             : kNow + std::chrono::minutes(10)};
  mark.grace = std::chrono::minutes(5);
  mark.force = configuration.force;
  mark.purge = configuration.purge;
  mark.nodes = Birth();
  return mark;
}

VmView VmOf(const Vm& vm, int slot, std::string name, const Configuration& configuration) {
  harvester::VirtualMachine seen;
  seen.ns = "default";
  seen.pool = "web";
  seen.name = std::move(name);
  seen.uid = Uid(slot, vm.uid);
  seen.resource_version = "7";
  seen.firmware_uuid = "firmware-" + Letter(slot);
  seen.created_at = kNow - (vm.overdue != 0 ? std::chrono::hours(9) : std::chrono::hours(1));
  seen.join_timeout = harvester::JoinTimeout{.none = false, .limit = std::chrono::hours(8)};
  seen.nodes = Birth();
  if (vm.phase == Phase::kTerminating) seen.deleted_at = kNow;
  if (vm.joined != 0) {
    seen.joined_at = kNow - std::chrono::minutes(50);
    seen.joined_node_id = NodeId(slot, static_cast<int>(vm.joined_node));
    seen.awaits_ready = vm.was_ready == 0;
    if (vm.was_ready != 0) seen.ready_at = kNow - std::chrono::minutes(49);
  }
  seen.has_mark = vm.mark != MarkKind::kNone;
  if (vm.mark == MarkKind::kOurs) seen.mark = MarkOf(vm, slot, configuration);
  if (vm.recorded != 0) {
    seen.rolled_back = ActionId(vm.recorded_action) + "@" +
                       StartedAt(static_cast<int>(vm.recorded_node), vm.recorded_number);
  }
  seen.nomad_cluster = TextOf(vm.keys);
  seen.instance_exists = vm.running != 0;
  seen.ready = vm.running != 0 && vm.held == 0;
  seen.printable_status = vm.running == 0 ? "Stopped" : vm.held != 0 ? "Paused" : "Running";
  if (vm.wished != 0) seen.replace_request = "new image";
  if (vm.undone != 0) {
    seen.removal_undone =
        harvester::CancelledRemoval{.at = kNow - std::chrono::minutes(1), .why = "it stays"};
  }
  if (vm.waits != 0) {
    seen.run_strategy = harvester::kHalted;
    seen.join_timeout = harvester::JoinTimeout{.none = true, .limit = {}};
  }
  VmView view;
  view.vm = std::move(seen);
  view.member = vm.unmanaged == 0;
  view.node_gone = vm.node_gone != 0;
  const bool waits = configuration.replaces && vm.waited == 0;
  view.awaited_for = waits ? std::chrono::hours(0) : std::chrono::hours(1);
  view.drain_known_for = std::chrono::hours(24);  // the model's processes watch long enough
  if (vm.runs != Answer::kUnknown) view.instance_runs = vm.runs == Answer::kYes;
  if (vm.failing != 0) view.start_failure = harvester::StartFailure{.reason = "no image"};
  return view;
}

config::PoolPolicy PolicyOf(const View& view, const Configuration& configuration) {
  config::PoolPolicy policy;
  policy.pool = "web";
  policy.node_class = view.elsewhere != 0 ? "other" : kClass;
  policy.name_prefix = "web";
  policy.node_purge = configuration.purge;
  policy.force_after_deadline = configuration.force;
  policy.ready_drivers = {kDriver};
  policy.max_surge = configuration.old_first ? 0 : 1;
  policy.max_unavailable = configuration.old_first ? 1 : 0;
  if (configuration.replace_unhealthy) policy.replace_unhealthy_after = std::chrono::minutes(9);
  policy.selector = policy::SelectorStrategy::kNewestCreateIndex;
  policy.on_join_timeout =
      configuration.keep_broken ? config::OnJoinTimeout::kKeep : config::OnJoinTimeout::kDelete;
  return policy;
}

// Sets the annotation `replaces` of the new VMs: it names the one that is `old`, which may be gone.
void SetReplaces(const View& view, const Labels& labels, scaling::Observation* observation) {
  harvester::Replaces replaces{.vm = "web-gone", .uid = "uid-gone", .reason = {}};
  for (int slot = 0; slot < kMaxVms; ++slot) {
    const Vm& vm = view.slots[static_cast<std::size_t>(slot)].vm;
    if (vm.old == 0) continue;
    replaces.vm = VmName(labels[static_cast<std::size_t>(slot)]);
    replaces.uid = Uid(slot, vm.uid);
  }
  auto next = observation->vms.begin();
  for (const ObservedVm& seen : view.slots) {
    if (!seen.vm.Exists()) continue;
    replaces.start = seen.vm.waits != 0 ? "RerunOnFailure" : "";
    replaces.reason.kind =
        seen.vm.for_dead != 0 ? scaling::ReplaceKind::kUnhealthy : scaling::ReplaceKind::kRequested;
    if (seen.vm.replaces != 0) next->vm.Change().replaces = replaces;
    ++next;
  }
}

// Slot and incarnation of a node's ID.
int SlotOfNode(const std::string& id) { return id[5] - 'a'; }
std::uint8_t IncarnationOf(const std::string& id) {
  return id.empty() ? static_cast<std::uint8_t>(kNoNode) : static_cast<std::uint8_t>(id[6] - '0');
}
int SlotOfVm(const std::string& name) { return name[4] - 'a'; }
Power PowerOf(const nomad::Node& node, const View& view) {
  const ObservedVm& seen = view.slots[static_cast<std::size_t>(SlotOfNode(node.id))];
  return seen.nodes[IncarnationOf(node.id)].power;
}
std::uint8_t Bit(int slot) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(slot)); }
bool Has(std::uint8_t set, int slot) { return (set & Bit(slot)) != 0; }

}  // namespace

std::string VmName(int slot) { return "web-" + Letter(slot); }

std::uint64_t HashBytes(const void* data, std::size_t size, std::uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t hash = seed ^ 0x9E3779B97F4A7C15U;
  for (; size >= sizeof(std::uint64_t); size -= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    bytes += sizeof word;
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDU;
    hash ^= hash >> 32U;
  }
  hash *= 0xC4CEB9FE1A85EC53U;
  return hash ^ (hash >> 29U);
}

std::size_t DecisionCache::Hash::operator()(const View& view) const {
  return HashBytes(&view, sizeof view, 1);
}
bool DecisionCache::Same::operator()(const View& a, const View& b) const {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

DecisionCache::DecisionCache(const Configuration& configuration, const Mutation& mutation)
    : configuration_(configuration), rules_(RulesUnder(mutation)) {}

PoolSnapshot DecisionCache::SnapshotOf(const View& view, const Labels& labels) const {
  PoolSnapshot snapshot;
  snapshot.key = {.ns = "default", .pool = "web"};
  snapshot.policy = PolicyOf(view, configuration_);
  snapshot.lease_cluster = TextOf(static_cast<Keys>(view.lease_keys));
  if (view.named != 0 || view.create != 0 || view.cancel != 0) {
    snapshot.action = harvester::LeaseAction{};
  }
  scaling::Observation observation = scaling::EmptyObservation("", "", snapshot.policy);
  observation.now = kNow;
  observation.nomad = view.readable != 0 ? absl::OkStatus() : base::Unavailable("no answer");
  observation.allocations_complete = true;
  observation.nomad_index = 300;
  const auto keys = static_cast<Keys>(view.keys);
  if (keys != Keys::kNone) observation.nomad_cluster = TextOf(keys);
  std::vector<nomad::Node> nodes;
  for (int slot = 0; slot < kMaxVms; ++slot) {
    const ObservedVm& seen = view.slots[static_cast<std::size_t>(slot)];
    const std::string name = VmName(labels[static_cast<std::size_t>(slot)]);
    if (seen.vm.Exists()) {
      observation.vms.push_back(VmOf(seen.vm, slot, name, configuration_));
      const Node& own = seen.nodes[seen.vm.joined_node];
      observation.vms.back().node_is_lost = seen.vm.joined != 0 && own.present != 0 &&
                                            own.power == Power::kDownForLong &&
                                            seen.vm.running != 0 && seen.vm.held == 0;
      if (Has(view.refused, slot))
        observation.vms.back().removal_refused_for = std::chrono::minutes(1);
    }
    for (int n = 0; n < kNodesPerVm; ++n) {
      const Node& node = seen.nodes[static_cast<std::size_t>(n)];
      if (node.present == 0) continue;
      nodes.push_back(NodeOf(node, slot, n, name, configuration_.purge));
      if (node.work == Work::kUnread) continue;
      auto& allocations = observation.allocations[NodeId(slot, n)];
      if (node.work != Work::kIdle) {
        allocations.push_back(AllocationOn(NodeId(slot, n), node));
      }
    }
    if (Has(view.named, slot)) snapshot.action->names.insert(name);
    if (Has(view.create, slot)) snapshot.action->create[name] = "action";
    if (Has(view.cancel, slot)) snapshot.action->cancel.insert(name);
  }
  SetReplaces(view, labels, &observation);
  observation.SetNodes(std::move(nodes));
  scaling::Link(&observation);
  for (VmView& vm : observation.vms) {
    // Times are either short or long in the model: a node that has been down for two minutes has
    // been down for longer than any limit.
    const nomad::Node* node = LinkedNode(vm, observation);
    if (node != nullptr) vm.node_drained_for = std::chrono::hours(1);
    const Power power = node != nullptr ? PowerOf(*node, view) : Power::kReady;
    const bool silent = IsSilentForLong(power);
    if (silent) vm.node_down_for = std::chrono::hours(1);
    if (node != nullptr && !silent && power != Power::kInitializingForLong) continue;
    vm.unhealthy_for = std::chrono::hours(1);
  }
  snapshot.seen = std::make_shared<const scaling::Snapshot>(std::move(observation));
  return snapshot;
}

void DecisionCache::SetReplacement(const View& view, const PoolSnapshot& snapshot,
                                   Decision* decision) const {
  decision->count = static_cast<std::uint8_t>(CountOf(snapshot));
  if (!configuration_.replaces) return;
  scaling::PoolRecord record;
  if (view.stopped != 0) record.replacement.emplace();
  const auto [vms, blocked_reason] = QueueOfReplacements(snapshot, record, {});
  if (!vms.empty() && !blocked_reason.has_value()) {
    const int slot = SlotOfVm(vms[0].vm->vm->name);
    decision->replaces = view.slots[static_cast<std::size_t>(slot)].vm.old != 0;
    decision->for_dead = vms[0].is_unhealthy();
  }
  decision->needs_resumption = decision->needs_resumption || decision->replaces;
  const std::string name = PlanCreations(snapshot, 1)[0].name;
  if (!name.empty()) decision->reuse = Bit(SlotOfVm(name));
}

Decision DecisionCache::Compute(const View& view) const {
  const scaling::Decisions decisions(SnapshotOf(view, kOwnNames), rules_);
  const PoolSnapshot& snapshot = decisions.snapshot();
  Decision decision;
  decision.other_cluster = !CheckCluster(snapshot).ok();
  decision.new_keys = !NewKeysForLease(snapshot).empty();
  // Status wakes by the real rules.
  decision.needs_resumption = !decision.other_cluster &&
                              (decision.new_keys || NeedsResumption(scaling::Decisions(snapshot)));
  SetReplacement(view, snapshot, &decision);
  decision.removals_wait = snapshot.mass_loss().alarming || IsOtherClusterByLease(snapshot);
  for (const auto& [vm, step] : decisions.all()) {
    const int slot = SlotOfVm(vm->vm->name);
    Advice& advice = decision.vms[static_cast<std::size_t>(slot)];
    advice.kind = step.kind;
    advice.row = step.row;
    // A candidate may be the node of another slot; then it is only reported.
    const bool own = !step.node_id.empty() && SlotOfNode(step.node_id) == slot;
    advice.node = own ? IncarnationOf(step.node_id) : static_cast<std::uint8_t>(kNoNode);
    advice.flag = step.mark_eligible || step.was_ineligible || step.node_is_ready;
    advice.broken = IsBroken(*vm, snapshot);
    advice.other_nomad = IsOtherNomad(vm->vm, snapshot.observation());
    const nomad::Node* node = LinkedNode(*vm, snapshot);
    if (node != nullptr) advice.linked = IncarnationOf(node->id);
    if (ShouldRecordCluster(vm->vm, node != nullptr, snapshot.observation())) {
      advice.records = static_cast<Keys>(view.keys);
    }
  }
  for (const scaling::OrphanedNode& gone : decisions.to_purge()) {
    const int slot = SlotOfNode(gone.node->id);
    decision.purge[static_cast<std::size_t>(slot)][IncarnationOf(gone.node->id)] = true;
  }
  return decision;
}

const Decision& DecisionCache::Decide(const View& view) {
  const auto found = decisions_.find(view);
  if (found != decisions_.end()) return found->second;
  return decisions_.emplace(view, Compute(view)).first->second;
}

const std::vector<Plan>& DecisionCache::PlanFor(const View& view, int wanted) {
  auto& plans = plans_[static_cast<std::size_t>(wanted)];
  const auto found = plans.find(view);
  if (found != plans.end()) return found->second;
  std::vector<Plan> result;
  Labels labels = kOwnNames;
  do {
    const PoolSnapshot seen = SnapshotOf(view, labels);
    const std::vector<const VmView*> pending = ReplacementsToCount(seen, wanted);
    const PoolSnapshot snapshot = WithoutReplacements(seen, pending);
    const auto planned =
        PlanScale(snapshot, wanted, {.newly_counted = CountOf(snapshot) - CountOf(seen)});
    Plan plan;
    plan.ok = planned.ok();
    if (planned.ok()) {
      const auto slot_of = [&](const std::string& name) {
        const auto slot = std::find(labels.begin(), labels.end(), SlotOfVm(name));
        return static_cast<int>(slot - labels.begin());
      };
      plan.nothing = planned->direction == scaling::Direction::kNone;
      for (const VmView* each : pending) {
        plan.to_count = static_cast<std::uint8_t>(plan.to_count | Bit(slot_of(each->vm->name)));
      }
      plan.from = static_cast<std::uint8_t>(planned->from);
      plan.to = static_cast<std::uint8_t>(planned->to);
      for (const std::string& name : planned->cancel_removals) {
        plan.cancels = static_cast<std::uint8_t>(plan.cancels | Bit(slot_of(name)));
      }
      for (const auto& removal : planned->remove) {
        plan.remove = static_cast<std::uint8_t>(plan.remove | Bit(slot_of(removal.vm)));
      }
      for (const auto& creation : planned->create) {
        if (creation.name.empty()) {
          ++plan.new_names;
        } else {
          plan.reuse = static_cast<std::uint8_t>(plan.reuse | Bit(slot_of(creation.name)));
        }
      }
    }
    if (std::find(result.begin(), result.end(), plan) == result.end()) result.push_back(plan);
  } while (std::next_permutation(labels.begin(), labels.end()));
  return plans.emplace(view, std::move(result)).first->second;
}

}  // namespace nomad_harvester::explore
