// SPDX-License-Identifier: Apache-2.0
// A Harvester and a Nomad that remember.
//
// What they do is what the real ones do, as far as the plugin can tell: each behaviour names the
// source that it follows, or was observed on Nomad 1.10.5, kube-apiserver 1.32.3 and KubeVirt
// 1.4.0. Time is the clock's alone: whatever is due is applied, in order of time, when the cluster
// is next asked for anything, so that a clock that jumps skips nothing.
#ifndef NOMAD_HARVESTER_SIMULATOR_CLUSTER_H_
#define NOMAD_HARVESTER_SIMULATOR_CLUSTER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/simulator/event.h"
#include "nomad_harvester/simulator/fault.h"
#include "nomad_harvester/simulator/options.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::simulator {

// Thread-safe. Clock and random source must outlive it; transports keep what they need alive.
//
// VMs are named by name, in whatever namespace; nodes by ID or by name (of several, the one that
// registered last). A name that nothing has makes an operator's action a no-op that returns false.
class Cluster {
 public:
  Cluster(runtime::Clock& clock, runtime::Random& random, Options options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // In-process adapters: what a client behind http's decorators sends reaches the servers. They
  // honour the context; a blocking query sleeps on the clock. `client` tells processes apart: each
  // one dies alone, and a fault hook sees whose request it is.
  std::shared_ptr<http::HttpTransport> HarvesterTransport(const std::string& client = "");
  std::shared_ptr<http::HttpTransport> NomadTransport(const std::string& client = "");
  // What the adapters call; `step` is how often a blocking query looks again.
  absl::StatusOr<http::HttpResponse> Serve(const runtime::Context& context, System system,
                                           const http::HttpRequest& request,
                                           base::Duration step = std::chrono::milliseconds(250));

  // Applies whatever is due by now.
  void ApplyDue();
  // When something is due next; nothing: never, unless somebody acts.
  std::optional<base::MonoTime> NextDue() const;

  // --- Faults. The hook is called without the lock, before anything else happens to a request. It
  // may take time and send requests of its own, of another client: a process that stands still. A
  // request whose context has ended meanwhile is not sent.
  void SetFaultHook(std::function<Fault(const RequestInfo&)> hook);
  // Without kDie: that client's process was killed.
  void Kill(const std::string& client);
  // After kDie: new processes may speak again under the old names.
  void Resurrect();
  bool dead(const std::string& client = "") const;
  void SetNomadReachable(bool reachable);
  void SetHarvesterReachable(bool reachable);
  // From now on such requests are 403, and access reviews say so. Empty resource: all of them.
  void Forbid(const std::string& verb, const std::string& resource);
  void AllowAll();
  // Continue tokens given out so far answer 410.
  void ExpirePages();

  // --- Counters, of requests that reached the hook.
  // "harvester list virtualmachines" → how many.
  std::map<std::string, int> RequestCounts() const;
  int RequestCount(System system, const std::string& verb, const std::string& resource) const;
  int RequestCount() const;
  int EffectCount() const;
  void ResetCounters();

  // --- Operators and the world: machines.
  bool EditAnnotation(const std::string& vm, const std::string& key,
                      const std::optional<std::string>& value);
  bool DeleteVmByHand(const std::string& vm);
  bool StopVm(const std::string& vm);   // runStrategy Halted
  bool StartVm(const std::string& vm);  // and back
  bool PauseVm(const std::string& vm, bool paused = true);
  // As Harvester's page does it: labels, annotations and spec are copied. The guest calls itself
  // by the new name, or, with the same user data, by the old one.
  bool CloneVm(const std::string& vm, const std::string& new_name, bool same_user_data = false);
  void NeverJoin(int next_vms);
  // The next VMs show that printableStatus with the message; "Stopped": Harvester halts them for
  // want of quota.
  void FailStart(int next_vms, const std::string& printable_status, const std::string& message);
  // The VM's finalizers stay, until false.
  bool HangDeletion(const std::string& vm, bool hang = true);
  void SetImageReady(const std::string& image, bool ready);  // "ns/name", by either name
  // Harvester's storage quota check refuses every new VM with this; nothing: it passes.
  void SetQuotaExceeded(const std::optional<std::string>& message);
  // A Kubernetes object as an administrator makes it: kind and apiVersion name its resource.
  // Replaces one of that name. False if the resource is unknown.
  bool PutObject(const nlohmann::json& object);
  // The same, by kind, apiVersion, namespace and name. False if there is no such object.
  bool DeleteObject(const nlohmann::json& object);

  // --- Operators and the world: Nomad.
  bool CancelDrain(const std::string& node, bool mark_eligible);
  bool OperatorDrain(const std::string& node, base::Duration deadline = std::chrono::hours(1),
                     const std::map<std::string, std::string>& meta = {});
  bool SetEligible(const std::string& node, bool eligible);
  bool PurgeNode(const std::string& node);
  // Its allocations do not stop, nor does its drain end before the deadline, until false.
  bool HangDrain(const std::string& node, bool hang = true);
  std::string AddForeignNode(const NodeSpec& spec);  // ready at once; returns its ID
  bool KillNode(const std::string& node);            // its Nomad agent dies; the machine goes on
  bool ReviveNode(const std::string& node);          // and comes back
  // The agent lost its data directory: another node of that name; the old one goes down. Returns
  // the new ID, empty if there is no such node.
  std::string ReviveNodeUnderNewId(const std::string& node);
  void RunJob(const JobSpec& job);
  bool StopJob(const std::string& id);
  void DenyReadJob(bool read_job_denied);

  // --- Inspection: copies of what is there now.
  std::vector<nlohmann::json> Vms() const;
  std::vector<nlohmann::json> Secrets() const;
  std::vector<nlohmann::json> Claims() const;
  std::vector<nlohmann::json> Leases() const;
  std::vector<nlohmann::json> KubeEvents() const;
  std::vector<nlohmann::json> Nodes() const;        // in full
  std::vector<nlohmann::json> Allocations() const;  // in full
  // Null if it is not there.
  nlohmann::json Vm(const std::string& name) const;
  nlohmann::json Node(const std::string& name_or_id) const;
  // Which node the guest of a VM runs; empty: none. The simulator knows, whatever anyone claims.
  std::string NodeIdOfVm(const std::string& vm_uid) const;
  std::vector<std::string> Journal() const;
  // Called after every change, without the lock; it may ask the cluster, which then settles
  // nothing. Null: nobody.
  void SetObserver(std::function<void(const Event&)> observer);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_CLUSTER_H_
