// SPDX-License-Identifier: Apache-2.0
//
// Observes a pool from outside the plugin's process.

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/host.h"
#include "nomad_harvester/kube/lease.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/nodepool/link.h"
#include "nomad_harvester/scaling/maintenance.h"
#include "nomad_harvester/scaling/observer.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/replacement.h"

#include "absl/strings/ascii.h"
#include "commands/command_run.h"
#include "execution/creation.h"
#include "execution/read_only.h"
#include "rules/room.h"

namespace nomad_harvester::scaling {

LeaseView ReadLease(const runtime::Context& context, const Clients& clients, const PoolKey& key,
                    const log::Logger& logger) {
  LeaseView view;
  const auto observed =
      clients.kube->Get(context, kube::kLeases, key.ns, harvester::LeaseName(key.pool));
  if (kube::IsNotFound(observed.status())) return view;
  const auto lease = kube::ParseLeaseReply(observed, harvester::LeaseName(key.pool));
  if (!lease.ok()) {
    view.problem = base::Message(WithLeaseRule(lease.status(), key));
    return view;
  }
  view.present = true;
  view.holder = lease->holder;
  view.renewed_at = lease->renew_time;
  view.live = MayBeAlive(*lease);
  view.record = ParsePoolRecord(*lease, logger);
  view.misread_pause = Misread(lease->annotations, harvester::kLeasePausedAnnotation);
  return view;
}

std::string DeadHolderText(const LeaseView& lease) {
  if (!lease.present || lease.holder.empty() || lease.live) return "";
  return "the process that holds the Lease, " + lease.holder +
         ", no longer renews it: it was killed, or hangs; the next one takes over; if it was the "
         "agent's plugin, restart the agent";
}

absl::Status CheckAnswered(const runtime::Context& context, const LeaseView& lease) {
  const absl::Status ended = context.Check();
  if (!absl::IsDeadlineExceeded(ended)) return absl::OkStatus();
  return base::MakeStatus(ended.code(), "Harvester cannot be read: " + lease.problem);
}

NamespaceView MissingNamespace(const std::string& ns) {
  return {.is_known = true,
          .problem = "it does not exist",
          .cure = "create it: kubectl create namespace " + ns + "; or correct the key namespace"};
}

NamespaceView NamespaceViewOf(const absl::StatusOr<kube::Observed>& observed,
                              const std::string& ns) {
  if (kube::IsNotFound(observed.status())) return MissingNamespace(ns);
  NamespaceView view{.is_known = observed.ok()};
  if (observed.ok() &&
      base::FindPath(observed->object, {"metadata", "deletionTimestamp"}) != nullptr) {
    view.problem = "it is being deleted";
    view.cure = "wait until it is gone and create it again, or name another one";
  }
  return view;
}

namespace {

// Reads the sources that a scale-out would read first. Makes no VM, not even as a dry run.
void ReadTemplate(const runtime::Context& context, const PoolDependencies& deps,
                  const config::PoolPolicy& policy, Inspection* inspection) {
  inspection->growth_problem = base::Message(CheckGrowth(inspection->snapshot));
  auto read = ReadCurrentTemplate(context, deps, policy);
  if (read.ok()) {
    inspection->current_template = *std::move(read);
  } else {
    inspection->growth_problem = base::Message(read.status());
  }
}

// Limits reads of single nodes, which are needed because lists have no metadata; foreign nodes are
// rare.
constexpr std::size_t kMaxForeignNodes = 10;
constexpr base::Duration kForeignNodesLimit = std::chrono::seconds(3);

// True for a node whose metadata says that it is not a VM, or names a firmware UUID that no VM of
// the namespace has.
bool IsForeign(const nomad::Node& node, const Observation& observation) {
  const auto uuid = node.meta.find("harvester_vm_uuid");
  if (uuid == node.meta.end() || uuid->second.empty()) return false;
  return nodepool::IsDeclaredForeign(node) ||
         std::none_of(observation.vms.begin(), observation.vms.end(), [&](const VmView& view) {
           return view.vm->firmware_uuid == absl::AsciiStrToLower(uuid->second);
         });
}

void ReadForeignNodes(const runtime::Context& caller, const nomad::NomadClient& client,
                      Inspection* inspection) {
  const PoolSnapshot& snapshot = inspection->snapshot;
  if (!snapshot.observation().nomad.ok()) return;
  const runtime::Context context = caller.WithTimeout(kForeignNodesLimit);
  std::size_t reads = 0;
  for (const nomad::Node* node : UnlinkedNodes(snapshot)) {
    // A node that is down may be left over from one of our VMs.
    if (node->status != nomad::NodeStatus::kReady || nodepool::ParseDrainMark(*node).has_value()) {
      continue;
    }
    if (reads++ == kMaxForeignNodes) return;
    const auto full = client.GetNode(context, node->id);
    if (full.ok() && IsForeign(full->value, snapshot.observation())) {
      inspection->foreign_nodes.insert(node->id);
    }
  }
}

std::map<PoolKey, std::vector<UnfinishedRemoval>> OldUnclaimed(const PoolSnapshot& snapshot,
                                                               const std::set<PoolKey>& claimed) {
  auto unclaimed = UnclaimedRemovals(snapshot, claimed);
  for (auto& [key, removals] : unclaimed) {
    std::erase_if(removals, [&](const UnfinishedRemoval& removal) {
      return removal.since.has_value() && snapshot.now() - *removal.since < kUnclaimedFor;
    });
  }
  std::erase_if(unclaimed, [](const auto& entry) { return entry.second.empty(); });
  return unclaimed;
}

// The observer reads no instances while Nomad cannot be read, so they may be missing.
absl::Status FillHosts(const runtime::Context& context, const Clients& clients,
                       const std::string& ns, Observation* observation) {
  const bool were_read =
      std::any_of(observation->vms.begin(), observation->vms.end(),
                  [](const auto& view) { return view.instance_runs.has_value(); });
  if (were_read || observation->vms.empty()) return absl::OkStatus();
  const auto instances = harvester::VmStore(clients.kube, ns).ListInstances(context);
  if (!instances.ok()) return instances.status();
  std::map<std::string, std::string> hosts;
  for (const harvester::VirtualMachineInstance& instance : *instances) {
    if (harvester::IsRunning(instance)) hosts[instance.name] = instance.host;
  }
  for (VmView& view : observation->vms) {
    if (const auto host = hosts.find(view.vm->name); host != hosts.end()) view.host = host->second;
  }
  return absl::OkStatus();
}

// Reads the hosts and finds the cordoned ones. Sets in the views of `observation` why VMs must
// leave their hosts, as the plugin does (rule R7).
void ReadHosts(const runtime::Context& context, const Clients& clients,
               const config::PoolPolicy& policy, Observation* observation, Inspection* inspection) {
  const auto hosts = harvester::ListHosts(context.WithTimeout(kHostsLimit), *clients.kube);
  if (!hosts.ok()) {
    inspection->hosts = hosts.status();
    return;
  }
  std::vector<std::string> names;
  std::vector<CordonedHost>& found = inspection->cordoned_hosts;
  for (const harvester::Host& host : *hosts) {
    names.push_back(host.name);
    if (!host.cordoned) continue;
    CordonedHost& left = found.emplace_back(CordonedHost{.name = host.name, .vms = {}});
    for (VmView& view : observation->vms) {
      if (view.host != host.name) continue;
      if (view.vm->pool == policy.pool) left.vms.push_back(view.vm->name);
      if (!EvacuatesHosts(policy) || !harvester::CannotMigrate(view.vm)) continue;
      view.host_to_leave = host.name;
    }
    std::sort(left.vms.begin(), left.vms.end());
  }
  std::sort(found.begin(), found.end(),
            [](const auto& one, const auto& other) { return one.name < other.name; });
  std::sort(names.begin(), names.end());
  inspection->hosts = std::move(names);
}

// Only the plugin's process knows for how long a VM has been held (rule C18). Here it is the time
// since Nomad ended the drain.
void SetHeldFor(Observation* observation) {
  for (VmView& view : observation->vms) {
    const harvester::VirtualMachine& vm = view.vm;
    const bool linked = view.link.state == nodepool::LinkState::kLinked;
    if (vm.holds.empty() || !vm.mark.has_value() || !linked) continue;
    const nomad::Node& node = observation->nodes()[view.link.node];
    if (!nodepool::IsDrainOf(node, vm.mark->action, vm.uid)) continue;
    const nomad::LastDrain& drain = *node.last_drain;
    if (drain.status != nomad::DrainStatus::kComplete || !drain.updated_at.has_value()) continue;
    view.held_for = std::max(observation->now - *drain.updated_at, base::Duration::zero());
  }
}

// Describes a pool that has neither a VM nor a Lease, although its namespace was read.
void DescribeNothing(Inspection* inspection) {
  const PoolKey& key = inspection->snapshot.key;
  const NamespaceView& ns = *inspection->ns;
  if (!ns.problem.empty()) {
    inspection->nothing_exists = "namespace " + key.ns + ": " + ns.problem + "; " + ns.cure;
  } else if (inspection->lease.problem.empty()) {
    inspection->nothing_exists = "pool " + key.pool + " has no VM and no Lease in namespace " +
                                 key.ns +
                                 (inspection->is_claimed ? ": no Scale of it has begun"
                                  : ns.is_known ? ": no Scale of it has begun, or its name is wrong"
                                                : "; the namespace could not be read");
  }
}

// Events only explain, so the rest of the output does not wait long for them.
constexpr base::Duration kEventsLimit = std::chrono::seconds(5);

}  // namespace

absl::StatusOr<Inspection> Maintenance::Inspect(const runtime::Context& caller,
                                                const config::PoolPolicy& policy, bool defines_vms,
                                                std::set<PoolKey> claimed) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  Inspection inspection;
  PoolSnapshot& snapshot = inspection.snapshot;
  snapshot.key = {.ns = policy.ns, .pool = policy.pool};
  snapshot.policy = policy;
  inspection.lease = ReadLease(context, clients_, snapshot.key, options_.logger);
  NH_RETURN_IF_ERROR(CheckAnswered(context, inspection.lease));
  snapshot.action = inspection.lease.record.action;
  snapshot.lease_cluster = inspection.lease.record.nomad_cluster;

  CommandRun run(options_, clients_, snapshot.key);
  Observer observer(*clients_.nomad, run.nodes, run.vms, run.memory, *options_.executor,
                    options_.logger);
  NH_ASSIGN_OR_RETURN(
      Observation observation,
      observer.Observe(context,
                       EmptyObservation(clients_.config->nomad.region, policy.pool, policy),
                       {.nodes_limit = context.Remaining() / 2}));
  if (const absl::Status known = FillHosts(context, clients_, policy.ns, &observation);
      known.ok()) {
    ReadHosts(context, clients_, policy, &observation, &inspection);
  } else {
    inspection.hosts = known;
  }
  SetHeldFor(&observation);
  snapshot.seen = std::make_shared<const Snapshot>(std::move(observation));
  if (!inspection.lease.problem.empty()) {
    // Which VMs the action names is not known: no mark is called late.
    snapshot.action.emplace();
    for (const VmView* view : snapshot.vms()) snapshot.action->names.insert(view->vm->name);
  }

  StatusInputs inputs;
  inputs.last_event = inspection.lease.record.last_event;
  inputs.paused = inspection.lease.record.paused;
  if (defines_vms) ReadTemplate(context, run.Deps(options_), policy, &inspection);
  inputs.current_template = inspection.current_template;
  inspection.report = ReportStatus(snapshot, inputs);
  ReadForeignNodes(context, *clients_.nomad, &inspection);
  inspection.is_claimed = !claimed.insert(snapshot.key).second;
  inspection.unclaimed = OldUnclaimed(snapshot, claimed);
  if (snapshot.vms().empty() && !inspection.lease.present) {
    inspection.ns = ReadNamespace(context, policy.ns);
    DescribeNothing(&inspection);
  }
  return inspection;
}

void Maintenance::AddRoom(const runtime::Context& context, Inspection* inspection) const {
  CommandRun run(options_, clients_, inspection->snapshot.key);
  const runtime::Context limited = context.WithTimeout(kHostsLimit);
  const auto rooms = run.hosts.ListRooms(limited);
  if (!rooms.ok()) return;
  const auto need = NeedOfNewestVm(limited, *clients_.kube_urgent, inspection->snapshot);
  if (!need.ok()) return;
  const harvester::Room room =
      FindRoom(*rooms, *need, WaitingForHosts(*rooms, inspection->snapshot));
  inspection->room = room.vms;
  inspection->room_text = Describe(room);
}

absl::StatusOr<harvester::Choices> Maintenance::FindChoices(
    const runtime::Context& caller, const std::vector<std::string>& namespaces) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  return harvester::ListChoices(context, *clients_.kube, namespaces);
}

NamespaceView Maintenance::ReadNamespace(const runtime::Context& caller,
                                         const std::string& ns) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  return NamespaceViewOf(clients_.kube->Get(context, kube::kNamespaces, "", ns), ns);
}

EventsView Maintenance::EventsOf(const runtime::Context& caller, const std::string& ns,
                                 const std::string& vm) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  auto events =
      harvester::VmStore(clients_.kube, ns).ListEventsOf(context.WithTimeout(kEventsLimit), vm);
  if (kube::IsForbidden(events.status())) {
    return {.problem =
                "the token may not list them: grant list of events.events.k8s.io in "
                "namespace " +
                ns};
  }
  if (!events.ok()) return {.problem = "they cannot be read: " + base::Message(events.status())};
  EventsView view{.events = *std::move(events)};
  if (view.events.size() > kMaxEvents) {
    view.earlier = view.events.size() - kMaxEvents;
    view.events.erase(view.events.begin(),
                      view.events.begin() + static_cast<std::ptrdiff_t>(view.earlier));
  }
  return view;
}

absl::StatusOr<std::vector<harvester::RemovedVm>> Maintenance::ReadHistory(
    const runtime::Context& caller, const PoolKey& key) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  const auto observed =
      clients_.kube->Get(context, kube::kConfigMaps, key.ns, harvester::LeaseName(key.pool));
  if (observed.ok()) return harvester::ParseHistory(observed->object);
  const std::string pool = "pool " + key.ToString();
  const std::string grant =
      "get, create and patch of configmaps in namespace " + key.ns + ", as examples/rbac.yaml says";
  if (kube::IsNotFound(observed.status())) {
    return base::NotFound(pool + " has no history: none of its VMs was removed while the plugin " +
                          "had the optional right to write it; grant " + grant);
  }
  return base::Annotate(observed.status(),
                        "the history of " + pool + " cannot be read" +
                            (kube::IsForbidden(observed.status()) ? "; grant " + grant : ""));
}

}  // namespace nomad_harvester::scaling
