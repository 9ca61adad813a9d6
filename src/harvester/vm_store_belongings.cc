// SPDX-License-Identifier: Apache-2.0
// VmStore: objects that belong to a VM, namely its PersistentVolumeClaims and the Secret with its
// user data. The data of Secrets is read only to compare it after a lost reply and to replace the
// introduction token, and is never kept.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/kube/observed.h"

#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

constexpr int kOwnAttempts = 4;

struct SecretRecord : ObjectMetadata {
  explicit operator CloudInitSecret() &&;
  std::string owner_uid;  // of the VM
  std::string kind;       // kind of the owner being read
  std::string uid_of_kind;
};

void EndOwner(SecretRecord& secret, const base::JsonEvent& event) {
  if (event.kind != base::JsonEvent::Kind::kEnd) return;
  if (secret.owner_uid.empty() && secret.kind == kube::kVirtualMachines.kind) {
    secret.owner_uid = secret.uid_of_kind;
  }
  secret.kind.clear();
  secret.uid_of_kind.clear();
}

// The data of Secrets is not among the fields.
const base::JsonFields<SecretRecord>& SecretFields() {
  static const auto* const kFields = new base::JsonFields<SecretRecord>(WithMetadata<SecretRecord>({
      {"metadata.ownerReferences", &EndOwner},
      {"metadata.ownerReferences.kind", &base::SetText<&SecretRecord::kind>},
      {"metadata.ownerReferences.uid", &base::SetText<&SecretRecord::uid_of_kind>},
  }));
  return *kFields;
}

SecretRecord::operator CloudInitSecret() && {
  CloudInitSecret secret{.name = std::move(name),
                         .uid = std::move(uid),
                         .resource_version = std::move(resource_version),
                         .pool = base::ValueOf(labels, kPoolLabel),
                         .action_id = base::ValueOf(annotations, kActionIdAnnotation),
                         .owner_uid = std::move(owner_uid),
                         .created_at = created_at};
  const auto expires = base::ParseRfc3339(base::ValueOf(annotations, kIntroTokenExpiresAnnotation));
  if (expires.ok()) secret.token_expires = *expires;
  return secret;
}
using SecretData = std::map<std::string, std::string>;

// Returns the decoded values; skips values that are not base64 strings.
SecretData DataOf(const json& secret) {
  SecretData data;
  const json* encoded = base::FindMember(secret, "data");
  if (encoded == nullptr || !encoded->is_object()) return data;
  for (const auto& [key, value] : encoded->items()) {
    const auto text = base::Base64Decode(value.is_string() ? value.get<std::string>() : "");
    if (text.ok()) data[key] = *text;
  }
  return data;
}

CloudInitSecret ParseSecret(const json& object) {
  auto secret = static_cast<CloudInitSecret>(SecretFields().Read(object));
  const std::string vm = secret.name.substr(0, secret.name.rfind('-'));
  for (const auto& [key, text] : DataOf(object)) {
    secret.lines.push_back(base::Secret::Lines(text, {"#cloud-config", vm, secret.pool}));
  }
  return secret;
}

// Replaces the introduction token throughout the data. False if there was none.
bool PutIntroToken(const std::string& token, SecretData* data) {
  const std::string old = (*data)[kIntroTokenKey];
  if (old.empty()) return false;
  for (auto& [key, text] : *data) absl::StrReplaceAll({{old, token}}, &text);
  return true;
}

SecretData DataWithoutToken(const json& secret) {
  SecretData data = DataOf(secret);
  PutIntroToken("a token", &data);
  return data;
}

// Also compares the user data: a VM must not get a Secret that an earlier attempt of the action
// created from another text.
bool IsSameSecret(const json& existing, const json& wanted) {
  const ObjectMetadata theirs = MetadataFields().Read(existing);
  const std::string action =
      base::ValueOf(MetadataFields().Read(wanted).annotations, kActionIdAnnotation);
  return !action.empty() && base::ValueOf(theirs.annotations, kActionIdAnnotation) == action &&
         !theirs.deleted_at && DataWithoutToken(existing) == DataWithoutToken(wanted);
}

// Deletes an object that belongs to a VM, by uid; OK if it no longer exists. Nothing depends on a
// Secret or a claim, so background deletion suffices.
absl::Status DeleteByUid(const kube::KubeClient& client, const runtime::Context& context,
                         const kube::ResourceType& type, const std::string& ns,
                         const std::string& name, const std::string& uid) {
  absl::Status status = client.Delete(context, type, ns, name,
                                      {.uid = uid, .propagation = kube::Propagation::kBackground});
  return kube::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace

Claim::Claim(ObjectMetadata&& metadata)
    : name(std::move(metadata.name)),
      uid(std::move(metadata.uid)),
      pool(base::ValueOf(metadata.labels, kPoolLabel)),
      terminating(metadata.deleted_at.has_value()) {}

// Without a selector: the claims of CDI images have lost the labels of their template and can only
// be recognised by name (harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go,
// createDataVolume).
absl::StatusOr<std::vector<Claim>> VmStore::ListClaims(const runtime::Context& context) const {
  NH_ASSIGN_OR_RETURN(
      auto list, (client_->List<Claim, ObjectMetadata>(context, kube::kPersistentVolumeClaims, ns_,
                                                       {}, MetadataFields())));
  return std::move(list.value);
}

absl::Status VmStore::DeleteClaim(const runtime::Context& context, const Claim& claim) const {
  return DeleteByUid(*client_, context, kube::kPersistentVolumeClaims, ns_, claim.name, claim.uid);
}

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
                                     const std::string& vm_uid,
                                     std::optional<CloudInitSecret> secret) const {
  const std::string name = SecretName(identity.name);
  absl::Status last;
  for (int attempt = 0; attempt < kOwnAttempts; ++attempt, secret.reset()) {
    if (!secret.has_value()) {
      NH_ASSIGN_OR_RETURN(secret, GetSecret(context, name));
    }
    if (secret->owner_uid == vm_uid) return absl::OkStatus();
    if (secret->action_id != identity.action_id) {
      return base::FailedPrecondition("Secret " + name + " was made by another action");
    }
    const json patch = BuildSecretOwnerPatch(identity, vm_uid, secret->resource_version);
    last = client_->MergePatch(context, kube::kSecrets, ns_, name, patch).status();
    // Our own patch, whose reply was lost, may have caused the conflict: read the Secret again.
    if (!kube::IsConflict(last)) return last;
  }
  return last;
}

absl::StatusOr<Timestamped<std::vector<CloudInitSecret>>> VmStore::ListSecrets(
    const runtime::Context& context) const {
  // Does not request the data, which are credentials.
  return client_->List<CloudInitSecret, SecretRecord>(context, kube::kSecrets, ns_,
                                                      {.labels = ManagedSelector()}, SecretFields(),
                                                      kube::Part::kMetadata);
}

absl::StatusOr<std::vector<std::string>> VmStore::ListForeignSecrets(
    const runtime::Context& context) const {
  const kube::Selector foreign{.labels = std::string(kManagedByLabel) + "!=" + kManagedByValue};
  NH_ASSIGN_OR_RETURN(const auto secrets,
                      (client_->List<ObjectMetadata>(context, kube::kSecrets, ns_, foreign,
                                                     MetadataFields(), kube::Part::kMetadata)));
  std::vector<std::string> names;
  for (const ObjectMetadata& secret : secrets.value) {
    // The Secret of "init --rbac".
    if (!secret.name.starts_with(kManagedByValue)) names.push_back(secret.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<CloudInitSecret> VmStore::GetSecret(const runtime::Context& context,
                                                   const std::string& name) const {
  NH_ASSIGN_OR_RETURN(const kube::Observed observed,
                      client_->Get(context, kube::kSecrets, ns_, name));
  return ParseSecret(observed.object);
}

absl::Status VmStore::ReplaceIntroToken(const runtime::Context& context,
                                        const CloudInitSecret& secret,
                                        const IntroToken& token) const {
  NH_ASSIGN_OR_RETURN(const kube::Observed observed,
                      client_->Get(context, kube::kSecrets, ns_, secret.name));
  SecretData data = DataOf(observed.object);
  const base::Secret old(data[kIntroTokenKey]);  // removed from texts that quote it
  if (!PutIntroToken(token.jwt.Reveal(), &data)) {
    return base::FailedPrecondition("Secret " + secret.name + " has no introduction token");
  }
  json encoded = json::object();
  for (const auto& [key, text] : data) encoded[key] = base::Base64Encode(text);
  const json patch = {
      {"metadata",
       {{"resourceVersion", secret.resource_version},
        {"annotations", {{kIntroTokenExpiresAnnotation, base::FormatRfc3339(token.expires)}}}}},
      {"data", std::move(encoded)}};
  return client_->MergePatch(context, kube::kSecrets, ns_, secret.name, patch).status();
}

absl::Status VmStore::DeleteSecret(const runtime::Context& context,
                                   const CloudInitSecret& secret) const {
  return DeleteByUid(*client_, context, kube::kSecrets, ns_, secret.name, secret.uid);
}

}  // namespace nomad_harvester::harvester
