// SPDX-License-Identifier: Apache-2.0
// The controllers of KubeVirt and Harvester, and the guests: what becomes of a VirtualMachine.
// Guarded by the cluster's mutex.
#ifndef NOMAD_HARVESTER_SIMULATOR_MACHINES_H_
#define NOMAD_HARVESTER_SIMULATOR_MACHINES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "kube_store.h"
#include "nomad_state.h"
#include "world.h"

namespace nomad_harvester::simulator {

class Machines {
 public:
  Machines(World& world, KubeStore& store, NomadState& nomad)
      : world_(world), store_(store), nomad_(nomad) {}

  // Every change of the store. Changes nothing itself: it makes plans.
  void OnChange(const ResourceDef& def, const Object& before, const Object& after);

  void NeverJoin(int next_vms) { never_join_ += next_vms; }
  void FailStart(int next_vms, const std::string& printable_status, const std::string& message);
  void Pause(const std::string& uid, bool paused);
  void HangDeletion(const std::string& uid, bool hang);
  // The guest of that VM, once it is created, calls itself so and carries no identity hint.
  void NameGuest(const std::string& ns, const std::string& vm, const std::string& guest);
  // Its agent comes back with another node.
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
    bool waits_for_secret = false;
    bool hangs = false;
    bool ending = false;     // its deletion is under way
    std::uint64_t boot = 0;  // which start it is: what an earlier one planned is void
    std::string address;
    std::string node_id;
  };
  using Mutation = std::function<void(Json&)>;

  // Changes a VM or its instance if it is still there; false if not.
  bool Mutate(const ResourceDef& def, const std::string& ns, const std::string& name,
              const Mutation& mutation);
  Object VmOf(const std::string& uid) const { return store_.FindByUid(kVms, uid); }
  void Emit(EventKind kind, const Json& vm, std::string detail = "");

  // machines.cc: what changes bring about.
  void OnVmChange(const Object& before, const Object& after);
  void OnSecretChange(const Object& before, const Object& after);
  void OnClaimDeletion(const Object& claim);
  void Collect(const ResourceDef& def, const Object& object);

  // machine_start.cc
  void Adopt(const std::string& uid);
  void MakeClaims(Machine& machine, const Json& vm);
  void Boot(const std::string& uid);
  void Fail(Machine& machine);
  void SetPhase(const std::string& uid, std::uint64_t boot, const char* phase);
  void Run(const std::string& uid, std::uint64_t boot);
  void Join(const std::string& uid, std::uint64_t boot);

  // machine_end.cc
  void BeginDeletion(const std::string& uid);
  void Halt(const std::string& uid);
  void EndInstance(const std::string& uid);
  void Remove(const std::string& uid);

  World& world_;
  KubeStore& store_;
  NomadState& nomad_;
  std::map<std::string, Machine> machines_;
  std::map<std::pair<std::string, std::string>, std::string> guest_names_;
  int never_join_ = 0;
  Failure next_failure_;
};

// Sets or replaces a status condition; its lastTransitionTime moves only if the status does.
void SetCondition(Json& object, const std::string& type, const std::string& status,
                  const std::string& reason, const std::string& message, base::WallTime now);
// The run strategies that start a VM by themselves.
bool Starts(const Json& vm);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_MACHINES_H_
