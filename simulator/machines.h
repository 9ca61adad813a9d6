// SPDX-License-Identifier: Apache-2.0
// The controllers of KubeVirt and Harvester, and the guests. Guarded by the cluster's mutex.
#ifndef NOMAD_HARVESTER_SIMULATOR_MACHINES_H_
#define NOMAD_HARVESTER_SIMULATOR_MACHINES_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "kube_store.h"
#include "nomads.h"
#include "pod_requests.h"
#include "world.h"

namespace nomad_harvester::simulator {

class Machines {
 public:
  Machines(World& world, KubeStore& store, Nomads& nomads)
      : world_(world), store_(store), nomads_(nomads) {}

  // Called for every change of the store. Only counts, and schedules reactions; changes no object.
  void OnChange(const ResourceDef& def, const Object& before, const Object& after);

  void NeverJoin(int next_vms) { never_join_ += next_vms; }
  void FailStart(int next_vms, const std::string& printable_status, const std::string& message);
  void SetNextClients(int next_vms, const ClientBehaviour& behaviour) {
    next_clients_.insert(next_clients_.end(), static_cast<std::size_t>(next_vms), behaviour);
  }
  void Pause(const std::string& uid, bool paused);
  void HangDeletion(const std::string& uid, bool hang);
  void KeepClaims(bool keep) { keep_claims_ = keep; }
  // Nothing is written on VMs that may start (kube_admission.cc).
  void SetQuotaFull(bool full) { quota_is_full_ = full; }
  void HangClaim(const std::string& name, bool hang);
  bool PowerOff(const std::string& uid);
  bool Migrate(const std::string& uid, const std::string& host);
  void RequestStart(const std::string& uid);
  // When that VM is created, its guest uses this node name and has no identity hint.
  void NameGuest(const std::string& ns, const std::string& vm, const std::string& guest);
  // The node's agent registers again as another node; returns the new ID.
  std::string RenewNode(const std::string& node_id);
  std::string NodeOf(const std::string& uid) const;

 private:
  struct Failure {
    int left = 0;
    std::string printable_status;
    std::string message;
  };
  struct Machine {
    std::string ns;
    std::string name;
    bool never_joins = false;
    std::optional<Failure> failure;
    ClientBehaviour client;
    bool waits_for_secret = false;
    bool waits_for_host = false;
    bool hangs = false;
    bool ending = false;     // it is being deleted
    std::uint64_t boot = 0;  // number of the start; actions of an earlier one are ignored
    std::string address;
    std::string node_id;
    NomadState* nomad = nullptr;  // that of its node
  };
  // A pod on a host.
  struct Load {
    std::string host;
    std::string ns;
    Json labels;
    Requests requests;
  };
  using Mutation = std::function<void(Json&)>;

  // Changes a VM or its instance; false if it no longer exists.
  bool Mutate(const ResourceDef& def, const std::string& ns, const std::string& name,
              const Mutation& mutation);
  static void LoseClient(const Machine& machine) {
    if (machine.nomad != nullptr) machine.nomad->LoseClient(machine.node_id);
  }
  Object VmOf(const std::string& uid) const { return store_.FindByUid(kVms, uid); }
  void Emit(EventKind kind, const Json& vm, std::string detail = "");

  // machines.cc: reactions to changes.
  void OnVmChange(const Object& before, const Object& after);
  void OnSecretChange(const Object& before, const Object& after);
  void Collect(const ResourceDef& def, const Object& object);

  // machine_start.cc
  void Adopt(const std::string& uid);
  void AddFinalizer(const Machine& machine, const char* finalizer);
  void ShowStart(const std::string& uid, std::uint64_t boot, const char* printable_status);
  void Boot(const std::string& uid);
  // Null: this boot of the machine is over, or it ends.
  Machine* Booting(const std::string& uid, std::uint64_t boot);
  void Schedule(const std::string& uid, std::uint64_t boot);
  void Fail(Machine& machine);
  void SetPhase(const std::string& uid, std::uint64_t boot, const char* phase);
  void Run(const std::string& uid, std::uint64_t boot);
  void Join(const std::string& uid, std::uint64_t boot);

  // machine_hosts.cc
  // Counts what an instance or a pod requests of its host. True if it has left one.
  bool CountLoad(const ResourceDef& def, const Object& before, const Object& after);
  // Whether a pod runs there beside which the instance must not run.
  bool IsAvoided(const std::string& host, const Json& instance) const;
  // The emptiest host that takes the instance. Unavailable, with the scheduler's message: none
  // does.
  absl::StatusOr<std::string> FindHost(const Json& instance) const;
  // Gives the instance of the machine a host unless it has one. False: it waits for one.
  bool FindAndBind(const Json& instance, const std::string& uid);
  void AwaitHost(const std::string& uid, const std::string& message);
  void RetryAwaiting();
  void RemovePod(const Machine& machine);
  // The annotation by which Harvester's UI asks for maintenance mode
  // (harvester/harvester:pkg/util/drainhelper/helper.go).
  static constexpr char kDrainRequested[] = "harvesterhci.io/drain-requested";
  // Called when that is asked for, and then again until the host is empty.
  void EmptyHost(const std::string& name);

  // machine_claims.cc
  void MakeClaims(Machine& machine, const Json& vm);
  void DeleteClaims(const Json& vm);
  bool IsUsed(const Json& claim) const;
  void ReleaseClaims();

  // machine_stop.cc
  void Halt(const std::string& uid);
  void EndInstance(const std::string& uid);
  // What KubeVirt shows of a VM whose guest does not run.
  void Show(const Machine& machine, const char* printable_status, bool has_instance);

  // machine_end.cc
  void BeginDeletion(const std::string& uid);
  void Remove(const std::string& uid);

  World& world_;
  KubeStore& store_;
  Nomads& nomads_;
  std::map<std::string, Machine> machines_;
  std::map<std::string, Load> loads_;     // pods on hosts, by uid; those of instances by theirs
  std::map<std::string, Requests> used_;  // by host: what its pods request together
  std::map<std::pair<std::string, std::string>, std::string> guest_names_;
  std::set<std::string> hanging_claims_;
  bool keep_claims_ = false;
  bool quota_is_full_ = false;
  int never_join_ = 0;
  Failure next_failure_;
  std::deque<ClientBehaviour> next_clients_;
};

// Sets or replaces a status condition; its lastTransitionTime moves only if the status does.
void SetCondition(Json& object, const std::string& type, const std::string& status,
                  const std::string& reason, const std::string& message, base::WallTime now);
// Whether the VM's run strategy starts it automatically.
bool Starts(const Json& vm);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_MACHINES_H_
