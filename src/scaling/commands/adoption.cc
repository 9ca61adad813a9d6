// SPDX-License-Identifier: Apache-2.0
// Gives a pool to the configured Nomad cluster at an operator's request, after Nomad was rebuilt or
// restored from a backup.

#include <set>
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/nodepool/link.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "commands/command_run.h"
#include "execution/read_only.h"

namespace nomad_harvester::scaling {

absl::StatusOr<Adoption> Maintenance::FindAdoption(const runtime::Context& caller,
                                                   const PoolKey& key) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  Adoption adoption{.key = key};
  const auto cluster = clients_.nomad->ReadClusterKeys(context);
  if (!cluster.ok()) return base::Annotate(cluster.status(), "Nomad cannot be read");
  if (cluster->empty()) {
    return base::FailedPrecondition(
        "this Nomad does not tell the ids of its keys (GET /.well-known/jwks.json): a proxy "
        "refuses that path, or it is older than 1.7; let the path through, or remove the "
        "annotation " +
        std::string(harvester::kNomadClusterAnnotation) + " of the pool's VMs");
  }
  adoption.cluster = *cluster;
  const auto nodes = clients_.nomad->ListNodes(context);
  if (!nodes.ok()) return base::Annotate(nodes.status(), "Nomad cannot be read");
  adoption.index = nodes->index;
  Observation observation = EmptyObservation(clients_.config->nomad.region, key.pool, {});
  observation.nomad_cluster = adoption.cluster;
  NH_ASSIGN_OR_RETURN(auto vms, harvester::VmStore(clients_.kube, key.ns).ListAll(context));
  std::set<std::string> known;
  for (const nomad::Node& node : nodes->value) {
    known.insert(node.id);
    known.insert(nodepool::ShortHostName(node.name));
  }
  bool exists = false;
  for (harvester::VirtualMachine& vm : vms.value) {
    const bool of_pool = vm.pool == key.pool && harvester::IsMember(vm);
    exists |= of_pool;
    if (of_pool && harvester::HasJoined(vm)) {
      ++adoption.joined;
      if (known.contains(vm.joined_node_id) || known.contains(vm.name)) ++adoption.known;
    }
    // Skips VMs of another region, which has its own index and keys.
    const bool newer =
        vm.nodes.has_value() && vm.nodes->index > adoption.index && !IsOtherNomad(vm, observation);
    if (of_pool && (newer || IsOtherCluster(vm, observation)))
      adoption.vms.emplace_back(std::move(vm));
  }
  const absl::Status missing = base::NotFound("no VM and no Lease of pool " + key.ToString() +
                                              " exists: correct node_group_name or "
                                              "namespace");
  const LeaseView lease = ReadLease(context, clients_, key, options_.logger);
  if (!lease.problem.empty()) {
    return base::Unavailable("the pool's Lease cannot be read: " + lease.problem);
  }
  if (!exists && !lease.present) return missing;
  if (IsOtherCluster(lease.record.nomad_cluster, observation)) {
    adoption.lease_cluster = lease.record.nomad_cluster;
  }
  return adoption;
}

absl::Status Maintenance::Adopt(const runtime::Context& context, const Adoption& adoption) const {
  const harvester::VmStore store(clients_.kube, adoption.key.ns);
  int written = 0;
  for (const SharedVm& vm : adoption.vms) {
    harvester::AnnotationChanges changes = {{harvester::kNomadClusterAnnotation, adoption.cluster}};
    if (vm->nodes.has_value() && vm->nodes->index > adoption.index) {
      harvester::NodesRecord nodes = *vm->nodes;
      nodes.index = adoption.index;
      changes[harvester::kNodesAnnotation] = harvester::ToAnnotation(nodes);
    }
    const absl::Status changed =
        AnnotateVm(context, store, *vm, changes, [&](const harvester::VirtualMachine& now) {
          return now.nomad_cluster == adoption.cluster &&
                 (!now.nodes.has_value() || now.nodes->index <= adoption.index);
        });
    if (!changed.ok()) {
      return base::Annotate(changed, "after " + std::to_string(written) + " of " +
                                         std::to_string(adoption.vms.size()) +
                                         " VMs were recorded");
    }
    ++written;
  }
  if (adoption.lease_cluster.empty()) return absl::OkStatus();
  return base::Annotate(WriteOnLease(context, *clients_.kube, adoption.key,
                                     harvester::kNomadClusterAnnotation, adoption.cluster),
                        "the VMs are recorded");
}

}  // namespace nomad_harvester::scaling
