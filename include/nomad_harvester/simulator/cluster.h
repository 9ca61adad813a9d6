// SPDX-License-Identifier: Apache-2.0
// A stateful simulation of Harvester and Nomad.
//
// The plugin sees both behave like the real systems: each behaviour cites its source, or was
// observed on Nomad 1.10.5, Harvester 1.8.0, KubeVirt 1.7.0 and kube-apiserver 1.32.3. Time comes
// only from the clock: each call first applies everything that is due, in order of time, so that a
// clock that jumps skips nothing.
#ifndef NOMAD_HARVESTER_SIMULATOR_CLUSTER_H_
#define NOMAD_HARVESTER_SIMULATOR_CLUSTER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/http/connection_parts.h"
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

// Thread-safe. Clock and random source must outlive it; transports keep the objects they need
// alive.
//
// A VM is identified by its name, in any namespace; a node by its ID or name (if several nodes have
// the name, the one that registered last). An operator's action on an unknown name does nothing and
// returns false.
//
// Several Nomad clusters may use one Harvester. The first one has an empty name; others are created
// when their name is first mentioned. All have the same key until SetNomadKeys. A guest is a client
// of the cluster named by `nomad_cluster` in its user data. An action with neither a cluster nor a
// node applies to the first cluster.
class Cluster {
 public:
  Cluster(runtime::Clock& clock, runtime::Random& random, Options options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // In-process transports to the servers, for clients behind http's decorators. They honour the
  // context; a blocking query sleeps on the clock. `client` identifies a process: each one can be
  // killed separately, and a fault hook receives the name with the request.
  std::shared_ptr<http::HttpTransport> HarvesterTransport(const std::string& client = "");
  std::shared_ptr<http::HttpTransport> NomadTransport(const std::string& client = "",
                                                      const std::string& nomad = "");
  // Both, for a process.
  http::RawTransports Transports(const std::string& client = "", const std::string& nomad = "");
  // Serves one request; called by the transports. `step`: how often a blocking query checks again.
  absl::StatusOr<http::HttpResponse> Serve(const runtime::Context& context, System system,
                                           const http::HttpRequest& request,
                                           base::Duration step = std::chrono::milliseconds(250));

  // Applies everything that is due.
  void ApplyDue();

  // --- Faults. The hook is called without the lock, before anything else happens to a request. It
  // may take time and send requests of another client, to simulate a suspended process. A request
  // whose context ends meanwhile is not sent.
  void SetFaultHook(std::function<Fault(const RequestInfo&)> hook);
  // Like kDie, but at any time: kills the process of that client.
  void Kill(const std::string& client);
  // True if the process of that client was killed, so that its requests fail. A new process needs
  // another name.
  bool dead(const std::string& client = "") const;
  void SetNomadReachable(bool reachable);
  void SetHarvesterReachable(bool reachable);
  // From now on refuses or slows down matching requests. Returns the rule's ID. If several rules
  // match, the oldest refusing one decides the reply, and the slowest one the time.
  int Refuse(RefusalRule rule);
  void StopRefusing(int id);
  void StopRefusing();  // all rules
  // From now on answers such requests with 403; access reviews deny them. Empty resource: all
  // resources. `cluster_wide`: only for all namespaces at once; in one it stays allowed.
  void Forbid(const std::string& verb, const std::string& resource, bool cluster_wide = false);
  void AllowAll();
  // Makes SelfSubjectRulesReviews return no rule and say so, as if a second authorizer granted the
  // rights.
  void SetRulesIncomplete(bool incomplete);
  // From now on, instead of Options::introduction.
  void SetIntroduction(Introduction introduction);
  // Simulates one API server per element. They answer Harvester's requests in turn; their clocks
  // are off by these amounts, in the header Date and in times written into objects. Empty: one
  // server with a correct clock.
  void SetClockSkews(std::vector<base::Duration> skews);

  // --- Counters of the requests that reached the hook.
  // "harvester list virtualmachines" → number of requests.
  std::map<std::string, int> RequestCounts() const;
  int RequestCount(System system, const std::string& verb, const std::string& resource) const;
  int RequestCount() const;
  int EffectCount() const;
  void ResetCounters();

  // --- Operators and external events: machines.
  bool EditAnnotation(const std::string& vm, const std::string& key,
                      const std::optional<std::string>& value);
  bool DeleteVmByHand(const std::string& vm);
  bool StopVm(const std::string& vm);   // runStrategy Halted
  bool StartVm(const std::string& vm);  // reverts StopVm, or the guest's own power-off
  // The guest shuts itself down. False: it is not running.
  bool PowerOff(const std::string& vm);
  // Starts a live migration to that host, which takes a moment. False: it is not running.
  bool MigrateVm(const std::string& vm, const std::string& host);
  bool PauseVm(const std::string& vm, bool paused = true);
  // As in Harvester's UI: copies labels, annotations and spec. The guest's Nomad node has the new
  // name or, with the same user data, the old one.
  bool CloneVm(const std::string& vm, const std::string& new_name, bool same_user_data = false);
  void NeverJoin(int next_vms);
  // Gives the guests of the next VMs this behaviour instead of Options::client. Calls queue up: a
  // second one applies to the VMs after those of the first.
  void SetNextClients(int next_vms, const ClientBehaviour& behaviour);
  // Gives the next VMs that printableStatus with the message; "Stopped": Harvester halts them
  // because the quota is exceeded.
  void FailStart(int next_vms, const std::string& printable_status, const std::string& message);
  // The VM's finalizers stay until this is called with false.
  bool HangDeletion(const std::string& vm, bool hang = true);
  // From now on claims survive their VMs: only the API deletes them.
  void KeepClaims(bool keep);
  // Claims with that name, in any namespace, stay terminating until this is called with false.
  void HangClaim(const std::string& claim, bool hang = true);
  void SetImageReady(const std::string& image, bool ready);  // "ns/name", by either name
  // Harvester's quota check denies, with this message, every new VM and every update of a VM that
  // should run but has no instance; nullopt: the check passes.
  void SetQuotaExceeded(const std::optional<std::string>& message);
  // Creates or replaces a Kubernetes object as an administrator; kind and apiVersion determine its
  // resource. False if the resource is unknown.
  bool PutObject(const nlohmann::json& object);
  // Deletes by kind, apiVersion, namespace and name. False if there is no such object.
  bool DeleteObject(const nlohmann::json& object);

  // --- Operators and external events: Nomad.
  bool CancelDrain(const std::string& node, bool mark_eligible);
  bool OperatorDrain(const std::string& node, base::Duration deadline = std::chrono::hours(1),
                     const std::map<std::string, std::string>& meta = {});
  bool SetEligible(const std::string& node, bool eligible);
  bool PurgeNode(const std::string& node);
  // The node's allocations do not stop and its drain does not end before the deadline, until this
  // is called with false.
  bool HangDrain(const std::string& node, bool hang = true);
  std::string AddForeignNode(const NodeSpec& spec);  // registers at once; returns its ID
  bool KillNode(const std::string& node);            // its Nomad agent dies; the VM keeps running
  bool ReviveNode(const std::string& node);          // its Nomad agent runs again
  // The agent loses its data directory and registers a new node with the same name; the old one
  // goes down. Returns the new ID, empty if there is no such node.
  std::string ReviveNodeUnderNewId(const std::string& node);
  // The agent restarts with a changed configuration, and registers again under its ID. A host name
  // that equalled its name follows the name.
  bool ReRegister(const std::string& node, const std::function<void(NodeSpec&)>& change);
  // Sets the status immediately, until something else changes it: "ready", "initializing",
  // "disconnected" (its running work becomes unknown), "down".
  bool SetNodeStatus(const std::string& node, const std::string& status);
  // Simulates a plan that is in flight when the node (empty: any) that may take work is next
  // drained or made ineligible. The plan is committed `delay` later and places an allocation of the
  // job on the node. The drainer stops the allocation if it has not looked yet. On a node whose
  // drain is complete, nothing stops it.
  void PlaceLate(const JobSpec& job, base::Duration delay, const std::string& node = "");
  // Restores Nomad's servers from an old backup: they know no node, allocation or job, and their
  // index starts anew. Live agents register again at their next heartbeat, unless another Nomad
  // answers at the address.
  void RestoreNomad(bool agents_return);
  // Sets the ids of Nomad's keys; initially there is one. No ids: a Nomad before 1.7, which lacks
  // the path. If no id is one of the previous ids, it is another cluster.
  void SetNomadKeys(std::vector<std::string> ids, const std::string& nomad = "");
  void RunJob(const JobSpec& job);
  void DenyReadJob(bool read_job_denied);
  void DenyListJobs(bool list_jobs_denied);
  void DenyNodeWrite(bool node_write_denied);

  // --- Inspection: copies of the current state.
  std::vector<nlohmann::json> Vms() const;
  std::vector<nlohmann::json> Secrets() const;
  std::vector<nlohmann::json> Claims() const;
  std::vector<nlohmann::json> Leases() const;
  std::vector<nlohmann::json> ConfigMaps() const;
  std::vector<nlohmann::json> Events() const;       // of events.k8s.io
  std::vector<nlohmann::json> Nodes() const;        // of Nomad, in full
  std::vector<nlohmann::json> Allocations() const;  // in full
  // Null if it does not exist.
  nlohmann::json Vm(const std::string& name) const;
  // The host on which the VM's guest runs; empty: none.
  std::string HostOfVm(const std::string& name) const;
  nlohmann::json Node(const std::string& name_or_id) const;
  // ID of the node that runs in the VM's guest; empty: none. From the simulator's own records, not
  // from annotations or attributes.
  std::string NodeIdOfVm(const std::string& vm_uid) const;
  std::vector<std::string> Journal() const;
  // Calls the observer after every change, without the lock, on the thread that made the change.
  // Several threads may call it at once, and not in the order of their changes. It may query the
  // cluster; such a query does not apply due events. Null removes the observer.
  void SetObserver(std::function<void(const Event&)> observer);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// A pod of a VM that no host accepts, for PutObject; `message`: from Kubernetes' scheduler.
nlohmann::json UnscheduledPod(const std::string& ns, const std::string& vm,
                              const std::string& message);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_CLUSTER_H_
