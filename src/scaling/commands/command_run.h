// SPDX-License-Identifier: Apache-2.0
// The objects that a command needs to observe or resume one pool. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_COMMAND_RUN_H_
#define NOMAD_HARVESTER_SCALING_COMMAND_RUN_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "execution/pool_dependencies.h"

namespace nomad_harvester::scaling {

// Objects that live as long as one run, in addition to the clients.
struct CommandRun {
  CommandRun(const MaintenanceOptions& options, const Clients& c, PoolKey k,
             const LeaseWaitListener& waits = nullptr)
      : key(std::move(k)),
        clients(c),
        vms(clients.kube, key.ns),
        nodes(clients.nomad_urgent),
        work(clients.nomad, *options.executor),
        hosts(clients.kube_urgent, options.logger),
        backlog(*options.random),
        lease(clients.kube_urgent, key, *options.clock,
              LeaseOptions(*clients.config, options.holder, waits),
              options.logger.With({{"pool", key.ToString()}})) {}

  static PoolLease::Options LeaseOptions(const config::PluginConfig& config,
                                         const std::string& holder,
                                         const LeaseWaitListener& waits) {
    PoolLease::Options lease = PoolLease::OptionsOf(config, holder);
    lease.on_wait = waits;
    return lease;
  }

  PoolDependencies Deps(const MaintenanceOptions& options,
                        const ReconcileListener& events = nullptr) {
    return {.key = key,
            .clients = clients,
            .vms = vms,
            .nodes = nodes,
            .work = work,
            .hosts = hosts,
            .memory = memory,
            .backlog = backlog,
            .lease = lease,
            .clock = *options.clock,
            .random = *options.random,
            .executor = *options.executor,
            .logger = options.loop_logger.With({{"pool", key.ToString()}}),
            .events = events};
  }

  const PoolKey key;
  const Clients& clients;
  const harvester::VmStore vms;
  NomadReads nodes;
  demand::Reader work;
  Hosts hosts;
  ObserverMemory memory;
  PoolBacklog backlog;
  PoolLease lease;
};

// Describes a namespace that does not exist.
NamespaceView MissingNamespace(const std::string& ns);
// Describes a namespace from the reply to its GET.
NamespaceView NamespaceViewOf(const absl::StatusOr<kube::Observed>& observed,
                              const std::string& ns);

// Sends one request.
LeaseView ReadLease(const runtime::Context& context, const Clients& clients, const PoolKey& key,
                    const log::Logger& logger);
// DEADLINE_EXCEEDED if the command's time ended while the Lease was being read. The error names the
// system that did not answer.
absl::Status CheckAnswered(const runtime::Context& context, const LeaseView& lease);
// Returns what became of a write that ended with `outcome`: `object`, such as "VM web-1". Of a
// write without a reply, or one whose repetition found a conflict, nobody knows whether it was
// done, so `is_there` reads the object: whether it has what was to be written. OK: it was written.
// Errors say that it was not, or that this is not known, and how to see it (rule L9).
absl::Status Settle(const absl::Status& outcome, const std::string& object,
                    const std::function<absl::StatusOr<bool>()>& is_there);
// Writes annotations of a VM, unless it has changed since `vm` was read; then the same. `has_them`
// says whether the VM that was read again has them.
absl::Status AnnotateVm(const runtime::Context& context, const harvester::VmStore& store,
                        const harvester::VirtualMachine& vm,
                        const harvester::AnnotationChanges& changes,
                        const std::function<bool(const harvester::VirtualMachine&)>& has_them);
// Writes an annotation of the pool's Lease, or removes it if `text` is unset. One request, and one
// more if its outcome is not known. NOT_FOUND: there is no Lease.
absl::Status WriteOnLease(const runtime::Context& context, const kube::KubeClient& client,
                          const PoolKey& key, const char* annotation,
                          const std::optional<std::string>& text);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_COMMAND_RUN_H_
