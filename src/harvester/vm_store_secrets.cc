// SPDX-License-Identifier: Apache-2.0
// VmStore: the Secrets with user data. Their data is decoded only once, to compare it after a lost
// reply, and never kept.
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_store.h"

#include "nlohmann/json.hpp"
#include "object_fields.h"
#include "store_requests.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

constexpr int kOwnAttempts = 4;

std::string OwnerUid(const json& object) {
  const json* owners = base::FindPath(object, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array()) return "";
  for (const json& owner : *owners) {
    if (base::GetString(owner, "kind") == kube::kVirtualMachines.kind) {
      return base::GetString(owner, "uid");
    }
  }
  return "";
}

CloudInitSecret ParseSecret(const json& object) {
  Metadata metadata = ParseMetadata(object);
  CloudInitSecret secret;
  secret.name = std::move(metadata.name);
  secret.uid = std::move(metadata.uid);
  secret.resource_version = std::move(metadata.resource_version);
  secret.pool = ValueOf(metadata.labels, kPoolLabel);
  secret.action_id = ValueOf(metadata.annotations, kActionIdAnnotation);
  secret.owner_uid = OwnerUid(object);
  secret.created_at = metadata.created_at;
  return secret;
}

// Compares the user data, too: a VM must not get a Secret that an earlier attempt of the action
// created from another text.
bool IsSameSecret(const json& existing, const json& wanted) {
  const Metadata theirs = ParseMetadata(existing);
  const std::string action = ValueOf(ParseMetadata(wanted).annotations, kActionIdAnnotation);
  const json* data = base::FindMember(existing, "data");
  const json* wanted_data = base::FindMember(wanted, "data");
  return !action.empty() && ValueOf(theirs.annotations, kActionIdAnnotation) == action &&
         !theirs.deleted_at && data != nullptr && wanted_data != nullptr && *data == *wanted_data;
}

}  // namespace

absl::StatusOr<CloudInitSecret> VmStore::CreateSecret(const runtime::Context& context,
                                                      const json& secret) const {
  const auto created = client_->Create(context, kube::kSecrets, ns_, secret);
  if (created.ok()) return ParseSecret(created->object);
  if (!kube::IsAlreadyExists(created.status())) return created.status();
  const auto existing = client_->Get(context, kube::kSecrets, ns_, kube::NameOf(secret));
  if (kube::IsNotFound(existing.status())) return created.status();
  if (!existing.ok()) return existing.status();
  if (!IsSameSecret(existing->object, secret)) return created.status();
  return ParseSecret(existing->object);
}

absl::Status VmStore::SetSecretOwner(const runtime::Context& context, const VmIdentity& identity,
                                     const std::string& vm_uid) const {
  const std::string name = SecretName(identity.name);
  absl::Status last;
  for (int attempt = 0; attempt < kOwnAttempts; ++attempt) {
    NH_ASSIGN_OR_RETURN(const CloudInitSecret secret, GetSecret(context, name));
    if (secret.owner_uid == vm_uid) return absl::OkStatus();
    if (secret.action_id != identity.action_id) {
      return base::FailedPrecondition("Secret " + name + " was made by another action");
    }
    const json patch = BuildSecretOwnerPatch(identity, vm_uid, secret.resource_version);
    last = client_->MergePatch(context, kube::kSecrets, ns_, name, patch).status();
    // The conflict may be caused by our own patch whose reply was lost: read the Secret again.
    if (!kube::IsConflict(last)) return last;
  }
  return last;
}

absl::StatusOr<Timestamped<std::vector<CloudInitSecret>>> VmStore::ListSecrets(
    const runtime::Context& context) const {
  kube::ListOptions options;
  options.label_selector = ManagedSelector();
  options.drop = {"data", "stringData"};
  NH_ASSIGN_OR_RETURN(const kube::ObservedList list,
                      client_->List(context, kube::kSecrets, ns_, options));
  Timestamped<std::vector<CloudInitSecret>> seen{{}, list.server_time};
  for (const json& item : list.items) seen.value.push_back(ParseSecret(item));
  return seen;
}

absl::StatusOr<CloudInitSecret> VmStore::GetSecret(const runtime::Context& context,
                                                   const std::string& name) const {
  NH_ASSIGN_OR_RETURN(const kube::Observed observed,
                      client_->Get(context, kube::kSecrets, ns_, name));
  return ParseSecret(observed.object);
}

absl::Status VmStore::DeleteSecret(const runtime::Context& context,
                                   const CloudInitSecret& secret) const {
  return DeleteByUid(*client_, context, kube::kSecrets, ns_, secret.name, secret.uid);
}

}  // namespace nomad_harvester::harvester
