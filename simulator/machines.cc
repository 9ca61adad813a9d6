// SPDX-License-Identifier: Apache-2.0
#include "machines.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/json.h"

namespace nomad_harvester::simulator {

bool Machines::Mutate(const ResourceDef& def, const std::string& ns, const std::string& name,
                      const Mutation& mutation) {
  const Object current = store_.Find(def, ns, name);
  if (current == nullptr) return false;
  Json changed = *current;
  mutation(changed);
  store_.Replace(def, std::move(changed));
  return true;
}

void Machines::Emit(EventKind kind, const Json& vm, std::string detail) {
  Event event;
  event.kind = kind;
  event.ns = NamespaceOf(vm);
  event.name = NameOf(vm);
  event.id = UidOf(vm);
  event.detail = std::move(detail);
  event.object = std::make_shared<const Json>(vm);
  world_.Emit(std::move(event));
}

void SetCondition(Json& object, const std::string& type, const std::string& status,
                  const std::string& reason, const std::string& message, base::WallTime now) {
  Json& conditions = object["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  Json fresh = {{"type", type},
                {"status", status},
                {"lastProbeTime", nullptr},
                {"lastTransitionTime", base::FormatRfc3339(now)}};
  if (!reason.empty()) fresh["reason"] = reason;
  if (!message.empty()) fresh["message"] = message;
  for (Json& condition : conditions) {
    if (base::GetString(condition, "type") != type) continue;
    if (base::GetString(condition, "status") == status) {
      fresh["lastTransitionTime"] = condition["lastTransitionTime"];
    }
    condition = fresh;
    return;
  }
  conditions.push_back(fresh);
}

bool Starts(const Json& vm) {
  const std::string strategy = base::TextAt(vm, {"spec", "runStrategy"});
  return strategy == "Always" || strategy == "RerunOnFailure" || strategy == "Once";
}

void Machines::FailStart(int next_vms, const std::string& printable_status,
                         const std::string& message) {
  next_failure_ = {next_vms, printable_status, message};
}

void Machines::NameGuest(const std::string& ns, const std::string& vm, const std::string& guest) {
  guest_names_[{ns, vm}] = guest;
}

std::string Machines::NodeOf(const std::string& uid) const {
  const auto found = machines_.find(uid);
  return found == machines_.end() ? "" : found->second.node_id;
}

std::string Machines::RenewNode(const std::string& node_id) {
  NomadState* const nomad = nomads_.WithNode(node_id);
  if (nomad == nullptr) return "";
  const NomadNode* old = nomad->FindNode(node_id);
  NodeSpec spec = old->spec;
  // The dynamic metadata was in its data directory.
  if (const auto meta = nomad->MetaOf(node_id); meta.has_value()) spec.meta = meta->fixed;
  const std::string address = old->address;
  const ClientBehaviour behaviour = nomad->BehaviourOf(node_id);
  nomad->LoseClient(node_id);
  const std::string id = nomad->AddClient(spec, address, behaviour);
  for (auto& [uid, machine] : machines_) {
    if (machine.node_id == node_id) machine.node_id = id;
  }
  return id;
}

// A paused guest sends no heartbeats.
void Machines::Pause(const std::string& uid, bool paused) {
  const auto found = machines_.find(uid);
  if (found == machines_.end()) return;
  const Machine& machine = found->second;
  Mutate(kVms, machine.ns, machine.name, [paused, this](Json& vm) {
    vm["status"]["printableStatus"] = paused ? "Paused" : "Running";
    vm["status"]["ready"] = !paused;
    SetCondition(vm, "Ready", paused ? "False" : "True", paused ? "GuestNotRunning" : "", "",
                 world_.wall());
    SetCondition(vm, "Paused", paused ? "True" : "False", paused ? "PausedByUser" : "", "",
                 world_.wall());
  });
  if (paused) {
    LoseClient(machine);
  } else if (machine.nomad != nullptr) {
    machine.nomad->ReturnClient(machine.node_id);
  }
}

void Machines::OnChange(const ResourceDef& def, const Object& before, const Object& after) {
  if (&def == &kVms) OnVmChange(before, after);
  if (&def == &kSecrets) OnSecretChange(before, after);
  if (&def == &kHosts && after != nullptr && !AnnotationOf(*after, kDrainRequested).empty()) {
    world_.After(world_.options.reaction_time, [this, host = NameOf(*after)] { EmptyHost(host); });
  }
  const bool instance_ends = &def == &kInstances && after == nullptr;
  const bool makes_room = CountLoad(def, before, after) || &def == &kHosts;
  if (makes_room && std::any_of(machines_.begin(), machines_.end(),
                                [](const auto& entry) { return entry.second.waits_for_host; })) {
    world_.After(world_.options.reaction_time, [this] { RetryAwaiting(); });
  }
  const bool claim_ends = &def == &kClaims && after != nullptr && IsTerminating(*after);
  if (claim_ends || instance_ends) {
    world_.After(world_.options.reaction_time, [this] { ReleaseClaims(); });
  }
}

void Machines::OnVmChange(const Object& before, const Object& after) {
  const std::string uid = UidOf(after != nullptr ? *after : *before);
  if (before == nullptr) {
    Machine machine;
    machine.ns = NamespaceOf(*after);
    machine.name = NameOf(*after);
    if (never_join_ > 0) {
      --never_join_;
      machine.never_joins = true;
    }
    if (next_failure_.left > 0) {
      --next_failure_.left;
      machine.failure = next_failure_;
    }
    machine.client = world_.options.client;
    if (!next_clients_.empty()) {
      machine.client = std::move(next_clients_.front());
      next_clients_.pop_front();
    }
    machines_[uid] = std::move(machine);
    world_.After(world_.options.reaction_time, [this, uid] { Adopt(uid); });
    return;
  }
  if (after == nullptr) {
    // Also for a VM that no controller had observed yet.
    world_.After(base::Duration::zero(), [this, uid] {
      const auto found = machines_.find(uid);
      if (found == machines_.end()) return;
      LoseClient(found->second);
      RemovePod(found->second);
      machines_.erase(found);
    });
    // The garbage collector deletes what the VM owned.
    world_.After(world_.options.reaction_time, [this, uid] {
      for (const ResourceDef* def : {&kSecrets, &kInstances, &kClaims}) {
        const KubeStore::Objects all = store_.All(*def);
        for (const auto& [key, object] : all) {
          if (IsOwnedBy(*object, uid)) store_.Erase(*def, key.first, key.second);
        }
      }
    });
    return;
  }
  if (IsTerminating(*after) && !IsTerminating(*before)) {
    machines_[uid].ending = true;
    world_.After(world_.options.reaction_time, [this, uid] { BeginDeletion(uid); });
    world_.After(world_.options.shutdown_time, [this, uid] {
      EndInstance(uid);
      if (const Object vm = VmOf(uid); vm != nullptr && !(quota_is_full_ && Starts(*vm))) {
        Mutate(kVms, NamespaceOf(*vm), NameOf(*vm),
               [](Json& object) { object["status"]["created"] = false; });
      }
      Remove(uid);
    });
    return;
  }
  if (Starts(*before) && !Starts(*after)) {
    world_.After(world_.options.reaction_time, [this, uid] { Halt(uid); });
  } else if (!Starts(*before) && Starts(*after)) {
    world_.After(world_.options.reaction_time, [this, uid] { Boot(uid); });
  }
}

// A dependent whose owner does not exist is garbage, too
// (kubernetes/kubernetes:pkg/controller/garbagecollector/garbagecollector.go).
void Machines::OnSecretChange(const Object& before, const Object& after) {
  if (after == nullptr) return;
  if (before == nullptr) {
    for (auto& [uid, machine] : machines_) {
      const std::string waiting = uid;
      if (!machine.waits_for_secret || machine.ns != NamespaceOf(*after)) continue;
      world_.After(world_.options.reaction_time,
                   [this, waiting, boot = machine.boot] { Run(waiting, boot); });
    }
  }
  const Json* owners = base::FindPath(*after, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array() || owners->empty()) return;
  world_.After(world_.options.reaction_time, [this, after] { Collect(kSecrets, after); });
}

void Machines::Collect(const ResourceDef& def, const Object& object) {
  const Object now = store_.Find(def, NamespaceOf(*object), NameOf(*object));
  if (now == nullptr || UidOf(*now) != UidOf(*object)) return;
  const Json* owners = base::FindPath(*now, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array() || owners->empty()) return;
  for (const Json& owner : *owners) {
    if (base::GetString(owner, "kind") != kVms.kind) return;
    if (VmOf(base::GetString(owner, "uid")) != nullptr) return;
  }
  store_.Erase(def, NamespaceOf(*now), NameOf(*now));
}

}  // namespace nomad_harvester::simulator
