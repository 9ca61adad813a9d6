// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/observer.h"

#include <map>
#include <set>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/drain.h"

namespace nomad_harvester::scaling {
namespace {

constexpr char kDefaultAttribute[] = "unique.hostname";

nodepool::VmIdentityHints IdentityHintsOf(const VmView& view, const PoolSnapshot& snapshot) {
  const harvester::VirtualMachine& vm = view.vm;
  nodepool::VmIdentityHints hints{
      .name = vm.name, .firmware_uuid = vm.firmware_uuid, .addresses = view.addresses};
  if (vm.nodes.has_value()) {
    hints.node_attribute = vm.nodes->node_attribute;
  } else {
    hints.node_attribute =
        snapshot.policy.has_value() ? snapshot.policy->node_attribute : kDefaultAttribute;
  }
  return hints;
}

// Whether a node belongs to the pool of any VM created by the plugin, or to the policy's.
bool IsOfSomePool(const nomad::Node& node, const PoolSnapshot& snapshot) {
  if (snapshot.policy.has_value() && IdentityOf(*snapshot.policy).Contains(node)) return true;
  for (const VmView& view : snapshot.vms) {
    if (view.member && view.vm.nodes.has_value() && IdentityOf(*view.vm.nodes).Contains(node)) {
      return true;
    }
  }
  return false;
}

void SetUnreadable(const absl::Status& why, PoolSnapshot* snapshot) {
  snapshot->nomad_readable = false;
  snapshot->nomad_problem = base::Message(why);
}

// A cancelled call is not evidence that the system is unreadable.
absl::Status Unreadable(const std::string& system, const absl::Status& why) {
  return absl::IsCancelled(why) ? why : base::Annotate(why, system + " cannot be read");
}

// A marked VM whose node completed our drain: its allocations decide the next step.
bool AwaitsIdle(const VmView& view, const PoolSnapshot& snapshot) {
  const nomad::Node* node = LinkedNode(view, snapshot);
  return view.member && view.vm.mark.has_value() && node != nullptr && !node->draining &&
         nodepool::IsDrainOf(*node, view.vm.mark->action, view.vm.uid);
}

}  // namespace

std::vector<std::size_t> NodesToReadInFull(const PoolSnapshot& snapshot) {
  std::set<std::string> names;
  std::uint64_t oldest_wanting = UINT64_MAX;
  for (const VmView& view : snapshot.vms) {
    names.insert(view.vm.name);
    if (!view.member || harvester::HasJoined(view.vm) ||
        view.link.state != nodepool::LinkState::kNone) {
      continue;
    }
    const std::optional<base::WallTime> deadline = JoinDeadline(view, snapshot);
    if (view.start_failure.has_value() || (deadline.has_value() && snapshot.now >= *deadline)) {
      oldest_wanting =
          std::min(oldest_wanting, view.vm.nodes.has_value() ? view.vm.nodes->index : 0);
    }
  }
  std::map<std::string, int> ready;
  for (const nomad::Node& node : snapshot.nodes) {
    if (node.status == nomad::NodeStatus::kReady) ++ready[nodepool::ShortHostName(node.name)];
  }
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < snapshot.nodes.size(); ++i) {
    const nomad::Node& node = snapshot.nodes[i];
    if (node.full) continue;
    const std::string host = nodepool::ShortHostName(node.name);
    const bool is_ready = node.status == nomad::NodeStatus::kReady;
    const bool could_be_wanted = is_ready && node.create_index > oldest_wanting;
    // If two ready nodes have a VM's name, both must be read in full to identify the VM's node.
    const bool wanted_now = names.contains(host) ? is_ready && ready[host] > 1
                                                 : could_be_wanted || IsOfSomePool(node, snapshot);
    if (wanted_now) wanted.push_back(i);
  }
  return wanted;
}

Observer::Observer(const nomad::NomadClient& nomad, const harvester::VmStore& vms,
                   nodepool::FullNodeCache& cache, ObserverMemory& memory, log::Logger logger)
    : nomad_(nomad), vms_(vms), cache_(cache), memory_(memory), logger_(std::move(logger)) {}

void Observer::Link(PoolSnapshot* snapshot) {
  std::vector<nodepool::VmIdentityHints> all_hints;
  all_hints.reserve(snapshot->vms.size());
  for (const VmView& view : snapshot->vms) all_hints.push_back(IdentityHintsOf(view, *snapshot));
  nodepool::Links links = nodepool::LinkNodes(all_hints, snapshot->nodes);
  for (std::size_t i = 0; i < snapshot->vms.size(); ++i) {
    snapshot->vms[i].link = std::move(links.of_vm[i]);
  }
  snapshot->node_is_linked = std::move(links.node_is_linked);
}

void Observer::ReadNodes(const runtime::Context& context, const BlockingWait& blocking,
                         PoolSnapshot* snapshot) {
  nomad::ReadOptions options;
  options.index = blocking.after_index;
  options.wait = blocking.wait;
  auto nodes = nomad_.ListNodes(context.WithTimeout(blocking.nodes_limit), options);
  snapshot->nomad_readable = true;
  if (!nodes.ok()) return SetUnreadable(nodes.status(), snapshot);
  snapshot->nomad_index = nodes->index;
  snapshot->nodes = std::move(nodes->value);
  cache_.Keep(snapshot->nodes);
  for (nomad::Node& node : snapshot->nodes) cache_.Complete(&node);
}

void Observer::CompleteNodes(const runtime::Context& context, PoolSnapshot* snapshot) {
  bool read = false;
  for (const std::size_t i : NodesToReadInFull(*snapshot)) {
    nomad::Node& stub = snapshot->nodes[i];
    auto full = nomad_.GetNode(context, stub.id);
    if (absl::IsNotFound(full.status())) continue;
    if (!full.ok()) return SetUnreadable(full.status(), snapshot);
    cache_.Remember(full->value);
    cache_.Complete(&stub);
    read = true;
  }
  if (read) Link(snapshot);
}

absl::Status Observer::ReadAllocations(const runtime::Context& context, PoolSnapshot* snapshot) {
  auto all = nomad_.ListAllocations(context);
  if (all.ok()) {
    for (const nomad::Node& node : snapshot->nodes) snapshot->allocations[node.id];
    for (nomad::Allocation& allocation : all->value) {
      snapshot->allocations[allocation.node_id].push_back(std::move(allocation));
    }
    return absl::OkStatus();
  }
  if (!absl::IsPermissionDenied(all.status())) return all.status();
  // The token cannot read every namespace; queries by node return what it may read.
  snapshot->allocations_incomplete = true;
  for (const VmView& view : snapshot->vms) {
    if (!AwaitsIdle(view, *snapshot)) continue;
    const std::string id = LinkedNode(view, *snapshot)->id;
    auto some = nomad_.NodeAllocations(context, id);
    if (some.ok()) snapshot->allocations[id] = std::move(some->value);
  }
  return absl::OkStatus();
}

// One list for all VMs: identity hints for every link, and whether the guest of a down node runs.
// Without it (a token that may not read instances) both stay unknown, and nothing is removed
// because of that.
absl::Status Observer::ReadInstances(const runtime::Context& context, PoolSnapshot* snapshot) {
  auto instances = vms_.ListInstances(context);
  if (!instances.ok()) {
    logger_.Debug("Could not list instances", {{"error", instances.status()}});
    return instances.status();
  }
  std::map<std::string, harvester::VirtualMachineInstance*> by_name;
  for (harvester::VirtualMachineInstance& instance : *instances) by_name[instance.name] = &instance;
  for (VmView& view : snapshot->vms) {
    const auto found = by_name.find(view.vm.name);
    view.instance_runs = found != by_name.end() && harvester::IsRunning(*found->second);
    if (found != by_name.end()) view.addresses = std::move(found->second->addresses);
  }
  return absl::OkStatus();
}

void Observer::ReadNodesOfMarked(const runtime::Context& context, PoolSnapshot* snapshot) {
  for (VmView& view : snapshot->vms) {
    if (!view.member || !view.vm.mark.has_value() || view.vm.mark->node_id.empty() ||
        view.link.state != nodepool::LinkState::kNone) {
      continue;
    }
    const auto by_id = nomad_.GetNode(context, view.vm.mark->node_id);
    view.node_gone = absl::IsNotFound(by_id.status());
    if (!by_id.ok() && context.Done()) return SetUnreadable(by_id.status(), snapshot);
  }
}

void Observer::ReadDetails(const runtime::Context& context, PoolSnapshot* snapshot) {
  CompleteNodes(context, snapshot);
  if (!snapshot->nomad_readable) return;
  bool idle_matters = false;
  for (const VmView& view : snapshot->vms) {
    idle_matters = idle_matters || AwaitsIdle(view, *snapshot);
  }
  if (idle_matters) {
    const absl::Status read = ReadAllocations(context, snapshot);
    // A node whose allocations are unknown is not idle: the VM waits.
    if (!read.ok()) logger_.Debug("Could not list allocations", {{"error", read}});
    if (!read.ok() && context.Done()) return SetUnreadable(read, snapshot);
  }
  ReadNodesOfMarked(context, snapshot);
}

absl::StatusOr<PoolSnapshot> Observer::Observe(const runtime::Context& context, PoolSnapshot base,
                                               const BlockingWait& blocking) {
  PoolSnapshot snapshot = std::move(base);
  ReadNodes(context, blocking, &snapshot);
  auto vms = vms_.ListAll(context);
  if (!vms.ok()) return Unreadable("Harvester", vms.status());
  snapshot.now = vms->server_time.value_or(context.clock().WallNow());
  for (harvester::VirtualMachine& vm : vms->value) {
    VmView view;
    view.member = harvester::IsMember(vm);
    view.vm = std::move(vm);
    snapshot.vms.push_back(std::move(view));
  }
  if (snapshot.nomad_readable) {
    const absl::Status read = ReadInstances(context, &snapshot);
    if (!read.ok() && context.Done()) return Unreadable("Harvester", read);
  }
  Link(&snapshot);
  memory_.Apply(context.clock().Now(), &snapshot);
  if (!snapshot.nomad_readable) return snapshot;
  ReadDetails(context, &snapshot);
  if (absl::Status ended = context.Check(); !ended.ok()) {
    if (snapshot.nomad_readable) return ended;
    return Unreadable("Nomad", base::MakeStatus(ended.code(), snapshot.nomad_problem));
  }
  return snapshot;
}

}  // namespace nomad_harvester::scaling
