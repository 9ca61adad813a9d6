#include "nomad_harvester/scaling/observer.h"

#include <set>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/drain.h"

namespace nomad_harvester::scaling {
namespace {

constexpr char kDefaultAttribute[] = "unique.hostname";

nodepool::VmWitness WitnessOf(const harvester::VirtualMachine& vm, const PoolSnapshot& snapshot) {
  nodepool::VmWitness witness{.name = vm.name, .firmware_uuid = vm.firmware_uuid};
  if (vm.nodes.has_value()) {
    witness.node_attribute = vm.nodes->node_attribute;
  } else {
    witness.node_attribute =
        snapshot.policy.has_value() ? snapshot.policy->node_attribute : kDefaultAttribute;
  }
  return witness;
}

// Whether a node is of a pool that some VM of ours was made for, or of the policy's.
bool IsOfSomePool(const nomad::Node& node, const PoolSnapshot& snapshot) {
  if (snapshot.policy.has_value() && IdentityOf(*snapshot.policy).Contains(node)) return true;
  for (const VmView& view : snapshot.vms) {
    if (view.member && view.vm.nodes.has_value() && IdentityOf(*view.vm.nodes).Contains(node)) {
      return true;
    }
  }
  return false;
}

// A marked VM whose node is drained by us to the end: its allocations decide what comes next.
bool AwaitsQuiet(const VmView& view, const PoolSnapshot& snapshot) {
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
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < snapshot.nodes.size(); ++i) {
    const nomad::Node& node = snapshot.nodes[i];
    if (node.full) continue;
    const std::string host = base::AsciiLower(node.name.substr(0, node.name.find('.')));
    const bool could_be_wanted =
        node.status == nomad::NodeStatus::kReady && node.create_index > oldest_wanting;
    if (!names.contains(host) && (could_be_wanted || IsOfSomePool(node, snapshot))) {
      wanted.push_back(i);
    }
  }
  return wanted;
}

Observer::Observer(const nomad::NomadClient& nomad, const harvester::VmStore& vms,
                   nodepool::FullNodeCache& cache, ObserverMemory& memory, log::Logger logger)
    : nomad_(nomad), vms_(vms), cache_(cache), memory_(memory), logger_(std::move(logger)) {}

void Observer::Link(PoolSnapshot* snapshot) {
  std::vector<nodepool::VmWitness> witnesses;
  witnesses.reserve(snapshot->vms.size());
  for (const VmView& view : snapshot->vms) witnesses.push_back(WitnessOf(view.vm, *snapshot));
  nodepool::Links links = nodepool::LinkNodes(witnesses, snapshot->nodes);
  for (std::size_t i = 0; i < snapshot->vms.size(); ++i) {
    snapshot->vms[i].link = std::move(links.of_vm[i]);
  }
  snapshot->node_is_linked = std::move(links.node_is_linked);
}

void Observer::ReadNodes(const runtime::Context& context, const Wanted& wanted,
                         PoolSnapshot* snapshot) {
  nomad::ReadOptions options;
  options.index = wanted.after_index;
  options.wait = wanted.wait;
  auto nodes = nomad_.ListNodes(context, options);
  snapshot->nomad_readable = nodes.ok();
  if (!nodes.ok()) {
    snapshot->nomad_problem = base::Message(nodes.status());
    return;
  }
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
    if (!full.ok()) {
      snapshot->nomad_readable = false;
      snapshot->nomad_problem = base::Message(full.status());
      return;
    }
    cache_.Remember(full->value);
    cache_.Complete(&stub);
    read = true;
  }
  if (read) Link(snapshot);
}

void Observer::ReadAllocations(const runtime::Context& context, PoolSnapshot* snapshot) {
  auto all = nomad_.ListAllocations(context);
  if (all.ok()) {
    for (const nomad::Node& node : snapshot->nodes) snapshot->allocations[node.id];
    for (nomad::Allocation& allocation : all->value) {
      snapshot->allocations[allocation.node_id].push_back(std::move(allocation));
    }
    return;
  }
  if (!absl::IsPermissionDenied(all.status())) {
    logger_.Debug("Could not list allocations", {{"error", all.status()}});
    return;
  }
  // The token does not see every namespace: node by node it sees what it may.
  snapshot->blind = true;
  for (const VmView& view : snapshot->vms) {
    if (!AwaitsQuiet(view, *snapshot)) continue;
    const std::string id = LinkedNode(view, *snapshot)->id;
    auto some = nomad_.NodeAllocations(context, id);
    if (some.ok()) snapshot->allocations[id] = std::move(some->value);
  }
}

void Observer::ReadDetailsOfMarked(const runtime::Context& context, PoolSnapshot* snapshot) {
  for (VmView& view : snapshot->vms) {
    if (!view.member || !view.vm.mark.has_value()) continue;
    const nomad::Node* node = LinkedNode(view, *snapshot);
    if (node == nullptr && view.link.state == nodepool::LinkState::kNone &&
        !view.vm.mark->node_id.empty()) {
      const auto by_id = nomad_.GetNode(context, view.vm.mark->node_id);
      view.node_gone = absl::IsNotFound(by_id.status());
    }
    if (node != nullptr && node->status == nomad::NodeStatus::kDown) {
      const auto instance = vms_.GetInstance(context, view.vm.name);
      if (instance.ok()) {
        view.instance_runs = instance->phase == "Running" || instance->phase == "Unknown";
      } else if (kube::IsNotFound(instance.status())) {
        view.instance_runs = false;
      }
    }
  }
}

absl::StatusOr<PoolSnapshot> Observer::Observe(const runtime::Context& context, PoolSnapshot base,
                                               const Wanted& wanted) {
  PoolSnapshot snapshot = std::move(base);
  ReadNodes(context, wanted, &snapshot);
  NH_ASSIGN_OR_RETURN(harvester::Seen<std::vector<harvester::VirtualMachine>> vms,
                      vms_.ListAll(context));
  snapshot.now = vms.server_time.value_or(context.clock().WallNow());
  for (harvester::VirtualMachine& vm : vms.value) {
    VmView view;
    view.member = harvester::IsMember(vm);
    view.vm = std::move(vm);
    snapshot.vms.push_back(std::move(view));
  }
  Link(&snapshot);
  memory_.Apply(context.clock().Now(), &snapshot);
  if (!snapshot.nomad_readable) return snapshot;
  if (wanted.full_nodes) CompleteNodes(context, &snapshot);
  if (snapshot.nomad_readable) {
    bool quiet_matters = wanted.allocations;
    for (const VmView& view : snapshot.vms) {
      quiet_matters = quiet_matters || AwaitsQuiet(view, snapshot);
    }
    if (quiet_matters) ReadAllocations(context, &snapshot);
    ReadDetailsOfMarked(context, &snapshot);
  }
  NH_RETURN_IF_ERROR(context.Check());
  return snapshot;
}

}  // namespace nomad_harvester::scaling
