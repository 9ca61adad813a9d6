// SPDX-License-Identifier: Apache-2.0
// VmStore: VirtualMachines and their instances.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/kube/observed.h"

#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

const base::JsonFields<VmStore::Version>& VersionFields() {
  static const auto* const kFields = new base::JsonFields<VmStore::Version>(
      {{"metadata.uid", &base::SetText<&VmStore::Version::uid>},
       {"metadata.resourceVersion", &base::SetText<&VmStore::Version::resource_version>}});
  return *kFields;
}

// A pod in which the guest of a VM runs or will run.
struct PodRecord : ObjectMetadata {
  std::vector<Condition> conditions;
};
const base::JsonFields<PodRecord>& PodFields() {
  static const auto* const kFields =
      new base::JsonFields<PodRecord>(WithConditions<PodRecord>(WithMetadata<PodRecord>({})));
  return *kFields;
}
// kubevirt/kubevirt:pkg/virt-controller/services/template.go.
constexpr char kPodSelector[] = "kubevirt.io=virt-launcher";

// True if the object has the run strategy and our annotations as the merge patch sets them.
bool Shows(const json& object, const json& patch) {
  const json* has = base::FindPath(object, {"metadata", "annotations"});
  for (const auto& [key, value] : base::FindPath(patch, {"metadata", "annotations"})->items()) {
    if (key == kRemovedClaimsAnnotation) continue;  // Harvester's own
    const json* found = has == nullptr ? nullptr : base::FindMember(*has, key);
    if (value.is_null() ? found != nullptr : found == nullptr || *found != value) return false;
  }
  const json* wanted = base::FindPath(patch, {"spec", "runStrategy"});
  const json* found = base::FindPath(object, {"spec", "runStrategy"});
  return wanted == nullptr || (found != nullptr && *found == *wanted);
}

Timestamped<VirtualMachine> TimestampedVm(const kube::Observed& observed) {
  return {ParseVirtualMachine(observed.object), observed.server_time};
}

}  // namespace

VmStore::VmStore(std::shared_ptr<const kube::KubeClient> client, std::string ns)
    : client_(std::move(client)), ns_(std::move(ns)) {}

absl::StatusOr<std::string> VmStore::NamespaceUid(const runtime::Context& context) const {
  NH_ASSIGN_OR_RETURN(const kube::Observed ns, client_->Get(context, kube::kNamespaces, "", ns_));
  std::string uid = base::TextAt(ns.object, {"metadata", "uid"});
  if (uid.empty()) return base::Internal("read namespace " + ns_ + ": the reply has no uid");
  return uid;
}

absl::StatusOr<Timestamped<std::vector<VirtualMachine>>> VmStore::ListManaged(
    const runtime::Context& context) const {
  return client_->List<VirtualMachine>(context, kube::kVirtualMachines, ns_,
                                       {.labels = ManagedSelector()}, VirtualMachineFields());
}

absl::StatusOr<Timestamped<std::vector<VmStore::Version>>> VmStore::ListManagedVersions(
    const runtime::Context& context) const {
  return client_->List<Version>(context, kube::kVirtualMachines, ns_, {.labels = ManagedSelector()},
                                VersionFields(), kube::Part::kMetadata);
}

absl::StatusOr<Timestamped<std::vector<VirtualMachine>>> VmStore::ListAll(
    const runtime::Context& context) const {
  return client_->List<VirtualMachine>(context, kube::kVirtualMachines, ns_, {},
                                       VirtualMachineFields());
}

VmInBrief::VmInBrief(VirtualMachine&& vm)
    : name(std::move(vm.name)),
      uid(std::move(vm.uid)),
      action_id(std::move(vm.action_id)),
      terminating(IsTerminating(vm)),
      claim_names(std::move(vm.claim_names)) {}

absl::StatusOr<std::vector<VmInBrief>> VmStore::ListAllInBrief(
    const runtime::Context& context) const {
  NH_ASSIGN_OR_RETURN(
      auto list, (client_->List<VmInBrief, VirtualMachine>(context, kube::kVirtualMachines, ns_, {},
                                                           VirtualMachineFields())));
  return std::move(list.value);
}

absl::StatusOr<Timestamped<VirtualMachine>> VmStore::Get(const runtime::Context& context,
                                                         const std::string& name) const {
  NH_ASSIGN_OR_RETURN(const kube::Observed observed,
                      client_->Get(context, kube::kVirtualMachines, ns_, name));
  return TimestampedVm(observed);
}

absl::StatusOr<std::vector<VirtualMachineInstance>> VmStore::ListInstances(
    const runtime::Context& context) const {
  NH_ASSIGN_OR_RETURN(
      auto list, client_->List<VirtualMachineInstance>(context, kube::kVirtualMachineInstances, ns_,
                                                       {}, InstanceFields()));
  return std::move(list.value);
}

absl::StatusOr<std::map<std::string, std::string>> VmStore::ListPodMessages(
    const runtime::Context& context) const {
  NH_ASSIGN_OR_RETURN(auto list, client_->List<PodRecord>(context, kube::kPods, ns_,
                                                          {.labels = kPodSelector}, PodFields()));
  std::map<std::string, std::string> messages;
  for (const PodRecord& pod : list.value) {
    const Condition* scheduled = FindCondition(pod.conditions, "PodScheduled");
    const std::string vm = base::ValueOf(pod.annotations, kVmOfPod);
    if (vm.empty() || pod.deleted_at.has_value() || scheduled == nullptr) continue;
    if (scheduled->status == "False") messages[vm] = scheduled->message;
  }
  return messages;
}

absl::StatusOr<VirtualMachineInstance> VmStore::GetInstance(const runtime::Context& context,
                                                            const std::string& name) const {
  NH_ASSIGN_OR_RETURN(const kube::Observed observed,
                      client_->Get(context, kube::kVirtualMachineInstances, ns_, name));
  return ParseInstance(observed.object);
}

absl::StatusOr<VirtualMachine> VmStore::Annotate(
    const runtime::Context& context, const std::string& name, const std::string& resource_version,
    const AnnotationChanges& changes, const std::optional<std::string>& run_strategy) const {
  // An empty resource version would make the patch unconditional.
  if (resource_version.empty()) {
    return base::InvalidArgument("annotating VirtualMachine " + name + " needs a resourceVersion");
  }
  json annotations = json::object();
  for (const auto& [key, value] : changes) annotations[key] = value ? json(*value) : json(nullptr);
  json patch = {
      {"metadata", {{"resourceVersion", resource_version}, {"annotations", annotations}}}};
  if (run_strategy.has_value()) patch["spec"]["runStrategy"] = *run_strategy;
  NH_ASSIGN_OR_RETURN(const kube::Observed observed,
                      client_->MergePatch(context, kube::kVirtualMachines, ns_, name, patch));
  // A webhook may have undone the write, and the reply then shows it.
  if (!Shows(observed.object, patch)) {
    return kube::WithoutEffect("annotating VirtualMachine " + name + ": ");
  }
  return ParseVirtualMachine(observed.object);
}

absl::StatusOr<Timestamped<VirtualMachine>> VmStore::CreateVm(const runtime::Context& context,
                                                              const json& vm) const {
  const auto created = client_->Create(context, kube::kVirtualMachines, ns_, vm);
  if (created.ok()) return TimestampedVm(*created);
  if (!kube::IsAlreadyExists(created.status())) return created.status();
  const ObjectMetadata wanted = MetadataFields().Read(vm);
  const auto existing = Get(context, wanted.name);
  // Deleted between the two requests: it did exist, so its name must not be used again.
  if (kube::IsNotFound(existing.status())) return created.status();
  if (!existing.ok()) return existing.status();
  const std::string action = base::ValueOf(wanted.annotations, kActionIdAnnotation);
  const bool ours = !action.empty() && existing->value.action_id == action &&
                    existing->value.self == base::ValueOf(wanted.annotations, kSelfAnnotation);
  if (!ours) return created.status();
  return existing;
}

absl::StatusOr<json> VmStore::DryRunCreateVm(const runtime::Context& context,
                                             const json& vm) const {
  NH_ASSIGN_OR_RETURN(kube::Observed observed,
                      client_->Create(context, kube::kVirtualMachines, ns_, vm, /*dry_run=*/true));
  return std::move(observed.object);
}

// Foreground deletion: the VM remains visible until its instance no longer exists.
absl::Status VmStore::DeleteVm(const runtime::Context& context, const std::string& name,
                               const std::string& uid, const std::string& resource_version) const {
  // Both preconditions are needed: they keep a delayed DELETE from deleting a VM whose removal was
  // cancelled, or a new VM with the same name.
  if (uid.empty() || resource_version.empty()) {
    return base::InvalidArgument("deleting VirtualMachine " + name +
                                 " needs its uid and resourceVersion");
  }
  absl::Status status = client_->Delete(context, kube::kVirtualMachines, ns_, name,
                                        {.uid = uid, .resource_version = resource_version});
  return kube::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace nomad_harvester::harvester
