// SPDX-License-Identifier: Apache-2.0
// Operators' actions and external events.
#include <utility>

#include "nomad_harvester/base/json.h"

#include "cluster_impl.h"
#include "kube_schema.h"
#include "seed.h"
#include "templates.h"

namespace nomad_harvester::simulator {
namespace {

// The claims of a copy get new names, as in Harvester's UI.
Json CopyOf(const Json& vm, const std::string& new_name) {
  Json copy = {{"metadata",
                {{"name", new_name},
                 {"namespace", NamespaceOf(vm)},
                 {"labels", vm["metadata"].value("labels", Json::object())},
                 {"annotations", vm["metadata"].value("annotations", Json::object())}}},
               {"spec", vm.value("spec", Json::object())}};
  std::string text = base::DumpJson(copy);
  const std::string old_claim = NameOf(vm) + "-disk-";
  const std::string new_claim = new_name + "-disk-";
  for (std::size_t at = text.find(old_claim); at != std::string::npos;
       at = text.find(old_claim, at + new_claim.size())) {
    text.replace(at, old_claim.size(), new_claim);
  }
  return base::ParseJson(text, "the copy").value_or(copy);
}

}  // namespace

bool Cluster::Impl::WithVm(const std::string& name, const std::function<void(const Object&)>& fn) {
  bool found = false;
  Act(Actor::kOperator, [&]() NH_REQUIRES(mutex) {
    const Object vm = store.FindByName(kVms, name);
    found = vm != nullptr;
    if (found) fn(vm);
  });
  return found;
}

bool Cluster::Impl::WithNode(const std::string& name,
                             const std::function<void(NomadState&, const std::string&)>& fn) {
  bool found = false;
  Act(Actor::kOperator, [&]() NH_REQUIRES(mutex) {
    NomadState* const nomad = nomads.WithNode(name);
    found = nomad != nullptr;
    if (found) fn(*nomad, std::string(nomad->LookUp(name)->id));
  });
  return found;
}

bool Cluster::EditAnnotation(const std::string& vm, const std::string& key,
                             const std::optional<std::string>& value) {
  return impl_->WithVm(vm, [&](const Object& object) NH_REQUIRES(impl_->mutex) {
    Json changed = *object;
    Json& annotations = changed["metadata"]["annotations"];
    if (!annotations.is_object()) annotations = Json::object();
    if (value) {
      annotations[key] = *value;
    } else {
      annotations.erase(key);
    }
    impl_->store.Replace(kVms, std::move(changed));
  });
}

bool Cluster::DeleteVmByHand(const std::string& vm) {
  return impl_->WithVm(vm, [&](const Object& object) NH_REQUIRES(impl_->mutex) {
    impl_->kube_api.DeleteByHand(kVms, NamespaceOf(*object), NameOf(*object));
  });
}

bool Cluster::StopVm(const std::string& vm) {
  return impl_->WithVm(vm, [&](const Object& object) NH_REQUIRES(impl_->mutex) {
    Json changed = *object;
    changed["spec"]["runStrategy"] = "Halted";
    impl_->store.Replace(kVms, std::move(changed));
  });
}

bool Cluster::StartVm(const std::string& vm) {
  return impl_->WithVm(vm, [&](const Object& object) NH_REQUIRES(impl_->mutex) {
    if (Starts(*object)) {
      impl_->machines.RequestStart(UidOf(*object));
      return;
    }
    Json changed = *object;
    changed["spec"]["runStrategy"] = "RerunOnFailure";
    impl_->store.Replace(kVms, std::move(changed));
  });
}

bool Cluster::PowerOff(const std::string& vm) {
  bool ran = false;
  impl_->WithVm(vm, [&](const Object& object) NH_REQUIRES(impl_->mutex) {
    ran = impl_->machines.PowerOff(UidOf(*object));
  });
  return ran;
}

bool Cluster::MigrateVm(const std::string& vm, const std::string& host) {
  bool begun = false;
  impl_->WithVm(vm, [&](const Object& object) NH_REQUIRES(impl_->mutex) {
    begun = impl_->machines.Migrate(UidOf(*object), host);
  });
  return begun;
}

bool Cluster::PauseVm(const std::string& vm, bool paused) {
  return impl_->WithVm(vm, [&](const Object& object) NH_REQUIRES(impl_->mutex) {
    impl_->machines.Pause(UidOf(*object), paused);
  });
}

bool Cluster::CloneVm(const std::string& vm, const std::string& new_name, bool same_user_data) {
  return impl_->WithVm(vm, [&](const Object& object) NH_REQUIRES(impl_->mutex) {
    Json copy = CopyOf(*object, new_name);
    if (!same_user_data) impl_->machines.NameGuest(NamespaceOf(*object), new_name, new_name);
    impl_->store.Stamp(kVms, copy);
    impl_->store.Insert(kVms, std::move(copy));
  });
}

void Cluster::NeverJoin(int next_vms) {
  base::MutexLock lock(impl_->mutex);
  impl_->machines.NeverJoin(next_vms);
}

void Cluster::SetNextClients(int next_vms, const ClientBehaviour& behaviour) {
  base::MutexLock lock(impl_->mutex);
  impl_->machines.SetNextClients(next_vms, behaviour);
}

void Cluster::FailStart(int next_vms, const std::string& printable_status,
                        const std::string& message) {
  base::MutexLock lock(impl_->mutex);
  impl_->machines.FailStart(next_vms, printable_status, message);
}

bool Cluster::HangDeletion(const std::string& vm, bool hang) {
  return impl_->WithVm(vm, [&](const Object& object) NH_REQUIRES(impl_->mutex) {
    impl_->machines.HangDeletion(UidOf(*object), hang);
  });
}

void Cluster::KeepClaims(bool keep) {
  base::MutexLock lock(impl_->mutex);
  impl_->machines.KeepClaims(keep);
}

void Cluster::HangClaim(const std::string& claim, bool hang) {
  impl_->Act(Actor::kOperator,
             [&]() NH_REQUIRES(impl_->mutex) { impl_->machines.HangClaim(claim, hang); });
}

void Cluster::SetImageReady(const std::string& image, bool ready) {
  impl_->Act(Actor::kOperator, [&]() NH_REQUIRES(impl_->mutex) {
    const Object object = FindImage(impl_->store, image);
    if (object == nullptr) return;
    impl_->store.Replace(kImages, WithImageReady(*object, ready, impl_->world.wall()));
    SettleTemplates(impl_->store, impl_->world.wall());
  });
}

void Cluster::SetQuotaExceeded(const std::optional<std::string>& message) {
  base::MutexLock lock(impl_->mutex);
  impl_->kube_api.quota_exceeded = message;
  impl_->machines.SetQuotaFull(message.has_value());
}

bool Cluster::PutObject(const nlohmann::json& object) {
  const ResourceDef* def =
      FindResourceByKind(base::GetString(object, "apiVersion"), base::GetString(object, "kind"));
  if (def == nullptr) return false;
  impl_->Act(Actor::kOperator, [&]() NH_REQUIRES(impl_->mutex) {
    Json fresh = object;
    SetDefaults(*def, fresh);
    const Object old = impl_->store.Find(*def, NamespaceOf(fresh), NameOf(fresh));
    impl_->store.Stamp(*def, fresh);
    if (old == nullptr) {
      impl_->store.Insert(*def, std::move(fresh));
      if (def == &kTemplateVersions) SettleTemplates(impl_->store, impl_->world.wall());
      return;
    }
    fresh["metadata"]["uid"] = UidOf(*old);
    fresh["metadata"]["creationTimestamp"] = MetaString(*old, "creationTimestamp");
    impl_->store.Replace(*def, std::move(fresh));
  });
  return true;
}

nlohmann::json UnscheduledPod(const std::string& ns, const std::string& vm,
                              const std::string& message) {
  const Json condition = {{"type", "PodScheduled"},
                          {"status", "False"},
                          {"reason", "Unschedulable"},
                          {"message", message}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", "virt-launcher-" + vm},
            {"namespace", ns},
            {"labels", {{"kubevirt.io", "virt-launcher"}}},
            {"annotations", {{"kubevirt.io/domain", vm}}}}},
          {"status", {{"conditions", Json::array({condition})}}}};
}

bool Cluster::DeleteObject(const nlohmann::json& object) {
  const ResourceDef* def =
      FindResourceByKind(base::GetString(object, "apiVersion"), base::GetString(object, "kind"));
  if (def == nullptr) return false;
  bool found = false;
  impl_->Act(Actor::kOperator, [&]() NH_REQUIRES(impl_->mutex) {
    found = impl_->store.Find(*def, NamespaceOf(object), NameOf(object)) != nullptr;
    if (found) impl_->kube_api.DeleteByHand(*def, NamespaceOf(object), NameOf(object));
  });
  return found;
}

bool Cluster::CancelDrain(const std::string& node, bool mark_eligible) {
  return impl_->WithNode(node, [&](NomadState& nomad, const std::string& id) NH_REQUIRES(
                                   impl_->mutex) { nomad.CancelDrain(id, mark_eligible, {}); });
}

bool Cluster::OperatorDrain(const std::string& node, base::Duration deadline,
                            const std::map<std::string, std::string>& meta) {
  return impl_->WithNode(node, [&](NomadState& nomad, const std::string& id) NH_REQUIRES(
                                   impl_->mutex) { nomad.Drain(id, deadline, false, meta); });
}

bool Cluster::SetEligible(const std::string& node, bool eligible) {
  return impl_->WithNode(node, [&](NomadState& nomad, const std::string& id) NH_REQUIRES(
                                   impl_->mutex) { nomad.SetEligibility(id, eligible); });
}

bool Cluster::PurgeNode(const std::string& node) {
  return impl_->WithNode(node, [&](NomadState& nomad, const std::string& id)
                                   NH_REQUIRES(impl_->mutex) { nomad.Purge(id); });
}

bool Cluster::HangDrain(const std::string& node, bool hang) {
  return impl_->WithNode(node, [&](NomadState& nomad, const std::string& id)
                                   NH_REQUIRES(impl_->mutex) { nomad.Hang(id, hang); });
}

std::string Cluster::AddForeignNode(const NodeSpec& spec) {
  std::string id;
  impl_->Act(Actor::kOperator, [&]() NH_REQUIRES(impl_->mutex) {
    id = impl_->nomads.At(spec.nomad)
             .state.AddClient(spec, impl_->nomads.first().state.NextAddress(),
                              impl_->world.options.client);
  });
  return id;
}

bool Cluster::KillNode(const std::string& node) {
  return impl_->WithNode(node, [&](NomadState& nomad, const std::string& id)
                                   NH_REQUIRES(impl_->mutex) { nomad.LoseClient(id); });
}

bool Cluster::ReviveNode(const std::string& node) {
  return impl_->WithNode(node, [&](NomadState& nomad, const std::string& id)
                                   NH_REQUIRES(impl_->mutex) { nomad.ReturnClient(id); });
}

std::string Cluster::ReviveNodeUnderNewId(const std::string& node) {
  std::string fresh;
  impl_->WithNode(node, [&](NomadState&, const std::string& id)
                            NH_REQUIRES(impl_->mutex) { fresh = impl_->machines.RenewNode(id); });
  return fresh;
}

bool Cluster::ReRegister(const std::string& node, const std::function<void(NodeSpec&)>& change) {
  return impl_->WithNode(node, [&](NomadState& nomad, const std::string& id)
                                   NH_REQUIRES(impl_->mutex) { nomad.ReRegister(id, change); });
}

bool Cluster::SetNodeStatus(const std::string& node, const std::string& status) {
  return impl_->WithNode(node, [&](NomadState& nomad, const std::string& id)
                                   NH_REQUIRES(impl_->mutex) { nomad.SetStatus(id, status); });
}

void Cluster::PlaceLate(const JobSpec& job, base::Duration delay, const std::string& node) {
  base::MutexLock lock(impl_->mutex);
  impl_->nomads.first().state.PlaceLate(job, delay, node);
}

void Cluster::RestoreNomad(bool agents_return) {
  impl_->Act(Actor::kOperator, [&]() NH_REQUIRES(impl_->mutex) {
    impl_->nomads.first().state.Restore(agents_return);
  });
}

void Cluster::RunJob(const JobSpec& job) {
  impl_->Act(Actor::kOperator,
             [&]() NH_REQUIRES(impl_->mutex) { impl_->nomads.At(job.nomad).state.RunJob(job); });
}

}  // namespace nomad_harvester::simulator
