// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/observer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/nomad/error.h"
#include "nomad_harvester/scaling/facts.h"

#include "absl/container/flat_hash_map.h"
#include "observation/nomad_reads.h"

namespace nomad_harvester::scaling {
namespace {

// Limits for reading nodes one by one: how many concurrently, and the number of failures after
// which reading stops.
constexpr std::size_t kNodesAtOnce = 4;
constexpr int kMaxFailures = 3;
// The most nodes that one observation reads in full, so that nodes of others delay a pool, but cost
// neither memory nor an observation (rule C6).
constexpr std::size_t kMaxFullReads = 64;

// What holds a drain is read once it has lasted this long, and for a few VMs in each observation.
constexpr base::Duration kSlowDrain = std::chrono::minutes(1);
constexpr std::size_t kMaxDrainsAtOnce = 4;
constexpr base::Duration kDrainWorkLimit = std::chrono::seconds(2);  // of all of them

// Returns the identifiers of the members of the VMs' pools and of the policy's pool.
std::vector<nodepool::PoolIdentity> IdentitiesIn(const Observation& observation) {
  std::vector<nodepool::PoolIdentity> identities;
  const auto add = [&](const nodepool::PoolIdentity& identity) {
    if (std::find(identities.begin(), identities.end(), identity) == identities.end()) {
      identities.push_back(identity);
    }
  };
  if (observation.policy.has_value()) add(IdentityOf(*observation.policy));
  for (const VmView& view : observation.vms) {
    if (view.member && view.vm->nodes.has_value()) add(IdentityOf(*view.vm->nodes));
  }
  return identities;
}

void SetUnreadable(const absl::Status& why, Observation* observation) {
  observation->nomad = base::Unavailable(base::Message(why));
}

// A cancelled call is no evidence that the system is unreadable.
absl::Status Unreadable(const std::string& system, const absl::Status& why) {
  return absl::IsCancelled(why) ? why : base::Annotate(why, system + " cannot be read");
}

// Why reading has ended, with the system that used up its time; OK: it goes on.
absl::Status EndOf(const runtime::Context& context, const Observation& observation) {
  const absl::Status ended = context.Check();
  if (ended.ok() || observation.nomad.ok()) return ended;
  return Unreadable("Nomad", base::MakeStatus(ended.code(), base::Message(observation.nomad)));
}

// Sets `unread_node` of VMs that an unread node could be under another name: the VM is older than
// the node, has an instance but no node, and has the node's identifiers. If there are several such
// nodes, names the youngest.
void NameUnread(const std::map<std::string, std::string>& unread, Observation* observation) {
  if (unread.empty()) return;
  std::vector<const nomad::Node*> nodes;
  for (const nomad::Node& node : observation->nodes()) {
    if (node.status == nomad::NodeStatus::kReady && unread.contains(node.id))
      nodes.push_back(&node);
  }
  std::sort(nodes.begin(), nodes.end(), [](const nomad::Node* a, const nomad::Node* b) {
    return a->create_index > b->create_index;
  });
  for (VmView& view : observation->vms) {
    if (!view.member || view.link.state != nodepool::LinkState::kNone) continue;
    if (!MayHaveInstance(view)) continue;
    const auto could_be_it = std::find_if(nodes.begin(), nodes.end(), [&](const nomad::Node* node) {
      return BelongsToPool(*node, view, observation->policy);
    });
    if (could_be_it == nodes.end()) continue;
    const nomad::Node& node = **could_be_it;
    if (view.vm->nodes.has_value() && view.vm->nodes->index >= node.create_index) continue;
    view.unread_node =
        "node " + node.id + " (" + node.name + "), which could be it: " + unread.at(node.id);
  }
}

// True if the allocations of the VM's node decide its next step: a marked VM whose node completed
// our drain, was never ready or is disconnected, or an unmarked VM that would be removed while its
// node is disconnected.
bool AwaitsIdle(const VmView& view, const Observation& observation) {
  const nomad::Node* node = LinkedNode(view, observation);
  if (!view.member || node == nullptr || node->draining) return false;
  if (!view.vm->has_mark) {
    if (node->status != nomad::NodeStatus::kDisconnected) return false;
    const bool is_broken = !harvester::WasReady(view.vm) && IsPastJoinDeadline(view, observation);
    if (is_broken || !observation.policy.has_value()) return is_broken;
    const auto limit = UnhealthyLimit(view.vm, *observation.policy, view.vm->replaces.has_value());
    return limit.has_value() && view.unhealthy_for >= *limit;
  }
  if (!view.vm->mark.has_value()) return false;
  const harvester::MarkReason reason = view.vm->mark->reason;
  const bool never_ready = reason == harvester::MarkReason::kBroken &&
                           !harvester::WasReady(view.vm) &&
                           node->status == nomad::NodeStatus::kInitializing;
  const bool cut_off =
      !harvester::IsElective(reason) && node->status == nomad::NodeStatus::kDisconnected;
  return never_ready || cut_off || nodepool::IsDrainOf(*node, view.vm->mark->action, view.vm->uid);
}

// Nodes recorded by our VMs come first, then those with the name of one, then the others. Of
// equals those that have not changed for longest come first: a node that registers again and again
// keeps no other waiting.
void OrderReads(const Observation& observation, std::vector<std::size_t>* wanted) {
  std::set<std::string_view> recorded;
  std::set<std::string_view> names;
  for (const VmView& view : observation.vms) {
    recorded.insert(view.vm->joined_node_id);
    names.insert(view.vm->name);
  }
  const auto rank = [&](std::size_t i) {
    const nomad::Node& node = observation.nodes()[i];
    const int group = recorded.contains(node.id)                           ? 0
                      : names.contains(nodepool::ShortHostName(node.name)) ? 1
                                                                           : 2;
    return std::make_pair(group, node.modify_index);
  };
  std::vector<std::pair<std::pair<int, std::uint64_t>, std::size_t>> ranked;
  for (const std::size_t i : *wanted) ranked.emplace_back(rank(i), i);
  std::sort(ranked.begin(), ranked.end());
  for (std::size_t i = 0; i < ranked.size(); ++i) (*wanted)[i] = ranked[i].second;
}

}  // namespace

std::vector<std::size_t> NodesToReadInFull(const Observation& observation) {
  const std::vector<nomad::Node>& nodes = observation.nodes();
  // Names of VMs, and how many nodes that are not down have them.
  absl::flat_hash_map<std::string_view, int, std::hash<std::string_view>> names;
  std::uint64_t oldest_wanting = UINT64_MAX;
  for (const VmView& view : observation.vms) {
    names.emplace(view.vm->name, 0);
    if (!view.member || harvester::WasReady(view.vm) ||
        view.link.state != nodepool::LinkState::kNone) {
      continue;
    }
    if (view.start_failure.has_value() || IsPastJoinDeadline(view, observation)) {
      oldest_wanting =
          std::min(oldest_wanting, view.vm->nodes.has_value() ? view.vm->nodes->index : 0);
    }
  }
  const std::vector<nodepool::PoolIdentity> identities = IdentitiesIn(observation);
  const auto is_of_some_pool = [&](const nomad::Node& node) {
    return std::any_of(identities.begin(), identities.end(),
                       [&](const nodepool::PoolIdentity& i) { return i.Contains(node); });
  };
  std::vector<std::size_t> wanted;
  std::vector<std::pair<std::size_t, std::string_view>> named;  // not down, and has a VM's name
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const nomad::Node& node = nodes[i];
    const bool is_ready = node.status == nomad::NodeStatus::kReady;
    if (const auto name = names.find(nodepool::ShortHostName(node.name)); name != names.end()) {
      if (node.status == nomad::NodeStatus::kDown) continue;
      ++name->second;
      named.emplace_back(i, name->first);
    } else if (!node.full) {
      const bool could_be_wanted = is_ready && node.create_index > oldest_wanting;
      if (could_be_wanted || is_of_some_pool(node)) wanted.push_back(i);
    }
  }
  // Only in full they show which of several is the VM's.
  for (const auto& [i, name] : named) {
    if (!nodes[i].full && names[name] > 1) wanted.push_back(i);
  }
  for (const VmView& view : observation.vms) {
    if (view.link.state != nodepool::LinkState::kAmbiguous) continue;
    for (const std::size_t i : view.link.others) {
      if (!nodes[i].full) wanted.push_back(i);
    }
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

bool IsGone(const absl::Status& read, const harvester::VirtualMachine& vm) {
  if (!absl::IsNotFound(read)) return false;
  const auto error = nomad::GetNomadError(read);
  return error.has_value() && error->index > 0 &&
         error->index >= (vm.nodes.has_value() ? vm.nodes->index : 0);
}

bool IsRetryable(const absl::Status& failed) {
  return absl::IsUnavailable(failed) || absl::IsDeadlineExceeded(failed) ||
         absl::IsCancelled(failed);
}

std::vector<absl::StatusOr<Allocations>> ReadAllocationsOf(const runtime::Context& context,
                                                           runtime::Executor& executor,
                                                           const nomad::NomadClient& nomad,
                                                           const std::vector<std::string>& nodes,
                                                           std::size_t at_once) {
  std::vector<absl::StatusOr<Allocations>> read(nodes.size());
  std::atomic<int> failures = 0;
  const std::vector<absl::Status> outcomes = runtime::ForEachBounded(
      context, executor, nodes.size(), at_once, [&](std::size_t i) -> absl::Status {
        if (failures >= kMaxFailures) return base::Unavailable("others could not be read");
        auto some = nomad.NodeAllocations(context, nodes[i]);
        if (!some.ok()) ++failures;
        NH_RETURN_IF_ERROR(some);
        read[i] = std::move(some->value);
        return absl::OkStatus();
      });
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!outcomes[i].ok()) read[i] = outcomes[i];
  }
  return read;
}

absl::Status CheckListIndex(const VmView& view, const Observation& observation,
                            std::uint64_t index) {
  const harvester::VirtualMachine& vm = view.vm;
  if (!view.member || !vm.nodes.has_value() || IsOtherNomad(vm, observation))
    return absl::OkStatus();
  if (vm.nodes->index <= index) return absl::OkStatus();
  return base::Unavailable(
      "the list of nodes has the index " + std::to_string(index) + ", below the " +
      std::to_string(vm.nodes->index) + " at which VM " + vm.name +
      " was made: another Nomad answers at this address, or one that was restored; check "
      "nomad_address; after a restore run nomad-harvester adopt");
}

namespace {

absl::Status CheckListIndexOfPool(const Observation& observation) {
  for (const VmView& view : observation.vms) {
    if (!observation.pool.empty() && view.vm->pool != observation.pool) continue;
    NH_RETURN_IF_ERROR(CheckListIndex(view, observation, observation.nomad_index));
  }
  return absl::OkStatus();
}

}  // namespace

bool ListIsOlderThanVms(const Observation& observation) {
  return observation.nomad.ok() && !CheckListIndexOfPool(observation).ok();
}

void CheckIndex(Observation* observation) {
  if (!observation->nomad.ok()) return;
  // Without a record there is nothing to compare with the keys.
  const bool compares = std::any_of(
      observation->vms.begin(), observation->vms.end(),
      [](const VmView& view) { return view.member && !view.vm->nomad_cluster.empty(); });
  if (compares && !observation->nomad_cluster.ok()) {
    return SetUnreadable(observation->nomad_cluster.status(), observation);
  }
  if (const absl::Status usable = CheckListIndexOfPool(*observation); !usable.ok()) {
    SetUnreadable(usable, observation);
  }
}

void TakeNodes(const absl::StatusOr<nomad::Indexed<NodeList>>& nodes,
               const absl::StatusOr<std::string>& cluster, Observation* observation) {
  if (!nodes.ok()) return SetUnreadable(nodes.status(), observation);
  if (absl::IsCancelled(cluster.status())) return SetUnreadable(cluster.status(), observation);
  observation->nomad_cluster = cluster;
  observation->nomad = absl::OkStatus();
  observation->nomad_index = nodes->index;
  observation->node_list = nodes->value;
}

Observer::Observer(const nomad::NomadClient& nomad, NomadReads& reads,
                   const harvester::VmStore& vms, ObserverMemory& memory,
                   runtime::Executor& executor, log::Logger logger)
    : nomad_(nomad),
      reads_(reads),
      vms_(vms),
      memory_(memory),
      executor_(executor),
      logger_(std::move(logger)) {}

void Observer::ReadNodes(const runtime::Context& context, const BlockingWait& blocking,
                         Observation* observation) {
  const runtime::Context limited = context.WithTimeout(blocking.nodes_limit);
  const auto nodes =
      reads_.ListNodes(limited, {.index = blocking.after_index, .wait = blocking.wait});
  TakeNodes(nodes, nodes.ok() ? reads_.Cluster(limited) : nodes.status(), observation);
}

bool Observer::NeedAttributes(const Observation& observation) const {
  bool is_new =
      observation.policy.has_value() && reads_.NeedAttribute(observation.policy->node_attribute);
  for (const VmView& view : observation.vms) {
    if (!view.member || !view.vm->nodes.has_value()) continue;
    is_new = reads_.NeedAttribute(view.vm->nodes->node_attribute) || is_new;
  }
  return is_new && observation.nomad.ok();
}

void Observer::CompleteNodes(const runtime::Context& context, Observation* observation) {
  std::vector<std::size_t> wanted = NodesToReadInFull(*observation);
  OrderReads(*observation, &wanted);
  const std::map<std::string, std::string> waiting = memory_.UnreadUntil(context.clock().Now());
  std::vector<nomad::Node> full(wanted.size());
  std::atomic<int> failures = 0;
  std::atomic<std::size_t> reads = 0;
  const std::vector<absl::Status> read = runtime::ForEachBounded(
      context, executor_, wanted.size(), kNodesAtOnce, [&](std::size_t i) -> absl::Status {
        const nomad::Node& stub = observation->nodes()[wanted[i]];
        // ABORTED is no failure: the node was not read, or must be read again.
        const auto failed = waiting.find(stub.id);
        if (failed != waiting.end()) return absl::AbortedError(failed->second);
        if (failures >= kMaxFailures) return absl::AbortedError("others could not be read");
        if (reads.fetch_add(1) >= kMaxFullReads) {
          return absl::AbortedError("many other nodes are read before it");
        }
        auto node = reads_.GetFullNode(context, nomad_, stub);
        if (absl::IsNotFound(node.status())) return absl::OkStatus();
        if (!node.ok()) ++failures;
        NH_RETURN_IF_ERROR(node);
        if (node->modify_index != stub.modify_index) {
          return absl::AbortedError("it has changed since the list was read");
        }
        full[i] = *std::move(node);
        return absl::OkStatus();
      });
  if (absl::Status ended = context.Check(); !ended.ok()) return SetUnreadable(ended, observation);
  std::vector<nomad::Node> nodes;  // copied when the first is completed, because the list is shared
  std::map<std::string, std::string> unread;
  std::map<std::string, std::string> failed;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string& id = observation->nodes()[wanted[i]].id;
    if (!read[i].ok()) unread[id] = base::Message(read[i]);
    if (!read[i].ok() && !absl::IsAborted(read[i])) failed[id] = unread[id];
    if (!full[i].full) continue;
    if (nodes.empty()) nodes = observation->nodes();
    nodes[wanted[i]].attributes = std::move(full[i].attributes);
    nodes[wanted[i]].meta = std::move(full[i].meta);
    nodes[wanted[i]].full = true;
  }
  if (!nodes.empty()) {
    observation->SetNodes(std::move(nodes));
    Link(observation);
  }
  memory_.RecordUnread(context.clock().Now(), failed, unread, logger_);
  NameUnread(unread, observation);
}

absl::StatusOr<AllocationList> Observer::ReadAllocations(const runtime::Context& context) const {
  AllocationList list;
  const auto all = reads_.ListPlacements(context);
  list.incomplete = absl::IsPermissionDenied(all.status());
  if (list.incomplete) return list;
  NH_RETURN_IF_ERROR(all);
  for (const nomad::Allocation& allocation : (*all)->value) {
    list.by_node[allocation.node_id].push_back(allocation);
  }
  return list;
}

absl::Status Observer::ReadIdleness(const runtime::Context& context,
                                    Observation* observation) const {
  std::set<std::string> awaited;
  bool without_drain = false;
  for (const VmView& view : observation->vms) {
    if (!AwaitsIdle(view, *observation)) continue;
    const nomad::Node& node = *LinkedNode(view, *observation);
    awaited.insert(node.id);
    without_drain |=
        !view.vm->has_mark || !nodepool::IsDrainOf(node, view.vm->mark->action, view.vm->uid);
  }
  if (awaited.empty()) return absl::OkStatus();
  // If Nomad completes no drain, the list alone must prove that nothing runs.
  if (without_drain) {
    const auto read_job = nomad_.VerifyReadJob(context);
    observation->allocations_complete = read_job.ok() && *read_job == nomad::ReadJob::kEverywhere;
  }
  const auto all = reads_.ListAllocations(context);
  if (absl::Status ended = context.Check(); !ended.ok()) return ended;
  if (IsRetryable(all.status())) {
    logger_.Debug("Could not list allocations", {{"error", all.status()}});
    return absl::OkStatus();
  }
  if (!all.ok()) {
    // The token cannot read every namespace, or the list is too large: queries by node return what
    // it may read.
    const bool warn =
        !memory_.SetAllocationsUnread(true) && !absl::IsPermissionDenied(all.status());
    logger_.Log(warn ? log::Level::kWarn : log::Level::kDebug,
                "Could not list all allocations; asking for those of each drained node",
                {{"error", all.status()}});
    const std::vector<std::string> nodes(awaited.begin(), awaited.end());
    auto read = ReadAllocationsOf(context, executor_, nomad_, nodes, kNodesAtOnce);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (read[i].ok()) observation->allocations[nodes[i]] = *std::move(read[i]);
    }
    return context.Check();
  }
  memory_.SetAllocationsUnread(false);
  for (const std::string& id : awaited) observation->allocations[id];
  for (const nomad::Allocation& allocation : (*all)->value) {
    const auto found = observation->allocations.find(allocation.node_id);
    if (found != observation->allocations.end()) found->second.push_back(allocation);
  }
  return absl::OkStatus();
}

// The right to read a namespace is optional. After any other failure the next Observation reads it
// again.
void Observer::ReadHarvester(const runtime::Context& context) const {
  auto uid = vms_.NamespaceUid(context);
  if (uid.ok() || kube::IsForbidden(uid.status()))
    memory_.SetHarvester(std::move(uid).value_or(""));
}

absl::StatusOr<Observer::VmsAndInstances> Observer::ReadVmsAndInstances(
    const runtime::Context& context, bool with_instances) const {
  VmsAndInstances lists{.vms = {}, .instances = base::Unavailable("not read")};
  const std::size_t reads = !with_instances ? 1 : memory_.KnowsHarvester() ? 2 : 3;
  const auto read =
      runtime::ForEachBounded(context, executor_, reads, reads, [&](std::size_t i) -> absl::Status {
        if (i == 2) {
          ReadHarvester(context);
          return absl::OkStatus();
        }
        if (i == 1) {
          lists.instances = vms_.ListInstances(context);
          return lists.instances.status();
        }
        NH_ASSIGN_OR_RETURN(lists.vms, vms_.ListAll(context));
        return absl::OkStatus();
      });
  if (!read[0].ok()) return Unreadable("Harvester", read[0]);
  if (!with_instances || read[1].ok()) return lists;
  if (context.Done()) return Unreadable("Harvester", read[1]);
  logger_.Debug("Could not list instances", {{"error", read[1]}});
  return lists;
}

// Fills in the data of instances: identity hints for every link, whether the guest of a down node
// runs, and on which host. Without the list (if the token lacks the right to read instances) these
// stay unknown, and nothing is removed because of them.
void Observer::SetInstances(std::vector<harvester::VirtualMachineInstance> instances,
                            Observation* observation) {
  std::map<std::string, harvester::VirtualMachineInstance*> by_name;
  for (harvester::VirtualMachineInstance& instance : instances) by_name[instance.name] = &instance;
  for (VmView& view : observation->vms) {
    const auto found = by_name.find(view.vm->name);
    view.instance_runs = found != by_name.end() && harvester::IsRunning(*found->second);
    if (found == by_name.end()) continue;
    view.addresses = found->second->addresses;
    if (*view.instance_runs) view.host = found->second->host;
    if (!harvester::HasJoined(view.vm)) view.instance = std::move(*found->second);
  }
}

void Observer::ReadNodesOfMarked(const runtime::Context& context, Observation* observation) {
  for (VmView& view : observation->vms) {
    if (!view.member || !view.vm->mark.has_value() || view.vm->mark->node_id.empty() ||
        view.link.state != nodepool::LinkState::kNone) {
      continue;
    }
    const auto by_id = nomad_.GetNode(context, view.vm->mark->node_id);
    view.node_gone = IsGone(by_id.status(), view.vm);
    if (view.node_gone) view.unread_node.clear();  // the unread node is another one (rule L1)
    if (!by_id.ok() && context.Done()) return SetUnreadable(by_id.status(), observation);
  }
}

// Reads what holds drains that are slow or late. Nothing depends on it.
void Observer::ReadDrainWork(const runtime::Context& context, Observation* observation) const {
  std::size_t left = kMaxDrainsAtOnce;
  const runtime::Context limited = context.WithTimeout(kDrainWorkLimit);
  for (VmView& view : observation->vms) {
    const std::optional<harvester::Mark>& mark = view.vm->mark;
    const nomad::Node* node = LinkedNode(view, *observation);
    if (!view.member || !mark.has_value() || node == nullptr) continue;
    if (!observation->pool.empty() && view.vm->pool != observation->pool) continue;
    if (!nodepool::IsDrainOf(*node, mark->action, view.vm->uid)) continue;
    const base::WallTime due = mark->marked_at + kSlowDrain;
    if (observation->now < std::min(due, LateAt(*mark).value_or(due)) || left == 0) continue;
    if (!memory_.TakeDrainWorkIsDue(context.clock().Now(), view.vm->uid)) continue;
    --left;
    const auto allocations = nomad_.NodeAllocations(limited, node->id);
    if (!allocations.ok()) continue;
    view.drain_held_by = nodepool::WorkOn(allocations->value, mark->ignore_system);
    memory_.RecordDrainWork(view.vm->uid, view.drain_held_by);
  }
}

void Observer::ReadDetails(const runtime::Context& context, Observation* observation) {
  CompleteNodes(context, observation);
  if (!observation->nomad.ok()) return;
  if (absl::Status ended = ReadIdleness(context, observation); !ended.ok()) {
    return SetUnreadable(ended, observation);
  }
  ReadNodesOfMarked(context, observation);
  ReadDrainWork(context, observation);
}

absl::StatusOr<Observation> Observer::Observe(const runtime::Context& context, Observation base,
                                              const BlockingWait& blocking) {
  Observation observation = std::move(base);
  NH_RETURN_IF_ERROR(context.Check());
  ReadNodes(context, blocking, &observation);
  NH_RETURN_IF_ERROR(EndOf(context, observation));
  NH_ASSIGN_OR_RETURN(VmsAndInstances lists, ReadVmsAndInstances(context, observation.nomad.ok()));
  observation.own_now = context.clock().WallNow();
  observation.now = lists.vms.server_time.value_or(observation.own_now);
  SetVms(std::make_shared<const std::vector<harvester::VirtualMachine>>(std::move(lists.vms.value)),
         &observation);
  // What was kept of a node may lack an attribute that is needed now.
  if (NeedAttributes(observation) || ListIsOlderThanVms(observation)) {
    ReadNodes(context, {.after_index = 0, .wait = {}, .nodes_limit = blocking.nodes_limit},
              &observation);
  }
  CheckIndex(&observation);
  if (observation.nomad.ok() && lists.instances.ok()) {
    SetInstances(*std::move(lists.instances), &observation);
  }
  Link(&observation);
  memory_.pending_reasons().ReadPods(context, vms_, logger_, &observation);
  memory_.Apply(context.clock().Now(), &observation);
  observation.harvester_unread = !memory_.KnowsHarvester();
  if (!observation.nomad.ok()) return observation;
  memory_.pending_reasons().ApplyVolumes(context, vms_, logger_, &observation);
  ReadDetails(context, &observation);
  NH_RETURN_IF_ERROR(EndOf(context, observation));
  return observation;
}

}  // namespace nomad_harvester::scaling
