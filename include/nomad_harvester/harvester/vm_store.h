// SPDX-License-Identifier: Apache-2.0
// VMs and the objects that belong to them, in one namespace of a Harvester cluster.
#ifndef NOMAD_HARVESTER_HARVESTER_VM_STORE_H_
#define NOMAD_HARVESTER_HARVESTER_VM_STORE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/harvester/quota.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/harvester/vm_event.h"
#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/harvester/vm_template.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/workers.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

using kube::Timestamped;

// True if this release takes GPUs as host devices; 1.7 and older take them as `gpus`. `version` is
// the value of Harvester's setting server-version, such as "v1.7.2". A value that is not a version
// ("dev", "master-1a2b3c4-head") counts as the newest.
bool IsVersionWithGpusAsHostDevices(std::string_view version);

// The fields that tell which Secrets and claims belong to a VM; whole VMs of a large pool are too
// big to keep.
struct VmInBrief {
  explicit VmInBrief(VirtualMachine&& vm);
  std::string name;
  std::string uid;
  std::string action_id;
  bool terminating = false;
  std::vector<std::string> claim_names;
};
struct Claim {
  explicit Claim(ObjectMetadata&& metadata);
  std::string name;
  std::string uid;
  std::string pool;  // label; empty: none
  bool terminating = false;
};
struct CloudInitSecret {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string pool;
  std::string action_id;
  std::string owner_uid;  // uid of the VM; empty: not set yet
  base::WallTime created_at{};
  std::optional<base::WallTime> token_expires{};  // its introduction token; unset: it has none
  // While these exist, the lines of its data count as secrets (rule P3). Not of a list.
  std::vector<base::Secret> lines{};
};

// Annotation → new value; nullopt removes the annotation.
using AnnotationChanges = std::map<std::string, std::optional<std::string>>;

// Thread-safe. Every call blocks for its requests; errors are KubeClient's.
class VmStore {
 public:
  VmStore(std::shared_ptr<const kube::KubeClient> client, std::string ns);

  const std::string& ns() const { return ns_; }

  // The uid of the namespace, which identifies the Harvester cluster. One GET; the right is
  // optional.
  absl::StatusOr<std::string> NamespaceUid(const runtime::Context& context) const;

  // One list: every VM that has our managed-by label, members or not.
  absl::StatusOr<Timestamped<std::vector<VirtualMachine>>> ListManaged(
      const runtime::Context& context) const;
  // One list: the current versions of the same VMs, in the same order. If they equal those of an
  // earlier list, that list is still current, because an object with the same uid and
  // resourceVersion has the same content.
  struct Version {
    std::string uid{};
    std::string resource_version{};
    // NOLINTNEXTLINE(modernize-use-nullptr)
    friend bool operator==(const Version&, const Version&) = default;
  };
  absl::StatusOr<Timestamped<std::vector<Version>>> ListManagedVersions(
      const runtime::Context& context) const;
  // One list: every VM of the namespace.
  absl::StatusOr<Timestamped<std::vector<VirtualMachine>>> ListAll(
      const runtime::Context& context) const;
  // Like ListAll, in brief.
  absl::StatusOr<std::vector<VmInBrief>> ListAllInBrief(const runtime::Context& context) const;
  absl::StatusOr<Timestamped<VirtualMachine>> Get(const runtime::Context& context,
                                                  const std::string& name) const;
  absl::StatusOr<std::vector<VirtualMachineInstance>> ListInstances(
      const runtime::Context& context) const;
  // NOT_FOUND: the VM has no instance, so it does not run.
  absl::StatusOr<VirtualMachineInstance> GetInstance(const runtime::Context& context,
                                                     const std::string& name) const;

  // One conditional PATCH, which also sets the run strategy if it is given. FAILED_PRECONDITION
  // (kube::IsConflict): the VM has changed since `resource_version`. A repetition after a lost
  // reply conflicts, too; the caller reads the VM again. Harvester checks its quotas on every write
  // of a VM that has no pod and is not Halted, also of one that is being deleted
  // (harvester/harvester:pkg/util/resourcequota/calculator.go, CheckIfVMCanStartByResourceQuota).
  absl::StatusOr<VirtualMachine> Annotate(
      const runtime::Context& context, const std::string& name, const std::string& resource_version,
      const AnnotationChanges& changes, const std::optional<std::string>& run_strategy = {}) const;

  // The three writes of a creation. Each may be repeated with the same arguments after a lost
  // reply. On ALREADY_EXISTS the object is read back, and the write succeeds if the object is ours:
  // it has our action id, and the Secret has the same user data and no deletionTimestamp, or the VM
  // has the same self annotation (it may already be terminating). Introduction tokens are not
  // compared, because each attempt makes a new one; the object keeps its own. Otherwise
  // ALREADY_EXISTS is returned.
  absl::StatusOr<CloudInitSecret> CreateSecret(const runtime::Context& context,
                                               const nlohmann::json& secret) const;
  absl::StatusOr<Timestamped<VirtualMachine>> CreateVm(const runtime::Context& context,
                                                       const nlohmann::json& vm) const;
  // `secret`: the Secret as just created; if unset, it is read. FAILED_PRECONDITION if it belongs
  // to another action.
  absl::Status SetSecretOwner(const runtime::Context& context, const VmIdentity& identity,
                              const std::string& vm_uid,
                              std::optional<CloudInitSecret> secret = {}) const;
  // Runs the full admission of the VM without storing it (dryRun=All); counts as a read. The VM as
  // it would be stored.
  absl::StatusOr<nlohmann::json> DryRunCreateVm(const runtime::Context& context,
                                                const nlohmann::json& vm) const;

  // DELETE with uid and resourceVersion, both required. OK if the VM no longer exists.
  // FAILED_PRECONDITION: the VM was changed by another client, or by an earlier attempt of this
  // DELETE whose reply was lost.
  absl::Status DeleteVm(const runtime::Context& context, const std::string& name,
                        const std::string& uid, const std::string& resource_version) const;

  // One list: every claim of the namespace, because those of CDI images lack our labels.
  absl::StatusOr<std::vector<Claim>> ListClaims(const runtime::Context& context) const;
  // The last warning of Kubernetes or CDI about each volume, by name: "ProvisioningFailed:
  // storageclass … not found". Omits warnings that were followed by a success. Two lists of Events:
  // about claims, and about DataVolumes, which have the names of their claims.
  absl::StatusOr<std::map<std::string, std::string>> ListVolumeWarnings(
      const runtime::Context& context) const;
  // The scheduler's messages about pods of VMs that have no host, by VM name. One list.
  absl::StatusOr<std::map<std::string, std::string>> ListPodMessages(
      const runtime::Context& context) const;
  // One list: the Events of a VM and its instance by any writer, the oldest first. Notes are
  // truncated to the API server's limit.
  absl::StatusOr<std::vector<SeenEvent>> ListEventsOf(const runtime::Context& context,
                                                      const std::string& vm) const;
  // OK if it no longer exists.
  absl::Status DeleteClaim(const runtime::Context& context, const Claim& claim) const;

  // One list: every Secret that has our managed-by label. Does not request their data.
  absl::StatusOr<Timestamped<std::vector<CloudInitSecret>>> ListSecrets(
      const runtime::Context& context) const;
  // Names of the namespace's Secrets that are no VM's of a pool, nor the token's own. Ascending.
  absl::StatusOr<std::vector<std::string>> ListForeignSecrets(
      const runtime::Context& context) const;
  absl::StatusOr<CloudInitSecret> GetSecret(const runtime::Context& context,
                                            const std::string& name) const;
  // Replaces the introduction token throughout the data of a VM's Secret. The write is conditional
  // on the resourceVersion of `secret`. FAILED_PRECONDITION: the Secret has changed since
  // (kube::IsConflict), or has no token.
  absl::Status ReplaceIntroToken(const runtime::Context& context, const CloudInitSecret& secret,
                                 const IntroToken& token) const;
  // OK if it no longer exists.
  absl::Status DeleteSecret(const runtime::Context& context, const CloudInitSecret& secret) const;

  // `name` is a resource name, or else a display name with exactly one match (otherwise
  // FAILED_PRECONDITION, naming the images found). An image that is not imported yet is returned
  // with `problem`. Looks up both kinds of names in parallel.
  absl::StatusOr<Image> ResolveImage(const runtime::Context& context, runtime::Executor& executor,
                                     const std::string& ns, const std::string& name) const;
  // A version of the template, by its number; nullopt: the default version. NOT_FOUND names the
  // templates of the namespace or the versions of the template, if the token may list them.
  // FAILED_PRECONDITION: the version is not ready, the template has no default, or a pool's VMs
  // cannot be made from it. Two or three sequential reads.
  absl::StatusOr<VmTemplate> ResolveTemplate(const runtime::Context& context, const std::string& ns,
                                             const std::string& name,
                                             std::optional<std::int64_t> version) const;
  // NOT_FOUND names the NetworkAttachmentDefinition.
  absl::Status CheckNetwork(const runtime::Context& context, const Network& network) const;
  // NOT_FOUND names the class and the existing ones. A class that the token lacks the right to read
  // is `unknown`, not an error: classes are cluster-wide, and a namespace's Role cannot grant the
  // right.
  struct ClassFacts {
    bool unknown = false;
    bool is_lvm = false;  // a storage class of LVM: its volumes must be ReadWriteOnce
  };
  absl::StatusOr<ClassFacts> ReadStorageClass(const runtime::Context& context,
                                              const std::string& name) const;
  absl::StatusOr<ClassFacts> ReadPriorityClass(const runtime::Context& context,
                                               const std::string& name) const;
  // True if this Harvester takes GPUs as host devices, according to its version, which every user
  // may read. A missing or unreadable version counts as the newest.
  absl::StatusOr<bool> TakesGpusAsHostDevices(const runtime::Context& context) const;
  // One list: the quotas of the namespace.
  absl::StatusOr<std::vector<ResourceQuota>> ListQuotas(const runtime::Context& context) const;
  // The public key of a KeyPair, on one line. FAILED_PRECONDITION: it has none, or several lines.
  absl::StatusOr<std::string> PublicKey(const runtime::Context& context, const std::string& ns,
                                        const std::string& name) const;

 private:
  std::shared_ptr<const kube::KubeClient> client_;
  std::string ns_;
};

// Names are "namespace/name", in alphabetical order.
struct Choices {
  std::vector<Image> images;  // including those that cannot be used yet
  std::vector<std::string> networks;
  std::vector<std::string> ssh_keys;
  std::vector<std::string> namespaces;  // empty: the token lacks the right to list them
};

// Lists all namespaces that the token may list; if it lacks the right to list all at once, only
// `namespaces`. Blocks for one list per kind, or per kind and namespace.
absl::StatusOr<Choices> ListChoices(const runtime::Context& context, const kube::KubeClient& client,
                                    const std::vector<std::string>& namespaces);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_VM_STORE_H_
